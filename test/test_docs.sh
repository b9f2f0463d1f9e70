#!/bin/sh
# Documents that the program makes are as the program makes them, worked examples compile, and
# scripts/check-prose has no complaint.
set -eu
fathom=$1
here=$(dirname "$0")
cd "$here/.."
"$fathom" methods --markdown | cmp - doc/methods.md || {
    echo "test_docs: doc/methods.md is out of date: fathom methods --markdown > doc/methods.md" >&2
    exit 1
}
# the worked example is a method that compiles
example() { awk '/^```c$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' doc/adding-a-method.md; }
example | cc -x c -std=c11 -D_GNU_SOURCE -Isrc -Wall -Wextra -Werror -fsyntax-only - || {
    echo "test_docs: the example of doc/adding-a-method.md does not compile" >&2
    exit 1
}
for format in clang-format-14 clang-format; do
    $format --version 2>/dev/null | grep -q 'version 14\.' || continue
    example | $format --style=file --assume-filename=src/method/layerscale.c --dry-run -Werror || {
        echo "test_docs: the example of doc/adding-a-method.md is not in the format of the sources" >&2
        exit 1
    }
    break
done
scripts/check-prose
