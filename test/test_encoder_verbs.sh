#!/bin/sh
# What is not train and predict takes encoders too: preflight, telemetry, probe, report, watch, fold, average, sweep,
# init, trace.
. "$(dirname "$0")/common.sh"

i=0
while [ $i -lt 40 ]; do
    printf '%s\tthe number %d of this text is a good and happy one\t%d\n' yes $i $((i % 7))
    printf '%s\tthe number %d of that text is a bad and sorry one\t%d\n' no $i $((i % 5))
    i=$((i + 1))
done >table
cut -f 2 table >text
expect 0 "$fathom" prepare --train-tsv table --valid-tsv table --columns text=2,label=1 --vocab-size 80 --mask --out labels
expect 0 "$fathom" prepare --train-tsv table --valid-tsv table --columns text=2,label=3 --labels number \
    --tokenizer labels/tokenizer.model --out values
expect 0 "$fathom" prepare --train-text text --valid-text text --tokenizer labels/tokenizer.model --out plain
expect 0 "$fathom" corpus --images shapes --sentences 24 --valid 8 --test 1 --out shapes
expect 0 "$fathom" prepare --train-images shapes/train.tsv --valid-images shapes/valid.tsv --label-maps --patch 8 \
    --visual-tokens 6 --out places
awk -F '\t' '{ print "shapes/" $1 "\t" NR % 2 }' shapes/train.tsv >classes.tsv
expect 0 "$fathom" prepare --train-images classes.tsv --valid-images classes.tsv --patch 8 --out classes

model="--arch enc --method deepnorm --encoder-layers 2 --d-model 16 --ffn-dim 32 --heads 2"
steps="--warmup-updates 2 --lr 0.01 --max-tokens 256 --max-update 6 --validate-interval-updates 3 --threads 1
    --save-interval-updates 3"
patches="--head masked-token"
for kind in labels values plain classes places patches; do
    data=$kind
    extra=
    [ $kind = patches ] && data=places && extra=$patches
    [ $kind = plain ] && extra="--tokens-per-sample 32"
    expect 0 "$fathom" train $data --save-dir run-$kind $model $steps $extra --quiet --telemetry 2
    grep -q '"type":"layers","update":2,"stack":"encoder"' run-$kind/log.jsonl || fail "$kind: no telemetry"

    # ---- preflight: the same options, no run
    expect 0 "$fathom" preflight $data $model $steps $extra --json
    grep -q '"verdict": *"' out && grep -q '"encoder_grad_norm": *\[ *[0-9]' out || fail "$kind: no verdict: $(cat out)"

    # ---- probe: of the data set, what training sees of it; the loss there is that of evaluate
    for what in gradnorm lninput similarity sparsity surface update trajectory; do
        grid=
        [ $what = surface ] || [ $what = trajectory ] && grid="--grid 3"
        expect 0 "$fathom" probe $what run-$kind --data $data --sentences 8 $grid --out $kind-$what.csv
        [ "$(wc -l <$kind-$what.csv)" -ge 2 ] || fail "$kind: probe $what has no rows"
        ! grep -q nan $kind-$what.csv || fail "$kind: probe $what: $(cat $kind-$what.csv)"
    done
    mkdir twice
    expect 0 "$fathom" probe gradnorm run-$kind --data $data --sentences 8 --out twice
    cmp twice/gradnorm.csv $kind-gradnorm.csv || fail "$kind: drawn again, the numbers are others"
    expect 0 "$fathom" trace run-$kind/checkpoints/last --batch twice/probe-set-valid-8-1.safetensors --out T
    rm -r twice

    # ---- average, fold
    expect 0 "$fathom" average run-$kind --last 2 --out mean-$kind
    expect 0 "$fathom" fold mean-$kind --out folded-$kind
    grep -q '"method": *"postln"' folded-$kind/config.json || fail "$kind: not folded to Post-LN"
done
places_loss() { grep ',0,0,' places-surface.csv | sed 's/.*,//'; }
expect 0 "$fathom" evaluate run-places/checkpoints/last places --max-tokens 256
grep -q "nll $(printf %.4f "$(places_loss)")" out || fail "probe sees other pictures or classes than evaluate: $(cat out)"
expect 2 "$fathom" probe gradnorm run-labels --data plain --sentences 8 --out x.csv
says_labels=$(cat err)
case $says_labels in *classes*) ;; *) fail "not said what the data lack: $says_labels" ;; esac

# ---- report and watch: the runs of all heads on one page
expect 0 "$fathom" report run-labels run-values run-plain run-classes run-places run-patches --out runs.html
for kind in labels values plain classes places patches; do
    grep -q "run-$kind" runs.html || fail "report does not name run-$kind"
done
expect 0 "$fathom" watch run-labels run-places --terminal
grep -q "run-places" out || fail "watch does not show an encoder's run: $(cat out)"

# ---- sweep: a grid of encoders
cat >grid.yaml <<END
data: labels
arch: enc
method: [deepnorm, preln]
d-model: 16
ffn-dim: 32
heads: 2
encoder-layers: 2
max-tokens: 256
max-update: 4
warmup-updates: 2
lr: 0.01
threads: 1
device: cpu
freeze: [encoder.layers.0]
validate-interval-updates: 4
END
expect 0 "$fathom" sweep grid.yaml --out swept --quiet
grep -q "^deepnorm,1,1,0," swept/table.csv && grep -q "^preln,1,1,0," swept/table.csv ||
    fail "not two runs of encoders in the table: $(cat swept/table.csv)"
echo "test_encoder_verbs: right"
