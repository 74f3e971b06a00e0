#!/usr/bin/env bash
# Run every fuzz target of the module for the given time each.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do
    package=./$(dirname "${file#./}")
    grep -o '^func Fuzz[A-Za-z0-9_]*' "$file" | cut -d' ' -f2 | while read -r target; do
        echo "== $package $target"
        go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
    done
done
