#!/bin/bash
# check_layout.sh LIST PROGRAM...
# Checks that the structs and enumerators of switchyard.h, which PROGRAM
# prints, equal those in the file LIST.
set -euo pipefail

list=$1
shift
printed=$("$@") || { echo "FAILED: $* does not run" >&2; exit 1; }
# Writes each field after its struct's name, so that lines can be sorted.
named() { awk '/^[^ ]/ { of = $1; print } /^ / { print of ":" $0 }' "$@" | LC_ALL=C sort; }
if ! diff <(named "$list") <(named <<<"$printed") >&2; then
  echo "FAILED: < in ${list##*/}, > in switchyard.h. Structs with a size may grow at their end, enumerations too; nothing else may change." >&2
  exit 1
fi
echo "$(wc -l <"$list") lines"
