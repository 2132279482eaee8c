// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>

#include "bench/contest.h"
#include "bench/inputs.h"
#include "bench/onednn.h"
#include "bench/plain.h"
#include "bench/probes.h"
#include "bench/shapes.h"
#include "switchyard/combine.h"
#include "testing/reference.h"

namespace switchyard {
namespace bench {
namespace {

constexpr float kEps = 1e-6f;
constexpr size_t kSlots = 4;  // of single tokens: together they fit a 2 MiB L2

struct Combine {
  size_t tokens, hidden, pairs, slots;
  bool indexed;
  Aligned<float> rows, weights, residual, norm_weight, out, normed;
  Aligned<int32_t> row_index;  // within the slot

  Combine(size_t t, size_t h, bool through_index, size_t s)
      : tokens(t),
        hidden(h),
        pairs(t * kCombineTopK),
        slots(s),
        indexed(through_index),
        rows(Floats(s * pairs * h, 5)),
        weights(Floats(s * pairs, 6, 1.0f)),
        residual(Floats(s * t * h, 7)),
        norm_weight(Floats(h, 8)),
        out(t * h),
        normed(t * h),
        row_index(s * pairs) {
    // As tokens of 128 experts are packed.
    const Aligned<int32_t> selected =
        SelectedExperts(s * t, 128, kCombineTopK, Spread::kUniform);
    for (size_t slot = 0; slot < s; ++slot) {
      const int32_t* const ids = selected.data() + slot * pairs;
      const std::vector<int32_t> packed =
          reference::Bucket(std::vector<int32_t>(ids, ids + pairs), 128)
              .row_index;
      std::copy(packed.begin(), packed.end(), row_index.data() + slot * pairs);
    }
  }

  CombineInputs Inputs(size_t slot) const {
    CombineInputs inputs;
    inputs.rows = {rows.data() + slot * pairs * hidden, pairs, hidden};
    inputs.weights = {weights.data() + slot * pairs, tokens, kCombineTopK};
    if (indexed) {
      inputs.row_index = {row_index.data() + slot * pairs, tokens,
                          kCombineTopK};
    }
    inputs.residual = {residual.data() + slot * tokens * hidden, tokens,
                       hidden};
    return inputs;
  }
  Matrix<float> Out() { return {out.data(), tokens, hidden}; }
  Matrix<float> Normed() { return {normed.data(), tokens, hidden}; }
  CombineMove Move(size_t slot) {
    const CombineInputs inputs = Inputs(slot);
    return {inputs.rows.data,
            inputs.row_index.data,
            inputs.residual.data,
            norm_weight.data(),
            out.data(),
            normed.data(),
            tokens,
            hidden};
  }

  std::vector<Output> Outputs() {
    Output want_out = {out.data(), out.size()};
    Output want_normed = {normed.data(), normed.size()};
    std::vector<double> sums(hidden);
    for (size_t slot = 0; slot < slots; ++slot) {
      const CombineInputs inputs = Inputs(slot);
      for (size_t t = 0; t < tokens; ++t) {
        const float* const base = inputs.residual.Row(t);
        sums.assign(base, base + hidden);
        for (size_t s = 0; s < kCombineTopK; ++s) {
          const size_t pair = t * kCombineTopK + s;
          const float* const row = inputs.rows.Row(
              indexed ? static_cast<size_t>(inputs.row_index.data[pair])
                      : pair);
          const double weight = static_cast<double>(inputs.weights.Row(t)[s]);
          for (size_t h = 0; h < hidden; ++h) {
            sums[h] += weight * static_cast<double>(row[h]);
          }
        }
        double squares = 0.0;
        for (const double sum : sums) squares += sum * sum;
        const double scale =
            1.0 / std::sqrt(squares / static_cast<double>(hidden) +
                            static_cast<double>(kEps));
        for (size_t h = 0; h < hidden; ++h) {
          want_out.floats.push_back(sums[h]);
          want_normed.floats.push_back(sums[h] * scale *
                                       static_cast<double>(norm_weight[h]));
        }
      }
    }
    return {want_out, want_normed};
  }
};

std::string Shape(size_t tokens, size_t hidden) {
  return "T=" + std::to_string(tokens) + "/H=" + std::to_string(hidden);
}

Contest Ours(const HiddenShape& shape, size_t tokens, bool indexed) {
  Contest contest;
  contest.kernel = indexed ? "combine_indexed" : "combine";
  contest.shape = Shape(tokens, shape.hidden);
  contest.model = shape.model;
  contest.units = static_cast<double>(tokens);
  // The rows, the residual, both outputs; the norm's weights stay close.
  contest.bytes =
      4.0 * static_cast<double>(tokens * shape.hidden * (kCombineTopK + 3));
  contest.slots = tokens == 1 ? kSlots : 1;
  const auto data =
      std::make_shared<Combine>(tokens, shape.hidden, indexed, contest.slots);
  Combine* const d = data.get();
  contest.data = data;
  contest.outputs = d->Outputs();
  AddOurs(contest, {0, 1}, [d](size_t slot, Executor& executor) {
    return WeightedSumRmsNorm(d->Inputs(slot),
                              {d->norm_weight.data(), d->hidden}, kEps,
                              d->Out(), d->Normed(), executor);
  });
  return contest;
}

Contest MakeCombine(const HiddenShape& shape, size_t tokens, bool indexed) {
  Contest contest = Ours(shape, tokens, indexed);
  Combine* const d = static_cast<Combine*>(contest.data.get());
  AddRival(contest, Kind::kPlain, "plain C++", {0, 1}, [d](size_t slot) {
    plain::WeightedSumRmsNorm(d->Inputs(slot), d->norm_weight.data(), kEps,
                              d->Out(), d->Normed());
  });
  if (!indexed) {
    AddRival(contest, Kind::kOneDnn, "oneDNN product, residual; no norm", {0},
             [d, sum = onednn::WeightedSum(tokens, kCombineTopK, d->hidden)](
                 size_t slot) {
               const CombineInputs inputs = d->Inputs(slot);
               sum(inputs.rows.data, inputs.weights.data, inputs.residual.data,
                   d->out.data());
             });
  }
  const Probes& probes = BestProbes();
  const auto probe = [&](const char* name, void (*move)(const CombineMove&)) {
    AddRival(contest, Kind::kProbe, name, {},
             [d, move](size_t slot) { move(d->Move(slot)); });
  };
  probe("probe, sequential", probes.sequential);
  probe("probe, sequential, prefetch", probes.sequential_prefetch);
  probe("probe, interleaved", probes.interleaved);
  probe("probe, interleaved, prefetch", probes.interleaved_prefetch);
  return contest;
}

}  // namespace

void RegisterCombine() {
  for (const bool indexed : {false, true}) {
    for (const HiddenShape& shape : kHiddens) {
      for (const size_t tokens : kCombineTokens) {
        Register(indexed ? "combine_indexed" : "combine",
                 Shape(tokens, shape.hidden),
                 [=] { return MakeCombine(shape, tokens, indexed); });
      }
    }
  }
  RegisterThreads("combine H=2048 k=8", {64, 512}, [](size_t tokens) {
    return Ours({"", 2048}, tokens, true);
  });
}

}  // namespace bench
}  // namespace switchyard
