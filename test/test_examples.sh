#!/bin/sh
# The worked examples of doc/adding-a-method.md and doc/adding-an-operation.md are applied to a copy of the tree, as they
# stand there, and the tests that the pages name are built and run on it. What an example does not say is not changed:
# where more than its files has to change, this fails.
set -eu
fathom=$1
build=$(cd "$(dirname "$fathom")" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$build/build.ninja" ] && command -v ninja >/dev/null || {
    echo "skipped: the build was not made by ninja"
    exit 77
}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cp -r "$here/../src" "$here/../test" "$here/../cmake" "$here/../scripts" "$here/../CMakeLists.txt" "$tree"

fail() {
    echo "test_examples: $*" >&2
    [ ! -f "$tree/log" ] || tail -20 "$tree/log" >&2
    exit 1
}

# block PAGE N: the N-th piece of C of a page
block() {
    awk -v n="$2" '/^```c$/ { inside = ++at == n; next } /^```$/ { inside = 0 } inside' "$here/../doc/$1.md"
}

# insert FILE PATTERN: standard input before the line of a file of the copy that matches first
insert() {
    cat >"$tree/piece"
    awk -v piece="$tree/piece" -v pattern="$2" '
        !done && $0 ~ pattern { while ((getline line < piece) > 0) print line; done = 1 }
        { print }
        END { exit !done }' "$tree/$1" >"$tree/changed" || fail "$1: no line like $2"
    cp "$tree/changed" "$tree/$1"
}

# ---- a method: its file and its line ----
page=adding-a-method
block $page 1 >"$tree/src/method/layerscale.c"
block $page 2 | sed 's|/\*.*||' >>"$tree/src/method/methods.def"
"$here/../scripts/check-methods" "$tree/src" || fail "$page: the method is known outside of its file"
mkdir "$tree/objects"
for file in "$tree"/src/method/*.c; do
    cc -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -I"$tree/src" -c "$file" -o "$tree/objects/$(basename "$file" .c).o" \
        >"$tree/log" 2>&1 || fail "$page: the example does not compile"
done
ar rcs "$tree/libfth_method.a" "$tree"/objects/*.o
# the test as the build links it, with these methods in the place of its own
link=$(cd "$build" && ninja -t commands test_methods | tail -n 1)
link=$(echo "$link" | sed "s|[^ ]*libfth_method\.a|$tree/libfth_method.a|g; s|-o test_methods |-o $tree/test_methods |")
(cd "$build" && sh -c "$link") >"$tree/log" 2>&1 || fail "$page: the test of methods does not link"
"$tree/test_methods" >"$tree/log" 2>&1 || fail "$page: the test of methods fails with the example"

# ---- an operation: its kinds, operands, builder, backward, oracle and cases ----
page=adding-an-operation
block $page 1 >>"$tree/src/graph/kinds.def"
block $page 2 | grep '^enum' | insert src/graph/op.h '^#endif'
block $page 2 | grep '^struct' | insert src/graph/graph.h '^    } u;'
block $page 3 >>"$tree/src/graph/builder.c"
block $page 3 | sed -n '1s/ {$/;/p' | insert src/graph/builder.h '^#endif'
block $page 4 | insert src/graph/autodiff.c '^static void one_backward'
echo '    case FTH_KIND_soft_cap: soft_cap_backward(w, i); break;' |
    insert src/graph/autodiff.c '^    case FTH_KIND_activation:'
block $page 5 >"$tree/src/backend/ref/soft_cap.c"
block $page 6 | sed '/^}/q' >>"$tree/test/op_build_rest.c"
echo 'fth_op_builder fth_case_soft_cap;' | insert test/op_build.h '^#endif'
block $page 6 | grep '^    {"soft_cap"' | sed 's|/\*.*||' | insert test/op_cases.c '^    [{]"embed",'
launcher=
command -v ccache >/dev/null && launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
cmake -S "$tree" -B "$tree/build" -G Ninja -DFATHOM_CUDA=OFF -DCMAKE_C_FLAGS_RELEASE=-O1 $launcher >"$tree/log" 2>&1 ||
    fail "$page: cmake"
ninja -C "$tree/build" test_ops_ref >"$tree/log" 2>&1 || fail "$page: the example does not compile"
"$tree/build/test_ops_ref" >"$tree/log" 2>&1 || fail "$page: test_ops_ref fails with the example"
