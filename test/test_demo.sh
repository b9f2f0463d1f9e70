#!/bin/sh
# fathom demo, a small one: what it leaves, the precision that it takes, a demo that goes on.
. "$(dirname "$0")/common.sh"
command -v gnuplot >/dev/null || {
    echo "test_demo: skipped, since there is no gnuplot" >&2
    exit 77
}

# demo FOLDER OPTION...
demo() {
    folder=$1
    shift
    expect 0 "$fathom" demo --out "$folder" --layers 1 --updates 50 --threads 2 "$@"
    grep -q '^exact match: [0-9.]* % of 500 held-out phrases$' out || fail "$folder: no exact match"
    grep -q '^BLEU|.* = [0-9.]* ' out || fail "$folder: no BLEU"
    grep -q "^pictures: $folder/demo.png and $folder/demo.svg" out || fail "$folder: no pictures"
    [ -s "$folder/demo.png" ] && [ -s "$folder/demo.svg" ] || fail "$folder: empty pictures"
}

# trained_in FOLDER PRECISION
trained_in() {
    grep -q "^precision: $2$" "$1/branchnorm/config.yaml" || fail "$1: not trained in $2"
}

# bf16 where there is a unit for it, unless the user wants another one
demo one --precision fp32
trained_in one fp32
if ! sanitized; then
    FATHOM_CPU_ISA=plain demo two
    trained_in two fp32
    FATHOM_CPU_ISA=plain-bf16 demo three --compare
    trained_in three bf16
    [ -s three/postln/test.de ] || fail "--compare: the plain method has no translations"
fi

# a second call finds everything done
trained() {
    grep -c '"type":"train"' one/branchnorm/log.jsonl
}
before=$(trained)
[ "$before" -gt 0 ] || fail "no training in the log"
demo one --precision fp32
[ "$(trained)" -eq "$before" ] || fail "a finished demo was trained again"
