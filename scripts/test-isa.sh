#!/usr/bin/env bash
# Run the tests that reach the kernels once for each instruction set that this
# CPU has, and once without any assembly. The variable is read before the tests
# start, where the test cache does not see it: hence -count=1.
set -euo pipefail
cd "$(dirname "$0")/.."
packages="./kernels/... ./asm/... ./flow/... ./engine/method/lloyd/... ./engine/method/ckks/..."
for isa in generic avx2 avx512 avx512vnni amx neon neondot neoni8mm; do
    if COHORT_ISA=$isa go run ./cmd/cohort version >/dev/null 2>&1; then
        echo "== COHORT_ISA=$isa"
        COHORT_ISA=$isa go test -count=1 -short $packages
    else
        echo "== COHORT_ISA=$isa: this CPU lacks it, skipped"
    fi
done
echo "== purego"
go test -short -tags purego $packages
