// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstring>

#include "bench/bench.h"
#include "bench/ggml.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "switchyard/gather.h"
#include "testing/reference.h"

namespace switchyard::bench {
namespace {

constexpr size_t kExperts = 128, kTopK = 8;

struct Gather {
  size_t hidden, tokens;
  Aligned<float> rows = Floats(tokens * hidden, 9);
  Aligned<int32_t> ids;
  std::vector<int32_t> pairs;
  Aligned<float> out = Aligned<float>(tokens * kTopK * hidden);

  Gather(size_t h, size_t t)
      : hidden(h),
        tokens(t),
        ids(TopKIds(t, kExperts, kTopK, Spread::kUniform)) {
    pairs = reference::Bucket({ids.data(), ids.data() + ids.size()}, kExperts)
                .pairs;
  }
  GatherInputs In() const {
    return {{rows.data(), tokens, hidden}, pairs, {ids.data(), tokens, kTopK}};
  }
  GatherOutputs Out() { return {{out.data(), pairs.size(), hidden}}; }
  Status Call(size_t, Executor& executor) {
    return GatherRows(In(), Out(), {}, executor);
  }
  std::vector<Output> Wanted() {
    Output want(out);
    want.ints.resize(out.size());  // the floats' bits
    for (size_t r = 0; r < pairs.size(); ++r) {
      std::memcpy(want.ints.data() + r * hidden,
                  rows.data() + static_cast<size_t>(pairs[r]) / kTopK * hidden,
                  hidden * sizeof(float));
    }
    return {want};
  }
};

Facts FactsOf(const std::string& name, const char* model, size_t hidden,
              size_t tokens) {
  const double pairs = static_cast<double>(tokens * kTopK);
  return {name, model, "row", pairs, 8.0 * pairs * static_cast<double>(hidden)};
}
Case<Gather>::Make Make(size_t hidden, size_t tokens) {
  return [=] { return std::make_unique<Gather>(hidden, tokens); };
}

// Reads the tokens in their order.
void Probe(Gather& d, size_t, size_t begin, size_t end) {
  for (size_t r = begin; r < end; ++r) {
    std::memcpy(d.out.data() + r * d.hidden,
                d.rows.data() + r / kTopK * d.hidden, d.hidden * sizeof(float));
  }
}

void Add(const HiddenShape& shape, size_t tokens) {
  Case<Gather> contest(FactsOf("gather/" + HiddenText(tokens, shape.hidden),
                               shape.model, shape.hidden, tokens),
                       Make(shape.hidden, tokens));
  contest.AddOurs(RunnableIsas(), {0});
  contest.Add({"plain", {0}}, [](Gather& d) {
    return [&d](size_t) { plain::GatherRows(d.In(), d.Out()); };
  });
  // On one thread however many it has.
  if (ggml::Available()) {
    contest.Add(ggml::Named(1, {0}), [](Gather& d) {
      std::vector<int32_t> index;
      for (const int32_t pair : d.pairs) {
        index.push_back(pair / static_cast<int32_t>(kTopK));
      }
      return [&d, index,
              gather = ggml::GatherRows(d.tokens, index.size(), d.hidden)](
                 size_t) { gather(d.rows.data(), index.data(), d.out.data()); };
    });
  }
  contest.AddProbe("probe", tokens * kTopK, Probe);
}

void AddOnThreads(const std::string& text, size_t tokens, bool idle) {
  Facts facts = FactsOf("gather/H=2048/k=8/" + text, "", 2048, tokens);
  facts.model = "T=" + std::to_string(tokens);
  AddThreads<Gather>(facts, Make(2048, tokens), {0}, tokens * kTopK, Probe,
                     idle);
}

const Registration registration([] {
  for (const HiddenShape& shape : kHiddens) {
    for (const size_t tokens : kCombineTokens) Add(shape, tokens);
  }
  AddOnThreads("30us", 40, true);
  AddOnThreads("100us", 110, true);
  AddOnThreads("T=64", 64, false);
  AddOnThreads("T=512", 512, false);
});

}  // namespace
}  // namespace switchyard::bench
