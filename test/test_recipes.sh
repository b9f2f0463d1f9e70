#!/bin/sh
# The recipes of tasks, at toy size to their last step: the commands that each file names are run as they stand there,
# with smaller models and less text.
. "$(dirname "$0")/common.sh"

mkdir bin
ln -s "$fathom" bin/fathom
PATH=$tree/bin:$PATH

# ---- files of the forms that the recipes read
sentences() { # how many
    awk -v n="$1" 'BEGIN {
        for (i = 0; i < n; i += 2) {
            print "the good dog number " i " runs and plays"
            print "a bad cat of " i " lies there or sleeps"
        }
    }'
}
record() { # label, byte
    printf "\\$(printf %03o "$1")"
    head -c 3072 /dev/zero | tr '\0' "\\$(printf %03o "$2")"
}
table() { # how many, form
    sentences "$1" | awk -v form="$2" '
        form == "cola" { print "gj04\t" NR % 2 "\t\t" $0 }
        form == "sst2" && NR == 1 { print "sentence\tlabel" }
        form == "sst2" { print $0 "\t" NR % 2 }
        form == "mrpc" && NR == 1 { print "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String" }
        form == "mrpc" { other = $0; if (NR % 2) other = "the sun is up now"; print NR % 2 "\t1\t2\t" $0 "\t" other }'
}
files() { # of a recipe, in the current folder
    form=$1
    [ "$1" = wikitext2-masked ] && form=cola
    table 60 $form >train.tsv
    table 20 $form >dev.tsv
    gzip -k train.tsv
    sentences 80 >train.txt
    sentences 10 >valid.txt
    for k in 0 1 2 3 4 5 6 7 8 9; do record $k $((k * 20)); done >train.bin
    cp train.bin test.bin
}

# The commands of a recipe, smaller.
commands() {
    sed -n 's/^#   //p' "$1" | sed -e ':a' -e '/\\$/N; s/\\\n *//; ta' \
        -e 's/--vocab-size [0-9]*/--vocab-size 90/' \
        -e "s/^fathom train .*/& --encoder-layers 2 --d-model 16 --ffn-dim 32 --heads 2 --max-update 4 --warmup-updates 1 \
--validate-interval-updates 2 --save-interval-updates 2 --threads 1 --quiet/" \
        -e 's/^fathom corpus .*/& --valid 6 --test 3/; s/--sentences [0-9]*/--sentences 24/'
}

for recipe in "$here"/../recipes/tasks/*.yaml; do
    name=$(basename "$recipe" .yaml)
    [ "$name" = digits ] && continue # begins with a download; test_speech.sh has recordings of its own
    mkdir "$tree/$name"
    cd "$tree/$name"
    ln -s "$here/../recipes" recipes
    files "$name"
    commands "$recipe" >run.sh
    [ "$(grep -c fathom run.sh)" -ge 4 ] || fail "$name: hardly any commands: $(cat run.sh)"
    sh -e run.sh >out 2>err || {
        cat run.sh err >&2
        fail "$name: its commands do not run to their last step"
    }
    for run in $(sed -n 's/^fathom train .*--save-dir \([^ ]*\).*/\1/p' run.sh); do
        [ -e "$run/checkpoints/step-00000004" ] || fail "$name: $run is not trained to its last update"
    done
    [ -s out ] || fail "$name: nothing is said at the end"
done
cd "$tree"
[ -s shapes/shapes-maps/000002.png ] || fail "shapes: no map of the last picture"
echo "test_recipes: right"
