// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "reference_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "bounded.h"
#include "common/for_each.h"

namespace moe_layer {
namespace {

using switchyard::Matrix;

enum Step { kNorm, kLogits, kWeights, kExperts, kCombine, kNextNorm, kSteps };
constexpr const char* kStepNames[kSteps] = {"input norm",      "router GEMM",
                                            "routing weights", "expert rows",
                                            "combine",         "next norm"};

enum Result { kOut, kNextNormed, kResults };
constexpr const char* kResultNames[kResults] = {"hidden states out",
                                                "their next norm"};

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

void AddRow(const float* result, const Bounded& exact, size_t token,
            Difference* difference) {
  for (size_t i = 0; i < exact.size(); ++i) {
    const auto found = static_cast<double>(result[i]);
    const double bound = exact.error[i];
    double off = std::fabs(found - exact.value[i]);
    // NaN and infinities, on either side, exceed any bound.
    if (!std::isfinite(off) || !std::isfinite(bound)) off = INFINITY;
    const double used = off == 0 ? 0 : off < INFINITY ? off / bound : INFINITY;
    Merge({{}, off, bound, used, token, i, found, exact.value[i]}, difference);
  }
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
    const int32_t* bounds = buckets.offsets.data + results.ids.Row(t)[s];
    if (row < bounds[0] || row >= bounds[1] || row < 0 ||
        static_cast<size_t>(row) >= buckets.pairs.size ||
        static_cast<size_t>(buckets.pairs.data[row]) != t * top_k + s) {
      return false;
    }
  }
  return true;
}

void CheckToken(const LayerWeights& layer, Matrix<const float> hidden_states,
                Matrix<const float> normed, const BlockResults& results,
                TokenReport* report) {
  const size_t t = report->token;
  const MoeShape& shape = layer.shape;
  const size_t hidden = shape.hidden;
  const bool shared = shape.shared_intermediate != 0;
  const int32_t* ids = results.ids.Row(t);
  auto& steps = report->steps;
  const auto run_expert = [&](const ExpertWeights& expert, size_t intermediate,
                              const Bounded& x) {
    const Bounded gate = MatVec(expert.gate, intermediate, x);
    const Bounded up = MatVec(expert.up, intermediate, x);
    return MatVec(expert.down, hidden, SiluMulOf(gate, up));
  };

  const Bounded states(hidden_states.Row(t), hidden);
  AddRow(normed.Row(t), RmsNormOf(states, layer.norm, shape.norm_eps), t,
         &steps[kNorm]);

  const Bounded x(normed.Row(t), hidden);
  const Bounded logits = MatVec(layer.router, shape.num_experts, x);
  AddRow(results.logits.Row(t), logits, t, &steps[kLogits]);

  const Bounded given_logits(results.logits.Row(t), shape.num_experts);
  if (!IsTopK(given_logits, ids, shape.top_k)) {
    report->problem = "not the experts with the largest logits";
  } else if (!IsTopK(logits, ids, shape.top_k)) {
    report->problem = "not the experts with the largest exact logits";
  } else if (!BucketsHold(results, t)) {
    report->problem = "not in its experts' buckets";
  }
  if (report->problem != nullptr) return;
  AddRow(results.weights.Row(t), RouteWeightsOf(given_logits, ids, shape), t,
         &steps[kWeights]);

  std::vector<Bounded> rows;
  std::vector<Bounded> given_rows;
  for (size_t s = 0; s < shape.top_k; ++s) {
    rows.push_back(run_expert(layer.experts[static_cast<size_t>(ids[s])],
                              shape.intermediate, x));
    const auto row = static_cast<size_t>(results.row_index.Row(t)[s]);
    given_rows.emplace_back(results.expert_rows.Row(row), hidden);
    AddRow(results.expert_rows.Row(row), rows.back(), t, &steps[kExperts]);
  }
  Bounded shared_logit;
  Bounded shared_row;
  Bounded given_shared_logit;
  Bounded given_shared_row;
  if (shared) {
    shared_logit = MatVec(layer.shared_logit, 1, x);
    shared_row = run_expert(layer.shared, shape.shared_intermediate, x);
    AddRow(results.shared_logits.Row(t), shared_logit, t, &steps[kLogits]);
    AddRow(results.shared_rows.Row(t), shared_row, t, &steps[kExperts]);
    given_shared_logit = Bounded(results.shared_logits.Row(t), 1);
    given_shared_row = Bounded(results.shared_rows.Row(t), hidden);
  }

  const Bounded given_weights(results.weights.Row(t), shape.top_k);
  AddRow(results.out.Row(t),
         CombineOf(given_weights, given_rows, given_shared_logit,
                   given_shared_row, hidden_states.Row(t)),
         t, &steps[kCombine]);
  const Bounded given_out(results.out.Row(t), hidden);
  AddRow(results.next_normed.Row(t),
         RmsNormOf(given_out, layer.next_norm, shape.norm_eps), t,
         &steps[kNextNorm]);

  const Bounded out = CombineOf(RouteWeightsOf(logits, ids, shape), rows,
                                shared_logit, shared_row, hidden_states.Row(t));
  AddRow(results.out.Row(t), out, t, &report->results[kOut]);
  AddRow(results.next_normed.Row(t),
         RmsNormOf(out, layer.next_norm, shape.norm_eps), t,
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
                               Matrix<const float> hidden,
                               Matrix<const float> normed,
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
  example::ForEach(executor, report.tokens, 1, [&](size_t i) {
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
