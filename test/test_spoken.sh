#!/bin/sh
# The scripts that make corpora of speech: manifests that prepare takes, splits that do not mix. espeak-ng is played by a
# script. Skipped without python3.
. "$(dirname "$0")/common.sh"
. "$here/tools/tones.sh"
command -v python3 > /dev/null || exit 77
corpora=$here/../scripts/corpora
make_tones

# ---- fsdd ----
mkdir recordings
for name in 0_ann_0 1_ann_4 2_ann_5 3_bob_28 4_bob_49 5_cy_29; do speak recordings/$name.wav abc; done
touch recordings/readme.txt recordings/10_ann_3.wav
expect 0 "$corpora/fsdd" digits recordings
cut -f 1,4 digits/train.tsv | tail -n +2 | tr '\t\n' '= ' > got
[ "$(cat got)" = "2_ann_5=two 4_bob_49=four " ] || fail "fsdd: train is $(cat got)"
cut -f 1,4 digits/test.tsv | tail -n +2 | tr '\t\n' '= ' > got
[ "$(cat got)" = "0_ann_0=zero 1_ann_4=one " ] || fail "fsdd: test is $(cat got)"
expect 0 "$fathom" prepare --train-audio digits/train.tsv --valid-audio digits/valid.tsv --model-type word --features 24 --out set
expect 0 "$fathom" data info set
grep -q 'valid: 2 recordings' out || fail "fsdd: not two recordings for validation"
expect 1 "$corpora/fsdd"

# ---- spoken-multi30k ----
cat > espeak << 'END'
#!/bin/sh
# what espeak-ng is asked for: -v VOICE -s SPEED -w FILE --stdin
echo "$2 $4 $(cat)" >> said
cp "$RECORDING" "$6"
END
chmod +x espeak
RECORDING=$tree/recordings/0_ann_0.wav
export RECORDING
printf "Two men ride.\nA dog's red ball!\n\nThis one has more than four words in it.\nA cat, a hat\n" > train.en
printf 'two men RIDE\nA bird sings\n' > valid.en
printf 'A cat: a hat\nA boat sails\nA boat lands\n' > test.en
corpus() { expect 0 "$corpora/spoken-multi30k" "$1" --train train.en --valid valid.en --test test.en --most-words 4 --espeak "$tree/espeak" --jobs 2; }
corpus spoken
for line in "two men ride" "a dog's red ball" "a cat a hat"; do
    cut -f 4 spoken/train.tsv | grep -qx "$line" || fail "train does not say: $line"
done
[ "$(cut -f 4 spoken/valid.tsv | tail -n +2)" = "a bird sings" ] || fail "valid has what is in train, or lacks a sentence"
[ "$(wc -l < spoken/test.tsv)" -eq 3 ] || fail "test has what is in train, or lacks a sentence"
unseen=$(cut -f 5 spoken/test.tsv | tail -n +2 | sort -u)
[ "$(echo "$unseen" | wc -l)" -eq 1 ] || fail "the test set has several voices: $unseen"
cut -f 5 spoken/train.tsv spoken/valid.tsv | grep -qxF "$unseen" && fail "$unseen is heard in training"
grep -q "^$unseen 175 A boat sails" said || fail "espeak-ng was asked for something else: $(cat said)"
sort said > first
rm said
corpus again
sort said | cmp - first || fail "the same sentences are spoken otherwise"
cmp spoken/train.tsv again/train.tsv
expect 0 "$fathom" prepare --train-audio spoken/train.tsv --test-audio spoken/test.tsv --model-type char --features 24 --out set2
expect 1 "$corpora/spoken-multi30k" none --train train.en --valid valid.en --test test.en --espeak "$tree/nowhere"
grep -q 'spoken-multi30k: .*nowhere' err || fail "a missing espeak-ng is not said"

# ---- asterisk-prompts: the words of its texts ----
cat > words.py << 'END'
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("prompts", sys.argv[1])
prompts = importlib.util.module_from_spec(importlib.util.spec_from_loader("prompts", loader))
loader.exec_module(prompts)
for text, words in [("Agent Logged off.", "agent logged off"), ("[ascending tones]", ""), ("(1 second of silence)", ""),
                    ("at [@]", "at"), ("Press 1 now", ""), ("\u201cl\u2019appel\u201d \u2014 Fin!", "l'appel fin")]:
    assert prompts.spoken(text) == words, (text, prompts.spoken(text))
assert {prompts.split_of(str(i)) for i in range(99)} == {"train", "valid", "test"}
END
expect 0 python3 -B words.py "$corpora/asterisk-prompts"
echo "test_spoken: right"
