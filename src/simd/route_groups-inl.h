// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes the scores of a row's groups of experts, and drops the worst.

#if defined(SWITCHYARD_SRC_SIMD_ROUTE_GROUPS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_ROUTE_GROUPS_INL_H_
#undef SWITCHYARD_SRC_SIMD_ROUTE_GROUPS_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_ROUTE_GROUPS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/simd/route_select.h"
#include "switchyard/route.h"

#include "hwy/highway.h"

#include "src/simd/candidates-inl.h"
#include "src/simd/route_keys-inl.h"
#include "src/simd/storage-inl.h"
#include "src/simd/topk-inl.h"
#include "src/simd/topk_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// The most groups that are ranked together.
constexpr size_t kGroupsKept = MaxCandidates(kTopKMax);

// Returns the sum of a row's `of` best keys, with the best key added first.
template <class Row>
HWY_NOINLINE float SumOfBest(const Row& row, size_t n, size_t of) {
  TopK best;
  int32_t last_key = INT32_MAX, last_id = -1;
  float sum = 0.0f;
  for (size_t i = 0; i < of; i += kTopKMax) {
    const size_t count = HWY_MIN(kTopKMax, of - i);
    SelectNext(row, n, last_key, last_id, count, best);
    for (size_t j = 0; j < count; ++j) {
      const float key = LogitFromKey(best.keys[j]);
      sum = i + j == 0 ? key : sum + key;
    }
    last_key = best.keys[count - 1];
    last_id = best.ids[count - 1];
  }
  return sum;
}

#if HWY_TARGET != HWY_SCALAR
// SumOfBest() for four rows at once, if `of` is 1 or 2, and n is at least
// `of`. Returns false if a key is a NaN, or if n is not a multiple of a
// vector's length. Transposes the lanes of the rows, so that one fold handles
// all four.
HWY_INLINE bool SumsOfTwo(const float* HWY_RESTRICT keys, size_t n, size_t of,
                          float* HWY_RESTRICT sums) {
  const hn::CappedTag<float, 16> d;
  const size_t N = hn::Lanes(d);
  if (n % N != 0) return false;
  const hn::CappedTag<float, 4> d4;
  HWY_ALIGN float first[4 * 16], second[4 * 16];
  auto nan = hn::MaskFromVec(hn::Zero(d));
  for (size_t g = 0; g < 4; ++g) {
    auto a = hn::LoadU(d, keys + g * n);
    auto b = hn::Set(d, -HUGE_VALF);
    nan = hn::Or(nan, hn::IsNaN(a));
    for (size_t i = N; i < n; i += N) {
      const auto v = hn::LoadU(d, keys + g * n + i);
      nan = hn::Or(nan, hn::IsNaN(v));
      b = hn::Max(b, hn::Min(a, v));
      a = hn::Max(a, v);
    }
    hn::Store(a, d, first + g * N);
    hn::Store(b, d, second + g * N);
  }
  if (HWY_UNLIKELY(!hn::AllFalse(d, nan))) return false;
  TransposeBlocks(d, first);
  TransposeBlocks(d, second);
  auto a = hn::Load(d, first), b = hn::Load(d, second);
  for (size_t g = 1; g < 4; ++g) {
    const auto v = hn::Load(d, first + g * N);
    b = hn::Max(hn::Max(b, hn::Load(d, second + g * N)), hn::Min(a, v));
    a = hn::Max(a, v);
  }
  hn::Store(a, d, first);
  hn::Store(b, d, second);
  auto a4 = hn::Load(d4, first), b4 = hn::Load(d4, second);
  for (size_t i = 4; i < N; i += 4) {
    const auto v = hn::Load(d4, first + i);
    b4 = hn::Max(hn::Max(b4, hn::Load(d4, second + i)), hn::Min(a4, v));
    a4 = hn::Max(a4, v);
  }
  hn::StoreU(of == 1 ? a4 : hn::Add(a4, b4), d4, sums);
  return true;
}
#endif

HWY_INLINE float DroppedKey(const RouteOptions& options) {
  return options.dropped_key_is_zero ? 0.0f : -HUGE_VALF;
}

// Computes the scores of a row's groups, at most kGroupsKept, from its keys.
HWY_INLINE void GroupScores(const RouteOptions& options, size_t size,
                            const float* keys, float* scores) {
  const size_t groups = options.num_expert_group;
  const size_t of = options.group_score_of;
  for (size_t g = 0; g < groups;) {
#if HWY_TARGET != HWY_SCALAR
    if (of <= 2 && g + 4 <= groups &&
        SumsOfTwo(keys + g * size, size, of, scores + g)) {
      g += 4;
      continue;
    }
#endif
    scores[g] = SumOfBest(KeyRow<float>{keys + g * size}, size, of);
    ++g;
  }
}
// Ranks groups by their scores, which are in list.logits.
HWY_INLINE void RankGroups(size_t groups, Candidates& list) {
  hn::StoreU(hn::Zero(TopKTag()), TopKTag(), list.logits + groups);
  MakeKeys(groups, list);
  Rank(groups, list);
}

// Drops all groups of a row except for the topk_group best: overwrites the
// keys of dropped groups.
HWY_NOINLINE void DropGroups(const RouteOptions& options, size_t experts,
                             float* keys) {
  const size_t groups = options.num_expert_group;
  const size_t size = experts / groups;
  Candidates list;
  GroupScores(options, size, keys, list.logits);
  RankGroups(groups, list);
  for (size_t g = 0; g < groups; ++g) {
    if (list.ranks[g] >= static_cast<int32_t>(options.topk_group)) {
      std::fill_n(keys + g * size, size, DroppedKey(options));
    }
  }
}

// Rows that have only the keys of their kept groups, without gaps, and the
// numbers of these groups. Selecting from these rows skips half the columns.
// The result is valid if no row would select from a dropped group.
struct Compacted {
  size_t size;  // experts in a group
  uint8_t kept[kSelectBatch][kGroupsKept];

  // Compacts n rows, which are `stride` floats apart. Each phase handles all
  // rows, for the reason given in topk-inl.h.
  HWY_NOINLINE void Make(const RouteOptions& options, size_t experts, size_t n,
                         size_t stride, float* keys) {
    const TopKTag d;
    const size_t N = hn::Lanes(d), groups = options.num_expert_group;
    size = experts / groups;
    HWY_ALIGN float scores[kSelectBatch * kGroupsKept];
    for (size_t r = 0; r < n; ++r) {
      GroupScores(options, size, keys + r * stride, scores + r * groups);
    }
    if (groups <= kFewGroups) {
      KeepOfFew(options, n, scores);
    } else {
      for (size_t r = 0; r < n; ++r) Keep(options, scores + r * groups, r);
    }
    for (size_t r = 0; r < n; ++r) {
      float* const row = keys + r * stride;
      for (size_t i = 0; i < options.topk_group; ++i) {
        const float* const from = row + kept[r][i] * size;
        float* const to = row + i * size;
        size_t at = 0;  // moves left to right: `to` never passes `from`
        for (; at + N <= size; at += N) {
          hn::StoreU(hn::LoadU(d, from + at), d, to + at);
        }
        for (; at < size; ++at) to[at] = from[at];
      }
    }
  }

  // Ranks the groups of row r, and keeps the best groups.
  HWY_INLINE void Keep(const RouteOptions& options, const float* scores,
                       size_t r) {
    const size_t groups = options.num_expert_group;
    Candidates list;
    std::memcpy(list.logits, scores, groups * sizeof(float));
    RankGroups(groups, list);
    size_t count = 0;
    for (size_t g = 0; g < groups; ++g) {
      kept[r][count] = static_cast<uint8_t>(g);
      count += list.ranks[g] < static_cast<int32_t>(options.topk_group);
    }
  }
  // Does the same as Keep() for few groups, but for all rows at once, with a
  // row per lane. Compares each group with every other group.
  static constexpr size_t kFewGroups = 16;
  HWY_INLINE void KeepOfFew(const RouteOptions& options, size_t n,
                            const float* scores) {
    const TopKTag d;
    const TopKIntTag di;
    const size_t N = hn::Lanes(d), groups = options.num_expert_group;
    constexpr size_t kRows = kSelectBatch + kTopKLanes;
    HWY_ALIGN float columns[kFewGroups * kRows];
    HWY_ALIGN int32_t places[kFewGroups * kRows];
    for (size_t g = 0; g < groups; ++g) {
      hn::StoreU(hn::Zero(d), d, columns + g * kRows + n);
      for (size_t r = 0; r < n; ++r) {
        columns[g * kRows + r] = scores[r * groups + g];
      }
    }
    const TopKIntVec most =
        hn::Set(di, static_cast<int32_t>(options.topk_group));
    const TopKIntVec one = hn::Set(di, 1);
    for (size_t r = 0; r < n; r += N) {
      HWY_ALIGN int32_t keys[kFewGroups * kTopKLanes];
      for (size_t g = 0; g < groups; ++g) {
        const TopKVec score = hn::LoadU(d, columns + g * kRows + r);
        hn::Store(KeyFromLogit(di, score), di, keys + g * N);
      }
      TopKIntVec place = hn::Zero(di);
      for (size_t g = 0; g < groups; ++g) {
        const TopKIntVec key = hn::Load(di, keys + g * N);
        const TopKIntVec below = hn::Sub(key, one);
        TopKIntVec rank = hn::Zero(di);
        for (size_t j = 0; j < g; ++j) {
          rank = AddIf(hn::Gt(hn::Load(di, keys + j * N), below), rank);
        }
        for (size_t j = g + 1; j < groups; ++j) {
          rank = AddIf(hn::Gt(hn::Load(di, keys + j * N), key), rank);
        }
        hn::StoreU(place, di, places + g * kRows + r);
        place = AddIf(hn::Lt(rank, most), place);
      }
    }
    for (size_t r = 0; r < n; ++r) {
      for (size_t g = 0; g < groups; ++g) {
        kept[r][places[g * kRows + r]] = static_cast<uint8_t>(g);
      }
    }
  }

  // Converts columns of compacted rows to ids.
  void ToExperts(size_t n, size_t k, int32_t* ids) const {
    // For c below 2^16, c / size = c * inverse >> 32.
    const uint64_t inverse = (uint64_t{1} << 32) / size + 1;
    for (size_t r = 0; r < n; ++r) {
      for (size_t i = r * k; i < (r + 1) * k; ++i) {
        const uint64_t column = static_cast<uint32_t>(ids[i]);
        const size_t group = column * inverse >> 32;
        const size_t expert = kept[r][group] * size + column - group * size;
        ids[i] = static_cast<int32_t>(expert);
      }
    }
  }
};

// Finds the kept groups of a row that is routed in pieces. The constructor
// finds the topk_group-th best score, from `keys`, in which no group is
// dropped. Drop() computes a group's score again when it needs the score.
class KeptGroups {
 public:
  KeptGroups(const RouteOptions& options, size_t experts, const Pieces& keys)
      : options_(options),
        size_(experts / options.num_expert_group),
        keys_(keys) {
    HWY_ALIGN float scores[kScores];
    const Pieces row = {Scores, this, options.num_expert_group, scores,
                        kScores};
    TopK best;
    for (size_t i = 0; i < options.topk_group; i += kTopKMax) {
      const size_t count = HWY_MIN(kTopKMax, options.topk_group - i);
      SelectNext(row, row.size, last_key_, last_id_, count, best);
      last_key_ = best.keys[count - 1];
      last_id_ = best.ids[count - 1];
    }
  }

  // Overwrites the keys of dropped groups in a piece of the row.
  void Drop(size_t begin, size_t n, float* keys) {
    for (size_t i = begin; i < begin + n;) {
      const size_t group = i / size_;
      const size_t stop = HWY_MIN((group + 1) * size_, begin + n);
      if (!IsKept(group)) {
        std::fill_n(keys + (i - begin), stop - i, DroppedKey(options_));
      }
      i = stop;
    }
  }

 private:
  static constexpr size_t kScores = 128;

  float ScoreOf(size_t group) const {
    const Offset row = {keys_, group * size_};
    return SumOfBest(row, size_, options_.group_score_of);
  }
  static void Scores(const void* context, size_t begin, size_t n, float* to) {
    const KeptGroups& self = *static_cast<const KeptGroups*>(context);
    for (size_t i = 0; i < n; ++i) to[i] = self.ScoreOf(begin + i);
  }
  bool IsKept(size_t group) {
    if (group != group_) {
      group_ = group;
      HWY_ALIGN float lanes[kTopKLanes] = {ScoreOf(group)};
      HWY_ALIGN int32_t keys[kTopKLanes];
      const TopKIntTag di;
      hn::Store(KeyFromLogit(di, hn::Load(TopKTag(), lanes)), di, keys);
      kept_ = keys[0] > last_key_ ||
              (keys[0] == last_key_ && static_cast<int32_t>(group) <= last_id_);
    }
    return kept_;
  }

  // Reads the keys of a group as a row. The group may begin inside a piece.
  struct Offset {
    const Pieces& keys;
    size_t first;
    template <class D>
    HWY_INLINE hn::Vec<D> Load(D d, size_t i) const {
      return LoadPartial(d, i, hn::Lanes(d));
    }
    template <class D>
    HWY_INLINE hn::Vec<D> LoadPartial(D d, size_t i, size_t n) const {
      HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)] = {};
      for (size_t j = 0; j < n; ++j) lanes[j] = *keys.At(first + i + j);
      return hn::Load(d, lanes);
    }
  };

  const RouteOptions& options_;
  const size_t size_;
  const Pieces& keys_;
  int32_t last_key_ = INT32_MAX, last_id_ = -1;
  size_t group_ = SIZE_MAX;
  bool kept_ = false;
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_GROUPS_INL_H_
