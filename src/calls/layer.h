// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The calls of PlanExperts and RunExperts: see call.h. Arguments of RunExperts
// that are parts of other calls (activation, biases, what Combine takes) are
// checked by those calls' tables.

#ifndef SWITCHYARD_SRC_CALLS_LAYER_H_
#define SWITCHYARD_SRC_CALLS_LAYER_H_

#include "src/calls/bucket.h"
#include "src/calls/call.h"
#include "switchyard/layer.h"

namespace switchyard::calls {

struct ExpertsPlanSizes {
  size_t tokens, top_k, plan_size;
};
struct ExpertsPlanCall : CallBase<ExpertsPlanInputs, ExpertsPlanOutputs,
                                  ExpertsPlanOptions, ExpertsPlanSizes> {
  static constexpr const char* kName = "PlanExperts";
  static constexpr Size<Sizes> kSizes[] = {{"tokens", &Sizes::tokens},
                                           {"top_k", &Sizes::top_k},
                                           {"plan_size", &Sizes::plan_size}};
  static Sizes Measure(const Inputs& in, const Outputs&,
                       const Options& options) {
    return {in.topk_ids.rows, in.topk_ids.cols,
            ExpertsPlanSize(in.topk_ids.rows, in.topk_ids.cols, options)};
  }
#define FIELD(f) \
  SWITCHYARD_FIELD_OF(ExpertsPlanInputs, swy_experts_plan_inputs, f)
  static constexpr Argument kInputs[] = {
      {FIELD(topk_ids), kIds, {{"[tokens, top_k]"}}}};
#undef FIELD
#define FIELD(f) \
  SWITCHYARD_FIELD_OF(ExpertsPlanOutputs, swy_experts_plan_outputs, f)
  static constexpr Argument kOutputs[] = {
      {FIELD(memory),
       kSpan,
       {{">= plan_size", {}, "is fewer than ExpertsPlanSize elements"}}},
      {FIELD(report), {}, {}, kOptional}};
#undef FIELD
  static constexpr Range kSize = {Range::kFrom1, 0, 0, kMaxInt32,
                                  " is 0 or above 2^31 - 1"};
  static constexpr Range kWorkers = {Range::kFrom1, 0, 0, 1 << 16,
                                     " is 0 or above 65536"};
#define FIELD(f) \
  SWITCHYARD_FIELD_OF(ExpertsPlanOptions, swy_experts_plan_options, f)
  static constexpr Option kOptions[] = {
      {FIELD(num_experts), kSize, true},
      {FIELD(hidden), kSize, true},
      {FIELD(intermediate), kSize, true},
      {FIELD(shared_intermediate), kAnyValue, true},
      {FIELD(workers), kWorkers, true},
      {FIELD(tile_rows), kSize, true},
      {FIELD(tile_columns), kAnyValue, true},
      {FIELD(max_rows), kSize, true},
      {FIELD(weight_cost), kAnyValue, true},
      {FIELD(row_cost), kAnyValue, true},
      {FIELD(min_rows), kAnyValue, true},
      {FIELD(least_cost), kAnyValue, true},
      {FIELD(allow_dropped), kAnyValue, true}};
#undef FIELD
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) { return c.out.plan != nullptr; }, "plan: not given",
       Rule<Args>::kBeforeShapes},
      {[](const Args& c) { return c.sizes.top_k != 0; },
       "topk_ids: top_k (cols) is 0", Rule<Args>::kBeforeShapes},
      {[](const Args& c) {
         return c.sizes.tokens * c.sizes.top_k <= kMaxInt32;
       },
       "topk_ids: more than 2^31 - 1 pairs", Rule<Args>::kBeforeShapes},
      {[](const Args& c) { return c.options.shared_intermediate <= kMaxInt32; },
       "options: shared_intermediate is above 2^31 - 1",
       Rule<Args>::kBeforeShapes}};
};

struct ExpertsSizes {
  size_t tokens, hidden, num_experts, gate_cols, intermediate, scratch_size;
};
struct ExpertsCall
    : CallBase<ExpertsInputs, CombineOutputs, ExpertsOptions, ExpertsSizes> {
  static constexpr const char* kName = "RunExperts";
  static constexpr Size<Sizes> kSizes[] = {
      {"tokens", &Sizes::tokens},
      {"hidden", &Sizes::hidden},
      {"num_experts", &Sizes::num_experts},
      {"gate_cols", &Sizes::gate_cols},
      {"intermediate", &Sizes::intermediate},
      {"scratch_size", &Sizes::scratch_size}};
  static Sizes Measure(const Inputs& in, const Outputs&,
                       const Options& options) {
    if (in.plan == nullptr) return {};
    const ExpertsPlan& plan = *in.plan;
    const GateUpLayout layout = options.activate.layout;
    const bool is_one =
        layout == GateUpLayout::kSplit || layout == GateUpLayout::kUngated;
    return {plan.tokens,       plan.hidden,
            plan.num_experts,  plan.intermediate * (is_one ? 1 : 2),
            plan.intermediate, ExpertsScratchSize(plan, options, 1)};
  }
  static constexpr Shape kRows = {"[tokens, hidden]"};
#define FIELD(f) SWITCHYARD_FIELD_OF(ExpertsInputs, swy_experts_inputs, f)
  static constexpr Argument kInputs[] = {
      {FIELD(hidden), kAnyRows, {kRows}},
      {FIELD(shared_hidden), kAnyRows, {kRows}, kOptional},
      {FIELD(gate_bias), kFloats, {{"[num_experts, gate_cols]"}}, kOptional},
      {FIELD(up_bias), kFloats, {{"[num_experts, intermediate]"}}, kOptional},
      {FIELD(scratch),
       kSpan,
       {{">= scratch_size", {}, "is fewer than ExpertsScratchSize elements"}},
       kScratch}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(CombineOutputs, swy_combine_outputs, f)
  static constexpr Argument kOutputs[] = {
      {FIELD(out), kFloats, {kRows}, kOptional},
      {FIELD(normed), kAnyRows, {kRows}, kOptional},
      {FIELD(report), {}, {}, kOptional}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(ExpertsOptions, swy_experts_options, f)
  static constexpr Range kFloatType = {Range::kSet, 0, internal::kFloatSet, 0,
                                       " is not f32, bf16 or f16"};
  static constexpr Option kOptions[] = {
      {FIELD(gate_up_type), kFloatType, true},
      {FIELD(down_type), kFloatType, true},
      {FIELD(weights_on_input), kAnyValue, true}};
#undef FIELD
  // A line of the table in quantize.h.
  static bool IsFormat(const RowFormat& f) {
    if (!internal::IsCode(f.type)) {
      return (internal::kRowSet >> static_cast<unsigned>(f.type) & 1) != 0 &&
             f.scale_columns == 0 && !f.has_sums;
    }
    const bool is_float = f.type == Type::kF8E4M3 || f.type == Type::kF8E5M2;
    const bool is_group = f.scale_columns == 32 || f.scale_columns == 64 ||
                          f.scale_columns == 128;
    return f.scale_type == Type::kE8M0
               ? is_float && f.scale_columns == 32 && !f.has_sums
               : f.scale_type == Type::kF32 &&
                     (f.scale_columns == 0 || is_group) &&
                     !(is_float && f.has_sums);
  }
  static constexpr auto kFirst = Rule<Args>::kBeforeShapes;
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) { return c.in.plan != nullptr; }, "plan: not given",
       kFirst},
      {[](const Args& c) { return IsFormat(c.options.operands); },
       "options: operands: is no format of quantize.h", kFirst},
      {[](const Args& c) {
         return !internal::Given(c.in.combine.rows) &&
                !internal::Given(c.in.combine.row_index) &&
                !c.in.combine.row_index.token_order;
       },
       "combine: rows or row_index given, which are this call's own", kFirst},
      {[](const Args& c) {
         return c.in.plan->shared_intermediate == 0 ||
                (!internal::Given(c.in.combine.shared.rows) &&
                 c.in.combine.shared.num_shared == 1);
       },
       "combine: shared.rows given, or several, with a plan that has a shared "
       "expert",
       kFirst},
      {[](const Args& c) {
         return c.in.plan->shared_intermediate != 0 ||
                !internal::Given(c.in.shared_hidden);
       },
       "shared_hidden: given with a plan that has no shared expert", kFirst},
      {[](const Args& c) {
         return c.options.shared_activate.layout != GateUpLayout::kSplit ||
                c.in.plan->shared_intermediate == 0 ||
                c.options.activate.layout == GateUpLayout::kSplit;
       },
       "options: shared_activate: is split and activate is not", kFirst}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_LAYER_H_
