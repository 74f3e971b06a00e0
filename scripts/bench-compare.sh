#!/usr/bin/env bash
# Compare the Go benchmarks of revision BASE with those of the working tree, or, with SUITES, the quick forms of
# suites of cohort bench: both are built first and run alternately, then benchstat compares.
set -euo pipefail
cd "$(dirname "$0")/.."
base=${1:?usage: bench-compare.sh REVISION}
packages=${PACKAGES:-"kernels flow engine engine/method/lloyd"}
suites=${SUITES:-}
rounds=${ROUNDS:-6}
pattern=${BENCH:-.}
work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
git worktree add --detach "$work/base" "$base" >/dev/null
if [ -n "$suites" ]; then
    go build -o "$work/suites.new" ./cmd/cohort
    go build -o "$work/lines" ./scripts/suitelines
    (cd "$work/base" && go build -o "$work/suites.old" ./cmd/cohort)
    packages=
fi
for p in $packages; do
    name=${p//\//-}
    go test -c -o "$work/$name.new" "./$p"
    [ -d "$work/base/$p" ] && (cd "$work/base" && go test -c -o "$work/$name.old" "./$p")
done
for round in $(seq "$rounds"); do
    # Which side comes first changes: what runs second may find the machine warmer.
    sides="old new"
    ((round % 2)) || sides="new old"
    for p in $packages; do
        name=${p//\//-}
        for side in $sides; do
            [ -x "$work/$name.$side" ] || continue
            (cd "$p" && "$work/$name.$side" -test.run '^$' -test.bench "$pattern" -test.benchtime 0.2s >>"$work/$side.txt")
        done
    done
    for suite in $suites; do
        for side in $sides; do
            "$work/suites.$side" bench "$suite" --quick --out "$work/$suite.$side.$round" >/dev/null
            "$work/lines" <"$work/$suite.$side.$round/results.csv" >>"$work/$side.txt"
        done
    done
    echo "round $round of $rounds done" >&2
done
go run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da "$work/old.txt" "$work/new.txt"
