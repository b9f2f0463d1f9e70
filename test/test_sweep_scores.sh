#!/bin/sh
# Sweeps go from training to scores: means of checkpoints, translations, BLEU, perplexity, and whether a row
# differs from its baseline by chance. Numbers are those of the verbs called by hand.
. "$(dirname "$0")/common.sh"

updates=60
cat >tiny.yaml <<END
corpus: {pair: en-de, sentences: 300, valid: 20, test: 20, level: simple}
prepare: {vocab-size: 150, max-positions: 64}
seeds: [1, 2]
jobs: 2
threads: 1
device: cpu
encoder-layers, decoder-layers: 1
d-model: 16
ffn-dim: 32
heads: 2
max-positions: 64
max-tokens: 300
max-update: $updates
warmup-updates: 5
lr: 0.01
validate-interval-updates: $((updates / 3))
save-interval-updates: $((updates / 3))
keep-last: 3
method: [postln, preln]
average: 2
generate: {beam: 2, max-len-b: 20}
score.test: {metric: bleu, smooth-method: add-k}
score.letters: {metric: chrf}
evaluate.valid: {split: valid}
baseline: {method: postln}
END

# number NAME COLUMN FILE: the first value of a column of a table
column() {
    awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
        NR == '"$1"' { print $at }' "$3"
}
# same A B: two numbers, to what a table shows
same() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a - b < 1e-5 * (1 + b) && b - a < 1e-5 * (1 + b)) }'
}
# value KEY: of a JSON object on standard input
value() {
    tr ',{}' '\n\n\n' | sed -n "s/^ *\"$1\": *\\([-0-9.e+]*\\).*/\\1/p" | tail -1
}

expect 0 "$fathom" sweep tiny.yaml --out whole
run=$(ls -d whole/runs/method=preln_seed=2-*)
expect 0 "$fathom" average "$run" --last 2 --out mean
expect 0 "$fathom" generate mean --input whole/text/test.en --beam 2 --max-len-b 20 --output hyp
expect 0 "$fathom" score bleu --smooth-method add-k --ref whole/text/test.de --hyp hyp --json
same "$(column 5 test whole/runs.csv)" "$(value score <out)" || fail "BLEU of a run is not that of its mean"
expect 0 "$fathom" score chrf --ref whole/text/test.de --hyp hyp --json
same "$(column 5 letters whole/runs.csv)" "$(value score <out)" || fail "chrF of a run is not that of its mean"
expect 0 "$fathom" evaluate mean whole/data --json
same "$(column 5 valid whole/runs.csv)" "$(value ppl <out)" || fail "perplexity of a run is not that of its mean"
[ "$(column 2 test_p whole/table.csv)" = "" ] || fail "the baseline has a p of its own"

# the p of the second row: all seeds of both, one after the other
for seed in 1 2; do
    cat whole/runs/method=postln_seed=$seed-*/measures/????????.txt >>base.txt
    cat whole/runs/method=preln_seed=$seed-*/measures/????????.txt >>other.txt
    cat whole/text/test.de >>refs.txt
done
expect 0 "$fathom" score bleu --smooth-method add-k --ref refs.txt --hyp base.txt --hyp other.txt --paired --json
same "$(column 3 test_p whole/table.csv)" "$(value p_exchanged <out)" || fail "p is not that of score --paired"
[ ! -e whole/paired/texts ] || fail "the texts of a test were left behind"

# another way to score has a p of its own
expect 0 "$fathom" sweep tiny.yaml --out whole --set 'score.test={metric: bleu, tokenize: char}'
expect 0 "$fathom" score bleu --tokenize char --ref refs.txt --hyp base.txt --hyp other.txt --paired --json
same "$(column 3 test_p whole/table.csv)" "$(value p_exchanged <out)" || fail "p is that of another score"
expect 0 "$fathom" sweep tiny.yaml --out whole

# killed and continued at any moment, the tables are the same
: >moments
for moment in 0.4 0.9 1.5 2.2 3; do
    timeout -s KILL $moment "$fathom" sweep tiny.yaml --out broken --quiet >/dev/null 2>&1 || echo $moment >>moments
done
[ -s moments ] || fail "no sweep was killed"
expect 0 "$fathom" sweep tiny.yaml --out broken
for file in table.csv table.md table.tex runs.csv; do
    cmp whole/$file broken/$file || fail "$file differs after kills"
done

# a row made again has the same numbers; one that was changed has not
expect 0 "$fathom" sweep --verify broken/table.csv --row 2
[ "$(grep -c ', the same$' out)" -eq 10 ] || fail "--verify: $(cat out)"
expect 2 "$fathom" sweep --verify broken/table.csv --row 3
grep -q -e '--row 3: the table has rows 1 to 2' err || fail "--row: $(cat err)"
for file in broken/runs/method=preln_seed=1-*/measures/test-*.json; do
    sed 's/"score": *[0-9.]*/"score": 77/' "$file" >changed && cp changed "$file"
done
expect 1 "$fathom" sweep --verify broken/table.csv --row 2
grep -q 'more than --tolerance 0' err || fail "--verify of a changed score: $(cat err)"

# how long it takes is known before it starts
expect 0 "$fathom" sweep tiny.yaml --out later --budget
grep -q '^4 runs, about .* 2 at a time' out || fail "--budget: $(cat out)"
[ ! -e later/runs ] || fail "--budget made runs"

# what is measured may change; the trainings stay
before=$(stat -c '%n %y' whole/runs/*/checkpoints/*/model.safetensors)
expect 0 "$fathom" sweep tiny.yaml --out whole --set 'generate={beam: 1, max-len-b: 20}'
[ "$before" = "$(stat -c '%n %y' whole/runs/*/checkpoints/*/model.safetensors)" ] || fail "runs were trained again"
cmp -s whole/runs.csv broken/runs.csv && fail "another beam changed nothing"

# mistakes
wrong() { # text, KEY=VALUE
    expect 2 "$fathom" sweep tiny.yaml --dry-run --set "$2"
    grep -qF -- "$1" err || fail "--set $2: $(cat err)"
}
wrong 'score.x: must have ref: FILE' 'score.x={input: a}'
wrong 'score.x: must have input: FILE' 'score.x={ref: a}'
wrong 'must have a name of letters' 'score.a b={metric: chrf}'
wrong 'there is another measure test' 'evaluate.test={split: valid}'
wrong 'baseline: no run has method=admin' 'baseline={method: admin}'
wrong 'average 0: must be a whole number from 1 to 1024' 'average=0'

# a text that is not there: the run says so, the sweep ends with status 1
expect 1 "$fathom" sweep tiny.yaml --out whole --set 'score.x={input: nowhere.en, ref: nowhere.de}'
grep -q 'nowhere.en' err || fail "a missing text: $(cat err)"
