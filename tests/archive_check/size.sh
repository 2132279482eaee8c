#!/bin/bash
# size.sh STRIP ARCHIVE BYTES
# Checks that ARCHIVE is smaller than BYTES after STRIP has removed everything
# that a linker does not need.
set -euo pipefail

stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
"$1" --strip-unneeded -o "$stripped" "$2"
size=$(stat -c %s "$stripped")
echo "$2, stripped: $size bytes"
((size < $3)) || {
  echo "FAILED: not below $3 (docs/speed.md, Size)" >&2
  exit 1
}
