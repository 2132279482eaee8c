// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The tables of PlanExperts and RunExperts. See call.h. The tables of other
// calls check the arguments of activation, biases and the inputs of Combine.

#ifndef SWITCHYARD_SRC_CALLS_LAYER_H_
#define SWITCHYARD_SRC_CALLS_LAYER_H_

#include "src/base/layer_plan.h"
#include "src/calls/bucket.h"
#include "src/calls/call.h"
#include "switchyard/layer.h"

namespace switchyard::calls {

struct ExpertsPlanSizes {
  size_t tokens, top_k, plan_size;
};
struct ExpertsPlanCall
    : CallBase<ExpertsPlanInputs, ExpertsPlanOutputs, ExpertsPlanOptions,
               ExpertsPlanSizes, swy_experts_plan_inputs,
               swy_experts_plan_outputs, swy_experts_plan_options> {
  static constexpr const char* kName = "PlanExperts";
  static constexpr Size<Sizes> kSizes[] = {{"tokens", &Sizes::tokens},
                                           {"top_k", &Sizes::top_k},
                                           {"plan_size", &Sizes::plan_size}};
  static Sizes Measure(const Inputs& in, const Outputs&,
                       const Options& options) {
    return {in.topk_ids.rows, in.topk_ids.cols,
            ExpertsPlanSize(in.topk_ids.rows, in.topk_ids.cols, options)};
  }
  static constexpr Argument kInputs[] = {
      {INPUT(topk_ids), kIds, {{"[tokens, top_k]"}}}};
  static constexpr Argument kOutputs[] = {
      {OUTPUT(memory),
       kSpan,
       {{">= plan_size", {}, "is fewer than ExpertsPlanSize elements"}}},
      {OUTPUT(report), {}, {}, kOptional}};
  static constexpr Range kSize = {Range::kFrom1, 0, 0, kMaxInt32,
                                  " is 0 or above 2^31 - 1"};
  static constexpr Range kWorkers = {Range::kFrom1, 0, 0, 1 << 16,
                                     " is 0 or above 65536"};
  static constexpr Option kOptions[] = {
      {OPTION(num_experts), kSize, true},
      {OPTION(hidden), kSize, true},
      {OPTION(intermediate), kSize, true},
      {OPTION(shared_intermediate), kAnyValue, true},
      {OPTION(workers), kWorkers, true},
      {OPTION(tile_rows), kSize, true},
      {OPTION(tile_columns), kAnyValue, true},
      {OPTION(max_rows), kSize, true},
      {OPTION(weight_cost), kAnyValue, true},
      {OPTION(row_cost), kAnyValue, true},
      {OPTION(min_rows), kAnyValue, true},
      {OPTION(least_cost), kAnyValue, true},
      {OPTION(allow_dropped), kAnyValue, true}};
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
    : CallBase<ExpertsInputs, CombineOutputs, ExpertsOptions, ExpertsSizes,
               swy_experts_inputs, swy_combine_outputs, swy_experts_options> {
  static constexpr const char* kName = "RunExperts";
  static constexpr Size<Sizes> kSizes[] = {
      {"tokens", &Sizes::tokens, true},
      {"hidden", &Sizes::hidden, true},
      {"num_experts", &Sizes::num_experts, true},
      {"gate_cols", &Sizes::gate_cols, true},
      {"intermediate", &Sizes::intermediate, true},
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
  static constexpr Shape kRows = {
      "[tokens, hidden]", {}, "is not the plan's [tokens, hidden]"};
  static constexpr Argument kInputs[] = {
      {INPUT(hidden), kAnyRows, {kRows}},
      {INPUT(shared_hidden), kAnyRows, {kRows}, kOptional},
      {INPUT(gate_bias), kFloats, {{"[num_experts, gate_cols]"}}, kOptional},
      {INPUT(up_bias), kFloats, {{"[num_experts, intermediate]"}}, kOptional},
      {INPUT(scratch),
       kSpan,
       {{">= scratch_size", {}, "is fewer than ExpertsScratchSize elements"}},
       kScratch}};
  static constexpr Argument kOutputs[] = {
      {OUTPUT(out), kFloats, {kRows}, kOptional},
      {OUTPUT(normed), kAnyRows, {kRows}, kOptional},
      {OUTPUT(report), {}, {}, kOptional}};
  static constexpr Range kFloatType =
      OneOf<Type>(" is not f32, bf16 or f16", internal::kFloatSet);
  static constexpr Option kOptions[] = {
      {OPTION(gate_up_type), kFloatType, true},
      {OPTION(down_type), kFloatType, true},
      {OPTION(weights_on_input), kAnyValue, true},
      {OPTION(operands.type), kAnyValue, true},
      {OPTION(operands.scale_type), kAnyValue, true},
      {OPTION(operands.scale_columns), kAnyValue, true},
      {OPTION(operands.has_sums), kAnyValue, true}};
  // True if the table of formats in quantize.h has this format.
  static bool IsFormat(const RowFormat& f) {
    if (!internal::IsCode(f.type)) {
      return internal::IsIn(internal::kRowSet, f.type) &&
             f.scale_columns == 0 && !f.has_sums;
    }
    const bool is_float =
        internal::KindOf(f.type) == internal::TypeKind::kFloatCode;
    const bool is_group = f.scale_columns == 32 || f.scale_columns == 64 ||
                          f.scale_columns == 128;
    return f.scale_type == Type::kE8M0
               ? is_float && f.scale_columns == 32 && !f.has_sums
               : f.scale_type == Type::kF32 &&
                     (f.scale_columns == 0 || is_group) &&
                     !(is_float && f.has_sums);
  }
  // True if rows of `cols` columns consist of whole blocks.
  static bool FillsBlocks(const RowFormat& f, size_t cols) {
    return cols % BlockOf(f.type) == 0;
  }
  // Returns the format of the rows that the down product reads.
  static const RowFormat& DownOperands(const ExpertsOptions& options) {
    return options.down_operands.has_value() ? *options.down_operands
                                             : options.operands;
  }
  static bool FillsBlocksOfDown(const ExpertsOptions& options,
                                const ExpertsPlan& plan) {
    const RowFormat& f = DownOperands(options);
    return FillsBlocks(f, plan.intermediate) &&
           FillsBlocks(f, plan.shared_intermediate);
  }
  // True if the formats determine the size of every row in scratch.
  static bool HasFormats(const ExpertsOptions& options,
                         const ExpertsPlan& plan) {
    return IsFormat(options.operands) && IsFormat(DownOperands(options)) &&
           FillsBlocks(options.operands, plan.hidden) &&
           FillsBlocksOfDown(options, plan) &&
           internal::IsFloat(options.gate_up_type) &&
           internal::IsFloat(options.down_type);
  }
  static void PutFormat(const RowFormat& f, internal::Details* to) {
    const auto put = [to](const char* before, Type type) {
      const char* const name = NameOf(type);
      to->Put(before);
      if (name == nullptr) {
        to->Put(static_cast<int>(type));
      } else {
        to->Put(name);
      }
    };
    put("got type ", f.type);
    if (internal::IsCode(f.type)) put(", scale_type ", f.scale_type);
    to->Put(", scale_columns ").Put(f.scale_columns);
    to->Put(f.has_sums ? ", with sums" : ", without sums");
  }
  static void PutColumns(const Args& c, internal::Details* to) {
    const ExpertsPlan& plan = *c.in.plan;
    to->Put("got ").Put(plan.hidden).Put(", ").Put(plan.intermediate);
    to->Put(" and ").Put(plan.shared_intermediate).Put(", needs multiples of ");
    to->Put(BlockOf(c.options.operands.type));
  }
  static void PutHidden(const Args& c, internal::Details* to) {
    to->Put("got ").Put(c.in.plan->hidden).Put(", needs a multiple of ");
    to->Put(BlockOf(c.options.operands.type));
  }
  static void PutDownColumns(const Args& c, internal::Details* to) {
    const ExpertsPlan& plan = *c.in.plan;
    to->Put("got ").Put(plan.intermediate).Put(" and ");
    to->Put(plan.shared_intermediate).Put(", needs multiples of ");
    to->Put(BlockOf(DownOperands(c.options).type));
  }
  static void PutOperands(const Args& c, internal::Details* to) {
    PutFormat(c.options.operands, to);
  }
  static void PutDownOperands(const Args& c, internal::Details* to) {
    PutFormat(DownOperands(c.options), to);
  }
  static void PutWeights(const Args& c, internal::Details* to) {
    const ConstAnyMatrix& weights = c.in.combine.topk_weights;
    to->Put("got ").PutShape(weights.rows, weights.cols).Put(", needs ");
    to->PutShape(c.in.plan->tokens, c.in.plan->top_k);
  }
  static constexpr auto kFirst = Rule<Args>::kBeforeShapes;
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) { return c.in.plan != nullptr; }, "plan: not given",
       kFirst},
      {[](const Args& c) { return internal::IsMade(*c.in.plan); },
       "plan: was not made by PlanExperts", kFirst},
      {[](const Args& c) { return internal::HasItsMemory(*c.in.plan); },
       "plan: its memory has been written since PlanExperts made it", kFirst},
      {[](const Args& c) { return IsFormat(c.options.operands); },
       "options: operands: is not a format of quantize.h", kFirst, PutOperands},
      {[](const Args& c) { return IsFormat(DownOperands(c.options)); },
       "options: down_operands: is not a format of quantize.h", kFirst,
       PutDownOperands},
      {[](const Args& c) {
         return c.options.down_operands.has_value() ||
                (FillsBlocks(c.options.operands, c.in.plan->hidden) &&
                 FillsBlocksOfDown(c.options, *c.in.plan));
       },
       "options: operands: the plan's hidden, intermediate or "
       "shared_intermediate is not a multiple of its block",
       kFirst, PutColumns},
      {[](const Args& c) {
         return FillsBlocks(c.options.operands, c.in.plan->hidden);
       },
       "options: operands: the plan's hidden is not a multiple of its block",
       kFirst, PutHidden},
      {[](const Args& c) { return FillsBlocksOfDown(c.options, *c.in.plan); },
       "options: down_operands: the plan's intermediate or "
       "shared_intermediate is not a multiple of its block",
       kFirst, PutDownColumns},
      {[](const Args& c) {
         return !internal::Given(c.in.combine.rows) &&
                !internal::Given(c.in.combine.row_index) &&
                !c.in.combine.row_index.token_order;
       },
       "combine: rows or row_index given, but this call computes them", kFirst},
      {[](const Args& c) {
         return c.in.plan->shared_intermediate == 0 ||
                (!internal::Given(c.in.combine.shared.rows) &&
                 c.in.combine.shared.num_shared == 1);
       },
       "combine: shared.rows or shared.num_shared given, but the plan has a "
       "shared expert",
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
       "options: shared_activate: its layout is kSplit, but activate's is not",
       kFirst},
      {[](const Args& c) {
         return !internal::Given(c.in.up_bias) ||
                c.options.activate.layout == GateUpLayout::kSplit;
       },
       "up_bias: given, and options.activate.layout is not "
       "GateUpLayout::kSplit"},
      {[](const Args& c) {
         const ConstAnyMatrix& weights = c.in.combine.topk_weights;
         return !internal::Given(weights) ||
                (weights.rows == c.in.plan->tokens &&
                 weights.cols == c.in.plan->top_k);
       },
       "combine: topk_weights: is not the plan's [tokens, top_k]",
       Rule<Args>::kAlways, PutWeights}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_LAYER_H_
