#!/bin/sh
# Encoders are trained: on labels, on masked text, on pictures and on masked pictures; a run that is stopped and
# continued ends with the same bits, masks and changed pictures included; data that cannot feed a head are named.
. "$(dirname "$0")/common.sh"

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
trains images mixed --mixup 0.4 --augment-flip
cmp -s mixed/checkpoints/last/model.safetensors picture/checkpoints/last/model.safetensors && fail "mixup changes nothing"
expect 0 "$fathom" train images --save-dir mixed-ahead $small $steps --max-update 20 --mixup 0.4 --augment-flip \
    --update-freq 1 --validate-interval-updates 5
cmp mixed/checkpoints/last/model.safetensors mixed-ahead/checkpoints/last/model.safetensors ||
    fail "mixup depends on when validation is"

# some parameters learn more slowly or not at all: inside of the backward, and after it
slow="--freeze encoder.layers.0 --freeze embed* --layer-lr-decay 0.8"
trains labels slow $slow
trains labels slow-clipped $slow --clip-norm 0.1
trains labels slow-watched $slow --telemetry 5
cmp slow/checkpoints/last/model.safetensors slow-watched/checkpoints/last/model.safetensors ||
    fail "telemetry changes what is trained beside frozen layers"
expect 2 "$fathom" train labels --save-dir slow $small $steps --max-update 30
said "was begun with --layer-lr-decay 0.8"
expect 2 "$fathom" train labels --save-dir none $small $steps --freeze encoder.layer.0
said "--freeze encoder.layer.0: no parameter of this model is called so"
expect 2 "$fathom" train labels --save-dir none $small $steps --freeze '*'
said "nothing is left to train"
expect 0 "$fathom" train labels --save-dir told-slow ${small% --quiet} $steps --max-update 1 $slow
said "frozen: 17 of .* parameters, .* M numbers; the rate falls by 0.8 from layer to layer"
expect 0 "$fathom" preflight labels ${small% --quiet} --max-tokens 256 --freeze encoder.layers.0
grep -q "encoder layers *1: frozen, 2: [0-9]" out || fail "preflight does not know of frozen layers"

# another seed masks other tokens
expect 0 "$fathom" train plain --save-dir other $small $steps --max-update 1 --seed 2 --tokens-per-sample 32
[ "$(nll other 1)" != "$(nll masked 1)" ] || fail "the seed changes no mask"

# what is learned is said of new text and pictures
expect 0 "$fathom" predict class --input table --columns text=2
cut -f 1 table >said
cmp out said || fail "the classes of the training text are not said again"
expect 0 "$fathom" predict class --input text --format tsv
awk -F '\t' '{ s = $2 + $3; if (NF != 3 || s < 0.999 || s > 1.001) exit 1 }' out || fail "no probabilities"
expect 0 "$fathom" predict regression --input text
[ "$(wc -l <out)" -eq 300 ] || fail "not a value for each line"
expect 0 "$fathom" predict picture --images pictures.bin --format json
[ "$(grep -c '"probabilities":{"0":' out)" -eq 24 ] || fail "not an object for each picture"
expect 2 "$fathom" predict masked --input text
said "predict is for encoders with head class, regression or token-class"
expect 2 "$fathom" predict picture --input text
said "reads pictures; use --images"

# the loss on a data set is that of the run's validation
expect 0 "$fathom" evaluate class/checkpoints/last labels --max-tokens 256
grep -q "nll $(printf %.4f "$(nll class 20)")" out || fail "evaluate and train differ"
expect 2 "$fathom" evaluate picture labels
said "has text, the model's front is image"

# a model of another task gives what fits
expect 0 "$fathom" train labels --save-dir tuned $small $steps --max-update 2 --init-from masked --head class
expect 0 "$fathom" train labels --save-dir told --arch enc --method deepnorm --encoder-layers 2 --d-model 16 \
    --ffn-dim 32 --heads 2 $steps --max-update 1 --init-from masked --head class
said "parameters taken over; fresh: .*head.out.weight"
said "not used: .*head.bias"
expect 0 "$fathom" train labels --save-dir told-method --arch enc --method preln --encoder-layers 2 --d-model 16 \
    --ffn-dim 32 --heads 2 $steps --max-update 1 --init-from masked --head class
said "was trained with --method deepnorm and goes on with preln"
expect 0 "$fathom" prepare --train-tsv table --columns text=2,label=1 --vocab-size 80 --mask --user-symbols QQ --out others
expect 0 "$fathom" train others --save-dir told-words ${small% --quiet} $steps --max-update 1 --init-from masked
said "was cut into tokens by another tokenizer than that of masked"
said "parameters taken over; fresh: embed_tokens.weight, "
expect 0 "$fathom" preflight labels --arch enc --encoder-layers 2 --d-model 16 --ffn-dim 32 --heads 2 --max-tokens 256
grep -q "^verdict: " out || fail "no verdict on an encoder"

refused() { # text, options...
    text=$1
    shift
    expect 2 "$fathom" train --save-dir none --arch enc "$@"
    said "$text"
}
refused "unmasked has no labels" unmasked --head class
refused "values has numbers as labels; use --head regression" values --head class
refused "labels has classes; use --head class" labels --head regression
refused "has no piece <mask>; fathom prepare --mask" unmasked
refused "has no classes of words or pixels; fathom prepare --train-tagged or --label-maps" labels --head token-class
refused "is for classes of pictures" labels --mixup 0.2
refused "is for classes of pictures" images --head masked-token --mixup 0.2
refused "pictures have 17 rows" images --max-positions 16
refused "mask-keep 0.6 and --mask-random 0.6 are more than 1" plain --mask-keep 0.6 --mask-random 0.6
expect 2 "$fathom" train images --save-dir none
said "images: has pictures; use --arch enc"
echo "test_encoder: right"
