#!/bin/sh
# Pictures to data sets: what is read, and the file and line of what cannot be.
. "$(dirname "$0")/common.sh"

# records of CIFAR: a label byte and 3,072 bytes
record() { # label, byte
    printf "\\$(printf %03o "$1")"
    head -c 3072 /dev/zero | tr '\0' "\\$(printf %03o "$2")"
}
i=0
while [ $i -lt 12 ]; do
    record $((i % 3)) $((i * 20))
    i=$((i + 1))
done >train.bin
head -c $((3073 * 3)) train.bin >valid.bin

expect 0 "$fathom" prepare --train-images train.bin --valid-images valid.bin --patch 8 --visual-tokens 12 --out set
expect 0 "$fathom" data check set
expect 0 "$fathom" data info set
grep -q 'set: pictures' out || fail "the set is not called pictures"
grep -q '32 x 32 pixels, 3 channels, 16 patches of 8 x 8, 12 visual tokens' out || fail "the facts are missing"
grep -q 'labels: 3 classes: 0 1 2' out || fail "the classes are not 0 1 2"
grep -q 'train: 12 pictures' out || fail "not every record is a picture"
expect 0 "$fathom" data info set --json
tr -d ' \n' <set/image.json | grep -q '"mean":\[110.0,110.0,110.0\]' || fail "the mean is not 110"

# the same pictures give the same bytes
expect 0 "$fathom" prepare --train-images train.bin --valid-images valid.bin --patch 8 --visual-tokens 12 --out again
for file in train.images train.labels codebook; do cmp set/$file again/$file; done

refused() { # text, options...
    text=$1
    shift
    expect 2 "$fathom" prepare --out none "$@"
    said "$text"
    [ ! -e none ] || fail "a folder is left behind by: $*"
}
head -c 5000 train.bin >cut.bin
refused "cut.bin: 5000 bytes; a CIFAR file has records of 3073 bytes" --train-images cut.bin
refused "are no whole patches of 5 x 5" --train-images train.bin --patch 5
refused "not 16 x 16; --resize" --train-images train.bin --image-size 16
refused "image-size 0: must be" --train-images train.bin --image-size 0
refused "is for text; there are pictures" --train-images train.bin --vocab-size 100
refused "have 192 patches" --train-images train.bin --patch 8 --visual-tokens 193
record 5 1 >other.bin
refused "the label '5' is not among the 3" --train-images train.bin --valid-images other.bin
printf 'nowhere.png\tcat\n' >list.tsv
refused "list.tsv:1: nowhere.png: " --train-images list.tsv
printf 'no tab\n' >list.tsv
refused "list.tsv:1: a line must be file<TAB>label" --train-images list.tsv
printf 'train.bin\tcat\n' >list.tsv
refused "list.tsv:1: train.bin: neither PNG nor JPEG" --train-images list.tsv
expect 0 "$fathom" prepare --train-images train.bin --image-size 16x8 --resize --out small
expect 0 "$fathom" data info small
grep -q '8 x 16 pixels' out || fail "--resize makes another size"

# a byte that changed is found
printf '\377' | dd of=again/train.images bs=1 seek=3000 conv=notrunc 2>/dev/null
expect 2 "$fathom" data check again
said "train.images: damaged"
echo "test_images: right"
