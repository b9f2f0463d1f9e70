#!/bin/sh
# Every operation on files goes wrong once: the process is killed before it, the disk is full or broken at that moment, or
# a write is cut short. The same command again then ends exactly as one that nothing happened to: doc/guarantees.md.
# As a test it tries a few of the points; with FATHOM_FAULTS=all, as "make test-faults" calls it, all of them.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # a disk takes minutes to sync so often
. "$(dirname "$0")/common.sh"
. "$here/picture.sh"
faults=$(dirname "$fathom")/libfaulty_files.so
[ -e "$faults" ] || exit 77 # a build with sanitizers
points=0 # that held
result=  # a file or folder in "place" that must be the old or the new one at every moment; empty: none

# picture_of_files PATH: names, types and content of all that is there
picture_of_files() {
    find "$1" | LC_ALL=C sort
    find "$1" -type f -exec sha256sum {} + | LC_ALL=C sort
}

# ---- one point, and many ----

# strike N HOW COMMAND...: the command with a fault at its N-th operation; status 0 or 1 with a message, or killed
strike() {
    n=$1 how=$2
    shift 2
    status=0
    FAULT_AT=$n FAULT_HOW=$how LD_PRELOAD=$faults "$@" > out 2> err || status=$?
    case $how,$status in
    kill,0 | kill,137 | *,0) ;;
    *,1) grep -q '^fathom: ' err || fail "$how at operation $n: status 1 without a message: $*" ;;
    *) fail "$how at operation $n: status $status: $(cat err)" ;;
    esac
}

# operations COMMAND...: how many it makes
operations() {
    FAULT_COUNT=$tree/count LD_PRELOAD=$faults "$@" > out 2> err || fail "$*: $(cat err)"
    cat "$tree/count"
}

# never_half WHERE: place/$result is what was there, or the new one
never_half() {
    picture_of_files "place/$result" > half.txt
    cmp -s half.txt before.txt || cmp -s half.txt result.txt || failed "$1: $result is neither the old nor the new one"
}

# enumerate NAME STEP PICTURE SETUP COMMAND...: faults of every kind at the points of the command, each followed by the
# undisturbed command. SETUP makes the folder "place" in which it works; PICTURE says what is compared.
enumerate() {
    name=$1 step=$2 picture=$3 setup=$4
    shift 4
    [ "${FATHOM_FAULTS-}" != all ] || step=1
    rm -rf place && $setup
    total=$(operations "$@")
    $picture place > whole.txt
    [ -z "$result" ] || picture_of_files "place/$result" > result.txt
    for how in kill enospc eio short; do
        # each kind of fault begins elsewhere, so that the samples differ
        at=$((1 + points % step))
        while [ $at -le "$total" ]; do
            rm -rf place && $setup
            [ -z "$result" ] || picture_of_files "place/$result" > before.txt
            strike $at $how "$@"
            [ -z "$result" ] || never_half "$name: $how at operation $at of $total"
            status=0
            "$@" > out 2> err || status=$?
            [ $status -eq 0 ] || failed "$name: $how at operation $at of $total: then exit status $status: $(cat err)"
            $picture place > now.txt
            cmp -s whole.txt now.txt ||
                failed "$name: $how at operation $at of $total: it ends otherwise: $(diff whole.txt now.txt | head -5)"
            points=$((points + 1))
            at=$((at + step))
        done
    done
    echo "$name: $total operations"
}

# With FATHOM_FAULTS=all the others are tried all the same.
not_held=0
failed() {
    [ "${FATHOM_FAULTS-}" ] || fail "$@"
    echo "$*" >&2
    not_held=$((not_held + 1))
}

# ---- a run of training ----

expect 0 "$fathom" corpus --pair en-de --out text --sentences 60 --valid 8 --test 4 --level simple
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de \
    --valid-src text/valid.en --valid-tgt text/valid.de --vocab-size 70 --out data
train="$fathom train data --encoder-layers 1 --decoder-layers 1 --d-model 8 --ffn-dim 8 --heads 2 --max-positions 128 \
    --method branchnorm --method-option steps=20 --max-tokens 300 --max-update 20 --warmup-updates 5 --lr 0.05 \
    --dropout 0.1 --log-interval 3 --telemetry 10 --save-interval-updates 4 --validate-interval-updates 3 --keep-last 2 \
    --threads 1 --device cpu --quiet --save-dir place"

enumerate train 127 picture_of_run true $train

# ---- everything else that writes: over what is there already ----
mv place run
mkdir model && cp run/checkpoints/best/* model && rm model/state.json model/optimizer.safetensors
replaces() { # COPY NAME: what the command will write over
    mkdir place && cp -r "$1" "place/$2" && result=$2
}

again() { replaces data data; }
enumerate prepare 53 picture_of_files again "$fathom" prepare --train-src text/train.de --train-tgt text/train.en \
    --valid-src text/valid.de --valid-tgt text/valid.en --vocab-size 60 --force --out place/data
again() { replaces text text && result=; } # six files
enumerate corpus 23 picture_of_files again "$fathom" corpus --pair en-fr --out place/text --sentences 20 --valid 4 --test 4 \
    --level simple --force
again() { replaces model model; }
enumerate fold 19 picture_of_files again "$fathom" fold run/checkpoints/last --out place/model
enumerate average 23 picture_of_files again "$fathom" average run/checkpoints/last run/checkpoints/best --out place/model
again() { replaces text/test.de text; }
enumerate generate 3 picture_of_files again "$fathom" generate model --input text/test.en --beam 2 --quiet \
    --output place/text
# the page says when it was made
again() { replaces text/test.de text && result=; }
picture_of_page() { ls -A place && tail -c 8 place/text; }
enumerate report 3 picture_of_page again "$fathom" report run --out place/text

# ---- a sweep: its tables; the runs are children and take no part ----
cat > sweep.yaml <<'SPEC'
data: data
seeds: [1, 2]
lr: [0.01, 0.02]
max-update: 2
encoder-layers, decoder-layers: 1
d-model: 8
ffn-dim: 8
heads: 2
max-positions: 128
max-tokens: 300
threads: 1
device: cpu
SPEC
picture_of_sweep() {
    (cd place && ls -A . out out/runs && cat out/*.csv out/*.md out/*.tex)
}
again() { mkdir place; }
enumerate sweep 19 picture_of_sweep again "$fathom" sweep sweep.yaml --out place/out --quiet

[ $not_held -eq 0 ] || fail "$not_held points do not hold"
echo "$points points hold"
