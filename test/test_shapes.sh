#!/bin/sh
# Classes of pixels, from made-up pictures to the score: corpus, prepare, train, evaluate, predict, score miou.
. "$(dirname "$0")/common.sh"

# ---- pictures and maps
expect 0 "$fathom" corpus --images shapes --sentences 64 --valid 8 --test 2 --seed 3 --out shapes
[ "$(wc -l <shapes/train.tsv)" -eq 64 ] && [ "$(wc -l <shapes/test.tsv)" -eq 2 ] || fail "not so many pictures"
expect 0 "$fathom" corpus --images shapes --sentences 4 --valid 8 --test 2 --seed 3 --out again
cmp shapes/train/000003.png again/train/000003.png || fail "the same seed makes other pictures"
cmp shapes/train/000003.map.png again/train/000003.map.png || fail "the same seed makes other maps"
cmp -s shapes/train/000003.png shapes/valid/000003.png && fail "two splits have the same picture"
expect 2 "$fathom" corpus --images shapes --out again
said "again is there already (--force replaces it)"
expect 0 "$fathom" corpus --images shapes --sentences 2 --valid 1 --test 1 --force --out again
[ "$(wc -l <again/train.tsv)" -eq 2 ] || fail "--force does not replace"
mkdir mine && echo 1 >mine/letter
expect 2 "$fathom" corpus --images shapes --force --out mine
[ -f mine/letter ] || fail "--force has removed a folder of something else"
expect 2 "$fathom" corpus --images shapes --pair en-de --out none
said "is for phrases"

# ---- a data set of them
expect 0 "$fathom" prepare --train-images shapes/train.tsv --valid-images shapes/valid.tsv --label-maps --patch 4 \
    --visual-tokens 8 --out data
expect 0 "$fathom" data info data
grep -q "4 classes of pixels: 0 1 2 3" out || fail "no classes of pixels"
expect 0 "$fathom" data check data
expect 0 "$fathom" data show data --split valid --as labels --count 100
cp out valid.ref
awk 'NF != 1024 { exit 1 }' valid.ref || fail "not a class for every pixel"
[ "$(tr ' ' '\n' <valid.ref | sort -u | tr '\n' ' ')" = "0 1 2 3 " ] || fail "not all classes in the maps"

# ---- trained: at once, and stopped and continued, with pictures changed
small="--arch enc --method deepnorm --encoder-layers 2 --d-model 32 --ffn-dim 64 --heads 2 --positions learned \
    --max-positions 65 --quiet --max-tokens 1040 --lr 0.005 --warmup-updates 10 --validate-interval-updates 30 \
    --save-interval-updates 30"
expect 0 "$fathom" train data --save-dir run $small --max-update 60 --threads 1 --augment-crop 2 --augment-flip \
    --augment-erase 0.2
expect 0 "$fathom" train data --save-dir run-2 $small --max-update 30 --threads 1 --augment-crop 2 --augment-flip \
    --augment-erase 0.2
expect 0 "$fathom" train data --save-dir run-2 $small --max-update 60 --threads 1 --augment-crop 2 --augment-flip \
    --augment-erase 0.2
cmp run/checkpoints/last/model.safetensors run-2/checkpoints/last/model.safetensors ||
    fail "stopped and continued, it ends with other weights"
nll() { # of the validation at an update
    grep "\"type\":\"valid\",\"update\":$2," "$1/log.jsonl" | sed 's/.*"nll_loss":\([^,]*\),.*/\1/'
}
awk -v a="$(nll run 60)" -v b="$(nll run 30)" 'BEGIN { exit !(a < b && a < 0.95) }' ||
    fail "classes of patches are not learned: $(nll run 30), $(nll run 60)"
expect 0 "$fathom" evaluate run/checkpoints/last data --max-tokens 1040
grep -q "nll $(printf %.4f "$(nll run 60)")" out || fail "evaluate and train differ"

# ---- predicted, as numbers and as pictures
expect 0 "$fathom" predict run --images shapes/valid.tsv
cp out valid.hyp
awk 'NF != 1024 { exit 1 }' valid.hyp || fail "not a class for every pixel"
expect 0 "$fathom" score miou --ref valid.ref --hyp valid.hyp --width 4
cp out said
tr ' ' '\n' <valid.ref | sort | uniq -c | sort -n | tail -1 | awk '{ print $2 }' >most
sed "s/[0-9-]\{1,\}/$(cat most)/g" valid.ref >always
expect 0 "$fathom" score miou --ref valid.ref --hyp always --width 4
awk '{ miou[NR] = $NF } END { exit !(miou[1] > miou[2]) }' said out ||
    fail "it is no better than the most frequent class: $(cat said out)"
expect 0 "$fathom" predict run --images shapes/valid.tsv --maps maps
[ "$(ls maps | wc -l)" -eq 8 ] || fail "not a map for each picture"
expect 2 "$fathom" predict run --images shapes/valid.tsv --maps maps
said "maps: is there already"
i=0 # the maps are label maps, with the same numbers
while [ $i -lt 8 ]; do
    printf 'shapes/valid/%06d.png\tmaps/%06d.png\n' $i $i
    i=$((i + 1))
done >said.tsv
expect 0 "$fathom" prepare --train-images said.tsv --label-maps --labels 0,1,2,3 --patch 4 --out said-data
expect 0 "$fathom" data show said-data --as labels --count 100
cmp out valid.hyp || fail "the maps have other classes than the lines"
expect 2 "$fathom" predict run --images shapes/valid.tsv --format json
said "head token-class prints lines of classes"

# ---- the same pictures without their maps
expect 0 "$fathom" train data --save-dir hidden $small --max-update 4 --head masked-token
expect 0 "$fathom" train data --save-dir tuned $small --max-update 4 --init-from hidden
expect 2 "$fathom" train data --save-dir none $small --head class
said "data has classes of words or pixels; use --head token-class"
expect 2 "$fathom" predict hidden --images shapes/valid.tsv
said "head class, regression or token-class"

# ---- maps that are wrong
printf 'shapes/train/000000.png\tshapes/train/000000.png\n' >list.tsv
expect 2 "$fathom" prepare --train-images list.tsv --label-maps --out none
said "list.tsv:1: shapes/train/000000.png: has colours or 16 bits"
printf 'shapes/train/000000.png\tshapes/none.png\n' >list.tsv
expect 2 "$fathom" prepare --train-images list.tsv --label-maps --out none
said "shapes/none.png"
expect 2 "$fathom" prepare --train-images shapes/train.tsv --label-maps --labels 0,1 --out none
said "its map has class [23], and there are 2"
[ ! -e none ] || fail "something is left of what was refused"
echo "test_shapes: right"
