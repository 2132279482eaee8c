#!/bin/bash
# check.sh NM SHARED_OBJECT...
# Checks that each shared object exports its own functions, and no symbol of
# the libraries in it. Exports include unique symbols (STB_GNU_UNIQUE), which
# the dynamic linker merges in the whole process, whatever the flags of
# dlopen() are.
set -euo pipefail

nm=$1
shift
for object in "$@"; do
  exported=$("$nm" -DC --defined-only "$object")
  grep -q ' T CopyRun$' <<<"$exported" || { echo "FAILED: $object exports no CopyRun"; exit 1; }
  # Templates of the standard library may be exported, but not if their
  # arguments are our types.
  others=$(grep -E 'switchyard|hwy' <<<"$exported" || true)
  [[ -z $others ]] || { printf 'FAILED: %s exports\n%s\n' "$object" "$others"; exit 1; }
done
echo "$# shared objects, nothing of the libraries in what they export"
