// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "reference_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bounded.h"
#include "common/for_each_range.h"

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

void Add(double result, double exact, double bound, size_t token, size_t column,
         Difference* difference) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double off = std::fabs(result - exact);
  // NaN and infinities, on either side, exceed any bound.
  if (!std::isfinite(off) || !std::isfinite(bound)) off = kInfinity;
  const double used = off == 0 ? 0 : off < kInfinity ? off / bound : kInfinity;
  if (off > difference->largest) {
    difference->largest = off;
    difference->bound = bound;
  }
  if (used > difference->closest) {
    difference->closest = used;
    difference->token = token;
    difference->column = column;
    difference->result = result;
    difference->exact = exact;
  }
}

void AddRow(const float* result, const Bounded& exact, size_t token,
            Difference* difference) {
  for (size_t i = 0; i < exact.size(); ++i) {
    Add(static_cast<double>(result[i]), exact.value[i], exact.error[i], token,
        i, difference);
  }
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

struct TokenReport {
  size_t token = 0;
  std::array<Difference, kSteps> steps;
  std::array<Difference, kResults> results;
  const char* problem = nullptr;  // that makes the rest pointless
};

class Checker {
 public:
  Checker(const LayerWeights& layer, Matrix<const float> hidden,
          Matrix<const float> normed, const BlockResults& results)
      : layer_(layer), hidden_(hidden), normed_(normed), results_(results) {}

  void CheckToken(TokenReport* report) const;

 private:
  Bounded Expert(const ExpertWeights& expert, size_t intermediate,
                 const Bounded& x) const {
    const Bounded gate = MatVec(expert.gate, intermediate, x);
    const Bounded up = MatVec(expert.up, intermediate, x);
    return MatVec(expert.down, layer_.shape.hidden, SiluMulOf(gate, up));
  }

  // Whether each pair of the token is where row_index says, and that is among
  // the rows of its expert.
  bool BucketsHold(size_t t) const {
    const switchyard::PackedBuckets& buckets = results_.buckets;
    for (size_t s = 0; s < layer_.shape.top_k; ++s) {
      const int32_t row = results_.row_index.Row(t)[s];
      const int32_t* bounds = buckets.offsets.data + results_.ids.Row(t)[s];
      if (row < bounds[0] || row >= bounds[1] || row < 0 ||
          static_cast<size_t>(row) >= buckets.pairs.size ||
          static_cast<size_t>(buckets.pairs.data[row]) !=
              t * layer_.shape.top_k + s) {
        return false;
      }
    }
    return true;
  }

  const LayerWeights& layer_;
  const Matrix<const float> hidden_;
  const Matrix<const float> normed_;
  const BlockResults& results_;
};

void Checker::CheckToken(TokenReport* report) const {
  const size_t t = report->token;
  const MoeShape& shape = layer_.shape;
  const size_t hidden = shape.hidden;
  const bool shared = shape.shared_intermediate != 0;
  const int32_t* ids = results_.ids.Row(t);
  auto& steps = report->steps;

  const Bounded states(hidden_.Row(t), hidden);
  AddRow(normed_.Row(t), RmsNormOf(states, layer_.norm, shape.norm_eps), t,
         &steps[kNorm]);

  const Bounded x(normed_.Row(t), hidden);
  const Bounded logits = MatVec(layer_.router, shape.num_experts, x);
  AddRow(results_.logits.Row(t), logits, t, &steps[kLogits]);

  const Bounded given_logits(results_.logits.Row(t), shape.num_experts);
  if (!IsTopK(given_logits, ids, shape.top_k)) {
    report->problem = "not the experts with the largest logits";
  } else if (!IsTopK(logits, ids, shape.top_k)) {
    report->problem = "not the experts with the largest exact logits";
  } else if (!BucketsHold(t)) {
    report->problem = "not in its experts' buckets";
  }
  if (report->problem != nullptr) return;
  AddRow(results_.weights.Row(t), RouteWeightsOf(given_logits, ids, shape), t,
         &steps[kWeights]);

  std::vector<Bounded> rows;
  std::vector<Bounded> given_rows;
  for (size_t s = 0; s < shape.top_k; ++s) {
    rows.push_back(Expert(layer_.experts[static_cast<size_t>(ids[s])],
                          shape.intermediate, x));
    const auto row = static_cast<size_t>(results_.row_index.Row(t)[s]);
    given_rows.emplace_back(results_.expert_rows.Row(row), hidden);
    AddRow(results_.expert_rows.Row(row), rows.back(), t, &steps[kExperts]);
  }
  Bounded shared_logit;
  Bounded shared_row;
  Bounded given_shared_logit;
  Bounded given_shared_row;
  if (shared) {
    shared_logit = MatVec(layer_.shared_logit, 1, x);
    shared_row = Expert(layer_.shared, shape.shared_intermediate, x);
    AddRow(results_.shared_logits.Row(t), shared_logit, t, &steps[kLogits]);
    AddRow(results_.shared_rows.Row(t), shared_row, t, &steps[kExperts]);
    given_shared_logit = Bounded(results_.shared_logits.Row(t), 1);
    given_shared_row = Bounded(results_.shared_rows.Row(t), hidden);
  }

  const Bounded given_weights(results_.weights.Row(t), shape.top_k);
  AddRow(results_.out.Row(t),
         CombineOf(given_weights, given_rows, given_shared_logit,
                   given_shared_row, hidden_.Row(t)),
         t, &steps[kCombine]);
  const Bounded given_out(results_.out.Row(t), hidden);
  AddRow(results_.next_normed.Row(t),
         RmsNormOf(given_out, layer_.next_norm, shape.norm_eps), t,
         &steps[kNextNorm]);

  const Bounded out = CombineOf(RouteWeightsOf(logits, ids, shape), rows,
                                shared_logit, shared_row, hidden_.Row(t));
  AddRow(results_.out.Row(t), out, t, &report->results[kOut]);
  AddRow(results_.next_normed.Row(t),
         RmsNormOf(out, layer_.next_norm, shape.norm_eps), t,
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
  const Checker checker(weights, hidden, normed, results);
  example::ForEachRange(executor, report.tokens, 1,
                        [&](size_t begin, size_t end) {
                          for (size_t i = begin; i < end; ++i)
                            checker.CheckToken(&tokens[i]);
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
