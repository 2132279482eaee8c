// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/silu_mul.h"

#include <cstdint>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/silu_mul.cc"
#include "hwy/foreach_target.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard {
namespace simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <bool kStreaming, class D>
HWY_INLINE void SiluMulStore(hn::Vec<D> v, D d, float* out) {
  if (kStreaming) {
    hn::Stream(v, d, out);
  } else {
    hn::StoreU(v, d, out);
  }
}

// Elements [begin, end) of a row. out may be gate or up: no HWY_RESTRICT, and
// each vector is loaded before it is stored. kStreaming: out + begin is aligned
// to vectors.
template <bool kStreaming>
HWY_INLINE void SiluMulRange(const float* gate, const float* up, float* out,
                             size_t begin, size_t end) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  // The loads of a few vectors fill the window of instructions, so that too few
  // lines are on their way: 0.73 of the time of cached stores with, 0.86
  // without (75 MB); 512 bytes are too few, 4 KiB no better.
  constexpr size_t kAhead = 2048 / sizeof(float);
  size_t i = begin;
  // Four independent chains of ten dependent operations each.
  for (; i + 4 * N <= end; i += 4 * N) {
    if (kStreaming) {
      for (size_t line = 0; line < 4 * N; line += 64 / sizeof(float)) {
        hwy::Prefetch(gate + i + line + kAhead);
        hwy::Prefetch(up + i + line + kAhead);
      }
    }
    const auto s0 = Silu(d, hn::LoadU(d, gate + i));
    const auto s1 = Silu(d, hn::LoadU(d, gate + i + N));
    const auto s2 = Silu(d, hn::LoadU(d, gate + i + 2 * N));
    const auto s3 = Silu(d, hn::LoadU(d, gate + i + 3 * N));
    const auto u0 = hn::LoadU(d, up + i);
    const auto u1 = hn::LoadU(d, up + i + N);
    const auto u2 = hn::LoadU(d, up + i + 2 * N);
    const auto u3 = hn::LoadU(d, up + i + 3 * N);
    SiluMulStore<kStreaming>(hn::Mul(s0, u0), d, out + i);
    SiluMulStore<kStreaming>(hn::Mul(s1, u1), d, out + i + N);
    SiluMulStore<kStreaming>(hn::Mul(s2, u2), d, out + i + 2 * N);
    SiluMulStore<kStreaming>(hn::Mul(s3, u3), d, out + i + 3 * N);
  }
  for (; i + N <= end; i += N) {
    const auto s = Silu(d, hn::LoadU(d, gate + i));
    hn::StoreU(hn::Mul(s, hn::LoadU(d, up + i)), d, out + i);
  }
  if (i < end) {
    const size_t n = end - i;
    const auto s = Silu(d, LoadPartial(d, gate + i, n));
    StorePartial(hn::Mul(s, LoadPartial(d, up + i, n)), d, out + i, n);
  }
}

// Each element once, in any order. Bound in cache by the ports of the vector
// units: 19 instructions a vector and a division that keeps one of two ports
// for 10 cycles (AVX-512, 14.5 cycles a vector, 10.6 with a multiply in place
// of the division); beyond the caches by memory.
void SiluMulRows(const SiluMulArgs& args, size_t begin, size_t end) {
  RecordTarget(HWY_TARGET);
  const size_t cols = args.out.cols;
  for (size_t row = begin; row < end; ++row) {
    const float* gate = args.gate.Row(row);
    const float* up = args.up.Row(row);
    float* out = args.out.Row(row);
    size_t i = 0;
    if (args.streaming) {
      // Up to the first whole cache line, which streaming stores must fill.
      const size_t line = 64 / sizeof(float);
      const size_t past = reinterpret_cast<uintptr_t>(out) / sizeof(float);
      i = HWY_MIN((line - past % line) % line, cols);
      SiluMulRange<false>(gate, up, out, 0, i);
      SiluMulRange<true>(gate, up, out, i, cols);
    } else {
      SiluMulRange<false>(gate, up, out, 0, cols);
    }
  }
  if (args.streaming) hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace simd
}  // namespace switchyard
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard {
namespace simd {

HWY_EXPORT(SiluMulRows);

void SiluMulRows(const SiluMulArgs& args, size_t begin, size_t end) {
  SWITCHYARD_DISPATCH(SiluMulRows)(args, begin, end);
}

}  // namespace simd
}  // namespace switchyard

#endif  // HWY_ONCE
