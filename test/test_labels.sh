#!/bin/sh
# Tables to data sets with labels: what is read, and the file and line of what cannot be.
. "$(dirname "$0")/common.sh"

i=0
while [ $i -lt 60 ]; do
    printf 'a%d\t%s\tthis text number %d is good\tand so on\n' $i yes $i
    printf 'b%d\t%s\tthis text number %d is bad\tand no more\n' $i no $i
    i=$((i + 1))
done >body
{ printf 'id\tgood\tone text\tother\n'; cat body; } >table
tokens="--vocab-size 60 --mask"

# columns by number, without a header; labels in the order of their bytes
expect 0 "$fathom" prepare --train-tsv body --valid-tsv body --columns text=3,label=2 $tokens --out set
expect 0 "$fathom" data check set
expect 0 "$fathom" data info set
grep -q 'labels: 2 classes: no yes' out || fail "the classes are not no and yes"
grep -q 'train: 120 sentences' out || fail "not every line is a sentence"

# by name: the header is not a sentence; two texts become one, with two end symbols between them
expect 0 "$fathom" prepare --train-tsv table --columns 'text=one text,text2=other,label=good' \
    --tokenizer set/tokenizer.model --labels yes,no --out pairs
expect 0 "$fathom" data show pairs --as pieces --count 1
grep -q 'good </s> </s> ' out || fail "the texts of a pair are not apart"
expect 0 "$fathom" data info pairs
grep -q 'classes: yes no' out || fail "--labels has no order"
expect 0 "$fathom" prepare --train-tsv table --columns 'text=3,text2=4,label=2' --header --pair-separator ' and ' \
    --tokenizer set/tokenizer.model --out words
expect 0 "$fathom" data show words --count 1
grep -q 'good and and so on' out || fail "--pair-separator is not between the texts"

# numbers
awk -F '\t' '{ print NR / 4 "\t" $3 }' body >numbers
expect 0 "$fathom" prepare --train-tsv numbers --columns text=2,label=1 --labels number \
    --tokenizer set/tokenizer.model --out values
expect 0 "$fathom" data info values
grep -q 'labels: numbers' out || fail "labels are not numbers"

# what is wrong has its file and line
refused() { # text, options...
    text=$1
    shift
    expect 2 "$fathom" prepare --tokenizer set/tokenizer.model --out none "$@"
    said "$text"
    [ ! -e none ] || fail "a folder is left behind by: $*"
}
refused "body:1: has 4 columns" --train-tsv body --columns text=9,label=2
refused "table:1: no column is called 'label'" --train-tsv table --columns 'text=one text,label=label'
refused "'text2=4' is not\|is not text, text2 or label" --train-tsv body --columns text=3,txt2=4
refused "names no text" --train-tsv body --columns label=2
refused "text is given twice" --train-tsv body --columns text=3,text=4,label=2
refused "needs --columns" --train-tsv body --labels number
refused "needs --train-tsv" --train-text body --columns text=3
refused "body:1: the label 'yes' is not among the 2" --train-tsv body --columns text=3,label=2 --labels no,maybe
refused "body:1: the label 'yes' is not a number" --train-tsv body --columns text=3,label=2 --labels number
refused "two classes at least" --train-tsv body --columns text=3,label=2 --labels one
sed '7s/\t[^\t]*\tand/\t \tand/' body >blank
refused "blank:7: its text is empty" --train-tsv blank --columns text=3,label=2
awk -F '\t' 'BEGIN { OFS = "\t" } NR == 5 { $2 = "perhaps" } { print }' body >unseen
refused "unseen:5: the label 'perhaps' is not among the 2" --train-tsv body --valid-tsv unseen --columns text=3,label=2
head -1 body >single
refused "has 1 different label" --train-tsv single --columns text=3,label=2

# damaged labels are found
cp -r set damaged
printf '\377' | dd of=damaged/train.labels bs=1 seek=200 conv=notrunc 2>/dev/null
expect 2 "$fathom" data check damaged
said "train.labels"
echo "test_labels: right"
