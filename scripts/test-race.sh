#!/usr/bin/env bash
# The race detector on every package that starts goroutines or gives work to the
# pool, in short cases. Where a package has many tests that run on one goroutine,
# those that do not are named.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v gcc >/dev/null; then
    echo "SKIPPED: the race detector needs a C compiler"
    exit
fi
go test -race -short ./engine ./engine/protocol ./engine/step/... ./engine/metrics ./internal/secagg
go test -race -short -run 'Apart|Workers|Cancel|SameBits|Wide' ./engine/method/... ./engine/step/staged ./engine/synopsis ./flow
go test -race -short ./engine/study/bus ./engine/study/link ./engine/study/trace
go test -race -short -run 'EveryMethod|Vanish' ./engine/study
go test -race -short -run 'FMPhantomsPLDBeside' ./engine/privacy
go test -race -short -run 'Prepare|Pipeline|Cancelled|Cache|Direct|Memory' ./engine/dataset
go test -race -short -run 'Workers|Concurrent|Cancel' ./bench/profile ./cmd/cohort
