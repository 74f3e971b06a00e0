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

# What no hot loop calls is not inlined: it would cost some fifty kilobytes.
small=()
for package in encoding/... time os io io/fs bufio bytes strings sort context reflect fmt flag math/big syscall path/... compress/... \
    internal/poll golang.org/x/... github.com/klauspost/cpuid/... github.com/cohort-engine/cohort/internal/fault \
    github.com/cohort-engine/cohort/engine/method github.com/cohort-engine/cohort/cmd/libcohort/... github.com/cohort-engine/cohort; do
    small+=("-gcflags=$package=-l")
done

"$GO" build "$@" "${small[@]}" -buildmode=c-shared -trimpath -o "$work/libcohort.so" \
    -ldflags "-s -w -extldflags '-Wl,--version-script=$PWD/cmd/libcohort/cohort.map -Wl,-soname,libcohort.so -Wl,-z,noseparate-code -Wl,--build-id=none'" ./cmd/libcohort
"$GO" build "$@" -buildmode=c-archive -trimpath -ldflags "-w" -o "$work/all.a" ./cmd/libcohort
# One object, so that what its parts call each other by can be hidden.
(cd "$work" && mkdir parts && cd parts && ar x ../all.a && ld -r -d -o ../cohort.o ./*.o)
objcopy --wildcard --keep-global-symbol='cohort_*' "$work/cohort.o"
ar rcs "$work/libcohort.a" "$work/cohort.o"
mv "$work/libcohort.so" "$work/libcohort.a" bin/
cp cmd/libcohort/cohort.h bin/
