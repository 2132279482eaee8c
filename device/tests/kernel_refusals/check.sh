#!/bin/bash
# check.sh COMPILER...
# Checks that refused.cc compiles with REFUSED=0. With REFUSED=N, a static assertion must fail,
# and its message must contain the N-th entry of `texts`.
set -euo pipefail

compile() {
  "${compiler[@]}" -std=c++17 -fsyntax-only -DREFUSED="$1" \
    "$(dirname "$0")/refused.cc" 2>&1
}
compiler=("$@")
compile 0 || { echo "FAILED: refused.cc does not compile" >&2; exit 1; }
texts=(
  "checked mode has to know the members of a struct"
  "simd_sum is of numbers and vectors of them"
  "simd_max is of numbers"
  "simd_xor is of integers"
  "atomics are of numbers of 4 or 8 bytes"
  "what is const is not written"
  "an index is an integer"
  "buffer<T>: a type that can be copied byte by byte"
  "lanes are integers"
)
failures=0
for i in "${!texts[@]}"; do
  if output=$(compile $((i + 1))); then
    echo "FAILED: $((i + 1)) compiles: ${texts[i]}" >&2
    failures=$((failures + 1))
  elif ! grep -E 'static(_assert| assertion) failed' <<<"$output" | grep -qF "${texts[i]}"; then
    printf 'FAILED: %d is not refused with "%s":\n%s\n' $((i + 1)) "${texts[i]}" "$output" >&2
    failures=$((failures + 1))
  fi
done
echo "${#texts[@]} refusals, $failures failures"
((failures == 0))
