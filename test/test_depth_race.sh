#!/bin/sh
# A tiny depth race: every method at 12-12 layers must learn something in 60 updates, and those that
# the papers call stable must still do so at 50-50 layers in 100.
set -eu
fathom=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$tree"

"$fathom" corpus --pair en-de --out text --sentences 4000 --valid 50 --test 50 --level simple 2> /dev/null
"$fathom" prepare --train-src text/train.en --train-tgt text/train.de --vocab-size 300 --out data > /dev/null 2>&1

# Without LN the stream grows by alpha + beta a layer, 1.19 at width 32: b2t-noln begins with the smaller scale of its
# authors' code.
option_of() {
    if [ "$1" = b2t-noln ]; then echo --method-option init_scale=auto; fi
}

# race METHOD LAYERS WIDTH UPDATES: the loss of the last ten updates must be below that of the first two. One thread:
# operations are short, and threads that wait for each other lose to whatever else runs on the cores.
race() {
    status=0
    "$fathom" train data --save-dir "$1-$2" --method "$1" $(option_of "$1") --encoder-layers "$2" --decoder-layers "$2" \
        --d-model "$3" --ffn-dim $(($3 * 2)) --heads 2 --max-tokens 128 --max-positions 64 --dropout 0.1 \
        --lr 0.001 --warmup-updates 40 --max-update "$4" --log-interval 2 --save-interval-updates 0 \
        --validate-interval-updates 0 --device cpu --threads 1 --quiet > /dev/null 2> err || status=$?
    [ $status -eq 0 ] || {
        echo "test_depth_race: $1 at $2-$2 layers: exit status $status: $(cat err)" >&2
        exit 1
    }
    grep '"type":"train"' "$1-$2/log.jsonl" | sed 's/.*"nll_loss":\([^,]*\),.*/\1/' | awk -v name="$1 at $2-$2 layers" '
        /nan|inf/ { bad = 1 }
        NR == 1 { first = $1 }
        { last[NR % 5] = $1 }
        END {
            for (i in last) { sum += last[i]; n++ }
            printf "%-28s loss %.3f -> %.3f\n", name, first, sum / n
            exit bad || !(sum / n < first)
        }' || {
        echo "test_depth_race: $1 at $2-$2 layers did not learn" >&2
        exit 1
    }
}

for method in $("$fathom" methods | awk 'NR > 1 && ($2 == "yes" || $2 == "no") { print $1 }'); do
    race "$method" 12 32 60
done
for method in preln deepnorm branchnorm b2t dlcl-pre subln normformer tfixup rfixup; do
    race "$method" 50 64 100
done
