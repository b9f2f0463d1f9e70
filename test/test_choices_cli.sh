#!/bin/sh
# From text to choices with byte-level BPE: prepare, train, generate, evaluate; prompts that are shared, cut, refused.
. "$(dirname "$0")/common.sh"

cp "$here/golden/byte_bpe/text.txt" text
expect 0 "$fathom" prepare --train-text text --valid-text text --model-type byte-bpe --vocab-size 400 --out data --threads 1
[ -f data/tokenizer.json ] || fail "no tokenizer.json: $(ls data)"
expect 0 "$fathom" data check data
expect 0 "$fathom" data show data --first 0 --count 500
cmp -s out text || fail "the text does not come back"
expect 0 "$fathom" train data --arch dec --decoder-layers 2 --d-model 16 --ffn-dim 16 --heads 2 --max-positions 64 \
    --tokens-per-sample 32 --max-tokens 256 --max-update 4 --warmup-updates 2 --threads 1 --device cpu --quiet --save-dir run
model=run/checkpoints/last
cmp -s data/tokenizer.json $model/tokenizer.json || fail "the model has another tokenizer"
cut -c 1-20 text | head -n 5 > lines
expect 0 "$fathom" generate $model --input lines --max-len-b 8 --threads 1 --device cpu --quiet
[ "$(wc -l < out)" -eq 5 ] || fail "not five answers: $(cat out)"
expect 0 "$fathom" evaluate $model data --tokens-per-sample 32 --per-word --threads 1 --device cpu
# the same tokenizer for other text, and the vocab.json of others
expect 0 "$fathom" prepare --train-text lines --tokenizer data/tokenizer.json --out again --threads 1
cmp -s data/tokenizer.json again/tokenizer.json || fail "--tokenizer changed the tokenizer"
expect 0 "$fathom" prepare --train-text lines --tokenizer "$here/golden/byte_bpe/vocab.json" --out theirs --threads 1
expect 2 "$fathom" evaluate $model theirs --split train --threads 1 --device cpu
grep -q 'vocabulary of 700, the model of 400' err || fail "$(cat err)"
expect 2 "$fathom" prepare --train-text text --model-type byte-bpe --byte-fallback --out no
grep -q -- '--byte-fallback: is for tokens of characters' err || fail "$(cat err)"

i=0
while [ $i -lt 40 ]; do
    echo "{\"ctx\": \"Ten kilos of oranges cost $i dollars and the concert lasts\", \"endings\": [\"six hours.\", \"two days.\", \"$i minutes.\", \"the train.\"], \"label\": $((i % 4))}"
    i=$((i + 1))
done > questions
evaluate="$fathom evaluate $model --threads 1 --device cpu"
expect 0 $evaluate --choices questions --json --write-choices some
tokens=$(sed 's/.*"tokens":\([0-9]*\).*/\1/' out)
alone=$(sed 's/.*"tokens_alone":\([0-9]*\).*/\1/' out)
[ $((2 * tokens)) -lt "$alone" ] || fail "prompts are not shared: $tokens of $alone tokens"
# neither the batch nor what else is in the file changes anything
expect 0 $evaluate --choices questions --max-tokens 1 --write-choices one
expect 0 $evaluate --choices questions --max-tokens 100000 --write-choices all
numbers() { sed 's/.*"logp":\[\([^]]*\).*/\1/' "$1" | tr ',' '\n'; }
for other in one all; do
    numbers some > a
    numbers $other > b
    paste a b | awk '{ d = $1 - $2; if (!($1 < 0) || d * d > 1e-6) exit 1 }' || fail "--max-tokens changes numbers"
done
# examples: the same ones for a seed, others for another
expect 0 $evaluate --choices questions --shots 1 --examples questions --write-choices first
expect 0 $evaluate --choices questions --shots 1 --examples questions --write-choices second
expect 0 $evaluate --choices questions --shots 1 --examples questions --seed 2 --write-choices third
cmp -s first second || fail "a seed draws other examples"
! cmp -s first third || fail "seeds draw the same examples"
expect 2 $evaluate --choices questions --shots 9 --examples questions
grep -q 'max_positions 64' err || fail "$(cat err)"
expect 2 $evaluate --choices questions --shots 41 --examples questions
grep -q 'has 40 questions, fewer than --shots 41' err || fail "$(cat err)"
expect 2 $evaluate --choices questions --shots 1
grep -q 'needs --examples' err || fail "$(cat err)"
expect 2 $evaluate data --shots 1 --examples questions
grep -q 'needs --choices' err || fail "$(cat err)"
expect 2 $evaluate data --choices questions
grep -q 'give one of them' err || fail "$(cat err)"
expect 2 $evaluate --choices questions --per-word
grep -q 'is for data sets' err || fail "$(cat err)"
expect 2 $evaluate
grep -q 'a data set is missing' err || fail "$(cat err)"
# a long prompt loses its beginning
{ printf '{"prompt": "'; head -c 2000 text | tr '\n"' '  '; printf '", "choices": ["one", "two"], "answer": 1}\n'; } > long
expect 0 $evaluate --choices long
grep -q '2 texts are longer' err || fail "$(cat err)"
# other programs get the tokenizer as it is, and it comes back
expect 0 "$fathom" export "$here/golden/choices/dec" --to hf-gpt2 --out gpt2
cmp -s gpt2/tokenizer.json "$here/golden/choices/dec/tokenizer.json" || fail "the export has another tokenizer"
expect 0 "$fathom" import gpt2 --from hf-gpt2 --out back
for each in "$here/golden/choices/dec" back; do
    expect 0 "$fathom" evaluate "$each" --choices questions --threads 1 --device cpu
    sort out >> both
done
[ "$(uniq both | wc -l)" -eq 1 ] || fail "the model that came back chooses others: $(cat both)"
