#!/bin/sh
# From recordings to words: a made-up language of tones is learnt, with the same bits after a kill; data sets do not depend
# on the number of threads; what cannot be read is said.
. "$(dirname "$0")/common.sh"
. "$here/tools/tones.sh"

make_tones
record train 160 1
record valid 20 77
prepare="$fathom prepare --model-type char --features 24"
expect 0 $prepare --train-audio train.tsv --valid-audio valid.tsv --test-audio valid.tsv --out set
expect 0 "$fathom" data check set
expect 0 "$fathom" data info set
for line in 'recordings and their texts' '8000 samples a second, 24 features a frame, normalised by utterance' 'train: 160 recordings' '  sound '; do
    grep -q "$line" out || fail "data info does not say: $line"
done
cut -f 4 valid.tsv | tail -n +2 | cmp - set/valid.tgt.txt || fail "the texts beside the data set are others"
[ ! -e set/train.tgt.txt ] || fail "the training text is left behind"
expect 0 $prepare --train-audio train.tsv --valid-audio valid.tsv --test-audio valid.tsv --threads 3 --out again
for file in train.frames train.fds valid.frames speech.json tokenizer.model; do cmp set/$file again/$file; done

# ---- what a manifest may have ----
{
    cat train.tsv
    speak silent.wav ___
    printf 'silent\tsilent.wav\t\tabc\n'
    printf 'empty\ttrain/1.wav\t\t\n'
    printf 'part\ttrain/1.wav:100:1000\t\tab\n'
    printf 'short\ttrain/1.wav:0:100\t\tab\n'
} > odd.tsv
expect 0 $prepare --train-audio odd.tsv --valid-audio odd.tsv --max-frames 50 --out odd
said 'train: 1 of 164 recordings left out: without a text'
said 'train: 1 of 164 recordings left out: silent throughout'
said 'train: 1 of 164 recordings left out: shorter than a window of 25 ms'
said 'recordings left out: longer than --max-frames'
said 'valid: 1 recordings are silent throughout'
expect 0 "$fathom" data info odd --json
grep -q '"too_long": [1-9]' out || fail "dataset.json does not count what is too long"
expect 0 $prepare --train-audio valid.tsv --sample-rate 16000 --speeds 0.9,1.1 --out fast
said 'train: 40 recordings resampled to 16000 samples a second'
expect 0 $prepare --train-audio valid.tsv --feature-norm global --out global
grep -q '"mean"' global/speech.json || fail "no mean of the training set"
cmp -s global/train.frames set/valid.frames && fail "global is as utterance"
printf 'RIFF\144\000\000\000WAVEfmt \020\000\000\000\001\000\002\000\100\037\000\000\200\076\000\000\002\000\010\000data\300\003\000\000' > stereo.wav
cat tone-a >> stereo.wav
printf 'id\taudio\ttgt_text\nx\tstereo.wav\ta\ny\ttrain/1.wav\tb\n' > stereo.tsv
expect 0 $prepare --train-audio stereo.tsv --out stereo
said '1 recordings have several channels; their mean is taken'

# ---- what is refused ----
refused() { # text, options...
    text=$1
    shift
    expect 2 $prepare --out none "$@"
    said "$text"
    [ ! -e none ] || fail "a folder is left behind by: $*"
}
head -c 900 train/1.wav > cut.wav
printf 'id\taudio\ttgt_text\nx\ttrain/1.wav\tab\ny\tcut.wav\tabc\n' > bad.tsv
refused 'bad.tsv:3: cut.wav: the file is cut short' --train-audio bad.tsv
expect 0 $prepare --train-audio bad.tsv --skip-bad-audio --out bad
said 'bad.tsv:3: cut.wav: the file is cut short.*left out'
said '1 of 2 recordings left out: not to be read'
printf 'id\taudio\ttgt_text\nx\tnowhere.wav\tab\n' > none.tsv
refused 'none.tsv:2: nowhere.wav: no sound' --train-audio none.tsv
printf 'id\taudio\tn_frames\nx\ttrain/1.wav\t\n' > none.tsv
refused "'tgt_text' must be among them" --train-audio none.tsv
refused 'dataset.json: a manifest begins with a line of column names' --train-audio set/dataset.json --valid-audio valid.tsv
printf 'id\tfile\n' > none.tsv
refused "none.tsv:1: a manifest begins with a line of column names; 'audio' is not" --train-audio none.tsv
refused 'is for recordings; needs --train-audio' --train-text train.tsv --max-frames 10
refused 'is for other data; there are recordings' --train-audio train.tsv --train-text train.tsv
refused 'is for other data; there are recordings' --train-audio train.tsv --segmentations 2 --bpe-dropout 0.1
refused 'has more frames than --max-frames 20' --train-audio train.tsv --max-frames 20 --strict
refused 'none of its 160 recordings can be used' --train-audio train.tsv --max-frames 1
refused 'speeds 3: must be' --train-audio train.tsv --speeds 3
expect 2 "$fathom" prepare --valid-audio valid.tsv --tokenizer set/tokenizer.model --feature-norm global --out none
said 'feature-norm global: needs --train-audio'

# ---- training ----
small="--method b2t --encoder-layers 2 --decoder-layers 1 --d-model 32 --ffn-dim 64 --heads 2 --conv-channels 32"
train="$fathom train set $small --max-tokens 250 --warmup-updates 10 --quiet"
hidden="--specaugment ld --freq-mask-f 8 --time-mask-t 10 --time-mask-p 0.2 --dropout 0.1"
expect 0 $train $hidden --max-update 12 --save-interval-updates 4 --threads 1 --device cpu --save-dir whole
$train $hidden --max-update 12 --save-interval-updates 4 --threads 1 --device cpu --save-dir killed > /dev/null 2>&1 &
child=$!
tries=0
while [ ! -e killed/checkpoints/step-00000004/state.json ] && [ $tries -lt 600 ] && kill -0 $child 2> /dev/null; do
    sleep 0.05
    tries=$((tries + 1))
done
kill -KILL $child 2> /dev/null || true
wait $child 2> /dev/null || true
expect 0 $train $hidden --max-update 12 --save-interval-updates 4 --threads 1 --device cpu --save-dir killed
for file in model.safetensors optimizer.safetensors; do
    cmp whole/checkpoints/last/$file killed/checkpoints/last/$file || fail "other bits after a kill: $file"
done
expect 0 $train --max-update 12 --dropout 0.1 --threads 1 --device cpu --save-dir plain
cmp -s whole/checkpoints/last/model.safetensors plain/checkpoints/last/model.safetensors && fail "--specaugment does nothing"
expect 0 $train --max-update 2 --dropout 0 --device ref --save-dir ref
expect 0 $train --max-update 2 --dropout 0 --device cpu --save-dir cpu
loss() { grep '"type":"valid"' "$1/log.jsonl" | tail -1 | sed 's/.*"nll_loss":\([0-9.]*\).*/\1/'; }
awk -v a="$(loss ref)" -v b="$(loss cpu)" 'BEGIN { exit !(a > 1 && a - b < 1e-4 && b - a < 1e-4) }' ||
    fail "ref has the loss $(loss ref), cpu $(loss cpu)"

# ---- a language of tones is learnt, and its words come out ----
learn="--d-model 64 --ffn-dim 96 --conv-channels 64 --dropout 0 --lr 0.004 --lr-scheduler linear --warmup-updates 50"
if sanitized; then
    updates=20 most=200
else
    updates=500 most=30
fi
# shellcheck disable=SC2086
expect 0 $train $learn --max-update $updates --validate-interval-updates $updates --validate-score cer --best-by score \
    --device cpu --threads 1 --save-dir run
grep -q '"cer":' run/log.jsonl || fail "no cer in the log"
expect 0 "$fathom" evaluate run set --split test
expect 0 "$fathom" generate run --input valid.tsv --output hyp.txt
[ "$(wc -l < hyp.txt)" -eq 20 ] || fail "not a line for each recording"
expect 0 "$fathom" score cer --json --ref set/valid.tgt.txt --hyp hyp.txt
cer=$(sed 's/.*"score": *\([0-9.]*\).*/\1/' out)
awk -v cer="$cer" -v most=$most 'BEGIN { exit !(100 * cer <= most) }' || fail "cer is $cer"
grep '"cer":' run/log.jsonl | tail -1 | sed 's/.*"cer":\([0-9.]*\).*/\1/' |
    awk -v cer="$cer" '{ d = $1 - 100 * cer; exit !(d < 12 && d > -12) }' || fail "the log has another cer than $cer"
printf "it's five o'clock john\n" > spoken.ref
printf "It\342\200\231s  five - O'clock, 'John'!\n" > spoken.hyp
expect 0 "$fathom" score wer --json --ref spoken.ref --hyp spoken.hyp
grep -q '"score": *1.0' out || fail "words are normalised unasked: $(cat out)"
expect 0 "$fathom" score wer --normalize --ref spoken.ref --hyp spoken.hyp
grep -q 'case:lc|norm:yes|.* = 0.0000 (hits = 4' out || fail "--normalize: $(cat out)"
ls valid/*.wav | sort -V > files
expect 0 "$fathom" generate run --input files --threads 2
cmp out hyp.txt || fail "a list of files gives other words than its manifest"
printf 'valid/1.wav\nnowhere.wav\nvalid/2.wav:0:100\nvalid/2.wav\n' > files
expect 1 "$fathom" generate run --input files
said 'files:2: nowhere.wav: no sound that can be read.*its answer is an empty line'
said 'files:3: is shorter than a window of 25 ms'
[ "$(sed -n 2,3p out | tr -d '\n')" = "" ] && [ "$(wc -l < out)" -eq 4 ] || fail "no empty lines for what cannot be read"
expect 2 "$fathom" generate run --input files --on-bad-line stop
expect 2 "$fathom" generate run --input files --flush
said 'is for models that read text'
expect 2 "$fathom" train set --arch dec --save-dir none
said 'has recordings; use --arch encdec'
expect 2 "$fathom" train set --freq-mask-f 5 --save-dir none
said 'needs --specaugment or --freq-mask-n'
mkdir noface && cp run/checkpoints/last/*.safetensors run/checkpoints/last/config.json run/checkpoints/last/tokenizer.model noface
expect 2 "$fathom" generate noface --input files
said 'has no speech.json'
expect 0 "$fathom" preflight set $small --max-tokens 250 --device cpu
expect 0 "$fathom" bench train --front speech --frames 22 --sentence-length 4 --encoder-layers 1 --decoder-layers 1 --d-model 16 \
    --ffn-dim 16 --heads 2 --vocab 20 --max-tokens 20 --updates 1 --json

# ---- damage ----
printf '\377' | dd of=again/train.frames bs=1 seek=3000 conv=notrunc 2> /dev/null
expect 2 "$fathom" data check again
said 'train.frames: damaged'
head -c 3000 set/train.frames > again/train.frames
expect 2 "$fathom" data check again
said 'train.frames: has 3000 bytes'
cp set/valid.frames again/train.frames
expect 2 "$fathom" data info again
said 'train.frames: has 20 recordings of 24 features, and the data set 160 of 24'
printf '{"rate": 8000, "features": 24, "norm": "loud"}' > again/speech.json
expect 2 "$fathom" data info again
said 'speech.json: must have a norm of'
echo "test_recordings: right"
