#!/usr/bin/env bash
# Builds the C library, and the programs that use it with the address and undefined-behaviour sanitisers, and runs them.
set -euo pipefail
cd "$(dirname "$0")/.."

flags=(-Wall -Wextra -Werror -g -fsanitize=address,undefined -fno-sanitize-recover=all -Icmd/libcohort)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export LD_LIBRARY_PATH=bin

gcc -std=c11 "${flags[@]}" examples/c/customers.c -Lbin -lcohort -lm -o "$out/customers"
g++ -std=c++17 "${flags[@]}" examples/cpp/clients.cpp -Lbin -lcohort -o "$out/clients"
gcc -std=c11 "${flags[@]}" cmd/libcohort/testdata/interface.c -Lbin -lcohort -lm -lpthread -o "$out/interface"
# The archive is linked into the program, which then needs no library.
gcc -std=c11 -Wall -Wextra -Werror -Icmd/libcohort examples/c/customers.c bin/libcohort.a -lm -lpthread -o "$out/static"
gcc -std=c11 "${flags[@]}" cmd/libcohort/testdata/encrypted.c -Lbin -lcohort -lm -o "$out/encrypted"
for program in customers clients interface static encrypted; do
    echo "== $program"
    "$out/$program"
done

# The library that has the methods under homomorphic encryption takes the other's place, and what they ask for is computed.
OUT="$out/full" ./scripts/libcohort.sh -tags full
gcc -std=c11 -Wall -Wextra -Werror -Icmd/libcohort cmd/libcohort/testdata/encrypted.c "$out/full/libcohort.a" -lm -lpthread -o "$out/encrypted-static"
for program in customers interface "encrypted full" "encrypted-static full"; do
    echo "== $program, with libcohort-full"
    # shellcheck disable=SC2086
    LD_LIBRARY_PATH=$out/full "$out/"$program
done

echo "== symbols"
for library in "nm -D bin/libcohort.so" "nm -g bin/libcohort.a" "nm -D $out/full/libcohort.so" "nm -g $out/full/libcohort.a"; do
    if others=$($library --defined-only | awk 'NF == 3 {print $3}' | grep -v '^cohort_'); then
        echo "$library shows more than the interface: $others" >&2
        exit 1
    fi
done
size=$(stat -c %s bin/libcohort.so)
echo "libcohort.so has $size bytes"
if [ "$size" -ge 7000000 ]; then
    echo "that is more than 7 MB" >&2
    exit 1
fi
