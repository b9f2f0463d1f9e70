#!/bin/sh
# Documents that the program makes are as the program makes them; links, and the sections that comments and
# documents cite, lead somewhere.
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
status=0
# "METHODS B.5" and "METHODS E.1" are sections of the two documents of formulas; F lists what tests check
for section in $(grep -rhoE 'METHODS [A-E]\.[0-9]+' src test recipes | sed 's/METHODS //' | sort -u); do
    grep -qE "^## $section( |:)" doc/mathematics.md doc/analyses.md || {
        echo "test_docs: $section is cited, but no section of doc/mathematics.md or doc/analyses.md" >&2
        status=1
    }
done
# what readers see names a document that they have
if grep -rnE 'METHODS( section)? [A-F]' --include='*.md' --include='*.yaml' --exclude=tour.md --exclude=mathematics.md \
    README.md CONTRIBUTING.md doc recipes >&2; then
    echo "test_docs: these cite METHODS, which is no document: name doc/mathematics.md or doc/analyses.md" >&2
    status=1
fi
# headings as GitHub turns them into the ends of links
anchors() {
    sed -n 's/^#\{1,\} //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}
for file in README.md CONTRIBUTING.md doc/*.md; do
    for link in $(grep -oE '\]\([^) ]*#[^) ]*' "$file" | sed 's/^](//' | grep -v '^http' || true); do
        target=$(dirname "$file")/${link%%#*}
        [ "${link%%#*}" ] || target=$file
        anchors "$target" | grep -qxF "${link#*#}" || {
            echo "test_docs: $file: $link: no such heading" >&2
            status=1
        }
    done
done
for file in README.md CONTRIBUTING.md doc/*.md; do
    for link in $(grep -o ']([^)#]*' "$file" | sed 's/^](//' | grep -v '^http' || true); do
        [ -e "$(dirname "$file")/$link" ] || {
            echo "test_docs: $file: $link is not there" >&2
            status=1
        }
    done
done
exit $status
