// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/route_recipe.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "src/simd/route.h"
#include "src/simd/storage_types.h"
#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/route_recipe.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/recipes-inl.h"
#include "src/simd/route_groups-inl.h"
#include "src/simd/route_keys-inl.h"
#include "src/simd/route_row-inl.h"
#include "src/simd/route_weights-inl.h"
#include "src/simd/rows-inl.h"
#include "src/simd/topk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// All of RouteTopK but plain softmax. Keys are made for a batch of rows on the
// stack, as floats, and RouteRows() selects among them as if they were logits;
// then come the weights. Where selection is by the logits as they lie, nothing
// is made. Options are branches around loops; a template is for scores only.

constexpr size_t kRecipeCached = 8192;
constexpr size_t kRecipeWanted = 16;

class RecipeRouter : RecipeRow {
 public:
  RecipeRouter(const RecipeArgs& args, float* tile)
      : RecipeRow(args), out_(args.outputs), tile_(tile) {}
  ~RecipeRouter() {
    if (weights_.invalid != 0) *args_.invalid_ids += weights_.invalid;
    if (weights_.elsewhere != 0) *args_.elsewhere += weights_.elsewhere;
  }

  void Rows(size_t begin, size_t end) {
    const bool made = plan_.own_keys || plan_.mapped;
    if (plan_.given) return PutRows(begin, end - begin, in_.given_ids, nullptr);
    if (plan_.engine_only) {
      return Select(in_.logits, out_.topk_ids, out_.topk_weights,
                    EngineOptions(true), begin, end);
    }
    if (made && (plan_.columns > kRecipeTile ||
                 (plan_.own_keys && options_.num_expert_group > kGroupsKept))) {
      for (size_t row = begin; row < end; ++row) SelectInPieces(row);
      return;
    }
    size_t batch = kRecipeBatch;
    if (made) {
      // In whole vectors of rows, as RouteRows() takes them.
      const size_t cached =
          HWY_MIN(kRecipeBatch, kRecipeCached / plan_.columns) / kRecipeWanted *
          kRecipeWanted;
      const size_t most = HWY_MAX(size_t{1}, kRecipeTile / plan_.columns);
      batch = HWY_MIN(most, HWY_MAX(kRecipeWanted, cached));
    }
    for (size_t row = begin; row < end; row += batch) {
      Batch(row, HWY_MIN(batch, end - row), made);
    }
  }

 private:
  // The results of n rows whose ids are in the rows of that matrix. Without
  // facts, they are found out.
  void PutRows(size_t first, size_t n, const ConstAnyMatrix& ids,
               const RowFacts* known) {
    const size_t most = HWY_MAX(size_t{1}, kSlots / plan_.slots);
    RowFacts facts[kRecipeBatch];
    Slots slots;
    for (size_t i = 0; i < n;) {
      const size_t rows = HWY_MIN(HWY_MIN(most, kRecipeBatch), n - i);
      for (size_t r = 0; r < rows; ++r) {
        if (known != nullptr) {
          facts[r] = known[i + r];
        } else {
          LookForWeights(first + i + r, facts[r], tile_);
        }
      }
      weights_.Put({first + i, rows, ids.RowRange(first + i, first + i + rows),
                    facts, SlotsHave::kNothing},
                   slots);
      i += rows;
    }
  }

  // Selection by RouteRows(), and its weights if they are wanted. (Field by
  // field: the copy of a view that was just made waits for its type to reach
  // the cache, being read with what lies behind it.)
  template <class V>
  static HWY_INLINE BasicAnyMatrix<V> Fields(const BasicAnyMatrix<V>& m) {
    return {m.data, m.type, m.rows, m.cols, m.stride};
  }
  static HWY_INLINE void Select(const ConstAnyMatrix& keys,
                                const AnyMatrix& ids, const AnyMatrix& weights,
                                const RouteOptions& options, size_t begin,
                                size_t end) {
    const RouteInputs inputs = {Fields(keys)};
    const RouteOutputs outputs = {Fields(ids), Fields(weights)};
    RouteRows()({inputs, outputs, options}, begin, end);
  }
  RouteOptions EngineOptions(bool weights) const {
    RouteOptions options;
    options.renormalize = !weights || plan_.of_selected || options_.renormalize;
    const bool share = weights && !plan_.of_selected &&
                       options_.divisor == Divisor::kMaxOfSumAndShare;
    options.clamp = share ? options_.clamp : 0.0f;
    options.score = weights ? Score::kSoftmax : Score::kRaw;
    return options;
  }

  // The keys of n rows in the tile, and what there is to know of these; the
  // columns of dropped groups may be left out.
  ConstAnyMatrix MakeKeys(size_t first, size_t n, RowFacts* facts,
                          Compacted* compacted) const {
    const size_t columns = plan_.columns, experts = plan_.experts;
    for (size_t i = 0; i < n; ++i) {
      float* const to = tile_ + i * columns;
      RowFacts sums;
      const bool own = plan_.own_keys && KeysKnowLess();
      if (own) LookForWeights(first + i, sums, to);
      RowKeys(first + i, to, facts[i]);
      if (own) facts[i] = sums;
    }
    if (compacted != nullptr) {
      compacted->Make(options_, experts, n, columns, tile_);
      const size_t kept = options_.topk_group * compacted->size;
      return ConstAnyMatrix(tile_, n, kept, columns);
    }
    for (size_t i = 0; i < n && plan_.drops; ++i) {
      DropGroups(options_, experts, tile_ + i * columns);
    }
    return ConstAnyMatrix(tile_, n, experts, columns);
  }

  // n rows, selected by RouteRows(): from logits as they lie, or made of them.
  void Batch(size_t first, size_t n, bool made) {
    RowFacts facts[kRecipeBatch];
    const size_t k = plan_.top_k;
    const bool few = plan_.slots == k && k <= kTopKMax;
    if (plan_.drops && few && n > 1 && BatchOfKept(first, n, facts)) return;
    ConstAnyMatrix keys = in_.logits.RowRange(first, first + n);
    if (plan_.columns != plan_.experts) keys = keys.ColRange(0, plan_.experts);
    if (made) keys = MakeKeys(first, n, facts, nullptr);
    if (!few) {
      // Where ids are to be, with what is of no use in the place of weights.
      Select(keys, out_.topk_ids.RowRange(first, first + n).ColRange(0, k),
             out_.topk_weights.RowRange(first, first + n).ColRange(0, k),
             EngineOptions(false), 0, n);
      PutRows(first, n, out_.topk_ids, plan_.own_keys ? facts : nullptr);
      return;
    }
    Slots slots;
    const bool weights = plan_.by_engine;
    Select(keys, AnyMatrix(slots.ids, n, k), AnyMatrix(slots.at, n, k),
           EngineOptions(weights), 0, n);
    SlotsHave has = weights ? SlotsHave::kValues : SlotsHave::kX;
    for (size_t i = 0; i < n; ++i) {
      RowFacts& f = facts[i];
      const float best = slots.at[i * k];
      if (weights) {
        f.nan = std::isnan(best);
        f.none = best == 0.0f;
      } else if (plan_.own_keys) {
        has = SlotsHave::kIds;
      } else if (NeedsSums()) {
        LookForWeights(first + i, f, tile_);
      } else {
        f.max = best;
        f.nan = std::isnan(best);
        f.none = best == -HUGE_VALF;
        if (plan_.sparsemixer) {
          has = SlotsHave::kValues;
          Sparsemixer(first + i, f, slots.ids + 2 * i, slots.at + 2 * i);
        }
      }
    }
    weights_.Put({first, n, {}, facts, has}, slots);
  }

  // The same where all that is selected is in kept groups, or nothing.
  bool BatchOfKept(size_t first, size_t n, RowFacts* facts) {
    const size_t k = plan_.top_k;
    if (plan_.experts / options_.num_expert_group * options_.topk_group < k) {
      return false;
    }
    Compacted compacted;
    Slots slots;
    Select(MakeKeys(first, n, facts, &compacted), AnyMatrix(slots.ids, n, k),
           AnyMatrix(slots.at, n, k), EngineOptions(false), 0, n);
    for (size_t i = 0; i < n; ++i) {
      if (!(slots.at[i * k + k - 1] > DroppedKey(options_))) return false;
    }
    compacted.ToExperts(n, k, slots.ids);
    weights_.Put({first, n, {}, facts, SlotsHave::kIds}, slots);
    return true;
  }

  // Two rounds: x is the largest in each, and becomes its weight.
  void Sparsemixer(size_t row, const RowFacts& facts, const int32_t* ids,
                   float* x) const {
    size_t without = SIZE_MAX;
    for (size_t i = 0; i < 2 && !facts.nan; ++i) {
      if (x[i] == -HUGE_VALF) {
        x[i] = 0.0f;
        continue;
      }
      x[i] = 1.0f / SumOver({*this, row, Score::kSparsemixer, options_.round_to,
                             x[i], without},
                            tile_);
      without = static_cast<size_t>(ids[0]);
    }
  }

  // Keys of a row that is too long, made as they are looked at.
  struct KeyPieces {
    const RecipeRouter& router;
    size_t row;
    const RowFacts& facts;
    KeptGroups* kept;

    static void Make(const void* context, size_t begin, size_t n, float* to) {
      const KeyPieces& p = *static_cast<const KeyPieces*>(context);
      p.router.Keys(p.row, p.facts, begin, n, to);
      if (p.kept != nullptr) p.kept->Drop(begin, n, to);
    }
  };
  HWY_NOINLINE void SelectInPieces(size_t row) {
    constexpr size_t kHalf = kRecipeTile / 2;
    RowFacts facts;
    LookForWeights(row, facts, tile_);
    if (plan_.all_in_key) {
      facts.sum_exp =
          SumOver({*this, row, Score::kSoftmax, Type::kF32, facts.max}, tile_);
    }
    KeyPieces all = {*this, row, facts, nullptr};
    const Pieces all_keys = {KeyPieces::Make, &all, plan_.experts, tile_,
                             kHalf};
    if (plan_.drops) {
      KeptGroups kept(options_, plan_.experts, all_keys);
      KeyPieces some = {*this, row, facts, &kept};
      SelectFrom({KeyPieces::Make, &some, plan_.experts, tile_ + kHalf, kHalf},
                 row);
    } else if (plan_.sparsemixer) {
      return PutSparsemixer(all_keys, row, facts);
    } else {
      SelectFrom(all_keys, row);
    }
    PutRows(row, 1, out_.topk_ids, &facts);
  }
  // Its two weights are sums over the row, and so made where keys are at hand.
  void PutSparsemixer(const Pieces& keys, size_t row, RowFacts& facts) {
    TopK best;
    SelectNext(keys, plan_.experts, INT32_MAX, -1, 2, best);
    Slots slots;
    for (size_t i = 0; i < 2; ++i) {
      slots.ids[i] = best.ids[i];
      slots.at[i] = LogitFromKey(best.keys[i]);
    }
    Sparsemixer(row, facts, slots.ids, slots.at);
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

  const RouteOutputs& out_;
  float* const tile_;
};

void RouteByRecipe(const RecipeArgs& args, size_t begin, size_t end) {
  HWY_ALIGN float tile[kRecipeTile];
  RecipeRouter(args, tile).Rows(begin, end);
}

SWITCHYARD_ROW_FUNCTION(RouteByRecipe, RecipeArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(RecipeRows, RouteByRecipe, RecipeArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
