#!/usr/bin/env bash
# Print our figures beside those of the C prototypes in the reference folder, on
# the same data, taking turns on one core: the kernels, the lattice transforms (beside
# Lattigo's too), and the flow solver beside
# LEMON's where liblemon-dev is installed. PEER names a Python with
# scikit-learn, whose Lloyd iteration is then timed too.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${PROTOTYPES:-../shared/reference/prototypes}
if [ ! -f "$folder/kmeans_ref.c" ]; then
    echo "SKIPPED: no prototypes in $folder (set PROTOTYPES)"
    exit
fi
binary=$(mktemp)
trap 'rm -f "$binary"' EXIT
go test -c -o "$binary" ./kernels
pin=()
if command -v taskset >/dev/null; then
    pin=(taskset -c "$(($(nproc) - 1))")
fi
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
"${pin[@]}" "$binary" -test.run '^TestPrototypes$' -prototypes "$(realpath "$folder")" ${PEER:+-peer "$PEER"}

if [ -f "$folder/lattice32.c" ]; then
    go test -c -o "$binary" ./kernels/ntt
    "${pin[@]}" "$binary" -test.run '^TestPrototypes$' -prototypes "$(realpath "$folder")"
fi

if [ -f "$folder/flow.cc" ]; then
    go test -c -o "$binary" ./flow
    folder=$(realpath "$folder")
    (cd flow && "${pin[@]}" "$binary" -test.run '^Test(Prototypes|FamiliesAgainstLEMON)$' -test.v -prototypes "$folder" | grep -v '^=== ')
fi
