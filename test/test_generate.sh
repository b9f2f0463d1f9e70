#!/bin/sh
# generate as others use it: as a coprocess, with input that is partly no text, and with none.
. "$(dirname "$0")/common.sh"

i=0
while [ $i -lt 100 ]; do
    echo "the cat number $i sees a blue house	der Kater Nummer $i sieht ein blaues Haus"
    i=$((i + 1))
done >both.tsv
expect 0 "$fathom" prepare --train-tsv both.tsv --vocab-size 60 --out data
expect 0 "$fathom" train data --encoder-layers 1 --decoder-layers 1 --d-model 8 --ffn-dim 8 --heads 1 --max-update 2 \
    --warmup-updates 1 --threads 1 --device cpu --quiet --save-dir run
model=run/checkpoints/last
generate="$fathom generate $model --device cpu --threads 1 --max-len-b 5 --quiet"
head -n 4 both.tsv | cut -f 1 >four
expect 0 $generate --input four
mv out answers

# ---- a coprocess: every line has its answer before the next is written ----
mkfifo to from
for how in '' '--flush' '--batch 1'; do
    # shellcheck disable=SC2086
    $generate $how <to >from 2>err &
    exec 3>to 4<from
    while read -r line; do
        echo "$line" >&3
        timeout 20 head -n 1 <&4 >>got || fail "no answer to \"$line\" with '$how'"
    done <four
    exec 3>&- 4<&-
    wait $! || fail "the coprocess failed: $(cat err)"
    cmp -s got answers || fail "other answers with '$how': $(cat got)"
    rm got
done
# a line of one character, and half a line
$generate <to >from 2>err &
exec 3>to 4<from
printf 'a\n(' >&3
timeout 20 head -n 1 <&4 >got || fail "no answer to a short line"
exec 3>&-
cat <&4 >>got
exec 4<&-
[ "$(wc -l <got)" -eq 2 ] || fail "not two answers: $(cat got)"
wait $! || fail "half a line at the end: $(cat err)"

# ---- lines that are not UTF-8 ----
{ sed -n 1p four; printf 'caf\351\n'; sed -n 3,4p four; } >latin
expect 1 $generate --input latin
sed 2s/.*// answers | cmp -s - out || fail "the other lines have other answers: $(cat out)"
grep -q 'latin:2: not UTF-8: byte 0xe9 at column 4; its answer is an empty line' err || fail "$(cat err)"
grep -q '^fathom: 1 of the lines are not UTF-8' err || fail "$(cat err)"
expect 0 $generate --input latin --on-bad-line replace
[ "$(sed 2d out)" = "$(sed 2d answers)" ] || fail "replace changes the other lines"
printf 'caf\357\277\275\n' >repaired
$generate --input repaired >one 2>/dev/null
[ "$(sed -n 2p out)" = "$(cat one)" ] || fail "the wrong byte is not U+FFFD"
expect 2 $generate --input latin --on-bad-line stop
grep -q '^fathom: latin:2: not UTF-8: byte 0xe9 at column 4' err || fail "$(cat err)"
printf 'a\000b\n' >nul
expect 1 $generate --input nul
grep -q 'nul:1: a NUL byte' err || fail "$(cat err)"

# ---- alignments ----
expect 0 $generate --input four --format jsonl --print-alignment soft
python=$(grep -c '"alignment":\[\[' out)
[ "$python" -eq 4 ] || fail "no alignments: $(head -c 300 out)"
expect 0 $generate --input four --format fairseq --print-alignment soft
grep '^A-' out | cut -f 2 | tr ' ' '\n' | awk -F, '{ s = 0; for (i = 1; i <= NF; i++) s += $i; if (s < 0.999 || s > 1.001) bad = 1 } END { exit bad || NR < 4 }' ||
    fail "shares that do not sum to 1: $(grep '^A-' out)"
grep '^A-' out | cut -f 2 | tr ' ' '\n' >soft
expect 0 $generate --input four --format fairseq --print-alignment hard
tokens=$(grep '^H-' out | cut -f 3 | tr ' ' '\n' | grep -c .)
[ "$(grep '^A-' out | cut -f 2 | tr ' ' '\n' | grep -c '^[0-9]*-[0-9]*$')" -eq "$tokens" ] || fail "not one source token for each: $(cat out)"
expect 2 $generate --input four --print-alignment hard
grep -q -- '--print-alignment hard: needs --format' err || fail "$(cat err)"

# ---- diverse beam search: without a cost every part finds the same, with a great one no first word is found twice ----
expect 0 $generate --input four --beam 4 --diverse-beam-groups 2 --diverse-beam-strength 0 --nbest 4
mv out parts
expect 0 $generate --input four --beam 2 --nbest 2
sed p out | cmp -s - parts || fail "two parts are not twice a beam of half the size: $(cat parts)"
expect 0 $generate --input four --beam 3 --diverse-beam-groups 3 --diverse-beam-strength 1000 --nbest 3 --format fairseq
for id in 0 1 2 3; do
    [ "$(grep "^H-$id" out | cut -f 3 | cut -d ' ' -f 1 | sort -u | wc -l)" -eq 3 ] || fail "first words of $id: $(cat out)"
done
expect 2 $generate --input four --beam 3 --diverse-beam-groups 2
grep -q -- '--diverse-beam-groups 2: must divide --beam 3' err || fail "$(cat err)"

# ---- constraints: phrases that the model would never have said, in their order ----
printf 'Haus\tder Kater\nblaues\n\nsieht\tNummer\tein\n' >phrases
expect 0 $generate --input four --constraints phrases --max-len-b 60 --beam 6
sed -n 1p out | grep -q 'Haus.*der Kater' || fail "the phrases of line 1: $(cat out)"
sed -n 2p out | grep -q 'blaues' || fail "the phrase of line 2: $(cat out)"
sed -n 4p out | grep -q 'sieht.*Nummer.*ein' || fail "the phrases of line 4: $(cat out)"
sed -n 3p out >free
expect 0 $generate --input four --max-len-b 60 --beam 6
sed -n 3p out | cmp -s - free || fail "a line without phrases has another answer: $(cat free)"
head -n 3 phrases >few
expect 2 $generate --input four --constraints few
grep -q -- '--constraints: has fewer lines than --input' err || fail "$(cat err)"

# ---- no input ----
: >empty
expect 0 $generate --input empty
[ ! -s out ] || fail "an answer to nothing"
expect 0 $generate --input /dev/null --format jsonl
[ ! -s out ] || fail "an answer to nothing"

# ---- files that are not there ----
expect 2 $generate --input four --prefix nowhere
grep -q 'nowhere: cannot open' err || fail "$(cat err)"
expect 2 $generate --input nowhere
grep -q 'nowhere: cannot open' err || fail "$(cat err)"
