#!/bin/sh
# Byte-level BPE beside the tokenizers package, where it is installed: all of Unicode, 10,000 random strings.
# FATHOM_PYTHON: a Python that has it.
. "$(dirname "$0")/common.sh"

python=${FATHOM_PYTHON:-python3}
"$python" -c 'import tokenizers' 2>/dev/null || {
    echo "no python package tokenizers: skipped"
    exit 77
}
expect 0 "$python" "$here/golden/byte_bpe.py" "$here/golden/byte_bpe" "$fathom"
grep -q '^26682 lines, 0 with other ids, text comes back exactly$' out || fail "$(cat out)"
