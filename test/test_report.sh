#!/bin/sh
# fathom report and fathom watch as a user calls them, on runs that are whole, unfinished, broken and missing.
. "$(dirname "$0")/common.sh"

says() {
    grep -qF -- "$2" "$1" || {
        cat "$1" >&2
        fail "$1 does not say: $2"
    }
}

"$here/tools/make-deep-log" whole 12 400 20
"$here/tools/make-deep-log" other 8 300 30

# ---- one file that needs nothing else ----
expect 0 "$fathom" report whole other --out page.html
says err 'page.html: 2 runs'
[ "$(tail -1 page.html)" = '</html>' ] || fail "the page is cut off"
grep -E '(src|href)="' page.html | grep -vE 'href="(#main|data:,)"' && fail "the page refers to other files"
expect 0 "$fathom" report whole --out - --json
says out '"runs":[{"format":1,"name":"whole"'
says out '"state":"ended"'
expect 0 "$fathom" report whole/ --out page.html

# ---- a deep and long run is thinned, and the page says so ----
"$here/tools/make-deep-log" deep 402 3500 10
expect 0 "$fathom" report deep --out - --json
[ "$(wc -c <out)" -lt 8000000 ] || fail "the data of a deep run are too large: $(wc -c <out)"
says out '"per_bin":2'
says out '"every":2'
grep -q '"bins":101' out || fail "layers are not thinned"

# ---- unfinished, broken, empty, missing ----
mkdir cut empty
head -c 5000 whole/log.jsonl >cut/log.jsonl
{ head -3 whole/log.jsonl; printf '{"type":"tr\nnot json\n</script><script>alert(1)</script>\n\377\376\n{"type":"train","update":9,"loss":1}'; } >cut/log.jsonl
: >empty/log.jsonl
expect 0 "$fathom" report cut empty missing whole --out page.html
says err 'missing/log.jsonl: cannot open: No such file or directory'
says err 'cut/log.jsonl: 4 lines left out; the first, line 4: not JSON'
grep -q 'alert(1)</script>' page.html && fail "a line of the log got into the page as it is"
expect 2 "$fathom" report missing
says err 'no run folder has a log.jsonl that can be read'
expect 2 "$fathom" report missing missing2
expect 2 "$fathom" report whole whole
says err 'whole: is given twice'
expect 2 "$fathom" report whole/log.jsonl
says err 'must be a run folder, not a file'
expect 2 "$fathom" report
expect 2 "$fathom" report whole --out no/such/folder/page.html
expect 2 "$fathom" report whole --out .
mkdir pipe && mkfifo pipe/log.jsonl
expect 2 "$fathom" report pipe # not read for ever
says err 'must be a plain file'

# ---- in the terminal, once, without escape codes ----
expect 0 env LC_ALL=C "$fathom" watch whole missing --terminal
says out 'whole: ended, update 400 of 400'
says out 'missing: missing'
says out 'grad_norm of the encoder'
grep -q "$(printf '\033')" out && fail "escape codes in a file"
LC_ALL=C grep -q '[^ -~]' out && fail "letters that are no ASCII without a UTF-8 locale"
expect 0 "$fathom" watch whole --terminal --quantity cosine
says out 'cosine of the encoder'
sed '/"name":"cosine"/d' whole/log.jsonl >less.jsonl
mkdir less && mv less.jsonl less/log.jsonl
expect 0 "$fathom" watch less --terminal --quantity cosine
says out 'no run has logged cosine'
expect 2 "$fathom" watch whole --terminal --quantity grad_nrom
says err '--quantity grad_nrom: must be a name that --telemetry writes'
says err 'did you mean grad_norm?'

# ---- the live page: its port, and how it ends ----
"$fathom" watch whole --port 0 >url 2>watch.err &
pid=$!
for _ in $(seq 100); do [ -s url ] && break; sleep 0.1; done
port=$(sed 's|.*:\([0-9]*\)/|\1|' url)
grep -qx "http://localhost:$port/" url || fail "no address: $(cat url watch.err)"
expect 2 "$fathom" watch whole --port "$port"
says err "--port $port: is in use by another program; must be a free port, 0 takes any"
kill -TERM $pid
status=0
wait $pid || status=$?
[ $status -eq 0 ] || fail "SIGTERM: exit status $status"
expect 2 "$fathom" watch whole --host example.com
says err 'must be localhost or a numeric address'
expect 2 "$fathom" watch whole --port 70000
