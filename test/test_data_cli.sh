#!/bin/sh
# fathom prepare and fathom data: exit status and the one line that says what is wrong.
. "$(dirname "$0")/common.sh"

# says FILE TEXT: the file has the text somewhere
says() {
    grep -q -- "$2" "$1" || {
        echo "test_data_cli: not found: $2" >&2
        cat "$1" >&2
        exit 1
    }
}

# refuses STATUS TEXT OPTIONS...: prepare fails with one line that has the text, and leaves nothing
refuses() {
    want=$1
    text=$2
    shift 2
    expect "$want" "$fathom" prepare "$@"
    tail -n 1 err >last
    says last "^fathom: "
    says last "$text"
    for left in data* ; do
        [ ! -e "$left" ] || { echo "test_data_cli: $left is left behind by: $*" >&2; exit 1; }
    done
}

i=0
while [ $i -lt 200 ]; do
    echo "the cat number $i sees a big blue house under the old tree"
    i=$((i + 1))
done >src
sed 's/the/der/g; s/cat/Kater/; s/house/Haus/' src >tgt
head -n 20 src >few.src
head -n 20 tgt >few.tgt
head -n 150 tgt >short
: >nothing
i=0
while [ $i -lt 100 ]; do
    printf '\n \t\302\240\342\200\213\343\200\200\n'
    i=$((i + 1))
done >blank
printf 'caf\351\n' >latin
head -c 300 /dev/zero | tr '\0' 'x' >wide
paste src tgt >both.tsv

# what works
expect 0 "$fathom" prepare --train-src src --train-tgt tgt --valid-src few.src --valid-tgt few.tgt \
    --vocab-size 60 --out data
says err '^train: 200 sentences'
[ ! -s out ]
expect 0 "$fathom" data info data
says out '^valid: 20 sentences'
expect 0 "$fathom" data info data --json
says out '"format": "fathom-dataset"'
expect 0 "$fathom" data check data
says out 'sound'
expect 0 "$fathom" data show data --split valid --first 3 --count 1
[ "$(cat out)" = "$(paste few.src few.tgt | sed -n 4p)" ]
expect 0 "$fathom" data show data --split train --count 1 --as ids
says out '^[0-9 ]*	[0-9 ]*$'
cmp data/valid.tgt.txt few.tgt
cp -r data lacking
rm lacking/valid.src.txt
expect 2 "$fathom" data check lacking
says err 'lacking/valid.src.txt: cannot open: No such file'
head -3 data/valid.src.txt > lacking/valid.src.txt
expect 2 "$fathom" data check lacking
says err 'lacking/valid.src.txt: has 3 lines, its split 20 sentences'
cp data/valid.fds lacking/train.fds
expect 2 "$fathom" data check lacking
says err 'lacking/train.fds: has 20 sentences and dataset.json says 200'
expect 2 "$fathom" prepare --train-src src --train-tgt tgt --vocab-size 60 --out data
says err 'fathom: data is there already; --force replaces it'
mkdir empty mine
: >mine/notes
expect 0 "$fathom" prepare --train-src src --train-tgt tgt --vocab-size 60 --out empty/ --force
expect 2 "$fathom" prepare --train-src src --train-tgt tgt --vocab-size 60 --out mine --force
says err 'fathom: mine is there and has no dataset.json: --force does not replace it'
mv empty .empty.old # a process was killed between the two renames
expect 2 "$fathom" prepare --train-src src --train-tgt tgt --vocab-size 60 --out empty
says err 'fathom: empty is there already; --force replaces it'
[ -e empty/dataset.json ]
expect 2 "$fathom" prepare --train-src src --train-tgt tgt --vocab-size 60 --out ""
[ "$(find . -name '.*.tmp-*' -o -name '*.old')" = "" ] || fail "left: $(ls -A)"
rm -r empty mine
expect 0 "$fathom" prepare --train-src src --train-tgt tgt --vocab-size 60 --out data --force --separate
[ -e data/tokenizer.src.model ]
[ ! -e data/valid.fds ]
cp -r data other
printf 'X' | dd of=other/train.fds bs=1 seek=2000 conv=notrunc 2>/dev/null
expect 2 "$fathom" data check other
says err 'fathom: other/train.fds: damaged data set'
rm -r data
gzip -c both.tsv | "$fathom" prepare --train-tsv - --model-type word --out data 2>err
expect 0 "$fathom" data check data
says out 'sound'
rm -r data

# what does not
refuses 2 'out FOLDER is missing' --train-src src --train-tgt tgt
refuses 2 'no text to prepare' --out data
refuses 2 'train-src is given without --train-tgt' --train-src src --out data
refuses 2 'not several' --train-src src --train-tgt tgt --train-text src --out data
refuses 2 'standard input' --train-src - --train-tgt - --out data
refuses 2 'missing: cannot open' --train-src missing --train-tgt tgt --out data
refuses 2 'nothing: an empty file' --train-src nothing --train-tgt tgt --out data
for type in unigram bpe word char; do
    refuses 2 'blank: has blank lines alone; a vocabulary' --train-text blank --model-type $type --vocab-size 37 --out data
done
refuses 2 'blank: has blank lines alone' --train-src src --train-tgt blank --separate --vocab-size 60 --out data
refuses 2 'blank and 1 more: has blank lines alone' --train-text blank --train-text blank --vocab-size 60 --out data
refuses 2 'latin:1: not UTF-8: byte 0xe9' --train-src latin --train-tgt tgt --out data
refuses 2 'src has 200 lines, short has 150' --train-src src --train-tgt short --out data
refuses 2 'both.tsv:1: not JSON' --train-jsonl both.tsv --out data
refuses 2 'src:1: no tab' --train-tsv src --out data
refuses 2 'vocab-size 8000 is larger than the text can give: at most' --train-src src --train-tgt tgt --out data
refuses 2 'vocab-size 10 is smaller than' --train-src src --train-tgt tgt --vocab-size 10 --out data
refuses 2 'src:1: .* tokens .* --max-positions 4' --train-src src --train-tgt tgt --vocab-size 60 \
    --max-positions 4 --strict --out data
refuses 2 'none of its 200 sentences' --train-src src --train-tgt tgt --vocab-size 60 \
    --max-positions 4 --out data
refuses 2 'src: not a SentencePiece model' --train-src src --train-tgt tgt --tokenizer src --out data
refuses 2 'vocab-size 60: is for a new tokenizer' --train-src src --train-tgt tgt --tokenizer src --vocab-size 60 --out data
refuses 2 'separate: needs --tokenizer twice' --train-src src --train-tgt tgt --tokenizer src --separate --out data
refuses 2 'threads' --train-src src --train-tgt tgt --threads 0 --out data
refuses 2 'vocab-size' --train-src src --train-tgt tgt --vocab-size many --out data
refuses 2 'did you mean --train-src' --train-srcs src --out data
refuses 1 'No such file\|cannot' --train-src src --train-tgt tgt --vocab-size 60 --out /dev/null/x

# a signal leaves nothing behind, and what was there stays; what SIGKILL leaves, the next call sweeps
# begin OPTIONS: a prepare in the background that waits for its text
mkfifo text
begin() {
    "$fathom" prepare --train-tsv - --vocab-size 60 --out made/data "$@" <text 2>err &
    child=$!
    exec 9>text # so that it does not end
    tries=0
    while ! ls -A made 2>/dev/null | grep -q '^\.data\.tmp-'; do
        [ $tries -lt 600 ] || fail "nothing was begun: $(cat err)"
        sleep 0.1
        tries=$((tries + 1))
    done
}
# finish SIGNAL
finish() {
    kill "-$1" $child
    wait $child 2>/dev/null || true
    exec 9>&-
}
begin
finish TERM
[ ! -e made ] || fail "a signal left $(find made)"
begin
finish KILL
ls -A made | grep -q '^\.data\.tmp-' || fail "SIGKILL came too late"
mkdir made/.data.tmp-1-0 "made/.data.tmp-$$-0" made/.data.tmp-mine # held, not held by anybody, and no name of ours
exec 8<made/.data.tmp-1-0
flock 8
expect 0 "$fathom" prepare --train-src src --train-tgt tgt --vocab-size 60 --out made/data
[ "$(ls -A made | LC_ALL=C sort | tr '\n' ' ')" = ".data.tmp-1-0 .data.tmp-mine data " ] || fail "not swept: $(ls -A made)"
exec 8<&-
rmdir made/.data.tmp-1-0 made/.data.tmp-mine
cksum made/data/* >before
begin --force
finish TERM
cksum made/data/* | cmp - before || fail "a signal took the old data set"
[ "$(ls -A made)" = data ] || fail "a signal left $(ls -A made)"

[ ! -e /dev/full ] || {
    expect 1 sh -c "'$fathom' data info other > /dev/full"
    says err 'cannot write'
}
expect 2 "$fathom" data info
expect 2 "$fathom" data look other
says err 'must be info, show or check'
for option in 'split test' 'first 1' 'count 1' 'as ids'; do
    # shellcheck disable=SC2086 # an option and its value
    expect 2 "$fathom" data info other --$option
    says err "^fathom: --$option: info does not use it, only show$"
done
expect 2 "$fathom" data show other --json
says err '^fathom: --json: show does not use it, only info$'
expect 2 "$fathom" data info src
expect 2 "$fathom" data info nowhere
expect 2 "$fathom" data show other --split test
says err "no split 'test'"
expect 2 "$fathom" data show other --first 1000
says err '200 sentences'

# BPE dropout: every copy has the same text and other tokens, the same whatever the threads, and none in the other splits
for threads in 1 3; do
    expect 0 "$fathom" prepare --train-text src --valid-text few.src --vocab-size 60 --bpe-dropout 0.3 --segmentations 3 \
        --threads $threads --out "drop.$threads"
done
cmp drop.1/train.fds drop.3/train.fds
expect 0 "$fathom" data show drop.1 --split train --count 6 --as text
[ "$(sort -u out | wc -l)" -eq 2 ]
expect 0 "$fathom" data show drop.1 --split train --count 3 --as ids
[ "$(sort -u out | wc -l)" -eq 3 ]
expect 0 "$fathom" prepare --train-text src --valid-text few.src --tokenizer drop.1/tokenizer.model --out plain.d
cmp drop.1/valid.fds plain.d/valid.fds
expect 0 "$fathom" prepare --train-text src --tokenizer drop.1/tokenizer.model --bpe-dropout 1e-300 --out same.d
cmp same.d/train.fds plain.d/train.fds
expect 2 "$fathom" prepare --train-text src --vocab-size 60 --model-type unigram --bpe-dropout 0.1 --out other.d
says err 'BPE dropout needs a tokenizer of the model-type bpe'
expect 2 "$fathom" prepare --train-text src --vocab-size 60 --segmentations 2 --out other.d
says err '--segmentations 2: needs --bpe-dropout'
rm -r drop.1 drop.3 plain.d same.d

# a word that SentencePiece's training would die of
{ cat src; head -c 70000 /dev/zero | tr '\0' 'x'; echo; } >endless
for type in bpe unigram; do
    expect 0 "$fathom" prepare --train-text endless --out endless.d --vocab-size 60 --model-type $type --force
    says err 'lines have more than 1000 characters without a blank'
done
rm -r endless.d
