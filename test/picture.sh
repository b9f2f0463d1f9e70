# What a run leaves, in text, for scripts that compare runs. What depends on the clock is left out.

# log FILE: the lines that a reader makes of it. A start line takes back what comes after its update (doc/formats.md), so
# a line that is written again must be the same.
log() {
    grep -v '"type":"start"' "$1" |
        sed 's/,"\(wall\|wps\|ups\|data_wait\)":[-0-9.e+"a-z]*//g' | LC_ALL=C sort -u
}

# picture_of_run RUN
picture_of_run() {
    (cd "$1" && ls -A . checkpoints && readlink checkpoints/last checkpoints/best &&
        cat checkpoints/*/config.json && sha256sum checkpoints/step-*/*.safetensors checkpoints/step-*/tokenizer* &&
        sed '/"wall":/d; /"crc32":/d' checkpoints/step-*/state.json)
    log "$1/log.jsonl"
}
