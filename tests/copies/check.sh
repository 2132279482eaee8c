#!/bin/bash
# check.sh NM SHARED_OBJECT...: each exports its own functions and nothing of the
# libraries that are linked into it. What the dynamic linker would make one in the
# process, whatever it is told (STB_GNU_UNIQUE), is exported, too.
set -euo pipefail

nm=$1
shift
for object in "$@"; do
  exported=$("$nm" -DC --defined-only "$object")
  grep -q ' T CopyRun$' <<<"$exported" || { echo "FAILED: $object exports no CopyRun"; exit 1; }
  # Templates of the standard library may be there, but none of our types.
  others=$(grep -E 'switchyard|hwy' <<<"$exported" || true)
  [[ -z $others ]] || { printf 'FAILED: %s exports\n%s\n' "$object" "$others"; exit 1; }
done
echo "$# shared objects, nothing of the libraries in what they export"
