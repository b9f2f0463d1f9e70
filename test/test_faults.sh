#!/bin/sh
# Every operation on files goes wrong once: the process is killed before it, the disk is full or broken at that moment, or
# a write is cut short. The same command again then ends exactly as one that nothing happened to: doc/guarantees.md.
# As a test it tries a few of the points; with FATHOM_FAULTS=all, as "make test-faults" calls it, all of them.
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm # a disk takes minutes to sync so often
. "$(dirname "$0")/common.sh"
faults=$(dirname "$fathom")/libfaulty_files.so
[ -e "$faults" ] || exit 77 # a build with sanitizers
points=0 # that held

# ---- what a run leaves, in text; what depends on the clock is left out ----

# log FILE: the lines that a reader makes of it. A start line takes back what comes after its update (doc/formats.md), so
# a line that is written again must be the same.
log() {
    grep -v '"type":"start"' "$1" |
        sed 's/,"\(wall\|wps\|ups\|data_wait\)":[-0-9.e+"a-z]*//g' | LC_ALL=C sort -u
}

# picture_of_run RUN
picture_of_run() {
    (cd "$1" && ls -A . checkpoints && readlink checkpoints/last checkpoints/best &&
        cat checkpoints/*/config.json && sha256sum checkpoints/step-*/*.safetensors checkpoints/step-*/tokenizer* &&
        sed '/"wall":/d; /"crc32":/d' checkpoints/step-*/state.json)
    log "$1/log.jsonl"
}

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

# enumerate NAME STEP PICTURE SETUP COMMAND...: faults of every kind at the points of the command, each followed by the
# undisturbed command. SETUP makes the folder "place" in which it works; PICTURE says what is compared.
enumerate() {
    name=$1 step=$2 picture=$3 setup=$4
    shift 4
    [ "${FATHOM_FAULTS-}" != all ] || step=1
    rm -rf place && $setup
    total=$(operations "$@")
    $picture place > whole.txt
    for how in kill enospc eio short; do
        # each kind of fault begins elsewhere, so that the samples differ
        at=$((1 + points % step))
        while [ $at -le "$total" ]; do
            rm -rf place && $setup
            strike $at $how "$@"
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
    [ "${FATHOM_FAULTS-}" = all ] || fail "$@"
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

enumerate train 83 picture_of_run true $train

[ $not_held -eq 0 ] || fail "$not_held points do not hold"
echo "$points points hold"
