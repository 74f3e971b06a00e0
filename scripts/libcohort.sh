#!/usr/bin/env bash
# Builds the C library in OUT, or bin: libcohort.so and libcohort.a, of which nothing shows but the functions of cohort.h.
# Arguments are passed on to go build, such as -tags full.
set -euo pipefail
cd "$(dirname "$0")/.."

GO=${GO:-go}
export CGO_ENABLED=1
out=${OUT:-bin}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A tenth of the library are relocations, which take a twentieth of their room in packed form. glibc reads that since 2.36.
link="-Wl,--version-script=$PWD/cmd/libcohort/cohort.map -Wl,-soname,libcohort.so"
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null || true)
if [ "${libc%% *}" = glibc ] && printf '%s\n' 2.36 "${libc##* }" | sort -CV; then
    link+=" -Wl,-z,pack-relative-relocs"
fi

# Where a fit spends little time no function is inlined, which takes some 230 kB less.
plain=()
for package in encoding/json reflect fmt time os flag context syscall strings bytes io path/filepath io/fs internal/poll \
    bufio encoding/hex encoding/base64 sort strconv internal/strconv math/big hash/crc32 crypto/cipher crypto/aes crypto/hkdf \
    crypto/hmac crypto/sha3 internal/reflectlite math/rand gonum.org/... golang.org/x/text/... golang.org/x/sys/... \
    github.com/cohort-engine/cohort/engine/method/balcan github.com/cohort-engine/cohort/engine/method/evolve \
    github.com/cohort-engine/cohort/engine/method/hybrid github.com/cohort-engine/cohort/engine/method/lsf \
    github.com/cohort-engine/cohort/engine/step/staged github.com/cohort-engine/cohort/engine/method/sketch \
    github.com/cohort-engine/cohort/internal/secret github.com/cohort-engine/cohort/internal/filelock \
    github.com/cohort-engine/cohort/internal/pages github.com/cohort-engine/cohort/engine/method/eugkm \
    github.com/cohort-engine/cohort/engine/method/pca github.com/cohort-engine/cohort/engine/privacy \
    compress/flate compress/gzip errors unicode/utf8 unicode/utf16 github.com/cohort-engine/cohort/engine/method/lloyd \
    github.com/cohort-engine/cohort/engine/dataset/arrow \
    github.com/cohort-engine/cohort/engine/catalog/... \
    github.com/cohort-engine/cohort/internal/fault github.com/cohort-engine/cohort/engine/protocol/... \
    github.com/cohort-engine/cohort/engine/method github.com/cohort-engine/cohort/cmd/libcohort/... \
    github.com/cohort-engine/cohort/internal/secagg github.com/cohort-engine/cohort/engine/step/seeding \
    github.com/cohort-engine/cohort/engine/synopsis github.com/cohort-engine/cohort; do
    plain+=("-gcflags=$package=-l")
done

# A function of assembly stands on one line, so the table of lines has one entry for it, which takes some 90 kB less.
mkdir "$work/asm"
replace=
for file in asm/*_amd64.s; do
    awk '
        /^TEXT/ { if (body) print ""; body = 1; printf "%s", $0; next }
        /^(DATA|GLOBL)/ { if (body) print ""; body = 0 }
        body { sub("//.*", ""); if (NF) printf " ; %s", $0; next }
        { print }
        END { if (body) print "" }' "$file" >"$work/$file"
    replace+="${replace:+,}\"$file\":\"$work/$file\""
done
echo "{\"Replace\":{$replace}}" >"$work/overlay.json"

# Functions begin anywhere, not at multiples of 32 bytes, which takes some 120 kB less.
"$GO" build "$@" "${plain[@]}" -overlay "$work/overlay.json" -buildmode=c-shared -trimpath -o "$work/libcohort.so" \
    -ldflags "-s -w -funcalign=1 -extldflags '$link'" ./cmd/libcohort
"$GO" build "$@" -buildmode=c-archive -trimpath -ldflags "-w" -o "$work/all.a" ./cmd/libcohort
# One object, so that what its parts call each other by can be hidden.
(cd "$work" && mkdir parts && cd parts && ar x ../all.a && ld -r -d -o ../cohort.o ./*.o)
objcopy --wildcard --keep-global-symbol='cohort_*' "$work/cohort.o"
ar rcs "$work/libcohort.a" "$work/cohort.o"
mv "$work/libcohort.so" "$work/libcohort.a" "$out/"
cp cmd/libcohort/cohort.h "$out/"
