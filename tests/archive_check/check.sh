#!/bin/bash
# check.sh NM ARCHIVE SRC_SIMD COMPILED_ISAS...
# Checks the functions that the files of SRC_SIMD export through Highway, as
# <Name> in switchyard::simd::N_<ISA>. ARCHIVE has to define each function
# exactly once for each ISA that the program COMPILED_ISAS prints, and for no
# other ISA. The exported functions have to include every function that a
# header declares as a RowFunction<...>. ARCHIVE has to define the dispatcher
# of each such function exactly once.
set -euo pipefail
export LC_ALL=C

nm=$1
archive=$2
src_simd=$3
shift 3

die() {
  echo "FAILED: $*" >&2
  exit 1
}

symbols=$("$nm" -C --defined-only "$archive") || die "$nm cannot read $archive"
[[ -n $symbols ]] || die "$nm finds no symbols in $archive"
isas=$("$@") || die "$* does not run"
[[ -n $isas ]] || die "$* lists no ISA"
declared=$(sed -nE 's/^RowFunction<\w+> (\w+)\(.*/\1/p' "$src_simd"/*.h | sort)
[[ -n $declared ]] || die "no row function declared in $src_simd"
# exports MACRO: prints "Name Function [List]" for each use of MACRO.
exports() {
  cat "$src_simd"/*.cc | tr -s '\n ' ' ' | grep -oE "\<$1\(\w+, \w+, \w+(, \w+)?\);" |
    sed -E 's/^\w+\((\w+), (\w+), \w+(, (\w+))?\);/\1 \2 \4/'
}
plain=$(exports SWITCHYARD_EXPORT)
typed=$(exports SWITCHYARD_EXPORT_TYPES)
# types LIST: prints the types in the list, and in the lists that it includes.
types() {
  local definition list
  definition=$(sed -nE "/^#define $1\(/,/[^\\]$/p" "$src_simd/../base/type_list.h")
  grep -oE '\<X\(\w+, __VA' <<<"$definition" | sed -E 's/X\((\w+),.*/\1/' || true
  for list in $(grep -oE 'SWITCHYARD_\w+\(X, __VA' <<<"$definition" | sed 's/(.*//'); do
    types "$list"
  done
}
rows=$(printf '%s\n' "$plain" "$typed" | sed 's/ .*//' | sort)
[[ $rows == "$declared" ]] || {
  diff <(echo "$declared") <(echo "$rows") >&2 || true
  die "row functions: < declared, > exported"
}
exported=$({
  echo HasFma
  while read -r _ function; do echo "${function}_Recorded"; done <<<"$plain"
  while read -r _ function list; do
    [[ -n $(types "$list") ]] || die "no types in $list"
    for type in $(types "$list"); do echo "${function}_${type}_Recorded"; done
  done <<<"$typed"
} | sort -u)

# Lists the file-local definitions as "name ISA". Leaves out pieces that the
# compiler splits off ("[clone .cold]"). A function in N_AVX3 whose name ends in
# _AsAvx3Dl counts as the version for AVX3_DL.
found=$(sed -nE \
  -e 's/N_AVX3(::\(anonymous namespace\)::\w+_Recorded)_AsAvx3Dl\(/N_AVX3_DL\1(/' \
  -e 's/^[0-9a-f]+ t switchyard::simd::N_(\w+)::\(anonymous namespace\)::(HasFma|\w+_Recorded)\([^[]*$/\2 \1/p' \
  <<<"$symbols" | sort)
expected=$(for function in $exported; do
  for isa in $isas; do echo "$function $isa"; done
done | sort)
if [[ $found != "$expected" ]]; then
  diff <(echo "$expected") <(echo "$found") >&2 || true
  die "functions in $archive: < expected, > found, each line once"
fi

for function in $rows; do
  n=$(grep -cE "^[0-9a-f]+ T switchyard::simd::$function\(" <<<"$symbols" || true)
  [[ $n == 1 ]] || die "$n dispatchers of $function, not 1"
done
echo "$(wc -l <<<"$exported") functions, $(wc -l <<<"$rows") of them over rows," \
  "x $(wc -l <<<"$isas") ISAs, each once"
