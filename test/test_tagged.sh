#!/bin/sh
# Classes of words, from CoNLL's form to the score: prepare, train, evaluate, probe, predict.
. "$(dirname "$0")/common.sh"

# A word's tag follows from the word before it, so that words alone do not tell it.
awk 'BEGIN {
    for (i = 0; i < 120; i++) {
        print "the\tDET"; print "old\tADJ"
        if (i % 2) { print "man\tNOUN"; print "can\tAUX"; print "run" i % 7 "\tVERB" }
        else { print "can\tNOUN"; print "was\tAUX"; print "full" i % 5 "\tADJ" }
        print ".\tPUNCT"; print ""
    }
}' >train.tagged
head -70 train.tagged >valid.tagged
expect 0 "$fathom" prepare --train-tagged train.tagged --valid-tagged valid.tagged --vocab-size 60 --out data
expect 0 "$fathom" data info data
grep -q "6 classes of words: ADJ AUX DET NOUN PUNCT VERB" out || fail "no classes of words: $(cat out)"
grep -q "^valid: 10 sentences" out || fail "not ten sentences"
expect 0 "$fathom" data check data
expect 0 "$fathom" data show data --split valid --as labels
cp out valid.ref
head -1 valid.ref | grep -qx "DET ADJ NOUN AUX ADJ PUNCT" || fail "not the tags of the first sentence: $(head -1 valid.ref)"
expect 0 "$fathom" data show data --split valid
cp out valid.text
head -1 valid.text | grep -qx "the old can was full0 ." || fail "not the words of the first sentence: $(head -1 valid.text)"

# other columns between the word and the tag, blanks in place of tabs, several blank lines, no blank line at the end
awk 'NF { print $1, "x", "y", $2; next } { print ""; print "  " }' valid.tagged >columns.tagged
sed -i '$d' columns.tagged
expect 0 "$fathom" prepare --train-tagged columns.tagged --tokenizer data/tokenizer.model --labels ADJ,AUX,DET,NOUN,PUNCT,VERB \
    --out columns
expect 0 "$fathom" data show columns --as labels --count 100
cmp out valid.ref || fail "columns between word and tag change the tags"

# byte-level BPE has no mark on the first word of a line
expect 0 "$fathom" prepare --train-tagged train.tagged --valid-tagged valid.tagged --model-type byte-bpe --vocab-size 280 \
    --out bytes
expect 0 "$fathom" data show bytes --split valid --as labels
cmp out valid.ref || fail "byte-level BPE changes the tags"

small="--arch enc --method deepnorm --encoder-layers 2 --d-model 32 --ffn-dim 64 --heads 2 --quiet --max-tokens 256
    --lr 0.01 --warmup-updates 5 --validate-interval-updates 30 --save-interval-updates 30 --threads 1"
expect 0 "$fathom" train data --save-dir run $small --max-update 60
expect 0 "$fathom" train data --save-dir run-2 $small --max-update 30
expect 0 "$fathom" train data --save-dir run-2 $small --max-update 60
cmp run/checkpoints/last/model.safetensors run-2/checkpoints/last/model.safetensors ||
    fail "stopped and continued, it ends with other weights"
expect 0 "$fathom" train bytes --save-dir run-bytes $small --max-update 2
expect 0 "$fathom" predict run-bytes --input valid.text
awk '{ print NF }' out >counts
awk '{ print NF }' valid.ref | cmp - counts || fail "byte-level BPE: not a tag for each word"
nll=$(grep '"type":"valid","update":60,' run/log.jsonl | sed 's/.*"nll_loss":\([^,]*\),.*/\1/')
awk -v a="$nll" 'BEGIN { exit !(a < 0.1) }' || fail "tags that follow from two words are not learned: $nll"
expect 0 "$fathom" evaluate run/checkpoints/last data --max-tokens 256
grep -q "nll $(printf %.4f "$nll")" out || fail "evaluate and train differ: $(cat out)"
expect 0 "$fathom" probe surface run --data data --sentences 10 --grid 3 --out surface.csv
awk -F, -v a="$nll" '$8 == 0 && $9 == 0 { found = $10 > a * 0.99 && $10 < a * 1.01 } END { exit !found }' surface.csv ||
    fail "probe sees other tags: $nll, $(cat surface.csv)"

expect 0 "$fathom" predict run --input valid.text
cmp out valid.ref || fail "the tags of the training text are not said again"
printf 'the old man can run3 .\n\nthe can was full1\n' >new
expect 0 "$fathom" predict run --input new
[ "$(awk '{ print NF }' out | tr '\n' ' ')" = "6 0 4 " ] || fail "not a tag for each word: $(cat out)"
tr ' ' '\n' <valid.ref >ref
expect 0 "$fathom" predict run --input valid.text
tr ' ' '\n' <out >hyp
expect 0 "$fathom" score f1 --average macro --ref ref --hyp hyp
expect 2 "$fathom" predict run --input valid.text --maps maps
said "is for head token-class of pictures"
awk 'BEGIN { for (i = 0; i < 600; i++) printf "man "; print "" }' >long
expect 2 "$fathom" predict run --input long --max-tokens 512
said "a line has [0-9]* tokens"

refused() { # text, options...
    text=$1
    shift
    expect 2 "$fathom" prepare --out none "$@"
    said "$text"
    [ ! -e none ] || fail "something is left of what was refused"
}
printf 'the\tDET\nold\n' >bad.tagged
refused "bad.tagged:2: a line must be word<TAB>tag" --train-tagged bad.tagged
printf 'the\tDET\nold\tX\n' >bad.tagged
refused "bad.tagged:2: the label 'X' is not among the 6" --train-tagged train.tagged --vocab-size 60 --valid-tagged bad.tagged
printf 'a\302\250b\tX\nc\tDET\n' >bad.tagged # a character that becomes a blank and another
refused "has other words for the tokenizer" --train-tagged bad.tagged --tokenizer data/tokenizer.model
refused "must be tagged words as in the other splits" --train-tagged train.tagged --valid-text valid.text
refused "is for tables, not tagged words" --train-tagged train.tagged --columns text=1,label=2
refused "tsv, jsonl, text or tagged" --train-tagged train.tagged --train-text valid.text
expect 2 "$fathom" train data --save-dir none $small --max-update 4 --head class
said "has classes of words or pixels"
echo "test_tagged: right"
