#!/bin/sh
# fathom preflight on configurations that are fine and on ones that are not, and what bad input gets.
. "$(dirname "$0")/common.sh"

# verdict TEXT COMMAND...: exit status 0, and the first line has the verdict
verdict() {
    want=$1
    shift
    "$@" > out 2> err || fail "$*: exit status $?: $(cat err)"
    [ "$(head -1 out)" = "verdict: $want" ] || fail "$*: $(head -2 out)"
}

# refuses TEXT COMMAND...: exit status 2 and one line of error with the text
refuses() {
    text=$1
    shift
    status=0
    "$@" > out 2> err || status=$?
    [ $status -eq 2 ] || fail "$*: exit status $status, not 2"
    grep '^fathom: ' err | grep -qF -- "$text" || fail "$*: the error does not say \"$text\": $(cat err)"
}

"$fathom" corpus --pair en-de --out text --sentences 1000 --valid 40 --test 20 --level simple > /dev/null 2>&1
"$fathom" prepare --train-src text/train.en --train-tgt text/train.de \
    --valid-src text/valid.en --valid-tgt text/valid.de --vocab-size 200 --out data > /dev/null 2>&1
model="--d-model 32 --ffn-dim 64 --heads 2 --max-positions 64 --max-tokens 300 --device cpu --threads 2"
deep="--encoder-layers 12 --decoder-layers 12"

# ---- verdicts ----
verdict fine "$fathom" preflight data $model --method preln --lr 0.003 --warmup-updates 40
for text in 'parameters' 'memory' 'time per update' 'time per epoch' 'gradient norm at the start' 'encoder layers' \
    'encoder cosine' 'first 10 updates' '100000 updates, here' 'output moved' 'peak rate'; do
    grep -q "$text" out || fail "the output lacks: $text"
done
verdict 'will fail' "$fathom" preflight data $model --method postln --lr 1e10 --warmup-updates 0
if ! sanitized; then # other numbers by the same code
    verdict fine "$fathom" preflight data $model --method deepnorm --lr 0.001 --warmup-updates 40
    verdict 'will fail' "$fathom" preflight data $model $deep --method postln --lr 0.03 --warmup-updates 0 \
        --lr-scheduler inverse_sqrt_nowarmup
    # a long warm-up saves what passes gradients down at first, and nothing else
    verdict 'at risk' "$fathom" preflight data $model $deep --method deepnorm --lr 0.03 --warmup-updates 2000
    grep -q 'the 2000 updates of yours' out || fail "a long warm-up is not the reason"
    verdict 'will fail' "$fathom" preflight data $model $deep --method deepnorm --lr 0.03 --warmup-updates 50
    verdict 'will fail' "$fathom" preflight data $model --method postln --encoder-layers 36 --decoder-layers 36 \
        --lr 0.03 --warmup-updates 2000
fi
verdict 'will fail' "$fathom" preflight data $model --memory-budget 10K
grep -q 'memory: ' out || fail "too small a budget is not the reason"

# ---- what train warns of is a risk, in the same words ----
ramp="--method branchnorm --encoder-layers 2 --decoder-layers 2 --lr 0.003 --warmup-updates 40"
verdict 'at risk' "$fathom" preflight data $model $ramp --method-option steps=400
sed -n '2s/^ *//p' out >advice
"$fathom" train data $model $ramp --method-option steps=400 --max-update 1 --save-dir ramp >/dev/null 2>err || fail "$(cat err)"
grep -qF "$(cat advice)" err || fail "train does not say: $(cat advice)"
rm -r ramp
verdict fine "$fathom" preflight data $model $ramp --method-option steps=24
verdict fine "$fathom" preflight data $model $ramp --method-option steps=400 --method-option branch_lr=alpha --no-quick

# ---- batches are announced, as many as there are at a time: --update-freq takes no memory ----
for n in 1 40; do
    verdict fine "$fathom" preflight data $model --method postln --encoder-layers 1 --decoder-layers 1 --update-freq $n
    grep '^batches ' out > batches-$n || fail "no batches: $(cat out)"
    expect 0 "$fathom" train data $model --method postln --encoder-layers 1 --decoder-layers 1 --update-freq $n --max-update 1 --save-dir run
    sed -n 's/.*"batch_bytes":\([0-9]*\).*/\1/p' run/log.jsonl > bytes-$n
    [ "$(cat bytes-$n)" -gt 0 ] || fail "no bytes of batches: $(cat run/log.jsonl)"
    rm -r run
done
cmp batches-1 batches-40 || fail "batches take $(cat batches-1), of 40 $(cat batches-40)"
cmp bytes-1 bytes-40 || fail "batches take $(cat bytes-1) bytes, of 40 $(cat bytes-40)"
[ ! -e run ] || fail "preflight made a run folder"

# ---- as JSON, and from a run's configuration ----
"$fathom" train data $model --method preln --encoder-layers 2 --decoder-layers 2 --max-update 2 --save-dir short \
    --quiet > /dev/null 2>&1
"$fathom" preflight data --config short/config.yaml --json > out 2> err || fail "a run's config.yaml: $(cat err)"
for key in verdict reason parameters memory seconds_per_update seconds_per_epoch encoder_grad_norm decoder_grad_norm \
    carried encoder_cosine scheduled peak; do
    grep -q "\"$key\":" out || fail "the JSON lacks $key"
done
[ "$(tr ',' '\n' < out | grep -c '"encoder_grad_norm"')" -eq 1 ] || fail "no gradient norms"
verdict fine "$fathom" preflight data $model --method admin --encoder-layers 2 --decoder-layers 2 --lr 0.003 --update-freq 2

# ---- without a data set: made-up sentences, no epoch ----
verdict fine "$fathom" preflight $model --method preln --encoder-layers 2 --decoder-layers 2 --lr 0.003 --vocab 100
! grep -q 'time per epoch' out || fail "made-up sentences have an epoch"
verdict fine "$fathom" preflight $model --arch dec --method preln --decoder-layers 2 --lr 0.003 --vocab 100 \
    --tokens-per-sample 32
! grep -q 'encoder' out || fail "a language model has an encoder"

# ---- several ranks: every number of stages, memory that falls with the ranks, and one of them recommended ----
plans="$fathom preflight $model --method preln --encoder-layers 2 --decoder-layers 2 --lr 0.003 --vocab 100 --update-freq 8"
$plans --ranks 4 > out 2> err || fail "four ranks: $(cat err)"
[ "$(grep -cE '^ +(1|2|4) +8 +[0-9.]+ MiB' out)" -eq 3 ] || fail "not a line for 1, 2 and 4 stages: $(cat out)"
grep -qE '^  recommended: --ranks 4 --update-freq 8( --pipeline [24])?$' out || fail "nothing is recommended: $(cat out)"
$plans --ranks 4 --json > out 2> err || fail "four ranks as JSON: $(cat err)"
[ "$(grep -o '"recommended":true' out | wc -l)" -eq 1 ] || fail "not one plan is recommended: $(cat out)"
$plans --ranks 2 --json > fewer 2> err || fail "two ranks: $(cat err)"
bytes() { sed 's/.*"stages":1,"batches":8,"bytes":\([0-9]*\).*/\1/' "$1"; }
[ "$(bytes out)" -lt "$(bytes fewer)" ] || fail "$(bytes out) bytes with 4 ranks, $(bytes fewer) with 2"

# ---- bad input ----
refuses '--pipeline 2: preflight looks at every number of stages' "$fathom" preflight data $model --ranks 2 --pipeline 2
refuses 'nothing-here' "$fathom" preflight nothing-here
refuses 'data' "$fathom" preflight data data
refuses '--vocab 100: a data set has its own vocabulary' "$fathom" preflight data --vocab 100
refuses 'heads 5' "$fathom" preflight data --d-model 32 --heads 5
refuses 'did you mean --warmup-updates?' "$fathom" preflight data --warmup-update 4
refuses '--restore-file' "$fathom" preflight data $model --restore-file short/checkpoints/last
refuses 'nothing.yaml' "$fathom" preflight data --config nothing.yaml
refuses '--arch enc' "$fathom" preflight data $model --arch enc
