// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/contest.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "switchyard/combine.h"
#include "testing/reference.h"

namespace switchyard::bench {
namespace {

constexpr size_t kSlots = 4;  // of single tokens: together they fit a 2 MiB L2

struct Data {
  size_t tokens, hidden, pairs;
  bool indexed;
  Aligned<float> rows, weights, residual, norm_weight, out, normed;
  std::vector<int32_t> row_index;  // within the slot

  Data(size_t t, size_t h, bool through_index, size_t slots)
      : tokens(t),
        hidden(h),
        pairs(t * kCombineTopK),
        indexed(through_index),
        rows(Floats(slots * pairs * h, 5)),
        weights(Floats(slots * pairs, 6, 1.0f)),
        residual(Floats(slots * t * h, 7)),
        norm_weight(Floats(h, 8)),
        out(t * h),
        normed(t * h) {
    // As tokens of 128 experts are packed.
    const Aligned<int32_t> ids =
        TopKIds(slots * t, 128, kCombineTopK, Spread::kUniform);
    for (size_t first = 0; first < ids.size(); first += pairs) {
      const int32_t* const slot = ids.data() + first;
      Append(reference::Bucket({slot, slot + pairs}, 128).row_index,
             &row_index);
    }
  }

  CombineInputs In(size_t slot) const {
    return {{rows.data() + slot * pairs * hidden, pairs, hidden},
            {weights.data() + slot * pairs, tokens, kCombineTopK},
            indexed ? RowIndex(Index(slot), tokens, kCombineTopK)
                    : RowIndex(RowIndex::kTokenOrder),
            {Residual(slot), tokens, hidden},
            norm_weight};
  }
  CombineOutputs Out() {
    return {{out.data(), tokens, hidden}, {normed.data(), tokens, hidden}};
  }
  const int32_t* Index(size_t slot) const {
    return row_index.data() + slot * pairs;
  }
  const float* Residual(size_t slot) const {
    return residual.data() + slot * tokens * hidden;
  }

  std::vector<Output> Wanted(size_t slots) {
    Output want_out(out), want_normed(normed);
    for (size_t slot = 0; slot < slots; ++slot) {
      for (size_t t = 0; t < tokens; ++t) {
        std::vector<double> sums;
        for (const reference::Sum& sum : reference::Combine(In(slot), t)) {
          sums.push_back(sum.value);
        }
        Append(sums, &want_out.floats);
        Append(reference::RmsNorm(sums, norm_weight,
                                  static_cast<double>(CombineOptions().eps)),
               &want_normed.floats);
      }
    }
    return {want_out, want_normed};
  }
};

Contest MakeCombine(const HiddenShape& shape, size_t tokens, bool indexed) {
  Contest contest = {shape.model, "row", static_cast<double>(tokens)};
  // The rows, the residual, both outputs; the norm's weights stay close.
  contest.bytes =
      4.0 * static_cast<double>(tokens * shape.hidden * (kCombineTopK + 3));
  contest.slots = tokens == 1 ? kSlots : 1;
  const auto d =
      std::make_shared<Data>(tokens, shape.hidden, indexed, contest.slots);
  contest.outputs = d->Wanted(contest.slots);
  AddOurs(contest, {0, 1}, [d](size_t slot, Executor& executor) {
    return Combine(d->In(slot), d->Out(), {}, executor);
  });
  AddRival(contest, Kind::kPlain, "plain C++", {0, 1}, [d](size_t slot) {
    plain::Combine(d->In(slot), d->Out(), CombineOptions().eps);
  });
  if (!indexed) {
    AddRival(contest, Kind::kOneDnn, "oneDNN product, residual; no norm", {0},
             [d, sum = onednn::WeightedSum(tokens, kCombineTopK, d->hidden)](
                 size_t slot) {
               sum(d->rows.data() + slot * d->pairs * d->hidden,
                   d->weights.data() + slot * d->pairs, d->Residual(slot),
                   d->out.data());
             });
  }
  const Probes& probes = BestProbes();
  const auto probe = [&](const char* name, void (*move)(const CombineMove&)) {
    AddRival(contest, Kind::kProbe, name, {}, [d, move](size_t slot) {
      move({d->rows.data() + slot * d->pairs * d->hidden,
            d->indexed ? d->Index(slot) : nullptr, d->Residual(slot),
            d->norm_weight.data(), d->out.data(), d->normed.data(), d->tokens,
            d->hidden});
    });
  };
  probe("probe, sequential", probes.sequential);
  probe("probe, sequential, prefetch", probes.sequential_prefetch);
  probe("probe, interleaved", probes.interleaved);
  probe("probe, interleaved, prefetch", probes.interleaved_prefetch);
  return contest;
}

const Registration registration(
    [] {
      for (const bool indexed : {false, true}) {
        for (const HiddenShape& shape : kHiddens) {
          for (const size_t tokens : kCombineTokens) {
            Register(indexed ? "combine_indexed" : "combine",
                     HiddenText(tokens, shape.hidden),
                     [=] { return MakeCombine(shape, tokens, indexed); });
          }
        }
      }
      RegisterThreads("combine H=2048 k=8", {64, 512}, [](size_t tokens) {
        return MakeCombine({"", 2048}, tokens, true);
      });
    },
    [](Table& table) {
      for (const char* kernel : {"combine", "combine_indexed"}) {
        for (const size_t tokens : kCombineTokens) {
          for (const HiddenShape& hidden : kHiddens) {
            const std::string shape = HiddenText(tokens, hidden.hidden);
            table.AtMost(1.05,
                         table.Ratio(kernel, shape, table.best, Kind::kProbe),
                         std::string(kernel) + ", " + shape + ", " +
                             table.best + " / the fastest probe");
          }
        }
      }
    });

}  // namespace
}  // namespace switchyard::bench
