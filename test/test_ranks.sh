#!/bin/sh
# One training on 1 to 4 ranks: the same bits, resumed by other numbers of them, and what happens when one is lost.
. "$(dirname "$0")/common.sh"
. "$here/ranks.sh"

expect 0 "$fathom" corpus --pair en-de --out text --sentences 300 --valid 40 --test 20 --level simple
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de \
    --valid-src text/valid.en --valid-tgt text/valid.de --vocab-size 200 --out data
model="--encoder-layers 2 --decoder-layers 2 --d-model 16 --ffn-dim 32 --heads 2 --max-positions 64 --max-tokens 200"
train="$fathom train data $model --max-update 6 --warmup-updates 5 --lr 0.01 --log-interval 2 --dropout 0.1 --clip-norm 0.5 \
    --save-interval-updates 4 --validate-interval-updates 3 --threads 1 --device cpu --keep-last 0 --quiet"

# ---- any number of ranks gives the same bits, shared evenly or not ----
for batches in 1 4; do
    expect 0 $train --save-dir alone-$batches --update-freq $batches
    for n in 2 3 4; do
        expect 0 launch $n $train --save-dir on-$n-$batches --update-freq $batches
        [ "$(grep -c 'updates in' out)" -eq 1 ] || fail "$n ranks say how it ended: $(cat out)"
        same alone-$batches on-$n-$batches
    done
done
grep '"type":"start"' on-3-4/log.jsonl | grep -q '"ranks":3,"hosts":\["' || fail "the start line has no ranks"
grep '"type":"start"' alone-4/log.jsonl | grep -q '"ranks":1,"hosts":\["' || fail "the start line of one process has no ranks"
[ "$(grep -c '"type":"train"' on-3-4/log.jsonl)" -eq 3 ] || fail "not one line of log for every two updates"
numbers alone-4 > expected
numbers on-3-4 | cmp - expected || fail "the log of 3 ranks has other numbers"

# ---- each rank adds up its own batches first: no longer the bits of any number of ranks, but always the same ----
for i in 1 2; do expect 0 launch 2 $train --save-dir fast-$i --update-freq 4 --reduce fast; done
same fast-1 fast-2
grep '"type":"start"' fast-1/log.jsonl | grep -q '"reduce":"fast"' || fail "the log does not say how gradients are added up"
best() { grep '"type":"end"' "$1/log.jsonl" | sed 's/.*"best":\([0-9]*\.[0-9][0-9]\).*/\1/'; }
[ "$(best fast-1)" = "$(best alone-4)" ] || fail "--reduce fast: best $(best fast-1), not $(best alone-4)"
expect 2 launch 2 $train --save-dir bad --update-freq 4 --reduce fast --pipeline 2
grep -q -- '--reduce fast: ' err || fail "--reduce fast beside --pipeline: $(cat err)"

# ---- bench: each rank sends its share of the gradients of every round, and its slice of the weights ----
expect 0 launch 2 "$fathom" bench train --arch dec --decoder-layers 2 --d-model 32 --ffn-dim 64 --heads 2 --vocab 50 \
    --max-tokens 64 --threads 1 --device cpu --update-freq 4 --updates 2 --json
awk '{ match($0, /"parameters": [0-9]*/); n = substr($0, RSTART + 14, RLENGTH - 14)
       match($0, /"sent_bytes": [0-9]*/); x = substr($0, RSTART + 14, RLENGTH - 14)
       exit !($0 ~ /"ranks": 2,/ && x > 6 * n * 0.95 && x < 6 * n * 1.2) }' out || fail "bytes that a rank sends: $(cat out)"

# ---- a slow rank is named, with what the others wait for it ----
wide="$train --save-dir slow --d-model 128 --ffn-dim 512 --max-tokens 1000 --max-update 6 --log-interval 6"
expect 0 timeout 120 "$mpirun" -np 1 $wide : -np 1 env FATHOM_CPU_ISA=plain $wide
grep '"type":"warn"' slow/log.jsonl | grep -q "rank 1 on $(hostname) is slow: the others wait [0-9]* % of the time for it" ||
    fail "the slow rank is not named: $(cat slow/log.jsonl)"

# ---- --update-freq: as many as ranks, for good ----
expect 0 launch 3 $train --save-dir changing --max-update 2
grep -q '^update-freq: 3$' changing/config.yaml || fail "config.yaml has no update-freq of 3"
expect 0 $train --save-dir changing --max-update 3
expect 0 launch 4 $train --save-dir changing --max-update 5
expect 0 launch 2 $train --save-dir changing
expect 0 $train --save-dir steady --update-freq 3
same steady changing
mv steady on-3-3

# ---- it starts itself ----
expect 0 $train --save-dir itself --ranks 3
same itself on-3-3
expect 0 $train --save-dir placed --devices cpu,cpu,cpu
same placed on-3-3
expect 2 $train --save-dir bad --devices cpu,gpu
grep -q -- '--devices cpu,gpu: must be a list of cpu and cuda:N' err || fail "a device that does not exist: $(cat err)"
FATHOM_MPIRUN=no-such-mpirun expect 2 $train --save-dir bad --ranks 2
grep -q 'cannot start no-such-mpirun: .*doc/clusters.md' err || fail "a missing mpirun: $(cat err)"
expect 2 launch 2 $train --save-dir bad --ranks 3
grep -q -- '--ranks 3: the launcher has started 2' err || fail "--ranks beside mpirun: $(cat err)"

# ---- every method, and telemetry ----
for method in $("$fathom" methods | awk 'NR > 1 && NF > 2 && $2 ~ /yes|no/ { print $1 }'); do
    expect 0 $train --save-dir "m1-$method" --update-freq 2 --max-update 2 --method "$method" --telemetry 1 --clip-norm 0
    expect 0 launch 2 $train --save-dir "m2-$method" --update-freq 2 --max-update 2 --method "$method" --telemetry 1 --clip-norm 0
    same "m1-$method" "m2-$method"
done
grep '"layers"' m1-postln/log.jsonl | sed 's/\([0-9]\.[0-9]\{3\}\)[0-9]*/\1/g' > layers
grep '"layers"' m2-postln/log.jsonl | sed 's/\([0-9]\.[0-9]\{3\}\)[0-9]*/\1/g' | cmp - layers || fail "telemetry of 2 ranks is another"

# ---- ends that all ranks come to ----
expect 3 launch 2 $train --save-dir wild --lr 1e30 --max-update 30
[ "$(grep -c '^fathom: ' err)" -eq 1 ] || fail "not one line of divergence: $(cat err)"
grep -q 'diverged at update' err || fail "divergence is not reported: $(cat err)"
expect 2 launch 2 $train --save-dir bad --heads 3
[ "$(grep -c '^fathom: ' err)" -eq 1 ] || fail "not one line of error: $(cat err)"

# ---- ranks that disagree, and a full disk ----
says() { # TEXT: in a line about a rank with its host
    grep '^fathom: .*rank [0-9]* on ' err | grep -qF -- "$1" || fail "no line about a rank has \"$1\": $(cat err)"
}
expect 1 timeout 60 "$mpirun" -np 1 $train --save-dir apart : -np 1 $train --save-dir apart --lr 0.02
says 'disagrees with rank 0 on'
says 'lr: 0.02, not lr: 0.01'
expect 0 "$fathom" prepare --train-src text/train.en --train-tgt text/train.de \
    --valid-src text/test.en --valid-tgt text/test.de --vocab-size 200 --out other
expect 1 timeout 60 "$mpirun" -np 1 $train --save-dir apart : -np 1 "$fathom" train other ${train#*train data} --save-dir apart
says "disagrees with rank 0 on $(hostname) about the data set's hash"
version=$("$fathom" --version | grep -o '[0-9]*\.[0-9]*\.[0-9]*' | head -1)
other=$(echo "$version" | tr 0123456789 1234567890) # of the same length
sed "s/$(echo "$version" | sed 's/\./\\./g')/$other/g" "$fathom" > newer && chmod +x newer
expect 1 timeout 60 "$mpirun" -np 1 $train --save-dir apart : -np 1 ./newer ${train#* } --save-dir apart
says "about options: version: $other, not version: $version"
expect 1 timeout 60 "$mpirun" -np 1 $train --save-dir apart --pipeline 2 : -np 1 $train --save-dir apart
says 'disagrees with rank 0 on'
mkdir full
ln -s /dev/full full/log.jsonl
expect 1 launch 2 $train --save-dir full
says 'rank 0 on'
says 'No space left'
sanitized || {
    # memory may also run out in MPI itself, which then ends the process without a word of ours: once more
    for attempt in 1 2 3 4; do
        status=0
        launch 2 sh -c '[ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} = 0 ] || ulimit -v 900000; exec "$@"' sh $train \
            --save-dir small --d-model 2048 --ffn-dim 8192 > out 2> err || status=$?
        ! grep -q 'rank 1 on' err || break
    done
    [ $status -eq 1 ] || fail "a rank without memory: status $status at attempt $attempt"
    says 'rank 1 on'
    says 'no memory'
}

# ---- a rank that is killed or hangs ----
member() { # run, rank: its process
    for process in $(pgrep -f "save-dir $1 --max-update 1000000"); do
        tr '\0' '\n' < "/proc/$process/environ" 2> /dev/null | grep -qE "^(OMPI_COMM_WORLD_RANK|PMI_RANK)=$2$" && echo "$process"
    done
    true
}
lose() { # run, rank, signal
    rm -rf "$1"
    launch 3 $train --save-dir "$1" --max-update 1000000 --rank-timeout 3 > out 2> err &
    child=$!
    tries=0
    while [ ! -e "$1/checkpoints/last" ] && [ $tries -lt 300 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    [ -e "$1/checkpoints/last" ] || fail "$1 has made no checkpoint: $(cat err)"
    kill "-$3" "$(member "$1" "$2")"
    wait $child && fail "a run that lost rank $2 ended well"
    if [ "$3" != KILL ] || [ $hasty = no ]; then
        says "rank $2 on $(hostname) is lost"
        says "was at update"
    fi
    [ -z "$(member "$1" '[0-9]*')" ] || fail "something is left running"
    expect 0 "$fathom" evaluate "$1/checkpoints/last" data
}
lose killed 2 KILL
lose hung 1 STOP
lose head 0 STOP
