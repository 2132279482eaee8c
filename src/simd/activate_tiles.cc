// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes every activation with every option, for any types and layouts:
// * converts a tile of gates and a tile of ups to floats in the L1 cache,
// * applies each option to the tiles in its own pass,
// * writes the result with PutRow().
// The code is compiled once per activation; types and layouts are branches
// outside of the loops. If a call needs no tile (see DirectFor()), its rows are
// read and written in place.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/base/row_format.h"
#include "src/simd/activate.h"
#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/activate_tiles.cc"
#include "src/base/type_list.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/activations-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/storage-inl.h"
#include "src/simd/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

constexpr size_t kTile = 512;

// Computes to[i] = f(d, a[i], b[i]), for any type. `to` may be a or b: so it
// has no HWY_RESTRICT, and vectors are loaded before they are stored. The row's
// remainder goes through a buffer and the same loop, because a second copy of f
// in each instance would be a third of this file's code.
template <class T, class F>
HWY_INLINE void Map(const F& f, const T* a, const T* b, size_t n, T* to) {
  using S = Storage<T>;
  const hn::ScalableTag<float> d;
  const size_t twice = 2 * hn::Lanes(d);
  constexpr size_t kMost = 2 * HWY_MAX_BYTES / sizeof(float);
  HWY_ALIGN T ends[3][kMost];
  hn::Vec<decltype(d)> a0, a1, b0, b1;
  for (size_t i = 0; i < n; i += twice) {
    const T* from_a = a + i;
    const T* from_b = b + i;
    T* out = to + i;
    const size_t rest = n - i;
    if (HWY_UNLIKELY(rest < twice)) {
      std::memset(ends, 0, sizeof(ends));
      from_a = static_cast<T*>(std::memcpy(ends[0], from_a, rest * sizeof(T)));
      from_b = static_cast<T*>(std::memcpy(ends[1], from_b, rest * sizeof(T)));
      out = ends[2];
    }
    S::LoadShuffled(d, from_a, a0, a1);
    S::LoadShuffled(d, from_b, b0, b1);
    S::StoreShuffled(f(d, a0, b0), f(d, a1, b1), d, out);
    if (HWY_UNLIKELY(rest < twice)) {
      std::memcpy(to + i, out, rest * sizeof(T));
    }
  }
}

// ApplyToBoth() applies an activation to gates and ups of one type.
// ApplyToGate() applies the gate's function to floats, which its caller
// multiplies by up. It exists only for activations of the form f(gate) * up.
using TileFunction = void (*)(const ActivateOptions& options, const void* gate,
                              const void* up, size_t n, void* to);
template <class T, class F>
HWY_NOINLINE void ApplyToBoth(const ActivateOptions& options, const void* gate,
                              const void* up, size_t n, void* to) {
  const F function(options);
  Map([&](auto d, auto g, auto u) { return function(d, g, u); },
      static_cast<const T*>(gate), static_cast<const T*>(up), n,
      static_cast<T*>(to));
}
template <class F>
HWY_NOINLINE void ApplyToGate(const ActivateOptions& options, const void* gate,
                              const void* /*up*/, size_t n, void* to) {
  const F function(options);
  const float* const gates = static_cast<const float*>(gate);
  Map([&](auto d, auto g, auto) { return function(d, g); }, gates, gates, n,
      static_cast<float*>(to));
}
template <class F>
TileFunction ApplyToBothAs(Type type) {
  if (type == Type::kF32) return ApplyToBoth<float, F>;
  if constexpr (F::kHalves && HWY_NATIVE_FMA) {  // CPUs without FMA are rare
    switch (type) {
#define SWITCHYARD_CASE(T, ...) \
  case kType<T>:                \
    return ApplyToBoth<T, F>;
      SWITCHYARD_HALVES(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
      default:
        break;
    }
  }
  return nullptr;
}

// Returns the instance of ApplyToBoth() for the activation and the type, or
// null if there is none. A `limited` function applies the limits before the
// activation. It exists only for activations of models with limits.
TileFunction FindApplyToBoth(Activation activation, bool limited, Type type) {
  if (limited) {
    if (activation == Activation::kSilu) {
      return ApplyToBothAs<Limited<TimesUp<SiluOf>>>(type);
    }
    if (activation == Activation::kSwigluOai) {
      return ApplyToBothAs<Limited<SwigluOaiOf>>(type);
    }
    return nullptr;
  }
  switch (activation) {
#define SWITCHYARD_BOTH_true(F) TimesUp<F>
#define SWITCHYARD_BOTH_false(F) F
#define SWITCHYARD_CASE(name, text, F, of_gate) \
  case Activation::name:                        \
    return ApplyToBothAs<SWITCHYARD_BOTH_##of_gate(F)>(type);
    SWITCHYARD_ACTIVATIONS(SWITCHYARD_CASE)
#undef SWITCHYARD_CASE
  }
  return nullptr;
}
TileFunction FindApplyToGate(Activation activation) {
  switch (activation) {
#define SWITCHYARD_GATE_true(F) ApplyToGate<F>
#define SWITCHYARD_GATE_false(F) nullptr
#define SWITCHYARD_CASE(name, text, F, of_gate) \
  case Activation::name:                        \
    return SWITCHYARD_GATE_##of_gate(F);
    SWITCHYARD_ACTIVATIONS(SWITCHYARD_CASE)
#undef SWITCHYARD_CASE
  }
  return nullptr;
}

// Splits pairs: writes the first elements to `first`, and the second elements
// to `second`.
void Deinterleave(const float* pairs, size_t n, float* first, float* second) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  hn::Vec<decltype(d)> a, b;
  size_t i = 0;
  for (; i + N <= n; i += N) {
    Storage<float>::LoadPairs(d, pairs + 2 * i, a, b);
    hn::StoreU(a, d, first + i);
    hn::StoreU(b, d, second + i);
  }
  for (; i < n; ++i) {
    first[i] = pairs[2 * i];
    second[i] = pairs[2 * i + 1];
  }
}

// Columns of gate and up, or of their biases, as floats. gate and up point to
// the matrices if these are f32, otherwise to `buffers`.
struct GateUpTile {
  HWY_ALIGN float buffers[2][kTile];
  const float* gate = nullptr;
  const float* up = nullptr;

  static const float* Read(const ConstAnyMatrix& m, size_t row, size_t begin,
                           size_t n, float* buffer) {
    if (m.data == nullptr) return nullptr;
    const ConstAnyRows rows(m);
    const StoredRow stored = {rows, row};
    return StoredRow::Get(&stored, begin, n, buffer);
  }
  void Load(const ConstAnyMatrix& gates, const ConstAnyMatrix& ups,
            bool interleaved, size_t row, size_t begin, size_t n) {
    if (!interleaved) {
      gate = Read(gates, row, begin, n, buffers[0]);
      up = Read(ups, row, begin, n, buffers[1]);
    } else if (gates.data != nullptr) {
      HWY_ALIGN float pairs[2 * kTile];
      Deinterleave(Read(gates, row, 2 * begin, 2 * n, pairs), n, buffers[0],
                   buffers[1]);
      gate = buffers[0];
      up = buffers[1];
    }
  }
};

// Computes a row in tiles, for PutRow().
struct TiledRow {
  const ActivateTilesArgs& args;
  size_t row, expert;

  float Scale(ActivatePlace place) const {
    const ConstAnyMatrix& scale = args.inputs.row_scale;
    return scale.data != nullptr && args.options.row_scale_place == place
               ? ScalarAt(scale, row, 0)
               : 1.0f;
  }
  // Returns the limit if the call applies it at `place`, otherwise infinity.
  float Limit(ActivatePlace place) const {
    const float limit = args.options.limit;
    return limit != 0.0f && args.options.limit_place == place ? limit
                                                              : HUGE_VALF;
  }
  // Returns the type to which an engine without fused operations rounds each
  // result, or f32 if the call does not ask for this rounding.
  Type Unfused() const {
    return args.options.round_like_unfused &&
                   args.options.activation != Activation::kSitu
               ? args.rows.gate.type
               : Type::kF32;
  }

  // Computes the activation's input, v * scale + bias, clamped to [least,
  // most]. Without a bias it adds -0, which changes nothing.
  void Prepare(const float*& v, const float* bias, float scale, float least,
               float most, size_t n, float* buffer) const {
    if (bias == nullptr && scale == 1.0f && least == -HUGE_VALF &&
        most == HUGE_VALF) {
      return;
    }
    const bool biased = bias != nullptr;
    Map(
        [=](auto d, auto x, auto b) {
          const auto added = biased ? b : hn::Set(d, -0.0f);
          const auto y = hn::MulAdd(x, hn::Set(d, scale), added);
          return MaxOrNaN(d, hn::Set(d, least),
                          MinOrNaN(d, hn::Set(d, most), y));
        },
        v, biased ? bias : v, n, buffer);
    RoundTile(Unfused(), n, buffer);
    v = buffer;
  }

  void Put(size_t begin, size_t n, float* to) const {
    const ActivateOptions& options = args.options;
    GateUpTile tile;
    tile.Load(args.rows.gate, args.rows.up, args.rows.interleaved, row, begin,
              n);
    GateUpTile bias;
    bias.Load(args.gate_bias, args.up_bias, args.rows.interleaved, expert,
              begin, n);
    const float scale = Scale(ActivatePlace::kBefore);
    const float after = Limit(ActivatePlace::kAfter);
    const bool rounds = Unfused() != Type::kF32;
    const bool at_once = args.gated && !rounds && after == HUGE_VALF;
    float before = Limit(ActivatePlace::kBefore);
    TileFunction apply_to_both = nullptr;
    if (at_once && before != HUGE_VALF) {
      apply_to_both = FindApplyToBoth(options.activation, true, Type::kF32);
      if (apply_to_both != nullptr) before = HUGE_VALF;
    }
    if (apply_to_both == nullptr) {
      apply_to_both = FindApplyToBoth(options.activation, false, Type::kF32);
    }
    // Clamps up to both limits, but the gate only to the limit before the
    // activation. InSteps() clamps the activated gate to the other limit.
    const float up_limit = HWY_MIN(before, after);
    Prepare(tile.gate, bias.gate, scale, -HUGE_VALF, before, n,
            tile.buffers[0]);
    if (args.gated) {
      Prepare(tile.up, bias.up, scale, -up_limit, up_limit, n, tile.buffers[1]);
    }
    if (at_once) {
      apply_to_both(options, tile.gate, tile.up, n, to);
    } else {
      InSteps(tile, after, n, to);
    }
    const float last = Scale(ActivatePlace::kAfter);
    if (args.inputs.row_scale.data == nullptr || last == 1.0f) return;
    RoundTile(Unfused(), n, to);
    Map([=](auto d, auto x, auto) { return hn::Mul(x, hn::Set(d, last)); }, to,
        to, n, to);
  }

  // Computes gpt-oss's activation with a rounding after each operation: acted =
  // g * sigmoid(alpha * g). Stores u + 1 in the second buffer.
  void SwigluOaiInSteps(GateUpTile& tile, size_t n, float* acted) const {
    const float* const gate = tile.gate;
    const float alpha = args.options.alpha;
    HWY_ALIGN float sigmoid[kTile];
    Map([=](auto d, auto g, auto) { return hn::Mul(g, hn::Set(d, alpha)); },
        gate, gate, n, sigmoid);
    RoundTile(Unfused(), n, sigmoid);
    Map([](auto d, auto x, auto) { return Sigmoid(d, x); }, sigmoid, sigmoid, n,
        sigmoid);
    RoundTile(Unfused(), n, sigmoid);
    Map([](auto, auto g, auto s) { return hn::Mul(g, s); }, gate, sigmoid, n,
        acted);
    RoundTile(Unfused(), n, acted);
    Map([](auto d, auto u, auto) { return hn::Add(u, hn::Set(d, 1.0f)); },
        tile.up, tile.up, n, tile.buffers[1]);
    RoundTile(Unfused(), n, tile.buffers[1]);
  }

  // Computes the gate's function, rounds and clamps the result, and multiplies
  // it by up. kSitu has no steps, because Unfused() is f32 for it.
  void InSteps(GateUpTile& tile, float limit, size_t n, float* to) const {
    const ActivateOptions& options = args.options;
    float* const acted = tile.buffers[0];
    const float* up = tile.up;
    if (options.activation == Activation::kSwigluOai) {
      SwigluOaiInSteps(tile, n, acted);
      up = tile.buffers[1];
    } else {
      FindApplyToGate(options.activation)(options, tile.gate, nullptr, n,
                                          acted);
      RoundTile(Unfused(), n, acted);
    }
    const bool gated = args.gated;
    Map(
        [=](auto d, auto a, auto u) {
          const auto below = MinOrNaN(d, hn::Set(d, limit), a);
          return gated ? hn::Mul(below, u) : below;
        },
        acted, gated ? up : acted, n, to);
    RoundTile(Unfused(), n, to);
  }

  static const float* Get(const void* context, size_t begin, size_t n,
                          float* buffer) {
    const TiledRow& self = *static_cast<const TiledRow*>(context);
    for (size_t i = 0; i < n; i += kTile) {
      self.Put(begin + i, HWY_MIN(kTile, n - i), buffer + i);
    }
    return buffer;
  }
};

// Returns the expert of a row: the last e with offsets[e] <= row. The result is
// num_experts for rows behind the rows of the last expert.
size_t ExpertOf(Span<const int32_t> offsets, size_t row) {
  const int32_t* const next = std::upper_bound(
      offsets.begin(), offsets.end(), row,
      [](size_t r, int32_t offset) { return r < static_cast<size_t>(offset); });
  return static_cast<size_t>(next - offsets.begin()) - 1;
}

// Returns the function for calls that need no tile, because rows have one type
// and the only option is a limit before the activation. Otherwise returns null.
TileFunction DirectFor(const ActivateTilesArgs& args) {
  const ActivateArgs& rows = args.rows;
  const ActivateOptions& options = args.options;
  const bool limited = options.limit != 0.0f;
  const bool direct =
      args.gated && !rows.interleaved && !rows.streaming &&
      rows.out.type == rows.gate.type && !options.round_like_unfused &&
      args.inputs.row_scale.data == nullptr && args.gate_bias.data == nullptr &&
      args.up_bias.data == nullptr &&
      (!limited || options.limit_place == ActivatePlace::kBefore);
  return direct ? FindApplyToBoth(options.activation, limited, rows.gate.type)
                : nullptr;
}

void Tiles(const ActivateTilesArgs& args, size_t begin, size_t end) {
  const ActivateArgs& rows = args.rows;
  const TileFunction direct = DirectFor(args);
  const Span<const int32_t> offsets = args.inputs.offsets;
  const Span<const int32_t> counts = args.inputs.tokens_per_expert;
  const size_t row_stride = counts.size == 0 ? 0 : rows.out.rows / counts.size;
  const StreamingStores streaming(rows.streaming);
  for (size_t r = begin; r < end; ++r) {
    size_t expert = 0;
    if (offsets.size != 0) {
      expert = ExpertOf(offsets, r);
      if (expert >= offsets.size - 1) continue;
    } else if (counts.size != 0) {
      expert = r / row_stride;
      if (r % row_stride >= static_cast<size_t>(counts.data[expert])) continue;
    }
    if (direct != nullptr) {
      direct(args.options, RowAt(rows.gate, r), RowAt(rows.up, r),
             rows.out.cols, RowAt(rows.out, r));
      continue;
    }
    const TiledRow made = {args, r, expert};
    PutRow({TiledRow::Get, &made}, rows.out, r, &streaming);
  }
}

SWITCHYARD_ROW_FUNCTION(Tiles, ActivateTilesArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(ActivateTiles, Tiles, ActivateTilesArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
