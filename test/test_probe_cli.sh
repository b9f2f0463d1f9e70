#!/bin/sh
# fathom probe as a user runs it: every analysis of runs and models, what is written where, the stored
# probe set, and what is refused.
. "$(dirname "$0")/common.sh"

models=$here/golden/trace

# refused STATUS WORDS COMMAND...: must fail so, with one line that has the words
refused() {
    want=$1 words=$2
    shift 2
    status=0
    "$@" >out.txt 2>err.txt || status=$?
    [ "$status" = "$want" ] || fail "exit $status, not $want: $* ($(cat err.txt))"
    grep -q -e "$words" err.txt || fail "no \"$words\" in: $(cat err.txt)"
    [ "$(wc -l <err.txt)" = 1 ] || fail "more than one line: $(cat err.txt)"
}

# header FILE COLUMNS: first line of a CSV
header() {
    [ "$(head -n 1 "$1")" = "method,N,M,d,step,stack,index,$2" ] || fail "$1: $(head -n 1 "$1")"
}

# grid WHAT: a small one, for the analyses that have one
grid() {
    case $1 in surface | trajectory) echo --grid 3 ;; esac
}

# ---- one model and a batch file
model=$models/postln-encdec
batch=$model/batch.safetensors
for what in gradnorm:gp,ga places:place,value lninput:ln,value similarity:other,value \
    sparsity:nonzero_pct surface:a,b,loss; do
    # shellcheck disable=SC2046 # an option and its value, or nothing
    "$fathom" probe "${what%%:*}" "$model" --batch "$batch" $(grid "${what%%:*}") --out "${what%%:*}.csv" >out.txt 2>err.txt
    header "${what%%:*}.csv" "${what#*:}"
    grep -q "${what%%:*}.csv: [0-9]* rows" out.txt || fail "no count of rows: $(cat out.txt)"
done
grep -q "mean LN input" out.txt && fail "a summary of something else"
"$fathom" probe lninput "$model" --batch "$batch" --out lninput.csv | grep -q "encoder: mean LN input [0-9.]*, attention" ||
    fail "no averages of LN inputs"
# every row: method, layers, width, step; 9 digits at most
grep -v "^method" gradnorm.csv | grep -v -E '^postln,2,1,8,0,(encoder,[12]|decoder,1),[0-9.e-]+,[0-9.e-]+$' &&
    fail "a row of gradnorm.csv is off"
[ "$(wc -l <surface.csv)" = 10 ] || fail "surface.csv has no 9 points"
[ "$(wc -l <places.csv)" = 12 ] || fail "places.csv: 2 encoder layers with 3 places, 1 decoder layer with 5"

# the device, the update and the loss's smoothing count
"$fathom" probe gradnorm "$model" --batch "$batch" --device ref --label-smoothing 0.3 --out smooth.csv >out.txt
cmp -s gradnorm.csv smooth.csv && fail "--label-smoothing changes nothing"
"$fathom" probe lninput "$models/branchnorm-encdec" --batch "$batch" --update 1 --out one.csv >out.txt
"$fathom" probe lninput "$models/branchnorm-encdec" --batch "$batch" --out none.csv >out.txt
"$fathom" probe lninput "$models/branchnorm-encdec" --batch "$batch" --update 9 --out nine.csv >out.txt
cmp -s one.csv none.csv || fail "step 0 does not use the alpha of update 1"
cmp -s one.csv nine.csv && fail "--update changes nothing"
"$fathom" probe similarity "$model" --batch "$batch" --embedding --out more.csv >out.txt
grep -q "encoder,0,0,1$" more.csv || fail "no row of the embedding: $(cat more.csv)"

# ---- refused
refused 2 "did you mean gradnorm" "$fathom" probe gradnrom "$model" --batch "$batch" --out x.csv
refused 2 "no/such/model" "$fathom" probe gradnorm no/such/model --batch "$batch" --out x.csv
refused 2 "no-such-batch" "$fathom" probe gradnorm "$model" --batch no-such-batch --out x.csv
refused 2 "\-\-batch FILE or --data" "$fathom" probe gradnorm "$model" --out x.csv
refused 2 "cannot be given with --data" "$fathom" probe gradnorm "$model" --batch b --data d --out x.csv
refused 2 "\-\-out" "$fathom" probe gradnorm "$model" --batch "$batch"
refused 2 "no-folder is no folder" "$fathom" probe gradnorm "$model" --batch "$batch" --out no-folder/x.csv
refused 2 "must be odd" "$fathom" probe surface "$model" --batch "$batch" --grid 4 --out x.csv
for option in '--grid 5: .*surface and trajectory' '--proj angle: .*trajectory' '--init m: .*update and trajectory' \
    '--embedding: .*similarity' '--split test: needs --data' '--sentences 5: needs --data'; do
    # shellcheck disable=SC2086
    refused 2 "fathom: $option" "$fathom" probe gradnorm "$model" --batch "$batch" ${option%%:*} --out x.csv
done
for option in '--lr 0.1' '--max-update 5' '--clip-norm 1' '--adam-betas 0.9,0.98'; do
    # shellcheck disable=SC2086
    refused 2 "^fathom: $option: needs --steps$" "$fathom" trace "$model" --batch "$batch" $option --out x.csv
done
# files that are something else are not written over; a table, an empty file or a pipe is
printf 'notes of mine\n' >notes
printf 'a,b\n1,2\n' >mine.csv
for file in notes mine.csv; do
    cp $file before
    refused 2 "\-\-out $file: is there and is no table of fathom probe" "$fathom" probe gradnorm "$model" \
        --batch "$batch" --out $file
    cmp -s $file before || fail "$file was written over"
done
cp "$batch" batch.safetensors
ln -s batch.safetensors link.safetensors
refused 2 "\-\-out link.safetensors: is the file of --batch" "$fathom" trace "$model" --batch batch.safetensors \
    --out link.safetensors
cp -r "$model" own
refused 2 "\-\-out own/model.safetensors: is the model" "$fathom" trace own --batch batch.safetensors \
    --out own/model.safetensors
cmp -s "$batch" batch.safetensors || fail "the batch was written over"
: >new.csv
for _ in 1 2; do "$fathom" probe gradnorm "$model" --batch "$batch" --out new.csv >out.txt; done
cmp -s gradnorm.csv new.csv || fail "a table is not made anew"
"$fathom" probe gradnorm "$model" --batch "$batch" --out /dev/stderr 2>&1 >out.txt | cat >piped
cmp -s gradnorm.csv piped || fail "a table does not go to a pipe"
"$fathom" trace "$model" --batch "$batch" --label-smoothing 0.1 --out t.safetensors
"$fathom" trace "$model" --batch "$batch" --steps 0 --lr 0.1 --out t.safetensors
rm t.safetensors
refused 2 "places: method preln has no LN after" "$fathom" probe places "$models/preln-enc" \
    --batch "$models/preln-enc/batch.safetensors" --out x.csv
refused 2 "lninput: method tfixup has no layer norm" "$fathom" probe lninput "$models/tfixup-dec" \
    --batch "$models/tfixup-dec/batch.safetensors" --out x.csv
refused 2 "sparsity: the activation is gelu" "$fathom" probe sparsity "$models/preln-gelu-learned-none" \
    --batch "$models/preln-gelu-learned-none/batch.safetensors" --out x.csv
refused 2 "a single model" "$fathom" probe update "$model" --batch "$batch" --out x.csv
refused 2 "must have at least 3" "$fathom" probe trajectory "$model" --batch "$batch" --out x.csv
refused 2 "src" "$fathom" probe gradnorm "$model" --batch "$models/postln-dec/batch.safetensors" --out x.csv
# tokens of a vocabulary of 13 and 17 for a model of 11
refused 2 "outside of the vocabulary of 11" "$fathom" probe gradnorm "$model" \
    --batch "$models/preln-gelu-learned-none/batch.safetensors" --out x.csv
[ ! -e x.csv ] || fail "a refused call wrote a file"

# ---- runs and a data set
"$fathom" corpus --pair en-de --out text --sentences 400 --valid 60 --test 10 --level simple 2>err.txt
"$fathom" prepare --train-src text/train.en --train-tgt text/train.de --valid-src text/valid.en \
    --valid-tgt text/valid.de --vocab-size 200 --out data >out.txt 2>err.txt
small="--encoder-layers 2 --decoder-layers 2 --d-model 16 --ffn-dim 24 --heads 2 --max-tokens 256
    --max-update 12 --save-interval-updates 4 --validate-interval-updates 12 --keep-last 0 --lr 0.005
    --warmup-updates 4 --device ref --quiet"
# shellcheck disable=SC2086 # a list of words
"$fathom" train data --save-dir a --method branchnorm --method-option steps=8 $small >out.txt 2>err.txt
# shellcheck disable=SC2086
"$fathom" train data --save-dir b --method postln $small >out.txt 2>err.txt
for what in gradnorm places lninput similarity sparsity surface update trajectory; do
    # shellcheck disable=SC2046
    "$fathom" probe $what a b --data data --sentences 20 $(grid $what) --out figures >out.txt 2>err.txt ||
        fail "$what: $(cat err.txt)"
    [ -s figures/$what.csv ] || fail "no $what.csv"
    if command -v gnuplot >/dev/null; then
        grep -q "</svg>" figures/$what.svg || fail "no $what.svg"
        [ "$(head -c 8 figures/$what.png | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] || fail "no $what.png"
        [ ! -s out.txt ] || [ "$(grep -c gnuplot out.txt)" = 0 ] || fail "gnuplot complained: $(cat out.txt)"
    fi
    case $what in
    gradnorm) grep -q "20 sentences drawn" err.txt || fail "nothing is said of the draw" ;;
    *) ! grep -q drawn err.txt || fail "$what: the stored probe set was not taken: $(cat err.txt)" ;;
    esac
done
[ "$(find figures -name 'probe-set*' | wc -l)" = 1 ] || fail "probe sets: $(ls figures)"
grep -q "^branchnorm,2,2,16,12,decoder,2," figures/gradnorm.csv || fail "a run's newest checkpoint is not step 12"

# the stored set is a batch file, and a draw into nowhere is the same draw
set_file=$(echo figures/probe-set*)
"$fathom" probe gradnorm a b --batch "$set_file" --out again.csv >out.txt
cmp figures/gradnorm.csv again.csv || fail "the stored set gives other numbers"
"$fathom" probe gradnorm a b --data data --sentences 20 --out again.csv >out.txt
cmp figures/gradnorm.csv again.csv || fail "drawing again gives other numbers"
"$fathom" probe gradnorm a b --data data --sentences 20 --seed 2 --out again.csv >out.txt
cmp -s figures/gradnorm.csv again.csv && fail "another seed draws the same"
[ -z "$(find . -name '*.tmp')" ] || fail "a temporary file is left"
"$fathom" trace a/checkpoints/last --batch "$set_file" --out t.safetensors >out.txt

# series: steps in order, theta_0 of the run's seed, the end of the way at (1, 0)
[ "$(grep ^branchnorm figures/update.csv | cut -d, -f5 | tr '\n' ' ')" = "0 4 8 12 " ] || fail "steps of update.csv"
grep -q "^branchnorm,2,2,16,0,decoder,2,0,0$" figures/update.csv || fail "theta_0 has moved"
grep -q "^postln,2,2,16,12,decoder,3,point,1,0," figures/trajectory.csv || fail "the way does not end at (1, 0)"
[ "$(grep -c ",surface," figures/trajectory.csv)" = 18 ] || fail "surfaces of trajectory.csv"
sed 's/"step": 4/"step": 0/' a/checkpoints/step-00000004/config.json >c.json
"$fathom" init --config c.json --seed 1 --out start 2>err.txt
"$fathom" probe update a --init start --batch "$set_file" --out given.csv >out.txt
grep -v ^postln figures/update.csv | cmp - given.csv || fail "--init of the same start gives other numbers"
"$fathom" probe update a/checkpoints/step-00000012 --init a/checkpoints/step-00000004 --batch "$set_file" --out late.csv >out.txt
[ "$(cut -d, -f5 late.csv | tr '\n' ' ')" = "step 4 12 " ] || fail "--init of a checkpoint has another step: $(cat late.csv)"
"$fathom" probe update start a/checkpoints/step-00000012 a/checkpoints/step-00000004 \
    a/checkpoints/step-00000008 --batch "$set_file" --out models.csv >out.txt
cmp given.csv models.csv || fail "models by name give other numbers"
"$fathom" probe trajectory a --proj angle --batch "$set_file" --out angle.csv >out.txt
[ "$(wc -l <angle.csv)" = 5 ] || fail "angle.csv"

# shellcheck disable=SC2086
"$fathom" train data --save-dir c --method branchnorm --method-option steps=8 --restore-file start \
    $small >out.txt 2>err.txt
refused 2 "began from other weights" "$fathom" probe update c --batch "$set_file" --out x.csv
# shellcheck disable=SC2086
"$fathom" train data --save-dir d --method admin $small >out.txt 2>err.txt
"$fathom" probe update d --batch "$set_file" --out profiled.csv >out.txt
[ "$(cut -d, -f5 profiled.csv | tr '\n' ' ')" = "step 0 4 8 12 " ] || fail "a profiled start: $(cat profiled.csv)"
rm -r d/start
refused 2 "profiling pass" "$fathom" probe update d --batch "$set_file" --out x.csv
refused 2 "that of the others is branchnorm" "$fathom" probe update b/checkpoints/step-00000004 \
    a/checkpoints/step-00000008 --batch "$set_file" --out x.csv
refused 2 "only 60 sentences" "$fathom" probe gradnorm a --data data --sentences 100 --out x.csv
refused 2 "an enc model reads one text" "$fathom" probe gradnorm "$models/postln-enc" --data data --out x.csv
refused 2 "target vocabulary of" "$fathom" probe gradnorm "$model" --data data --out x.csv
refused 2 "target vocabulary of" "$fathom" probe gradnorm "$model" --data data --out x/y
[ ! -e x ] || fail "a failed call left a folder"
mkdir nothing
refused 2 "nothing: is no model" "$fathom" probe gradnorm a nothing --batch "$set_file" --out x.csv
cp b/log.jsonl nothing
refused 2 "nothing: has no checkpoints yet" "$fathom" probe gradnorm nothing --batch "$set_file" --out x.csv
mkdir empty empty/checkpoints
refused 2 "empty: has no checkpoints yet" "$fathom" probe gradnorm empty --batch "$set_file" --out x.csv
refused 2 "has no checkpoints" "$fathom" probe update empty --batch "$set_file" --out x.csv
[ ! -e x.csv ] || fail "a refused call wrote a file"

"$fathom" probe gradnorm b --batch "$set_file" --out g2.csv >out.txt

# ---- tables are drawn again, without models: one that was written, and several as one
if command -v gnuplot >/dev/null; then
    for what in gradnorm places lninput similarity sparsity surface update trajectory; do
        "$fathom" probe $what --from figures --out drawn >out.txt 2>err.txt || fail "$what: $(cat err.txt)"
        cmp figures/$what.csv drawn/$what.csv || fail "$what.csv has other rows when it is read again"
        grep -q "branchnorm 2-2" drawn/$what.svg || fail "$what.svg does not name its models"
        # shellcheck disable=SC2046
        "$fathom" probe $what a --batch "$set_file" $(grid $what) --out a.csv >out.txt 2>err.txt
        # shellcheck disable=SC2046
        "$fathom" probe $what b --batch "$set_file" $(grid $what) --out b.csv >out.txt 2>err.txt
        "$fathom" probe $what --from a.csv --from b.csv --out both >out.txt 2>err.txt || fail "$what: $(cat err.txt)"
        cmp figures/$what.csv both/$what.csv || fail "$what: two tables are not one"
        grep -v ^branchnorm drawn/$what.csv | cmp - b.csv || fail "$what: models are mixed up"
    done
    # the same model twice; a model in the course of its run; a method at three depths
    "$fathom" probe similarity --from a.csv --from a.csv --out twice >out.txt 2>err.txt && fail "a trajectory is drawn as similarity"
    "$fathom" probe trajectory --from a.csv --from a.csv --out twice >out.txt
    grep -q "branchnorm 2-2 (2)" twice/trajectory.svg || fail "two tables of one model look like one"
    for what in gradnorm lninput; do
        "$fathom" probe $what b/checkpoints/step-* --batch "$set_file" --out time >out.txt
        grep -q ">update<" time/$what.svg || fail "$what: several steps are not drawn over the updates"
    done
    for layers in 3 4; do sed "1!s/,2,2,16,/,$layers,$layers,16,/; 1!s/,2,\([0-9]\)/,$layers,\1/" g2.csv >g$layers.csv; done
    "$fathom" probe gradnorm --from g2.csv --from g3.csv --from g4.csv --out depth >out.txt
    grep -q "layers of the stack" depth/gradnorm.svg || fail "several depths are not drawn over the depth"
    # without gnuplot nothing can be drawn, and that is said; measuring goes on without figures
    mkdir bin
    ln -s "$(command -v sh)" bin/sh
    refused 1 "gnuplot is not installed" env PATH="$tree/bin" "$fathom" probe gradnorm --from figures --out without
    PATH="$tree/bin" "$fathom" probe gradnorm b --batch "$set_file" --out without2 >out.txt 2>err.txt || fail "gnuplot is needed to measure"
    grep -q "warning: gnuplot is not installed" err.txt || fail "nothing is said of the missing figure"
fi
# ---- numbers that are not finite are in the table and not in the figure
mkdir nan
cp "$models/postln-encdec/config.json" nan
{ head -c -4 "$models/postln-encdec/model.safetensors" && printf '\377\377\377\377'; } >nan/model.safetensors
for what in gradnorm places lninput similarity sparsity surface; do
    # shellcheck disable=SC2046
    "$fathom" probe $what nan --batch "$models/postln-encdec/batch.safetensors" $(grid $what) --out nan-$what >out.txt 2>err.txt ||
        fail "$what of NaN: $(cat err.txt)"
    [ $what = sparsity ] || grep -q ',nan$' nan-$what/$what.csv || fail "$what.csv has no nan"
    ! grep -v '^surface: \|no value is finite\|gnuplot is not installed' err.txt || fail "$what of NaN says more"
    ! grep -v 'rows$\|: mean LN input ' out.txt || fail "$what of NaN prints more"
    ! grep -q -e '-nan' out.txt || fail "$what prints -nan"
    case $what in
    gradnorm | places | surface)
        grep -q "warning: nan-$what/$what.csv: no value is finite: no figure is drawn" err.txt || fail "$what: $(cat err.txt)"
        [ ! -e nan-$what/$what.svg ] || fail "an empty figure of $what"
        ;;
    *) [ ! -e figures/$what.svg ] || [ -e nan-$what/$what.svg ] || fail "no figure of $what" ;;
    esac
done
if command -v gnuplot >/dev/null; then
    for what in gradnorm places lninput similarity sparsity surface update trajectory; do
        for value in nan inf; do
            mkdir -p some
            awk -F, -v OFS=, -v value=$value 'NR > 1 && NR % 3 { $NF = value } { print }' figures/$what.csv >some/$what.csv
            "$fathom" probe $what --from some --out some-$what >out.txt 2>&1 || fail "$what with $value: $(cat out.txt)"
            [ -s some-$what/$what.svg ] || fail "no figure of some $what"
            ! grep -q 'gnuplot\|plot>\|line [0-9]' out.txt || fail "$what with $value: $(cat out.txt)"
        done
    done
fi

head -n 2 g2.csv >cut.csv
printf 'postln,2,2,16,12,decoder,1,0.5\n' >>cut.csv
refused 2 "cut.csv:3: .*has not the columns" "$fathom" probe gradnorm --from cut.csv --out x
sed '2s/encoder/middle/' g2.csv >cut.csv
refused 2 "cut.csv:2: middle: must be encoder or decoder" "$fathom" probe gradnorm --from cut.csv --out x
sed '3s/,[^,]*$/,many/' g2.csv >cut.csv
refused 2 "cut.csv:3: many: is no number" "$fathom" probe gradnorm --from cut.csv --out x
head -n 1 g2.csv >cut.csv
refused 2 "cut.csv: has no rows" "$fathom" probe gradnorm --from cut.csv --out x
refused 2 "cut.csv:1: .*must be method,N,M" "$fathom" probe surface --from cut.csv --out x
refused 2 "takes no models" "$fathom" probe gradnorm a --from g2.csv --out x
refused 2 "cannot be given with --from" "$fathom" probe gradnorm --from g2.csv --data data --out x
refused 2 "must be a folder" "$fathom" probe gradnorm --from g2.csv --out x.csv
refused 2 "nowhere.csv: cannot open" "$fathom" probe gradnorm --from nowhere.csv --out x
refused 2 "a MODEL is missing" "$fathom" probe gradnorm --data data --out x
[ ! -e x ] || fail "a refused call made a folder"
