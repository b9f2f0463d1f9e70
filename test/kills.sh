#!/bin/sh
# kills.sh FATHOM [KILLS [DEVICE [PRECISION]]]: runs of training are killed (SIGKILL) after random times
# and continued, until so many processes have been killed; every run must end as one that nobody
# disturbed, to the bit. "make test-kills" calls it.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # a disk takes minutes to sync so often
most=${2:-1000} device=${3:-cpu} precision=${4:-fp32}
. "$(dirname "$0")/common.sh"
. "$here/picture.sh"

expect 0 "$fathom" corpus --pair en-de --out text --sentences 300 --valid 30 --test 4 --level simple
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de \
    --valid-src text/valid.en --valid-tgt text/valid.de --vocab-size 100 --out data
train="$fathom train data --encoder-layers 3 --decoder-layers 3 --d-model 32 --ffn-dim 64 --heads 4 --max-positions 128 \
    --method branchnorm --method-option steps=100 --max-tokens 600 --max-update 300 --warmup-updates 50 --lr 0.01 --dropout 0.1 \
    --log-interval 7 --telemetry 50 --save-interval-updates 6 --validate-interval-updates 9 --keep-last 2 \
    --device $device --precision $precision --threads 2 --quiet --save-dir run"
expect 0 $train
picture_of_run run > whole.txt

longest=1
[ "$device" != cuda ] || longest=6 # a GPU takes a second to be opened
kills=0 runs=0
while [ $kills -lt "$most" ]; do
    rm -rf run
    while :; do
        # from 20 milliseconds on, for up to as long as a run takes
        after=$(od -An -N2 -tu2 /dev/urandom | awk -v most=$longest '{ printf "%.3f", 0.02 + most * $1 / 65536 }')
        status=0
        $train > out 2> err &
        child=$!
        sleep "$after"
        kill -KILL $child 2> /dev/null || true
        wait $child 2> /dev/null || status=$?
        [ $status -ne 0 ] || break
        [ $status -eq 137 ] || fail "after $kills kills: exit status $status: $(cat err)"
        kills=$((kills + 1))
    done
    picture_of_run run > now.txt
    cmp -s whole.txt now.txt || fail "after $kills kills a run ended otherwise: $(diff whole.txt now.txt | head -5)"
    runs=$((runs + 1))
done
echo "$kills kills of $runs runs on $device: all ended with the same bits"
