#!/bin/bash
# check.sh NM SHARED_OBJECT...
# Checks that each shared object exports its own functions, but no symbol of
# the libraries that it contains. Unique symbols (STB_GNU_UNIQUE) are exports
# too, because the dynamic linker shares them among all objects of the process,
# whatever flags dlopen() gets.
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
