// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/combine.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {
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

void Run(Executor& executor, Digests& digests, const Options& options,
         size_t top_k, size_t hidden) {
  const auto value = [&options](uint32_t stream) {
    return [any = options.any, stream](size_t i) {
      return any ? AnyFloat(stream, i) : Uniform(stream, i, 2.0f);
    };
  };
  const size_t num_rows = kTokens * top_k;
  Rows<float> rows(num_rows, hidden, 1, value(41)),
      weights(kTokens, top_k, 2, value(42)),
      shared(kTokens, hidden, 3, value(43)),
      residual(kTokens, hidden, 4, value(44)), out(kTokens, hidden, 5),
      normed(kTokens, hidden, 6), gate(1, kTokens, 0, value(46)),
      norm_weight(1, hidden, 0, value(47));
  // Skipped slots, stale rows, rows used twice.
  Rows<int32_t> row_index(kTokens, top_k, 1, [num_rows](size_t i) {
    const uint32_t hash = Hash(45, i);
    if (hash % 8 == 0) return -1;
    if (hash % 8 == 1) return static_cast<int32_t>(hash);
    return static_cast<int32_t>(hash / 8 % num_rows);
  });

  CombineInputs inputs = {rows.view(), weights.view(), RowIndex::kTokenOrder};
  if (options.row_index) inputs.row_index = row_index.view();
  if (options.residual) inputs.residual = residual.view();
  if (options.shared) {
    inputs.shared.rows = shared.view();
    inputs.shared.kind = options.gate;
    if (options.gate != SharedGate::kNone) inputs.shared.gate = gate.view();
  }
  const Matrix<float> sum = !options.in_place
                                ? out.view()
                                : (options.residual ? residual : shared).view();
  Report report;
  CombineOutputs outputs = {sum, {}, &report};
  if (options.norm) {
    inputs.norm_weight = norm_weight.view();
    outputs.normed = normed.view();
  }
  CombineOptions combine_options;
  combine_options.allow_skipped = true;
  digests.Check(Combine(inputs, outputs, combine_options, executor));
  if (options.norm) digests.floats.Add(normed.view());
  digests.floats.Add(sum);
  digests.exact.Add(static_cast<uint32_t>(report.skipped));
}

void RunAll(Executor& executor, Digests& digests, const Options& options) {
  // 65 and 70 slots are more terms than one list holds.
  for (const size_t top_k :
       {1u, 2u, 3u, 4u, 6u, 8u, 10u, 16u, 63u, 64u, 65u, 70u}) {
    for (const size_t hidden :
         {1u, 2u, 15u, 16u, 31u, 32u, 33u, 63u, 65u, 100u, 127u, 129u, 515u}) {
      Run(executor, digests, options, top_k, hidden);
    }
  }
  for (const size_t hidden : {1408u, 2048u, 2880u, 4096u, 7168u}) {
    Run(executor, digests, options, 8, hidden);
  }
}

const Registration registration([](std::vector<Case>& cases) {
  const auto add = [&cases](const std::string& name, const Options& options) {
    for (const bool norm : {false, true}) {
      Options with_norm = options;
      with_norm.norm = norm;
      cases.push_back({"combine " + name + (norm ? ", norm" : ""),
                       [with_norm](Executor& executor, Digests& digests) {
                         RunAll(executor, digests, with_norm);
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
});

}  // namespace
}  // namespace switchyard::corpus
