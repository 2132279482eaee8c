#!/bin/bash
# check.sh COMPILER INCLUDE_DIR [OTHER_INCLUDE_DIR...]
# Checks each header under INCLUDE_DIR:
# - It compiles as C++17, alone and included twice, with only these folders on
#   the include path.
# - It includes only the standard library and other headers of this library.
#   Only headers of the device layer include headers of the device layer. This
#   shows that neither Highway nor TBB is needed, even where both are
#   installed.
# - Headers of device/metal/ include each other without a folder, because
#   shaders read them from a single folder.
# - Headers of the C ABI include <stddef.h>, <stdint.h> and each other, and
#   also compile as C99.
# - Only openmp_executor.h includes OpenMP's header; without -fopenmp it is
#   empty.
set -euo pipefail

compiler=$1
include=$2
folders=("${@:2}")
includes=("${folders[@]/#/-I}")
failures=0
count=0

fail() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

while IFS= read -r header; do
  count=$((count + 1))
  name=${header#"$include"/}

  # <name> without folder and extension is a header of the standard library. C
  # headers are allowed only in the C ABI.
  folder=
  [[ $name != */device/* ]] || folder='(device/(metal/)?)?'
  allowed='^#include (<[a-z_0-9]+>|"switchyard/'$folder'[a-z_0-9.]+\.h")'
  [[ $name != */device/metal/* ]] || allowed+='|^#include "switchyard_[a-z]+\.h"'
  in_c=
  openmp=()
  if [[ $name == */openmp_executor.h ]]; then
    allowed+='|^#include <omp\.h>'
    ! echo '#include <omp.h>' | "$compiler" -fopenmp -fsyntax-only -x c++ - 2>/dev/null ||
      openmp=(-fopenmp)
  fi
  if [[ $name == */switchyard.h || $name == */c/* ]]; then
    in_c=yes
    allowed='^#include (<std(def|int)\.h>|"switchyard/c/[a-z_0-9]+\.h")'
  fi
  others=$(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*/#include /p' \
    "$header" | grep -vE "$allowed" || true)
  [[ -z $others ]] || fail "$name includes more than std and switchyard: $others"

  printf '#include "%s"\n#include "%s"\n' "$name" "$name" |
    "$compiler" -std=c++17 -pedantic-errors -Wall -Wextra -Wshadow -Wconversion \
      "${openmp[@]}" -Werror -fsyntax-only "${includes[@]}" -x c++ - ||
    fail "$name does not compile alone"
  [[ -z $in_c ]] || printf '#include "%s"\n#include "%s"\nint nothing;\n' "$name" "$name" |
    "$compiler" -std=c99 -pedantic-errors -Wall -Wextra -Wshadow -Wconversion \
      -Wstrict-prototypes -Werror -fsyntax-only "${includes[@]}" -x c - ||
    fail "$name does not compile alone as C99"
done < <(find "$include" -type f | LC_ALL=C sort)

((count > 0)) || fail "no header found in $include"
echo "$count headers, $failures failures ($compiler)"
((failures == 0))
