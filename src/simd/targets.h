// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Chooses the compiled ISA that kernels use. It reads Highway's tables with its
// own index, because Highway's chosen target is process-wide, and belongs to
// every user of Highway.
//
// A kernel file registers its functions in two places. In the ISA's namespace,
// after a row function Scale(args, begin, end):
//   SWITCHYARD_ROW_FUNCTION(Scale, ScaleArgs);
// or, after a template Scale<In> over the type of its rows,
//   SWITCHYARD_ROW_FUNCTIONS(Scale, ScaleArgs, SWITCHYARD_FLOATS);
// and once, outside of that namespace, the function that its header declares:
//   SWITCHYARD_EXPORT(ScaleRows, Scale, ScaleArgs);
//   SWITCHYARD_EXPORT_TYPES(ScaleRows, Scale, ScaleArgs, SWITCHYARD_FLOATS);
// The first macro defines the function that is exported for each ISA. It also
// records which ISA ran, for LastIsa() and the tests.
//
// Highway compiles AVX3_DL (AVX-512 with VBMI2, from Ice Lake on) only for
// files that define HWY_WANT_AVX3_DL before they include anything. These files
// use instructions of AVX3_DL, or are called by a file that does. All other
// files use their AVX3 code for AVX3_DL, too, which makes the library a tenth
// smaller.

#ifndef SWITCHYARD_SRC_SIMD_TARGETS_H_
#define SWITCHYARD_SRC_SIMD_TARGETS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/type_list.h"
#include "src/simd/row_function.h"
#include "switchyard/types.h"

#include "hwy/targets.h"

namespace switchyard::simd {

// The index of the ISA in use in Highway's tables: 0 until the first use sets
// it, from the CPU and the environment. After that, only CapIsa changes it.
extern std::atomic<size_t> g_active_index;
extern std::atomic<bool> g_isa_as_asked;  // see src/check.h
size_t SetUpActiveIndex() noexcept;
inline size_t ActiveIndex() noexcept {
  const size_t index = g_active_index.load(std::memory_order_relaxed);
  return __builtin_expect(index != 0, 1) ? index : SetUpActiveIndex();
}

// True if the CPU has AVX512_BF16. False until the variable is initialised,
// which is correct, too, because other instructions give the same bits.
extern const bool g_cpu_has_bf16;

// Returns the picoseconds, on the ISA in use, of work that is bound by
// arithmetic and takes avx2_ps on AVX2. AVX-512 takes 0.5 to 1 times as long
// (SiLU, router), SSE4 2 to 3 times, and code without vectors 9 to 12 times.
size_t ComputePs(size_t avx2_ps) noexcept;

extern std::atomic<int64_t> g_last_target;

// Writes only if the target changes, so that threads that run small batches at
// the same time can share the cache line.
inline void RecordTarget(int64_t target) noexcept {
  if (g_last_target.load(std::memory_order_relaxed) != target) {
    g_last_target.store(target, std::memory_order_relaxed);
  }
}

}  // namespace switchyard::simd

#if HWY_IDE || ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0)
#define SWITCHYARD_DISPATCH(FUNC) (&HWY_STATIC_DISPATCH(FUNC))
#else
#define SWITCHYARD_DISPATCH(FUNC) \
  (HWY_DISPATCH_TABLE(FUNC)[::switchyard::simd::ActiveIndex()])
#endif

// Inlines a piece of a large kernel, except with sanitizers, which add calls to
// every memory access: Clang would take 5.9 GB for the router in one function.
// Pieces are HWY_MAYBE_UNUSED, because some ISAs do not call all of them.
#if HWY_IS_ASAN || HWY_IS_MSAN || HWY_IS_TSAN
#define SWITCHYARD_PIECE HWY_MAYBE_UNUSED HWY_NOINLINE
#else
#define SWITCHYARD_PIECE HWY_INLINE
#endif

#define SWITCHYARD_ROW_FUNCTION(FUNC, ARGS)        \
  SWITCHYARD_RECORDED(FUNC##_Recorded, FUNC, ARGS) \
  static_assert(true, "wants a semicolon")

// Defines a function for each target that may run the code.
#define SWITCHYARD_RECORDED(NAME, FUNC, ARGS)                          \
  SWITCHYARD_RECORDED_AS(NAME, FUNC, ARGS, HWY_TARGET)                 \
  HWY_MAYBE_UNUSED SWITCHYARD_RECORDED_AS(NAME##_AsAvx3Dl, FUNC, ARGS, \
                                          HWY_AVX3_DL)
#define SWITCHYARD_RECORDED_AS(NAME, FUNC, ARGS, TARGET)  \
  void NAME(const ARGS& args, size_t begin, size_t end) { \
    RecordTarget(TARGET);                                 \
    FUNC(args, begin, end);                               \
  }

// Defines RowFunction<ARGS> NAME() noexcept: the function of the ISA in use.
#define SWITCHYARD_EXPORT(NAME, FUNC, ARGS)      \
  SWITCHYARD_HWY_EXPORT(FUNC##_Recorded);        \
  RowFunction<ARGS> NAME() noexcept {            \
    return SWITCHYARD_DISPATCH(FUNC##_Recorded); \
  }                                              \
  static_assert(true, "wants a semicolon")

#define SWITCHYARD_ROW_FUNCTIONS(FUNC, ARGS, TYPES) \
  TYPES(SWITCHYARD_ROW_FUNCTIONS_ONE, FUNC, ARGS)   \
  static_assert(true, "wants a semicolon")
#define SWITCHYARD_ROW_FUNCTIONS_ONE(IN, FUNC, ARGS) \
  SWITCHYARD_RECORDED(FUNC##_##IN##_Recorded, FUNC<IN>, ARGS)

// Defines RowFunction<ARGS> NAME(Type in) noexcept, which returns the function
// of the ISA in use, or nullptr for a type that is not listed.
#define SWITCHYARD_EXPORT_TYPES(NAME, FUNC, ARGS, TYPES) \
  TYPES(SWITCHYARD_EXPORT_ONE, FUNC, ARGS)               \
  RowFunction<ARGS> NAME(Type in) noexcept {             \
    TYPES(SWITCHYARD_FIND_ONE, FUNC, ARGS)               \
    return nullptr;                                      \
  }                                                      \
  static_assert(true, "wants a semicolon")
#define SWITCHYARD_EXPORT_ONE(IN, FUNC, ARGS) \
  SWITCHYARD_HWY_EXPORT(FUNC##_##IN##_Recorded);
#define SWITCHYARD_FIND_ONE(IN, FUNC, ARGS)             \
  if (in == kType<IN>) {                                \
    return SWITCHYARD_DISPATCH(FUNC##_##IN##_Recorded); \
  }

#endif  // SWITCHYARD_SRC_SIMD_TARGETS_H_
