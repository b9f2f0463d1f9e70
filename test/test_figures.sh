#!/bin/sh
# scripts/figures: one figure that needs no training, one run with its figure, one sweep; packed, unpacked and drawn elsewhere.
. "$(dirname "$0")/common.sh"

figures=$here/../scripts/figures
expect 0 "$figures" --list
[ "$(wc -l <out)" -ge 20 ] || fail "figures are missing: $(cat out)"
# every figure of the list stands in the document, with its picture
while read -r name; do
    case $name in
    deepnet-9-alpha | deepnet-9-beta) continue ;; # no picture of these yet
    esac
    grep -q "scripts/figures .*$name" "$here/../doc/figures.md" || fail "doc/figures.md does not say how $name is made"
done <out
for picture in $(grep -o 'figures/[a-z0-9./-]*\.\(svg\|png\)' "$here/../doc/figures.md"); do
    [ -s "$here/../doc/$picture" ] || fail "doc/$picture is not there"
done

expect 2 "$figures" deepnet-99
expect 2 "$figures" --jobs none
expect 2 "$figures" --device tpu
expect 2 "$figures" --fathom "$tree/no-such-program"
expect 2 "$figures" --out

expect 0 "$figures" --toy --fathom "$fathom" --out work --jobs 2 --pack packed.tar.gz b2t-4 b2t-5 branchnorm-growth
[ -s work/b2t-4/places.csv ] || fail "nothing was measured: $(cat err)"
[ -s work/b2t-5/similarity.csv ] || fail "nothing was trained and measured: $(cat err)"
[ "$(wc -l <work/branchnorm-growth/table.csv)" -eq 4 ] || fail "no table of the sweep: $(cat err)"
mkdir elsewhere
tar -C elsewhere -xzf packed.tar.gz
[ -z "$(find elsewhere -name '*.safetensors')" ] || fail "models are packed"
command -v gnuplot >/dev/null || exit 0
find elsewhere -name '*.svg' -exec rm {} +
cp elsewhere/branchnorm-growth/table.csv before.csv
expect 0 "$figures" --toy --fathom "$fathom" --out elsewhere --draw b2t-4 b2t-5 branchnorm-growth
for picture in b2t-4/places b2t-5/similarity branchnorm-growth/figure; do
    [ -s elsewhere/$picture.svg ] || fail "$picture.svg is not drawn elsewhere: $(cat err)"
done
cmp before.csv elsewhere/branchnorm-growth/table.csv || fail "another table elsewhere"
# what is there is not made again
expect 0 "$figures" --toy --fathom "$fathom" --out work --jobs 2 b2t-5
