#!/bin/sh
# What people type and expect: the names of other programs, a run where a model is asked for, and messages that help.
. "$(dirname "$0")/common.sh"

says() {
    grep -qF -- "$2" "$1" || fail "not found: $2: $(cat "$1")"
}

# ---- names of other programs ----
hint() {
    text=$1
    shift
    expect 2 "$fathom" "$@"
    says err "$text"
}
hint 'did you mean --max-tokens, which counts tokens?' train data --batch-size 32
hint 'did you mean --batch?' generate model --batch-size 32
hint 'did you mean --precision bf16?' train data --fp16
hint 'did you mean --adam-betas: Adam is the only optimizer?' train data --optimizer sgd
hint 'did you mean --encoder-layers and --decoder-layers?' train data --layers 3
hint 'did you mean --device cuda?' generate model --gpu
hint 'did you mean --max-epoch?' train data --epochs 3
hint 'did you mean train?' help trian
expect 0 "$fathom" help
mv out all
expect 0 "$fathom" --help
cmp -s out all || fail "help is not --help"
expect 0 "$fathom" help train
mv out train
expect 0 "$fathom" train --help
cmp -s out train || fail "help train is not train --help"
expect 0 "$fathom" version
says out "fathom "

# ---- a run is a model: its best ----
expect 0 "$fathom" corpus --pair en-de --out text --sentences 300 --valid 200 --test 10 --level simple
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de \
    --valid-src text/valid.en --valid-tgt text/valid.de --vocab-size 150 --out data
model="--encoder-layers 2 --decoder-layers 2 --d-model 16 --ffn-dim 32 --heads 2 --max-tokens 300 --threads 1 --device cpu"
train="$fathom train data $model --method branchnorm --warmup-updates 5 --lr 0.01"
expect 0 $train --method-option steps=8 --max-update 20 --save-interval-updates 2 --validate-interval-updates 2 \
    --log-interval 1 --save-dir run --keep-last 100
best=run/checkpoints/best
head -n 3 text/test.en >three
for path in run run/ run//; do
    expect 0 "$fathom" generate $path --input three --quiet --beam 2
    mv out by-run
    expect 0 "$fathom" generate $best --input three --quiet --beam 2
    cmp -s out by-run || fail "generate $path is not generate $best"
done
expect 0 "$fathom" evaluate run data
mv out by-run
expect 0 "$fathom" evaluate $best data
cmp -s out by-run || fail "evaluate run is not that of its best"
expect 0 "$fathom" fold run --out folded
expect 0 "$fathom" average run $best --out mean
expect 0 $train --method-option steps=8 --max-update 1 --restore-file run --save-dir tuned
cp -r run bestless && rm bestless/checkpoints/best
expect 2 "$fathom" generate bestless// --input three
says err "is a run without a best model yet; bestless/checkpoints/last is its newest"

# ---- the speed in the log is that of training: what its lines took leaves room for the validations between them ----
expect 0 $train --method-option steps=8 --max-update 20 --validate-interval-updates 2 --log-interval 1 --save-dir speed
sed -n 's/.*"type":"train".*"wps":\([0-9.e+]*\),.*"tokens":\([0-9]*\),"wall":\([0-9.e-]*\),.*/\1 \2 \3/p' speed/log.jsonl >speeds
awk '{ trained += ($2 - tokens) / $1; tokens = $2; wall = $3 } END { exit !(NR == 20 && trained < 0.85 * wall) }' speeds ||
    fail "validations count as training: $(cat speeds)"

# ---- scores while training ----
for score in bleu chrf; do
    expect 0 $train --method-option steps=8 --max-update 20 --validate-interval-updates 10 --validate-score $score \
        --validate-sentences 50 --validate-beam 2 --best-by score --save-dir by-$score
    [ "$(grep -c "\"type\":\"valid\".*\"$score\":[0-9.]*,\"best\":[0-9.]*" by-$score/log.jsonl)" -eq 2 ] || fail "no $score in the log"
    # what was logged of the last checkpoint is what generate and score say of it
    head -n 50 data/valid.src.txt >src50 && head -n 50 data/valid.tgt.txt >tgt50
    expect 0 "$fathom" generate by-$score/checkpoints/last --input src50 --beam 2 --max-len-a 1.2 --max-len-b 10 --quiet
    mv out hyp
    expect 0 "$fathom" score $score --ref tgt50 --hyp hyp --json
    said=$(sed -n 's/.*"score": *\([0-9.e-]*\).*/\1/p' out)
    logged=$(sed -n "s/.*\"update\":20,.*\"$score\":\([0-9.]*\),.*/\1/p" by-$score/log.jsonl)
    awk -v a="$said" -v b="$logged" 'BEGIN { exit !(a != "" && b != "" && (a - b) ^ 2 < 1e-12) }' ||
        fail "the log has $score $logged, score says $said"
done
expect 2 $train --best-by score --save-dir x
says err '--best-by score: needs --validate-score'
expect 2 $train --lr-scheduler cosine --power 2 --save-dir x
says err '--power 2: is for --lr-scheduler polynomial'

# ---- entropies of attention: scores of a million, where rounding once made them negative ----
status=0
"$fathom" train data $model --d-model 64 --heads 1 --method preln --lr 3 --warmup-updates 1 --max-update 20 --telemetry 2 \
    --save-dir sharp >out 2>err || status=$?
[ $status -eq 0 ] || [ $status -eq 3 ] || fail "a rate of 3: status $status"
grep '"name":"attention_entropy"' sharp/log.jsonl >entropies || fail "no entropies"
! grep -q '[[,"]-[0-9i]' entropies || fail "negative entropies: $(head -3 entropies)"

# ---- schedules: 10 updates of warm-up, then by their formulas ----
rates() {
    expect 0 "$fathom" train data $model --method preln --max-update 20 --warmup-updates 10 --lr 0.01 --warmup-init-lr 0 \
        --log-interval 1 "$@"
    sed -n 's/.*"type":"train","update":\([0-9]*\),.*"lr":\([0-9.e-]*\),.*/\1 \2/p' "$2/log.jsonl" >rates
}
rates --save-dir poly --lr-scheduler polynomial --power 2 --end-learning-rate 0.002
awk '{ u = ($1 - 10) / 10; want = $1 < 10 ? 0.001 * $1 : 0.002 + 0.008 * (1 - u) ^ 2; if (($2 - want) ^ 2 > 1e-18) bad = 1 }
     END { exit bad || NR != 20 }' rates || fail "polynomial: $(cat rates)"
rates --save-dir wsd --lr-scheduler wsd --decay-updates 5
awk '{ want = $1 < 10 ? 0.001 * $1 : $1 <= 15 ? 0.01 : 0.01 * (20 - $1) / 5; if (($2 - want) ^ 2 > 1e-18) bad = 1 }
     END { exit bad || NR != 20 }' rates || fail "wsd: $(cat rates)"

# ---- a mean across a ramp ----
expect 2 "$fathom" average run --last 10 --out late
says err 'models whose alphas differ cannot be averaged; the last 7 can'
expect 0 "$fathom" average run --last 7 --out late

# ---- what a failed run says ----
status=0
$train --method-option steps=8 --lr 1e30 --max-update 20 --telemetry 1 --save-dir failed >out 2>err || status=$?
[ $status -eq 3 ] || fail "a rate of 1e30: status $status"
says err 'what usually helps: '
grep -o -- '--lr [0-9.e+-]* instead' failed/diverged.json | sort -u >rates
[ "$(wc -l <rates)" -le 1 ] || fail "different rates: $(cat rates)"
