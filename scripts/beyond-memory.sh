#!/usr/bin/env bash
# A set that is kept in a file of panels: lloyd (20 rounds) and hybrid run to the end within so much anonymous memory.
# RECORDS is 10^8 for the whole (3.2 GB of panels, 1.5 GB of memory); CI has a tenth. 32 MB are the program's own, which do
# not grow with the records.
set -euo pipefail
cd "$(dirname "$0")/.."

records=${RECORDS:-10000000}
limit=$((records / 100000 * 1468 + 32000)) # kB: 1.5 GB at 10^8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for method in "lloyd --init sphere --iterations 20" "hybrid --epsilon 1"; do
    # shellcheck disable=SC2086
    ./bin/cohort run --data builtin:blobs --n "$records" --d 8 --k 16 --bounds=-200:200 --cache "$work" --quality off --method $method >"$work/out" 2>"$work/err" &
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
    echo "${method%% *}, $records x 8: $((most / 1000)) MB of anonymous memory, of $((limit / 1000)) MB that are allowed"
    if [ "$most" -gt "$limit" ]; then exit 1; fi
done
