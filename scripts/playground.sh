#!/usr/bin/env bash
# Build the playground: one page that needs no network, bin/playground.html.
# With "test" it is run in headless Chromium, where there is one.
set -euo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
mkdir -p bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GOOS=js GOARCH=wasm "$GO" build -trimpath -buildvcs=false -ldflags "-s -w -buildid=" -o "$work/cohort.wasm" ./playground
gzip -9 -n -c "$work/cohort.wasm" | base64 -w 0 >"$work/wasm"
awk -v exec="$("$GO" env GOROOT)/lib/wasm/wasm_exec.js" -v wasm="$work/wasm" '
    function put(file, line) { while ((getline line < file) > 0) print line }
    /\{\{EXEC\}\}/ { print "<script>"; put(exec); print "</script>"; next }
    /\{\{WASM\}\}/ { printf "<script type=\"text/plain\" id=\"wasm\">"; getline line < wasm; printf "%s", line; print "</script>"; next }
    { print }' playground/index.tmpl.html >bin/playground.html
echo "bin/playground.html: $(wc -c <bin/playground.html) bytes"
[ "${1:-}" = test ] || exit 0
. scripts/browser.sh
if [ -z "$browser" ]; then
    echo "SKIPPED: the playground's test needs Chromium"
    exit 0
fi
page="file://$PWD/bin/playground.html#sample"
# In real time: a virtual clock does not wait until the module is compiled.
"$browser" --headless --no-sandbox --disable-gpu --enable-logging=stderr --remote-debugging-port=0 \
    --user-data-dir="$work/profile" "$page" 2>"$work/log" &
visit=$!
for _ in $(seq 240); do
    grep -q "done in" "$work/log" && break
    sleep 0.5
done
kill "$visit"
wait "$visit" 2>/dev/null || true
sed -n 's/.*cohort: \(.*done in [0-9.]* s\).*/the page clusters 100000 records of 2 columns: \1/p' "$work/log" | head -1
grep -q "done in" "$work/log" || { echo "the page did not cluster its sample"; exit 1; }
result=$(grep "the page of the result" "$work/log")
for want in "Where the budget went" "Who saw what" "private synopsis" "epsilon 1"; do
    grep -q "$want" <<<"$result" || { echo "the page of the result lacks: $want"; exit 1; }
done
