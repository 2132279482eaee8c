// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A row of a call by any recipe: its x and keys, all of them or a piece, and
// what its weights need to know of it.

// Per-target include guard
#if defined(SWITCHYARD_SRC_SIMD_ROUTE_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWITCHYARD_SRC_SIMD_ROUTE_ROW_INL_H_
#undef SWITCHYARD_SRC_SIMD_ROUTE_ROW_INL_H_
#else
#define SWITCHYARD_SRC_SIMD_ROUTE_ROW_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "src/simd/route_recipe.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

#include "hwy/highway.h"

#include "src/simd/route_keys-inl.h"
#include "src/simd/route_weights-inl.h"
#include "src/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Rows with more columns are made in pieces, each time they are needed.
constexpr size_t kRecipeTile = 16384;

class RecipeRow {
 public:
  explicit RecipeRow(const RecipeArgs& args)
      : args_(args),
        in_(args.inputs),
        options_(args.options),
        plan_(args),
        weights_{args_, plan_} {}

 protected:
  // x of columns [begin, begin + n) of a row: where it lies, or in `to`.
  const float* X(size_t row, size_t begin, size_t n, float* to) const {
    const ConstAnyMatrix& logits = in_.logits;
    if (logits.type == Type::kF32 && !plan_.mapped) {
      return logits.Row<float>(row) + begin;
    }
    RowToFloats(logits.ColRange(begin, begin + n), row, to);
    if (plan_.mapped) ForRow(to, n, to, MapRow{options_});
    if (plan_.bias_in_x) AddBias(row, begin, n, to);
    return to;
  }
  void AddBias(size_t row, size_t begin, size_t n, float* to) const {
    const size_t bias = weights_.BiasRow(row);
    if (bias == SIZE_MAX || begin >= plan_.experts) return;
    AddColumns(in_.correction_bias, bias, begin,
               HWY_MIN(n, plan_.experts - begin), to);
  }

  // Columns [begin, begin + n) of what selection compares, groups aside.
  void Keys(size_t row, const RowFacts& facts, size_t begin, size_t n,
            float* to) const {
    const float* const x = X(row, begin, n, to);
    if (!plan_.own_keys) {
      if (x != to) std::copy_n(x, n, to);
      return;
    }
    const bool softmax = plan_.key_score == Score::kSoftmax;
    ScoreRowBy(plan_.key_score, x, n, facts.max, false,
               softmax ? Type::kF32 : plan_.key_round, nullptr, to);
    if (softmax) ForRow(to, n, to, ShareOf{facts.sum_exp, plan_.key_round});
    if (plan_.bias_in_key) AddBias(row, begin, n, to);
  }

  // The keys of a row that fits, groups aside, and what there is to know of it.
  void RowKeys(size_t row, float* to, RowFacts& facts) const {
    const size_t n = plan_.columns;
    const Score score = plan_.key_score;
    if (!plan_.own_keys) {
      X(row, 0, n, to);
    } else if (score == Score::kSoftmax) {
      const float* const x = X(row, 0, n, to);
      facts.max = -HUGE_VALF;
      LookAt(x, n, facts);
      facts.none = !facts.nan && facts.max == -HUGE_VALF;
      const bool easy = !facts.nan && std::fabs(facts.max) < HUGE_VALF;
      if (HWY_LIKELY(easy)) {
        facts.sum_exp = ExpRow(x, n, facts.max, to);
      } else {
        ScoreRowBy(score, x, n, facts.max, false, Type::kF32, nullptr, to);
        facts.sum_exp = SumOf({nullptr, nullptr, n, to, n, 0, n});
      }
      const float* const bias = FloatBias(row);
      if (HWY_LIKELY(bias != nullptr && plan_.key_round == Type::kF32)) {
        ShareRow(to, n, facts.sum_exp, bias, to);
      } else {
        ForRow(to, n, to, ShareOf{facts.sum_exp, plan_.key_round});
        if (plan_.bias_in_key) AddBias(row, 0, n, to);
      }
    } else if (!EasyKeys(row, to)) {
      Look(row, facts, to);
      Keys(row, facts, 0, n, to);
    }
  }
  // The same where no logit is special, or nothing.
  bool EasyKeys(size_t row, float* to) const {
    if (plan_.key_round != Type::kF32) return false;
    const float* const x = X(row, 0, plan_.columns, to);
    const float* const bias = FloatBias(row);
    if (!ScoreRowBy(plan_.key_score, x, plan_.columns, 0.0f, true, Type::kF32,
                    bias, to)) {
      return false;
    }
    if (plan_.bias_in_key && bias == nullptr) {
      AddBias(row, 0, plan_.columns, to);
    }
    return true;
  }
  // The bias that keys get, if it is floats for all columns.
  const float* FloatBias(size_t row) const {
    const ConstAnyMatrix& all = in_.correction_bias;
    if (!plan_.bias_in_key || all.type != Type::kF32 ||
        plan_.columns != plan_.experts) {
      return nullptr;
    }
    const size_t bias = weights_.BiasRow(row);
    return bias == SIZE_MAX ? nullptr : all.Row<float>(bias);
  }

  // A row's largest x, and whether there are NaNs.
  void Look(size_t row, RowFacts& facts, float* buffer) const {
    facts.max = -HUGE_VALF;
    facts.nan = false;
    for (size_t i = 0; i < plan_.columns; i += kRecipeTile) {
      const size_t n = HWY_MIN(kRecipeTile, plan_.columns - i);
      LookAt(X(row, i, n, buffer), n, facts);
    }
    facts.none = !facts.nan && facts.max == -HUGE_VALF;
  }

  // The sum over a row of a score, or of what sparsemixer leaves of exp.
  struct Terms {
    const RecipeRow& maker;
    size_t row;
    Score score;
    Type round;
    float max;
    size_t without = SIZE_MAX;  // sparsemixer: this one

    static void Make(const void* context, size_t begin, size_t n, float* to) {
      const Terms& t = *static_cast<const Terms*>(context);
      const float* const x = t.maker.X(t.row, begin, n, to);
      if (t.score == Score::kSparsemixer) {
        ForRow(x, n, to, NearTo{t.max, t.maker.options_.jitter_eps, t.round});
        if (t.without - begin < n) to[t.without - begin] = 0.0f;
      } else {
        ScoreRowBy(t.score, x, n, t.max, false, t.round, nullptr, to);
      }
    }
  };
  float SumOver(const Terms& terms, float* buffer) const {
    return SumOf({Terms::Make, &terms, plan_.columns, buffer, kRecipeTile});
  }

  // The sums that weights need, and what goes before them. The buffer may be
  // where x lies, and is garbage then.
  bool NeedsSums() const { return plan_.over_all || plan_.share; }
  // Whether RowKeys() finds out less than weights need to know.
  bool KeysKnowLess() const {
    const bool softmax =
        !plan_.of_selected && plan_.value_score == Score::kSoftmax;
    return plan_.all_in_key ? plan_.share && !softmax : NeedsSums() || softmax;
  }
  void LookForWeights(size_t row, RowFacts& facts, float* buffer) const {
    Look(row, facts, buffer);
    if (plan_.over_all ||
        (plan_.share && plan_.value_score == Score::kSoftmax)) {
      facts.sum_exp =
          SumOver({*this, row, Score::kSoftmax, Type::kF32, facts.max}, buffer);
    }
    if (plan_.share && plan_.value_score != Score::kSoftmax) {
      facts.sum_values =
          SumOver({*this, row, plan_.value_score, options_.round_to, facts.max},
                  buffer);
    }
  }

  const RecipeArgs& args_;
  const RouteInputs& in_;
  const RouteOptions& options_;
  const RecipePlan plan_;
  RecipeWeights weights_;
};

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SWITCHYARD_SRC_SIMD_ROUTE_ROW_INL_H_
