// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "bench/bench.h"
#include "bench/ggml.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "bench/rows.h"
#include "switchyard/combine.h"
#include "testing/floats.h"
#include "testing/reference.h"
#include "testing/reference_combine.h"
#include "testing/reference_rows.h"

namespace switchyard::bench {
namespace {

// Calls of a single token rotate over this many inputs. All inputs together fit
// in an L2 cache of 2 MiB.
constexpr size_t kSlots = 4;

// Makes weights that bf16 holds exactly, because oneDNN takes the weights in
// bf16 if the rows are bf16.
Aligned<float> WeightsOf(const Types& types, size_t size) {
  Aligned<float> weights = Floats(size, 6, 1.0f);
  for (size_t i = 0; i < size && !IsF32(types); ++i) {
    weights[i] =
        testing_support::Widen(testing_support::Round<BFloat16>(weights[i]));
  }
  return weights;
}

struct Data {
  Types types;
  size_t tokens, hidden, top_k, pairs, slots;
  bool indexed;
  Rows rows, residual, out, normed;
  Aligned<float> weights, norm_weight;
  std::vector<int32_t> row_index;  // each slot counts its rows from 0

  Data(const Types& ty, size_t t, size_t h, size_t k, bool through_index)
      : types(ty),
        tokens(t),
        hidden(h),
        top_k(k),
        pairs(t * k),
        slots(t == 1 ? kSlots : 1),
        indexed(through_index),
        rows(Rows::Make(types.in, slots * pairs, h, 5)),
        residual(Rows::Make(types.in, slots * t, h, 7)),
        out(types.in, t, h),
        normed(types.out, t, h),
        weights(WeightsOf(types, slots * pairs)),
        norm_weight(Floats(h, 8)) {
    // The rows are packed as if there were 128 experts.
    const size_t experts = std::max<size_t>(k, 128);
    const Aligned<int32_t> ids =
        TopKIds(slots * t, experts, k, Spread::kUniform);
    for (size_t first = 0; first < ids.size(); first += pairs) {
      const int32_t* const slot = ids.data() + first;
      Append(reference::Bucket({slot, slot + pairs}, experts).row_index,
             &row_index);
    }
  }

  CombineInputs In(size_t slot) const {
    return In(slot, rows.In(slot * pairs, pairs),
              residual.In(slot * tokens, tokens));
  }
  CombineInputs In(size_t slot, const ConstAnyRows& experts_rows,
                   const ConstAnyRows& residual_rows) const {
    return {experts_rows,
            {weights.data() + slot * pairs, tokens, top_k},
            indexed ? RowIndex(Index(slot), tokens, top_k)
                    : RowIndex(RowIndex::kTokenOrder),
            residual_rows,
            norm_weight};
  }
  CombineOutputs Out() { return {out.Out(), normed.Out()}; }
  const int32_t* Index(size_t slot) const {
    return row_index.data() + slot * pairs;
  }

  Status Call(size_t slot, Executor& executor) {
    return Combine(In(slot), Out(), {}, executor);
  }
  // Returns the probe's arguments for tokens [begin, end). The probe moves f32
  // values, so two bf16 values count as one f32.
  CombineMove Move(size_t slot, size_t begin, size_t end) {
    const size_t pair = begin * top_k;
    const size_t from = slot * pairs + (indexed ? 0 : pair);
    return {rows.Data<float>(from),
            indexed ? Index(slot) + pair : nullptr,
            residual.Data<float>(slot * tokens + begin),
            norm_weight.data(),
            out.Data<float>(begin),
            normed.Data<float>(begin),
            end - begin,
            rows.RowBytes() / sizeof(float)};
  }

  std::vector<Output> Wanted() {
    std::vector<float> sums, norms;
    std::vector<double> close_sums, close_norms;
    for (size_t slot = 0; slot < slots; ++slot) {
      const std::vector<float> values = rows.Values(slot * pairs, pairs);
      const std::vector<float> residuals =
          residual.Values(slot * tokens, tokens);
      const CombineInputs in =
          In(slot, ConstAnyMatrix(values.data(), pairs, hidden),
             ConstAnyMatrix(residuals.data(), tokens, hidden));
      for (size_t t = 0; t < tokens; ++t) {
        const auto row = reference::CombineForm(in, {}, t);
        Append(row.out, &close_sums);
        Append(row.normed, &close_norms);
      }
      if (IsF32(types)) continue;
      sums.resize((slot + 1) * tokens * hidden);
      norms.resize(sums.size());
      const size_t at = slot * tokens * hidden;
      Check(Combine(in, {AnyMatrix(&sums[at], tokens, hidden),
                         AnyMatrix(&norms[at], tokens, hidden)}));
    }
    std::vector<Output> outputs;
    const size_t count = sums.size() / hidden;
    out.AddWanted(reference::Quantize(sums, count, hidden, out.format()),
                  close_sums, &outputs);
    normed.AddWanted(reference::Quantize(norms, count, hidden, normed.format()),
                     close_norms, &outputs);
    return outputs;
  }
};

Facts FactsOf(const std::string& name, const char* model, const Types& types,
              size_t tokens, size_t hidden, size_t top_k) {
  // Counts the rows, the residual and both outputs. It does not count the
  // norm's weights, because they stay in a near cache.
  const Rows row(types.in, 1, hidden), normed(types.out, 1, hidden);
  return {name,
          model,
          "row",
          static_cast<double>(tokens),
          static_cast<double>(
              tokens * ((top_k + 2) * row.RowBytes() + normed.RowBytes())),
          tokens == 1 ? kSlots : 1,
          Text(types)};
}
Case<Data>::Make Make(const Types& types, size_t tokens, size_t hidden,
                      size_t top_k, bool indexed) {
  return [=] {
    return std::make_unique<Data>(types, tokens, hidden, top_k, indexed);
  };
}

auto Probe(void (*move)(const CombineMove&)) {
  return [move](Data& d, size_t slot, size_t begin, size_t end) {
    move(d.Move(slot, begin, end));
  };
}

// Returns the rows in token order, as ggml's products write them.
Aligned<float> InTokenOrder(const Data& d) {
  Aligned<float> rows(d.slots * d.pairs * d.hidden);
  for (size_t i = 0; i < d.row_index.size(); ++i) {
    const size_t from =
        i / d.pairs * d.pairs + static_cast<size_t>(d.row_index[i]);
    std::copy_n(d.rows.Data<float>(from), d.hidden, rows.data() + i * d.hidden);
  }
  return rows;
}

void AddGgml(Case<Data>& contest, size_t threads) {
  if (!ggml::Available()) return;
  contest.Add(ggml::Named(threads, {0, 1}), [threads](Data& d) {
    return [&d, own = d.indexed ? InTokenOrder(d) : Aligned<float>(),
            combine =
                ggml::Combine(d.tokens, d.top_k, d.hidden, CombineOptions().eps,
                              threads)](size_t slot) {
      const float* const rows = d.indexed ? own.data() : d.rows.Data<float>();
      combine({rows + slot * d.pairs * d.hidden,
               d.weights.data() + slot * d.pairs,
               d.residual.Data<float>(slot * d.tokens), d.norm_weight.data(),
               d.out.Data<float>(), d.normed.Data<float>()});
    };
  });
}

// Adds oneDNN's weighted sum plus residual, without a norm. oneDNN needs the
// weights in the type of the rows.
void AddOneDnn(Case<Data>& contest) {
  contest.Add({"onednn:no_norm", {0}}, [](Data& d) {
    const auto weights =
        std::make_shared<Rows>(d.types.in, d.slots * d.tokens, d.top_k);
    Store(reference::Quantize(
              {d.weights.data(), d.weights.data() + d.weights.size()},
              weights->rows(), d.top_k, weights->format()),
          weights->Out());
    return [weights, weighted_sum = onednn::WeightedSum(
                         d.rows.format().type, d.tokens, d.top_k, d.hidden,
                         d.slots, d.rows.Data(), weights->Data(),
                         d.residual.Data(), d.out.Data())](size_t slot) {
      weighted_sum(slot);
    };
  });
}

void Add(const HiddenShape& shape, size_t tokens, bool indexed,
         const Types& types, size_t top_k = kCombineTopK) {
  const std::string kernel = indexed ? "combine_indexed/" : "combine/";
  Case<Data> contest(FactsOf(kernel + HiddenText(tokens, shape.hidden, top_k),
                             shape.model, types, tokens, shape.hidden, top_k),
                     Make(types, tokens, shape.hidden, top_k, indexed));
  contest.AddOurs(IsasFor(types), AllOutputs(types.out, 1));
  const std::string text = Text(types);
  const bool bf16 = text == "bf16";
  // The plain loops and the probes support only this top_k.
  const bool usual = top_k == kCombineTopK;
  if (usual && (text.empty() || bf16)) {
    contest.Add({"plain", {0, 1}}, [](Data& d) {
      return [&d](size_t slot) {
        plain::Combine(d.In(slot), d.Out(), CombineOptions().eps);
      };
    });
  }
  if (!indexed && (text.empty() || (bf16 && onednn::SupportsBf16()))) {
    AddOneDnn(contest);
  }
  if (!indexed && text.empty()) AddGgml(contest, 1);
  if (Converts(types) || !usual) return;
  const Probes& probes = BestProbes();
  contest.AddProbe("probe:sequential", tokens, Probe(probes.sequential));
  contest.AddProbe("probe:sequential_prefetch", tokens,
                   Probe(probes.sequential_prefetch));
  contest.AddProbe("probe:interleaved", tokens, Probe(probes.interleaved));
  contest.AddProbe("probe:interleaved_prefetch", tokens,
                   Probe(probes.interleaved_prefetch));
}

void AddOnThreads(const std::string& text, size_t tokens, bool idle) {
  Facts facts = FactsOf("combine/H=2048/k=8/" + text, "", kF32, tokens, 2048,
                        kCombineTopK);
  facts.model = "T=" + std::to_string(tokens);
  AddThreads<Data>(facts, Make(kF32, tokens, 2048, kCombineTopK, true), {0, 1},
                   tokens, Probe(BestProbes().interleaved), idle, AddGgml);
}

const Registration registration([] {
  for (const bool indexed : {false, true}) {
    for (const HiddenShape& shape : kHiddens) {
      for (const size_t tokens : kCombineTokens) {
        for (const Types& types : kCombineTypes) {
          // Times conversions with one order of rows only, because the order
          // does not change how sums are converted and written.
          if (indexed && Converts(types)) continue;
          Add(shape, tokens, indexed, types);
        }
      }
    }
  }
  AddOnThreads("30us", 35, true);
  AddOnThreads("100us", 105, true);
  AddOnThreads("T=64", 64, false);
  AddOnThreads("T=512", 512, false);
});

const Registration asked([](const LayerShape& shape) {
  for (const Types& types : kCombineTypes) {
    Add({"", shape.hidden}, shape.tokens, !Converts(types), types, shape.top_k);
  }
});

}  // namespace
}  // namespace switchyard::bench
