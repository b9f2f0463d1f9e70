#!/bin/sh
# Device cuda as a user meets it: golden traces; one training on CPU and GPU side by side: fp32
# follows the CPU's loss, bf16 ends near it, a second run and a stopped one have the same bits; then
# every method, trained, evaluated and translating as on the CPU.
# Exit status 77 (skipped) where there is no GPU, 1 with FATHOM_NEED_GPU. UPDATES: how long the training is (default 200);
# TRACES=no: without the traces; DEVICE: another device than cuda, to try this script.
set -eu
fathom=$1
test=$(cd "$(dirname "$0")" && pwd)
updates=${UPDATES:-200}
device=${DEVICE:-cuda}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$tree"

fail() {
    echo "test_run_cuda: $*" >&2
    exit 1
}

trace() { # case, precision
    "$fathom" trace "$test/golden/trace/$1" --batch "$test/golden/trace/$1/batch.safetensors" \
        --out trace --device "$device" --precision "$2" 2> err
}

if ! trace postln-encdec fp32; then
    grep -q -e '--device cuda:' err || fail "$(cat err)"
    echo "no GPU: $(cat err)"
    if [ -n "${FATHOM_NEED_GPU:-}" ]; then exit 1; fi
    exit 77
fi

if [ "${TRACES:-}" = no ]; then
    :
elif python3 -c 'import torch, safetensors' 2> /dev/null; then
    python3 "$test/../scripts/compare-trace.py" --golden --fathom "$fathom" --device "$device" > traces ||
        fail "$(grep -A3 FAILED traces)"
    [ "$(grep -c '^ok' traces)" -gt 50 ] || fail "no golden traces were compared"
else
    fail "Python has no torch or safetensors for the golden traces; TRACES=no leaves them out"
fi

"$fathom" corpus --pair en-de --out text --sentences 2000 --valid 40 --test 20 > /dev/null 2>&1
"$fathom" prepare --train-src text/train.en --train-tgt text/train.de \
    --valid-src text/valid.en --valid-tgt text/valid.de --vocab-size 400 --out data > /dev/null 2>&1
common="--encoder-layers 3 --decoder-layers 3 --d-model 64 --ffn-dim 128 --heads 2 --method branchnorm \
    --method-option steps=100 --max-tokens 600 --max-update $updates --warmup-updates 40 --lr 0.002 \
    --log-interval 10 --dropout 0.1 --attention-dropout 0.1 --update-freq 2 --quiet --save-interval-updates 50"
train() { # folder, options...
    folder=$1
    shift
    # shellcheck disable=SC2086 # common is words
    "$fathom" train data $common --save-dir "$folder" "$@" > /dev/null 2> err || fail "$folder: $(cat err)"
}

losses() { # folder: update and loss of every line of its log
    sed -n 's/^{"type":"train".*"update":\([0-9]*\).*"loss":\([0-9.e+-]*\).*/\1 \2/p' "$1/log.jsonl"
}

# near A B TOLERANCE [last]: no loss of B is farther from A's, relatively
near() {
    losses "$1" > a
    losses "$2" > b
    [ -s a ] || fail "$1: its log has no losses"
    [ "$(wc -l < a)" = "$(wc -l < b)" ] || fail "$2: its log has other lines than that of $1"
    paste -d ' ' a b | awk -v tolerance="$3" -v last="${4:-}" '
        { off = ($4 - $2) / $2; if (off < 0) off = -off; if (off > worst) worst = off; end = off }
        END { if (last) worst = end; printf "%g\n", worst; exit worst > tolerance }' > worst ||
        fail "the losses of $2 are off those of $1 by $(cat worst), more than $3"
    echo "$2 against $1: $(cat worst)"
}

last=checkpoints/last/model.safetensors
train cpu --device cpu --precision fp32
train fp32 --device "$device" --precision fp32
train bf16 --device "$device" --precision bf16
near cpu fp32 1e-3
near cpu bf16 2e-2 last
for precision in fp32 bf16; do
    train again --device "$device" --precision $precision
    cmp -s $precision/$last again/$last || fail "a second run in $precision has other bits"
    train cut --device "$device" --precision $precision --max-update $((updates / 3))
    train cut --device "$device" --precision $precision
    cmp -s $precision/$last cut/$last || fail "a run in $precision that was stopped has other bits"
    rm -rf again cut
done

# Every method: 12 updates, the loss on held-out sentences, and what the model says about them.
few="--encoder-layers 2 --decoder-layers 2 --d-model 32 --ffn-dim 64 --heads 2 --max-tokens 600 --max-update 12
    --warmup-updates 4 --lr 0.002 --log-interval 1 --dropout 0.1 --quiet --precision fp32"
for method in $("$fathom" methods | awk 'NR > 1 { print $1 }'); do
    for place in cpu "$device"; do
        run=$method-$place model=$method-$place/checkpoints/last
        # shellcheck disable=SC2086
        "$fathom" train data --save-dir "$run" --method "$method" $few --device "$place" > /dev/null 2> err ||
            fail "$run: $(cat err)"
        "$fathom" evaluate "$model" data --device "$place" --precision fp32 > "$run/loss" 2> err ||
            fail "$run: $(cat err)"
        "$fathom" generate "$model" --input text/valid.en --device "$place" --precision fp32 --beam 2 --max-len-b 12 \
            --output "$run/said" 2> err || fail "$run: $(cat err)"
    done
    near "$method-cpu" "$method-$device" 1e-3
    cat "$method-cpu/loss" "$method-$device/loss" | sed 's/.*nll \([0-9.]*\).*/\1/' |
        awk 'NR == 1 { a = $1 } NR == 2 { off = ($1 - a) / a } END { exit NR != 2 || off > 1e-3 || off < -1e-3 }' ||
        fail "$method: $(cat "$method-cpu/loss") on the CPU, $(cat "$method-$device/loss") on $device"
    # weights that differ in the last digits may lead to another word now and then
    same=$(paste -d '|' "$method-cpu/said" "$method-$device/said" | awk -F '|' '$1 == $2' | wc -l)
    [ "$same" -ge 38 ] || fail "$method: $same of 40 translations are the same on both devices"
done
