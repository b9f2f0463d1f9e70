#!/bin/sh
# A data set whose content is not what was written is never trained with, and one without a hash still is.
. "$(dirname "$0")/common.sh"

says() {
    grep -q -- "$2" "$1" || fail "not found: $2: $(cat "$1")"
}

i=0
while [ $i -lt 400 ]; do
    echo "the cat number $i sees a big blue house under tree $((i * 7 % 31))"
    i=$((i + 1))
done >text
expect 0 "$fathom" prepare --train-text text --vocab-size 60 --out data
train="$fathom train data --arch dec --decoder-layers 1 --d-model 8 --ffn-dim 8 --heads 1 --tokens-per-sample 16 \
    --max-tokens 64 --warmup-updates 2 --threads 1 --device cpu --save-interval-updates 10"
expect 0 $train --save-dir run --max-update 10

# flip OFFSET FILE: its lowest bit, so that an id stays an id
flip() {
    byte=$(od -An -tu1 -j "$1" -N 1 "$2" | tr -d ' ')
    printf "\\$(printf %o $((byte ^ 1)))" | dd of="$2" bs=1 seek="$1" conv=notrunc 2>/dev/null
}

# ---- one bit ----
cp data/train.fds sound.fds
size=$(wc -c <sound.fds)
at=$((size - 1000))
flip $at data/train.fds
expect 2 $train --save-dir new --max-update 10
says err 'data/train.fds: damaged data set: bytes [0-9]* to [0-9]* are not what was written'
from=$(sed -n 's/.*bytes \([0-9]*\) to.*/\1/p' err)
to=$(sed -n 's/.*bytes [0-9]* to \([0-9]*\) .*/\1/p' err)
[ "$from" -le $at ] && [ $at -le "$to" ] || fail "byte $at is not in $from to $to"
[ $((to - from)) -lt $((size / 32)) ] || fail "the place is $from to $to of $size bytes"
[ ! -e new/checkpoints/last ] || fail "a damaged data set left a checkpoint"
expect 2 "$fathom" data check data
says err "bytes $from to $to"
expect 2 $train --save-dir run --max-update 20
cp sound.fds data/train.fds
expect 0 $train --save-dir run --max-update 20

# ---- another text with the same counts ----
sed 's/big blue/blue big/' text >other
expect 0 "$fathom" prepare --train-text other --tokenizer data/tokenizer.model --out same
[ "$(wc -c <same/train.fds)" -eq "$size" ] || fail "the other text has another size: the test needs the same"
cp same/train.fds data/train.fds
expect 2 $train --save-dir run --max-update 30
says err 'data/train.fds: is not the file that fathom prepare wrote here'
mv data was && mv same data
expect 2 $train --save-dir run --max-update 30
says err 'is not the data set that run was begun with'

# ---- a data set without a hash ----
rm -r data && mv was data && cp sound.fds data/train.fds
sed -i '/"hash": ".*",$/d' data/dataset.json
[ "$(grep -c '"hash"' data/dataset.json)" -eq 1 ] || fail "the hash of the split is still there"
expect 0 $train --save-dir old --max-update 10
