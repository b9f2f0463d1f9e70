#!/bin/sh
# scripts/install-packages with a made-up machine around it: only the commands in $tree/bin exist.
set -eu
script=$(cd "$(dirname "$0")/../scripts" && pwd)/install-packages
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/bin"
for tool in sh env cat grep; do ln -s "$(command -v $tool)" "$tree/bin/$tool"; done

fail() {
    echo "test_packages: $*" >&2
    cat "$tree/out" >&2
    exit 1
}

# command_is NAME LINE...: a command of the made-up machine
command_is() {
    file=$tree/bin/$1
    shift
    printf '%s\n' '#!/bin/sh' "$@" >"$file"
    chmod +x "$file"
}

# run STATUS PURPOSE...: the script, in the made-up machine; what apt-get and sudo did is in $tree/did
run() {
    want=$1
    shift
    status=0
    : >"$tree/did"
    env -i PATH="$tree/bin" TREE="$tree" "$script" "$@" >"$tree/out" 2>&1 || status=$?
    [ $status -eq "$want" ] || fail "exit status $status, not $want"
}

did() {
    [ "$(cat "$tree/did")" = "$1" ] || fail "did: $(cat "$tree/did")"
}

said() {
    grep -q -- "$1" "$tree/out" || fail "it should have said: $1"
}

# a machine that has everything: nothing happens
command_is dpkg-query 'printf "ii "'
command_is apt-get 'echo "apt-get $*" >> "$TREE/did"'
command_is id 'echo 0'
run 0 build test lint demo
did ''
[ ! -s "$tree/out" ] || fail "it should be silent"

# gnuplot was removed and left its settings, clang-tidy was never there: dpkg-query fails
command_is dpkg-query 'for p; do :; done' \
    'case $p in gnuplot-nox) printf "rc ";; clang-tidy) exit 1;; *) printf "hi ";; esac'
run 0 build lint demo
did 'apt-get -q update
apt-get -q -y --no-install-recommends install clang-tidy gnuplot-nox'
said 'installing the packages clang-tidy gnuplot-nox'
run 0 build
did ''

# not root: with sudo, without it
command_is id 'echo 1000'
command_is sudo 'echo sudo >> "$TREE/did"' 'exec "$@"'
run 0 demo
did 'sudo
apt-get -q update
sudo
apt-get -q -y --no-install-recommends install gnuplot-nox'
rm "$tree/bin/sudo"
run 1 demo
did ''
said 'as root, please run: apt-get install gnuplot-nox$'

# apt-get fails, is missing; no Debian at all; a wrong word
command_is id 'echo 0'
command_is apt-get 'exit 100'
run 100 demo
rm "$tree/bin/apt-get"
run 1 demo
said 'no apt-get to install them: gnuplot-nox$'
rm "$tree/bin/dpkg-query"
run 0 demo
said 'see doc/dependencies.md'
run 2 demos
said 'demos: must be build, test, lint, demo, fuzz, valgrind, mpich or emulate'
