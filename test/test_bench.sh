#!/bin/sh
# fathom bench: its parts, their JSON, what they refuse.
. "$(dirname "$0")/common.sh"

# has KEY...: the output is one object with these keys
has() {
    [ "$(wc -l <"$tree/out")" -eq 1 ] || fail "not one line: $(cat "$tree/out")"
    for key in "$@"; do
        grep -q "\"$key\": " "$tree/out" || fail "no $key in $(cat "$tree/out")"
    done
}

# number KEY: its value, whole part
number() {
    sed "s/.*\"$1\": \([0-9]*\).*/\1/" "$tree/out"
}

small="--encoder-layers 1 --decoder-layers 2 --d-model 32 --ffn-dim 64 --heads 2 --vocab 50 --sentence-length 7"
# shellcheck disable=SC2086 # the options are meant to be split
{
    expect 0 "$fathom" bench train $small --max-tokens 70 --updates 2 --device cpu --threads 2 --json
    has tokens_per_s ms_per_update ms_fastest cpu_ms tflops peak_bytes planned_bytes parameters startup_s
    expect 0 "$fathom" bench train $small --max-tokens 70 --updates 1 --device cpu --profile
    grep -q '^linear_dw ' "$tree/out" || fail "no times by operation"

    for how in none int8; do
        expect 0 "$fathom" bench generate $small --batch 3 --beam 2 --length 5 --repeats 2 --device cpu \
            --threads 2 --quantize $how --tokens "$tree/$how" --json
        has tokens_per_s ms_per_batch ms_fastest cpu_ms tokens batch beam peak_bytes planned_bytes parameters startup_s
        [ "$(number tokens)" -eq 15 ] || fail "not 3 outputs of 5 tokens"
        [ "$(wc -l <"$tree/$how")" -eq 3 ] || fail "not a line for each sentence"
        awk -F '\t' '{ if (split($1, s, " ") != 7 || split($2, t, " ") != 5 || t[5] != 2) exit 1 }' "$tree/$how" ||
            fail "not 7 tokens of source and 5 of output, the last the end symbol"
    done
    expect 0 "$fathom" bench generate $small --arch dec --batch 1 --length 4 --repeats 1 --profile --device cpu
    grep -q '^attention_cached ' "$tree/out" || fail "no times by operation"
    expect 0 "$fathom" bench generate $small --length 4 --repeats 1 --device ref --json
    expect 2 "$fathom" bench generate $small --device ref --quantize int8
    expect 2 "$fathom" bench generate $small --max-positions 10 --length 11
}

# every instruction set gives the same tokens as the best one, whole and in 8 bits; bf16 runs on all of them
# tokens ISA FILE OPTIONS: false when the machine lacks the instruction set
# shellcheck disable=SC2086
tokens() {
    isa=$1 file=$2
    shift 2
    FATHOM_CPU_ISA=$isa "$fathom" bench generate $small --batch 19 --length 6 --repeats 1 --device cpu --threads 2 --tokens "$file" "$@" \
        >/dev/null 2>"$tree/err" && return
    grep -q "instruction set $isa: this machine lacks it" "$tree/err" || fail "$isa $*: $(cat "$tree/err")"
    return 1
}
for how in none int8; do
    # shellcheck disable=SC2086
    expect 0 "$fathom" bench generate $small --batch 19 --length 6 --repeats 1 --device cpu --threads 2 --quantize $how --tokens "$tree/best"
    for isa in plain avx2 avx512 plain-bf16 plain-amx avx512-plain-amx avx512-bf16 amx; do
        rm -f "$tree/tokens"
        ! tokens "$isa" "$tree/tokens" --quantize $how || cmp "$tree/best" "$tree/tokens" || fail "$isa, $how: other tokens"
        ! tokens "$isa" "$tree/tokens" --quantize $how --precision bf16 || [ "$(wc -l <"$tree/tokens")" -eq 19 ] ||
            fail "$isa, $how, bf16: not 19 lines"
    done
done

expect 0 "$fathom" bench gemm --shape 5x7x9 --shape 1x64x64 --threads 2 --json
has cpu threads peaks products rows k n path numbers forward dx dw all together
expect 0 "$fathom" bench gemm --shape 5x7x9
grep -q '^ *5 x *7 x *9  plain *fp32 ' "$tree/out" || fail "no line for plain fp32"
expect 0 "$fathom" bench gemm --shape 5x7x9 --path plain
grep -q '^ *5 x *7 x *9  plain *fp32 ' "$tree/out" || fail "no line for plain fp32"
! grep -q -e avx -e 'all of them' "$tree/out" || fail "--path plain: $(cat "$tree/out")"
expect 0 "$fathom" bench gemm --shape 64x64x64 --shape 64x64x128 --path plain
# what is printed for all products lies between the least and the most of each
awk '/^ *all/ { for (i = 6; i <= NF; i++) if ($i ~ /^[0-9.]+$/) all[++n] = $i }
    /^ *64 x.*fp32/ { for (i = 8; i <= NF; i++) if ($i ~ /^[0-9.]+$/) { if (!least || $i < least) least = $i; if ($i > most) most = $i } }
    END { for (i = 1; i <= 4; i++) if (all[i] < least || all[i] > most) exit 1; exit n < 4 }' "$tree/out" ||
    fail "all of them: $(cat "$tree/out")"
expect 2 "$fathom" bench gemm --path tiles
if ! grep -q amx_tile /proc/cpuinfo; then
    expect 2 "$fathom" bench gemm --path amx
    grep -q '^fathom: --path amx: this CPU does not have it' "$tree/err" || fail "$(cat "$tree/err")"
fi
for shape in 5x7 5x7x9x 0x1x1 x; do
    expect 2 "$fathom" bench gemm --shape $shape
    grep -q "^fathom: --shape $shape: must be three numbers" "$tree/err" || fail "$(cat "$tree/err")"
done
expect 2 "$fathom" bench gemm --device ref

# ---- scaling: two stages of a model with as much above as below take just over half of the time; the file gives way ----
tiny="--arch dec --decoder-layers 4 --d-model 32 --ffn-dim 64 --heads 2 --vocab 50 --max-tokens 64 --threads 1"
printf 'ranks: 4\nranks-per-host: 2\nlink-gb-s: 100\nlatency-us: 0\nbatch-ms: 80\nupdate-ms: 0\nupdate-freq: 16\n' > "$tree/topology"
number() { sed 's/.*"'"$1"'": \([0-9.e+-]*\).*/\1/' "$tree/out"; }
# near KEY LOW HIGH
near() { awk -v x="$(number "$1")" -v l="$2" -v h="$3" 'BEGIN { exit !(x >= l && x <= h) }' || fail "$1 is $(number "$1"): $(cat "$tree/out")"; }
expect 0 "$fathom" bench scaling $tiny --json --topology "$tree/topology"
near ms_per_update 320 321
near ranks 4 4
expect 0 "$fathom" bench scaling $tiny --json --topology "$tree/topology" --ranks 2 --pipeline 2
near ms_per_update 680 720
near computed 0.89 0.95
expect 0 "$fathom" bench scaling $tiny --ranks 2 --update-freq 2 # measured here
grep -q '2 ranks, 1 stage: [0-9]* tokens/s' "$tree/out" || fail "$(cat "$tree/out")"
expect 2 "$fathom" bench scaling $tiny --ranks 3 --pipeline 2
grep -q '^fathom: --pipeline 2: must divide --ranks 3' "$tree/err" || fail "$(cat "$tree/err")"
expect 2 "$fathom" bench scaling $tiny --ranks 4 --update-freq 3
grep -q '^fathom: --update-freq 3: must be at least 4' "$tree/err" || fail "$(cat "$tree/err")"
echo 'rank: 4' > "$tree/topology"
expect 2 "$fathom" bench scaling $tiny --topology "$tree/topology"
grep -q 'topology:1: ' "$tree/err" || fail "$(cat "$tree/err")"

expect 2 "$fathom" bench sort
grep -q 'bench sort: must be train, generate, gemm or scaling' "$tree/err" || fail "$(cat "$tree/err")"
expect 2 "$fathom" bench train model

# refuses TEXT WORDS: options of another part, or beside a model that has them in it
refuses() {
    # shellcheck disable=SC2086
    expect 2 "$fathom" bench $2
    grep -qF -- "fathom: $1" "$tree/err" || fail "$2: $(cat "$tree/err")"
}
refuses '--beam 2: train does not use it, only generate' 'train --beam 2'
refuses '--quantize int8: train does not use it, only generate' 'train --quantize int8'
refuses '--updates 2: generate does not use it, only train' 'generate --updates 2'
refuses '--sentence-length 5: gemm does not use it, only train, generate and scaling' 'gemm --sentence-length 5'
refuses '--d-model 32: gemm has no model, only --shape' 'gemm --d-model 32'
refuses '--d-model 32: MODEL has its own shape' 'generate model --d-model 32'
refuses '--vocab 50: MODEL has its own vocabulary' 'generate model --vocab 50'
