// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The slots of rows on the stack: what is loaded into them, done to all of them
// and stored from them.

// Per-target include guard
#if defined(SWITCHYARD_SRC_SIMD_ROUTE_SLOTS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_ROUTE_SLOTS_INL_H_
#undef SWITCHYARD_SRC_SIMD_ROUTE_SLOTS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_ROUTE_SLOTS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/simd/route_recipe.h"
#include "src/simd/storage_types.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

#include "hwy/highway.h"

#include "src/simd/candidates-inl.h"
#include "src/simd/recipes-inl.h"
#include "src/simd/route_keys-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Slots of some rows, `count` of each from its `first` on, one row behind the
// other: their experts (-1: none), and of each x, then v, then its weight;
// defined up to a vector behind the last.
constexpr size_t kSlots = kRecipeBatch * kTopKMax;
constexpr size_t kSlotsRoom = kSlots + HWY_MAX_BYTES / sizeof(float);
struct Slots {
  HWY_ALIGN float at[kSlotsRoom];
  HWY_ALIGN int32_t ids[kSlotsRoom];
  size_t rows, first, count;
};
enum class SlotsHave : uint8_t { kNothing, kIds, kX, kValues };

// Columns ids[0], ids[1], ... of a row; of the first where an id is -1.
template <class T>
HWY_INLINE void GatherColumns(const T* HWY_RESTRICT row,
                              const int32_t* HWY_RESTRICT ids, size_t n,
                              float* HWY_RESTRICT to) {
  const auto take = [&](auto* HWY_RESTRICT values) {
    for (size_t i = 0; i < n; ++i) {
      values[i] = row[static_cast<size_t>(std::max(ids[i], 0))];
    }
  };
  if constexpr (std::is_same_v<T, float>) {
    take(to);
  } else {
    HWY_ALIGN T values[kSlots];
    take(values);
    ToFloats(values, n, 1.0f, to);
  }
}
inline HWY_NOINLINE void Gather(const ConstAnyMatrix& m, size_t row,
                                const int32_t* ids, size_t n, float* to) {
  switch (m.type) {
#define SWITCHYARD_CASE(T, ...) \
  case kType<T>:                \
    return GatherColumns(m.Row<T>(row), ids, n, to);
    SWITCHYARD_FLOATS(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
    default:
      return;
  }
}

// Element i of [n, 1] or [1, n].
inline int64_t IndexAt(const ConstAnyMatrix& m, size_t i) {
  const size_t at = m.cols == 1 ? i * m.stride : i;
  switch (m.type) {
    case Type::kU8:
      return static_cast<const uint8_t*>(m.data)[at];
    case Type::kI64:
      return static_cast<const int64_t*>(m.data)[at];
    case Type::kU32:
      return static_cast<const uint32_t*>(m.data)[at];
    default:
      return static_cast<const int32_t*>(m.data)[at];
  }
}

// Ids of a row's slots [first, first + n) as int32, -1 for those outside [0,
// experts).
inline void LoadRowIds(const ConstAnyMatrix& m, size_t row, size_t first,
                       size_t n, size_t experts, int32_t* to) {
  const auto load = [&](const auto* from) {
    for (size_t i = 0; i < n; ++i) {
      const auto id = from[first + i];
      const bool valid = static_cast<uint64_t>(id) < experts;
      to[i] = valid ? static_cast<int32_t>(id) : -1;
    }
  };
  if (m.type == Type::kI64) {
    load(m.Row<int64_t>(row));
  } else if (m.type == Type::kU32) {
    load(m.Row<uint32_t>(row));
  } else {
    load(m.Row<int32_t>(row));
  }
}
inline void StoreIds(const int32_t* from, size_t n, const AnyMatrix& m,
                     size_t row, size_t first) {
  if (m.type == Type::kI64) {
    std::copy_n(from, n, m.Row<int64_t>(row) + first);
    return;
  }
  const TopKIntTag di;
  const size_t N = hn::Lanes(di);
  int32_t* const to = m.Row<int32_t>(row) + first;
  for (size_t i = 0; i < n; i += N) {
    StorePartial(hn::LoadU(di, from + i), di, to + i, HWY_MIN(N, n - i));
  }
}
inline void StoreWeights(const float* from, size_t n, const AnyMatrix& m,
                         size_t row, size_t first) {
  if (m.type != Type::kF32) return FloatsToRow(from, n, m, row, first);
  const TopKTag d;
  const size_t N = hn::Lanes(d);
  float* const to = m.Row<float>(row) + first;
  for (size_t i = 0; i < n; i += N) {
    StorePartial(hn::LoadU(d, from + i), d, to + i, HWY_MIN(N, n - i));
  }
}

// All rows' slots at once, where outputs lie as these do.
HWY_INLINE void StoreWhole(const Slots& slots, const RouteOutputs& outputs,
                           size_t token) {
  const TopKTag d;
  const TopKIntTag di;
  const size_t N = hn::Lanes(d), n = slots.rows * slots.count;
  int32_t* const ids = outputs.topk_ids.Row<int32_t>(token);
  float* const weights = outputs.topk_weights.Row<float>(token);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    hn::StoreU(hn::LoadU(di, slots.ids + i), di, ids + i);
    hn::StoreU(hn::LoadU(d, slots.at + i), d, weights + i);
  }
  if (i == n) return;
  StorePartial(hn::LoadU(di, slots.ids + i), di, ids + i, n - i);
  StorePartial(hn::LoadU(d, slots.at + i), d, weights + i, n - i);
}

// Every value of `slots`, and a row's number for each of its slots.
template <class F>
HWY_INLINE void ForSlots(Slots& slots, const F& f) {
  const RowTag d;
  const size_t n = slots.rows * slots.count;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::Store(f(d, hn::Load(d, slots.at + i), i), d, slots.at + i);
  }
}
HWY_INLINE void Expand(const Slots& slots, const float* of_rows, float* to) {
  const RowTag d;
  for (size_t r = 0; r < slots.rows; ++r) {
    const RowVec v = hn::Set(d, of_rows[r]);
    for (size_t i = 0; i < slots.count; i += hn::Lanes(d)) {
      hn::StoreU(v, d, to + r * slots.count + i);
    }
  }
}
inline HWY_NOINLINE void RoundSlots(Type type, Slots& slots) {
  if (type == Type::kF32) return;
  ForSlots(slots, [type](RowTag d, RowVec v, size_t)
                      HWY_ATTR { return RoundTo(type, d, v); });
}
// Scores in the place of x; `max` is the largest x of each slot's row, or null
// for scores that do not look at it.
template <class F>
HWY_INLINE void ScoreSlots(Slots& slots, const float* max, Type round) {
  ForSlots(slots, [max, round](RowTag d, RowVec v, size_t i) HWY_ATTR {
    const RowVec top = max == nullptr ? hn::Zero(d) : hn::Load(d, max + i);
    return F::template Of<false>(d, v, top, round);
  });
}
HWY_INLINE void ScoreSlotsBy(Score score, Slots& slots, const float* max,
                             Type round) {
  switch (score) {
#define SWITCHYARD_CASE(name, F, ...) \
  case Score::name:                   \
    return ScoreSlots<F>(slots, max, round);
    SWITCHYARD_SCORES(SWITCHYARD_CASE)
#undef SWITCHYARD_CASE
  }
}

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_SLOTS_INL_H_
