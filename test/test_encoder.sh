#!/bin/sh
# Encoders are trained: on labels, on masked text, on pictures and on masked pictures; a run that is stopped and
# continued ends with the same bits, masks and changed pictures included; data that cannot feed a head are named.
. "$(dirname "$0")/common.sh"

says() {
    grep -q -- "$1" err || {
        cat err >&2
        fail "not said: $1"
    }
}

i=0
while [ $i -lt 150 ]; do
    printf '%s\tthe number %d of this text is a good and happy one\t%d\n' yes $i $((i % 7))
    printf '%s\tthe number %d of that text is a bad and sorry one\t%d\n' no $i $((i % 5))
    i=$((i + 1))
done >table
cut -f 2 table >text
record() { # label, byte
    printf "\\$(printf %03o "$1")"
    head -c 3072 /dev/zero | tr '\0' "\\$(printf %03o "$2")"
}
i=0
while [ $i -lt 24 ]; do
    record $((i % 2)) $((i % 2 * 100 + i * 3))
    i=$((i + 1))
done >pictures.bin
expect 0 "$fathom" prepare --train-tsv table --valid-tsv table --columns text=2,label=1 --vocab-size 80 --mask --out labels
expect 0 "$fathom" prepare --train-tsv table --valid-tsv table --columns text=2,label=3 --labels number \
    --tokenizer labels/tokenizer.model --out values
expect 0 "$fathom" prepare --train-text text --valid-text text --tokenizer labels/tokenizer.model --out plain
expect 0 "$fathom" prepare --train-text text --vocab-size 80 --out unmasked
expect 0 "$fathom" prepare --train-images pictures.bin --valid-images pictures.bin --patch 8 --visual-tokens 6 --out images

small="--arch enc --method deepnorm --encoder-layers 2 --d-model 16 --ffn-dim 32 --heads 2 --threads 1 --quiet"
steps="--warmup-updates 4 --lr 0.01 --max-tokens 256 --validate-interval-updates 10 --save-interval-updates 10"

# trains DATA NAME OPTIONS...: 20 updates at once, and 10 and then 10
trains() {
    data=$1
    name=$2
    shift 2
    expect 0 "$fathom" train $data --save-dir $name $small $steps --max-update 20 "$@"
    expect 0 "$fathom" train $data --save-dir $name-2 $small $steps --max-update 10 "$@"
    expect 0 "$fathom" train $data --save-dir $name-2 $small $steps --max-update 20 "$@"
    cmp $name/checkpoints/last/model.safetensors $name-2/checkpoints/last/model.safetensors ||
        fail "$name: stopped and continued, it ends with other weights"
}
nll() { # of the validation at an update
    grep "\"type\":\"valid\",\"update\":$2," "$1/log.jsonl" | sed 's/.*"nll_loss":\([^,]*\),.*/\1/'
}
less() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 < b + 0) }'
}

trains labels class
less "$(nll class 20)" 0.3 || fail "two classes that differ in every word are not learned: $(nll class 20)"
trains values regression
trains plain masked --tokens-per-sample 32
less "$(nll masked 20)" "$(nll masked 10)" || fail "a masked model learns nothing"
trains plain words --tokens-per-sample 32 --mask-unit word
trains images picture --augment-crop 4 --augment-flip --augment-erase 0.5
trains images patches --head masked-token --pool mean

# another seed masks other tokens
expect 0 "$fathom" train plain --save-dir other $small $steps --max-update 1 --seed 2 --tokens-per-sample 32
[ "$(nll other 1)" != "$(nll masked 1)" ] || fail "the seed changes no mask"

refused() { # text, options...
    text=$1
    shift
    expect 2 "$fathom" train --save-dir none --arch enc "$@"
    says "$text"
}
refused "unmasked has no labels" unmasked --head class
refused "values has numbers as labels; use --head regression" values --head class
refused "labels has classes; use --head class" labels --head regression
refused "has no piece <mask>; fathom prepare --mask" unmasked
refused "cannot train it; use masked-token" labels --head token-class
refused "pictures have 17 rows" images --max-positions 16
refused "mask-keep 0.6 and --mask-random 0.6 are more than 1" plain --mask-keep 0.6 --mask-random 0.6
expect 2 "$fathom" train images --save-dir none
says "images: has pictures; use --arch enc"
echo "test_encoder: right"
