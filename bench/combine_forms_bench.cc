// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Times forms of Combine that move no more bytes than its plain form, beside
// probes that only move these bytes.

#include <cmath>

#include "bench/bench.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "switchyard/combine.h"
#include "testing/reference_combine.h"

namespace switchyard::bench {
namespace {

struct Form {
  const char* name;
  const char* model;
  bool block_norm, vectors;
  NormKind norm;
  CombineScales scales;
};
constexpr Form kForms[] = {
    {"residual_multiplier",
     "Granite",
     false,
     false,
     NormKind::kWeight,
     {1.0f, 0.22f, 1.0f, 1.0f}},
    {"alpha_beta",
     "MiniMax-Text-01",
     false,
     false,
     NormKind::kWeight,
     {1.0f, 0.75f, 3.5f, 1.0f}},
    {"plus_one", "MiniMax-M3", false, false, NormKind::kPlusOne, {}},
    {"block_norm", "FlexOlmo", true, false, NormKind::kWeight, {}},
    {"vectors", "ZAYA", false, true, NormKind::kWeight, {}},
};

struct Data {
  const Form& form;
  size_t tokens, hidden, pairs;
  Aligned<float> rows, residual, weights, norm_weight, vectors, out, normed;

  Data(const Form& f, size_t t, size_t h)
      : form(f),
        tokens(t),
        hidden(h),
        pairs(t * kCombineTopK),
        rows(Floats(pairs * h, 5)),
        residual(Floats(t * h, 7)),
        weights(Floats(pairs, 6, 1.0f)),
        norm_weight(Floats(h, 8)),
        vectors(Floats(5 * h, 9)),
        out(t * h),
        normed(t * h) {}

  const float* Vector(size_t i) const { return vectors.data() + i * hidden; }
  CombineInputs In() const {
    CombineInputs in = {{rows.data(), pairs, hidden},
                        {weights.data(), tokens, kCombineTopK},
                        RowIndex::kTokenOrder,
                        {residual.data(), tokens, hidden},
                        norm_weight};
    const auto vector = [&](size_t i) {
      return ConstAnyMatrix(Vector(i), 1, hidden);
    };
    if (form.block_norm) in.norms.block = vector(0);
    if (form.vectors) in.vectors = {vector(1), vector(2), vector(3), vector(4)};
    return in;
  }
  CombineOptions Options() const {
    CombineOptions options;
    options.norm = form.norm;
    options.scales = form.scales;
    return options;
  }
  Status Call(size_t /*slot*/, Executor& executor) {
    return Combine(In(),
                   {AnyMatrix(out.data(), tokens, hidden),
                    AnyMatrix(normed.data(), tokens, hidden)},
                   Options(), executor);
  }
  CombineMove Move(size_t begin, size_t end) {
    const size_t at = begin * hidden;
    return {rows.data() + at * kCombineTopK,
            nullptr,
            residual.data() + at,
            norm_weight.data(),
            out.data() + at,
            normed.data() + at,
            end - begin,
            hidden};
  }
  std::vector<Output> Wanted() {
    std::vector<Output> outputs = {Output(out, 1e-4), Output(normed, 1e-4)};
    for (size_t t = 0; t < tokens; ++t) {
      const auto row = reference::CombineForm(In(), Options(), t);
      Append(row.out, &outputs[0].floats);
      Append(row.normed, &outputs[1].floats);
    }
    return outputs;
  }

  // Computes the form by straightforward loops, as a rival.
  void Plain() {
    const CombineScales& s = form.scales;
    std::vector<float> block(hidden);
    const auto scale_of = [&](const float* row) {
      float squares = 0.0f;
      for (size_t h = 0; h < hidden; ++h) squares += row[h] * row[h];
      return 1.0f / std::sqrt(squares / static_cast<float>(hidden) + 1e-6f);
    };
    for (size_t t = 0; t < tokens; ++t) {
      std::fill(block.begin(), block.end(), 0.0f);
      for (size_t k = 0; k < kCombineTopK; ++k) {
        const size_t pair = t * kCombineTopK + k;
        const float* const row = rows.data() + pair * hidden;
        for (size_t h = 0; h < hidden; ++h) block[h] += weights[pair] * row[h];
      }
      if (form.block_norm) {
        const float scale = scale_of(block.data());
        for (size_t h = 0; h < hidden; ++h) block[h] *= scale * Vector(0)[h];
      }
      const float* const r = residual.data() + t * hidden;
      float* const o = out.data() + t * hidden;
      for (size_t h = 0; h < hidden; ++h) {
        o[h] = form.vectors ? (r[h] + Vector(3)[h]) * Vector(4)[h] +
                                  (block[h] + Vector(1)[h]) * Vector(2)[h]
                            : r[h] * s.residual + block[h] * s.block;
      }
      const float scale = scale_of(o);
      const float plus = form.norm == NormKind::kPlusOne ? 1.0f : 0.0f;
      for (size_t h = 0; h < hidden; ++h) {
        normed[t * hidden + h] = o[h] * scale * (norm_weight[h] + plus);
      }
    }
  }
};

auto Probe(void (*move)(const CombineMove&)) {
  return [move](Data& d, size_t /*slot*/, size_t begin, size_t end) {
    move(d.Move(begin, end));
  };
}

void Add(const Form& form, size_t tokens, size_t hidden) {
  const Facts facts = {std::string("combine_form/") + form.name +
                           "/T=" + std::to_string(tokens) +
                           "/H=" + std::to_string(hidden),
                       form.model, "row", static_cast<double>(tokens),
                       static_cast<double>(tokens * (kCombineTopK + 3) *
                                           hidden * sizeof(float))};
  Case<Data> contest(facts, [&form, tokens, hidden] {
    return std::make_unique<Data>(form, tokens, hidden);
  });
  contest.AddOurs(MainIsas(), {0, 1});
  contest.Add({"plain", {0, 1}},
              [](Data& d) { return [&d](size_t) { d.Plain(); }; });
  const Probes& probes = BestProbes();
  contest.AddProbe("probe:sequential", tokens, Probe(probes.sequential));
  contest.AddProbe("probe:interleaved", tokens, Probe(probes.interleaved));
  contest.AddProbe("probe:interleaved_prefetch", tokens,
                   Probe(probes.interleaved_prefetch));
}

const Registration registration([] {
  for (const Form& form : kForms) {
    for (const size_t tokens : {64u, 512u}) Add(form, tokens, 4096);
  }
});

}  // namespace
}  // namespace switchyard::bench
