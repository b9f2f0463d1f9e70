#!/bin/sh
# Telemetry as a user meets it: what is in the log, that the run stays the same, and the report of a run that
# failed.
. "$(dirname "$0")/common.sh"

expect 0 "$fathom" corpus --pair en-de --out text --sentences 600 --valid 40 --test 20 --level simple
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de \
    --valid-src text/valid.en --valid-tgt text/valid.de --vocab-size 200 --out data
model="--encoder-layers 3 --decoder-layers 2 --d-model 16 --ffn-dim 32 --heads 2 --max-positions 64"
train="$fathom train data $model --max-tokens 700 --max-update 15 --warmup-updates 5 --lr 0.01 --dropout 0.1 \
    --method branchnorm --update-freq 2 --threads 2 --device cpu"
last=checkpoints/last/model.safetensors

# ---- the same weights, whatever is measured ----
# a budget that makes the run recompute layers, but lets it run, measured or not
deep="$train --encoder-layers 8 --decoder-layers 8"
tight= low=1024 high=65536 # KiB: too little, enough for all
while [ -z "$tight" ] && [ $((high - low)) -gt 16 ]; do
    middle=$(((low + high) / 2))
    trial="$deep --max-update 1 --memory-budget ${middle}K"
    if ! $trial --telemetry 1 --save-dir trial$middle-1 > out 2> err; then
        low=$middle
    elif $trial --save-dir trial$middle-0 > out 2> err && grep -q 'recomputing' err; then
        tight=${middle}K
    else
        high=$middle
    fi
done
[ -n "$tight" ] || fail "no budget makes a run recompute layers"
updates=8
if sanitized; then updates=2; fi # the others go the same way through memory
for budget in 1G $tight; do
    for k in 0 1 7; do
        expect 0 $deep --max-update $updates --memory-budget $budget --telemetry $k --save-dir "$budget-$k"
        cmp -s "1G-0/$last" "$budget-$k/$last" || fail "budget $budget: --telemetry $k changes the weights"
    done
done

# ---- the lines ----
expect 0 $train --telemetry 7 --save-dir lines
log=lines/log.jsonl
! grep -q '"type":"layers"' 1G-0/log.jsonl || fail "--telemetry 0 writes layers lines"
updates=$(sed -n 's/.*"type":"layers","update":\([0-9]*\),.*/\1/p' $log | sort -nu | tr '\n' ' ')
[ "$updates" = "1 7 14 " ] || fail "--telemetry 7 measures updates $updates"
for name in grad_norm output_grad_norm param_norm update_ratio ln_input_norm branch_ratio ffn_nonzero attention_entropy \
    cosine; do
    for stack in encoder decoder; do
        [ "$(grep -c "\"stack\":\"$stack\",\"name\":\"$name\",\"values\":\[[^]]*,[^]]*,[^]]*,[^]]*,[^]]*,[^]]*\]" $log)" -eq 3 ] ||
            fail "$stack has not six values of $name at three updates"
    done
done
[ "$(grep -c '"name":"position_cosine","values":\[[-0-9.e]*\]' $log)" -eq 3 ] || fail "no cosine between positions"
grep -q '"stack":"decoder","name":"ffn_nonzero","values":\[null,null,[0-9.]*,null,null,[0-9.]*\]' $log ||
    fail "ffn_nonzero is not null where there is no feed-forward"

# ---- a run that fails: its report ----
expect 3 $train --method postln --lr 1e10 --warmup-updates 0 --telemetry 1 --save-dir wild
for text in '"kind": "nonfinite"' '"rule": "a: not finite"' '"first_nonfinite": {' '"text": "self-attention of encoder layer 1"' \
    '"first_fault": {' '"rule": "rate"' '"rule": "warm-up"' '"update_ratio": \['; do
    tr '\n' ' ' < wild/diverged.json | tr -s ' ' | grep -q "$text" || fail "diverged.json lacks $text"
done
grep -q 'wild/diverged.json' err || fail "the message does not name the report: $(cat err)"
if command -v gnuplot > /dev/null; then
    [ -s wild/diverged.svg ] && [ -s wild/diverged.png ] || fail "the report has no figure"
fi
expect 3 $train --method preln --lr 1e-9 --judge-after 10 --telemetry 5 --save-dir idle
grep -q '"kind": "unlearned"' idle/diverged.json || fail "a run that learns nothing is not reported"
grep -q 'too small to learn' idle/diverged.json || fail "the advice does not follow from tiny updates"
cp idle/diverged.json report
expect 3 $train --method preln --lr 1e-9 --judge-after 10 --telemetry 5 --save-dir idle
cmp -s report idle/diverged.json || fail "the same command again spoils the report of a failed run"
expect 3 $train --method preln --lr 1e-9 --judge-after 10 --save-dir blind
grep -q -- '--telemetry 10' blind/diverged.json || fail "without rows the report does not ask for them"
[ ! -e blind/diverged.svg ] || fail "a figure without rows"

# ---- other models, other devices ----
expect 0 "$fathom" prepare --train-text text/train.en --valid-text text/valid.en --vocab-size 200 --out words
expect 0 "$fathom" train words --arch dec $model --tokens-per-sample 32 --max-tokens 128 --max-update 2 --telemetry 1 --save-dir lm
grep -q '"stack":"decoder","name":"cosine"' lm/log.jsonl || fail "a language model is not measured"
! grep -q 'position_cosine' lm/log.jsonl || fail "a language model has no encoder"
expect 0 $train --device ref --max-update 1 --telemetry 1 --save-dir oracle
grep -q '"name":"attention_entropy"' oracle/log.jsonl || fail "device ref does not measure"
expect 0 "$fathom" bench train $model --vocab 100 --max-tokens 64 --updates 2 --telemetry --json
grep -q '"ms_per_watched_update": [0-9]' out || fail "bench does not time measured updates"
