// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstring>

#include "bench/bench.h"
#include "bench/ggml.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "bench/rows.h"
#include "switchyard/gather.h"
#include "switchyard/quantize.h"
#include "testing/reference.h"
#include "testing/reference_rows.h"

namespace switchyard::bench {
namespace {

struct Gather {
  Types types;
  size_t hidden, tokens, top_k;
  Rows rows = Rows::Make(types.in, tokens, hidden, 9);
  Aligned<int32_t> ids;
  std::vector<int32_t> pairs, row_index;
  Rows out = Rows(types.out, tokens* top_k, hidden);
  Aligned<unsigned char> once =  // used by probes only
      Aligned<unsigned char>(tokens * out.CodeBytes());

  Gather(const Types& ty, const LayerShape& shape)
      : types(ty),
        hidden(shape.hidden),
        tokens(shape.tokens),
        top_k(shape.top_k),
        ids(TopKIds(tokens, shape.experts, top_k, Spread::kUniform)) {
    const reference::Buckets buckets =
        reference::Bucket({ids.data(), ids.data() + ids.size()}, shape.experts);
    pairs = buckets.pairs;
    row_index = buckets.row_index;
  }
  // Returns the inputs. If the call converts tokens, the inputs have row_index,
  // so that the library converts each token once.
  GatherInputs In() const {
    GatherInputs in = InWithoutIndex();
    if (Converts(types)) in.row_index = {row_index.data(), tokens, top_k};
    return in;
  }
  GatherInputs InWithoutIndex() const {
    return {rows.In(), pairs, {ids.data(), tokens, top_k}};
  }
  GatherOutputs Out() { return {out.Out()}; }
  Status Call(size_t, Executor& executor) {
    return GatherRows(In(), Out(), {}, executor);
  }
  // Moves a token's bytes: reads the token and fills row `row` of `once`.
  void ReadToken(size_t token, size_t row) {
    BestProbes().move(rows.Data(token), rows.CodeBytes() / sizeof(float),
                      once.data() + row * out.CodeBytes(),
                      out.CodeBytes() / sizeof(float));
  }
  std::vector<Output> Wanted() {
    std::vector<int64_t> from;
    for (const int32_t pair : pairs) {
      from.push_back(pair / static_cast<int32_t>(top_k));
    }
    std::vector<Output> outputs;
    out.AddWanted(
        reference::Pick(reference::Quantize(rows.Bytes(), out.format()), from),
        {}, &outputs);
    return outputs;
  }
};

// Describes the case. A call that converts tokens reads each token once; other
// calls read a token once for each copy.
Facts FactsOf(const std::string& name, const char* model, const Types& types,
              const LayerShape& shape) {
  const size_t pairs = shape.tokens * shape.top_k;
  const Rows in(types.in, 1, shape.hidden), out(types.out, 1, shape.hidden);
  const size_t reads = Converts(types) ? shape.tokens : pairs;
  return {name,
          model,
          "row",
          static_cast<double>(pairs),
          static_cast<double>(reads * in.RowBytes() + pairs * out.RowBytes()),
          1,
          Text(types)};
}
Case<Gather>::Make Make(const Types& types, const LayerShape& shape) {
  return [=] { return std::make_unique<Gather>(types, shape); };
}

// Copies the tokens in order.
void Probe(Gather& d, size_t, size_t begin, size_t end) {
  const size_t bytes = d.out.RowBytes();
  for (size_t r = begin; r < end; ++r) {
    std::memcpy(d.out.Data(r), d.rows.Data(r / d.top_k), bytes);
  }
}

// The probes below read each token once, and copy a row for each pair of the
// token and a selected expert. ProbeInOrder() copies to consecutive rows, as if
// the packed order were the order of the tokens.
void ProbeInOrder(Gather& d, size_t, size_t begin, size_t end) {
  for (size_t t = begin; t < end; ++t) {
    d.ReadToken(t, 0);
    for (size_t pair = t * d.top_k; pair < (t + 1) * d.top_k; ++pair) {
      std::memcpy(d.out.Data(pair), d.once.data(), d.out.CodeBytes());
    }
  }
}
// Copies each row to the place of its pair in the packed order.
void ProbeScattered(Gather& d, size_t, size_t begin, size_t end) {
  for (size_t t = begin; t < end; ++t) {
    d.ReadToken(t, 0);
    for (size_t pair = t * d.top_k; pair < (t + 1) * d.top_k; ++pair) {
      std::memcpy(d.out.Data(static_cast<size_t>(d.row_index[pair])),
                  d.once.data(), d.out.CodeBytes());
    }
  }
}
// Reads all tokens first, and then copies rows in packed order. This probe
// always moves all rows, so it cannot run on two threads.
void ProbeGathered(Gather& d, size_t, size_t, size_t) {
  const size_t bytes = d.out.CodeBytes();
  for (size_t t = 0; t < d.tokens; ++t) d.ReadToken(t, t);
  for (size_t r = 0; r < d.pairs.size(); ++r) {
    const size_t token = static_cast<size_t>(d.pairs[r]) / d.top_k;
    std::memcpy(d.out.Data(r), d.once.data() + token * bytes, bytes);
  }
}

void AddGgml(Case<Gather>& contest) {
  // Adds ggml on one thread only, because ggml copies rows on one thread.
  if (!ggml::Available()) return;
  contest.Add(ggml::Named(1, {0}), [](Gather& d) {
    std::vector<int32_t> index;
    for (const int32_t pair : d.pairs) {
      index.push_back(pair / static_cast<int32_t>(d.top_k));
    }
    return
        [&d, index,
         gather = ggml::GatherRows(d.tokens, index.size(), d.hidden)](size_t) {
          gather(d.rows.Data<float>(), index.data(), d.out.Data<float>());
        };
  });
}

// Adds other ways to convert rows. In each_row, the library converts each
// packed row by itself. In two_calls, the library converts all tokens first. In
// engine, plain loops gather and then convert, as engines do.
void AddOtherWays(Case<Gather>& contest, const Types& types) {
  const std::vector<size_t> all = AllOutputs(types.out);
  for (const Isa& isa : MainIsas()) {
    const std::string name = isa.name;
    contest.Add({name + ":each_row", all, name, isa.fma}, [](Gather& d) {
      return [&d](size_t) { Check(GatherRows(d.InWithoutIndex(), d.Out())); };
    });
    contest.Add({name + ":two_calls", all, name, isa.fma}, [](Gather& d) {
      const auto once = std::make_shared<Rows>(d.types.out, d.tokens, d.hidden);
      return [&d, once](size_t) {
        Check(Quantize({d.rows.In()}, {once->Out()}));
        GatherInputs in = d.InWithoutIndex();
        in.tokens = once->In();
        Check(GatherRows(in, d.Out()));
      };
    });
  }
  contest.Add({"engine", all}, [](Gather& d) {
    const auto packed =
        std::make_shared<Rows>(d.types.in, d.pairs.size(), d.hidden);
    return [&d, packed](size_t) {
      plain::GatherRows(d.InWithoutIndex(), {packed->Out()});
      plain::Quantize({packed->In()}, {d.out.Out()});
    };
  });
}

void Add(const char* model, const LayerShape& shape, const Types& types) {
  const size_t tokens = shape.tokens;
  Case<Gather> contest(
      FactsOf("gather/" + HiddenText(tokens, shape.hidden, shape.top_k), model,
              types, shape),
      Make(types, shape));
  contest.AddOurs(IsasFor(types), AllOutputs(types.out));
  if (Converts(types)) {
    AddOtherWays(contest, types);
    contest.AddProbe("probe:in_order", tokens, ProbeInOrder);
    contest.AddProbe("probe:scattered", tokens, ProbeScattered);
    contest.AddProbe("probe:gathered", tokens, ProbeGathered);
    return;
  }
  contest.Add({"plain", {0}}, [](Gather& d) {
    return [&d](size_t) { plain::GatherRows(d.In(), d.Out()); };
  });
  if (IsF32(types)) AddGgml(contest);
  contest.AddProbe("probe", tokens * shape.top_k, Probe);
}

LayerShape ShapeOf(size_t hidden, size_t tokens) {
  LayerShape shape;
  shape.hidden = hidden;
  shape.tokens = tokens;
  return shape;
}

void AddOnThreads(const std::string& text, size_t tokens, bool idle) {
  const LayerShape shape = ShapeOf(2048, tokens);
  Facts facts = FactsOf("gather/H=2048/k=8/" + text, "", kF32, shape);
  facts.model = "T=" + std::to_string(tokens);
  AddThreads<Gather>(facts, Make(kF32, shape), {0}, tokens * shape.top_k, Probe,
                     idle);
}

const Registration registration([] {
  for (const HiddenShape& shape : kHiddens) {
    for (const size_t tokens : kCombineTokens) {
      for (const Types& types : kGatherTypes) {
        // Times conversions at one width only, because one width shows the
        // cost.
        const bool first = shape.hidden == kHiddens[0].hidden;
        if (!first && Converts(types)) continue;
        Add(shape.model, ShapeOf(shape.hidden, tokens), types);
      }
    }
  }
  AddOnThreads("30us", 40, true);
  AddOnThreads("100us", 110, true);
  AddOnThreads("T=64", 64, false);
  AddOnThreads("T=512", 512, false);
});

const Registration asked([](const LayerShape& shape) {
  for (const Types& types : kGatherTypes) {
    if (Fit(types, shape.hidden)) Add("", shape, types);
  }
});

}  // namespace
}  // namespace switchyard::bench
