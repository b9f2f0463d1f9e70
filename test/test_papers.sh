#!/bin/sh
# recipes/papers: every file is what train takes, trains at toy size to its last update, and preflight judges it.
. "$(dirname "$0")/common.sh"

expect 0 "$fathom" corpus --pair en-de --out text --sentences 60 --valid 6 --test 6 --level simple
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de --valid-src text/valid.en \
    --valid-tgt text/valid.de --vocab-size 80 --out pairs --threads 1
expect 0 "$fathom" prepare --train-text "$here/golden/byte_bpe/text.txt" --valid-text text/valid.en --model-type word \
    --out words --threads 1
n=0
for recipe in "$here"/../recipes/papers/*.yaml; do
    n=$((n + 1))
    name=$(basename "$recipe" .yaml)
    awk 'length > 100 { exit 1 }' "$recipe" || fail "$recipe: a line longer than 100 characters"
    small="--d-model 8 --ffn-dim 8 --heads 1 --max-tokens 128 --update-freq 2 --max-positions 64 --device cpu --threads 1"
    case $name in
    *wikitext103) data=words small="$small --d-model 16 --decoder-layers 2 --tokens-per-sample 32 --adaptive-cutoffs 20,60" ;;
    *) data=pairs small="$small --encoder-layers 2 --decoder-layers 2" ;;
    esac
    # shellcheck disable=SC2086 # the options are words
    expect 0 "$fathom" train $data --config "$recipe" $small --max-update 3 --warmup-updates 2 --log-interval 1 --quiet \
        --save-dir "$name"
    tail -n 1 "$name/log.jsonl" | grep -q '"type":"end"' || fail "$name: did not end: $(tail -n 1 "$name/log.jsonl")"
    # shellcheck disable=SC2086
    expect 0 "$fathom" preflight $data --config "$recipe" $small
    grep -Eq 'fine|at risk|will fail' out || fail "$name: no verdict: $(cat out)"
done
[ $n -ge 9 ] || fail "$n recipes"
# words of a language model in bands: perplexity per word, each with some context
expect 0 "$fathom" evaluate b2t-wikitext103/checkpoints/best words --per-word --tokens-per-sample 32 --context-window 8 \
    --max-tokens 128 --device cpu --threads 1
grep -q 'ppl .* per word' out || fail "$(cat out)"
# the published size is judged, not pretended: too much memory is said
for recipe in branchnorm b2t-100; do
    expect 0 "$fathom" train pairs --config "$here/../recipes/papers/$recipe.yaml" --dump-config
    grep -q '^encoder-layers: 100$' out || fail "$recipe: $(cat out)"
done
grep -q '^update-freq: 128$' out || fail "$(cat out)"
# ---- the smaller initial values of Pre-LN's arm ----
config=$here/golden/trace/preln-encdec/config.json
expect 0 "$fathom" init --config "$config" --explain
awk '$1 ~ /fc1.weight/ || $1 ~ /embed_tokens/ || $1 ~ /layer_norm.weight/ { print $1, $NF }' out | sort > whole
expect 0 "$fathom" init --config "$config" --explain --init-scale 0.1
awk '$1 ~ /fc1.weight/ || $1 ~ /embed_tokens/ || $1 ~ /layer_norm.weight/ { print $1, $NF }' out | sort > small
paste -d ' ' whole small | awk '
    { ratio = $4 / $2; wanted = $1 ~ /fc1.weight/ ? 0.1 : 1; seen[wanted]++ }
    $2 != 0 && (ratio - wanted) ^ 2 > 1e-8 { print; bad = 1 }
    END { exit bad || !seen[0.1] || !seen[1] }' || fail "--init-scale scales something else"
expect 0 "$fathom" train pairs --config "$here/../recipes/papers/b2t-100-preln.yaml" --encoder-layers 2 --decoder-layers 2 \
    --d-model 8 --ffn-dim 8 --heads 1 --max-tokens 128 --max-positions 64 --device cpu --threads 1 --max-update 2 --quiet \
    --update-freq 1 --save-dir scaled
[ -d scaled/start ] || fail "the initial values are not kept"
expect 2 "$fathom" train pairs --config scaled/config.yaml --init-scale 0.2 --save-dir scaled
grep -q 'init-scale' err || fail "$(cat err)"
