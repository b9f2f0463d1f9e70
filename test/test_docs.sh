#!/bin/sh
# Documents that the program makes are as the program makes them, and links of documents lead somewhere.
set -eu
fathom=$1
here=$(dirname "$0")
cd "$here/.."
"$fathom" methods --markdown | cmp - doc/methods.md || {
    echo "test_docs: doc/methods.md is out of date: fathom methods --markdown > doc/methods.md" >&2
    exit 1
}
# the worked example is a method that compiles
awk '/^```c$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' doc/adding-a-method.md |
    cc -x c -std=c11 -D_GNU_SOURCE -Isrc -Wall -Wextra -Werror -fsyntax-only - || {
    echo "test_docs: the example of doc/adding-a-method.md does not compile" >&2
    exit 1
}
status=0
for file in README.md CONTRIBUTING.md doc/*.md; do
    for link in $(grep -o ']([^)#]*' "$file" | sed 's/^](//' | grep -v '^http' || true); do
        [ -e "$(dirname "$file")/$link" ] || {
            echo "test_docs: $file: $link is not there" >&2
            status=1
        }
    done
done
exit $status
