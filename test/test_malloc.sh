#!/bin/sh
# Memory runs out at one call of malloc, or from one call on: every verb ends by itself, with status 0 (it could do
# without, and its results are the same) or with 1 and a message; never by a signal, and it does not hang. Each place in the program where
# memory is asked for is one case. SAMPLE: how many of each verb, evenly; make test-malloc tries 1,000, which is all of most verbs.
. "$(dirname "$0")/common.sh"
. "$here/tools/toy.sh"
sanitized && exit 77 # they have a malloc of their own

preload=$(dirname "$fathom")/libpreload_malloc.so
sample=${SAMPLE:-4}
export OMP_NUM_THREADS=1
toy_files
toy_verbs | grep -E "${VERBS:-.}" > verbs
tried=0 wrong=0

# try WORDS N STAY
try() {
    rm -rf new
    mkdir new
    status=0
    # shellcheck disable=SC2086,SC2016 # words
    timeout -s KILL 60 env FATHOM_MALLOC_FAIL_AT="$2" ${3:+FATHOM_MALLOC_STAY=1} LD_PRELOAD="$preload" "$fathom" $1 \
        > out 2> err < /dev/null || status=$?
    tried=$((tried + 1))
    case $status in
    0)
        results > got
        [ ! -s same ] || cmp -s same got && return
        status='0, with other results'
        ;;
    1) [ -s err ] && return ;;
    esac
    wrong=$((wrong + 1))
    echo "memory runs out at call $2${3:+ and stays out}: status $status: fathom $1: $(tail -1 err)" >&2
}

# What a verb has made, but for files that have times in them.
results() {
    find new -type f ! -name '*.jsonl' ! -name state.json ! -name '*.html' -exec cksum {} + | sort
    cksum < out
}

while read -r words; do
    rm -rf new
    mkdir new
    : > sites
    # shellcheck disable=SC2086 # words
    FATHOM_MALLOC_SITES=$tree/sites LD_PRELOAD=$preload "$fathom" $words > out 2> err < /dev/null ||
        fail "$words: $(cat err)"
    results > first
    rm -rf new
    mkdir new
    # shellcheck disable=SC2086 # words
    "$fathom" $words > out 2> err < /dev/null
    results > same
    cmp -s first same || : > same # times
    n=$(wc -l < sites)
    [ "$n" -gt 2 ] || fail "$words: asks for no memory"
    every=$((n / sample + 1))
    for at in $(awk -v every="$every" 'NR % every == 0 || every == 1' sites); do
        try "$words" "$at" ""
        try "$words" "$at" 1
    done
done < verbs
echo "$tried tries"
[ $wrong -eq 0 ] || fail "$wrong of $tried tries did not end as they should"
