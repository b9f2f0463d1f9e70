# A made-up language for tests of speech, read by them with  . "$here/tools/tones.sh": each of eight letters is a tone of
# 0.12 seconds, a word is some of them, written as a WAV file of 8,000 samples a second and 8 bits.

# Bytes of a number of 32 bits, the lowest first, as printf takes them.
little_endian() {
    printf '\\%03o\\%03o\\%03o\\%03o' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24 & 255))
}

# make_tones: tone-a to tone-h, square waves with a little silence after each, and "tone-_", silence alone.
make_tones() {
    head -c 960 /dev/zero | tr '\0' '\200' > tone-_
    for tone in a:4 b:5 c:6 d:8 e:10 f:13 g:17 h:22; do
        half=${tone#*:}
        { head -c "$half" /dev/zero | tr '\0' '\260'; head -c "$half" /dev/zero | tr '\0' '\120'; } > period
        i=0
        while [ $i -lt $((960 / half)) ]; do
            cat period
            i=$((i + 1))
        done | head -c 760 | cat - tone-_ | head -c 960 > "tone-${tone%:*}"
    done
    rm period
}

# speak FILE LETTERS: a recording of them.
speak() {
    tones=$(echo "$2" | sed 's/[a-h_]/ tone-&/g')
    # shellcheck disable=SC2086 # files
    cat $tones > samples
    n=$(wc -c < samples)
    {
        printf 'RIFF'
        # shellcheck disable=SC2059 # the bytes are the format
        printf "$(little_endian $((n + 36)))"
        printf 'WAVEfmt \020\000\000\000\001\000\001\000\100\037\000\000\100\037\000\000\001\000\010\000data'
        # shellcheck disable=SC2059
        printf "$(little_endian "$n")"
        cat samples
    } > "$1"
    rm samples
}

# words N SEED: N words of two to five letters.
words() {
    awk -v n="$1" -v x="$2" 'BEGIN {
        for (i = 0; i < n; i++) {
            word = ""
            x = (x * 1103515245 + 12345) % 2147483648
            for (k = int(x / 65536) % 4 + 2; k > 0; k--) {
                x = (x * 16807) % 2147483647
                word = word substr("abcdefgh", int(x / 4096) % 8 + 1, 1)
            }
            print word
        }
    }'
}

# record NAME N SEED: NAME.tsv and its recordings in NAME/.
record() {
    mkdir -p "$1"
    printf 'id\taudio\tn_frames\ttgt_text\n' > "$1.tsv"
    i=0
    for word in $(words "$2" "$3"); do
        i=$((i + 1))
        speak "$1/$i.wav" "$word"
        printf '%s-%d\t%s/%d.wav\t\t%s\n' "$1" $i "$1" $i "$word" >> "$1.tsv"
    done
}
