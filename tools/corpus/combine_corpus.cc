// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/combine.h"
#include "tools/corpus/corpus.h"

namespace switchyard {
namespace corpus {
namespace {

constexpr size_t kTokens = 3;

struct Options {
  bool norm = false;
  bool residual = false;
  bool row_index = false;
  bool shared = false;
  SharedGate gate = SharedGate::kNone;
  bool in_place = false;
  bool any = false;  // any bit pattern rather than numbers below 2
};

Status Run(Executor& executor, Digests& digests, const Options& options,
           size_t top_k, size_t hidden) {
  const auto value = [&options](uint32_t seed) {
    return [any = options.any, seed](size_t i) {
      return any ? AnyFloat(seed, i) : Uniform(seed, i, 2.0f);
    };
  };
  const size_t pairs = kTokens * top_k;
  Rows<float> rows(pairs, hidden, 1), weights(kTokens, top_k, 2),
      shared(kTokens, hidden, 3), residual(kTokens, hidden, 4),
      out(kTokens, hidden, 5), normed(kTokens, hidden, 6);
  Rows<int32_t> row_index(kTokens, top_k, 1);
  rows.Fill(value(41));
  weights.Fill(value(42));
  shared.Fill(value(43));
  residual.Fill(value(44));
  // Skipped slots, stale rows, rows used twice.
  row_index.Fill([pairs](size_t i) {
    const uint32_t hash = Hash(45, i);
    if (hash % 8 == 0) return -1;
    if (hash % 8 == 1) return static_cast<int32_t>(hash);
    return static_cast<int32_t>(hash / 8 % pairs);
  });
  std::vector<float> gate(kTokens), norm_weight(hidden);
  for (size_t i = 0; i < kTokens; ++i) gate[i] = value(46)(i);
  for (size_t i = 0; i < hidden; ++i) norm_weight[i] = value(47)(i);

  CombineInputs inputs;
  inputs.rows = rows.view();
  inputs.weights = weights.view();
  if (options.row_index) inputs.row_index = row_index.view();
  if (options.residual) inputs.residual = residual.view();
  if (options.shared) {
    inputs.shared.rows = shared.view();
    inputs.shared.kind = options.gate;
    if (options.gate != SharedGate::kNone) inputs.shared.gate = gate;
  }
  const Matrix<float> sum = !options.in_place
                                ? out.view()
                                : (options.residual ? residual : shared).view();
  size_t skipped = 0;
  Status status;
  if (options.norm) {
    status = WeightedSumRmsNorm(inputs, norm_weight, 1e-6f, sum, normed.view(),
                                executor, &skipped);
    digests.floats.Add(normed.view());
  } else {
    status = WeightedSum(inputs, sum, executor, &skipped);
  }
  digests.floats.Add(sum);
  digests.exact.Add(static_cast<uint32_t>(skipped));
  return status;
}

Status RunAll(Executor& executor, Digests& digests, const Options& options) {
  // 65 and 70 slots are more terms than one list holds.
  for (const size_t top_k :
       {1u, 2u, 3u, 4u, 6u, 8u, 10u, 16u, 63u, 64u, 65u, 70u}) {
    for (const size_t hidden :
         {1u, 2u, 15u, 16u, 31u, 32u, 33u, 63u, 65u, 100u, 127u, 129u, 515u}) {
      const Status status = Run(executor, digests, options, top_k, hidden);
      if (!status.ok()) return status;
    }
  }
  for (const size_t hidden : {1408u, 2048u, 2880u, 4096u, 7168u}) {
    const Status status = Run(executor, digests, options, 8, hidden);
    if (!status.ok()) return status;
  }
  return Status();
}

}  // namespace

void AddCombineCases(std::vector<Case>& cases) {
  const auto add = [&cases](const std::string& name, const Options& options) {
    for (const bool norm : {false, true}) {
      Options with_norm = options;
      with_norm.norm = norm;
      cases.push_back({"combine " + name + (norm ? ", norm" : ""),
                       [with_norm](Executor& executor, Digests& digests) {
                         return RunAll(executor, digests, with_norm);
                       }});
    }
  };
  Options options;
  add("sum", options);
  options.any = true;
  add("sum, any", options);
  options.any = false;
  options.row_index = true;
  add("row index", options);
  options.residual = true;
  add("row index, residual", options);
  options.in_place = true;
  add("row index, residual in place", options);
  options.shared = true;
  options.gate = SharedGate::kLogit;
  add("row index, residual in place, shared by logit", options);
  options.any = true;
  add("row index, residual in place, shared by logit, any", options);
  options = Options();
  options.shared = true;
  options.gate = SharedGate::kScalar;
  add("shared by scalar", options);
  options.gate = SharedGate::kNone;
  options.in_place = true;
  add("shared in place", options);
}

}  // namespace corpus
}  // namespace switchyard
