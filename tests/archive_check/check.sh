#!/bin/bash
# check.sh NM ARCHIVE SRC_SIMD COMPILED_ISAS...
# ARCHIVE defines each function that the files of SRC_SIMD export through
# Highway, switchyard::simd::N_<ISA>::<Name>, exactly once for each ISA that the
# program COMPILED_ISAS prints and for no other; and its dispatcher once. Every
# row function, (..., size_t begin, size_t end), is among them.
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
exported=$(cat "$src_simd"/*.cc | sed -nE 's/^ *HWY_EXPORT\((.*)\);.*/\1/p' | sort -u)
rows=$(cat "$src_simd"/*.h | sed 's|//.*||' | tr '\n' ' ' |
  grep -oE '\w+\([^()]*size_t begin, +size_t end\) *;' | sed 's/(.*//' | sort -u) ||
  die "no row function declared in $src_simd"
forgotten=$(comm -13 <(echo "$exported") <(echo "$rows"))
[[ -z $forgotten ]] || die "row functions that are not compiled per ISA: $forgotten"

# External definitions, weak ones too, as "name ISA"; not the pieces that the
# compiler splits off ("[clone .cold]").
found=$(sed -nE 's/^[0-9a-f]+ [TW] switchyard::simd::N_(\w+)::(\w+)\([^[]*$/\2 \1/p' \
  <<<"$symbols" | grep -E "^($(paste -sd'|' <<<"$exported")) " | sort || true)
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
