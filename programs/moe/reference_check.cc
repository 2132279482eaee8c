// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "reference_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "programs/for_each.h"
#include "switchyard/quantize.h"
#include "testing/floats.h"
#include "testing/reference_activate.h"
#include "testing/reference_combine.h"
#include "testing/route_case.h"

namespace moe_layer {
namespace {

using switchyard::ConstAnyMatrix;
using switchyard::GateUpLayout;
using switchyard::Type;
using Row = std::vector<double>;
using Floats = std::vector<float>;

enum Step { kNormStep, kLogits, kExperts, kCombine, kNextNormStep, kSteps };
constexpr const char* kStepNames[kSteps] = {
    "input norm", "router GEMM", "expert rows", "combine", "next norm"};

enum Result { kOut, kNextNormed, kResults };
constexpr const char* kResultNames[kResults] = {"hidden states out",
                                                "their next norm"};

constexpr double kArithmetic = 0x1p-16;
double ShareOf(Type operands) {
  return operands == Type::kI8 || operands == Type::kQ8_K ? 0x1p-4
         : operands == Type::kBF16                        ? 0x1p-6
                                                          : kArithmetic;
}

// Converts a row of any type to floats. Converts codes of int8 without a scale.
Floats RowOf(const ConstAnyMatrix& m, size_t row) {
  Floats floats(m.cols);
  program::Check(switchyard::Quantize({m.RowRange(row, row + 1)}, {floats}));
  return floats;
}

Floats As(Type type, const Row& row) {
  Floats rounded(row.begin(), row.end());
  for (float& x : rounded) {
    x = switchyard::testing_support::Rounded(type, x);
  }
  return rounded;
}
// Rounds a row to values that the format can represent: codes times a scale.
// Follows quantize.h's formula to the bit, because bf16 values are often in the
// middle of two codes.
Floats As(const switchyard::RowFormat& format, const Row& row) {
  const bool is_q8_k = format.type == Type::kQ8_K;
  if (format.type != Type::kI8 && !is_q8_k) return As(format.type, row);
  Floats rounded(row.begin(), row.end());
  const size_t group = is_q8_k                     ? 256
                       : format.scale_columns == 0 ? row.size()
                                                   : format.scale_columns;
  for (size_t begin = 0; begin < row.size(); begin += group) {
    const size_t end = std::min(begin + group, row.size());
    float most = 0;
    for (size_t i = begin; i < end; ++i) {
      if (std::fabs(rounded[i]) > std::fabs(most)) most = rounded[i];
    }
    if (most == 0) continue;
    const float inverse = is_q8_k ? -127 / most : 127 / std::fabs(most);
    const float scale = is_q8_k ? 1 / inverse : std::fabs(most) / 127;
    for (size_t i = begin; i < end; ++i) {
      rounded[i] = scale * std::nearbyint(rounded[i] * inverse);
    }
  }
  return rounded;
}

double RmsOf(const Row& row) {
  double squares = 0;
  for (const double x : row) squares += x * x;
  return std::sqrt(squares / static_cast<double>(row.size()));
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

// Returns w * x in double precision. w has the weights' values after they were
// rounded and packed for the GEMM.
Row Product(const Gemm& gemm, const GemmWeights& weights, const Floats& x) {
  Floats plain(gemm.out() * gemm.in());
  gemm.Unpack(weights, plain.data());
  Row out(gemm.out());
  const float* w = plain.data();
  for (double& sum : out) {
    for (const float factor : x) {
      sum += static_cast<double>(*w++) * static_cast<double>(factor);
    }
  }
  return out;
}

class TokenCheck {
 public:
  size_t token = 0;
  std::array<Difference, kSteps> steps;
  std::array<Difference, kResults> results;
  std::string problem;  // an error after which other checks are pointless

  void Run(const LayerWeights& layer, const ConstAnyMatrix& hidden_states,
           const ConstAnyMatrix& normed, const BlockResults& given);

 private:
  // Compares row `row` of `results_of` with `exact`. The bound of the error is
  // `share` times `size`, plus one rounding to the results' type. A negative
  // `size` stands for the root mean square of `exact`.
  void Compare(const ConstAnyMatrix& results_of, size_t row, const Row& exact,
               double share, Difference* difference, double size = -1) const {
    const Floats found = RowOf(results_of, row);
    if (size < 0) size = RmsOf(exact);
    const double unit = results_of.type == Type::kBF16 ? 0x1p-8 : 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      const auto result = static_cast<double>(found[i]);
      const double bound = share * size + unit * std::fabs(exact[i]) + 0x1p-126;
      double off = std::fabs(result - exact[i]);
      // A NaN or infinity in the result or in `exact` exceeds any bound.
      if (!std::isfinite(off) || !std::isfinite(bound)) off = INFINITY;
      const double used = off < INFINITY ? off / bound : INFINITY;
      Merge({{}, off, bound, used, token, i, result, exact[i]}, difference);
    }
  }
};

ConstAnyMatrix OneRow(const Floats& row) {
  return {row.data(), row.empty() ? 0u : 1u, row.size()};
}

// Checks the experts and weights that token t got for its logits. Returns the
// error, or "".
std::string WrongRoute(const LayerWeights& layer, const BlockResults& given,
                       size_t t) {
  const MoeShape& shape = layer.shape;
  switchyard::testing_support::RouteCase route;
  route.options = shape.route;
  route.experts = route.columns = shape.NumLogits();
  route.top_k = shape.top_k;
  route.logits = RowOf(given.logits, t);
  if (layer.vectors[kCorrectionBias].data != nullptr) {
    route.bias = RowOf(layer.vectors[kCorrectionBias], 0);
  }
  if (layer.vectors[kExpertScale].data != nullptr) {
    route.expert_scale = RowOf(layer.vectors[kExpertScale], 0);
    route.expert_scale.resize(route.experts, 1.0f);
  }
  const int32_t* const ids = given.ids.Row(t);
  switchyard::testing_support::RouteResult result;
  result.ids.assign(ids, ids + shape.top_k);
  result.weights = RowOf(given.weights, t);
  route.identity = given.identity.data != nullptr;
  if (route.identity) result.identity = RowOf(given.identity, t);
  const std::string wrong = WrongRouteCase(route, result);
  return wrong.substr(std::min(wrong.size(), std::string("token 0: ").size()));
}

// A pair is a token and one of its selected experts. True if row_index maps
// each pair of token t to a row of the pair's expert, and this row of `buckets`
// has the pair.
bool BucketsHold(const BlockResults& results, size_t t) {
  const switchyard::PackedBuckets& buckets = results.buckets;
  const size_t top_k = results.ids.cols;
  for (size_t s = 0; s < top_k; ++s) {
    const int32_t row = results.row_index.Row(t)[s];
    if (results.ids.Row(t)[s] < 0) {  // a zero expert has no bucket
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

// Returns an expert's output row for x, the input of gate and up. In families
// that multiply the expert's input by the router's weight, `input_weight` is
// this weight; otherwise it is 1. This function multiplies the products of gate
// and up by input_weight, instead of x. Missing biases are empty.
Row ExpertRow(const ExpertGemms& gemms, const ExpertWeights& expert,
              const switchyard::ActivateOptions& activate, const Floats& x,
              float input_weight = 1, const Floats& gate_up_bias = {},
              const Floats& down_bias = {}) {
  const size_t inter = gemms.down->in();
  const Floats gate_up =
      As(gemms.gate_up->out_type(), Product(*gemms.gate_up, expert.gate_up, x));
  Row active(inter);
  for (size_t i = 0; i < inter; ++i) {
    const auto at = [&](size_t column) {
      const float bias = gate_up_bias.empty() ? 0 : gate_up_bias[column];
      return gate_up[column] * input_weight + bias;
    };
    const bool in_turns = activate.layout == GateUpLayout::kInterleaved;
    active[i] = switchyard::reference::Activated(
                    activate, at(in_turns ? 2 * i : i),
                    at(in_turns ? 2 * i + 1 : inter + i), true)
                    .value;
  }
  Row row =
      Product(*gemms.down, expert.down, As(gemms.down->row_format(), active));
  if (down_bias.empty()) return row;
  const Floats stored = As(gemms.down->out_type(), row);
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = static_cast<double>(stored[i]) + static_cast<double>(down_bias[i]);
  }
  return row;
}

void TokenCheck::Run(const LayerWeights& layer,
                     const ConstAnyMatrix& hidden_states,
                     const ConstAnyMatrix& normed, const BlockResults& given) {
  const size_t t = token;
  const MoeShape& shape = layer.shape;
  const auto& vectors = layer.vectors;
  const Type operands = layer.expert_gemms.gate_up->operands();
  const double share = ShareOf(operands);
  const Floats states = RowOf(hidden_states, t);
  const auto row_of = [](const ConstAnyMatrix& m, size_t row) {
    return m.data == nullptr ? Floats() : RowOf(m, row);
  };
  switchyard::CombineOptions options;
  options.eps = options.block_eps = shape.norm_eps;
  options.norm = options.block_norm = shape.norm;
  // Returns the input of a part of the block, such as the router: `rows` if the
  // part has its own norm, and otherwise `normed`. If the layer has the weights
  // of norm v, also checks the norm.
  const auto input_of = [&](Vector v, const ConstAnyMatrix& rows) {
    const ConstAnyMatrix& from = rows.data == nullptr ? normed : rows;
    if (vectors[v].data != nullptr) {
      switchyard::CombineInputs norm = {
          {}, {}, switchyard::RowIndex::kTokenOrder, OneRow(states)};
      norm.norm_weight = vectors[v];
      Compare(from, t,
              switchyard::reference::CombineForm(norm, options, 0).normed,
              kArithmetic, &steps[kNormStep]);
    }
    return RowOf(from, t);
  };
  // Rounds x to the type that the experts' GEMMs read, unless it has this type.
  const auto operands_of = [&](const Floats& x) {
    return operands == normed.type
               ? x
               : As(layer.expert_gemms.gate_up->row_format(),
                    {x.begin(), x.end()});
  };

  const Floats x = input_of(kNorm, normed);
  const Row router = Product(*layer.router_gemm, layer.router,
                             input_of(kRouterNorm, given.router_normed));
  const auto logits_end =
      router.begin() + static_cast<std::ptrdiff_t>(shape.NumLogits());
  Compare(given.logits, t, {router.begin(), logits_end}, kArithmetic,
          &steps[kLogits], RmsOf(router));
  if (shape.HasSharedLogit()) {
    Compare(given.shared_logits, t, {logits_end, router.end()}, kArithmetic,
            &steps[kLogits], RmsOf(router));
  }
  problem = WrongRoute(layer, given, t);
  if (problem.empty() && !BucketsHold(given, t)) {
    problem = "not in its experts' buckets";
  }
  if (!problem.empty()) return;

  // The rows that the block passed to Combine(), and the same rows computed in
  // double precision.
  Floats given_rows, exact_rows, given_shared, exact_shared;
  Floats weights = RowOf(given.weights, t);
  const auto add = [&](const ConstAnyMatrix& rows, size_t row, const Row& exact,
                       Floats* of_given, Floats* of_exact) {
    Compare(rows, row, exact, share, &steps[kExperts]);
    for (const float value : RowOf(rows, row)) of_given->push_back(value);
    for (const float value : As(rows.type, exact)) of_exact->push_back(value);
  };
  for (size_t s = 0; s < shape.top_k; ++s) {
    if (given.row_index.Row(t)[s] < 0) {  // the pair of a zero expert
      given_rows.resize(given_rows.size() + shape.hidden);
      exact_rows.resize(given_rows.size());
      continue;
    }
    const auto id = static_cast<size_t>(given.ids.Row(t)[s]);
    add(given.expert_rows, static_cast<size_t>(given.row_index.Row(t)[s]),
        ExpertRow(layer.expert_gemms, layer.experts[id], shape.activate,
                  operands_of(x), shape.weighs_input ? weights[s] : 1,
                  row_of(vectors[kGateUpBias], id),
                  row_of(vectors[kDownBias], id)),
        &given_rows, &exact_rows);
  }
  if (shape.shared_intermediate != 0) {
    switchyard::ActivateOptions activate = shape.activate;
    activate.layout = GateUpLayout::kConcatenated;
    add(given.shared_rows, t,
        ExpertRow(layer.shared_gemms, layer.shared, activate,
                  operands_of(input_of(kSharedNorm, given.shared_normed))),
        &given_shared, &exact_shared);
  }
  if (shape.weighs_input) weights.assign(shape.top_k, 1);

  options.scales = shape.scales;
  const Floats shared_logit = row_of(given.shared_logits, t);
  const Floats identity = row_of(given.identity, t);
  const auto combine = [&](const Floats& rows, const Floats& shared) {
    switchyard::CombineInputs inputs = {
        ConstAnyMatrix(rows.data(), shape.top_k, shape.hidden), OneRow(weights),
        switchyard::RowIndex::kTokenOrder};
    if (shape.residual) inputs.residual = OneRow(states);
    inputs.norm_weight = vectors[kNextNorm];
    if (!shared.empty()) {
      inputs.shared = {OneRow(shared), OneRow(shared_logit), shape.shared_gate};
    }
    if (!identity.empty()) inputs.identity = {OneRow(x), OneRow(identity)};
    inputs.norms = {vectors[kRoutedOutNorm], vectors[kSharedOutNorm],
                    vectors[kBlockOutNorm]};
    return switchyard::reference::CombineForm(inputs, options, 0);
  };
  const auto step = combine(given_rows, given_shared);
  const auto block = combine(exact_rows, exact_shared);
  Compare(given.out, t, step.out, kArithmetic, &steps[kCombine]);
  Compare(given.out, t, block.out, share, &results[kOut]);
  if (given.next_normed.data == nullptr) return;
  Compare(given.next_normed, t, step.normed, kArithmetic,
          &steps[kNextNormStep]);
  Compare(given.next_normed, t, block.normed, share, &results[kNextNormed]);
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

  std::vector<TokenCheck> tokens(report.tokens);
  for (size_t i = 0; i < report.tokens; ++i) {
    // Takes the first token, the last token, and tokens at equal distances
    // between them.
    tokens[i].token =
        report.tokens == 1 ? 0 : i * (hidden.rows - 1) / (report.tokens - 1);
  }
  program::ForEach(executor, report.tokens, 1, [&](size_t i) {
    tokens[i].Run(weights, hidden, normed, results);
  });

  for (const TokenCheck& token : tokens) {
    for (size_t i = 0; i < kSteps; ++i) Merge(token.steps[i], &report.steps[i]);
    for (size_t i = 0; i < kResults; ++i) {
      Merge(token.results[i], &report.block[i]);
    }
  }
  // Reports the first difference in the order of the block's steps, because
  // wrong logits would explain why other experts were selected.
  const auto keep = [&report](const Difference& difference) {
    if (!report.failure.empty() || difference.Holds()) return;
    report.failure = DifferenceText(difference);
  };
  for (size_t i = 0; i <= kLogits; ++i) keep(report.steps[i]);
  for (const TokenCheck& token : tokens) {
    if (!report.failure.empty() || token.problem.empty()) continue;
    report.failure =
        "routing: token " + std::to_string(token.token) + ": " + token.problem;
  }
  for (const Difference& difference : report.steps) keep(difference);
  for (const Difference& difference : report.block) keep(difference);
  return report;
}

}  // namespace moe_layer
