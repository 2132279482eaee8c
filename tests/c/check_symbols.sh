#!/bin/bash
# check_symbols.sh NM LIST LIBRARY
# Checks that LIBRARY, static or shared, exports exactly the functions of the C
# ABI in LIST (layout.txt).
set -euo pipefail
export LC_ALL=C

nm=$1 list=$2 library=$3
wanted=$(sed -n 's/^function //p' "$list" | sort)
options=(--defined-only --extern-only)
[[ $library != *.so* ]] || options+=(--dynamic)
symbols=$("$nm" "${options[@]}" "$library") || { echo "FAILED: $nm cannot read $library" >&2; exit 1; }
found=$(sed -nE 's/^[0-9a-f]+ [A-Z] (swy_[^@]*)(@.*)?$/\1/p' <<<"$symbols" | sort)
if ! diff - <(echo "$found") <<<"$wanted" >&2; then
  echo "FAILED: $library: < in ${list##*/}, > in the library. Callers rely on what is there; add what is new." >&2
  exit 1
fi
echo "$(wc -l <<<"$wanted") functions"
