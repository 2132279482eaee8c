#!/bin/bash
# check.sh NM ARCHIVE SRC_SIMD COMPILED_ISAS...
# ARCHIVE defines each function that the files of SRC_SIMD export through
# Highway, switchyard::simd::N_<ISA>::<Name>, exactly once for each ISA that the
# program COMPILED_ISAS prints and for no other. Every row function that a
# header declares is among them, and what finds it is defined once.
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
# exports MACRO: "Name Function [List]" of each use.
exports() { sed -nE "s/^$1\\((\w+), (\w+), \w+(, (\w+))?\\);/\\1 \\2 \\4/p" "$src_simd"/*.cc; }
plain=$(exports SWITCHYARD_EXPORT)
typed=$(exports SWITCHYARD_EXPORT_TYPES)
# pairs LIST: the types of each of its pairs, as "In_Out".
pairs() {
  sed -nE "/^#define $1\\(/,/[^\\\\]$/p" "$src_simd/storage_types.h" |
    grep -oE 'X\(\w+, \w+' | sed -E 's/X\((\w+), (\w+)/\1_\2/'
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
    [[ -n $(pairs "$list") ]] || die "no pairs in $list"
    for pair in $(pairs "$list"); do echo "${function}_${pair}_Recorded"; done
  done <<<"$typed"
} | sort -u)

# External definitions, weak ones too, as "name ISA"; not the pieces that the
# compiler splits off ("[clone .cold]").
found=$(sed -nE 's/^[0-9a-f]+ [TW] switchyard::simd::N_(\w+)::(HasFma|\w+_Recorded)\([^[]*$/\2 \1/p' \
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
