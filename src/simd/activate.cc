// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/activate.h"

#include <cstddef>
#include <cstdint>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/activate.cc"
#include "hwy/foreach_target.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include "src/simd/math-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// What becomes of a vector of gates and one of ups.
struct SiluTimesUp {
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V gate, V up) const {
    return hn::Mul(Silu(d, gate), up);
  }
};

// The layouts: where a row's gates and ups come from, `ahead` being what is to
// be fetched of either.
template <class In>
struct SplitRow {
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
    hwy::Prefetch(pairs + 2 * i + 64 / sizeof(In));
  }
};

template <bool kStreaming, class Out, class D>
HWY_INLINE void ActivateStore(hn::Vec<D> v, D d, Out* out) {
  if (kStreaming) {
    Storage<Out>::Stream(v, d, out);
  } else {
    Storage<Out>::Store(v, d, out);
  }
}

// Elements [begin, end) of a row. out may be gate or up: no HWY_RESTRICT, and
// each vector is loaded before it is stored. kStreaming: out + begin is aligned
// to vectors.
template <bool kStreaming, class Row, class Out, class Function>
HWY_INLINE void ActivateRange(const Row& row, const Function& function,
                              Out* out, size_t begin, size_t end) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t N = hn::Lanes(d);
  // The loads of a few vectors fill the window of instructions, so that too few
  // lines are on their way: 0.73 of the time of cached stores with, 0.86
  // without (75 MB); 512 bytes are too few, 4 KiB no better.
  constexpr size_t kLine = 64 / sizeof(Out);
  constexpr size_t kAhead = 32 * kLine;
  size_t i = begin;
  // Four independent chains of ten dependent operations each.
  for (; i + 4 * N <= end; i += 4 * N) {
    if (kStreaming) {
      for (size_t line = 0; line < 4 * N; line += kLine) {
        row.Prefetch(i + line + kAhead);
      }
    }
    V g0, g1, g2, g3, u0, u1, u2, u3;
    row.Load(d, i, g0, u0);
    row.Load(d, i + N, g1, u1);
    row.Load(d, i + 2 * N, g2, u2);
    row.Load(d, i + 3 * N, g3, u3);
    ActivateStore<kStreaming>(function(d, g0, u0), d, out + i);
    ActivateStore<kStreaming>(function(d, g1, u1), d, out + i + N);
    ActivateStore<kStreaming>(function(d, g2, u2), d, out + i + 2 * N);
    ActivateStore<kStreaming>(function(d, g3, u3), d, out + i + 3 * N);
  }
  V g, u;
  for (; i + N <= end; i += N) {
    row.Load(d, i, g, u);
    Storage<Out>::Store(function(d, g, u), d, out + i);
  }
  if (i < end) {
    const size_t n = end - i;
    row.LoadPartial(d, i, n, g, u);
    Storage<Out>::StorePartial(function(d, g, u), d, out + i, n);
  }
}

template <class Row, class Out, class Function>
HWY_INLINE void ActivateRow(const Row& row, const Function& function, Out* out,
                            size_t cols, bool streaming) {
  size_t i = 0;
  if (streaming) {
    // Up to the first whole cache line, which streaming stores must fill.
    const size_t line = 64 / sizeof(Out);
    const size_t past = reinterpret_cast<uintptr_t>(out) / sizeof(Out);
    i = HWY_MIN((line - past % line) % line, cols);
    ActivateRange<false>(row, function, out, 0, i);
    ActivateRange<true>(row, function, out, i, cols);
  } else {
    ActivateRange<false>(row, function, out, 0, cols);
  }
}

template <class In, class Out, class Function>
HWY_INLINE void ActivateWith(const Function& function, const ActivateArgs& args,
                             size_t begin, size_t end) {
  const size_t cols = args.out.cols;
  for (size_t r = begin; r < end; ++r) {
    const In* const gate = args.gate.Row<In>(r);
    Out* const out = args.out.Row<Out>(r);
    if (args.interleaved) {
      ActivateRow(InterleavedRow<In>{gate}, function, out, cols,
                  args.streaming);
    } else {
      ActivateRow(SplitRow<In>{gate, args.up.Row<In>(r)}, function, out, cols,
                  args.streaming);
    }
  }
  if (args.streaming) hwy::FlushStream();
}

// Each element once, in any order. SiLU is bound in cache by the ports of the
// vector units: 18 instructions a vector and a division that keeps one of two
// ports for 10 cycles (AVX-512, 14 cycles a vector, 10.6 with a multiply in
// place of the division); beyond the caches by memory.
template <class In, class Out>
void Activate(const ActivateArgs& args, size_t begin, size_t end) {
  switch (args.activation) {
#define SWITCHYARD_CASE(name, Function) \
  case Activation::name:                \
    return ActivateWith<In, Out>(Function(), args, begin, end);
    SWITCHYARD_ACTIVATIONS(SWITCHYARD_CASE)
#undef SWITCHYARD_CASE
  }
}

SWITCHYARD_ROW_FUNCTIONS(Activate, ActivateArgs, SWITCHYARD_F32);

}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT_TYPES(ActivateRows, Activate, ActivateArgs, SWITCHYARD_F32);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
