// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes weights. WeightMaker keeps the slots of some rows on the stack. It
// goes from the ids of the selected experts to x, to v, to weights, and to the
// outputs. Rows may have any number of slots, because WeightMaker handles a
// limited number at a time.

#if defined(SWITCHYARD_SRC_SIMD_ROUTE_WEIGHTS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_ROUTE_WEIGHTS_INL_H_
#undef SWITCHYARD_SRC_SIMD_ROUTE_WEIGHTS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_ROUTE_WEIGHTS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "src/base/type_list.h"
#include "src/simd/route.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

#include "hwy/highway.h"

#include "src/simd/candidates-inl.h"
#include "src/simd/route_keys-inl.h"
#include "src/simd/route_scores-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/storage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Slots of some rows: slots [first, first + count) of each row, row after row.
// `ids` are the experts (-1: an invalid id; kNoExpert: a mark that means no
// expert). `at` is first x, then v, then the weight. Both arrays are defined up
// to a vector behind the last slot.
constexpr size_t kSlots = kSelectBatch * kTopKMax;
constexpr size_t kSlotsRoom = kSlots + HWY_MAX_BYTES / sizeof(float);
struct Slots {
  HWY_ALIGN float at[kSlotsRoom];
  HWY_ALIGN int32_t ids[kSlotsRoom];
  size_t rows, first, count;
};
enum class SlotsHave : uint8_t { kNothing, kIds, kX, kValues };
constexpr int32_t kNoExpert = -2;

// Gathers columns ids[0], ids[1], ... of a row, or column 0 for a negative id.
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

// Loads the ids of a row's slots [first, first + n). The marks (the largest
// uint8 or uint16) become kNoExpert, and ids outside of [0, experts) become -1.
inline void LoadRowIds(const ConstAnyMatrix& m, size_t row, size_t first,
                       size_t n, size_t experts, int32_t* to) {
  const auto load = [&](const auto* from) {
    using Id = std::decay_t<decltype(*from)>;
    for (size_t i = 0; i < n; ++i) {
      const Id id = from[first + i];
      const bool valid = static_cast<uint64_t>(id) < experts;
      const bool is_mark =
          sizeof(Id) <= 2 && id == std::numeric_limits<Id>::max();
      to[i] = valid ? static_cast<int32_t>(id) : is_mark ? kNoExpert : -1;
    }
  };
  switch (m.type) {
    case Type::kI64:
      return load(m.Row<int64_t>(row));
    case Type::kU32:
      return load(m.Row<uint32_t>(row));
    case Type::kU16:
      return load(m.Row<uint16_t>(row));
    case Type::kU8:
      return load(m.Row<uint8_t>(row));
    default:
      return load(m.Row<int32_t>(row));
  }
}
// Stores ids in a record. For a negative id, all bits of the element become 1.
inline void StoreRecord(const int32_t* from, size_t n, const AnyMatrix& m,
                        size_t row, size_t first) {
  const auto store = [&](auto* to) {
    using Id = std::decay_t<decltype(*to)>;
    for (size_t i = 0; i < n; ++i) {
      to[first + i] = static_cast<Id>(std::max(from[i], int32_t{-1}));
    }
  };
  switch (m.type) {
    case Type::kI64:
      return store(m.Row<int64_t>(row));
    case Type::kU16:
      return store(m.Row<uint16_t>(row));
    case Type::kU8:
      return store(m.Row<uint8_t>(row));
    default:  // int32 or uint32, with the same bits
      return store(m.Row<int32_t>(row));
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

// Stores the slots of all rows at once. The outputs have the layout of Slots.
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

// Replaces every value v of `slots` by f(d, v, i).
template <class F>
HWY_INLINE void ForSlots(Slots& slots, const F& f) {
  const RowTag d;
  const size_t n = slots.rows * slots.count;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::Store(f(d, hn::Load(d, slots.at + i), i), d, slots.at + i);
  }
}
// Copies of_rows[r], a value of row r, to all slots of row r.
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
// Replaces x by its score. `max` has the row's maximum for each slot. It may be
// null for scores that do not need it.
template <class F>
HWY_INLINE void ScoreSlots(Slots& slots, const float* max, Type round) {
  ForSlots(slots, [max, round](RowTag d, RowVec v, size_t i) HWY_ATTR {
    const RowVec top = max == nullptr ? hn::Zero(d) : hn::Load(d, max + i);
    return F::template Compute<false>(d, v, top, round);
  });
}
HWY_INLINE void ScoreSlotsBy(Score score, Slots& slots, const float* max,
                             Type round) {
  switch (score) {
#define SWITCHYARD_CASE(name, text, F, ...) \
  case Score::name:                         \
    return ScoreSlots<F>(slots, max, round);
    SWITCHYARD_SCORES(SWITCHYARD_CASE)
#undef SWITCHYARD_CASE
  }
}

// Computes the weights of a call's rows. Counts invalid ids, and ids that
// expert_map maps to -1 (experts elsewhere).
struct WeightMaker {
  const RouteArgs& args;
  const RoutePlan& plan;
  size_t invalid = 0, elsewhere = 0;

  // Describes the rows [token, token + rows). `ids` is only read if the slots
  // have no ids yet.
  struct Rows {
    size_t token, rows;
    ConstAnyMatrix ids;
    RowFacts* facts;
    SlotsHave has;
  };

  bool HasNoBias(size_t token) const {
    return args.inputs.bias_index.data != nullptr &&
           BiasRow(args.inputs, token) == SIZE_MAX;
  }
  bool IsMasked(size_t token) const {
    const ConstAnyMatrix& mask = args.inputs.token_mask;
    return mask.data != nullptr && IndexAt(mask, token) == 0;
  }
  bool IsExpert(int32_t id) const {
    return static_cast<size_t>(id) < plan.experts;
  }

  HWY_NOINLINE void AddBias(const Rows& rows, Slots& s) const {
    HWY_ALIGN float bias[kSlots];
    int32_t ids[kSlots];
    ids[0] = 0;  // or GCC warns: uninitialised
    for (size_t r = 0; r < s.rows; ++r) {
      const size_t row = BiasRow(args.inputs, rows.token + r);
      if (row == SIZE_MAX) continue;
      float* const at = s.at + r * s.count;
      for (size_t i = 0; i < s.count; ++i) {
        const int32_t id = s.ids[r * s.count + i];
        ids[i] = IsExpert(id) ? id : -1;
      }
      Gather(args.inputs.correction_bias, row, ids, s.count, bias);
      for (size_t i = 0; i < s.count; ++i) {
        if (ids[i] >= 0) at[i] += bias[i];
      }
    }
  }

  void LoadIds(const Rows& rows, Slots& s) const {
    for (size_t r = 0; r < s.rows; ++r) {
      int32_t* const ids = s.ids + r * s.count;
      const size_t routed =
          s.first >= plan.top_k ? 0 : HWY_MIN(s.count, plan.top_k - s.first);
      LoadRowIds(rows.ids, r, s.first, routed, plan.experts, ids);
      for (size_t i = routed; i < s.count; ++i) {
        ids[i] = static_cast<int32_t>(plan.experts + s.first + i - plan.top_k);
      }
    }
  }
  // Gathers the logits of all slots by the slots' ids, and maps them to x.
  void LoadX(const Rows& rows, Slots& s) const {
    const RowTag d;
    for (size_t r = 0; r < s.rows; ++r) {
      Gather(args.inputs.logits, rows.token + r, s.ids + r * s.count, s.count,
             s.at + r * s.count);
    }
    if (!plan.maps_logits) return;
    hn::StoreU(hn::Zero(d), d, s.at + s.rows * s.count);
    const RouteOptions& o = args.options;
    ForSlots(s, [&o](RowTag tag, RowVec x, size_t)
                    HWY_ATTR { return MapLogit(o, tag, x); });
    if (plan.bias_in_x) AddBias(rows, s);
  }

  // Replaces x by v.
  void ToValues(const Rows& rows, Slots& s) const {
    const Type round = plan.of_selected ? Type::kF32 : args.options.round_to;
    const Score score = plan.value_score;
    if (KindOf(score) == ScoreKind::kShareOfAll) {
      HWY_ALIGN float of_slots[kSlotsRoom];
      float of_rows[kSelectBatch];
      for (size_t r = 0; r < s.rows; ++r) of_rows[r] = rows.facts[r].max;
      Expand(s, of_rows, of_slots);
      ScoreSlotsBy(score, s, of_slots, round);
      if (plan.is_share) {
        for (size_t r = 0; r < s.rows; ++r) {
          of_rows[r] = rows.facts[r].sum_exp;
        }
        Expand(s, of_rows, of_slots);
        Divide(of_slots, s);
        RoundSlots(round, s);
      }
    } else {
      ScoreSlotsBy(score, s, nullptr, round);
      RoundSlots(round, s);
    }
    if (plan.bias_in_value) {
      AddBias(rows, s);
      RoundSlots(round, s);
    }
    if (!plan.ids_given) return;
    for (size_t i = 0; i < s.rows * s.count; ++i) {
      if (s.ids[i] < 0) s.at[i] = 0.0f;
    }
  }
  static HWY_INLINE void Divide(const float* divisors, Slots& s) {
    ForSlots(s, [divisors](RowTag d, RowVec v, size_t i)
                    HWY_ATTR { return hn::Div(v, hn::Load(d, divisors + i)); });
  }

  // Returns a row's divisor. `sum` is the sum of v over the row's slots.
  float DivisorOf(const RowFacts& facts, float sum) const {
    const RouteOptions& o = args.options;
    if (plan.of_selected) return sum;
    switch (o.divisor) {
      case Divisor::kSum:
        break;
      case Divisor::kSumPlusEps:
        sum = RoundOne(sum) + o.eps;
        break;
      case Divisor::kMaxOfSumAndEps:
        sum = sum < o.eps ? o.eps : sum;
        break;
      case Divisor::kMaxOfSumAndShare:
        if (plan.bounded_by_all) {
          const float all = !plan.is_softmax ? facts.sum_values
                            : plan.is_share  ? 1.0f
                                             : facts.sum_exp;
          const float share = o.clamp * all;
          sum = sum < share ? share : sum;
        }
        break;
    }
    return RoundOne(sum);
  }
  float RoundOne(float f) const {
    const Type type = args.options.round_to;
    if (HWY_LIKELY(type == Type::kF32)) return f;
    const hn::CappedTag<float, 1> d;
    return hn::GetLane(RoundTo(type, d, hn::Set(d, f)));
  }

  // Adds the values of row r to sums[r], in the order of slots.
  static void AddUp(const Slots& s, bool first, float* sums) {
    for (size_t r = 0; r < s.rows; ++r) {
      const float* const at = s.at + r * s.count;
      float sum = first ? at[0] : sums[r] + at[0];
      for (size_t i = 1; i < s.count; ++i) sum += at[i];
      sums[r] = sum;
    }
  }

  // Replaces v by weights.
  void ToWeights(const float* divisors, Slots& s) const {
    const RouteOptions& o = args.options;
    if (divisors != nullptr) {
      HWY_ALIGN float of_slots[kSlotsRoom];
      Expand(s, divisors, of_slots);
      Divide(of_slots, s);
      RoundSlots(o.round_to, s);
      if (o.zero_sum_is_zero) {
        for (size_t r = 0; r < s.rows; ++r) {
          if (divisors[r] == 0.0f) std::fill_n(s.at + r * s.count, s.count, 0);
        }
      }
    }
    if (o.routed_scaling_factor != 1.0f) {
      const float scale = o.routed_scaling_factor;
      ForSlots(s, [scale](RowTag d, RowVec w, size_t)
                      HWY_ATTR { return hn::Mul(w, hn::Set(d, scale)); });
      RoundSlots(o.round_to, s);
    }
    if (args.inputs.expert_scale.data != nullptr) ScaleExperts(s);
  }
  HWY_NOINLINE void ScaleExperts(Slots& s) const {
    HWY_ALIGN float scales[kSlotsRoom];
    int32_t ids[kSlots];
    ids[0] = 0;
    const size_t n = s.rows * s.count;
    for (size_t i = 0; i < n; ++i) {
      ids[i] = IsExpert(s.ids[i]) ? s.ids[i] : -1;
    }
    Gather(args.inputs.expert_scale, 0, ids, n, scales);
    for (size_t i = 0; i < n; ++i) {
      if (ids[i] >= 0) s.at[i] *= scales[i];
    }
    RoundSlots(args.options.round_to, s);
  }

  // Computes and stores the results of a row, or of rows whose slots all fit.
  void Put(const Rows& rows, Slots& s) {
    const RouteOptions& o = args.options;
    const RouteOutputs& out = args.outputs;
    SlotsHave has = rows.has;
    const bool has_values = has == SlotsHave::kValues;
    // If all slots fit, they are loaded once, otherwise again for each pass.
    const bool fits = rows.rows * plan.slots <= kSlots;
    s.rows = rows.rows;
    s.first = 0;
    s.count = plan.slots;
    const auto for_slots = [&](SlotsHave wanted, const auto& f) HWY_ATTR {
      for (size_t i = 0; i < plan.slots; i += s.count) {
        if (!fits) {
          has = SlotsHave::kNothing;
          s.first = i;
          s.count = HWY_MIN(kSlots, plan.slots - i);
        }
        if (has == SlotsHave::kNothing) LoadIds(rows, s);
        if (has < SlotsHave::kX) LoadX(rows, s);
        has = HWY_MAX(has, SlotsHave::kX);
        if (has < wanted) {
          const RowTag d;
          hn::StoreU(hn::Zero(d), d, s.at + s.rows * s.count);
          ToValues(rows, s);
          has = SlotsHave::kValues;
        }
        f();
      }
    };
    if (plan.of_selected && !has_values) {
      float max[kSelectBatch];
      std::fill_n(max, s.rows, -HUGE_VALF);
      for_slots(SlotsHave::kX, [&]() HWY_ATTR {
        for (size_t i = 0; i < s.rows * s.count; ++i) {
          float& most = max[i / s.count];
          if (s.ids[i] >= 0 && s.at[i] > most) most = s.at[i];
        }
      });
      for (size_t r = 0; r < s.rows; ++r) {
        RowFacts& f = rows.facts[r];
        f.max = max[r];
        f.is_empty |= !f.has_nan && max[r] == -HUGE_VALF;
      }
    }
    const bool divide = !has_values && (o.renormalize || plan.of_selected);
    float divisors[kSelectBatch];
    if (divide) {
      for_slots(SlotsHave::kValues,
                [&]() HWY_ATTR { AddUp(s, s.first == 0, divisors); });
      for (size_t r = 0; r < s.rows; ++r) {
        divisors[r] = DivisorOf(rows.facts[r], divisors[r]);
      }
    }
    float identity[kSelectBatch] = {};
    for_slots(SlotsHave::kValues, [&]() HWY_ATTR {
      const RowTag d;
      hn::StoreU(hn::Zero(d), d, s.at + s.rows * s.count);
      if (has_values) RoundSlots(o.round_to, s);
      ToWeights(divide ? divisors : nullptr, s);
      bool special = false;
      for (size_t r = 0; r < s.rows; ++r) {
        special |= rows.facts[r].has_nan | rows.facts[r].is_empty;
      }
      for (size_t r = 0; r < s.rows && HWY_UNLIKELY(special); ++r) {
        Finish(rows.facts[r], s, r);
      }
      if (HWY_LIKELY(plan.stores_as_slots && fits))
        return StoreWhole(s, out, rows.token);
      for (size_t r = 0; r < s.rows; ++r) {
        const size_t token = rows.token + r;
        if (IsMasked(token)) continue;
        if (s.first == 0) invalid += HasNoBias(token);
        if (out.record.data != nullptr) Record(s, r, token);
        if (plan.remaps_ids) Remap(s, r, identity[r]);
        StoreIds(s.ids + r * s.count, s.count, out.topk_ids, token, s.first);
        StoreWeights(s.at + r * s.count, s.count, out.topk_weights, token,
                     s.first);
      }
    });
    const bool has_rest = out.topk_ids.cols != plan.slots ||
                          out.identity_weights.data != nullptr ||
                          args.inputs.token_mask.data != nullptr;
    for (size_t r = 0; has_rest && r < rows.rows; ++r) {
      PutRest(rows.token + r, identity[r]);
    }
  }

  // Gives a special row one weight: NaN if it has a NaN, 0 if all x are -inf.
  static HWY_INLINE void Finish(const RowFacts& facts, Slots& s, size_t r) {
    if (HWY_LIKELY(!facts.has_nan && !facts.is_empty)) return;
    const hn::CappedTag<float, 1> d;
    const hn::RebindToSigned<decltype(d)> di;
    const float same = hn::GetLane(
        hn::BitCast(d, hn::Set(di, facts.has_nan ? int32_t{0x7FC00000} : 0)));
    std::fill_n(s.at + r * s.count, s.count, same);
  }
  void Record(const Slots& s, size_t r, size_t token) const {
    if (s.first >= plan.top_k) return;  // has only shared experts
    StoreRecord(s.ids + r * s.count, HWY_MIN(s.count, plan.top_k - s.first),
                args.outputs.record, token, s.first);
  }
  // Changes ids of zero experts, invalid ids, and ids that expert_map maps.
  void Remap(Slots& s, size_t r, float& identity) {
    const ConstAnyMatrix& map = args.inputs.expert_map;
    const size_t real = plan.experts - args.options.num_zero_experts;
    for (size_t i = r * s.count; i < (r + 1) * s.count; ++i) {
      const size_t id = static_cast<size_t>(s.ids[i]);
      if (id >= plan.experts) {
        if (s.ids[i] >= 0) continue;  // a shared expert
        s.at[i] = 0.0f;
        invalid += s.ids[i] != kNoExpert;
        s.ids[i] = -1;
      } else if (id >= real) {
        identity += s.at[i];
        s.at[i] = 0.0f;
        s.ids[i] = -1;
      } else if (map.data != nullptr) {
        s.ids[i] = map.Row<int32_t>(0)[id];
        elsewhere += s.ids[i] == -1;
      }
    }
  }

  // Stores the rest of a row: the identity weight, and the slots of shared
  // experts that have no logits. If the row is masked, stores all of it.
  HWY_NOINLINE void PutRest(size_t token, float identity) const {
    const RouteOptions& o = args.options;
    const RouteOutputs& out = args.outputs;
    const bool masked = IsMasked(token);
    if (masked) identity = 0.0f;
    if (out.identity_weights.data != nullptr) {
      const AnyMatrix& to = out.identity_weights;
      const bool column = to.cols == 1;
      FloatsToRow(&identity, 1, to, column ? token : 0, column ? 0 : token);
    }
    for (size_t i = 0; masked && i < out.record.cols; ++i) {
      const int32_t none = -1;
      StoreRecord(&none, 1, out.record, token, i);
    }
    for (size_t i = masked ? 0 : plan.slots; i < out.topk_ids.cols; ++i) {
      const size_t id = plan.experts + i - plan.top_k;
      HWY_ALIGN const int32_t ids[kTopKLanes] = {
          masked ? -1 : static_cast<int32_t>(id)};
      HWY_ALIGN const float weights[kTopKLanes] = {masked ? 0.0f
                                                          : o.shared_weight};
      StoreIds(ids, 1, out.topk_ids, token, i);
      StoreWeights(weights, 1, out.topk_weights, token, i);
    }
  }
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_WEIGHTS_INL_H_
