#!/bin/bash
# check.sh SOURCE_DIR
# Checks rules of this repository that a compiler does not check. Prints the
# lines that break each rule.
set -euo pipefail
cd "$1"
failures=0

# rule WHAT PATTERN FILE...: no line of the files may match PATTERN, except
# lines that match `except`.
except=
rule() {
  local what=$1 pattern=$2 found status=0
  shift 2
  (($# > 0)) || { echo "FAILED: no files to look at for: $what" >&2; exit 1; }
  # grep's exit code 1 means no match, which is good; 2 is an error of this
  # script.
  found=$(grep -nHE -e "$pattern" -- "$@") || status=$?
  ((status <= 1)) || exit 1
  [[ -z $except ]] || found=$(grep -vE -e "$except" <<<"$found" || true)
  [[ -n $found ]] || return 0
  printf 'FAILED: %s\n%s\n' "$what" "$found" >&2
  failures=$((failures + 1))
}

mapfile -t build_files < <(find . \( -name 'build*' -o -name .git -o -name out \) -prune \
  -o -type f \( -name CMakeLists.txt -o -name '*.cmake' -o -name '*.in' -o -name '*.sh' \
  -o -name CMakePresets.json -o -path './.ci/*' \) -print | LC_ALL=C sort)
folders=()
for folder in include src programs examples bench device fuzz testing tests tools; do
  [[ ! -d $folder ]] || folders+=("$folder")
done
mapfile -t sources < <(find "${folders[@]}" -type f \( -name '*.h' -o -name '*.cc' \) |
  LC_ALL=C sort)
mapfile -t simd < <(printf '%s\n' "${sources[@]}" | grep '^src/simd/')
mapfile -t tests < <(printf '%s\n' "${sources[@]}" | grep -E '^(device/)?tests/')
mapfile -t others < <(printf '%s\n' "${sources[@]}" | grep -vE '^(src/simd|(device/)?tests)/')

# The benchmarks' plain C++ is a rival, so it is compiled with the usual flags
# of engines.
except='^\./bench/CMakeLists\.txt:[0-9]+:  COMPILE_OPTIONS "-O3;-ma[r]ch=native"\)$'
rule "compiler flags that choose a CPU hide a missing dispatch" \
  '-m(arch|tune|cpu|fpu|avx|sse|ssse|fma|f16c|bmi)' "${build_files[@]}"
except=

include='#[[:space:]]*include[[:space:]]*[<"]'
except='^src/tbb_executor\.cc:'
rule "TBB is included in src/tbb_executor.cc only" "$include(oneapi/)?tbb[/.]" \
  "${others[@]}" "${simd[@]}"
except=
grep -qE "$include(oneapi/)?tbb/" src/tbb_executor.cc ||
  { echo "FAILED: the pattern does not find the one include of TBB" >&2; exit 1; }

rule "Highway is included in src/simd and tests only" "${include}hwy/" "${others[@]}"

intrinsics='\b_mm[0-9]*_[a-z0-9_]+|\b__m(64|128|256|512)[di]?\b|\b__mmask[0-9]+\b'
intrinsics+='|__builtin_(ia32|neon|sve|aarch64)_|\bv(ld|st)[1-4]q?_|\bsv[a-z0-9]+_[fsu](16|32|64)'
intrinsics+='|\b(float|u?int)(8|16|32|64)x[0-9]+(x[0-9])?_t\b|vector_size'
intrinsics+='|\b(asm|__asm__)\b[[:space:]]*(volatile)?[[:space:]]*\('
intrinsics+="|$include([a-z0-9]*intrin|arm_[a-z0-9_]+|cpuid)\.h"
# The benchmarks' probes are not kernels. They load and store whole vectors
# and use streaming stores, which need intrinsics.
except='^bench/probes(-inl\.h|\.cc):.*(vector_size|<immintrin\.h>|_mm(256|512)?_stream_ps)'
# The floating-point mode: src/base/fp_env.h sets the default, and tests turn
# on flush-to-zero to show that it changes nothing.
fp_mode='_mm_[gs]etcsr|<xmmintrin\.h>|asm volatile\("m(rs %0, fpcr|sr fpcr, %0)"'
except+="|^src/base/fp_env\.h:.*($fp_mode)"
# fiber.cc switches from one stack to another in assembly.
except+='|^device/src/core/fiber\.cc:.*\basm\(R"\('
rule "intrinsics and assembly stay in src/simd" "$intrinsics" "${others[@]}"
except=$fp_mode
rule "no intrinsics in tests but the floating-point mode's" "$intrinsics" "${tests[@]}"
except=

# Streaming stores need a fence. StreamingStores adds it, so nothing else may
# use them.
except='^src/simd/rows-inl\.h:'
streams='\b(hn|HWY_NAMESPACE)::Stream\(|FlushStream|_mm[0-9]*_stream_|_mm_sfence|nontemporal_store'
rule "stores past the caches are those of StreamingStores" "$streams" "${simd[@]}"
except=
(($(grep -cE "$streams" src/simd/rows-inl.h) == 2)) ||
  { echo "FAILED: the pattern does not find StreamingStores" >&2; exit 1; }

# Includes between the folders of src: src/base includes no other folder, and
# src/calls and src/simd include only src/base.
room() { printf '%s\n' "${sources[@]}" | grep "^src/$1/"; }
mapfile -t base < <(room base)
mapfile -t calls < <(room calls)
rule "src/base includes no other room" "${include}src/(\w+\.h|calls|simd|c)\b" "${base[@]}"
rule "src/calls includes src/base only" "${include}src/(\w+\.h|simd|c)\b" "${calls[@]}"
rule "src/simd includes src/base only" "${include}src/(\w+\.h|calls|c)\b" "${simd[@]}"
rule "src/simd knows neither executors nor devices" \
  "${include}switchyard/(executor|device)" "${simd[@]}"

# Includes between layers: the device layer uses the kernels, and checked mode
# uses the device layer's core. A lower layer must not include a higher one.
mapfile -t kernels < <(printf '%s\n' "${sources[@]}" |
  grep -E '^(include/switchyard|src|src/[a-z]+)/[^/]+$')
mapfile -t unchecked < <(printf '%s\n' "${sources[@]}" |
  grep -E '^device/src/(builtin|core)/[^/]+$')
rule "kernels do not know the device layer" \
  "${include}(device|switchyard/device)/" "${kernels[@]}"
[[ ! -d device ]] || rule "the device layer's core does not know checked mode" \
  "${include}device/src/checked/" "${unchecked[@]}"

# docs/linking.md lists every option, and no option that no longer exists.
options=$(sed -nE 's/^(option|set)\((SWITCHYARD_\w+) .*/\2 &/p' CMakeLists.txt |
  grep -E ' option\(| CACHE ' | sed 's/ .*//' | LC_ALL=C sort)
documented=$(sed -nE 's/^\| `(SWITCHYARD_\w+)` \|.*/\1/p' docs/linking.md | LC_ALL=C sort)
[[ -n $options && $options == "$documented" ]] || {
  printf 'FAILED: options: < in CMakeLists.txt, > in docs/linking.md\n' >&2
  diff <(echo "$options") <(echo "$documented") >&2 || true
  failures=$((failures + 1))
}

echo "${#build_files[@]} build files, ${#sources[@]} sources, $failures rules broken"
((failures == 0))
