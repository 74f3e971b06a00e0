#!/usr/bin/env bash
# A set that is kept in a file of panels: lloyd (20 rounds) and hybrid run to the end within so much anonymous memory,
# also after a preparation that was killed. RECORDS is 10^8 for the whole (3.2 GB of panels, 1.5 GB of memory); CI has a
# tenth. 32 MB are the program's own, which do not grow with the records.
set -euo pipefail
cd "$(dirname "$0")/.."

records=${RECORDS:-10000000}
limit=$((records / 100000 * 1468 + 32000)) # kB: 1.5 GB at 10^8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The groups overlap, so that 20 rounds do not end before.
run="./bin/cohort run --data builtin:blobs --n $records --d 8 --k 16 --separation 1 --bounds=-10:10 \
    --cache $work/cache --quality off --timings --format json --method"

# A preparation that is killed when something of it is kept.
# shellcheck disable=SC2086
$run lloyd --init sphere --iterations 20 >"$work/out" 2>"$work/err" &
pid=$!
while kill -0 $pid 2>/dev/null && ! ls "$work"/cache/*.json >"$work/kept" 2>/dev/null; do sleep 0.05; done
kill -9 $pid
wait $pid 2>/dev/null || true
if grep -q '"Complete":true' "$work"/cache/*.json; then
    echo "the preparation had ended when it was to be killed" >&2
    exit 1
fi
echo "preparation killed, $(($(stat -c %s "$work"/cache/*.panels) / 1000000)) MB of panels are kept"

for method in "lloyd --init sphere --iterations 20" "hybrid --epsilon 1"; do
    # shellcheck disable=SC2086
    $run $method >"$work/out" 2>"$work/err" &
    pid=$!
    most=0
    while kill -0 $pid 2>/dev/null; do
        now=$(awk '/^RssAnon:/ {print $2}' "/proc/$pid/status" 2>/dev/null || true)
        if [ "${now:-0}" -gt "$most" ]; then most=$now; fi
        sleep 0.02
    done
    if ! wait $pid; then
        cat "$work/err" >&2
        exit 1
    fi
    name=${method%% *}
    echo "$name, $records x 8: $((most / 1000)) MB of anonymous memory, of $((limit / 1000)) MB that are allowed"
    if [ "$most" -gt "$limit" ]; then exit 1; fi
    if [ "$name" = lloyd ]; then
        number() { tr -d ' \n' <"$work/out" | grep -o "$1" | grep -o '[0-9]*$'; }
        rounds=$(number '"iterations":[0-9]*')
        round=$(number '"assign":{"count":[0-9]*,"total_ns":[0-9]*,"p50_ns":[0-9]*')
        echo "$rounds rounds, at a median of $((records * 32 * 1000 / round)) MB/s of panels"
        if [ "$rounds" -ne 20 ]; then exit 1; fi
    fi
done
