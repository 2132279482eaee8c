#!/bin/bash
# check.sh COMPILER INCLUDE_DIR...
# Checks that refused.cc compiles as C++17 and C++20, that each of its wrong
# calls is refused with the reason, and that Clang warns of a dangling
# product. As C++14, every C++ header has to say first that the standard is
# too old.
set -euo pipefail

includes=("${@:2}")
compiler=("$1" -fsyntax-only "${includes[@]/#/-I}")
failures=0

compile() {
  "${compiler[@]}" -std="$1" -DREFUSED="$2" "$(dirname "$0")/refused.cc" 2>&1
}
for standard in c++17 c++20; do
  compile $standard 0 || { echo "FAILED: refused.cc as $standard" >&2; exit 1; }
done
elements="elements are float, BFloat16, Float16, int32_t, uint32_t, int64_t"
const="data of an output is not const"
matrix="a matrix is {data, rows, cols}"
product="ExpertGemm takes a function that is called with a const ExpertTile& and returns"
texts=(
  "$elements" "$elements" "$elements" "$elements" "$elements"
  "$const" "$const" "$const" "$const" "$const"
  "$matrix" "$matrix" "$matrix"
  "rows, cols and stride are integers"
  "$product" "$product" "$product" "$product" "$product"
)
for i in "${!texts[@]}"; do
  if output=$(compile c++17 $((i + 1))); then
    echo "FAILED: $((i + 1)) compiles: ${texts[i]}" >&2
    failures=$((failures + 1))
  elif ! grep -E 'static(_assert| assertion) failed' <<<"$output" | grep -qF "${texts[i]}"; then
    printf 'FAILED: %d is not refused with "%s":\n%s\n' $((i + 1)) "${texts[i]}" "$output" >&2
    failures=$((failures + 1))
  elif [[ ${texts[i]} == "$product" ]] && (($(grep -cE '(^|[ :])error:' <<<"$output") != 1)); then
    printf 'FAILED: %d is refused with more than one error:\n%s\n' $((i + 1)) "$output" >&2
    failures=$((failures + 1))
  fi
done
# Call 20 passes a product that is destroyed before the ExpertGemm that refers
# to it. Clang has to warn. GCC has no such warning.
if [[ $("$1" --version) == *clang* && $(compile c++17 20) != *-Wdangling* ]]; then
  echo "FAILED: 20 is compiled without a warning of the lambda that dangles" >&2
  failures=$((failures + 1))
fi

headers=0
while IFS=' ' read -r include header; do
  # kernel_types.h includes the headers of device/metal and checks the
  # standard for them.
  [[ $header != */switchyard.h && $header != */c/* && $header != */device/metal/* ]] || continue
  headers=$((headers + 1))
  # OpenMP's header is empty without -fopenmp, and then compiles with any
  # standard.
  first=$(echo "#include \"${header#"$include"/}\"" |
    "${compiler[@]}" -std=c++14 -Wfatal-errors -x c++ - 2>&1 | grep -m1 -E '(^|[ :])error:' || true)
  if [[ $first != *"headers need C++17 or later"* && $header != */openmp_executor.h ]]; then
    echo "FAILED: $header as C++14 begins with: $first" >&2
    failures=$((failures + 1))
  fi
done < <(find "${includes[@]}" -type f -name '*.h' -printf '%H %p\n' | LC_ALL=C sort)
((headers > 20)) || { echo "FAILED: $headers headers" >&2; exit 1; }

echo "${#texts[@]} refusals, $headers headers, $failures failures"
((failures == 0))
