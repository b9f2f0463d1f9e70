#!/bin/sh
# All sources are as clang-format leaves them.
exec "$(dirname "$0")/../scripts/check-format"
