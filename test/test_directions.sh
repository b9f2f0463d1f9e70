#!/bin/sh
# Many languages, from files to a table: the commands of recipes/tasks/languages.yaml at toy size, what they
# leave behind, a run that is killed and goes on, and what is said of data and calls that are wrong.
. "$(dirname "$0")/common.sh"
. "$here/picture.sh"

# ---- the commands of the recipe ----

sed -n 's/^#  *//p' "$here/../recipes/tasks/languages.yaml" | sed -n '/^for pair/,/fathom generate/p' |
    sed "s|fathom |'$fathom' |; s|recipes/tasks|$here/../recipes/tasks|; s/--sentences 5000/--sentences 300/
         s/100/12/g; s/--vocab-size 2000/--vocab-size 500/
         s/--save-dir four-run/& --encoder-layers 1 --decoder-layers 1 --d-model 32 --ffn-dim 64 --heads 2 --max-update 6 --warmup-updates 3 --validate-interval-updates 3 --quiet/
         s/directions four-run four/& --beam 2 --max-len-a 0.5/" >commands
grep -c "'$fathom'" commands | grep -qx 5 || fail "the recipe's commands are not five: $(cat commands)"
expect 0 sh -e commands
[ -s four-scores/scores.md ] || fail "the recipe leaves no table behind"

# ---- what is in the data ----

expect 0 "$fathom" data check four
expect 0 "$fathom" data show four --as pieces --count 1
grep -q '^__de__ ' out || fail "the tag of the target is not before the source: $(cat out)"
for tag in en de fr es; do
    "$fathom" data show four --as pieces --count 3600 | grep -c "^__${tag}__ " | grep -qx 900 ||
        fail "not 900 sentences go into $tag"
done
grep -q '"temperature": 5.0' four/languages.json || fail "the temperature is not kept"
expect 0 "$fathom" data info four
grep -q '^12 directions of 4 languages, tags target, temperature 5: en-de de-en' out || fail "the directions are not named: $(cat out)"
# another number of threads gives the same data
expect 0 "$fathom" prepare --pairs pairs.yaml --vocab-size 500 --threads 7 --out seven
cmp four/train.fds seven/train.fds || fail "the data depend on the number of threads"
cmp four/tokenizer.model seven/tokenizer.model || fail "the vocabulary does"
# tags of both sides
expect 0 "$fathom" prepare --pairs pairs.yaml --tokenizer four/tokenizer.model --language-tags source-target --out sides
expect 0 "$fathom" data show sides --as pieces --count 1
grep -q '^__en__ __de__ ' out || fail "the tags of source and target are not before the source: $(cat out)"

# ---- what training logs, and what comes of a model ----

[ "$(grep -c '"type":"valid".*"direction":"de-fr"' four-run/log.jsonl)" -eq 2 ] || fail "de-fr is not in every validation"
[ "$(grep '"type":"valid"' four-run/log.jsonl | grep -vc '"direction"')" -eq 2 ] || fail "not one mean for each validation"
grep '"type":"valid","update":6' four-run/log.jsonl | sed 's/.*"direction".*"nll_loss":\([^,]*\).*/\1/; t; s/.*"nll_loss":\([^,]*\).*/mean \1/' |
    awk '$1 == "mean" { mean = $2; next } { sum += $1; n++ } END { d = sum / n - mean; exit !(n == 12 && d < 1e-9 && d > -1e-9) }' ||
    fail "the validation is not the mean of twelve directions"
cmp four/languages.json four-run/checkpoints/best/languages.json || fail "the model does not know its languages"
expect 0 "$fathom" evaluate four-run four --by direction
[ "$(grep -c ' nll ' out)" -eq 13 ] || fail "not twelve directions and their mean: $(cat out)"
expect 0 "$fathom" evaluate four-run four --by direction --json
grep -q '"de-es": {"nll_loss": ' out || fail "the JSON object has no de-es"
[ "$(grep -c . four-scores/de-fr.hyp)" -le 12 ] && [ "$(grep -c '' four-scores/de-fr.ref)" -eq 12 ] || fail "translations are not beside references"
grep -q '^| en-X | 3 | 36 |' four-scores/scores.md || fail "no mean of en-X: $(cat four-scores/scores.md)"
grep -q '^all,12,144,' four-scores/scores.csv || fail "no mean of all"
grep -q 'es-fr & 1 & 12' four-scores/scores.tex || fail "no LaTeX"
if command -v gnuplot >/dev/null; then grep -q '</svg>' four-scores/bleu.svg || fail "no map"; fi
# a direction's score is that of its files
expect 0 "$fathom" score chrf --ref four-scores/en-de.ref --hyp four-scores/en-de.hyp --width 4
score=$(sed 's/^[^=]* = \([0-9.]*\).*/\1/' out)
grep -q "^en-de,1,12,[^,]*,$score," four-scores/scores.csv || fail "chrF of en-de is not $score: $(cat four-scores/scores.csv)"
expect 0 "$fathom" score bleu --tokenize spm --spm-model four/tokenizer.model --ref four-scores/en-de.ref --hyp four-scores/en-de.hyp --width 4
score=$(sed 's/^[^=]* = \([0-9.]*\) .*/\1/' out)
grep -q "^en-de,1,12,.*,$score\$" four-scores/scores.csv || fail "spBLEU of en-de is not $score: $(cat four-scores/scores.csv)"
# generate gives what directions gives
sed -n 1,12p four/test.src.txt >en
expect 0 "$fathom" generate four-run --target-language de --input en --beam 2 --max-len-a 0.5 --max-len-b 10 --quiet
cmp out four-scores/en-de.hyp || fail "generate and directions do not agree"
expect 0 "$fathom" directions four-run four --sentences 2 --beam 1 --format json --quiet
grep -q '"X-en":{"sentences":6,"directions":3,' out || fail "no X-en in JSON: $(cat out)"

# ---- killed and continued ----

train="$fathom train four --encoder-layers 1 --decoder-layers 1 --d-model 32 --ffn-dim 64 --heads 2 --max-tokens 400 --max-update 40
    --lr 0.01 --warmup-updates 10 --dropout 0.1 --save-interval-updates 7 --validate-interval-updates 14 --keep-last 1 --quiet
    --sampling-temperature 3"
expect 0 $train --save-dir whole --threads 2
$train --save-dir run --threads 2 >out 2>err &
child=$!
while [ ! -e run/checkpoints/last ] && kill -0 $child 2>/dev/null; do sleep 0.05; done
kill -KILL $child 2>/dev/null || true
wait $child 2>/dev/null || true
expect 0 $train --save-dir run --threads 2
cmp whole/checkpoints/last/model.safetensors run/checkpoints/last/model.safetensors || fail "a killed run ends otherwise"
expect 2 $train --save-dir run --sampling-temperature 4
said "sampling-temperature"
# a score while training, over the first sentences of each direction
expect 0 $train --max-update 14 --save-dir scored --validate-score chrf --validate-sentences 2 --validate-beam 1 --best-by score
grep -q '"chrf":' scored/log.jsonl || fail "no score of a validation"

# ---- calls that are wrong ----

refused() { # text, command...
    text=$1
    shift
    expect 2 "$@"
    said "$text"
}
refused "needs --target-language, one of en, de, fr, es" "$fathom" generate four-run --input en
refused "target-language it: is none of en, de, fr, es" "$fathom" generate four-run --input en --target-language it
refused "without tags of the source" "$fathom" generate four-run --input en --target-language de --source-language en
refused "needs --pairs" "$fathom" prepare --train-src en --train-tgt en --language-tags target --out none
refused "cannot be given with --pairs" "$fathom" prepare --train-src en --pairs pairs.yaml --out none
refused "cannot be given with --pairs" "$fathom" prepare --separate --pairs pairs.yaml --out none
refused "has no piece __de__" "$fathom" prepare --pairs pairs.yaml --tokenizer "$here/golden/metric/pieces.model" --out none
expect 0 "$fathom" prepare --train-src en-de/train.en --train-tgt en-de/train.de --valid-src en-de/valid.en --valid-tgt en-de/valid.de \
    --test-src en-de/test.en --test-tgt en-de/test.de --tokenizer four/tokenizer.model --out pair
refused "has one pair of languages" "$fathom" directions four-run pair
refused "has one pair of languages" "$fathom" evaluate four-run pair --by direction
refused "cannot be given with --by direction" "$fathom" evaluate four-run four --by direction --per-word
refused "has one pair of languages" "$fathom" train pair --sampling-temperature 3 --save-dir none
[ ! -e none ] || fail "a folder is left behind"

# ---- data that are wrong or poor ----

sed 's/en-fr/en-xx/g' pairs.yaml >broken.yaml
refused "broken.yaml:5: train of en-fr: no such file: en-xx/train.en" "$fathom" prepare --pairs broken.yaml --out none
head -11 en-de/train.en >short.en
printf -- '- source: en\n  target: de\n  train: [short.en, en-de/train.de]\n' >uneven.yaml
refused "short.en has 11 lines, en-de/train.de has 300" "$fathom" prepare --pairs uneven.yaml --tokenizer four/tokenizer.model --out none
# a tag in the text is left out, and said; ten sentences too; and a direction that is only tested
head -10 en-es/train.es >ten.es
head -10 en-es/train.en | sed '3s/^/Say __de__ here. /' >ten.en
cat >poor.yaml <<'END'
- both: [en, de]
  train: en-de/train.*
  valid: en-de/valid.*
  test: en-de/test.*
- source: en
  target: es
  train: [ten.en, ten.es]
- source: de
  target: es
  test: [de-es/test.de, de-es/test.es]
END
expect 0 "$fathom" prepare --pairs poor.yaml --vocab-size 400 --out poor
said "a language's tag is in their text; the first is ten.en:3"
said "fewer than 100 sentences, too few to learn from: en-es"
said "test: 1 direction without a file, not tested: en-es"
said "train: 1 direction without training text (zero-shot): de-es"
expect 0 "$fathom" data check poor
expect 0 "$fathom" train poor --encoder-layers 1 --decoder-layers 1 --d-model 32 --ffn-dim 64 --heads 2 --max-update 2 --quiet --save-dir poor-run
expect 0 "$fathom" directions poor-run poor --beam 1 --max-len-a 0.5 --quiet
grep -q '^de-es (zero-shot)  *12 ' out || fail "the zero-shot direction is not marked: $(cat out)"
grep -q '^zero-shot  *12 ' out || fail "no mean of zero-shot directions: $(cat out)"
grep -q '^all  *24 ' out || fail "zero-shot directions are in the mean of all: $(cat out)"

# a damaged description
cp -r four damaged
sed 's/"directions": \[300,/"directions": [301,/' four/dataset.json >damaged/dataset.json
expect 2 "$fathom" train damaged --save-dir none
said "directions"
cp four/dataset.json damaged/dataset.json
printf '{"format": "fathom-languages"}' >damaged/languages.json
expect 2 "$fathom" data info damaged
said "languages.json: 'version' is not 1"
echo "test_directions: right"
