#!/bin/sh
# fathom corpus: files, standard output, and what bad input gets.
set -eu
fathom=$1
tree=$(mktemp -d)
trap 'chmod -R u+w "$tree"; rm -rf "$tree"' EXIT

fail() {
    echo "test_corpus_cli: $*" >&2
    exit 1
}

# refuses STATUS MESSAGE OPTION...: the command fails with this one line and leaves no file behind
refuses() {
    want=$1
    message=$2
    shift 2
    status=0
    "$fathom" corpus "$@" >"$tree/out" 2>"$tree/err" || status=$?
    [ $status -eq "$want" ] || fail "$*: exit status $status, not $want"
    [ "$(cat "$tree/err")" = "fathom: $message" ] || fail "$*: said $(cat "$tree/err")"
    [ ! -s "$tree/out" ] || fail "$*: printed something"
    [ ! -e "$tree/bad" ] || fail "$*: left something behind"
}

"$fathom" corpus --pair fr-es --out "$tree/a/b" --sentences 1000 --valid 30 --test 20 2>"$tree/err"
[ "$(ls -A "$tree/a/b" | tr '\n' ' ')" = "test.es test.fr train.es train.fr valid.es valid.fr " ] ||
    fail "wrong files: $(ls -A "$tree/a/b")"
for count in train:1000 valid:30 test:20; do
    for language in fr es; do
        file=$tree/a/b/${count%:*}.$language
        [ "$(wc -l <"$file")" -eq "${count#*:}" ] || fail "$file has not ${count#*:} lines"
        [ "$(sort -u "$file" | wc -l)" -eq "${count#*:}" ] || fail "$file has a line twice"
    done
done

# the same seed gives the same bytes, another one gives others
"$fathom" corpus --pair fr-es --out "$tree/again" --sentences 1000 --valid 30 --test 20 2>"$tree/err"
diff -r "$tree/a/b" "$tree/again" || fail "the same seed gave another corpus"
"$fathom" corpus --pair fr-es --out "$tree/again" --sentences 1000 --valid 30 --test 20 --seed 2 \
    --force 2>"$tree/err"
cmp -s "$tree/a/b/train.fr" "$tree/again/train.fr" && fail "another seed gave the same corpus"

# standard output has the training pairs, as many as wanted or without end
paste "$tree/a/b/train.fr" "$tree/a/b/train.es" >"$tree/pairs"
"$fathom" corpus --pair fr-es --out - --sentences 1000 | cmp - "$tree/pairs"
"$fathom" corpus --pair fr-es --out - | head -n 1000 | cmp - "$tree/pairs"

# a signal leaves nothing, not even the folders that were made for it; what SIGKILL leaves, the next call sweeps
# begin FOLDER: a corpus without end in the background, when it has begun
begin() {
    "$fathom" corpus --out "$1" --sentences 1000000000 2>"$tree/err" &
    child=$!
    tries=0
    while ! ls -A "$1" 2>/dev/null | grep -q '^\.corpus\.tmp-'; do
        [ $tries -lt 600 ] || fail "nothing was begun in $1: $(cat "$tree/err")"
        sleep 0.1
        tries=$((tries + 1))
    done
}
begin "$tree/new/er"
kill -TERM $child
status=0
wait $child || status=$?
[ $status -eq 143 ] || fail "a signal: exit status $status"
[ ! -e "$tree/new" ] || fail "a signal left something behind"
begin "$tree/again"
kill -KILL $child
wait $child 2>/dev/null || true
[ -n "$(find "$tree/again" -name '.corpus.tmp-*')" ] || fail "SIGKILL came too late"
mkdir "$tree/again/.corpus.tmp-1-0" "$tree/again/.corpus.tmp-me" # held, and no name of ours
exec 8<"$tree/again/.corpus.tmp-1-0"
flock 8
"$fathom" corpus --out "$tree/again" --sentences 10 2>"$tree/err"
[ "$(cd "$tree/again" && echo .corpus.tmp-*)" = ".corpus.tmp-1-0 .corpus.tmp-me" ] || fail "not swept: $(ls -A "$tree/again")"

refuses 2 '--out FOLDER is missing' --pair en-de
refuses 2 'pair "ende" is not two of en, de, fr, es with a dash (en-de)' --out "$tree/bad" --pair ende
refuses 2 'pair "en-it": there is no language "it", only en, de, fr and es' --out "$tree/bad" \
    --pair en-it
refuses 2 'pair "de-de": the two languages must differ' --out "$tree/bad" --pair de-de
refuses 2 'corpus: 5001 test phrases: this level has 5000 different ones' --out "$tree/bad" \
    --level simple --test 5001
refuses 2 "$tree/a/b/train.fr is there already (--force replaces it)" --pair fr-es --out "$tree/a/b"
for option in --sentences --valid --test --seed; do
    status=0
    "$fathom" corpus --out "$tree/bad" $option -1 2>"$tree/err" || status=$?
    [ $status -eq 2 ] || fail "$option -1: exit status $status"
    grep -q "^fathom: $option.*-1" "$tree/err" || fail "$option -1: said $(cat "$tree/err")"
done

# a folder that cannot be
: >"$tree/file"
status=0
"$fathom" corpus --out "$tree/file/x" 2>"$tree/err" || status=$?
[ $status -ne 0 ] && grep -q "^fathom: $tree/file" "$tree/err" || fail "said $(cat "$tree/err")"
if [ "$(id -u)" -ne 0 ]; then
    mkdir "$tree/read-only"
    chmod a-w "$tree/read-only"
    status=0
    "$fathom" corpus --out "$tree/read-only/x" 2>"$tree/err" || status=$?
    [ $status -eq 1 ] && grep -q "^fathom: $tree/read-only" "$tree/err" ||
        fail "said $(cat "$tree/err")"
fi
status=0
"$fathom" corpus --out - --sentences 100000 2>"$tree/err" >/dev/full || status=$?
[ $status -eq 1 ] && grep -q '^fathom: standard output: cannot write' "$tree/err" ||
    fail "said $(cat "$tree/err")"

# ---- no change of the text goes unseen: whoever makes one on purpose changes these sums ----
for pair in en-de fr-es; do
    for level in simple full; do
        "$fathom" corpus --pair $pair --out "$tree/sum-$pair-$level" --level $level --sentences 3000 --valid 100 --test 100 \
            2>"$tree/err" || fail "$(cat "$tree/err")"
        (cd "$tree/sum-$pair-$level" && cat -- *) | cksum >>"$tree/sums"
    done
done
cat >"$tree/wanted" <<END
3374876492 201706
1516195340 250100
1668629178 202169
2265591116 254551
END
cmp "$tree/wanted" "$tree/sums" || fail "other text than before: $(cat "$tree/sums")"
