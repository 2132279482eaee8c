// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/activate.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/activate.cc"
#include "hwy/foreach_target.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "src/simd/math-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Computes silu(gate) * up for one vector. Nearly every model uses this
// activation, so this file reads and writes rows in their own types.
// activate_tiles.cc computes all other activations.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SiluTimesUp(D d, V gate, V up) {
  return hn::Mul(Silu(d, gate), up);
}

// SplitRow reads gates and ups from two rows. InterleavedRow reads them from
// one row, in which an up follows each gate.
template <class In>
struct SplitRow {
  using T = In;
  static constexpr size_t kLine = 64 / sizeof(In);
  static constexpr bool kShuffles = true;
  const In* gate;
  const In* up;

  template <class D, class V>
  HWY_INLINE void Load(D d, size_t i, V& g, V& u) const {
    g = Storage<In>::Load(d, gate + i);
    u = Storage<In>::Load(d, up + i);
  }
  template <class D, class V>
  HWY_INLINE void LoadPartial(D d, size_t i, size_t n, V& g, V& u) const {
    g = Storage<In>::LoadPartial(d, gate + i, n);
    u = Storage<In>::LoadPartial(d, up + i, n);
  }
  HWY_INLINE void Prefetch(size_t i) const {
    hwy::Prefetch(gate + i);
    hwy::Prefetch(up + i);
  }
};
template <class In>
struct InterleavedRow {
  using T = In;
  static constexpr size_t kLine = 64 / sizeof(In);
  static constexpr bool kShuffles = false;
  const In* pairs;

  template <class D, class V>
  HWY_INLINE void Load(D d, size_t i, V& g, V& u) const {
    Storage<In>::LoadPairs(d, pairs + 2 * i, g, u);
  }
  template <class D, class V>
  HWY_INLINE void LoadPartial(D d, size_t i, size_t n, V& g, V& u) const {
    LoadPairsPartial(d, pairs + 2 * i, n, g, u);
  }
  HWY_INLINE void Prefetch(size_t i) const {
    hwy::Prefetch(pairs + 2 * i);
    hwy::Prefetch(pairs + 2 * i + kLine);
  }
};

// Computes elements [begin, end) of a row, and stores them at `to`. `to` may
// point to the gates or ups: so it has no HWY_RESTRICT, and each vector is
// loaded before it is stored.
// kFar: the inputs come from memory, so they are prefetched.
// kStreaming: `streaming` stores floats to `to`, which is aligned to vectors.
template <bool kFar, bool kStreaming, class Row, class Out>
HWY_INLINE void ActivateRange(const Row& row, Out* to, size_t begin, size_t end,
                              const StreamingStores* streaming = nullptr) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t N = hn::Lanes(d);
  // Prefetches, because otherwise the loads of a few vectors fill the
  // instruction window, and too few cache lines are requested at once. With
  // prefetches, streaming takes 0.73 times as long as cached stores; without
  // them, it takes 0.86 times as long (75 MB). A distance of 512 bytes is too
  // short, and 4 KiB is no better than 2 KiB.
  constexpr size_t kLine = Row::kLine;
  constexpr size_t kAhead = 32 * kLine;
  size_t i = begin;
  // Computes four vectors at a time, because each is a chain of ten operations.
  for (; i + 4 * N <= end; i += 4 * N, to += 4 * N) {
    if (kFar) {
      for (size_t line = 0; line < 4 * N; line += kLine) {
        row.Prefetch(i + line + kAhead);
      }
    }
    V g0, g1, g2, g3, u0, u1, u2, u3;
    // Loads may shuffle elements if the output has the type of the inputs,
    // because stores of this type restore the order.
    constexpr bool kShuffled =
        Row::kShuffles && std::is_same_v<Out, typename Row::T>;
    if constexpr (kShuffled) {
      Storage<Out>::LoadShuffled(d, row.gate + i, g0, g1);
      Storage<Out>::LoadShuffled(d, row.up + i, u0, u1);
      Storage<Out>::LoadShuffled(d, row.gate + i + 2 * N, g2, g3);
      Storage<Out>::LoadShuffled(d, row.up + i + 2 * N, u2, u3);
    } else {
      row.Load(d, i, g0, u0);
      row.Load(d, i + N, g1, u1);
      row.Load(d, i + 2 * N, g2, u2);
      row.Load(d, i + 3 * N, g3, u3);
    }
    if constexpr (kStreaming) {
      streaming->Store(SiluTimesUp(d, g0, u0), d, to);
      streaming->Store(SiluTimesUp(d, g1, u1), d, to + N);
      streaming->Store(SiluTimesUp(d, g2, u2), d, to + 2 * N);
      streaming->Store(SiluTimesUp(d, g3, u3), d, to + 3 * N);
    } else {
      const V v0 = SiluTimesUp(d, g0, u0);
      const V v1 = SiluTimesUp(d, g1, u1);
      const V v2 = SiluTimesUp(d, g2, u2);
      const V v3 = SiluTimesUp(d, g3, u3);
      if constexpr (kShuffled) {
        Storage<Out>::StoreShuffled(v0, v1, d, to);
        Storage<Out>::StoreShuffled(v2, v3, d, to + 2 * N);
      } else {
        Storage<Out>::StoreTwo(v0, v1, d, to);
        Storage<Out>::StoreTwo(v2, v3, d, to + 2 * N);
      }
    }
  }
  V g, u;
  for (; i + N <= end; i += N, to += N) {
    row.Load(d, i, g, u);
    Storage<Out>::Store(SiluTimesUp(d, g, u), d, to);
  }
  if (i < end) {
    const size_t n = end - i;
    row.LoadPartial(d, i, n, g, u);
    Storage<Out>::StorePartial(SiluTimesUp(d, g, u), d, to, n);
  }
}

// Computes floats of an activated row for PutRow().
template <class Row>
struct ActivatedRow {
  Row row;

  template <bool kFar>
  static const float* Get(const void* context, size_t begin, size_t n,
                          float* buffer) {
    const auto& self = *static_cast<const ActivatedRow*>(context);
    ActivateRange<kFar, false>(self.row, buffer, begin, begin + n);
    return buffer;
  }
  RowSource Source(bool far) const {
    return {far ? &Get<true> : &Get<false>, this};
  }
};

// Writes the row itself if the output has the input's type. PutRow() in rows.cc
// writes other types, and streams types other than float.
template <class In, class Row>
HWY_INLINE void ActivateRow(const Row& row, const ActivateArgs& args, size_t r,
                            const StreamingStores& streaming) {
  constexpr bool kF32 = std::is_same_v<In, float>;
  const bool far = streaming.wanted();
  if (args.out.type != kType<In> || (far && !kF32)) {
    const ActivatedRow<Row> made = {row};
    return PutRow(made.Source(far), args.out, r, &streaming);
  }
  const size_t cols = args.out.cols;
  In* const out = args.out.Row<In>(r);
  size_t i = 0;
  if constexpr (kF32) {
    if (far) {
      // Computes the elements before the first whole cache line with cached
      // stores, because streaming stores must fill lines.
      const size_t line = 64 / sizeof(In);
      const size_t past = reinterpret_cast<uintptr_t>(out) / sizeof(In);
      i = HWY_MIN((line - past % line) % line, cols);
      ActivateRange<false, false>(row, out, 0, i);
      return ActivateRange<true, true>(row, out + i, i, cols, &streaming);
    }
  }
  ActivateRange<false, false>(row, out, i, cols);
}

// Computes each element once, in any order. In cache, the ports of the vector
// units bound the time: SiLU has 18 instructions per vector, and its division
// keeps one of two ports busy for 10 cycles (AVX-512: 14 cycles per vector, or
// 10.6 with a multiplication instead). Out of cache, memory bounds the time.
template <class In>
void Activate(const ActivateArgs& args, size_t begin, size_t end) {
  const StreamingStores streaming(args.streaming);
  for (size_t r = begin; r < end; ++r) {
    const In* const gate = args.gate.Row<In>(r);
    if (args.interleaved) {
      ActivateRow<In>(InterleavedRow<In>{gate}, args, r, streaming);
    } else {
      ActivateRow<In>(SplitRow<In>{gate, args.up.Row<In>(r)}, args, r,
                      streaming);
    }
  }
}

SWITCHYARD_ROW_FUNCTIONS(Activate, ActivateArgs, SWITCHYARD_FLOATS);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT_TYPES(ActivateRows, Activate, ActivateArgs,
                        SWITCHYARD_FLOATS);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
