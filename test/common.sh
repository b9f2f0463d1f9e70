# What the tests of the command line share; they begin with  . "$(dirname "$0")/common.sh"
# $fathom: the program; $here: this folder; the current folder, $tree, is a fresh one that goes away at the end.
set -eu
fathom=$1
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'chmod -R u+w "$tree"; rm -rf "$tree"' EXIT
cd "$tree"

fail() {
    echo "$(basename "$0" .sh): $*" >&2
    exit 1
}

# expect STATUS COMMAND...: runs it; its output is in out and err
expect() {
    want=$1
    shift
    status=0
    "$@" > out 2> err || status=$?
    [ $status -eq "$want" ] || {
        cat err >&2
        fail "$*: exit status $status, not $want"
    }
}

# said PATTERN: the last command of expect has said that on standard error
said() {
    grep -q -- "$1" err || {
        cat err >&2
        fail "not said: $1"
    }
}

# Whether the program is the one of the sanitizers, which takes ten times as long or more.
sanitized() {
    ldd "$fathom" | grep -q libasan
}
