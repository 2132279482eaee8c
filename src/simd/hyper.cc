// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/hyper.h"

#include <algorithm>
#include <cstddef>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/hyper.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/hyper-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/simdgroup-inl.h"
#include "src/simd/storage-inl.h"
#include "src/simd/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// The most columns kept on the stack. Longer rows are computed twice.
constexpr size_t kHyperKept = 8192;

// Computes the weighted sum of kStreams streams or, if kStreams is 0, of t.n
// streams.
template <size_t kStreams>
HWY_NOINLINE void CollapseBy(const HyperToken& t, const HyperTile& tile,
                             size_t n, float* to) {
  const SimdgroupTag d;
  const size_t N = hn::Lanes(d), streams = kStreams != 0 ? kStreams : t.n;
  // `pre` and `s` are local copies, which no store to `to` can change.
  float pre[kStreams != 0 ? kStreams : kMaxStreams];
  const float* s[kStreams != 0 ? kStreams : kMaxStreams];
  std::copy_n(t.pre, streams, pre);
  std::copy_n(tile.s, streams, s);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    auto v = hn::Mul(hn::Set(d, pre[0]), hn::LoadU(d, s[0] + i));
    for (size_t j = 1; j < streams; ++j) {
      v = hn::MulAdd(hn::Set(d, pre[j]), hn::LoadU(d, s[j] + i), v);
    }
    hn::StoreU(v, d, to + i);
  }
  if (i < n) {
    const size_t rest = n - i;
    auto v = hn::Mul(hn::Set(d, pre[0]), LoadPartial(d, s[0] + i, rest));
    for (size_t j = 1; j < streams; ++j) {
      v = hn::MulAdd(hn::Set(d, pre[j]), LoadPartial(d, s[j] + i, rest), v);
    }
    StorePartial(v, d, to + i, rest);
  }
}

// Collapses columns [begin, begin + n) of a token's streams to x.
HWY_INLINE void Collapse(const HyperToken& t, size_t begin, size_t n,
                         const HyperTile& tile, float* x) {
  const HyperInputs& in = t.args.inputs;
  if (!t.PreIsRows()) {
    if (t.n == 4) {
      CollapseBy<4>(t, tile, n, x);
    } else {
      CollapseBy<0>(t, tile, n, x);
    }
  } else {
    HWY_ALIGN float weights[kHyperTile];
    MulTile({in.pre, t.token * t.n, begin}, n, 1.0f, false, tile.s[0], x);
    for (size_t i = 1; i < t.n; ++i) {
      TakeTile({in.pre, t.token * t.n + i, begin}, n, 1.0f, weights);
      MulAddTiles(tile.s[i], weights, n, x);
    }
  }
  if (t.rounded != Type::kF32) RoundTile(t.rounded, n, x);
}

// The row to which a token collapses. It is kept or, if it is too wide,
// computed again whenever it is read.
struct Collapsed {
  const HyperToken& token;
  HyperTile& tile;
  const float* kept;

  static const float* Get(const void* context, size_t begin, size_t n,
                          float* buffer) {
    const Collapsed& self = *static_cast<const Collapsed*>(context);
    if (self.kept != nullptr) return self.kept + begin;
    HWY_ALIGN float x[kHyperTile];
    for (size_t i = 0; i < n; i += self.token.width) {
      const size_t count = HWY_MIN(self.token.width, n - i);
      MakeStreams(self.token, begin + i, count, false, self.tile);
      Collapse(self.token, begin + i, count, self.tile, x);
      std::copy_n(x, count, buffer + i);
    }
    return buffer;
  }
};
struct CollapsedNorm {
  const Collapsed& x;
  float scale;

  static const float* Get(const void* context, size_t begin, size_t n,
                          float* buffer) {
    const CollapsedNorm& self = *static_cast<const CollapsedNorm*>(context);
    const HyperArgs& args = self.x.token.args;
    const float* const x = Collapsed::Get(&self.x, begin, n, buffer);
    MulTile({args.inputs.norm_weight, 0, begin}, n, self.scale,
            args.options.norm_plus_one, x, buffer);
    return buffer;
  }
};

// Reads the streams of each token once, a tile of all streams at a time. If the
// row is too wide to keep, `out` and `normed` are written before the streams,
// because the streams may be written in place.
void Hyper(const HyperArgs& args, size_t begin, size_t end) {
  const HyperOutputs& out = args.outputs;
  const size_t cols = args.inputs.streams.cols;
  const bool collapses = args.inputs.pre.data != nullptr;
  const bool keeps = cols <= kHyperKept;
  const bool in_out =
      keeps && out.out.data != nullptr && out.out.type == Type::kF32;
  HWY_ALIGN float kept[kHyperKept];
  HWY_ALIGN float x_tile[kHyperTile];
  HyperTile tile;
  for (size_t t = begin; t < end; ++t) {
    const HyperToken token(args, t);
    HWY_ALIGN float stream_lanes[kMaxStreams][kSimdgroup] = {};
    HWY_ALIGN float lanes[kSimdgroup] = {};
    float* const row = in_out ? out.out.Row<float>(t) : kept;
    const Collapsed x = {token, tile, keeps ? row : nullptr};
    const auto put = [&]() HWY_ATTR {
      if (out.normed.data != nullptr) {
        const CollapsedNorm normed = {
            x, NormScale(FoldLanes(lanes), cols, args.options.eps)};
        if (keeps && out.normed.type == Type::kF32) {
          CollapsedNorm::Get(&normed, 0, cols, out.normed.Row<float>(t));
        } else {
          PutRow({CollapsedNorm::Get, &normed}, out.normed, t);
        }
      }
      if (out.out.data != nullptr && !in_out) {
        PutRow({Collapsed::Get, &x}, out.out, t);
      }
    };
    for (int pass = keeps || !collapses ? 1 : 0; pass < 2; ++pass) {
      const bool last = pass == 1;
      if (last && !keeps && collapses) put();
      for (size_t i = 0; i < cols; i += token.width) {
        const size_t n = HWY_MIN(token.width, cols - i);
        MakeStreams(token, i, n, last && out.streams.data != nullptr, tile);
        if (collapses && (keeps || !last)) {
          float* const to = keeps ? row + i : x_tile;
          Collapse(token, i, n, tile, to);
          if (out.normed.data != nullptr) AddSquares(to, n, lanes);
        }
        for (size_t s = 0; last && out.scales.data != nullptr && s < token.n;
             ++s) {
          AddSquares(tile.s[s], n, stream_lanes[s]);
        }
      }
    }
    if (keeps && collapses) put();
    if (out.scales.data != nullptr) {
      for (size_t s = 1; s < token.n; ++s) {
        for (size_t lane = 0; lane < kSimdgroup; ++lane) {
          stream_lanes[0][lane] += stream_lanes[s][lane];
        }
      }
      const float scale = NormScale(FoldLanes(stream_lanes[0]), cols * token.n,
                                    args.options.eps);
      FloatsToRow(&scale, 1, out.scales, t, 0);
    }
  }
}

SWITCHYARD_ROW_FUNCTION(Hyper, HyperArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(HyperRows, Hyper, HyperArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
