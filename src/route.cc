// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/route.h"

#include <atomic>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "src/check.h"
#include "src/schedule.h"
#include "src/shapes.h"
#include "src/simd/route.h"
#include "src/simd/route_select.h"
#include "src/simd/targets.h"

#define CHECK_OPTION(condition, message) \
  SWITCHYARD_CHECK(condition, "RouteTopK: options: " message)
// [tokens, 1] or [1, tokens].
#define CHECK_PER_TOKEN(m)                                    \
  SWITCHYARD_CHECK(((m).rows == tokens && (m).cols == 1) ||   \
                       ((m).rows == 1 && (m).cols == tokens), \
                   "RouteTopK: " #m ": is not [tokens, 1] or [1, tokens]")

namespace switchyard {
namespace {

using internal::Given;
using internal::IsUpTo;
using internal::Role;

// By the bits: comparing a NaN would trap where the caller has unmasked
// floating-point exceptions.
uint32_t Bits(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  return bits;
}
constexpr uint32_t kOne = 0x3F800000;
bool IsFinite(float f) { return (~Bits(f) & 0x7F800000) != 0; }
bool IsZero(float f) { return (Bits(f) & 0x7FFFFFFF) == 0; }

// Every member of RouteOptions, or IsPlain() does not compile. ANY(option):
// plain softmax takes any value, or looks at it itself (clamp);
// DEFAULT(option): any other value is for RouteRecipe() to look at, and to
// refuse.
#define SWITCHYARD_ROUTE_OPTIONS(ANY, DEFAULT)                             \
  ANY(renormalize), ANY(clamp), DEFAULT(score), DEFAULT(divisor),          \
      DEFAULT(eps), DEFAULT(zero_sum_is_zero), DEFAULT(weight_of),         \
      DEFAULT(bias_place), DEFAULT(bias_in_weight),                        \
      DEFAULT(select_on_rounded_score), DEFAULT(routed_scaling_factor),    \
      DEFAULT(logit_scale), DEFAULT(logit_softcap), DEFAULT(logit_clip),   \
      DEFAULT(num_expert_group), DEFAULT(topk_group), ANY(group_score_of), \
      ANY(dropped_key_is_zero), DEFAULT(num_zero_experts),                 \
      DEFAULT(num_shared_experts), DEFAULT(shared_weight),                 \
      DEFAULT(shared_logits), DEFAULT(round_to), DEFAULT(jitter_eps),      \
      DEFAULT(needs_correction_bias), DEFAULT(needs_expert_scale),         \
      DEFAULT(needs_groups), DEFAULT(needs_config)

// Not 0 if the two differ.
template <class T>
uint64_t Difference(T a, T b) {
  return static_cast<uint64_t>(a) ^ static_cast<uint64_t>(b);
}
uint64_t Difference(float a, float b) { return Bits(a) ^ Bits(b); }
template <class... T>
uint64_t AnyOf(T... t) {
  return (t | ...);
}

// Softmax as it is by default, but for `renormalize` and `clamp`: no recipe.
// Branches would take longer than to look at everything.
bool IsPlain(const RouteInputs& in, const RouteOutputs& out,
             const RouteOptions& options) {
  const auto given = [](const ConstAnyMatrix& m) -> uint64_t {
    return reinterpret_cast<uintptr_t>(m.data) | m.cols | m.rows >> 1;
  };
  const auto& [logits, correction_bias, bias_index, expert_scale, token_mask,
               given_ids, expert_map] = in;
  const auto& [topk_ids, topk_weights, identity_weights, report] = out;
  const uint64_t views =
      given(correction_bias) | given(bias_index) | given(expert_scale) |
      given(token_mask) | given(given_ids) | given(expert_map) |
      given(identity_weights) | reinterpret_cast<uintptr_t>(report);
  constexpr RouteOptions kDefaults;
#define SWITCHYARD_NAME(option) option
#define SWITCHYARD_ANY(option) \
  uint64_t { 0 }
#define SWITCHYARD_DEFAULT(option) Difference(option, kDefaults.option)
  const auto& [SWITCHYARD_ROUTE_OPTIONS(SWITCHYARD_NAME, SWITCHYARD_NAME)] =
      options;
  const uint64_t others =
      AnyOf(SWITCHYARD_ROUTE_OPTIONS(SWITCHYARD_ANY, SWITCHYARD_DEFAULT));
#undef SWITCHYARD_NAME
#undef SWITCHYARD_ANY
#undef SWITCHYARD_DEFAULT
  return (views | others) == 0;
}

// ps a row, fitted to one AVX2 core: within 2x for E = 8 to 1024, k to 32.
size_t PlainRowPs(const RouteOptions& options, size_t experts, size_t top_k) {
  const internal::DefaultFpEnv fp_env;  // the caller's may trap
  const auto mode = simd::SoftmaxMode(options.renormalize, options.clamp);
  const size_t sum_all =
      simd::NeedsAll(mode, experts, top_k) ? 450 * experts : 0;
  if (top_k <= 32) {
    return 20000 + 300 * experts + 250 * top_k * top_k + sum_all;
  }
  return (300000 + 3000 * experts) / 32 * top_k + sum_all;
}

// Logits and outputs that do not fit each other; if they do, `otherwise`.
[[gnu::cold, gnu::noinline]] const char* ShapeError(const RouteInputs& inputs,
                                                    const RouteOutputs& outputs,
                                                    const char* otherwise) {
  const auto& [logits, topk_ids, topk_weights] =
      std::tie(inputs.logits, outputs.topk_ids, outputs.topk_weights);
  const internal::Shaped arguments[] = {
      SWITCHYARD_SHAPED(RouteTopK, Role::kInput, logits, tokens, num_experts),
      SWITCHYARD_SHAPED(RouteTopK, Role::kOutput, topk_ids, tokens, top_k),
      SWITCHYARD_SHAPED(RouteTopK, Role::kOutput, topk_weights, tokens, top_k)};
  return internal::OddOneOut(arguments, otherwise);
}

// The views and what they have to do with each other.
Status CheckViews(const RouteInputs& inputs, const RouteOutputs& outputs,
                  const RouteOptions& options) {
  const auto& [logits, correction_bias, bias_index, expert_scale, token_mask,
               given_ids, expert_map] = inputs;
  const auto& [topk_ids, topk_weights, identity_weights, report] = outputs;
  const size_t tokens = logits.rows, shared = options.num_shared_experts,
               columns = options.shared_logits ? shared : 0;
  SWITCHYARD_CHECK_FLOATS(RouteTopK, logits);
  SWITCHYARD_CHECK_IDS(RouteTopK, topk_ids);
  SWITCHYARD_CHECK_FLOATS(RouteTopK, topk_weights);
  CHECK_OPTION(columns < logits.cols || columns == 0,
               "shared_logits: logits has no columns but theirs");
  const size_t num_experts = logits.cols - columns;
  SWITCHYARD_CHECK(
      num_experts <= INT32_MAX && shared <= INT32_MAX - num_experts,
      "RouteTopK: logits: more than 2^31 - 1 experts");
  SWITCHYARD_CHECK(topk_ids.cols > shared,
                   "RouteTopK: topk_ids: top_k (cols) is 0");
  const size_t top_k = topk_ids.cols - shared;
  SWITCHYARD_CHECK_FITS(topk_ids.rows == tokens,
                        "RouteTopK: topk_ids: is not [tokens, top_k]");
  SWITCHYARD_CHECK(top_k <= num_experts,
                   "RouteTopK: topk_ids: top_k (cols) exceeds the experts");
  SWITCHYARD_CHECK_FITS(
      topk_weights.rows == tokens && topk_weights.cols == topk_ids.cols,
      "RouteTopK: topk_weights: is not [tokens, top_k]");
  if (Given(correction_bias)) {
    SWITCHYARD_CHECK_FLOATS(RouteTopK, correction_bias);
    SWITCHYARD_CHECK(correction_bias.cols == num_experts &&
                         (correction_bias.rows == 1 || Given(bias_index)),
                     "RouteTopK: correction_bias: is not [1, num_experts], nor "
                     "[num_biases, num_experts] with bias_index");
    SWITCHYARD_CHECK(correction_bias.rows != 0,
                     "RouteTopK: correction_bias: has no rows");
  }
  if (Given(bias_index)) {
    SWITCHYARD_CHECK(
        internal::IsIdType(bias_index.type) || bias_index.type == Type::kU8,
        "RouteTopK: bias_index: has to be int32, uint32, int64 or uint8");
    SWITCHYARD_CHECK_VIEW(RouteTopK, bias_index);
    CHECK_PER_TOKEN(bias_index);
    SWITCHYARD_CHECK(Given(correction_bias),
                     "RouteTopK: bias_index: given without correction_bias");
  }
  if (Given(expert_scale)) {
    SWITCHYARD_CHECK_FLOATS(RouteTopK, expert_scale);
    SWITCHYARD_CHECK_SHAPE(RouteTopK, expert_scale, 1, num_experts);
  }
  if (Given(token_mask)) {
    SWITCHYARD_CHECK_TYPED(RouteTopK, token_mask, Type::kU8, "uint8");
    CHECK_PER_TOKEN(token_mask);
  }
  if (Given(given_ids)) {
    SWITCHYARD_CHECK_IDS(RouteTopK, given_ids);
    SWITCHYARD_CHECK_SHAPE(RouteTopK, given_ids, tokens, top_k);
  }
  if (Given(expert_map)) {
    SWITCHYARD_CHECK_TYPED(RouteTopK, expert_map, Type::kI32, "int32");
    SWITCHYARD_CHECK_SHAPE(RouteTopK, expert_map, 1, num_experts);
  }
  if (Given(identity_weights)) {
    SWITCHYARD_CHECK_FLOATS(RouteTopK, identity_weights);
    CHECK_PER_TOKEN(identity_weights);
    SWITCHYARD_CHECK(
        options.num_zero_experts != 0,
        "RouteTopK: identity_weights: given without num_zero_experts");
  }
  const AnyMatrix selected = topk_ids.ColRange(0, top_k);
  SWITCHYARD_CHECK(internal::SameView(selected, given_ids) ||
                       !internal::MayOverlap(topk_ids, given_ids),
                   "RouteTopK: topk_ids: overlaps given_ids without being the "
                   "same view");
  SWITCHYARD_CHECK_APART(RouteTopK, topk_ids, logits, correction_bias,
                         bias_index, expert_scale, token_mask, expert_map);
  SWITCHYARD_CHECK_APART(RouteTopK, topk_weights, logits, topk_ids,
                         correction_bias, bias_index, expert_scale, token_mask,
                         given_ids, expert_map);
  SWITCHYARD_CHECK_APART(RouteTopK, identity_weights, logits, topk_ids,
                         topk_weights, correction_bias, bias_index,
                         expert_scale, token_mask, given_ids, expert_map);
  return Status();
}

// Options by themselves.
Status CheckNumbers(const RouteOptions& options) {
  CHECK_OPTION(IsUpTo(1.0f, options.clamp), "clamp is not in [0, 1]");
  SWITCHYARD_CHECK_LISTED(RouteTopK, score, Score, SWITCHYARD_SCORES);
  SWITCHYARD_CHECK_LISTED(RouteTopK, divisor, Divisor, SWITCHYARD_DIVISORS);
  SWITCHYARD_CHECK_LISTED(RouteTopK, weight_of, WeightOf,
                          SWITCHYARD_WEIGHTS_OF);
  SWITCHYARD_CHECK_LISTED(RouteTopK, bias_place, BiasPlace,
                          SWITCHYARD_BIAS_PLACES);
  CHECK_OPTION(IsUpTo(FLT_MAX, options.eps),
               "eps is negative or not a finite number");
  CHECK_OPTION(IsZero(options.eps) || simd::TakesEps(options.divisor),
               "eps: the divisor has none");
  CHECK_OPTION(IsFinite(options.logit_scale) && !IsZero(options.logit_scale),
               "logit_scale is 0 or not a finite number");
  CHECK_OPTION(IsUpTo(FLT_MAX, options.logit_softcap),
               "logit_softcap is negative or not a finite number");
  CHECK_OPTION(IsUpTo(FLT_MAX, options.logit_clip),
               "logit_clip is negative or not a finite number");
  CHECK_OPTION(IsFinite(options.routed_scaling_factor),
               "routed_scaling_factor is not a finite number");
  CHECK_OPTION(IsFinite(options.shared_weight),
               "shared_weight is not a finite number");
  CHECK_OPTION(internal::IsFloat(options.round_to),
               "round_to is not f32, bf16 or f16");
  CHECK_OPTION(IsUpTo(FLT_MAX, options.jitter_eps),
               "jitter_eps is negative or not a finite number");
  return Status();
}

// What goes together.
Status CheckRecipe(const RouteInputs& inputs, const RouteOutputs& outputs,
                   const RouteOptions& options) {
  const size_t shared = options.num_shared_experts,
               num_experts =
                   inputs.logits.cols - (options.shared_logits ? shared : 0),
               groups = options.num_expert_group;
  const bool bias = Given(inputs.correction_bias),
             given = Given(inputs.given_ids),
             on_score = simd::IsOnScore(options.bias_place);
  CHECK_OPTION(!options.needs_config,
               "needs_config: a preset before ApplyConfig has put config.json "
               "in the place of its defaults");
  SWITCHYARD_CHECK(!options.needs_correction_bias || bias ||
                       (given && !options.bias_in_weight),
                   "RouteTopK: correction_bias: is missing, and the options "
                   "need one");
  SWITCHYARD_CHECK(
      !options.needs_expert_scale || Given(inputs.expert_scale),
      "RouteTopK: expert_scale: is missing, and the options need one");
  CHECK_OPTION(!options.needs_groups || groups != 0,
               "num_expert_group is 0, and the options need groups (1: none)");
  if (groups <= 1) {
    CHECK_OPTION(options.topk_group <= 1,
                 "topk_group exceeds num_expert_group");
  } else {
    CHECK_OPTION(groups <= num_experts && num_experts % groups == 0,
                 "num_expert_group does not divide the experts");
    CHECK_OPTION(options.topk_group != 0, "topk_group is 0");
    CHECK_OPTION(options.topk_group <= groups,
                 "topk_group exceeds num_expert_group");
    CHECK_OPTION(options.group_score_of != 0, "group_score_of is 0");
    CHECK_OPTION(options.group_score_of <= num_experts / groups,
                 "group_score_of exceeds the experts of a group");
  }
  CHECK_OPTION(
      options.num_zero_experts == 0 || options.num_zero_experts < num_experts,
      "num_zero_experts leaves no other expert");
  CHECK_OPTION(!options.shared_logits || shared != 0,
               "shared_logits without num_shared_experts");
  CHECK_OPTION(Bits(options.shared_weight) == kOne ||
                   (shared != 0 && !options.shared_logits),
               "shared_weight without shared experts whose weight it is");
  CHECK_OPTION(!(bias && options.bias_in_weight && on_score) ||
                   options.weight_of == WeightOf::kScore,
               "bias_in_weight: the score that has the bias is not the weight");
  CHECK_OPTION(!options.select_on_rounded_score || !bias || on_score ||
                   options.bias_in_weight,
               "select_on_rounded_score: the bias is on the logit");
  if (given) {
    CHECK_OPTION(groups <= 1, "num_expert_group: with given_ids");
    CHECK_OPTION(!options.select_on_rounded_score,
                 "select_on_rounded_score: with given_ids");
    SWITCHYARD_CHECK(!Given(inputs.bias_index) || options.bias_in_weight,
                     "RouteTopK: bias_index: with given_ids, of which no "
                     "weight has a bias");
  }
  if (options.score == Score::kSparsemixer) {
    CHECK_OPTION(outputs.topk_ids.cols - shared == 2,
                 "score: kSparsemixer selects two");
    CHECK_OPTION(!options.renormalize,
                 "renormalize: kSparsemixer's weights are no shares");
    CHECK_OPTION(options.weight_of == WeightOf::kScore,
                 "weight_of: kSparsemixer has weights of its own");
    CHECK_OPTION(groups <= 1 && !options.select_on_rounded_score &&
                     !options.shared_logits && !bias && !given,
                 "score: kSparsemixer goes with no bias, groups, given_ids, "
                 "shared_logits or select_on_rounded_score");
  }
  return Status();
}

// ps a row of anything else: as above.
size_t RecipeRowPs(const simd::RouteArgs& args) {
  const internal::DefaultFpEnv fp_env;
  const simd::RoutePlan plan(args);
  RouteOptions plain;
  plain.clamp = 0.0f;
  size_t ps = 20000 + PlainRowPs(plain, plan.columns, plan.top_k);
  const size_t scores = !plan.selects_by_x +
                        (plan.is_share || plan.bounded_by_all) +
                        2 * plan.in_rounds;
  ps += plan.columns * (plan.maps_logits ? 1000 : 0) +
        plan.columns * 700 * scores;
  if (args.options.num_expert_group > 1) ps += 100 * plan.columns;
  return ps + 1500 * plan.slots;
}

[[gnu::noinline]] Status RouteRecipe(const RouteInputs& inputs,
                                     const RouteOutputs& outputs,
                                     const RouteOptions& options,
                                     Executor& executor) {
  Status status = CheckViews(inputs, outputs, options);
  if (status.ok()) status = CheckNumbers(options);
  if (status.ok()) status = CheckRecipe(inputs, outputs, options);
  if (!status.ok()) {
    if (status.code() != internal::kMisfit) return status;
    return Status(StatusCode::kInvalidArgument,
                  ShapeError(inputs, outputs, status.message()));
  }
  std::atomic<size_t> invalid_ids{0}, elsewhere{0};
  const simd::RouteArgs args = {inputs, outputs, options, &invalid_ids,
                                &elsewhere};
  const size_t tokens = inputs.logits.rows;
  const size_t row_ps = tokens <= 1 ? 0 : simd::ComputePs(RecipeRowPs(args));
  status = internal::RunRows(executor, tokens, row_ps, simd::RouteRows(), args);
  if (status.ok() && outputs.report != nullptr) {
    outputs.report->invalid_ids = invalid_ids.load(std::memory_order_relaxed);
    outputs.report->elsewhere = elsewhere.load(std::memory_order_relaxed);
  }
  return status;
}

}  // namespace

Status RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
                 const RouteOptions& options, Executor& executor) noexcept {
  SWITCHYARD_CHECK_ISA();
  if (!IsPlain(inputs, outputs, options)) {
    return RouteRecipe(inputs, outputs, options, executor);
  }
  const ConstAnyMatrix& logits = inputs.logits;
  const AnyMatrix &topk_ids = outputs.topk_ids,
                  &topk_weights = outputs.topk_weights;
  const size_t tokens = logits.rows, num_experts = logits.cols,
               top_k = topk_ids.cols;
  SWITCHYARD_CHECK_FLOATS(RouteTopK, logits);
  SWITCHYARD_CHECK_IDS(RouteTopK, topk_ids);
  SWITCHYARD_CHECK_FLOATS(RouteTopK, topk_weights);
  SWITCHYARD_CHECK(num_experts <= INT32_MAX,
                   "RouteTopK: logits: more than 2^31 - 1 experts");
  SWITCHYARD_CHECK(topk_ids.rows == tokens,
                   ShapeError(inputs, outputs,
                              "RouteTopK: topk_ids: is not [tokens, top_k]"));
  SWITCHYARD_CHECK(top_k >= 1, "RouteTopK: topk_ids: top_k (cols) is 0");
  SWITCHYARD_CHECK(top_k <= num_experts,
                   "RouteTopK: topk_ids: top_k (cols) exceeds the experts");
  SWITCHYARD_CHECK(
      topk_weights.rows == tokens && topk_weights.cols == top_k,
      ShapeError(inputs, outputs,
                 "RouteTopK: topk_weights: is not [tokens, top_k]"));
  CHECK_OPTION(IsUpTo(1.0f, options.clamp), "clamp is not in [0, 1]");
  SWITCHYARD_CHECK_APART(RouteTopK, topk_ids, logits);
  SWITCHYARD_CHECK_APART(RouteTopK, topk_weights, logits, topk_ids);

  const size_t row_ps =
      tokens <= 1 ? 0
                  : simd::ComputePs(PlainRowPs(options, num_experts, top_k));
  const auto mode = simd::SoftmaxMode(options.renormalize, options.clamp);
  return internal::RunRows(executor, tokens, row_ps, simd::SelectRows(),
                           {logits, topk_ids, topk_weights, mode});
}

}  // namespace switchyard
