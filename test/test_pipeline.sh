#!/bin/sh
# A model whose layers are cut into stages on several ranks: the same bits as in one piece, for every method and
# architecture, with data-parallel groups beside it, resumed by other numbers of stages, and ends in words.
. "$(dirname "$0")/common.sh"
. "$here/ranks.sh"

expect 0 "$fathom" corpus --pair en-de --out text --sentences 300 --valid 40 --test 20 --level simple
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de \
    --valid-src text/valid.en --valid-tgt text/valid.de --vocab-size 200 --out data
expect 0 "$fathom" prepare --train-text text/train.en --valid-text text/valid.en --vocab-size 200 --out lm
expect 0 "$fathom" prepare --train-text text/train.en --valid-text text/valid.en --vocab-size 200 --mask --out mlm
small="--d-model 16 --ffn-dim 32 --heads 2 --max-positions 64 --max-tokens 200 --warmup-updates 5 --lr 0.01 --dropout 0.1 \
    --threads 1 --device cpu --quiet"
train="$fathom train data --encoder-layers 2 --decoder-layers 2 $small --max-update 4 --log-interval 2 --clip-norm 0.5 \
    --save-interval-updates 4 --validate-interval-updates 3 --keep-last 0"
decoder="$fathom train lm --arch dec --decoder-layers 5 $small --tokens-per-sample 32 --max-update 3"

# ---- stages, alone and beside groups ----
for batches in 1 5; do
    expect 0 $train --save-dir alone-$batches --update-freq $batches
    for shape in 2,2 3,3 4,4 4,2; do
        expect 0 launch "${shape%,*}" $train --save-dir "cut-$shape-$batches" --update-freq $batches --pipeline "${shape#*,}"
        same alone-$batches "cut-$shape-$batches"
    done
done
grep '"type":"start"' cut-4,2-5/log.jsonl | grep -q '"ranks":4,.*"pipeline":2' || fail "the start line has no pipeline"
numbers alone-5 > expected
grep -q 'with 5 batches an update the stages wait 29 % of the time; with --update-freq 12 14 %' cut-3,3-5/log.jsonl ||
    fail "nothing is said of stages that wait"
numbers cut-3,3-5 | grep -v 'stages wait' | cmp - expected || fail "the log of a pipeline has other numbers"

# ---- decoders, ways to share embeddings, heads, activations that are made again ----
again() { # name, stages, command...
    name=$1 stages=$2
    shift 2
    expect 0 "$@" --save-dir "one-$name" --update-freq 3
    expect 0 launch "$stages" "$@" --save-dir "cut-$name" --update-freq 3 --pipeline "$stages"
    same "one-$name" "cut-$name"
}
again decoder 3 $decoder
again frozen 2 $decoder --freeze 'decoder.layers.1*' --freeze 'decoder.layers.*.fc1.weight' --clip-norm 0.1
again decoder-many 5 $decoder
again untied 2 $decoder --share none --positions learned
again target 4 $train --share dec
again apart 2 $train --share none --positions learned
again masked 2 "$fathom" train mlm --arch enc --head masked-token --encoder-layers 3 $small --tokens-per-sample 32 --max-update 3
again bf16 2 $train --precision bf16
expect 0 launch 2 $train --save-dir tight --update-freq 5 --pipeline 2 --memory-budget 4MiB --validate-interval-updates 0
expect 0 $train --save-dir roomy --update-freq 5 --validate-interval-updates 0
same roomy tight

# ---- every method: what crosses a border is another with each ----
for method in $("$fathom" methods | awk 'NR > 1 && NF > 2 && $2 ~ /yes|no/ { print $1 }'); do
    expect 0 $train --save-dir "m1-$method" --update-freq 2 --max-update 2 --method "$method"
    expect 0 launch 3 $train --save-dir "m3-$method" --update-freq 2 --max-update 2 --method "$method" --pipeline 3
    same "m1-$method" "m3-$method"
done

# ---- other numbers of ranks and stages go on with it ----
expect 0 launch 2 $train --save-dir changing --update-freq 5 --max-update 1 --pipeline 2
expect 0 launch 3 $train --save-dir changing --update-freq 5 --max-update 2
expect 0 $train --save-dir changing --update-freq 5 --max-update 3 --ranks 4 --pipeline 4
expect 0 $train --save-dir changing --update-freq 5
same alone-5 changing

# ---- ends in words ----
expect 2 launch 3 $train --save-dir bad --pipeline 2
grep -q -- '--pipeline 2: must divide the number of ranks, 3' err || fail "stages that ranks cannot share: $(cat err)"
expect 2 launch 5 $train --save-dir bad --pipeline 5
grep -q -- '--pipeline 5: must be from 1 to the number of layers, 4' err || fail "more stages than layers: $(cat err)"
expect 2 $train --save-dir bad --pipeline 2
grep -q -- '--pipeline 2: must divide the number of ranks, 1' err || fail "stages without ranks: $(cat err)"
expect 2 launch 2 $train --save-dir bad --pipeline 2 --telemetry 1
grep -q -- '--telemetry 1: ' err || fail "telemetry of stages: $(cat err)"
expect 3 launch 2 $train --save-dir wild --lr 1e30 --max-update 30 --update-freq 2 --pipeline 2
grep -q 'diverged at update .* first value that is not finite: ' err || fail "divergence is not reported: $(cat err)"
launch 2 $train --save-dir killed --update-freq 4 --pipeline 2 --max-update 1000000 --rank-timeout 3 > out 2> err &
child=$!
for try in $(seq 300); do
    [ ! -e killed/checkpoints/last ] || break
    sleep 0.1
done
[ -e killed/checkpoints/last ] || fail "no checkpoint after $try looks: $(cat err)"
for process in $(pgrep -f "save-dir killed --update-freq 4"); do
    ! tr '\0' '\n' < "/proc/$process/environ" 2> /dev/null | grep -qE '^(OMPI_COMM_WORLD_RANK|PMI_RANK)=1$' || kill -KILL "$process"
done
wait $child && fail "a pipeline that lost a stage ended well"
[ $hasty = yes ] || grep -q "rank 1 on $(hostname) is lost.*was at update" err || fail "the lost stage is not named: $(cat err)"
expect 0 "$fathom" evaluate killed/checkpoints/last data
