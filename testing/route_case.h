// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Makes random calls of RouteTopK() with any options, and checks their
// results. Tests and fuzzers use this file.

#ifndef SWITCHYARD_TESTING_ROUTE_CASE_H_
#define SWITCHYARD_TESTING_ROUTE_CASE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "switchyard/executor.h"
#include "switchyard/route.h"
#include "testing/inputs.h"
#include "testing/route_scores.h"

namespace switchyard::testing_support {

// The arguments of a call. An empty vector means that the argument is not
// given.
struct RouteCase {
  RouteOptions options;
  size_t tokens = 1, experts = 1, top_k = 1;
  size_t columns = 1;  // the columns of the logits
  Type logit_type = Type::kF32, bias_type = Type::kF32,
       weight_type = Type::kF32, id_type = Type::kI32;
  Type given_type = Type::kI32;
  bool in_place = false;  // given_ids and topk_ids are the same memory
  bool records = false;
  Type record_type = Type::kI32;
  bool identity = false;  // the call computes identity_weights
  std::vector<float> logits, bias, expert_scale;
  std::vector<int32_t> bias_index, expert_map;
  std::vector<uint8_t> token_mask;
  std::vector<int64_t> given_ids;
};

// The results of a case. Ids are converted to int32, and weights to float.
struct RouteResult {
  std::vector<int32_t> ids;
  std::vector<float> weights, identity;
  // The recorded ids. -1 stands for an id with all bits set in its type, such
  // as 255 in uint8.
  std::vector<int32_t> record;
  Report report;
};
Status RunRouteCase(const RouteCase& c, Executor& executor,
                    RouteResult* result);

// Checks the results of a case on this ISA. Returns a description of the
// first error, or "". The function computes the expected ids and weights from
// the options. It takes the scores from the library, after it has checked
// that they are close to their formulas. Ids have to be exact. Weights that
// are computed from scores alone have to match bit for bit.
std::string WrongRouteCase(const RouteCase& c, const RouteResult& result);

inline bool CanReplay(const RouteCase& c) {
  return c.records && c.options.score != Score::kSparsemixer;
}
// Gives the record of a case to a second call. Both calls must compute the
// same ids and weights with the same bits. Returns a description of the first
// difference, or "". Requires CanReplay(c).
std::string WrongReplay(const RouteCase& c, const RouteResult& result,
                        Executor& executor);

// Returns the largest number of experts for which given_ids and records may
// have this type.
inline size_t MostExperts(Type type) {
  return type == Type::kU8 ? 255 : type == Type::kU16 ? 65535 : INT32_MAX;
}

// Draws a logit. `kind` chooses its distribution. In this file, `source` has
// a method size_t Below(size_t n).
template <class Source>
float DrawLogit(Source& source, size_t kind) {
  const auto uniform = [&](float range) {
    return (static_cast<float>(source.Below(1 << 20)) * 0x1p-19f - 1.0f) *
           range;
  };
  constexpr float kSpecial[] = {
      kNaN,  kInf,   -kInf,  0.0f,  -0.0f,  kDenormal, -kDenormal, 17.0f,
      18.0f, -88.0f, -87.0f, 88.0f, 300.0f, -300.0f,   1e38f,      -1e38f};
  switch (kind) {
    case 0:
      return static_cast<float>(source.Below(5)) - 2.0f;  // many ties
    case 1:
      return source.Below(2) != 0 ? 1.5f : -0.25f;
    case 2:  // saturated
      return 17.0f + uniform(1.0f);
    case 3:
      return kSpecial[source.Below(std::size(kSpecial))];
    case 4:
      return source.Below(40) == 0 ? kSpecial[source.Below(3)] : uniform(4.0f);
    case 5:
      return source.Below(2) != 0 ? -0.0f : 0.0f;
    case 6:
      return -kInf;
    case 7:
      return source.Below(3) == 0 ? uniform(100.0f) : -90.0f;
    default:
      return uniform(5.0f);
  }
}

template <class Source>
RouteCase DrawRouteCase(Source& source, size_t num_experts = 0) {
  RouteCase c;
  RouteOptions& o = c.options;
  const auto one_in = [&](size_t n) { return source.Below(n) == 0; };
  const auto of = [&](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[source.Below(sizeof...(values))];
  };
  constexpr size_t kExperts[] = {8, 16, 32, 60, 64, 128, 160, 256, 384};
  c.experts = one_in(2) ? kExperts[source.Below(std::size(kExperts))]
                        : 1 + source.Below(70);
  if (num_experts != 0) c.experts = num_experts;
  c.tokens = 1 + source.Below(one_in(4) ? 40 : 3);
  if (c.experts > 1000) c.tokens = 1 + source.Below(2);
  const size_t few = std::min<size_t>(c.experts, 12);
  c.top_k =
      1 + source.Below(one_in(6) ? std::min<size_t>(c.experts, 300) : few);
  if (one_in(12) && c.experts >= 2) {
    o.score = Score::kSparsemixer;
    c.top_k = 2;
  } else {
    const size_t i = source.Below(std::size(kScores) - 1);
    o.score = kScores[i < static_cast<size_t>(Score::kSparsemixer) ? i : i + 1];
  }
  const bool sparse = o.score == Score::kSparsemixer;
  o.renormalize = !sparse && !one_in(3);
  o.divisor = kDivisors[source.Below(std::size(kDivisors))];
  if (internal::TakesEps(o.divisor)) o.eps = of(0.0f, 1e-20f, 1e-6f, 0.5f);
  o.clamp = of(0.0f, 0x1p-14f, 0.3f, 1.0f);
  o.zero_sum_is_zero = one_in(3);
  if (!sparse && one_in(2)) {
    o.weight_of = kWeightsOf[1 + source.Below(std::size(kWeightsOf) - 1)];
  }
  const bool given = !sparse && one_in(6);
  const bool bias = !sparse && one_in(2);
  if (bias) {
    // Draws the first place twice as often as each other place, because most
    // models use it.
    const size_t place = source.Below(1 + std::size(kBiasPlaces));
    o.bias_place = kBiasPlaces[place == 0 ? 0 : place - 1];
    o.bias_in_weight = one_in(4) && (o.bias_place == BiasPlace::kLogit ||
                                     o.weight_of == WeightOf::kScore);
  }
  const bool bias_on_logit =
      bias && o.bias_place == BiasPlace::kLogit && !o.bias_in_weight;
  o.select_on_rounded_score = !sparse && !given && !bias_on_logit && one_in(4);
  if (one_in(3)) o.routed_scaling_factor = of(2.5f, 0.0f, -1.0f, 1e-3f);
  if (one_in(5)) o.logit_scale = of(0.17678f, -2.0f, 1e-3f);
  if (one_in(5)) o.logit_softcap = of(30.0f, 2.0f);
  if (one_in(5)) o.logit_clip = of(3.0f, 0.5f);
  if (!sparse && !given && one_in(2)) {
    std::vector<size_t> divisors;
    for (size_t g = 2; g <= c.experts; ++g) {
      if (c.experts % g == 0) divisors.push_back(g);
    }
    if (!divisors.empty()) {
      o.num_expert_group = divisors[source.Below(divisors.size())];
      const size_t size = c.experts / o.num_expert_group;
      o.topk_group = 1 + source.Below(o.num_expert_group);
      o.group_score_of = 1 + source.Below(std::min<size_t>(size, 40));
      if (one_in(2)) o.group_score_of = std::min<size_t>(size, 2);
      o.dropped_key_is_zero = one_in(3);
    }
  }
  if (c.experts > 1 && one_in(4)) {
    o.num_zero_experts = 1 + source.Below(c.experts - 1);
    c.identity = one_in(2);
  }
  if (one_in(4)) {
    o.num_shared_experts = 1 + source.Below(3);
    o.shared_logits = !sparse && one_in(2);
    if (!o.shared_logits) o.shared_weight = of(1.0f, 0.5f);
  }
  if (one_in(4)) o.round_to = of(Type::kBF16, Type::kF16);
  o.jitter_eps = of(0.01f, 0.0f, 0.2f);
  c.columns = c.experts + (o.shared_logits ? o.num_shared_experts : 0);
  c.logit_type = of(Type::kF32, Type::kF32, Type::kBF16, Type::kF16);
  c.bias_type = of(Type::kF32, Type::kF32, Type::kBF16, Type::kF16);
  c.weight_type = of(Type::kF32, Type::kF32, Type::kBF16, Type::kF16);
  c.id_type = of(Type::kI32, Type::kU32, Type::kI64);

  const size_t main = source.Below(12);
  for (size_t t = 0; t < c.tokens; ++t) {
    const size_t kind = one_in(4) ? source.Below(12) : main;
    for (size_t e = 0; e < c.columns; ++e) {
      c.logits.push_back(DrawLogit(source, kind));
    }
  }
  if (bias) {
    const size_t kind = one_in(3) ? source.Below(12) : 11;
    const size_t biases = one_in(3) ? 1 + source.Below(3) : 1;
    for (size_t i = 0; i < biases * c.experts; ++i) {
      c.bias.push_back(DrawLogit(source, kind) * (kind == 11 ? 0.05f : 1.0f));
    }
    if (biases > 1 || (one_in(3) && (!given || o.bias_in_weight))) {
      if (!given || o.bias_in_weight) {
        for (size_t t = 0; t < c.tokens; ++t) {
          // Sometimes draws an index past the last row of biases.
          c.bias_index.push_back(
              static_cast<int32_t>(source.Below(biases + (one_in(9) ? 1 : 0))));
        }
      } else {
        c.bias.resize(c.experts);
      }
    }
  }
  if (one_in(5)) {
    for (size_t e = 0; e < c.experts; ++e) {
      c.expert_scale.push_back(DrawLogit(source, 11));
    }
  }
  if (one_in(5)) {
    for (size_t t = 0; t < c.tokens; ++t) c.token_mask.push_back(!one_in(3));
  }
  if (one_in(5)) {
    for (size_t e = 0; e < c.experts; ++e) {
      c.expert_map.push_back(static_cast<int32_t>(source.Below(9)) - 1);
    }
  }
  if (given) {
    for (size_t i = 0; i < c.tokens * c.top_k; ++i) {
      const int64_t id = static_cast<int64_t>(source.Below(c.experts));
      c.given_ids.push_back(one_in(20) ? of(int64_t{-1}, int64_t{1} << 32,
                                            static_cast<int64_t>(c.experts))
                                       : id);
    }
    c.in_place = one_in(2);
  }
  // Draws a type that has room for the experts.
  const auto any_ids = [&] {
    Type type;
    do {
      type = of(Type::kI32, Type::kU32, Type::kI64, Type::kU8, Type::kU16);
    } while (MostExperts(type) < c.experts);
    return type;
  };
  c.given_type = c.id_type;
  if (given && !c.in_place && one_in(2)) c.given_type = any_ids();
  if (SizeOf(c.given_type) <= 2) {
    const int64_t mark = static_cast<int64_t>(MostExperts(c.given_type)),
                  beyond = static_cast<int64_t>(c.experts);
    for (int64_t& id : c.given_ids) {
      if (id < 0 || id >= beyond) id = one_in(2) ? mark : beyond;
    }
  }
  c.records = one_in(2);
  c.record_type = any_ids();
  return c;
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTING_ROUTE_CASE_H_
