#!/bin/sh
# Exported models give the same numbers in transformers and CTranslate2, and models of transformers come in with
# theirs. FATHOM_PYTHON: the Python that has the packages; without them the test is skipped.
. "$(dirname "$0")/common.sh"
python=${FATHOM_PYTHON:-python3}
check="$python $here/tools/exchange.py"
command -v "$python" >/dev/null || exit 77
$check have numpy torch transformers safetensors sentencepiece ctranslate2 onnxruntime || exit 77

# config NAME KEYS...: NAME.json, a small model
config() {
    name=$1
    printf '{"format": "fathom-model", "version": 1, "d_model": 16, "ffn_dim": 24, "heads": 2, "layer_norm_eps": 1e-5,
        "dropout": 0.1, "attention_dropout": 0, "activation_dropout": 0, "word_dropout": 0, "bos": 0, "pad": 1,
        "eos": 2, "unk": 3, "step": 7, "max_positions": 20, %s}' "$2" >"$name.json"
}
both='"arch": "encdec", "encoder_layers": 3, "decoder_layers": 2, "src_vocab": 40'
decoder='"arch": "dec", "decoder_layers": 3, "tgt_vocab": 40'
encoder='"arch": "enc", "encoder_layers": 3, "src_vocab": 40'
relu='"activation": "relu", "positions": "sinusoidal"'
gelu='"activation": "gelu", "positions": "learned"'

# out FORMAT NAME: exports a model, for transformers to run it
names=
out() {
    expect 0 "$fathom" init --config "$2.json" --out "$2" --seed 3
    $check fresh "$2" "$2.batch"
    "$fathom" trace "$2" --batch "$2.batch" --out "$2.trace" --update 7 --device cpu
    expect 0 "$fathom" export "$2" --to "$1" --out "$1-$2"
    names="$names $1-$2 $2 $2.batch $2.trace"
}
config deep "$both, \"tgt_vocab\": 40, \"share\": \"all\", \"method\": \"deepnorm\", $relu"
config branch "$both, \"tgt_vocab\": 50, \"share\": \"none\", \"method\": \"branchnorm\",
    \"method_options\": {\"steps\": 20}, $gelu"
config omega "$both, \"tgt_vocab\": 50, \"share\": \"dec\", \"method\": \"admin\", $relu"
config plain "$both, \"tgt_vocab\": 40, \"share\": \"all\", \"method\": \"postln\", $relu"
config two "$both, \"tgt_vocab\": 50, \"share\": \"dec\", \"method\": \"branchnorm\", $relu"
for name in deep branch omega; do out hf-marian $name; done
for name in plain two; do out hf-fsmt $name; done
config post "$decoder, \"share\": \"dec\", \"method\": \"deepnorm\", $relu"
config free "$decoder, \"share\": \"none\", \"method\": \"branchnorm\", $gelu"
config pre "$decoder, \"share\": \"dec\", \"method\": \"preln\", $relu"
config scaled "$decoder, \"share\": \"none\", \"method\": \"lns\", $gelu"
for name in post free pre; do out hf-opt $name; done
for name in pre scaled; do out hf-gpt2 $name; done
norm='"method": "postln", "method_options": {"embed_norm": true}'
config masks "$encoder, \"share\": \"all\", \"head\": \"masked-token\", $norm, $gelu"
config classes "$encoder, \"share\": \"all\", \"head\": \"class\", \"classes\": 3, $norm, $relu"
config value "$encoder, \"share\": \"none\", \"head\": \"regression\", $norm, $relu"
config tags "$encoder, \"share\": \"all\", \"head\": \"token-class\", \"classes\": 4, $norm, $gelu"
for name in masks classes value tags; do out hf-bert $name; done

# ---- random models of transformers ----
$check random >/dev/null 2>&1
for theirs in theirs-*; do
    kind=${theirs#theirs-}
    expect 0 "$fathom" import "$theirs" --from "hf-${kind%%-*}" --out "ours-$kind"
    $check batch "ours-$kind" "$kind.batch" 60
    "$fathom" trace "ours-$kind" --batch "$kind.batch" --out "$kind.trace" --device cpu
    names="$names $theirs ours-$kind $kind.batch $kind.trace"
done
# shellcheck disable=SC2086 # names without blanks
$check logits $names 2>err || fail "$(tail -n 3 err)"

# ---- ONNX: every method, and every kind of model ----
names=
for method in $("$fathom" methods | awk '$2 == "yes" || $2 == "no" { print $1 }'); do
    config "$method" "$both, \"tgt_vocab\": 50, \"share\": \"dec\", \"method\": \"$method\", $gelu"
    out onnx "$method"
done
for name in post masks classes value tags; do out onnx $name; done
config mean "$encoder, \"share\": \"all\", \"head\": \"class\", \"classes\": 3, \"pool\": \"mean\", \"method\": \"rfixup\", $relu"
out onnx mean
# shellcheck disable=SC2086
$check onnx $names 2>err || fail "$(tail -n 3 err)"

# ---- CTranslate2: the same words for 200 sentences ----
expect 0 "$fathom" corpus --pair en-de --out text --level simple --sentences 8000
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de --valid-src text/valid.en \
    --valid-tgt text/valid.de --vocab-size 400 --out data
head -n 200 text/test.en >lines
for method in deepnorm preln; do
    expect 0 "$fathom" train data --method $method --encoder-layers 2 --decoder-layers 1 --d-model 64 --ffn-dim 128 \
        --heads 2 --max-tokens 2000 --max-update 300 --warmup-updates 100 --lr 3e-3 --threads 1 --device cpu --quiet \
        --validate-interval-updates 200 --save-dir run-$method
    expect 0 "$fathom" export run-$method --to ctranslate2 --out $method-ct2
    for beam in 1 5; do
        "$fathom" generate run-$method --input lines --beam $beam --max-len-b 50 --quiet --device cpu >ours
        $check translate $method-ct2 lines $beam >theirs
        cmp -s ours theirs || fail "CTranslate2, $method, beam $beam: $(diff ours theirs)"
    done
    for storage in int8 bf16; do
        expect 0 "$fathom" export run-$method --to ctranslate2 --storage $storage --out small
        $check translate small lines 1 >theirs
        [ "$(wc -l <theirs)" -eq 200 ] || fail "CTranslate2, $storage"
        echo "$method, $storage: $(tail -n 1 err)"
    done
done
