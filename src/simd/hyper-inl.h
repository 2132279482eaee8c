// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes a token's residual streams, a tile of columns at a time: copies of
// the stored streams, or streams mixed with the output of a block.

#if defined(SWITCHYARD_SRC_SIMD_HYPER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_HYPER_INL_H_
#undef SWITCHYARD_SRC_SIMD_HYPER_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_HYPER_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "src/simd/hyper.h"

#include "hwy/highway.h"

#include "src/simd/rows-inl.h"
#include "src/simd/simdgroup-inl.h"
#include "src/simd/storage-inl.h"
#include "src/simd/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// kHyperFloats: the floats of all streams in a tile, which is on the stack and
// stays in L1. kHyperTile: the most columns of a tile.
constexpr size_t kHyperFloats = 4096;
constexpr size_t kHyperTile = 1024;
static_assert(kHyperFloats / kMaxStreams % kSimdgroup == 0, "lanes of squares");

// A token's weights, and the width of the tiles of its streams.
struct HyperToken {
  const HyperArgs& args;
  size_t token;
  size_t n;
  size_t width;  // columns of a tile
  Type rounded;  // the type to which results are rounded, or f32
  float post[kMaxStreams], pre[kMaxStreams];
  float comb[kMaxStreams * kMaxStreams];  // [i * n + j]: from stream j to i

  HyperToken(const HyperArgs& args_in, size_t token_in)
      : args(args_in),
        token(token_in),
        n(args.options.num_streams),
        width(HWY_MIN(kHyperTile, kHyperFloats / n / kSimdgroup * kSimdgroup)),
        rounded(args.options.round_like_unfused ? args.inputs.streams.type
                                                : Type::kF32) {
    const HyperInputs& in = args.inputs;
    for (size_t i = 0; i < n; ++i) {
      post[i] = in.post.data != nullptr ? ScalarAt(in.post, token, i) : 0.0f;
      pre[i] = in.pre.data != nullptr && in.pre.cols == n && !PreIsRows()
                   ? ScalarAt(in.pre, token, i)
                   : 0.0f;
      for (size_t j = 0; j < n && in.comb.data != nullptr; ++j) {
        const size_t at = args.options.comb_by_row ? i * n + j : j * n + i;
        comb[i * n + j] = ScalarAt(in.comb, token, at);
      }
    }
    if (rounded == Type::kF32) return;
    RoundTile(rounded, n, post);
    if (in.comb.data != nullptr) RoundTile(rounded, n * n, comb);
  }
  bool PreIsRows() const {
    return args.inputs.pre.rows == args.inputs.streams.rows &&
           args.inputs.pre.cols == args.inputs.streams.cols;
  }
};

// A tile of a token's streams. x, y and s point to stored floats if the rows
// are f32, otherwise to the buffers above them.
struct HyperTile {
  HWY_ALIGN float in[kHyperFloats];
  HWY_ALIGN float block[kHyperTile];
  HWY_ALIGN float sums[kHyperFloats];
  const float* x[kMaxStreams];
  const float* y;
  const float* s[kMaxStreams];  // the streams that MakeStreams() computes
};

// Mixes four streams with the block's output. On ISAs with 32 vector registers,
// all weights stay in registers. A stream may be written in its input's place.
HWY_NOINLINE void MixFour(const HyperToken& t, const HyperTile& tile, size_t n,
                          float* const* to) {
  const SimdgroupTag d;
  const size_t N = hn::Lanes(d);
#define SWITCHYARD_STREAM(i)                             \
  float* const to##i = to[i];                            \
  const float* const x##i = tile.x[i];                   \
  const auto post##i = hn::Set(d, t.post[i]);            \
  const auto comb##i##0 = hn::Set(d, t.comb[4 * i]);     \
  const auto comb##i##1 = hn::Set(d, t.comb[4 * i + 1]); \
  const auto comb##i##2 = hn::Set(d, t.comb[4 * i + 2]); \
  const auto comb##i##3 = hn::Set(d, t.comb[4 * i + 3]);
#define SWITCHYARD_MIX(i)                 \
  auto v##i = hn::Mul(post##i, y);        \
  v##i = hn::MulAdd(comb##i##0, a, v##i); \
  v##i = hn::MulAdd(comb##i##1, b, v##i); \
  v##i = hn::MulAdd(comb##i##2, c, v##i); \
  v##i = hn::MulAdd(comb##i##3, e, v##i);
  SWITCHYARD_STREAM(0)
  SWITCHYARD_STREAM(1)
  SWITCHYARD_STREAM(2)
  SWITCHYARD_STREAM(3)
  const float* const block = tile.y;
  size_t i = 0;
  for (; i + N <= n; i += N) {
    const auto y = hn::LoadU(d, block + i);
    const auto a = hn::LoadU(d, x0 + i), b = hn::LoadU(d, x1 + i);
    const auto c = hn::LoadU(d, x2 + i), e = hn::LoadU(d, x3 + i);
    SWITCHYARD_MIX(0)
    SWITCHYARD_MIX(1)
    SWITCHYARD_MIX(2)
    SWITCHYARD_MIX(3)
    hn::StoreU(v0, d, to0 + i);
    hn::StoreU(v1, d, to1 + i);
    hn::StoreU(v2, d, to2 + i);
    hn::StoreU(v3, d, to3 + i);
  }
  if (i < n) {
    const size_t rest = n - i;
    const auto y = LoadPartial(d, block + i, rest);
    const auto a = LoadPartial(d, x0 + i, rest),
               b = LoadPartial(d, x1 + i, rest);
    const auto c = LoadPartial(d, x2 + i, rest),
               e = LoadPartial(d, x3 + i, rest);
    SWITCHYARD_MIX(0)
    SWITCHYARD_MIX(1)
    SWITCHYARD_MIX(2)
    SWITCHYARD_MIX(3)
    StorePartial(v0, d, to0 + i, rest);
    StorePartial(v1, d, to1 + i, rest);
    StorePartial(v2, d, to2 + i, rest);
    StorePartial(v3, d, to3 + i, rest);
  }
#undef SWITCHYARD_MIX
#undef SWITCHYARD_STREAM
}

HWY_INLINE void PutStreams(const HyperToken& t, size_t begin, size_t n,
                           const HyperTile& tile) {
  for (size_t i = 0; i < t.n; ++i) {
    FloatsToRow(tile.s[i], n, t.args.outputs.streams, t.token * t.n + i, begin);
  }
}

// Computes tile.s for columns [begin, begin + n) of all streams. With `put`, it
// also stores them in the output, and tile.s may point there.
HWY_NOINLINE void MakeStreams(const HyperToken& t, size_t begin, size_t n,
                              bool put, HyperTile& tile) {
  const HyperInputs& in = t.args.inputs;
  const auto floats = [&](const ConstAnyMatrix& m, size_t row, float* to)
                          HWY_ATTR -> const float* {
    if (m.type == Type::kF32) return m.Row<float>(row) + begin;
    TakeTile({m, row, begin}, n, 1.0f, to);
    return to;
  };
  for (size_t j = 0; j < t.n; ++j) {
    tile.x[j] = floats(in.streams, t.token * t.n + j, tile.in + j * t.width);
  }
  if (in.block.data == nullptr) {
    std::copy_n(tile.x, t.n, tile.s);
    if (put) PutStreams(t, begin, n, tile);
    return;
  }
  tile.y = floats(in.block, t.token, tile.block);
  float* to[kMaxStreams];
  const AnyMatrix& streams = t.args.outputs.streams;
  const bool mix =
      t.n == 4 && in.comb.data != nullptr && !t.args.options.round_like_unfused;
  const bool there = mix && put && streams.type == Type::kF32;
  for (size_t i = 0; i < t.n; ++i) {
    to[i] = there ? streams.Row<float>(t.token * t.n + i) + begin
                  : tile.sums + i * t.width;
    tile.s[i] = to[i];
  }
  if (mix) {
    MixFour(t, tile, n, to);
    if (put && !there) PutStreams(t, begin, n, tile);
    return;
  }
  HWY_ALIGN float mixed[kHyperTile];
  for (size_t i = 0; i < t.n; ++i) {
    float* const sum = to[i];
    TakeTile(TileOperand(tile.y), n, t.post[i], sum);
    const float* other = tile.x[i];
    const bool apart = t.args.options.round_like_unfused;
    if (in.comb.data != nullptr) {
      float* const mix_to = apart ? mixed : sum;
      if (apart) std::fill_n(mixed, n, 0.0f);
      for (size_t j = 0; j < t.n; ++j) {
        MulAddTile(TileOperand(tile.x[j]), n, t.comb[i * t.n + j], 1.0f,
                   mix_to);
      }
      if (!apart) continue;
      other = mixed;
      RoundTile(t.rounded, n, mixed);
    }
    if (apart) RoundTile(t.rounded, n, sum);
    AddTile(TileOperand(other), n, 1.0f, 1.0f, 1.0f, sum);
    if (apart) RoundTile(t.rounded, n, sum);
  }
  if (put) PutStreams(t, begin, n, tile);
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_HYPER_INL_H_
