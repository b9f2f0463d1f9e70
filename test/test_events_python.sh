#!/bin/sh
# TensorBoard's own reader finds in the events of a run what its log says. FATHOM_PYTHON: the Python that has it;
# without it the test is skipped.
. "$(dirname "$0")/common.sh"
python=${FATHOM_PYTHON:-python3}
"$python" -c 'import tensorboard' 2>/dev/null || exit 77
"$python" "$here/tools/events.py" --golden "$here/golden/events" 2>err || fail "the golden file: $(tail -n 3 err)"
expect 0 "$fathom" corpus --pair en-de --out text --level simple --sentences 500
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de --valid-src text/valid.en \
    --valid-tgt text/valid.de --vocab-size 200 --out data
train="$fathom train data --encoder-layers 2 --decoder-layers 2 --d-model 16 --ffn-dim 16 --heads 2 --max-tokens 500
    --warmup-updates 5 --lr 1e-3 --threads 1 --device cpu --quiet --log-interval 2 --telemetry 5
    --validate-interval-updates 5 --save-interval-updates 5 --save-dir run --log-format tensorboard"
expect 0 $train --max-update 10
expect 0 $train --max-update 15
"$python" "$here/tools/events.py" run 2>err || fail "$(tail -n 3 err)"
