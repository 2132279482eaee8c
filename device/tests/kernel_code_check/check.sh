#!/bin/bash
# check.sh OBJDUMP ACCESSORS COMPILER...
# Compiles axpy.cc and checks its object file. The kernel must contain ACCESSORS calls, all of
# them to accessors, so each access in the loop over threads is a load or a store. The file may
# not refer to checked mode.
set -euo pipefail

objdump=$1
accessors=$2
shift 2
object=$(mktemp)
trap 'rm -f "$object"' EXIT
"$@" -std=c++17 -O3 -fno-pic -c -o "$object" "$(dirname "$0")/axpy.cc"

# Relocations name the called functions, on every CPU.
relocations=$("$objdump" -drC --no-show-raw-insn "$object")
calls=$(grep -cE 'R_[A-Z0-9_]+.*ThreadgroupContext::(Bound|CopyParams)' \
  <<<"$relocations" || true)
((calls == accessors)) || {
  echo "FAILED: $calls calls of accessors, not $accessors" >&2
  exit 1
}
others=$(grep -E 'R_[A-Z0-9_]+.*(PLT32|CALL26|PC32|32S?).*[a-zA-Z_]+\(' <<<"$relocations" |
  grep -vE 'ThreadgroupContext::(Bound|CopyParams)|__stack_chk_fail' || true)
[[ -z $others ]] || {
  printf 'FAILED: the loop calls\n%s\n' "$others" >&2
  exit 1
}
if grep -E 'Check|View|kernel_internal' <<<"$relocations" | grep -q 'R_'; then
  echo "FAILED: the unchecked kernel refers to checked mode" >&2
  exit 1
fi
echo "$calls calls, of accessors"
