#!/bin/sh
# What every command of the program has in common: help, exit status, messages.
. "$(dirname "$0")/common.sh"

# says FILE TEXT: the output has a line that begins with the text
says() {
    grep -q "^$2" "$tree/$1" || {
        echo "test_cli: no line begins with: $2" >&2
        cat "$tree/$1" >&2
        exit 1
    }
}

expect 0 "$fathom" --version
says out 'fathom [0-9]*\.[0-9]*\.[0-9]*$'
expect 0 "$fathom" --help
says out 'usage: fathom VERB \[options\]'
expect 2 "$fathom"
says err 'fathom: a verb is missing'
expect 2 "$fathom" zzzzzz
says err 'fathom: zzzzzz: unknown verb; "fathom --help" lists them'
expect 2 "$fathom" --seed 1
says err 'fathom: --seed: the verb comes first'
expect 2 "$fathom" demo --out new/demo --pair en-xx
[ ! -e new ] || { echo "test_cli: a failed demo left a folder" >&2; exit 1; }
expect 1 sh -c "'$fathom' --help > /dev/full"
says err 'fathom: standard output: cannot write: No space left on device'
# without one of the standard files: an error where it is used, and no other file in its place
expect 1 timeout -s KILL 20 sh -c "'$fathom' score bleu --ref '$0' <&-"
says err 'fathom: standard input: cannot read: Bad file descriptor'
expect 1 timeout -s KILL 20 sh -c "'$fathom' --version >&-"
expect 0 timeout -s KILL 20 sh -c "'$fathom' corpus --out phrases --sentences 50 --valid 5 --test 5 <&- 2>&-"

verbs=$(sed -n 's/^VERB(\([a-z_]*\),.*/\1/p' "$here/../src/cli/verbs.def")
for verb in $verbs; do
    expect 0 "$fathom" "$verb" --help
    says out "usage: fathom $verb"
    says out '  --dump-config  '
    ! grep -e ' [;.,]\( \|$\)' -e 'default.*no default' -e '  ; ' "$tree/out" || {
        echo "test_cli: $verb --help reads badly" >&2
        exit 1
    }
    [ ! -s "$tree/err" ]
    expect 2 "$fathom" "${verb}x"
    says err "fathom: ${verb}x: unknown verb; did you mean $verb?"
    expect 2 "$fathom" "$verb" --no-such-option
    says err 'fathom: --no-such-option: unknown option'
    [ ! -s "$tree/out" ]
    expect 0 "$fathom" "$verb" --dump-config
    grep -q '^config:' "$tree/out" && continue # its own --config is no file of options
    cp "$tree/out" "$tree/config.yaml"
    expect 0 "$fathom" "$verb" --config "$tree/config.yaml" --dump-config
    cmp "$tree/out" "$tree/config.yaml"
done

# ---- what must be said, and names of one letter ----
config=$here/golden/trace/postln-encdec/config.json
expect 2 "$fathom" init --config "$config"
says err 'fathom: --out FOLDER is missing'
expect 0 "$fathom" init --config "$config" --out m
expect 0 "$fathom" average m m --out a
[ -f a/model.safetensors ] || fail "no mean in a"
expect 2 "$fathom" average m m
says err 'fathom: --out FOLDER is missing'
expect 0 "$fathom" --version
[ ! -s err ] || fail "a success says $(cat err)"
