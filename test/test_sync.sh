#!/bin/sh
# Nothing gets its name before it is on the disk: all verbs at toy size under libpreload_sync.so, which watches renames.
. "$(dirname "$0")/common.sh"
. "$here/tools/toy.sh"
sanitized && exit 77 # nothing else may stand before their library

toy_files
mkdir new
toy_verbs > verbs
while read -r words; do
    : > log
    # shellcheck disable=SC2086 # words
    FATHOM_SYNC_LOG=$tree/log LD_PRELOAD=$(dirname "$fathom")/libpreload_sync.so "$fathom" $words > out 2> err < /dev/null ||
        fail "$words: $(cat err)"
    ! grep -q '^bad' log || fail "$words: $(grep -m1 '^bad' log)"
    case $words in
    prepare* | init* | train* | average* | trace* | fold* | sweep* | report* | generate* | corpus*)
        grep -q '^ok' log || fail "$words: nothing was renamed"
        ;;
    esac
done < verbs
