#!/bin/sh
# The rules of the house: which folder may include which, and that a method is known only to its file.
# Both checks pass on the sources and fail on a made-up tree with every kind of mistake.
set -eu
here=$(dirname "$0")
scripts=$here/../scripts
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

fail() {
    echo "test_house: $*" >&2
    exit 1
}

# put FILE LINE...: writes a file of the made-up tree
put() {
    file=$tree/$1
    shift
    mkdir -p "$(dirname "$file")"
    printf '%s\n' "$@" >"$file"
}

# expect CHECK OUTPUT: the check must fail on the made-up tree with exactly this output
expect() {
    if output=$("$scripts/$1" "$tree"); then fail "$1 found nothing in a tree full of mistakes"; fi
    [ "$output" = "$2" ] || fail "$1 said:
$output
and not:
$2"
}

"$scripts/check-includes" || fail "wrong includes in src"
"$scripts/check-names" || fail "names defined twice in src"
"$scripts/check-citations" || fail "comments that cite what is not there"
[ ! -f "$here/../src/method/methods.def" ] || "$scripts/check-methods" || fail "methods known by name in src"

# what is allowed
put base/a.c '#include "base/a.h"' '#include <stdio.h>' '/* #include "cli/verb.h" */'
put backend/cpu/a.c '#include "base/a.h"' '#include "backend/backend.h"' '# include "graph/a.h"'
put backend/cuda/a.cu '#include <cuda_runtime.h>' '#include <cublasLt.h>'
put train/a.c '#include "store/a.h"' '#include "backend/backend.h"' '#include "data/a.h"'
put cli/a.c '#include "cli/verb.h"' '#include "train/a.h"'
put method/methods.def 'METHOD(postln)' 'METHOD(postln_init)' 'METHOD(dlcl_pre)' 'METHOD(dlcl_post)'
put method/postln.c '/* postln */'
put method/postln_init.c 'postln-init, see postln'
put method/dlcl.c 'dlcl-pre dlcl_post'
"$scripts/check-includes" "$tree" || fail "check-includes refused what is allowed"
"$scripts/check-methods" "$tree" || fail "check-methods refused what is allowed"
put data/names.h 'typedef struct fth_batch_item {' '} fth_batch_item;' 'typedef struct fth_later fth_later;' '} fth_plain;'
put data/names.c 'struct fth_later {' '    struct fth_batch_item item;' '};' 'static fth_plain f(fth_later *l) {'
"$scripts/check-names" "$tree" || fail "check-names refused what is allowed"

# what is not
put base/b.c '' '#include "graph/a.h"'
put data/b.c '#include "store/a.h"'
put graph/b.h '#include <stdio.h>' '  #  include  "backend/backend.h"'
put backend/cuda/b.cu '#include "backend/ref/a.h"'
put backend/ref/b.c '#include "backend/cpu/a.h"' '#include <cuda.h>'
put method/b.c '#include "model/a.h"'
put model/b.c '#include "attention.h"' '#include "../base/a.h"'
put image/b.c '#include "cli/verb.h"' '#include "nccl/a.h"'
expect check-includes 'backend/cuda/b.cu:1: backend/cuda must not include "backend/ref/a.h"; it may include: backend base graph backend/cuda
backend/ref/b.c:1: backend/ref must not include "backend/cpu/a.h"; it may include: backend base graph backend/ref
backend/ref/b.c:2: only backend/cuda may include <cuda.h>
base/b.c:2: base must not include "graph/a.h"; it may include: base
data/b.c:1: data must not include "store/a.h"; it may include: audio base image text data
graph/b.h:2: graph must not include "backend/backend.h"; it may include: base graph
image/b.c:1: image must not include "cli/verb.h"; it may include: base image
image/b.c:2: image must not include "nccl/a.h"; it may include: base image
method/b.c:1: method must not include "model/a.h"; it may include: base graph method
model/b.c:1: "attention.h" must be written from src on, as in "base/error.h"
model/b.c:2: "../base/a.h" must be written from src on, as in "base/error.h"
11 wrong includes'

put cli/c.c 'int x;' 'if (PostLN)' 'strcmp(m, "postln-init")'
put method/c.h '/* as DLCL-pre does */'
put method/postln.c 'postln_init'
expect check-methods 'cli/c.c:2: knows the method postln
cli/c.c:3: knows the method postln_init
method/c.h:1: knows the method dlcl_pre'

put cli/names.h 'typedef struct fth_plain {' '} fth_plain;' 'typedef struct fth_textfile {' 'enum fth_batch_item {'
put data/names_text.h 'typedef struct fth_text_file {'
expect check-names 'data/names.h:1: type fth_batch_item is also defined in cli/names.h
data/names.h:2: type fth_batch_item is also defined in cli/names.h
data/names.h:4: type fth_plain is also defined in cli/names.h
data/names_text.h: type fth_text_file is spelled like type fth_textfile of cli/names.h'

mkdir -p "$tree/src" "$tree/doc"
page=doc/page
printf '# A page\n\n## Layer norm: why\n' >"$tree/$page.md"
put src/cites.c "/* $page.md, $page.md#layer-norm-why */"
"$scripts/check-citations" "$tree" || fail "check-citations refused what is there"
put src/cites.c "/* ${page}s.md */" "/* $page.md#layer-norm */" '/* METHODS A.3 */' '/* (DESIGN 5) */'
expect check-citations "src/cites.c:1: cites ${page}s.md, which is not there
src/cites.c:2: cites $page.md#layer-norm: no such heading
src/cites.c:3: cites METHODS A, which no reader can open
src/cites.c:4: cites DESIGN, which no reader can open"
