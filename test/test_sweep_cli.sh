#!/bin/sh
# Sweeps as a user makes them: stopped, killed and continued they give the same tables; failures are
# results, mistakes are named; every recipe can be read.
. "$(dirname "$0")/common.sh"

# refuses TEXT LINE...: a spec of these lines: exit status 2, one line on standard error with the text
refuses() {
    text=$1
    shift
    printf '%s\n' "$@" >bad.yaml
    expect 2 "$fathom" sweep bad.yaml --dry-run
    [ "$(grep -c '^fathom: ' err)" -eq 1 ] || fail "$*: not one line of error: $(cat err)"
    grep '^fathom: ' err | grep -qF -- "$text" || fail "$*: the error does not say \"$text\": $(cat err)"
}

# ---- recipes ----
for recipe in "$here"/../recipes/tasks/*.yaml; do # options of train
    expect 0 "$fathom" train data --config "$recipe" --dump-config
    grep -qE "^arch: enc(dec)?$" out || fail "$recipe: its options are not those that train takes"
done
for recipe in "$here"/../recipes/cpu/*.yaml "$here"/../recipes/gpu/*.yaml; do
    case $recipe in */base.yaml) continue ;; esac
    expect 0 "$fathom" sweep "$recipe" --dry-run
    [ "$(wc -l <out)" -ge 9 ] || fail "$recipe: hardly any runs"
    [ "$(sed 's/.*--save-dir \([^ ]*\).*/\1/' out | sort -u | wc -l)" -eq "$(wc -l <out)" ] ||
        fail "$recipe: two runs have one folder"
done

# the example of the document
awk '/^```yaml/{on=1; next} /^```/{on=0} on' "$here/../doc/sweep.md" >doc.yaml
expect 0 "$fathom" sweep doc.yaml --dry-run
[ "$(wc -l <out)" -eq 18 ] || fail "the example of doc/sweep.md has $(wc -l <out) runs"

# ---- mistakes ----
refuses 'its grid has 1000000 runs, must be at most 10000' 'data: d' 'seeds: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]' \
    'lr: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]' 'dropout: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]' \
    'heads: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]' 'd-model: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]' \
    'ffn-dim: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]'
refuses 'bad.yaml:2: --lrr: unknown option; did you mean --lr?' 'data: d' 'lrr: 1'
refuses 'bad.yaml:2: --lr fast: must be' 'data: d' 'lr: [0.1, fast]'
refuses 'bad.yaml:2: --strict maybe: must be true or false' 'data: d' 'strict: [true, maybe]'
refuses 'bad.yaml:2: method: there is no method postlm; did you mean postln?' 'data: d' 'method: [preln, postlm]'
refuses 'bad.yaml:3: branchnorm.stepz 5: ' 'data: d' 'method: branchnorm' 'branchnorm.stepz: 5'
refuses 'bad.yaml:3: branchnorm.growth: no run has the method branchnorm' 'data: d' 'method: preln' \
    'branchnorm.growth: exp'
refuses 'names no data' 'lr: 1'
expect 2 "$fathom" sweep no-such.yaml
expect 2 "$fathom" sweep
expect 2 "$fathom" sweep .
printf 'data: nowhere\nlr: [0.1, 0.2]\n' >bad.yaml
expect 2 "$fathom" sweep bad.yaml --out none
grep -q 'bad.yaml:1: nowhere: is no data set' err || fail "a data set that is not there: $(cat err)"
expect 2 "$fathom" sweep bad.yaml --table --out none
grep -q 'has no runs to make tables of' err || fail "tables of nothing: $(cat err)"
[ ! -e none ] || fail "a refused sweep made a folder"

# ---- keys on the command line
printf 'corpus: {pair: en-de}\nprepare: {vocab-size: 100}\nlr: [0.1, 0.2]\nheads: 2\n' >keys.yaml
expect 0 "$fathom" sweep keys.yaml --dry-run --set 'lr=[1, 2, 3]' --set heads=4 --set data=mine --set branchnorm.steps=7
[ "$(wc -l <out)" -eq 3 ] || fail "--set does not change an axis"
[ "$(grep -c 'train mine .*--heads=4 .*steps=7' out)" -eq 3 ] || fail "--set does not change options: $(cat out)"
expect 2 "$fathom" sweep keys.yaml --dry-run --set heads
grep -q -e '--set heads: must be KEY=VALUE' err || fail "--set without a value: $(cat err)"
expect 2 "$fathom" sweep keys.yaml --dry-run --set base=other.yaml
expect 2 "$fathom" sweep keys.yaml --dry-run --set lr=1 --set lr=2
grep -q -e '--set lr=2: lr is set twice' err || fail "a key set twice: $(cat err)"
expect 2 "$fathom" sweep keys.yaml --dry-run --set heads=two
# sets TEXT KEY=VALUE: what is wrong with it is said of --set, not of the file
sets() {
    expect 2 "$fathom" sweep keys.yaml --dry-run --set "$2"
    grep -qF -- "fathom: --set $2: $1" err || fail "--set $2: $(cat err)"
}
sets '--heads two: must be' 'heads=two'
sets '--headds: unknown option; did you mean --heads?' 'headds=2'
sets 'method: there is no method postlm; did you mean postln?' 'method=[postln, postlm]'
sets 'branchnorm.stepz 7: ' 'branchnorm.stepz=7'
sets 'seeds x: must be whole numbers' 'seeds=[1, x]'
sets 'not YAML: ' 'lr=[1'
expect 2 "$fathom" sweep keys.yaml --set data=nowhere --out none
grep -q -e '--set data=nowhere: nowhere: is no data set' err || fail "--set data: $(cat err)"

# ---- a sweep that is never stopped ----
# enough updates to be stopped in; the sanitizers need fewer for that, and the runs some to learn from their sources
updates=400
if sanitized; then updates=120; fi
cat >base.yaml <<END
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
validate-interval-updates: $((updates / 4))
save-interval-updates: $((updates / 4))
keep-last: 1
log-interval: 5
END
cat >tiny.yaml <<END
base: base.yaml
corpus: {pair: en-de, sentences: 400, valid: 30, test: 0, level: simple}
prepare: {vocab-size: 150, max-positions: 64}
method: [branchnorm, postln]
branchnorm.steps: 10
lr: [0.03, 1000]
strict: false
END
expect 0 "$fathom" sweep tiny.yaml --out whole
for file in table.csv table.md table.tex runs.csv; do
    [ -s whole/$file ] || fail "$file is missing"
done
if command -v gnuplot >/dev/null; then
    for file in figure.svg figure.png; do [ -s whole/$file ] || fail "$file is missing"; done
fi
cmp -s out whole/table.md || fail "standard output is not the table"
head -1 whole/table.csv | grep -qx 'method,lr,runs,done,failed,best_mean,best_dev,final_mean,final_dev,failed_last' ||
    fail "head of table.csv"
[ "$(wc -l <whole/table.csv)" -eq 5 ] || fail "table.csv has not four lines"
# a rate of 1000 fails and is a result; 0.03 learns more than the unigrams
[ "$(grep -c ',1000,2,2,2,,,,,[0-9.e+]*$' whole/table.csv)" -eq 2 ] || fail "lr 1000 should fail: $(cat whole/table.csv)"
[ "$(grep -c ',0.03,2,2,0,[0-9.]*,[0-9.]*,[0-9.]*,[0-9.]*,$' whole/table.csv)" -eq 2 ] ||
    fail "lr 0.03 should not fail: $(cat whole/table.csv)"
[ "$(wc -l <whole/runs.csv)" -eq 9 ] || fail "runs.csv has not eight lines"

# finished runs are not repeated, and a new seed is only its own runs
cksum whole/runs/*/log.jsonl >before
expect 0 "$fathom" sweep tiny.yaml --out whole
cksum whole/runs/*/log.jsonl | cmp -s before - || fail "a finished run was repeated"
sed 's/vocab-size: 150/vocab-size: 160/' tiny.yaml >other.yaml
expect 2 "$fathom" sweep other.yaml --out whole
grep -q 'whole: is another sweep: prepare was' err || fail "other data were not refused: $(cat err)"

# ---- another sweep is not made into this folder, nor are its tables ----
cksum whole/table.csv >before
expect 2 "$fathom" sweep tiny.yaml --out whole --set 'lr=[0.03]'
grep -qF 'whole: is another sweep: lr was ["0.03","1000"] there and is ["0.03"] here' err || fail "$(cat err)"
expect 2 "$fathom" sweep tiny.yaml --out whole --table --set 'lr=[0.03, 1000, 5]'
grep -q 'whole: is another sweep: lr was' err || fail "$(cat err)"
cksum whole/table.csv | cmp -s before - || fail "a refused sweep wrote its table"
expect 0 "$fathom" sweep tiny.yaml --out whole --table

# ---- a short run has not failed for being short ----
expect 0 "$fathom" sweep tiny.yaml --out short --set max-update=20 --set lr=0.0001 --set validate-interval-updates=10 --set seeds=1
[ "$(grep -c ',1,1,0,[0-9.]*,,[0-9.]*,,$' short/table.csv)" -eq 2 ] || fail "a short run has failed: $(cat short/table.csv)"

# ---- the same, killed, then stopped, then continued ----
# starts PATTERN: the sweep goes on in the background until a run has logged a line with the pattern anew
starts() {
    had=$(cat cut/runs/*/log.jsonl 2>/dev/null | grep -c "$1" || true)
    "$fathom" sweep tiny.yaml --out cut >out 2>err &
    pid=$!
    for _ in $(seq 600); do
        [ "$(cat cut/runs/*/log.jsonl 2>/dev/null | grep -c "$1" || true)" -gt "$had" ] && return
        kill -0 $pid 2>/dev/null || fail "the sweep ended by itself: $(cat err)"
        sleep 0.1
    done
    fail "the sweep did not come to: $1"
}
starts '"type":"checkpoint"'
kill -KILL $pid
wait $pid 2>/dev/null || true
# its runs were told to save and to end; the next sweep would wait for them
timeout 60 flock cut/.runs.lock true || fail "runs outlive a sweep that was killed"
starts '"type":"checkpoint"'
kill -INT $pid
status=0
wait $pid || status=$?
[ $status -eq 130 ] || fail "SIGINT: exit status $status, not 130: $(cat err)"
grep -q 'the same command goes on from here' err || fail "SIGINT: $(cat err)"
[ "$(cat cut/runs/*/log.jsonl | grep -cE '"type":"(end|diverged)"')" -lt 8 ] || fail "stopped too late to test anything"
expect 1 sh -c "exec 9>>cut/.sweep.lock; flock 9; '$fathom' sweep tiny.yaml --out cut"
grep -q 'another fathom sweep works there' err || fail "two sweeps at once: $(cat err)"
expect 0 "$fathom" sweep tiny.yaml --out cut
for file in table.csv table.md table.tex runs.csv; do
    cmp whole/$file cut/$file || fail "$file differs after stops"
done

# ---- a run that cannot be made does not stop the others; tables of what is there ----
cat >mixed.yaml <<END
base: base.yaml
data: whole/data
seeds: 1
heads: [3, 2]
max-update: 5
END
expect 1 "$fathom" sweep mixed.yaml --out mixed
grep -q '1 of 2 runs could not be made' err || fail "mixed: $(cat err)"
grep -q '^2,1,1,' mixed/table.csv || fail "mixed: $(cat mixed/table.csv)"
grep -q '^3,1,0,0' mixed/table.csv || fail "mixed: $(cat mixed/table.csv)"
expect 0 "$fathom" sweep mixed.yaml --out mixed --table
cmp -s out mixed/table.md || fail "--table"
