#!/bin/sh
# BLEU on the pieces of a SentencePiece model, against sacreBLEU (test/golden/metric/make_pieces.py).
. "$(dirname "$0")/common.sh"
golden=$here/golden/metric

# numbers of the program's JSON object, in the order of pieces.txt
numbers() {
    tr -d '[]{}"' <out | tr ',' '\n' | sed -n 's/^[a-z_]*://; /^[0-9][0-9.e-]*$/p' | paste -s -d ' '
}

n=0
while read -r refs lowercase expected; do
    set -- --ref "$golden/ref1.txt"
    [ "$refs" = 1 ] || set -- "$@" --ref "$golden/ref2.txt"
    [ "$lowercase" = 0 ] || set -- "$@" --lowercase
    expect 0 "$fathom" score bleu --tokenize spm --spm-model "$golden/pieces.model" --hyp "$golden/hyp1.txt" --json "$@"
    echo "$(numbers) $expected" | awk '{ exit NF != 16 } {
        for (i = 1; i <= 8; i++) { d = $i - $(i + 8); if (d > 1e-9 || d < -1e-9) { print i, $i, $(i + 8); exit 1 } } }' ||
        fail "$refs references, lowercase $lowercase: $(numbers), not $expected"
    n=$((n + 1))
done <"$golden/pieces.txt"
[ $n -eq 4 ] || fail "$n lines of pieces.txt, not 4"

# the model is part of the signature
grep -q 'tok:spm-fe534f5d' out || fail "the signature does not name the model: $(cat out)"

# without its model, or without need
echo a >a
expect 2 "$fathom" score bleu --tokenize spm --ref a --hyp a
grep -q 'needs --spm-model' err || fail "a missing --spm-model is not said"
expect 2 "$fathom" score bleu --spm-model a --ref a --hyp a
grep -q 'needs --tokenize spm' err || fail "--spm-model without --tokenize spm is taken"
expect 2 "$fathom" score chrf --spm-model a --ref a --hyp a
expect 2 "$fathom" score bleu --tokenize spm --spm-model a --ref a --hyp a
grep -q '^fathom: a: ' err || fail "what is no model is not named: $(cat err)"
expect 2 "$fathom" score bleu --tokenize spm --spm-model none --ref a --hyp a
echo "test_pieces: right"
