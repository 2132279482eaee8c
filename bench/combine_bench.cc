// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "bench/bench.h"
#include "bench/ggml.h"
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

  Status Call(size_t slot, Executor& executor) {
    return Combine(In(slot), Out(), {}, executor);
  }
  // Tokens [begin, end).
  CombineMove Move(size_t slot, size_t begin, size_t end) {
    const size_t pair = begin * kCombineTopK, at = begin * hidden;
    const float* const from = rows.data() + slot * pairs * hidden;
    return {indexed ? from : from + pair * hidden,
            indexed ? Index(slot) + pair : nullptr,
            Residual(slot) + at,
            norm_weight.data(),
            out.data() + at,
            normed.data() + at,
            end - begin,
            hidden};
  }

  std::vector<Output> Wanted() {
    Output want_out(out), want_normed(normed);
    const size_t slots = weights.size() / pairs;
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

Facts FactsOf(const std::string& name, const char* model, size_t tokens,
              size_t hidden) {
  // The rows, the residual, both outputs; the norm's weights stay close.
  return {name,
          model,
          "row",
          static_cast<double>(tokens),
          4.0 * static_cast<double>(tokens * hidden * (kCombineTopK + 3)),
          tokens == 1 ? kSlots : 1};
}
Case<Data>::Make Make(size_t tokens, size_t hidden, bool indexed) {
  return [=] {
    return std::make_unique<Data>(tokens, hidden, indexed,
                                  tokens == 1 ? kSlots : 1);
  };
}

auto Probe(void (*move)(const CombineMove&)) {
  return [move](Data& d, size_t slot, size_t begin, size_t end) {
    move(d.Move(slot, begin, end));
  };
}

// The rows in token order, in which ggml's products write them.
Aligned<float> InTokenOrder(const Data& d) {
  Aligned<float> rows(d.rows.size());
  for (size_t i = 0; i < d.row_index.size(); ++i) {
    const size_t from =
        i / d.pairs * d.pairs + static_cast<size_t>(d.row_index[i]);
    std::copy_n(d.rows.data() + from * d.hidden, d.hidden,
                rows.data() + i * d.hidden);
  }
  return rows;
}

void AddGgml(Case<Data>& contest, size_t threads) {
  if (!ggml::Available()) return;
  contest.Add(ggml::Named(threads, {0, 1}), [threads](Data& d) {
    return
        [&d, own = d.indexed ? InTokenOrder(d) : Aligned<float>(),
         combine = ggml::Combine(d.tokens, kCombineTopK, d.hidden,
                                 CombineOptions().eps, threads)](size_t slot) {
          const float* const rows = d.indexed ? own.data() : d.rows.data();
          combine({rows + slot * d.pairs * d.hidden,
                   d.weights.data() + slot * d.pairs, d.Residual(slot),
                   d.norm_weight.data(), d.out.data(), d.normed.data()});
        };
  });
}

void Add(const HiddenShape& shape, size_t tokens, bool indexed) {
  const std::string kernel = indexed ? "combine_indexed/" : "combine/";
  Case<Data> contest(FactsOf(kernel + HiddenText(tokens, shape.hidden),
                             shape.model, tokens, shape.hidden),
                     Make(tokens, shape.hidden, indexed));
  contest.AddOurs(RunnableIsas(), {0, 1});
  contest.Add({"plain", {0, 1}}, [](Data& d) {
    return [&d](size_t slot) {
      plain::Combine(d.In(slot), d.Out(), CombineOptions().eps);
    };
  });
  if (!indexed) {
    // Product and residual, no norm.
    contest.Add({"onednn:no_norm", {0}}, [](Data& d) {
      return onednn::WeightedSum(
          d.tokens, kCombineTopK, d.hidden, d.weights.size() / d.pairs,
          d.rows.data(), d.weights.data(), d.residual.data(), d.out.data());
    });
    AddGgml(contest, 1);
  }
  const Probes& probes = BestProbes();
  contest.AddProbe("probe:sequential", tokens, Probe(probes.sequential));
  contest.AddProbe("probe:sequential_prefetch", tokens,
                   Probe(probes.sequential_prefetch));
  contest.AddProbe("probe:interleaved", tokens, Probe(probes.interleaved));
  contest.AddProbe("probe:interleaved_prefetch", tokens,
                   Probe(probes.interleaved_prefetch));
}

void AddOnThreads(const std::string& text, size_t tokens, bool idle) {
  Facts facts = FactsOf("combine/H=2048/k=8/" + text, "", tokens, 2048);
  facts.model = "T=" + std::to_string(tokens);
  AddThreads<Data>(facts, Make(tokens, 2048, true), {0, 1}, tokens,
                   Probe(BestProbes().interleaved), idle, AddGgml);
}

const Registration registration([] {
  for (const bool indexed : {false, true}) {
    for (const HiddenShape& shape : kHiddens) {
      for (const size_t tokens : kCombineTokens) Add(shape, tokens, indexed);
    }
  }
  AddOnThreads("30us", 35, true);
  AddOnThreads("100us", 105, true);
  AddOnThreads("T=64", 64, false);
  AddOnThreads("T=512", 512, false);
});

}  // namespace
}  // namespace switchyard::bench
