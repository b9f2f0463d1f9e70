#!/bin/sh
# make install: the program, manual pages that man reads without a complaint, completion that shells run; and all of it
# goes away again.
. "$(dirname "$0")/common.sh"
FATHOM=$fathom
export FATHOM
expect 0 "$here/../scripts/install" "$tree/usr"
expect 0 usr/bin/fathom --version --verbose
for line in '^fathom [0-9]' '^build: ' '^CUDA: ' '^MPI: ' '^libraries: jansson [0-9].*zlib [0-9]' '^CPU kernels: plain'; do
    grep -q "$line" out || fail "--version --verbose has no line $line: $(cat out)"
done
expect 2 "$fathom" version --loud
expect 2 "$fathom" help --format groff
expect 2 "$fathom" help --format man no-such-verb
expect 2 "$fathom" train --help=groff

# ---- manual pages ----
pages=$(find usr/share/man/man1 -name '*.1' | wc -l)
[ "$pages" -eq $(($("$fathom" help | grep -c '^  [a-z]') + 1)) ] || fail "$pages manual pages"
if command -v man >/dev/null; then
    for page in usr/share/man/man1/*.1; do
        expect 0 env LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l "$page"
        [ ! -s err ] || fail "$page: $(cat err)"
    done
    env LC_ALL=C.UTF-8 man -E UTF-8 -l usr/share/man/man1/fathom-train.1 | col -b >text
    grep -q -- '--warmup-updates N' text || fail "fathom-train(1) has no --warmup-updates: $(head -n 30 text)"
fi

# ---- completion ----
# complete WORDS...: what bash offers for the last word
complete='. usr/share/bash-completion/completions/fathom
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _fathom && printf "%s\n" "${COMPREPLY[@]}"'
offers() {
    word=$1
    shift
    bash -c "$complete" bash "$@" | grep -qx -- "$word" || fail "bash does not offer $word for: $*"
}
if command -v bash >/dev/null; then
    offers train fathom tr
    offers --warmup-updates fathom train --warm
    offers --no-quiet fathom train --no
    offers cuda fathom train --device cu
    offers hf-marian fathom export model --to hf
fi
if command -v zsh >/dev/null; then
    expect 0 zsh -n usr/share/zsh/site-functions/_fathom
fi
if command -v fish >/dev/null; then
    expect 0 env HOME="$tree" fish -c 'source usr/share/fish/vendor_completions.d/fathom.fish
        complete -C "fathom train --warm"'
    grep -q -- --warmup-updates out || fail "fish does not offer --warmup-updates: $(cat out)"
fi
expect 0 "$here/../scripts/install" --remove "$tree/usr"
[ ! -e usr ] || fail "left behind: $(find usr)"
expect 2 "$here/../scripts/install" --remove ''
