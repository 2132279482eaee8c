// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "reference_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "bounded.h"
#include "bounded_route.h"
#include "programs/for_each.h"

namespace moe_layer {
namespace {

using switchyard::AnyMatrix;
using switchyard::ConstAnyMatrix;
using switchyard::Type;

enum Step {
  kNormStep,
  kLogits,
  kWeights,
  kExperts,
  kCombine,
  kNextNormStep,
  kSteps
};
constexpr const char* kStepNames[kSteps] = {"input norm",      "router GEMM",
                                            "routing weights", "expert rows",
                                            "combine",         "next norm"};

enum Result { kOut, kNextNormed, kResults };
constexpr const char* kResultNames[kResults] = {"hidden states out",
                                                "their next norm"};

Bounded Row(const ConstAnyMatrix& m, size_t row) {
  return Bounded(m.RowRange(row, row + 1));
}

void Merge(const Difference& from, Difference* to) {
  if (from.largest > to->largest) {
    to->largest = from.largest;
    to->bound = from.bound;
  }
  if (from.closest > to->closest) {
    to->closest = from.closest;
    to->token = from.token;
    to->column = from.column;
    to->result = from.result;
    to->exact = from.exact;
  }
}

// Row `row` of `results` against `exact`, before that is rounded to its type.
void AddRow(const ConstAnyMatrix& results, size_t row, const Bounded& exact,
            size_t token, Difference* difference) {
  const Bounded found = Row(results, row);
  const Bounded allowed = exact.As(results.type);
  for (size_t i = 0; i < exact.size(); ++i) {
    const double bound = allowed.error[i];
    double off = std::fabs(found.value[i] - exact.value[i]);
    // NaN and infinities, on either side, exceed any bound.
    if (!std::isfinite(off) || !std::isfinite(bound)) off = INFINITY;
    const double used = off == 0 ? 0 : off < INFINITY ? off / bound : INFINITY;
    Merge({{}, off, bound, used, token, i, found.value[i], exact.value[i]},
          difference);
  }
}

// w * x, x as the GEMM takes it.
Bounded Product(const Gemm& gemm, const GemmWeights& weights,
                const Bounded& x) {
  std::vector<float> plain(gemm.out() * gemm.in());
  gemm.Unpack(weights, plain.data());
  return MatVec(plain.data(), gemm.out(), x);
}

struct TokenReport {
  size_t token = 0;
  std::array<Difference, kSteps> steps;
  std::array<Difference, kResults> results;
  const char* problem = nullptr;  // that makes the rest pointless
};

// Whether each pair of token t is where row_index says, and that is among the
// rows of its expert.
bool BucketsHold(const BlockResults& results, size_t t) {
  const switchyard::PackedBuckets& buckets = results.buckets;
  const size_t top_k = results.ids.cols;
  for (size_t s = 0; s < top_k; ++s) {
    const int32_t row = results.row_index.Row(t)[s];
    if (results.ids.Row(t)[s] < 0) {  // in none
      if (row != -1) return false;
      continue;
    }
    const int32_t* bounds = buckets.offsets.data + results.ids.Row(t)[s];
    if (row < bounds[0] || row >= bounds[1] || row < 0 ||
        static_cast<size_t>(row) >= buckets.pairs.size ||
        static_cast<size_t>(buckets.pairs.data[row]) != t * top_k + s) {
      return false;
    }
  }
  return true;
}

Bounded RunGemms(const ExpertGemms& gemms, const ExpertWeights& expert,
                 const Bounded& x, switchyard::ActivateOptions activate,
                 const float* gate_up_bias, const Bounded* input_weight) {
  const size_t inter = gemms.down->in();
  Bounded gate_up =
      Product(*gemms.gate_up, expert.gate_up, x).As(gemms.gate_up->out_type());
  if (input_weight != nullptr) gate_up = ProductOf(gate_up, *input_weight);
  if (gate_up_bias != nullptr) {
    gate_up = SumOf(gate_up,
                    Bounded(ConstAnyMatrix(gate_up_bias, 1, gate_up.size())));
  }
  Bounded gate = gate_up.Part(0, inter);
  Bounded up = gate_up.Part(inter, 2 * inter);
  if (activate.layout == switchyard::GateUpLayout::kInterleaved) {
    for (size_t i = 0; i < inter; ++i) {
      gate.value[i] = gate_up.value[2 * i];
      gate.error[i] = gate_up.error[2 * i];
      up.value[i] = gate_up.value[2 * i + 1];
      up.error[i] = gate_up.error[2 * i + 1];
    }
  }
  return Product(*gemms.down, expert.down,
                 ActivatedOf(gate, up, activate).As(gemms.down->operands()));
}

Bounded SharedRowOf(const LayerWeights& layer, const Bounded& x) {
  switchyard::ActivateOptions activate = layer.shape.activate;
  activate.layout = switchyard::GateUpLayout::kConcatenated;
  return RunGemms(layer.shared_gemms, layer.shared, x, activate, nullptr,
                  nullptr);
}

Bounded ExpertRowOf(const LayerWeights& layer, size_t id, const Bounded& x,
                    const Bounded& weight) {
  const auto bias = [&](Vector v) {
    return layer.vectors[v].data == nullptr ? nullptr
                                            : layer.vectors[v].Row<float>(id);
  };
  const Bounded row =
      RunGemms(layer.expert_gemms, layer.experts[id], x, layer.shape.activate,
               bias(kGateUpBias), layer.shape.weighs_input ? &weight : nullptr);
  if (bias(kDownBias) == nullptr) return row;
  return SumOf(row.As(layer.expert_gemms.down->out_type()),
               Bounded(ConstAnyMatrix(bias(kDownBias), 1, row.size())));
}

void CheckToken(const LayerWeights& layer, const ConstAnyMatrix& hidden_states,
                const ConstAnyMatrix& normed, const BlockResults& results,
                TokenReport* report) {
  const size_t t = report->token;
  const MoeShape& shape = layer.shape;
  const bool shared = shape.shared_intermediate != 0;
  const auto vector = [&](Vector v) {
    return layer.vectors[v].data == nullptr ? nullptr
                                            : layer.vectors[v].Row<float>(0);
  };
  const RouteVectors route = {vector(kCorrectionBias), vector(kExpertScale)};
  auto& steps = report->steps;
  const auto norm_of = [&](const Bounded& x, Vector v) {
    return RmsNormOf(x, vector(v), shape.norm_eps, shape.norm);
  };
  // The row that a part of the block reads, which may have a norm of its own.
  const auto input_of = [&](Vector v, const AnyMatrix& own) {
    if (own.data == nullptr) return Row(normed, t);
    AddRow(own, t, norm_of(Row(hidden_states, t), v), t, &steps[kNormStep]);
    return Row(own, t);
  };

  const Bounded states = Row(hidden_states, t);
  AddRow(normed, t, norm_of(states, kNorm), t, &steps[kNormStep]);

  const Bounded x = Row(normed, t);
  const Bounded router = Product(*layer.router_gemm, layer.router,
                                 input_of(kRouterNorm, results.router_normed));
  // Not rounded again where they are of that type already.
  const Type operands = layer.expert_gemms.gate_up->operands();
  const auto operands_of = [&](const Bounded& row) {
    return operands == normed.type ? row : row.As(operands);
  };
  const Bounded expert_x = operands_of(x);
  const Bounded sums = router.Part(0, shape.NumLogits());
  AddRow(results.logits, t, sums, t, &steps[kLogits]);

  const Bounded logits = sums.As(results.logits.type);
  const Bounded given_logits = Row(results.logits, t);
  const RouteKeys given_keys = RouteKeysOf(given_logits, shape, route);
  const std::vector<int32_t> all_ids =
      WithZeroExperts(given_keys, results.ids.Row(t), shape);
  const int32_t* ids = all_ids.data();
  if (all_ids.empty() || !IsTopK(given_keys, ids, shape.top_k)) {
    report->problem = "not the experts with the largest logits";
  } else if (!IsTopK(RouteKeysOf(logits, shape, route), ids, shape.top_k)) {
    report->problem = "not the experts with the largest exact logits";
  } else if (!BucketsHold(results, t)) {
    report->problem = "not in its experts' buckets";
  }
  if (report->problem != nullptr) return;

  // Weights, and of zero experts, whose slots have none, the sum.
  const auto split = [&](Bounded weights, Bounded* identity) {
    *identity = Bounded(1);
    for (size_t s = 0; s < shape.top_k; ++s) {
      if (static_cast<size_t>(ids[s]) < shape.num_experts) continue;
      identity->value[0] += std::exchange(weights.value[s], 0.0);
      identity->error[0] += std::exchange(weights.error[s], 0.0);
    }
    identity->error[0] += SumError(shape.top_k, identity->value[0]);
    return weights;
  };
  Bounded given_identity;
  const Bounded weights_of_given =
      split(RouteWeightsOf(given_logits, ids, shape, route), &given_identity);
  AddRow(results.weights, t, weights_of_given, t, &steps[kWeights]);
  if (results.identity.data != nullptr) {
    AddRow(results.identity, t, given_identity, t, &steps[kWeights]);
  }
  const Bounded given_weights = Row(results.weights, t);
  Bounded identity;
  const Bounded weights =
      split(RouteWeightsOf(logits, ids, shape, route), &identity);

  CombineTerms terms, given;
  const Type type = results.expert_rows.type;
  for (size_t s = 0; s < shape.top_k; ++s) {
    if (results.row_index.Row(t)[s] < 0) {  // a zero expert's
      terms.rows.emplace_back(shape.hidden);
      given.rows.emplace_back(shape.hidden);
      continue;
    }
    const auto id = static_cast<size_t>(ids[s]);
    const auto packed = static_cast<size_t>(results.row_index.Row(t)[s]);
    const Bounded input_weight = given_weights.Part(s, s + 1);
    AddRow(results.expert_rows, packed,
           ExpertRowOf(layer, id, expert_x, input_weight), t, &steps[kExperts]);
    given.rows.push_back(Row(results.expert_rows, packed));
    terms.rows.push_back(
        ExpertRowOf(layer, id, expert_x, weights.Part(s, s + 1)).As(type));
  }
  if (shared) {
    const Bounded row = SharedRowOf(
        layer, operands_of(input_of(kSharedNorm, results.shared_normed)));
    AddRow(results.shared_rows, t, row, t, &steps[kExperts]);
    given.shared_row = Row(results.shared_rows, t);
    terms.shared_row = row.As(type);
  }
  if (shape.HasSharedLogit()) {
    const Bounded logit = router.Part(shape.NumLogits(), router.size());
    AddRow(results.shared_logits, t, logit, t, &steps[kLogits]);
    given.shared_logit = Row(results.shared_logits, t);
    terms.shared_logit = logit.As(results.shared_logits.type);
  }
  given.weights = given_weights;
  terms.weights = weights;
  if (shape.weighs_input) {
    given.weights.value.assign(shape.top_k, 1);
    given.weights.error.assign(shape.top_k, 0);
    terms.weights = given.weights;
  }
  if (results.identity.data != nullptr) {
    given.identity_weight = Row(results.identity, t);
    terms.identity_weight = identity;
    given.identity_row = terms.identity_row = x;
  }
  for (CombineTerms* both : {&given, &terms}) {
    if (shape.residual) both->residual = states;
    both->routed_norm = vector(kRoutedOutNorm);
    both->shared_norm = vector(kSharedOutNorm);
    both->block_norm = vector(kBlockOutNorm);
  }

  AddRow(results.out, t, CombineOf(given, shape), t, &steps[kCombine]);
  const Bounded out = CombineOf(terms, shape);
  AddRow(results.out, t, out, t, &report->results[kOut]);
  if (results.next_normed.data == nullptr) return;
  // The norm is that of the sum, of which `out` is what rounding left.
  AddRow(results.next_normed, t,
         norm_of(Row(results.out, t).As(results.out.type), kNextNorm), t,
         &steps[kNextNormStep]);
  AddRow(results.next_normed, t, norm_of(out, kNextNorm), t,
         &report->results[kNextNormed]);
}

std::string DifferenceText(const Difference& difference) {
  char text[200];
  std::snprintf(text, sizeof(text),
                "%s: token %zu, column %zu: %.9g instead of %.9g, %.3g times "
                "its bound",
                difference.what.c_str(), difference.token, difference.column,
                difference.result, difference.exact, difference.closest);
  return text;
}

}  // namespace

CheckReport CheckAgainstDouble(const LayerWeights& weights,
                               const ConstAnyMatrix& hidden,
                               const ConstAnyMatrix& normed,
                               const BlockResults& results, size_t max_tokens,
                               switchyard::Executor& executor) {
  CheckReport report;
  report.tokens = std::min(hidden.rows, max_tokens);
  for (const char* name : kStepNames) report.steps.push_back({name});
  for (const char* name : kResultNames) report.block.push_back({name});

  std::vector<TokenReport> tokens(report.tokens);
  for (size_t i = 0; i < report.tokens; ++i) {
    // The first, the last and some between.
    tokens[i].token =
        report.tokens == 1 ? 0 : i * (hidden.rows - 1) / (report.tokens - 1);
  }
  program::ForEach(executor, report.tokens, 1, [&](size_t i) {
    CheckToken(weights, hidden, normed, results, &tokens[i]);
  });

  for (const TokenReport& token : tokens) {
    for (size_t i = 0; i < kSteps; ++i) Merge(token.steps[i], &report.steps[i]);
    for (size_t i = 0; i < kResults; ++i) {
      Merge(token.results[i], &report.block[i]);
    }
    if (report.failure.empty() && token.problem != nullptr) {
      report.failure = "routing: token " + std::to_string(token.token) + ": " +
                       token.problem;
    }
  }
  for (const auto* differences : {&report.steps, &report.block}) {
    for (const Difference& difference : *differences) {
      if (report.failure.empty() && !difference.Holds()) {
        report.failure = DifferenceText(difference);
      }
    }
  }
  return report;
}

}  // namespace moe_layer
