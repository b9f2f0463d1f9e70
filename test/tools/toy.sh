# Every verb at toy size, for tests that run all of them; after common.sh.
# toy_files: what the verbs start from: text, data, a run with two checkpoints, a batch.
# toy_verbs: prints the verbs' command lines, one a line, as words without quotes; each may be repeated.
toy_train="--encoder-layers 1 --decoder-layers 1 --d-model 8 --ffn-dim 8 --heads 1 --max-tokens 200 --max-positions 64 \
--device cpu --threads 1 --quiet"
toy_files() {
    "$fathom" corpus --pair en-de --out text --sentences 60 --valid 6 --test 6 --level simple 2> /dev/null
    "$fathom" prepare --train-src text/train.en --train-tgt text/train.de --valid-src text/valid.en \
        --valid-tgt text/valid.de --vocab-size 80 --normalization identity --out data --threads 1 > /dev/null 2>&1
    # shellcheck disable=SC2086 # the options are words
    "$fathom" train data $toy_train --method deepnorm --save-dir run --max-update 4 --warmup-updates 2 --log-interval 1 \
        --telemetry 2 --save-interval-updates 2 > /dev/null 2>&1
    cp "$here/golden/trace/postln-encdec/batch.safetensors" .
    cp -r "$here/golden/trace/postln-encdec" golden
    printf 'data: data\nencoder-layers: 1\ndecoder-layers: 1\nd-model: 8\nffn-dim: 8\nheads: 1\nmax-tokens: 200\n' > sweep.yaml
    printf 'max-positions: 64\nmax-update: 2\nwarmup-updates: 1\ndevice: cpu\nthreads: 1\nmethod: [postln, preln]\n' >> sweep.yaml
}

toy_verbs() {
    cat << END
corpus --pair en-de --out new/text --sentences 20 --valid 2 --test 2 --level simple
prepare --train-src text/train.en --train-tgt text/train.de --tokenizer data/tokenizer.model --out new/data --threads 1
prepare --train-src text/train.en --train-tgt text/train.de --vocab-size 60 --out new/trained --threads 1
data check data
data info data --json
init --config run/checkpoints/last/config.json --out new/model
preflight data $toy_train --warmup-updates 2 --max-update 4
train data $toy_train --save-dir new/run --max-update 3 --warmup-updates 2 --telemetry 2
evaluate run/checkpoints/last data --device cpu --threads 1
generate run/checkpoints/last --input text/test.en --output new/out --device cpu --threads 1
score bleu --ref text/test.de --hyp text/test.de
average run/checkpoints/step-00000002 run/checkpoints/step-00000004 --out new/mean
trace golden --batch batch.safetensors --out new/trace --device ref
methods branchnorm
fold run/checkpoints/last --out new/folded
sweep sweep.yaml --out new/sweep
report run --out new/page.html
watch run --terminal
END
}
