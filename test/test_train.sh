#!/bin/sh
# Runs as a user makes them: training, exact resume after every kind of end, damaged checkpoints,
# divergence, generation; and what bad input gets.
. "$(dirname "$0")/common.sh"

# refuses STATUS TEXT COMMAND...: one line on standard error, which has the text
refuses() {
    want=$1 text=$2
    shift 2
    expect "$want" "$@"
    [ "$(grep -c '^fathom: ' err)" -eq 1 ] || fail "$*: not one line of error: $(cat err)"
    grep '^fathom: ' err | grep -qF -- "$text" || fail "$*: the error does not say \"$text\": $(cat err)"
}

# await FILE: waits a minute for it at most
await() {
    tries=0
    while [ ! -e "$1" ] && [ $tries -lt 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}

expect 0 "$fathom" corpus --pair en-de --out text --sentences 600 --valid 40 --test 20 --level simple
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de \
    --valid-src text/valid.en --valid-tgt text/valid.de --vocab-size 200 --out data
model="--encoder-layers 2 --decoder-layers 2 --d-model 16 --ffn-dim 32 --heads 2 --max-positions 64"
train="$fathom train data $model --method branchnorm --method-option steps=20 --max-tokens 300 \
    --max-update 30 --warmup-updates 5 --lr 0.01 --log-interval 5 --dropout 0.1 --update-freq 2 \
    --save-interval-updates 7 --validate-interval-updates 14 --threads 2 --device cpu --keep-last 2"
last=checkpoints/last/model.safetensors

# ---- a run that is never stopped, and what lies in its folder ----
expect 0 $train --save-dir whole
[ "$(readlink whole/checkpoints/last)" = step-00000030 ] || fail "last does not point to the last checkpoint"
[ -e whole/checkpoints/best/config.json ] || fail "best is missing"
[ "$(ls -d whole/checkpoints/step-* | wc -l)" -le 3 ] || fail "--keep-last 2 kept more"
for file in config.json model.safetensors tokenizer.model optimizer.safetensors state.json; do
    [ -s "whole/checkpoints/last/$file" ] || fail "$file is missing in a checkpoint"
done
for type in start train valid checkpoint end; do
    grep -q "^{\"type\":\"$type\"" whole/log.jsonl || fail "log.jsonl has no $type line"
done
expect 0 "$fathom" train data --config whole/config.yaml --save-dir again
cmp -s whole/$last again/$last || fail "config.yaml does not give the same run"

# ---- the last update is validated, whenever checkpoints are due ----
expect 0 $train --save-dir judged --max-update 14 --validate-interval-updates 10
grep -q '^{"type":"valid","update":14' judged/log.jsonl || fail "the last update was not validated"
[ -e judged/checkpoints/best/config.json ] || fail "a run without a validation in between has no best"
lines=$(wc -l < judged/log.jsonl)
expect 0 $train --save-dir judged --max-update 14 --validate-interval-updates 10
[ "$(grep -c '"valid"' judged/log.jsonl)" -eq 2 ] || fail "a finished run was validated again"
[ "$(wc -l < judged/log.jsonl)" -eq $((lines + 2)) ] || fail "a finished run did more than begin and end"

# ---- patience: that many validations without a better score, and no more ----
expect 0 $train --save-dir patient --lr 1e-30 --warmup-updates 0 --patience 2 --validate-interval-updates 3
# only the method's steps change it: the last better score is that of update 21
grep -q '"best_update": *21,' patient/checkpoints/last/state.json || fail "$(grep best_update patient/checkpoints/last/state.json)"
grep -q '"update": *27,' patient/checkpoints/last/state.json || fail "--patience 2: $(grep '"update"' patient/checkpoints/last/state.json)"

# ---- a limit that the run is beyond ----
expect 0 $train --save-dir judged --max-update 9 --validate-interval-updates 10
grep -q 'judged is already at update 14, beyond --max-update 9; nothing is left to train' err ||
    fail "a lowered --max-update: $(cat err)"
! grep -q '14/9' err || fail "more updates than there are: $(cat err)"

# ---- nobody else in the folder, and nothing lost in it ----
$train --save-dir busy --max-update 100000 > /dev/null 2>&1 &
child=$!
await busy/checkpoints/last
refuses 1 "another training writes it" $train --save-dir busy --max-update 100000
kill -TERM $child
wait $child || true
refuses 2 "must name a folder" $train --save-dir ""
refuses 2 "is a checkpoint of a training" "$fathom" fold whole/checkpoints/last --out whole/checkpoints/last
refuses 2 "is a checkpoint of a training" "$fathom" average whole/checkpoints/last --out whole/checkpoints/last
[ -s whole/checkpoints/last/state.json ] || fail "a checkpoint lost its state"
refuses 2 "restore-file" $train --save-dir whole --restore-file again/checkpoints/last

# ---- text that another tokenizer has cut, or none that is there ----
expect 0 "$fathom" prepare --train-src text/train.de --train-tgt text/train.en \
    --valid-src text/valid.de --valid-tgt text/valid.en --vocab-size 200 --model-type unigram --out unigrams
refuses 2 "unigrams: was cut into tokens by another tokenizer than that of whole/checkpoints/last" \
    "$fathom" evaluate whole/checkpoints/last unigrams
refuses 2 "another tokenizer than that of" \
    "$fathom" probe gradnorm whole/checkpoints/last --data unigrams --sentences 5 --out x.csv
expect 0 "$fathom" train unigrams --config whole/config.yaml --save-dir other-words --max-update 1 \
    --restore-file whole/checkpoints/last
grep -q 'another tokenizer than that of' err || fail "weights of another tokenizer: $(cat err)"
cp -r data moved
expect 0 "$fathom" train moved --config whole/config.yaml --save-dir again --max-update 31
cp unigrams/* moved
refuses 2 "is not the data set that again was begun with" \
    "$fathom" train moved --config whole/config.yaml --save-dir again --max-update 32
cp data/* moved
head -c 100 data/tokenizer.model > moved/tokenizer.model
refuses 2 "tokenizer.model: its hash is" \
    "$fathom" train moved --config whole/config.yaml --save-dir new
rm moved/tokenizer.model
refuses 2 "moved/tokenizer.model" "$fathom" train moved --config whole/config.yaml --save-dir new

# ---- generation into what is there already ----
echo old > target
ln -s target link
mkfifo pipe
cat pipe > got &
expect 0 "$fathom" generate whole/checkpoints/last --input text/test.en --output pipe
wait $!
expect 0 "$fathom" generate whole/checkpoints/last --input text/test.en --output link
[ -p pipe ] && [ -L link ] || fail "generate put a file in the place of a pipe or a link"
[ -s got ] && cmp -s got target || fail "a pipe or a link got other text"

# ---- stopped and gone on: the same bits ----
expect 0 $train --save-dir cut --max-update 11
expect 0 $train --save-dir cut
cmp -s whole/$last cut/$last || fail "a run in two parts has other weights"
cmp -s whole/checkpoints/last/optimizer.safetensors cut/checkpoints/last/optimizer.safetensors ||
    fail "a run in two parts has other moments"
[ "$(ls whole/checkpoints)" = "$(ls cut/checkpoints)" ] || fail "a run in two parts has other checkpoints: $(ls cut/checkpoints)"
expect 0 $train --save-dir half --precision bf16
expect 0 $train --save-dir half-cut --precision bf16 --max-update 11
expect 0 $train --save-dir half-cut --precision bf16
cmp -s half/$last half-cut/$last || fail "a run in two parts in bf16 has other weights"
expect 0 "$fathom" evaluate half/checkpoints/last data --precision bf16

slow="$train --save-dir slow --max-update 100000 --save-interval-updates 3"
for signal in INT TERM HUP KILL; do
    rm -rf slow
    # the shell ignores SIGINT for what it starts in the background
    env --default-signal=INT $slow > out 2> err &
    child=$!
    await slow/checkpoints/last
    kill -$signal $child
    status=0
    wait $child || status=$?
    case $signal in INT) want=130 ;; TERM | HUP) want=143 ;; KILL) want=137 ;; esac
    [ $status -eq $want ] || fail "after SIG$signal: exit status $status, not $want"
    rm -rf direct
    at=$(grep -o '"update": *[0-9]*' slow/checkpoints/last/state.json | head -1 | tr -dc 0-9)
    expect 0 $train --save-dir slow --max-update $((at + 4)) --save-interval-updates 3
    expect 0 $train --save-dir direct --max-update $((at + 4))
    cmp -s slow/$last direct/$last || fail "after SIG$signal at update $at the weights differ"
done

# ---- an update of minutes is not waited for, and leaves no trace ----
long="$train --save-dir lasting --update-freq 30000 --max-tokens 60 --log-interval 1"
$long > out 2> err &
child=$!
await lasting/log.jsonl
tries=0
while ! grep -q '"type":"start"' lasting/log.jsonl && [ $tries -lt 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
sleep 1
kill -TERM $child
status=0
wait $child || status=$?
[ $status -eq 143 ] || fail "SIGTERM in an update: exit status $status: $(cat err)"
grep -q 'stopped by a signal at update 0' err || fail "an update was not dropped: $(cat err)"
[ "$(readlink lasting/checkpoints/last)" = step-00000000 ] || fail "no checkpoint at SIGTERM in an update"

# ---- a run whose folder goes away ends, and a pipe is not waited for ----
$train --save-dir gone --max-update 100000 > out 2> err &
child=$!
await gone/checkpoints/last
mv gone gone-away
status=0
wait $child || status=$?
[ $status -eq 1 ] || fail "a run whose folder was moved: exit status $status"
grep -q '^fathom: gone: was removed or moved while training wrote there' err || fail "not said: $(cat err)"
[ ! -e gone ] || fail "a run made its folder again: $(ls gone)"
mkdir pipes
cp whole/checkpoints/best/* pipes/
rm pipes/config.json
mkfifo pipes/config.json
refuses 2 'pipes/config.json: is a pipe and must be a file' timeout 10 "$fathom" evaluate pipes data
refuses 2 'pipes/config.json: is a pipe and must be a file' timeout 10 "$fathom" train data --config pipes/config.json
for layers in 100000 1000; do # more than there is: said at once
    refuses 1 "a model of $layers encoder and $layers decoder layers, width 4096, has more than" timeout 20 \
        $train --save-dir bad --encoder-layers $layers --decoder-layers $layers --d-model 4096 --ffn-dim 100000
done
refuses 2 '--warmup-updates 9223372036854775807: must be' $train --save-dir bad --warmup-updates 9223372036854775807

# ---- what a killed process left is cleared ----
: > whole/config.yaml.tmp-4711-0
mkdir whole/.start.tmp-4711-0
expect 0 $train --save-dir whole
[ ! -e whole/config.yaml.tmp-4711-0 ] && [ ! -e whole/.start.tmp-4711-0 ] || fail "left: $(ls -A whole)"

# ---- a damaged checkpoint: warned of, the one before it is used ----
cp -r cut hurt
printf 'x' | dd of=hurt/checkpoints/step-00000030/model.safetensors bs=1 seek=3000 conv=notrunc 2> /dev/null
expect 0 $train --save-dir hurt
grep -qi 'warning.*step-00000030' err || fail "no warning of a damaged checkpoint"
cmp -s whole/$last hurt/$last || fail "a run from the checkpoint before has other weights"

# ---- sentences that are too long: left out and counted, or an error ----
expect 0 $train --save-dir brief --max-positions 12 --max-update 3
grep -q 'warning.* of .* training sentences are longer than --max-positions 12' err ||
    fail "sentences are left out in silence: $(cat err)"
refuses 2 '--max-positions 12' $train --save-dir bad --max-positions 12 --strict

# ---- memory: what was planned is what is taken (sanitizers take their own) ----
within() { # JSON of fathom bench on standard input
    awk -F '[:,]' '{ for (i = 1; i < NF; i++) { if ($i ~ /peak_bytes/) p = $(i + 1); if ($i ~ /planned_bytes/) q = $(i + 1) }
        exit !(p > 0.95 * q && p < 1.05 * q) }'
}
sanitized ||
    "$fathom" bench train --encoder-layers 12 --decoder-layers 12 --d-model 128 --ffn-dim 256 --heads 2 --updates 1 --json | within ||
    fail "the peak of memory is not within 5 % of the plan"

# ---- other ends ----
# what a run goes on with is compared with its checkpoint, whatever has become of config.yaml
refuses 2 'cut: the run was begun with --d-model 16, now it is 32' $train --save-dir cut --d-model 32
rm cut/config.yaml
for option in 'heads 4:2' 'activation gelu:relu' 'seed 7:1' 'dropout 0.2:0.1' 'max-tokens 200:300' 'method-option growth=exp:[steps=20]'; do
    old=${option#*:} option=${option%:*}
    # shellcheck disable=SC2086
    refuses 2 "begun with --${option%% *} $old, now it is" $train --save-dir cut --$option
done
refuses 2 "begun with --best-by not set, now it is" $train --save-dir cut --validate-score bleu --best-by score
[ ! -e cut/config.yaml ] || fail "a refused call wrote config.yaml"
expect 0 $train --save-dir cut --max-update 31 --lr 0.02
grep -q 'cut goes on with --lr 0.02 (was 0.01), --max-update 31 (was 30)' err || fail "what changed is not said: $(cat err)"
[ -s cut/config.yaml ] || fail "config.yaml is not there again"
expect 0 $train --save-dir cut --max-update 32 --lr-scheduler polynomial --power 2 # all of a schedule may change
grep -q -e '--power 2 (was not set)' err || fail "what changed is not said: $(cat err)"
refuses 2 "--layer-norm-eps 3: must be a number above 0 and below 1" $train --save-dir bad --layer-norm-eps 3
expect 3 $train --save-dir wild --lr 1e30 --max-update 30
grep -q 'diverged at update' err || fail "divergence is not reported: $(cat err)"
grep -q 'layer' err || fail "the report names no sub-layer: $(cat err)"
grep -q '"type":"diverged"' wild/log.jsonl || fail "log.jsonl has no diverged line"
expect 3 $train --save-dir idle --lr 1e-9 --judge-after 10
grep -q 'unigram' err || fail "a run that learns nothing is not reported: $(cat err)"
# too short to have learned, and yet far worse than it began, with and without text to validate with
expect 3 $train --save-dir wrecked --lr 1e4 --warmup-updates 0
grep -q 'the final nll .* is more than twice that of the first update' err || fail "a wrecked run: $(cat err)"
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de --tokenizer data/tokenizer.model --out blind
refuses 2 "--patience 1: needs validations, and blind has no split 'valid'" \
    "$fathom" train blind --config whole/config.yaml --save-dir bad --patience 1
expect 3 "$fathom" train blind --config whole/config.yaml --save-dir wrecked-blind --lr 1e4 --warmup-updates 0
grep -q 'more than twice' wrecked-blind/diverged.json || fail "a wrecked run without validation has no report"
expect 3 $train --save-dir sudden --lr 1e38 --warmup-updates 0
grep -q 'There is no checkpoint yet' err || fail "a checkpoint that is not there is kept: $(cat err)"
# a validation set of one sentence has no other sources to compare with
head -1 text/valid.en > one.en
head -1 text/valid.de > one.de
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de --valid-src one.en --valid-tgt one.de \
    --tokenizer data/tokenizer.model --out single
expect 0 "$fathom" train single --config whole/config.yaml --save-dir single-run --judge-after 200 --max-update 200 \
    --dropout 0 --quiet
# the budget is of validation and telemetry too
expect 0 $train --save-dir unlimited --max-update 1 --telemetry 1 --max-positions 4000
needs() { sed -n 's/.*"planned_bytes": *\([0-9]*\).*/\1/p' "$1/log.jsonl" | head -1; }
budget=$(($(needs unlimited) - 1000))
expect 0 $train --save-dir limited --max-update 1 --telemetry 1 --max-positions 4000 --memory-budget $budget
[ "$(needs limited)" -le $budget ] || fail "$(needs limited) bytes are planned, the budget is $budget"
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked && chmod 555 locked
    refuses 1 locked $train --save-dir locked/run
fi

# ---- the trained model ----
expect 0 "$fathom" evaluate whole/checkpoints/best data
grep -q '^valid: nll [0-9.]*, ppl' out || fail "evaluate prints no loss"
expect 0 "$fathom" evaluate whole/checkpoints/best data --json
head -5 text/test.en > five
printf 'two\n\nthree\n' > three
expect 0 "$fathom" generate whole/checkpoints/best --input three --beam 2 --quiet
[ "$(wc -l < out)" -eq 3 ] || fail "not one line of output for each line of input"
[ -z "$(sed -n 2p out)" ] || fail "an empty line has a translation"
expect 0 "$fathom" generate whole/checkpoints/best --input three --beam 3 --nbest 2 --quiet
[ "$(wc -l < out)" -eq 6 ] && [ -z "$(sed -n '3p;4p' out)" ] || fail "--nbest 2 does not print two lines for each"
expect 0 "$fathom" generate whole/checkpoints/best --input three --beam 2 --quiet
"$fathom" generate whole/checkpoints/best --beam 2 --quiet < three | cmp -s - out || fail "standard input differs"
expect 0 "$fathom" generate whole/checkpoints/best --input five --beam 3 --nbest 2 --format fairseq --quiet
[ "$(grep -c '^H-' out)" -eq 10 ] || fail "fairseq's format has not two hypotheses a line"
expect 0 "$fathom" generate whole/checkpoints/best --input five --format jsonl --quiet
[ "$(grep -c '"token_logp"' out)" -eq 5 ] || fail "JSON lines are wrong"
for batch in 1 3; do
    "$fathom" generate whole/checkpoints/best --input five --batch $batch --quiet > by-$batch 2> /dev/null
done
cmp -s by-1 by-3 || fail "the result depends on the batch size"
expect 0 "$fathom" fold whole/checkpoints/best --out folded
"$fathom" generate folded --input five --batch 1 --quiet | cmp -s - by-1 || fail "the folded model differs"
expect 0 "$fathom" average whole/checkpoints/last whole/checkpoints/best --out mean
expect 0 $train --save-dir tuned --restore-file whole/checkpoints/best --max-update 3
grep -q '"alpha":1[,}]' tuned/log.jsonl || fail "fine-tuning does not use the schedule's end"

# ---- weights that are not finite: the last number of the last tensor ----
mkdir nan
cp whole/checkpoints/best/config.json whole/checkpoints/best/tokenizer.model nan
{ head -c -4 whole/checkpoints/best/model.safetensors && printf '\377\377\377\377'; } > nan/model.safetensors
for how in '--beam 1' '--beam 3' '--sampling --beam 2' '--beam 20'; do
    # shellcheck disable=SC2086
    refuses 1 'logits that are not finite' "$fathom" generate nan --input five $how --quiet
    [ ! -s out ] || fail "a model that is not finite gives text: $(cat out)"
done
refuses 1 'logits that are not finite' "$fathom" generate whole/checkpoints/best nan --input five --quiet
for verb in "evaluate nan data" "generate nan --input five"; do
    # shellcheck disable=SC2086
    refuses 1 'nan: encoder.layers.1.self_attn_layer_norm.weight[15] is nan: --quantize int8 needs' "$fathom" $verb --quantize int8
done
expect 0 "$fathom" evaluate nan data --json
grep -q '"nll_loss": "nan", "ppl": "nan", "tokens": ' out || fail "no JSON: $(cat out)"
expect 0 "$fathom" evaluate nan data
grep -q '^valid: nll nan, ppl nan per' out || fail "no nan: $(cat out)"
refuses 3 ': loss nan, gradient norm nan are not finite' "$fathom" trace "$here/golden/trace/postln-encdec" \
    --batch "$here/golden/trace/postln-encdec/batch.safetensors" --steps 3 --lr 1e38 --warmup-updates 0 --out x.st
expect 0 "$fathom" generate whole/checkpoints/best --input five --beam 1 --quiet
mv out greedy
expect 0 "$fathom" generate whole/checkpoints/best --input five --beam 1 --sampling --temperature 1e-38 --quiet
cmp -s out greedy || fail "a temperature of 1e-38 is not greedy"

# ---- a call that is refused holds nobody to its options ----
refuses 2 "--restore-file $here/golden/trace/postln-encdec: its parameters are not those" $train --save-dir late \
    --restore-file "$here/golden/trace/postln-encdec" --max-update 3
refuses 2 'no sentence is short enough' $train --save-dir late --max-positions 2
expect 0 $train --save-dir late --restore-file whole/checkpoints/best --max-update 3
refuses 2 'the run was begun with --restore-file whole/checkpoints/best, now it is ""' $train --save-dir late --max-update 3

# ---- every method trains from the command line ----
for method in $("$fathom" methods | awk 'NR > 1 && NF > 2 && $2 ~ /yes|no/ { print $1 }'); do
    expect 0 "$fathom" train data $model --method "$method" --max-tokens 300 --max-update 2 --save-dir "m-$method" \
        --threads 1 --device cpu --quiet
done
[ -d m-realformer ] && [ -d m-admin ] || fail "methods are missing in the list"

# ---- what bad input gets ----
refuses 2 'nothing-here' "$fathom" train nothing-here
refuses 2 '--threads 0' $train --save-dir bad --threads 0
refuses 2 'heads' $train --save-dir bad --heads 3
refuses 2 '--encoder-layers 0' $train --save-dir bad --encoder-layers 0
refuses 2 '--lr -1' $train --save-dir bad --lr -1
refuses 2 '--lr abc' $train --save-dir bad --lr abc
refuses 2 'did you mean --max-tokens?' $train --save-dir bad --max-token 3
refuses 2 'did you mean "branchnorm"?' $train --save-dir bad --method branchnrom
refuses 2 'did you mean "steps"? (fathom methods branchnorm lists all)' $train --save-dir bad --method-option stepz=5
refuses 2 'method preln takes no options' "$fathom" train data $model --save-dir bad --method preln --method-option steps=5
refuses 2 'did you mean "branchnorm"?' "$fathom" methods branchnrom
refuses 2 'growth' $train --save-dir bad --method-option growth=cubic
refuses 2 '--arch enc' "$fathom" train data --arch enc --save-dir bad
refuses 1 '--memory-budget' $train --save-dir bad --memory-budget 10K
refuses 2 'no sentence is short enough for --max-positions 2' $train --save-dir bad --max-positions 2
refuses 2 'nothing-here' "$fathom" generate nothing-here --input five
refuses 2 'nothing-here' "$fathom" generate whole/checkpoints/best --input nothing-here
printf 'ab\377\n' > latin
refuses 2 'latin:1' "$fathom" generate whole/checkpoints/best --input latin --on-bad-line stop
refuses 2 '--nbest 3' "$fathom" generate whole/checkpoints/best --input five --nbest 3 --beam 2
for option in '--sampling-topk 5' '--sampling-topp 0.9' '--temperature 0.7' '--seed 3'; do
    refuses 2 "$option: needs --sampling" "$fathom" generate whole/checkpoints/best --input five $option
done
expect 0 "$fathom" generate whole/checkpoints/best --input five --sampling --temperature 0.7 --seed 3
"$fathom" generate --dump-config > generate.yaml
expect 0 "$fathom" generate whole/checkpoints/best --config generate.yaml --input five
refuses 2 '--min-len 9: must be at most --max-len-b 8' "$fathom" generate whole/checkpoints/best --input five \
    --min-len 9 --max-len-b 8
refuses 2 '--min-len 64: must be below the model'"'s max_positions 64" "$fathom" generate whole/checkpoints/best \
    --input five --min-len 64
for option in '--tokens-per-sample 32' '--context-window 8'; do
    refuses 2 "$option: is for dec models" "$fathom" evaluate whole/checkpoints/best data $option
done
refuses 2 '--out' "$fathom" fold whole/checkpoints/best
refuses 2 'preln' "$fathom" fold m-preln/checkpoints/last --out x
# ---- models and tokenizers that do not belong together ----
refuses 2 'postln-enc: an encoder-only model (arch enc) cannot generate' "$fathom" generate "$here/golden/trace/postln-enc" \
    --input five
sed 's/"unk": 3/"unk": 4/' whole/checkpoints/best/config.json > other.json
expect 0 "$fathom" init --config other.json --out other
refuses 2 'other: unk is 4, that of whole/checkpoints/best is 3' "$fathom" generate whole/checkpoints/best other --input five
sed 's/"\(...\)_vocab": 200/"\1_vocab": 199/' whole/checkpoints/best/config.json > other.json
rm -r other
expect 0 "$fathom" init --config other.json --out other
refuses 2 'other: src_vocab is 199, that of whole/checkpoints/best is 200' "$fathom" generate whole/checkpoints/best other \
    --input five
cp whole/checkpoints/best/tokenizer.model other
refuses 2 'other: its source tokenizer has 200 ids, the source vocabulary of its model 199' "$fathom" generate other --input five
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de --vocab-size 150 --out smaller
cp whole/checkpoints/best/*.safetensors whole/checkpoints/best/config.json other
mv other/tokenizer.model other/tokenizer.tgt.model
cp smaller/tokenizer.model other/tokenizer.src.model
refuses 2 'other: its source tokenizer has 150 ids, the source vocabulary of its model 200' "$fathom" generate other --input five
{ echo short; seq -s ' ' 200; } > long
refuses 2 'long:2: has ' "$fathom" generate whole/checkpoints/best --input long --strict
refuses 2 'standard input:2: has ' sh -c "'$fathom' generate whole/checkpoints/best --strict < long"
if "$fathom" train data --device cuda --save-dir bad 2> err; then :; else grep -q cuda err || fail "--device cuda: $(cat err)"; fi
head -c 1000 whole/checkpoints/best/model.safetensors > short
mkdir stub && cp whole/checkpoints/best/config.json stub/ && mv short stub/model.safetensors
refuses 2 'model.safetensors' "$fathom" generate stub --input five
[ ! -e bad/checkpoints/last ] || fail "a refused run left a checkpoint"
