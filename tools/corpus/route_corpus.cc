// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <limits>
#include <utility>

#include "switchyard/route.h"
#include "testing/route_scores.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {
namespace {

// 13 tokens reach the code for a vector of rows on every ISA with vectors:
// with 16 lanes, it needs 12 rows. With 4 or 8 lanes there is a remainder.
constexpr size_t kTokens = 13;
constexpr size_t kExperts[] = {1,   2,   3,   5,   8,   16,  17,  31,
                               32,  33,  40,  60,  64,  72,  128, 160,
                               255, 256, 288, 384, 512, 513, 896};
constexpr size_t kTopK[] = {1,  2,  3,  4,  6,  8,  9,  10,
                            16, 22, 31, 32, 33, 40, 64, 65};

using Logit = float (*)(size_t i);

float Random(size_t i) { return Uniform(1, i, 8.0f); }
// Returns logits that are far apart, so that most exponentials underflow.
float Spread(size_t i) { return Uniform(2, i, 256.0f); }
float Ties(size_t i) { return static_cast<float>(Hash(3, i) % 3) - 1.0f; }
// Returns zeros of both signs, and neighbours of 1.
float Close(size_t i) {
  constexpr float kValues[] = {0.0f, -0.0f, 1.0f, 0x1.000002p0f,
                               0x1.fffffep-1f};
  return kValues[Hash(4, i) % 5];
}
float Denormal(size_t i) { return Uniform(5, i, 0x1p-126f); }
float Infinite(size_t i) {
  const uint32_t kind = Hash(6, i) % 8;
  const float infinity = std::numeric_limits<float>::infinity();
  return kind == 0 ? infinity : kind < 4 ? -infinity : Uniform(6, i, 4.0f);
}
float MinusInfinity(size_t) { return -std::numeric_limits<float>::infinity(); }
// Returns any bits, such as NaNs, infinities and denormals.
float Any(size_t i) { return AnyFloat(7, i); }

struct Types {
  const char* name;
  Type logits, weights;
};
constexpr Types kF32 = {"", Type::kF32, Type::kF32};

void Run(Executor& executor, Digests& digests, const Types& types, Logit logit,
         const RouteOptions& options, size_t experts, size_t top_k) {
  TypedRows logits(types.logits, kTokens, experts, 3, logit);
  Rows<int32_t> ids(kTokens, top_k, 1);
  TypedRows weights(types.weights, kTokens, top_k, 2);
  digests.Check(RouteTopK({logits.view()}, {ids.view(), weights.view()},
                          options, executor));
  digests.exact.Add(ids.view());
  AddFloats(digests.floats, weights.view());
}

// Options, and the inputs that these options need.
struct Recipe {
  const char* name;
  RouteOptions options;
  bool bias, scale, given;
  size_t top_k;  // 0: several values
};

// Where all ISAs with FMA have the same keys, they have the same ids.
void RunRecipe(Executor& executor, Digests& digests, const Types& types,
               Logit logit, const Recipe& recipe, size_t experts,
               size_t top_k) {
  const size_t shared = recipe.options.num_shared_experts,
               columns = experts + (recipe.options.shared_logits ? shared : 0);
  TypedRows logits(types.logits, kTokens, columns, 3, logit);
  TypedRows bias(Type::kF32, 1, experts, 0,
                 [](size_t i) { return Uniform(8, i, 0.0625f); });
  TypedRows scale(Type::kF32, 1, experts, 0,
                  [](size_t i) { return Uniform(9, i, 2.0f); });
  Rows<int32_t> given(kTokens, top_k, 0);
  for (size_t t = 0; t < kTokens; ++t) {
    for (size_t i = 0; i < top_k; ++i) {
      given.view().Row(t)[i] =
          static_cast<int32_t>(Hash(10, t * top_k + i) % experts);
    }
  }
  Rows<int32_t> ids(kTokens, top_k + shared, 1);
  TypedRows weights(types.weights, kTokens, top_k + shared, 2);
  TypedRows identity(types.weights, kTokens, 1, 0);
  RouteInputs in = {logits.view()};
  if (recipe.bias) in.correction_bias = bias.view();
  if (recipe.scale) in.expert_scale = scale.view();
  if (recipe.given) in.given_ids = given.view();
  RouteOutputs out = {ids.view(), weights.view()};
  if (recipe.options.num_zero_experts != 0) {
    out.identity_weights = identity.view();
  }
  digests.Check(RouteTopK(in, out, recipe.options, executor));
  digests.floats.Add(ids.view());
  AddFloats(digests.floats, weights.view());
  AddFloats(digests.floats, identity.view());
}

std::vector<Recipe> Recipes() {
  std::vector<Recipe> recipes;
  const auto add = [&](const char* name, Score score, const auto& change,
                       bool bias = false, bool scale = false,
                       bool given = false, size_t top_k = 0) {
    RouteOptions options;
    options.score = score;
    options.divisor = Divisor::kSum;
    change(options);
    recipes.push_back({name, options, bias, scale, given, top_k});
  };
  using O = RouteOptions;
  const auto none = [](O&) {};
  add("sigmoid", Score::kSigmoid, none);
  add("sigmoid, bias", Score::kSigmoid, none, true);
  add("sqrt softplus, bias", Score::kSqrtSoftplus, none, true);
  add("softmax, bias", Score::kSoftmax, none, true);
  add(
      "softmax, bias on logits", Score::kSoftmax,
      [](O& o) { o.bias_place = BiasPlace::kLogit; }, true);
  add(
      "softmax, bias in logits", Score::kSoftmax,
      [](O& o) {
        o.bias_place = BiasPlace::kLogit;
        o.bias_in_weight = true;
      },
      true);
  add(
      "groups", Score::kSigmoid,
      [](O& o) {
        o.num_expert_group = 8;
        o.topk_group = 4;
        o.group_score_of = 1;
        o.divisor = Divisor::kSumPlusEps;
        o.eps = 1e-20f;
        o.routed_scaling_factor = 2.5f;
      },
      true);
  add("groups of two, 0", Score::kSoftmax, [](O& o) {
    o.num_expert_group = 4;
    o.topk_group = 1;
    o.dropped_key_is_zero = true;
    o.renormalize = false;
  });
  add("softmax of selected", Score::kRaw,
      [](O& o) { o.weight_of = WeightOf::kSoftmaxOfSelected; });
  add("sigmoid of selected", Score::kRaw, [](O& o) {
    o.weight_of = WeightOf::kSigmoidOfSelected;
    o.divisor = Divisor::kMaxOfSumAndEps;
    o.eps = 0.5f;
  });
  add("rounded", Score::kSigmoid, [](O& o) {
    o.round_to = Type::kBF16;
    o.select_on_rounded_score = true;
  });
  add("mapped", Score::kSoftmax, [](O& o) {
    o.logit_scale = 0.5f;
    o.logit_clip = 2.0f;
  });
  add("shared", Score::kSigmoid, [](O& o) { o.num_shared_experts = 1; });
  add(
      "shared logits", Score::kSigmoid,
      [](O& o) {
        o.num_shared_experts = 2;
        o.shared_logits = true;
      },
      true);
  add(
      "zero experts, scales", Score::kSoftmax,
      [](O& o) { o.num_zero_experts = 4; }, false, true);
  add("given", Score::kSqrtSoftplus, none, false, false, true);
  add(
      "sparsemixer", Score::kSparsemixer, [](O& o) { o.renormalize = false; },
      false, false, false, 2);
  // Adds a recipe for each score that no recipe above has.
  for (const Score score : testing_support::kScores) {
    const bool is_there =
        std::any_of(recipes.begin(), recipes.end(),
                    [&](const Recipe& r) { return r.options.score == score; });
    if (!is_there) add(testing_support::NameOf(score), score, none);
  }
  return recipes;
}

const Registration recipes("route", [](std::vector<Case>& cases) {
  const std::pair<const char*, Logit> logits[] = {
      {"random", Random}, {"ties", Ties}, {"infinite", Infinite}, {"any", Any}};
  constexpr Types kTypes[] = {kF32, {"bf16, ", Type::kBF16, Type::kBF16}};
  for (const Types& types : kTypes) {
    for (const Recipe& recipe : Recipes()) {
      for (const auto& [logit_name, logit] : logits) {
        if (types.logits != Type::kF32 && logit != Random) continue;
        cases.push_back(
            {std::string("route by ") + types.name + recipe.name + ", " +
                 logit_name,
             [types, recipe, logit = logit](Executor& executor,
                                            Digests& digests) {
               for (const size_t experts : {8u, 64u, 160u, 256u, 384u, 896u}) {
                 for (const size_t top_k : {1u, 2u, 6u, 8u, 33u}) {
                   if (top_k > experts) break;
                   if (recipe.top_k != 0 && recipe.top_k != top_k) continue;
                   RunRecipe(executor, digests, types, logit, recipe, experts,
                             top_k);
                 }
               }
             }});
      }
    }
  }
});

// Records the experts of two layers in one array, with a padding token, and
// replays both. Adds the results of the records and of the replays.
template <class Id>
void RunRecord(Executor& executor, Digests& digests, size_t experts,
               size_t top_k) {
  constexpr size_t kLayers = 2;
  TypedRows bias(Type::kF32, 1, experts, 0,
                 [](size_t i) { return Uniform(8, i, 0.0625f); });
  Rows<uint8_t> mask(kTokens, 1, 0, [](size_t i) { return i != 5; });
  Rows<Id> record(kTokens, kLayers * top_k, 1);
  Rows<int32_t> ids(kTokens, top_k + 1, 0);
  TypedRows weights(Type::kF32, kTokens, top_k + 1, 2),
      identity(Type::kF32, kTokens, 1, 0);
  for (const bool replay : {false, true}) {
    for (size_t layer = 0; layer < kLayers; ++layer) {
      TypedRows logits(Type::kF32, kTokens, experts, 3,
                       [=](size_t i) { return Random(i * kLayers + layer); });
      RouteInputs in = {logits.view()};
      in.token_mask = mask.view();
      RouteOutputs out = {ids.view(), weights.view(), identity.view()};
      RouteOptions options;
      options.score = Score::kSigmoid;
      options.num_zero_experts = 4;
      options.num_shared_experts = 1;
      const AnyMatrix layer_record =
          AnyMatrix(record.view()).ColRange(layer * top_k, (layer + 1) * top_k);
      if (replay) {
        in.given_ids = layer_record;
      } else {
        in.correction_bias = bias.view();
        options.num_expert_group = 4;
        options.topk_group = 2;
        out.record = layer_record;
      }
      digests.Check(RouteTopK(in, out, options, executor));
      digests.floats.Add(ids.view());
      AddFloats(digests.floats, weights.view());
      AddFloats(digests.floats, identity.view());
    }
    for (size_t t = 0; t < kTokens; ++t) {
      for (size_t i = 0; i < kLayers * top_k; ++i) {
        digests.floats.Add(static_cast<uint32_t>(record.view().Row(t)[i]));
      }
    }
  }
}

const Registration records("route", [](std::vector<Case>& cases) {
  const auto add = [&](auto id, const char* type, size_t most) {
    using Id = decltype(id);
    cases.push_back(
        {std::string("route record, ") + type,
         [most](Executor& executor, Digests& digests) {
           for (const size_t experts : {8u, 64u, 160u, 252u, 512u}) {
             if (experts > most) break;
             for (const size_t top_k : {1u, 2u, 4u, 33u}) {
               if (top_k > experts / 2) break;
               RunRecord<Id>(executor, digests, experts, top_k);
             }
           }
         }});
  };
  add(uint8_t(), "u8", 255);
  add(uint16_t(), "u16", 65535);
  add(int32_t(), "i32", INT32_MAX);
});

const Registration registration("route", [](std::vector<Case>& cases) {
  const std::pair<const char*, Logit> logits[] = {
      {"random", Random}, {"spread", Spread},         {"ties", Ties},
      {"close", Close},   {"denormal", Denormal},     {"infinite", Infinite},
      {"any", Any},       {"all -inf", MinusInfinity}};
  const std::pair<const char*, RouteOptions> options[] = {
      {"plain", {false, 0x1p-14f}},
      {"renormalized", {true, 0x1p-14f}},
      // The options below run in f32 only, because types matter only before
      // and after the steps that these options change.
      {"clamp 0", {true, 0.0f}},
      {"clamp 1/2", {true, 0.5f}},
      {"clamp 1", {true, 1.0f}}};
  // These types occur in engines' routers.
  constexpr Types kTypes[] = {
      kF32,
      {"bf16 to f32, ", Type::kBF16, Type::kF32},
      {"bf16, ", Type::kBF16, Type::kBF16},
      {"f16 to f32, ", Type::kF16, Type::kF32},
      {"f16, ", Type::kF16, Type::kF16},
      {"f32 to bf16, ", Type::kF32, Type::kBF16},
  };
  for (const Types& types : kTypes) {
    const bool f32 = types.name[0] == 0;
    for (const auto& [option_name, option] : options) {
      if (!f32 && option_name[0] == 'c') break;
      for (const auto& [logit_name, logit] : logits) {
        cases.push_back({std::string("route ") + types.name + option_name +
                             ", " + logit_name,
                         [f32, types, option = option, logit = logit](
                             Executor& executor, Digests& digests) {
                           for (const size_t experts : kExperts) {
                             // Other types than f32 run only a sample of each
                             // kind.
                             if (!f32 && experts % 3 != 2) continue;
                             for (const size_t top_k : kTopK) {
                               if (top_k > experts) break;
                               if (!f32 && top_k % 8 > 1) continue;
                               Run(executor, digests, types, logit, option,
                                   experts, top_k);
                             }
                           }
                         }});
      }
    }
  }
  // Here top_k / experts is 2^-16. The default of RouteOptions::clamp is
  // larger: 2^-14.
  cases.push_back(
      {"route many experts", [](Executor& executor, Digests& digests) {
         Run(executor, digests, kF32, Ties, RouteOptions(), 65536, 1);
       }});
});

}  // namespace
}  // namespace switchyard::corpus
