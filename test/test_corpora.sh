#!/bin/sh
# The corpus of LibreOffice's help: what scripts/corpora/libreoffice-help makes of pages that were made up here.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || exit 77
script=$here/../scripts/corpora/libreoffice-help

# page LANGUAGE NAME: paragraphs on standard input, "id text"
page() {
    mkdir -p "pages/$1/text/shared"
    {
        printf '<html><head><title>x</title></head><body><p id="TopLeft">no paragraph of the page</p>\n'
        sed 's|^\([^ ]*\) \(.*\)$|<p id="par_\1" class="paragraph" dir="auto">\2</p>|'
        printf '<p>This page is: x</p></body></html>\n'
    } >"pages/$1/text/shared/$2.html"
}

# pages 0 to 99 fall into splits by their names; every page has two paragraphs of its own
i=0
while [ $i -lt 100 ]; do
    printf 'id%d The page of number %d is open.\nid9%d Close the page of number %d.\n' $i $i $i $i | page en-us p$i
    printf 'id%d Die Seite mit der Nummer %d ist offen.\nid9%d Schließen Sie die Seite Nummer %d.\n' $i $i $i $i | page de p$i
    [ $((i % 2)) -eq 0 ] || printf 'id%d La page de numéro %d est ouverte.\n' $i $i | page fr p$i
    i=$((i + 1))
done
# what is not plain: markup, entities, help for one system, one id twice, a heading
page en-us marked <<'END'
id1 Choose <span class="menuitem">File&nbsp;- <b>Open</b></span>, then&#32;press <span class="keycode"><span hidden="true" class="MAC">Command</span><span hidden="true" id="default1">Ctrl</span>+O</span> &amp; wait.
id2 First part here.
id2 Second part here.
id3 Not translated at all.
id4 12345 - 67890
id5 The page of number 1 is open.
id6 A text of this length has no translation that is as short as that one is in the end, says the rule of lengths.
END
page de marked <<'END'
id1 Wählen Sie <span class="menuitem">Datei - <b>Öffnen</b></span>, drücken Sie <span class="keycode"><span hidden="true" class="MAC">Befehl<span>+</span></span><span hidden="true" id="default1">Strg</span>+O</span> &amp; warten Sie.
id2 Erster Teil hier.
id2 Zweiter Teil hier.
id3 Not translated at all.
id4 12345 - 67891
id5 Etwas anderes als vorher.
id6 Kurz.
END
printf '<body><h1 id="hd_id7" dir="auto">\n<a name="x"></a>A heading<br>of two lines</h1></body>\n' >pages/en-us/text/heading.html
printf '<body><h1 id="hd_id7" dir="auto">\n<a name="x"></a>Eine Überschrift<br>in zwei Zeilen</h1></body>\n' >pages/de/text/heading.html

expect 0 python3 "$script" corpus --pages pages --zero-shot de,fr --processes 2
for split in train valid test; do
    n=$(wc -l <corpus/$split.en)
    [ "$n" -gt 0 ] || fail "$split is empty"
    for language in de fr; do
        [ "$(wc -l <corpus/$split.$language)" -eq "$n" ] || fail "$split.$language has not as many lines as $split.en"
    done
    # a line is the same paragraph in all languages
    paste corpus/$split.en corpus/$split.de | sed -n 's/^The page of number \([0-9]*\) is open.\t/\1 /p' |
        awk '$1 != 1 && $0 !~ "Nummer " $1 " " { print; exit 1 }' || fail "$split: en and de do not belong together"
done
# pages are whole: both paragraphs of a page are in the same split, and held-out pages are in no other
for split in valid test; do
    sed -n 's/^The page of number \([0-9]*\) .*/\1/p' corpus/$split.en | sort >a
    sed -n 's/^Close the page of number \([0-9]*\)\..*/\1/p' corpus/$split.en | sort >b
    cmp a b || fail "$split has parts of pages"
done
cat corpus/*.en | sort | uniq -d | grep . && fail "a text is in two places"

line_of() { # ENGLISH: the German beside it
    cat corpus/train.en corpus/valid.en corpus/test.en >all.en
    cat corpus/train.de corpus/valid.de corpus/test.de >all.de
    paste all.en all.de | awk -F '\t' -v text="$1" '$1 == text { print $2 }'
}
[ "$(line_of 'Choose File - Open, then press Ctrl+O & wait.')" = 'Wählen Sie Datei - Öffnen, drücken Sie Strg+O & warten Sie.' ] ||
    fail "markup is not taken away: $(grep -h Choose corpus/*.en) $(grep -h Wählen corpus/*.de)"
[ "$(line_of 'Second part here.')" = 'Zweiter Teil hier.' ] || fail "an id that comes twice is not told apart"
[ "$(line_of 'A heading of two lines')" = 'Eine Überschrift in zwei Zeilen' ] || fail "a heading is not read"
[ -z "$(line_of 'Not translated at all.')" ] || fail "what is not translated is kept"
case $(line_of 'The page of number 1 is open.') in *"Nummer 1 ist"* | "Etwas anderes als vorher.") ;; *) fail "a text that comes twice is lost" ;; esac
[ -z "$(line_of 'A text of this length has no translation that is as short as that one is in the end, says the rule of lengths.')" ] ||
    fail "a translation of another length is kept"
! grep -q '67890' corpus/*.en || fail "a text without letters is kept"

# what it writes is what prepare reads
expect 0 "$fathom" prepare --pairs corpus/pairs.yaml --vocab-size 200 --out data
grep -q 'zero-shot' err || fail "the zero-shot directions are not there"
expect 0 "$fathom" data check data
grep -q '\["de", "fr"\]' data/languages.json || fail "de-fr is not among the directions: $(cat data/languages.json)"
echo "test_corpora: right"
