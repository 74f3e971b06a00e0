#!/usr/bin/env bash
# Builds the C library in bin: libcohort.so and libcohort.a, of which nothing shows but the functions of cohort.h.
# Arguments are passed on to go build, such as -tags full.
set -euo pipefail
cd "$(dirname "$0")/.."

GO=${GO:-go}
export CGO_ENABLED=1
mkdir -p bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What no hot loop calls is not inlined, which would cost some two hundred kilobytes: the loops of these packages of ours
# are in kernels, flow and synopsis, or take microseconds of a fit.
small=()
for package in encoding/... time os io io/fs bufio bytes strings sort context reflect fmt flag math/big syscall path/... \
    compress/... internal/poll golang.org/x/... gonum.org/v1/gonum/... github.com/klauspost/cpuid/...; do
    small+=("-gcflags=$package=-l")
done
for package in internal/fault cmd/libcohort/... engine/method engine/method/{balcan,evolve,lsf,pca,eugkm,hybrid} engine/protocol \
    engine/step/staged engine/catalog/... engine/census engine/bounds engine/metrics engine/privacy; do
    small+=("-gcflags=github.com/cohort-engine/cohort/$package=-l")
done
small+=("-gcflags=github.com/cohort-engine/cohort=-l")

"$GO" build "$@" "${small[@]}" -buildmode=c-shared -trimpath -o "$work/libcohort.so" \
    -ldflags "-s -w -funcalign=16 -extldflags '-Wl,--version-script=$PWD/cmd/libcohort/cohort.map -Wl,-soname,libcohort.so -Wl,-z,noseparate-code -Wl,--build-id=none'" ./cmd/libcohort
"$GO" build "$@" -buildmode=c-archive -trimpath -ldflags "-w" -o "$work/all.a" ./cmd/libcohort
# One object, so that what its parts call each other by can be hidden.
(cd "$work" && mkdir parts && cd parts && ar x ../all.a && ld -r -d -o ../cohort.o ./*.o)
objcopy --wildcard --keep-global-symbol='cohort_*' "$work/cohort.o"
ar rcs "$work/libcohort.a" "$work/cohort.o"
mv "$work/libcohort.so" "$work/libcohort.a" bin/
cp cmd/libcohort/cohort.h bin/
