#!/bin/sh
# The page of report and watch in a real browser: it draws, within its security policy, at any width and
# in both themes, and follows a run that goes on. Skipped (77) without Chromium.
# KEEP=FOLDER keeps the screenshots there, to look at.
set -eu
fathom=$1
here=$(cd "$(dirname "$0")" && pwd)
browser=
for name in chromium chromium-browser google-chrome; do
    if [ -z "$browser" ] && command -v $name >/dev/null; then browser=$name; fi
done
if [ -z "$browser" ]; then
    echo "no Chromium: the page was not looked at"
    exit 77
fi
tree=$(mktemp -d)
pids=
stop() {
    for pid in $pids; do kill "$pid" 2>/dev/null || true; done
    for pid in $pids; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$tree" 2>/dev/null || true
}
trap stop EXIT
cd "$tree"

fail() {
    echo "test_report_browser: $*" >&2
    exit 1
}

# browse OPTIONS... URL
browse() {
    timeout 100 "$browser" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$tree/profile" "$@" 2>chrome.err
}

# dom URL: the page after its script has run, in the file dom
dom() {
    browse --window-size=1280,9000 --virtual-time-budget=5000 --dump-dom "$1" >dom || fail "the browser failed: $(tail -3 chrome.err)"
    grep -q 'data-ready="[0-9]*"' dom || fail "$1: the script did not come to its end"
}

count() { grep -o "$1" dom | wc -l; }

"$here/tools/make-deep-log" first 12 400 20
"$here/tools/make-deep-log" second 8 300 30
mkdir broken
{ head -3 first/log.jsonl; echo '{"type":"warn","update":1,"text":"<img src=x onerror=document.title=1>"}'; echo '{"ty'
  echo '{"type":"diverged","update":5,"reason":"<b>it</b> failed"}'; } >broken/log.jsonl
echo '{"reason":"it failed","first_fault":{"text":"layer 1","update":3,"quantity":"grad_norm","value":"nan"},"advice":[{"text":"less"}],"rows":[1,2]}' >broken/diverged.json
echo '{"source":"a","hypotheses":[{"text":"<script>b</script>","score":-1}]}' >broken/samples.jsonl

# ---- one run, several, a broken one ----
"$fathom" report first --out one.html 2>/dev/null
dom "file://$tree/one.html"
[ "$(count '<canvas width="[0-9]*" height="6"')" -ge 8 ] || fail "heat maps are missing: $(count '<canvas')"
[ "$(count '<figure')" -ge 20 ] || fail "figures are missing: $(count '<figure')"
grep -q 'role="group" aria-label="Loss: 2 lines against update' dom || fail "the loss has no label for screen readers"
"$fathom" report first second broken missing --out all.html 2>/dev/null
dom "file://$tree/all.html"
for text in 'Options in which the runs differ' 'What went wrong' 'missing/log.jsonl: cannot open' 'First sign: ' \
    '1 line of log.jsonl could not be read' '&lt;script&gt;b&lt;/script&gt;' 'the run failed at update 5: &lt;b&gt;it' \
    '&lt;img src=x onerror'; do
    grep -qF -- "$text" dom || fail "the page does not say: $text"
done
grep -q '<title>4 runs · fathom</title>' dom || fail "text of the log was run as script"

# ---- what the page does when it is used: a copy without its policy, and a script that uses it ----
for seed in 3 4; do
    cp -r first "seed-$seed"
    printf 'method: branchnorm\nheads: 8\nseed: %s\nsave-dir: seed-%s\n' $seed $seed >"seed-$seed/config.yaml"
done
"$fathom" report first second seed-3 seed-4 --out used.html 2>/dev/null
sed -i '/http-equiv="Content-Security-Policy"/d' used.html
cat >>used.html <<'END'
<script>
const faults = [];
const check = (ok, text) => { if (!ok) faults.push(text); };
const loss = () => parts.charts.loss;
const entry = (name) => [...parts.key.querySelectorAll('button')].find((b) => b.textContent.startsWith(name));
loss().draw();
const before = loss().series.length;
entry('second').click();
check(loss().series.length === before - 2 && entry('second').getAttribute('aria-pressed') === 'false', 'a run is not switched off');
entry('second').click();
entry('validation').click();
check(loss().series.every((s) => !s.markers), 'validations are not switched off');
entry('validation').click();
check(loss().series.length === before, 'lines are not switched on again');
loss().zoom([100, 200]);
for (const c of Object.values(parts.charts)) c.draw();
check(Object.values(parts.charts).every((c) => c.box.x0 === 100 && c.box.x1 === 200), 'charts are not zoomed together');
check(!parts.unzoom.hidden && loss().positions().every((x) => x >= 100 && x <= 200), 'the zoom is not said, or not kept to');
parts.unzoom.click();
loss().draw();
check(loss().box.x0 < 100 && parts.unzoom.hidden, 'the whole range does not come back');
const one = loss().series.find((s) => s.markers), other = loss().series.find((s) => !s.markers && s.run === one.run);
const x = other.x.find((v) => !one.x.includes(v));
check(/, at /.test(loss().lines(x).find(([, label]) => label === one.label)[2]), 'a validation of another update does not say so');
check(!/, at /.test(loss().lines(one.x[2]).find(([, label]) => label === one.label)[2]), 'a validation of this update says another');
ui.view.clip = true;
loss().series[0].y[1] = 1e6;
loss().draw();
check(loss().box.y1 < 1e5, 'an outlier is not clipped');
ui.view.clip = false;
ui.view.smooth = 0.8;
const lines = loss().svg.querySelectorAll('path').length;
loss().draw();
check(loss().svg.querySelectorAll('path').length > lines, 'no smoothed line beside the other');
ui.seeds = true;
fillCurves();
const mean = loss().series.filter((s) => /more seed/.test(s.label));
check(mean.length === 2 && mean[0].low.length === mean[0].x.length, 'seeds are not one line with a band');
ui.seeds = false;
ui.beside = 1;
build();
const heat = Object.values(parts.heats)[0];
heat.draw();
check(heat.body.classList.contains('pair') && heat.body.querySelectorAll('canvas[role=img]').length >= 2, 'heat maps do not stand side by side');
const scales = [...heat.body.querySelectorAll('.heat')].map((n) => n.querySelector('.scale').textContent);
check(scales.length === 2 && scales[0] === scales[1], 'heat maps side by side have two scales');
const said = heat.toggle.textContent;
heat.toggle.click();
check(heat.toggle.textContent !== said && !heat.body.querySelector('.scale').textContent.endsWith(said.split(' ')[0]), 'the colours are not switched');
check(linearTicks(1, 6, 8, true).every(Number.isInteger), 'half layers');
while (waiting.size) drawNow(waiting.keys().next().value);
const stops = (f) => [...f.querySelectorAll('[tabindex="0"], button:not([tabindex])')].filter((n) => !n.closest('details')).length;
check([...document.querySelectorAll('figure')].every((f) => stops(f) === 1), 'a figure has more tab stops than one');
check([...document.querySelectorAll('button')].every((b) => b.getAttribute('aria-label') || b.textContent.trim()), 'a button has no name');
check([...document.querySelectorAll('figure button')].every((b) => b.getAttribute('aria-label')), 'a button of a figure does not say of which');
document.body.dataset.used = faults.length ? faults.join('; ') : 'well';
</script>
END
dom "file://$tree/used.html"
grep -q 'data-used="well"' dom || fail "the page in use: $(grep -o 'data-used="[^"]*"' dom || tail -3 chrome.err)"

# ---- pictures: light, dark, narrow; on paper ----
for look in light:1280 dark:1280 light:420; do
    theme=
    [ "${look%:*}" = light ] || theme=--blink-settings=preferredColorScheme=0
    browse $theme --virtual-time-budget=4000 --window-size="${look#*:},2400" --screenshot="$tree/${look%:*}-${look#*:}.png" \
        "file://$tree/all.html" >/dev/null || fail "no picture: $(tail -3 chrome.err)"
    [ "$(wc -c <"${look%:*}-${look#*:}.png")" -gt 30000 ] || fail "the picture $look is empty"
done
cmp -s light-1280.png dark-1280.png && fail "light and dark look the same"
browse --no-pdf-header-footer --print-to-pdf="$tree/paper.pdf" "file://$tree/all.html" >/dev/null || fail "no print"
[ "$(wc -c <paper.pdf)" -gt 30000 ] || fail "the print is empty"
[ -z "${KEEP:-}" ] || cp ./*.png paper.pdf all.html "$KEEP"

# ---- deep and long: opens quickly ----
"$here/tools/make-deep-log" deep 1000 10000 100
"$fathom" report deep --out deep.html 2>/dev/null
# with the real clock, unlike the others; dom gives the text of the whole page afterwards
browse --dump-dom "file://$tree/deep.html" >dom || fail "the browser failed: $(tail -3 chrome.err)"
ready=$(grep -o 'data-ready="[0-9]*"' dom | tr -dc 0-9)
echo "a run of 1000 layers and 10000 updates opens in $ready ms"
[ "${ready:-99999}" -lt 10000 ] || fail "that is too slow" # a busy machine is given time; a quiet one takes 0.4 s
dom "file://$tree/deep.html"
grep -q 'Thinned: a cell is the mean of 3 layers' dom || fail "thinning is not said"

# ---- live: the title follows the run ----
command -v curl >/dev/null || exit 0
mkdir live
head -100 first/log.jsonl >live/log.jsonl
"$fathom" watch live --port 0 --interval 0.2 >url 2>watch.err &
pids=$!
for _ in $(seq 100); do [ -s url ] && break; sleep 0.1; done
"$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$tree/live-profile" --remote-debugging-port=0 \
    "$(cat url)" >/dev/null 2>live.err &
pids="$pids $!"
# titled TEXT: waits until the page's title begins with it
titled() {
    for _ in $(seq 300); do
        port=$(sed -n 's|.*ws://[^:]*:\([0-9]*\)/.*|\1|p' live.err | head -1)
        if [ -n "$port" ] && curl -s "http://127.0.0.1:$port/json/list" | grep -q "\"title\": \"$1"; then return; fi
        sleep 0.1
    done
    fail "the live page is not titled $1: $(curl -s "http://127.0.0.1:$port/json/list")"
}
before=$(grep -o '"update":[0-9]*' live/log.jsonl | tail -1 | tr -dc 0-9)
titled "$before"
tail -n +101 first/log.jsonl >>live/log.jsonl
titled 400
