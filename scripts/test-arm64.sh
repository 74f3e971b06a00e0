#!/usr/bin/env bash
# Run the arm64 assembly and the golden results under user-mode emulation.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(uname -m)" = aarch64 ]; then
    go test -short ./kernels/... ./asm/...
    exit
fi
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
if [ -z "$qemu" ]; then
    echo "SKIPPED: the arm64 tests need qemu-user-static, which is not installed"
    exit
fi
GOARCH=arm64 go vet ./...
GOARCH=arm64 go test -short -exec "$qemu" ./kernels/... ./asm/...
# The oldest arm64 cores: AES, but none of the later extensions.
GOARCH=arm64 QEMU_CPU=cortex-a57 go test -short -exec "$qemu" ./kernels/...
GOARCH=arm64 go test -short -run Golden -exec "$qemu" ./engine/horizontal/... ./engine/central/... ./engine/vertical/
