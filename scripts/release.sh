#!/usr/bin/env bash
# Build the released files in dist: stripped binaries that are the same bytes from the
# same source and compiler anywhere, their checksums, and what each is made of.
set -euo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
export CGO_ENABLED=0 GOFLAGS=-mod=readonly
version=$(sed -n 's/^const Version = "\(.*\)"/\1/p' engine/version.go)
rm -rf dist
mkdir -p dist
for system in ${SYSTEMS:-linux darwin windows}; do
    for arch in ${ARCHS:-amd64 arm64}; do
        name=cohort-$version-$system-$arch
        [ "$system" = windows ] && name=$name.exe
        echo "$name"
        GOOS=$system GOARCH=$arch "$GO" build -trimpath -buildvcs=false -ldflags "-s -w -buildid=" -o "dist/$name" ./cmd/cohort
        "$GO" run ./scripts/sbom "dist/$name" >"dist/$name.cdx.json"
    done
done
(cd dist && sha256sum cohort-* >SHA256SUMS)
echo "dist/SHA256SUMS:"
cat dist/SHA256SUMS
