#!/usr/bin/env bash
# Run every fuzz target of the module for the given time each, or so many inputs (10000x); GUIDED=no
# leaves out the counters of coverage, which take most of the time of a target whose program is large: inputs
# are then made from the corpus that guided runs have found. COHORT_FUZZ_EACH=999 has the targets of messages
# try 999 others, made of each input (internal/vary): where a message is read in a microsecond, handing an input
# over takes a hundred.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do
    package=./$(dirname "${file#./}")
    grep -o '^func Fuzz[A-Za-z0-9_]*' "$file" | cut -d' ' -f2 | while read -r target; do
        echo "== $package $target"
        if [ "${GUIDED:-yes}" = yes ]; then
            go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
            continue
        fi
        binary=$PWD/bin/fuzz.test
        found=$(go env GOCACHE)/fuzz/$(go list "$package")
        go test -c -o "$binary" "$package"
        (cd "$package" && "$binary" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" -test.fuzzcachedir "$found")
    done
done
