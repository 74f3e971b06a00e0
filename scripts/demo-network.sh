#!/usr/bin/env bash
# A study on one machine: a coordinator and three parties, each a process with its own
# file and state, over TLS. It ends with the centroids of `cohort run` on all three
# files with the same seed, or fails.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/study.sh

"$cohort" data write blobs --n 3000 --d 3 --k 4 --out all.csv >/dev/null
for p in 1 2 3; do
    { head -1 all.csv; awk -v p=$p 'NR > 1 && NR % 3 == p - 1' all.csv; } >"party$p.csv"
done

method=(--method fastlloyd --k 4 --epsilon 2 --delta 1e-5 --public-n 3000 --bounds=-10:10 --seed 7)
"$cohort" study new --names North,South,East --d 3 "${method[@]}" --at-least 2
serve 3
for p in 1 2 3; do join $p party$p.csv --format json; done
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
