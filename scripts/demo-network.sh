#!/usr/bin/env bash
# A study on one machine: a coordinator and three parties, each a process with its own
# file and state, over TLS. It ends with the centroids of `cohort run` on all three
# files with the same seed, or fails.
set -euo pipefail
cd "$(dirname "$0")/.."
cohort=$PWD/bin/cohort
work=$(mktemp -d)
pids=()
clean() {
    for p in "${pids[@]:-}"; do kill "$p" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean EXIT
cd "$work"

"$cohort" data write blobs --n 3000 --d 3 --k 4 --out all.csv >/dev/null
for p in 1 2 3; do
    { head -1 all.csv; awk -v p=$p 'NR > 1 && NR % 3 == p - 1' all.csv; } >"party$p.csv"
done

method=(--method fastlloyd --k 4 --epsilon 2 --delta 1e-5 --public-n 3000 --bounds=-10:10 --seed 7)
"$cohort" study new --names North,South,East --d 3 "${method[@]}" --at-least 2
"$cohort" serve study.json --listen 127.0.0.1:0 --tokens tokens 2>serve.log &
pids+=($!)
serve=$!
for _ in $(seq 100); do [ -f tokens/party3.token ] && break; sleep 0.1; done
joins=()
for p in 1 2 3; do
    "$cohort" join --invite @tokens/party$p.token --data party$p.csv --state party$p --yes --format json >result$p.json 2>party$p.log &
    joins+=($!)
    pids+=($!)
done
for p in "${joins[@]}" "$serve"; do
    wait "$p" || { tail -n 5 ./*.log >&2; exit 1; }
done
pids=()

"$cohort" run --data party1.csv,party2.csv,party3.csv "${method[@]}" --noise split --survivors 2 --format json >alone.json
centroids() { sed 's/.*"centroids":\(\[\[[^]]*\(\],\[[^]]*\)*\]\]\).*/\1/' "$1"; }
want=$(centroids alone.json)
for p in 1 2 3; do
    if [ "$(centroids result$p.json)" != "$want" ]; then
        echo "party $p has other centroids than cohort run:"
        centroids "result$p.json"
        echo "$want"
        exit 1
    fi
done
"$cohort" study verify study.json coordinator party1 party2 party3
echo "The three parties have the centroids of cohort run on all their files, bit for bit:"
echo "$want"
