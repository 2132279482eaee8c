// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/route.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "src/base/row_format.h"
#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/route.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/route_groups-inl.h"
#include "src/simd/route_keys-inl.h"
#include "src/simd/route_weights-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/topk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Routes a call's rows on the paths that route.h describes.
class Router {
 public:
  Router(const RouteArgs& args, float* tile)
      : args_(args),
        options_(args.options),
        out_(args.outputs),
        plan_(args),
        maker_(args, plan_),
        weights_{args, plan_},
        tile_(tile) {}
  ~Router() {
    if (weights_.invalid != 0) *args_.invalid_ids += weights_.invalid;
    if (weights_.elsewhere != 0) *args_.elsewhere += weights_.elsewhere;
  }

  void Rows(size_t begin, size_t end) {
    const ConstAnyMatrix& logits = args_.inputs.logits;
    if (plan_.ids_given) {
      return PutRows(begin, end - begin, args_.inputs.given_ids, nullptr);
    }
    if (plan_.weights_by_select) {
      return SelectRows()(
          {logits, out_.topk_ids, out_.topk_weights, plan_.select_mode}, begin,
          end);
    }
    const bool makes_keys = plan_.maps_logits || !plan_.selects_by_x;
    if (makes_keys &&
        (plan_.columns > kKeyTile ||
         (!plan_.selects_by_x && options_.num_expert_group > kGroupsKept))) {
      for (size_t row = begin; row < end; ++row) RowInPieces(row);
      return;
    }
    const size_t batch =
        makes_keys ? SelectBatch<kKeyTile>(plan_.columns) : kSelectBatch;
    for (size_t row = begin; row < end; row += batch) {
      Batch(row, HWY_MIN(batch, end - row), makes_keys);
    }
  }

 private:
  // Computes and stores the results of n rows from their selected `ids`. Finds
  // facts about the rows first if `known` is null.
  void PutRows(size_t first, size_t n, const ConstAnyMatrix& ids,
               const RowFacts* known) {
    const size_t most = HWY_MAX(size_t{1}, kSlots / plan_.slots);
    RowFacts facts[kSelectBatch];
    Slots slots;
    for (size_t i = 0; i < n;) {
      const size_t rows = HWY_MIN(HWY_MIN(most, kSelectBatch), n - i);
      for (size_t r = 0; r < rows; ++r) {
        if (known != nullptr) {
          facts[r] = known[i + r];
        } else {
          facts[r] = kNoFacts;
          maker_.LookForWeights(first + i + r, facts[r], tile_);
        }
      }
      weights_.Put({first + i, rows, ids.RowRange(first + i, first + i + rows),
                    facts, SlotsHave::kNothing},
                   slots);
      i += rows;
    }
  }

  // Writes the ids of the k best of each of n rows to slots.ids, and their
  // values to slots.at.
  static HWY_INLINE void SelectSlots(const ConstAnyMatrix& keys, size_t n,
                                     size_t k, const SelectMode& mode,
                                     Slots& slots) {
    const AnyMatrix ids(slots.ids, n, k), values(slots.at, n, k);
    SelectRows()({keys, ids, values, mode}, 0, n);
  }

  // Computes the keys of n rows in the tile, as if no groups were dropped, and
  // finds facts about the rows.
  void MakeKeys(size_t first, size_t n, RowFacts* facts) const {
    const bool looks = !plan_.selects_by_x && maker_.WeightsNeedMore();
    for (size_t i = 0; i < n; ++i) {
      float* const to = tile_ + i * plan_.columns;
      RowFacts for_weights = kNoFacts;
      if (looks) maker_.LookForWeights(first + i, for_weights, to);
      maker_.RowKeys(first + i, to, facts[i]);
      if (looks) facts[i] = for_weights;
    }
  }

  // Routes n rows. Selects from their logits, or from keys in the tile.
  void Batch(size_t first, size_t n, bool makes_keys) {
    RowFacts facts[kSelectBatch];
    std::fill_n(facts, n, kNoFacts);
    const size_t k = plan_.top_k, experts = plan_.experts;
    const bool slots_fit = plan_.slots == k && k <= kTopKMax;
    if (plan_.drops_groups && slots_fit && n > 1 &&
        BatchOfKeptGroups(first, n, facts)) {
      return;
    }
    if (makes_keys) MakeKeys(first, n, facts);
    for (size_t i = 0; i < n && plan_.drops_groups; ++i) {
      DropGroups(options_, experts, tile_ + i * plan_.columns);
    }
    // (Each member is chosen separately. A choice between two views would copy
    // a view that was just made: the copy loads `type` with its padding, so it
    // waits until the one-byte store of `type` has reached the cache. This
    // would cost a single row 15 ns.)
    const ConstAnyMatrix& logits = args_.inputs.logits;
    const ConstAnyMatrix keys = {
        makes_keys ? static_cast<const void*>(tile_) : RowAt(logits, first),
        makes_keys ? Type::kF32 : logits.type, n, experts,
        makes_keys ? plan_.columns : logits.stride};
    if (!slots_fit) {
      // The ids go to the output. The keys are not needed, so they go to the
      // place of the weights, which are stored later.
      const AnyMatrix ids =
          out_.topk_ids.RowRange(first, first + n).ColRange(0, k);
      const AnyMatrix unused =
          out_.topk_weights.RowRange(first, first + n).ColRange(0, k);
      SelectRows()({keys, ids, unused, kKeys}, 0, n);
      PutRows(first, n, out_.topk_ids, plan_.selects_by_x ? nullptr : facts);
      return;
    }
    Slots slots;
    SelectSlots(keys, n, k, plan_.values_by_select ? plan_.select_mode : kKeys,
                slots);
    SlotsHave has = plan_.values_by_select ? SlotsHave::kValues : SlotsHave::kX;
    for (size_t i = 0; i < n; ++i) {
      RowFacts& f = facts[i];
      const float best = slots.at[i * k];
      if (plan_.values_by_select) {
        f.has_nan = std::isnan(best);
        f.is_empty = best == 0.0f;
      } else if (!plan_.selects_by_x) {
        has = SlotsHave::kIds;
      } else if (maker_.WeightsNeedSums()) {
        maker_.LookForWeights(first + i, f, tile_);
      } else {
        f.max = best;
        f.has_nan = std::isnan(best);
        f.is_empty = best == -HUGE_VALF;
        if (plan_.in_rounds) {
          has = SlotsHave::kValues;
          maker_.WeighRounds(first + i, f, slots.ids + 2 * i, slots.at + 2 * i,
                             tile_);
        }
      }
    }
    weights_.Put({first, n, {}, facts, has}, slots);
  }

  // Routes rows as Batch() does, but selects only from kept groups' keys.
  // Returns false, and stores nothing, if a row selects from dropped groups.
  bool BatchOfKeptGroups(size_t first, size_t n, RowFacts* facts) {
    const size_t k = plan_.top_k;
    if (plan_.experts / options_.num_expert_group * options_.topk_group < k) {
      return false;
    }
    MakeKeys(first, n, facts);
    Compacted compacted;
    compacted.Make(options_, plan_.experts, n, plan_.columns, tile_);
    const ConstAnyMatrix keys(tile_, n, options_.topk_group * compacted.size,
                              plan_.columns);
    Slots slots;
    SelectSlots(keys, n, k, kKeys, slots);
    for (size_t i = 0; i < n; ++i) {
      if (!(slots.at[i * k + k - 1] > DroppedKey(options_))) return false;
    }
    compacted.ToExperts(n, k, slots.ids);
    weights_.Put({first, n, {}, facts, SlotsHave::kIds}, slots);
    return true;
  }

  // Routes a row that does not fit in the tile, or that has more groups than
  // can be ranked together. Computes keys in pieces, each time it reads them.
  HWY_NOINLINE void RowInPieces(size_t row) {
    constexpr size_t kHalf = kKeyTile / 2;
    RowFacts facts = kNoFacts;
    maker_.LookForWeights(row, facts, tile_);
    if (plan_.keys_need_sum) {
      facts.sum_exp = maker_.SumOfExps(row, facts.max, tile_);
    }
    KeyPieces all = {maker_, row, facts, nullptr};
    const Pieces all_keys = {KeyPieces::Make, &all, plan_.experts, tile_,
                             kHalf};
    if (plan_.drops_groups) {
      KeptGroups kept(options_, plan_.experts, all_keys);
      KeyPieces some = {maker_, row, facts, &kept};
      SelectFrom({KeyPieces::Make, &some, plan_.experts, tile_ + kHalf, kHalf},
                 row);
    } else if (plan_.in_rounds) {
      return PutRounds(all_keys, row, facts);
    } else {
      SelectFrom(all_keys, row);
    }
    PutRows(row, 1, out_.topk_ids, &facts);
  }
  struct KeyPieces {
    const RowMaker& maker;
    size_t row;
    const RowFacts& facts;
    KeptGroups* kept;

    static void Make(const void* context, size_t begin, size_t n, float* to) {
      const KeyPieces& p = *static_cast<const KeyPieces*>(context);
      p.maker.Keys(p.row, p.facts, begin, n, to);
      if (p.kept != nullptr) p.kept->Drop(begin, n, to);
    }
  };
  // Selects the two experts of a row with kSparsemixer, and computes their
  // weights from sums over the whole row.
  void PutRounds(const Pieces& keys, size_t row, RowFacts& facts) {
    TopK best;
    SelectNext(keys, plan_.experts, INT32_MAX, -1, 2, best);
    Slots slots;
    for (size_t i = 0; i < 2; ++i) {
      slots.ids[i] = best.ids[i];
      slots.at[i] = LogitFromKey(best.keys[i]);
    }
    maker_.WeighRounds(row, facts, slots.ids, slots.at, tile_);
    weights_.Put({row, 1, {}, &facts, SlotsHave::kValues}, slots);
  }
  void SelectFrom(const Pieces& keys, size_t row) const {
    TopK best;
    int32_t last_key = INT32_MAX, last_id = -1;
    for (size_t slot = 0; slot < plan_.top_k; slot += kTopKMax) {
      const size_t count = HWY_MIN(kTopKMax, plan_.top_k - slot);
      SelectNext(keys, plan_.experts, last_key, last_id, count, best);
      StoreIds(best.ids, count, out_.topk_ids, row, slot);
      last_key = best.keys[count - 1];
      last_id = best.ids[count - 1];
    }
  }

  static constexpr SelectMode kKeys = {SelectMode::kKeys, 0.0f};
  const RouteArgs& args_;
  const RouteOptions& options_;
  const RouteOutputs& out_;
  const RoutePlan plan_;
  const RowMaker maker_;
  WeightMaker weights_;
  float* const tile_;
};

void Route(const RouteArgs& args, size_t begin, size_t end) {
  HWY_ALIGN float tile[kKeyTile];
  Router(args, tile).Rows(begin, end);
}

SWITCHYARD_ROW_FUNCTION(Route, RouteArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(RouteRows, Route, RouteArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
