#!/usr/bin/env bash
# Run the arm64 assembly and the golden results under user-mode emulation.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(uname -m)" = aarch64 ]; then
    COHORT_ISA=neon go test -short ./kernels/... ./asm/... ./engine/method/ckks/rns
    exit
fi
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
if [ -z "$qemu" ]; then
    echo "SKIPPED: the arm64 tests need qemu-user-static, which is not installed"
    exit
fi
GOARCH=arm64 go vet ./...
# The oldest arm64 cores: AES, but none of the later extensions. With COHORT_ISA a
# CPU on which the assembly would not run is a failure.
GOARCH=arm64 COHORT_ISA=neon QEMU_CPU=cortex-a57 go test -short -timeout 20m -exec "$qemu" ./kernels/... ./asm/... ./engine/method/ckks/rns
# A comparison under encryption.
GOARCH=arm64 COHORT_ISA=neon QEMU_CPU=cortex-a57 go test -short -run SignUnderEncryption -exec "$qemu" ./engine/method/ckks
# What a newer core says of itself, and its products of bytes: the tests run all its paths.
GOARCH=arm64 COHORT_ISA=neoni8mm go test -short -run 'Path|Fuzz|Filter|Gather' -exec "$qemu" ./kernels/...
GOARCH=arm64 go test -short -run Golden -exec "$qemu" ./engine/method/lloyd/... ./engine/step/... ./engine/method/sketch/
