#!/bin/sh
# What earlier versions left behind (test/old/VERSION, made by test/old/make) opens: the data set is whole, the model
# scores and generates as it did, the run goes on from its checkpoint, its log is shown.
. "$(dirname "$0")/common.sh"

found=0
for old in "$here"/old/*/; do
    version=$(basename "$old")
    cp -r "$old" "$version"
    cd "$version"
    expect 0 "$fathom" data check data
    expect 0 "$fathom" evaluate run/checkpoints/last data --device ref
    cmp -s out evaluated || fail "$version: the model scores $(cat out), not $(cat evaluated)"
    "$fathom" generate run/checkpoints/last --device ref < valid.en > out 2> err || fail "$version: $(cat err)"
    cmp -s out generated || fail "$version: the model generates $(head -1 out), not $(head -1 generated)"
    expect 0 "$fathom" evaluate run/checkpoints/last data
    expect 0 "$fathom" report run --out page.html
    grep -q '"train.loss"' page.html || fail "$version: the page has no curves"
    expect 0 "$fathom" average run/checkpoints/step-00000003 run/checkpoints/step-00000003 --out mean
    expect 0 "$fathom" train data --config run/config.yaml --save-dir run --max-update 5
    grep -q '"type":"train","update":4' run/log.jsonl || fail "$version: the run did not go on after update 3"
    grep -q '"update": *5' run/checkpoints/last/state.json || fail "$version: the run did not come to update 5"
    cd ..
    found=$((found + 1))
done
[ $found -ge 1 ] || fail "no old version was tried"
