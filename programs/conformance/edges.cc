// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "programs/conformance/draw.h"
#include "programs/conformance/options.h"

namespace switchyard::conformance {
namespace {

using Floats = std::vector<float>;
using Rows = std::vector<Floats>;
using Options = std::vector<OptionText>;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
// A denormal f32 that bf16 holds exactly.
constexpr float kTiny = 0x1p-133f;

Floats Flat(const Rows& rows) {
  Floats flat;
  for (const Floats& row : rows) {
    flat.insert(flat.end(), row.begin(), row.end());
  }
  return flat;
}

// Returns n values: `rest`, except at the indices in `others`.
Floats Row(size_t n, float rest,
           const std::vector<std::pair<size_t, float>>& others = {}) {
  Floats row(n, rest);
  for (const auto& [i, value] : others) row[i] = value;
  return row;
}

class EdgeList {
 public:
  // Adds a case with these logits, one row for each token.
  Case& Add(const char* name, const char* about, size_t top_k,
            const Options& options, const Rows& logits) {
    Case c;
    c.name = name;
    c.about = about;
    c.tokens = logits.size();
    c.num_experts = logits[0].size();
    c.top_k = top_k;
    c.options = options;
    c.logits = Flat(logits);
    const RouteOptions o = c.Options();
    if (o.shared_logits) c.num_experts -= o.num_shared_experts;
    cases_.push_back(std::move(c));
    return cases_.back();
  }

  enum Needs { kLogits, kBias, kTwoBiases, kScale };
  // Adds a case with drawn logits and the other inputs that `needs` names.
  Case& Draws(const char* name, const char* about, size_t experts, size_t top_k,
              const Options& options, Needs needs = kLogits,
              size_t tokens = 4) {
    Case c;
    c.name = name;
    c.about = about;
    c.tokens = tokens;
    c.num_experts = experts;
    c.top_k = top_k;
    c.options = options;
    // Seeds start at 1000, because the cases of families use seeds from 0.
    Draw draw(1000 + cases_.size());
    if (needs == kBias) draw.Bias(&c);
    if (needs == kTwoBiases) {
      draw.Bias(&c, 2);
      for (size_t t = 0; t < tokens; ++t) {
        c.bias_index.push_back(t % 3 == 1 ? 0 : 1);
      }
    }
    if (needs == kScale) draw.ExpertScale(&c);
    draw.Logits(&c);
    cases_.push_back(std::move(c));
    return cases_.back();
  }

  std::vector<Case> Take() { return std::move(cases_); }

 private:
  std::vector<Case> cases_;
};

const Options kSum = {{"divisor", "sum"}};
const Options kSigmoidSum = {{"score", "sigmoid"}, {"divisor", "sum"}};

Options With(Options options, const Options& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}
Options Groups(const char* groups, const char* kept, const char* score_of) {
  Options options = {{"num_expert_group", groups}, {"topk_group", kept}};
  if (std::string(score_of) != "2") {
    options.emplace_back("group_score_of", score_of);
  }
  return options;
}

void AddTies(EdgeList* list) {
  const Rows rows = {Row(8, 0.5f),
                     {1, 2, 2, 0, 2, 2, 1, 0},
                     Row(8, 0, {{7, 1}}),
                     Row(8, 1, {{0, 3}, {7, 3}})};
  list->Add("ties", "equal logits: the smaller index comes first", 3, kSum,
            rows);
  list->Add("ties_with_bias", "equal keys: the smaller index comes first", 3,
            kSigmoidSum, rows)
      .correction_bias = {0, 0.25f, 0.25f, 0, 0.25f, 0.25f, 0, 0};
  const Floats four = {1, 0, -1, -2};
  const auto repeat = [&four](float second) {
    Floats row;
    for (int g = 0; g < 4; ++g) row.insert(row.end(), four.begin(), four.end());
    row[4] = second;
    return row;
  };
  list->Add("ties_of_groups",
            "groups with equal scores: the smaller index is kept", 4,
            With(kSigmoidSum, Groups("4", "2", "2")),
            {repeat(1), repeat(2), repeat(-3)})
      .correction_bias = Floats(16, 0.125f);
  list->Add("ties_of_clipped_logits", "logits that a clip makes equal", 3,
            With(kSum, {{"logit_clip", "3"}}),
            {{1, 4, 3, 5, 2, 0, 9, -9}, {-5, -4, -9, -3, -8, -7, -6, -10}});
  list->Add("signed_zeros",
            "-0 and +0 are equal: the smaller index comes first", 3, kSum,
            {{-0.0f, 0, -0.0f, 0, -1, -1, -1, -1},
             {-1, 0, -0.0f, 0, -0.0f, -1, -1, -1},
             {-1, -0.0f, 0, -0.0f, 0, -1, -1, 1}});

  // Expert e + 128 has a logit 2^-16 above the logit of expert e.
  Rows near;
  for (size_t t = 0; t < 4; ++t) {
    Floats row(256);
    for (size_t e = 0; e < 128; ++e) {
      row[e] = -0.0625f * static_cast<float>((e * (2 * t + 37) + t) % 128);
      row[e + 128] = row[e] + 0x1p-16f;
    }
    near.push_back(row);
  }
  list->Add("near_ties_sglang_31768",
            "logits 2^-16 apart are not equal; subtracting 3e-7 times the "
            "index, to break ties, would swap them",
            7, kSum, near);
  Rows exact;
  for (size_t t = 0; t < 3; ++t) {
    Floats row;
    for (size_t e = 0; e < 16; ++e) {
      row.push_back(2.0f + static_cast<float>((e * 7 + t) % 16) * 0x1p-18f);
    }
    exact.push_back(row);
  }
  list->Add("float32_logits",
            "logits 2^-18 apart, which bf16 and f16 round to one value", 5,
            kSum, exact);
}

void AddSpecialValues(EdgeList* list) {
  const Rows nans = {{1, kNaN, 3, 2, 0, 0, 0, 0},
                     Row(8, kNaN, {{7, 1}}),
                     Row(8, kNaN),
                     {kNaN, 5, 4, 3, kNaN, 2, 1, 0},
                     {0, 1, 2, 3, 4, 5, 6, 7}};
  list->Add("nan_logits",
            "NaN ranks below every number, and makes the token's weights NaN",
            3, kSum, nans);
  list->Add("nan_logits_with_bias", "NaN logits with sigmoid and a bias", 3,
            kSigmoidSum, nans)
      .correction_bias = Row(8, 0, {{4, 0.25f}, {6, 1}});
  list->Add("nan_and_minus_infinity", "-inf ranks above NaN", 3, kSum,
            {Row(8, -kInf, {{0, kNaN}}), Row(8, kNaN, {{5, -kInf}})});
  list->Add("nan_in_groups", "a group's score is NaN if it adds a NaN", 4,
            With(kSigmoidSum, Groups("4", "2", "2")),
            {{4, kNaN, kNaN, kNaN, 1, 0, -1, -2, 0, -1, -2, -3, -1, -2, -3, -4},
             {4, 3, kNaN, kNaN, 1, 0, -1, -2, 0, -1, -2, -3, -1, -2, -3, -4}})
      .correction_bias = Floats(16, 0.125f);
  list->Add("nan_bias", "a NaN in the bias makes the key NaN, but no weight", 3,
            kSigmoidSum,
            {{0, 5, 1, 2, -1, -2, -3, -4}, {4, 0, 0.5f, 1, 0.25f, -1, -2, 5}})
      .correction_bias = Row(8, 0, {{1, kNaN}, {6, kNaN}});

  const Rows infinities = {Row(8, 0, {{1, kInf}, {2, 1}, {3, kInf}}),
                           Row(8, kInf), Row(8, -2, {{6, kInf}, {0, 3}})};
  list->Add("plus_infinity", "+inf logits share the probability equally", 3,
            kSum, infinities);
  list->Add("plus_infinity_not_renormalized",
            "+inf logits share with all experts, also with others", 3,
            {{"renormalize", "0"}}, infinities);
  list->Add("plus_infinity_sigmoid", "the sigmoid of +inf is 1", 3, kSigmoidSum,
            infinities);
  list->Add("plus_infinity_of_selected", "softmax over the selected with +inf",
            3, {{"score", "raw"}, {"weight_of", "softmax_of_selected"}},
            infinities);

  const Rows minus = {Row(8, -kInf, {{1, 1}, {3, 2}}), Row(8, -kInf, {{7, 0}}),
                      Row(8, 1, {{0, -kInf}, {1, -kInf}})};
  list->Add("minus_infinity",
            "-inf logits get the weight 0, and are selected by index", 4, kSum,
            minus);
  list->Add("minus_infinity_sigmoid", "the sigmoid of -inf is 0", 4,
            kSigmoidSum, minus);
  const Rows empty = {Row(8, -kInf), {3, 1, 0, 2, -1, -2, -3, -4}};
  list->Add("all_minus_infinity", "a row of -inf gets weights of 0", 3, kSum,
            empty);
  list->Add("all_minus_infinity_of_selected",
            "a row of -inf, with a softmax over the selected", 3,
            {{"score", "raw"}, {"weight_of", "softmax_of_selected"}}, empty);
  const Floats bias = {0, 0.125f, 0, 0.25f, 0, 0, 0.0625f, 0};
  list->Add("all_minus_infinity_sigmoid_bias",
            "a row of -inf, where the bias selects", 3, kSigmoidSum, empty)
      .correction_bias = bias;
  list->Add("all_minus_infinity_softmax_bias",
            "a row of -inf, where the bias selects", 3, kSum, empty)
      .correction_bias = bias;

  list->Add("denormal_logits", "denormal logits are not equal to 0", 4, kSum,
            {{0, kTiny, -kTiny, 2 * kTiny, 0, -kTiny, kTiny, 3 * kTiny},
             {-kTiny, -2 * kTiny, -4 * kTiny, -3 * kTiny, -1, -1, -1, -1}});
  list->Add(
      "far_logits",
      "selection by logits, where exp() of the rest is 0: {0, -105, -110}", 4,
      kSum,
      {{-200, 0, -150, -300, -120, -110, -105, -400},
       {88, -88, 300, -300, 0, 100, 200, 1}});
  list->Add("huge_logits", "logits near the largest float", 3, kSum,
            {Row(8, -0x1p127f, {{2, 0x1p127f}, {5, 0x1.8p127f}, {6, 0}}),
             Row(8, -0x1.8p127f, {{3, -0x1p127f}})});

  const Rows saturated = {{20, 30, 40, 18, 60, 25, 35, 19},
                          {18, 19, 20, 21, 22, 23, 24, 25}};
  list->Add("saturated_sigmoid",
            "sigmoids that are all 1 in f32: without a bias, logits select", 3,
            kSigmoidSum, saturated);
  list->Add("saturated_sigmoid_rounded",
            "sigmoids that are all 1 in f32: rounded scores select, by index",
            3, With(kSigmoidSum, {{"select_on_rounded_score", "1"}}),
            saturated);
  list->Add("saturated_sigmoid_with_bias",
            "sigmoids that are all 1 in f32: with a bias, scores select", 3,
            kSigmoidSum, saturated)
      .correction_bias = Row(8, 0.5f, {{3, 0.75f}, {6, 0.75f}, {0, 0.25f}});
}

void AddSizes(EdgeList* list) {
  list->Draws("experts_1_top_1", "one expert", 1, 1, kSum);
  list->Draws("experts_7_top_7", "top_k is num_experts", 7, 7, kSum);
  list->Draws("experts_33_top_33", "top_k is num_experts, with a bias", 33, 33,
              kSigmoidSum, EdgeList::kBias, 2);
  list->Draws("experts_60_top_7", "60 experts, which fill no power of two", 60,
              7, kSum);
  list->Add("experts_60_far",
            "60 experts; the best are the last ones, which a reduction over a "
            "power of two may drop",
            3, kSum,
            {Row(60, -10, {{57, 100}, {58, 99}, {59, 98}}),
             Row(60, -10, {{32, 3}, {33, 2}, {59, 95}})});
  list->Draws(
      "experts_144_vllm_51521",
      "144 experts, as in checkpoints that REAP pruned; a fixed list of "
      "sizes would refuse it",
      144, 8, kSigmoidSum, EdgeList::kBias);
  list->Draws("experts_896_top_16", "896 experts and a top_k of 16", 896, 16,
              kSum, EdgeList::kLogits, 2);
  list->Draws("experts_257_top_40", "a top_k above 32", 257, 40, kSum,
              EdgeList::kLogits, 2);
  list->Draws("experts_128_top_1", "a top_k of 1 gets the weight 1", 128, 1,
              kSum);
}

void AddGroups(EdgeList* list) {
  const Options sigmoid = {{"score", "sigmoid"},
                           {"divisor", "sum_plus_eps"},
                           {"eps", "1e-20"},
                           {"routed_scaling_factor", "2.5"}};
  list->Draws("groups_ik_llama_836",
              "8 groups of 32, of which 4 are kept by the sum of their 2 "
              "largest keys, as Ling-mini-2.0",
              256, 8, With(sigmoid, Groups("8", "4", "2")), EdgeList::kBias);
  list->Draws(
      "groups_by_maximum",
      "a group's score is its largest key, and dropped keys become 0, as "
      "DeepSeek-V2",
      160, 6,
      With({{"renormalize", "0"}, {"routed_scaling_factor", "16"}},
           With(Groups("8", "3", "1"), {{"dropped_key_is_zero", "1"}})));
  list->Draws("groups_by_sum_of_3", "a group's score is the sum of 3 keys", 48,
              5, With(sigmoid, Groups("6", "2", "3")), EdgeList::kBias);
  list->Draws("groups_of_1_expert", "each group is one expert", 16, 3,
              With(kSum, Groups("16", "5", "1")));
  list->Draws("groups_all_kept", "all groups are kept", 32, 4,
              With(sigmoid, Groups("4", "4", "2")), EdgeList::kBias);

  // All keys are negative, because the scores are below the bias.
  const Rows negative = {
      {3, 2, 1, 0, -1, -2, -3, -4, 2.5f, 1.5f, -5, -6, -7, -8, -9, -10},
      {-1, -2, -3, -4, 4, 2, 0, -5, -6, -7, -8, -9, 1, 0.5f, -10, 3}};
  Floats bias = Row(16, -1.5f, {{9, -1.75f}, {15, -1.25f}});
  list->Add(
          "groups_negative_keys",
          "keys below 0: an expert of a dropped group has the key -inf, not 0",
          4, With(sigmoid, Groups("4", "2", "2")), negative)
      .correction_bias = bias;
  list->Add("groups_negative_keys_zero",
            "keys below 0: with dropped_key_is_zero, experts of dropped groups "
            "come first",
            4,
            With(sigmoid,
                 With(Groups("4", "2", "2"), {{"dropped_key_is_zero", "1"}})),
            negative)
      .correction_bias = bias;
  list->Add("groups_fewer_than_top_k",
            "kept groups have 4 experts and top_k is 6: the rest by index", 6,
            With(sigmoid, Groups("4", "1", "2")), negative)
      .correction_bias = bias;
}

void AddBiases(EdgeList* list) {
  const Floats logits = {0,    1,    2,    3,     -1,    -2, -3, -4,
                         0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 4,  -5, 5};
  const Rows rows = {logits, Floats(logits.rbegin(), logits.rend())};
  Case& few = list->Add(
      "bias_minus_infinity_vllm_omni_7175",
      "a bias of -inf for all but 2 experts, in 2 heads: 4 different experts "
      "are selected, the others by index",
      4, kSigmoidSum, {rows[0], rows[0], rows[1], rows[1]});
  few.correction_bias = Flat({Row(16, -kInf, {{6, 0}, {13, 0.25f}}),
                              Row(16, -kInf, {{0, 0.5f}, {15, 0}})});
  few.bias_index = {0, 1, 0, 1};
  list->Add("bias_minus_infinity_all", "a bias of -inf for every expert", 3,
            kSigmoidSum, rows)
      .correction_bias = Row(16, -kInf);
  list->Add("bias_minus_infinity_groups",
            "a bias of -inf leaves 3 experts in the kept groups", 5,
            With(kSigmoidSum, Groups("4", "2", "2")), rows)
      .correction_bias =
      Row(16, -kInf, {{1, 0}, {2, 0}, {3, 0.25f}, {9, 0}, {12, 0}});
  list->Add("bias_plus_infinity", "a bias of +inf selects, and gives no weight",
            3, kSigmoidSum, rows)
      .correction_bias = Row(16, 0, {{12, kInf}, {4, kInf}});
  list->Draws("bias_per_token",
              "each token names its row of the bias, as DeepSeek-V4.1", 32, 4,
              With({{"score", "sqrt_softplus"}}, kSum), EdgeList::kTwoBiases,
              5);
  list->Draws("bias_not_in_weight",
              "the bias selects, and the weight is the score without it", 32, 4,
              {{"score", "sigmoid"}, {"renormalize", "0"}}, EdgeList::kBias);
  list->Draws("bias_in_weight", "the bias is in the weight, too", 32, 4,
              With(kSigmoidSum, {{"bias_in_weight", "1"}}), EdgeList::kBias);
  list->Draws("bias_on_logit",
              "the bias is added to the logit, for the selection only", 32, 4,
              With({{"score", "raw"}, {"weight_of", "sigmoid_of_selected"}},
                   With(kSum, {{"bias_place", "logit"}})),
              EdgeList::kBias);
  list->Draws("bias_on_logit_in_weight",
              "the bias is added to the logit, for selection and weight", 32, 4,
              With(kSum, {{"bias_place", "logit"}, {"bias_in_weight", "1"}}),
              EdgeList::kBias);
  list->Draws("bias_with_softmax",
              "the bias is added to the softmax over all experts", 64, 6,
              {{"renormalize", "0"}}, EdgeList::kBias);
}

void AddWeights(EdgeList* list) {
  list->Draws("sigmoid_llama_cpp_18980",
              "sigmoid, where a softmax would select others, as GLM-4.7-Flash",
              64, 4,
              {{"score", "sigmoid"},
               {"divisor", "sum_plus_eps"},
               {"eps", "1e-20"},
               {"routed_scaling_factor", "1.8"}},
              EdgeList::kBias);
  list->Draws("softmax_before_selection",
              "softmax over all experts, not over the selected", 32, 4,
              {{"renormalize", "0"}});
  list->Draws("softmax_of_selected", "softmax over the selected experts", 32, 4,
              {{"score", "raw"},
               {"weight_of", "softmax_of_selected"},
               {"routed_scaling_factor", "0.5"}});
  list->Draws("sigmoid_of_selected",
              "sigmoid of the selected logits, as Llama 4", 16, 1,
              {{"score", "raw"},
               {"weight_of", "sigmoid_of_selected"},
               {"renormalize", "0"}});
  list->Draws("sqrt_softplus", "sqrt(log(1 + exp(x))), as DeepSeek-V4", 48, 6,
              {{"score", "sqrt_softplus"},
               {"divisor", "sum_plus_eps"},
               {"eps", "1e-20"},
               {"routed_scaling_factor", "1.5"}});
  list->Draws("raw_scores", "weights are the logits, not divided", 16, 4,
              {{"score", "raw"}, {"renormalize", "0"}});
  list->Draws(
      "divisor_sum_plus_eps", "an eps that changes the weights", 16, 3,
      {{"score", "sigmoid"}, {"divisor", "sum_plus_eps"}, {"eps", "0.5"}});
  list->Add("divisor_max_of_sum_and_eps", "an eps above and below the sum", 3,
            {{"score", "sigmoid"},
             {"divisor", "max_of_sum_and_eps"},
             {"eps", "0.75"}},
            {{-2, -3, -4, -5, -6, -7, -8, -9}, {2, 3, 4, -5, -6, -7, -8, -9}});
  list->Add("divisor_clamp",
            "the sum of the selected is below half of the sum over all", 2,
            {{"score", "sigmoid"}, {"clamp", "0.5"}},
            {{0.5f, 0.25f, 0, -0.25f, -0.5f, -0.75f, -1, -1.25f},
             {3, 2, -4, -5, -6, -7, -8, -9}});

  const Rows small = {Row(8, -100, {{3, -99}, {6, -98}}),
                      {3, 2, 1, 0, -1, -2, -3, -4}};
  list->Add("sum_of_zero", "scores that are all 0 in f32 are divided by 0: NaN",
            3, kSigmoidSum, small);
  list->Add("sum_of_zero_is_zero", "zero_sum_is_zero makes these weights 0", 3,
            With(kSigmoidSum, {{"zero_sum_is_zero", "1"}}), small);
  list->Add(
      "sum_of_zero_plus_eps", "an eps of 1e-20 makes these weights 0", 3,
      {{"score", "sigmoid"}, {"divisor", "sum_plus_eps"}, {"eps", "1e-20"}},
      small);
  list->Add("sum_of_zero_raw", "raw scores with a sum of 0: infinite weights",
            2, With({{"score", "raw"}}, kSum),
            {{1, -1, -1, -2}, {-2, 0, 0, -3}, {2, 1, -1, -2}});

  list->Draws("scale", "weights are multiplied after the division", 32, 4,
              With(kSum, {{"routed_scaling_factor", "2.5"}}));
  list->Draws("scale_without_division", "a factor without renormalisation", 32,
              4, {{"renormalize", "0"}, {"routed_scaling_factor", "16"}});
  list->Draws("expert_scale",
              "each weight is multiplied by its expert's factor", 32, 4, kSum,
              EdgeList::kScale);
  list->Draws("logit_scale", "logits are multiplied by a negative factor", 32,
              4, With(kSum, {{"logit_scale", "-0.5"}}));
  list->Draws("logit_softcap", "softcap * tanh(logit / softcap)", 32, 4,
              With(kSum, {{"logit_softcap", "4"}}));
  list->Draws(
          "round_to_bf16",
          "score, quotient and scaled weight are each rounded to bf16", 16, 4,
          With(kSum, {{"routed_scaling_factor", "2.5"}, {"round_to", "bf16"}}))
      .tolerance = 0x1p-6;
  list->Draws(
          "round_to_f16",
          "score, quotient and scaled weight are each rounded to f16", 16, 4,
          With(kSum, {{"routed_scaling_factor", "2.5"}, {"round_to", "f16"}}))
      .tolerance = 0x1p-9;
}

void AddOtherExperts(EdgeList* list) {
  list->Draws("zero_experts",
              "the last 4 experts compute nothing: their slots get id -1, and "
              "identity_weights their weights",
              12, 4,
              {{"renormalize", "0"},
               {"routed_scaling_factor", "6"},
               {"num_zero_experts", "4"}},
              EdgeList::kBias, 6);
  list->Add("zero_experts_only", "only zero experts are selected", 2,
            With(kSum, {{"num_zero_experts", "2"}}),
            {{0, 1, 2, 3, 5, 6}, {6, 1, 2, 3, 5, 4}});
  list->Draws(
      "shared_experts", "2 shared experts fill the last slots", 16, 3,
      With(kSum, {{"num_shared_experts", "2"}, {"shared_weight", "0.5"}}));
  list->Draws("shared_logits",
              "2 shared experts have logits, and are divided with the selected",
              16, 3,
              With(kSigmoidSum, {{"routed_scaling_factor", "8"},
                                 {"num_shared_experts", "2"},
                                 {"shared_logits", "1"}}),
              EdgeList::kBias);
  list->Draws("token_mask", "padding tokens get ids of -1 and weights of 0", 16,
              3, kSum)
      .token_mask = {1, 0, 1, 0};
  list->Draws("token_mask_with_shared_experts",
              "shared experts of padding tokens, too", 16, 3,
              With(kSum, {{"num_shared_experts", "1"}}))
      .token_mask = {0, 1, 1, 0};
  list->Add("token_mask_of_nan", "a padding token may have any logits", 3, kSum,
            {Row(8, kNaN), Row(8, kInf), Row(8, 0, {{5, 1}})})
      .token_mask = {0, 0, 1};
  list->Draws(
      "sparsemixer", "Phi-3.5-MoE's two rounds, with a wide jitter", 16, 2,
      {{"score", "sparsemixer"}, {"renormalize", "0"}, {"jitter_eps", "0.25"}},
      EdgeList::kLogits, 6);
}

}  // namespace

std::vector<Case> Edges() {
  EdgeList list;
  AddTies(&list);
  AddSpecialValues(&list);
  AddSizes(&list);
  AddGroups(&list);
  AddBiases(&list);
  AddWeights(&list);
  AddOtherExperts(&list);
  return list.Take();
}

}  // namespace switchyard::conformance
