#!/usr/bin/env bash
# Builds the wheel of the Python package in bin, without the network: bin/cohort_kmeans-VERSION-py3-none-PLATFORM.whl.
#
# For other platforms than x86-64 Linux (untested), build the library there, or with a C compiler for it:
#
#     aarch64 Linux:  CC=aarch64-linux-gnu-gcc CGO_ENABLED=1 GOARCH=arm64 go build -buildmode=c-shared -o libcohort.so ./cmd/libcohort
#                     LIBRARY=libcohort.so COHORT_PLATFORM=linux_aarch64 scripts/wheel.sh
#     macOS (there):  go build -buildmode=c-shared -o libcohort.dylib ./cmd/libcohort
#                     LIBRARY=libcohort.dylib COHORT_PLATFORM=macosx_11_0_arm64 scripts/wheel.sh
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-/usr/bin/python3}
LIBRARY=${LIBRARY:-bin/libcohort.so}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r python/cohort_kmeans python/pyproject.toml python/setup.py python/README.md LICENSE "$work"
rm -rf "$work/cohort_kmeans/__pycache__"
cp "$LIBRARY" "$work/cohort_kmeans/"
"$PYTHON" -m build --wheel --no-isolation --outdir "$work/dist" "$work" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
}
rm -f bin/cohort_kmeans-*.whl
mkdir -p bin
mv "$work"/dist/*.whl bin/
ls bin/cohort_kmeans-*.whl
