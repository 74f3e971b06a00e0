#!/usr/bin/env bash
# The pages of a live study, the operator's and a party's, in headless Chromium, where
# there is one; then the operator ends the study, and everybody is told.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/browser.sh
if [ -z "$browser" ]; then
    echo "SKIPPED: the test of the study's pages needs Chromium"
    exit 0
fi
. scripts/study.sh

"$cohort" data write blobs --n 300 --d 2 --k 3 --out all.csv >/dev/null
"$cohort" study new --names North,South --title "A live study" --d 2 --method fastlloyd --k 3 --epsilon 2 --delta 1e-5 \
    --public-n 600 --bounds=-10:10 --iterations 200 --pad-rounds 500ms >/dev/null
serve 2
join 1 all.csv --ledger north.ledger --page 127.0.0.1:0
join 2 all.csv
for _ in $(seq 200); do "$cohort" study status --format json | grep -q '"sums":[1-9]' && break; sleep 0.1; done

# events URL: how many states of the study its page was sent in three seconds.
events() {
    local at=${1#http://}
    at=${at%%/*}
    exec 3<>"/dev/tcp/${at%:*}/${at#*:}"
    printf 'GET /events HTTP/1.1\r\nHost: %s\r\n\r\n' "$at" >&3
    timeout 3 cat <&3 | grep -o '"sums":[0-9]*' | sort -u | wc -l
    exec 3>&-
}

# look PAGE FILE WANTED...: the page as a browser shows it after some events.
look() {
    local url=$1 file=$2
    shift 2
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" \
        --dump-dom "$url" >"$file" 2>/dev/null || true
    for want in "$@"; do
        grep -q "$want" "$file" || { echo "the page at $file lacks: $want"; cat "$file"; exit 1; }
    done
}
look "$(sed -n 's/^page: //p' serve.log)" operator.html "A live study" "North" "South" "agreed" "fastlloyd, running: sum" \
    "noisy centroids" "everything that the server may see" 'id="abort">End'
look "$(sed -n 's/^page: //p' party1.log)" party.html "A live study: North" "fastlloyd, running: sum" "noisy centroids" \
    "North has paid: charged to north.ledger as its run 1" 'id="abort" hidden'
if grep -q '>not complete<' operator.html; then
    echo "the operator's page has no fingerprint"
    exit 1
fi
[ "$(events "$(sed -n 's/^page: //p' serve.log)")" -ge 3 ] || { echo "the operator's page is not told of sums"; exit 1; }
"$cohort" profile --study coordinator | tee profile.txt
for want in "masked vectors" "unmasking" "a sum " "wan "; do
    grep -q "$want" profile.txt || { echo "the profile of the study lacks: $want"; cat profile.txt; exit 1; }
done
"$cohort" study abort
for p in "${joins[@]}" "$serve"; do
    if wait "$p"; then
        echo "a role of a study that was ended has a result"
        exit 1
    fi
done
pids=()
told() { grep -q "its operator ended it" "$@" || { echo "not all were told"; tail -n 3 ./*.log; exit 1; }; }
told party1.log
told party2.log

# A study whose sums are shared among servers: both pages show the servers, what they carried and how
# long they take; one that is killed is away, comes back by the same command, and is told of the end.
rm -rf coordinator tokens party1 party2
joins=()
"$cohort" study new --force --names North,South --title "Shared among servers" --d 2 --method fastlloyd --k 3 --epsilon 2 \
    --delta 1e-5 --public-n 600 --bounds=-10:10 --iterations 200 --pad-rounds 500ms --aggregator shares \
    --server-names Registry >/dev/null
serve 2
registry() {
    "$cohort" join --invite @tokens/server2.token --state registry --yes >/dev/null 2>>registry.log &
    registry=$!
    pids+=("$registry")
}
registry
join 1 all.csv --page 127.0.0.1:0
join 2 all.csv
sums() { "$cohort" study status --format json | grep -o '"sums":[0-9]*' | cut -d: -f2; }
for _ in $(seq 200); do [ "$(sums)" -ge 1 ] && break; sleep 0.1; done
look "$(sed -n 's/^page: //p' serve.log)" operator.html "Shared among servers" "Registry (server)" "fastlloyd, running: sum" \
    "shares of vectors" "<td>agreed</td><td></td><td>[1-9][0-9.]* k\?B</td><td>[1-9][0-9.]* k\?B</td>" 'id="abort">End'
look "$(sed -n 's/^page: //p' party1.log)" party.html "Shared among servers: North" "Registry (server)" "coordinator (server)" \
    "shares of the sum"
kill -9 "$registry"
wait "$registry" 2>/dev/null || true
for _ in $(seq 100); do "$cohort" study status | grep -q "Registry (server) *away" && break; sleep 0.1; done
look "$(sed -n 's/^page: //p' serve.log)" operator.html '<tr class="late"><td>Registry (server)' "<td>away</td>"
before=$(sums)
registry
for _ in $(seq 200); do [ "$(sums)" -gt "$((before + 1))" ] && break; sleep 0.1; done
[ "$(sums)" -gt "$((before + 1))" ] || { echo "a server that came back does not go on"; tail -n 3 ./*.log; exit 1; }
"$cohort" profile --study coordinator >profile.txt
grep -q "shares of vectors" profile.txt || { echo "the profile lacks the shares"; cat profile.txt; exit 1; }
"$cohort" study abort
for p in "${joins[@]}" "$registry" "$serve"; do
    if wait "$p"; then
        echo "a role of a study that was ended has a result"
        exit 1
    fi
done
pids=()
told party1.log
told party2.log
told registry.log
echo "The operator's page and a party's show live studies in $(browser_version); ended by their operator, all are told."
