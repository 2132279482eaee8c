#!/bin/bash
# check.sh COMPILER INCLUDE_DIR [OTHER_INCLUDE_DIR...]
# Each header under INCLUDE_DIR compiles alone, and twice in one file, as C++17
# with nothing but these folders on the include path; it includes only the
# standard library and other headers of this library, and those of the device
# layer only if it is one. Those of device/metal/, which shaders read from one
# folder, name each other without it. Those of the C ABI include <stddef.h>, <stdint.h> and
# each other, and compile as C99, too. OpenMP's is openmp_executor.h's alone, which
# has nothing without -fopenmp. The second check is what shows that neither Highway
# nor TBB is needed where both are installed.
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

  # <name> without folder or extension is the standard library's; C headers
  # only in the C door.
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
