#!/bin/sh
# A tiny depth race: every method at 12-12 layers must learn something in 60 updates, and those that
# the papers call stable must still do so at 50-50 layers in 100. That training with a rate of nearly 0 does not
# count as learning shows that the bound means something.
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

# fall METHOD LAYERS WIDTH UPDATES LR: prints by how much the loss of the last ten updates is below that of the first
# two. One thread: operations are short, and threads that wait for each other lose to whatever else runs on the cores.
fall() {
    status=0
    rm -rf "$1-$2"
    "$fathom" train data --save-dir "$1-$2" --method "$1" $(option_of "$1") --encoder-layers "$2" --decoder-layers "$2" \
        --d-model "$3" --ffn-dim $(($3 * 2)) --heads 2 --max-tokens 128 --max-positions 64 --dropout 0.1 \
        --lr "$5" --warmup-updates 40 --max-update "$4" --log-interval 2 --save-interval-updates 0 \
        --validate-interval-updates 0 --device cpu --threads 1 --quiet > /dev/null 2> err || status=$?
    [ $status -eq 0 ] || {
        echo "test_depth_race: $1 at $2-$2 layers: exit status $status: $(cat err)" >&2
        exit 1
    }
    grep '"type":"train"' "$1-$2/log.jsonl" | sed 's/.*"nll_loss":\([^,]*\),.*/\1/' | awk -v name="$1 at $2-$2 layers" '
        /nan|inf|null/ { bad = 1 }
        NR == 1 { first = $1 }
        { last[NR % 5] = $1 }
        END {
            for (i in last) { sum += last[i]; n++ }
            printf "%-28s loss %.3f -> %.3f\n", name, first, sum / n > "/dev/stderr"
            print bad || n < 5 ? "nan" : first - sum / n
        }'
}

# Whether $1 is a number of at least $2.
at_least() {
    awk -v x="$1" -v least="$2" 'BEGIN { exit !(x ~ /^-?[0-9.e-]+$/ && x + 0 >= least + 0) }'
}

race() { # METHOD LAYERS WIDTH UPDATES, the least fall
    fallen=$(fall "$1" "$2" "$3" "$4" 0.001)
    at_least "$fallen" "$5" || {
        echo "test_depth_race: $1 at $2-$2 layers did not learn: its loss fell by $fallen, not $5" >&2
        exit 1
    }
}

for method in $("$fathom" methods | awk 'NR > 1 && ($2 == "yes" || $2 == "no") { print $1 }'); do
    race "$method" 12 32 60 0.5
done
for method in preln deepnorm branchnorm b2t dlcl-pre subln normformer tfixup rfixup; do
    race "$method" 50 64 100 1.5
done
still=$(fall preln 12 32 60 1e-9)
if at_least "$still" 0.2; then
    echo "test_depth_race: the loss fell by $still without learning" >&2
    exit 1
fi
