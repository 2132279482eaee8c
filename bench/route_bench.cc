// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/bench.h"
#include "bench/ggml.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "bench/rows.h"
#include "switchyard/route.h"
#include "testing/reference.h"

namespace switchyard::bench {
namespace {

// Calls of a single token rotate over this many rows, because the branch
// predictor would learn a row that repeats.
constexpr size_t kSlots = 256;
constexpr size_t kManyTokens = 512;

// A function that changes a row of logits.
using Change = std::function<void(float* row)>;

struct Route {
  Types types;
  size_t tokens, experts, top_k;
  RouteOptions options;
  Rows logits;  // [slots * tokens, experts]
  Aligned<int32_t> ids = Aligned<int32_t>(tokens * top_k);
  Aligned<float> weights = Aligned<float>(tokens * top_k);
  Rows probabilities = Rows(types.in, tokens, experts);  // used by oneDNN only

  Route(const RouterShape& shape, const Types& ty, size_t t, bool renormalize,
        const Change& change)
      : types(ty),
        tokens(t),
        experts(shape.experts),
        top_k(shape.top_k),
        options{renormalize},
        logits(Rows::Make(types.in, (t == 1 ? kSlots : 1) * t, experts, 1)) {
    for (size_t r = 0; r < logits.rows() && change; ++r) {
      change(logits.Data<float>(r));
    }
  }

  size_t slots() const { return logits.rows() / tokens; }
  RouteInputs In(size_t slot) const {
    return {logits.In(slot * tokens, tokens)};
  }
  RouteOutputs Out() {
    return {{ids.data(), tokens, top_k}, {weights.data(), tokens, top_k}};
  }
  Status Call(size_t slot, Executor& executor) {
    return RouteTopK(In(slot), Out(), options, executor);
  }

  // Returns the expected ids and weights, and the expected probabilities of all
  // experts.
  std::vector<Output> Wanted() {
    Output want_ids(ids), want_weights(weights, 1e-6);
    const std::vector<float> values = logits.Values();
    std::vector<double> close;
    for (size_t at = 0; at < values.size(); at += experts) {
      const float* const row = values.data() + at;
      const reference::Route want = reference::RouteRow(
          std::vector<float>(row, row + experts), top_k, options.renormalize,
          static_cast<double>(options.clamp));
      want_ids.AddExact(want.ids);
      Append(want.weights, &want_weights.floats);
      double sum = 0.0;
      for (size_t e = 0; e < experts; ++e) sum += std::exp(double{row[e]});
      for (size_t e = 0; e < experts; ++e) {
        close.push_back(std::exp(double{row[e]}) / sum);
      }
    }
    // Expects exactly the weights that the library computes for the same logits
    // in f32.
    if (!IsF32(types)) {
      std::vector<int32_t> same_ids(logits.rows() * top_k);
      std::vector<float> same(same_ids.size());
      Check(RouteTopK({{values.data(), logits.rows(), experts}},
                      {{same_ids.data(), logits.rows(), top_k},
                       {same.data(), logits.rows(), top_k}},
                      options));
      want_weights.AddExact(same);
    }
    Output want_probabilities(probabilities.Data(), probabilities.format().type,
                              tokens * experts, IsF32(types) ? 1e-6 : 0x1p-8);
    want_probabilities.floats = std::move(close);
    return {want_ids, want_weights, want_probabilities};
  }
};

Facts FactsOf(const std::string& name, const RouterShape& shape,
              const Types& types, size_t tokens) {
  const double units = static_cast<double>(tokens);
  const Rows row(types.in, 1, shape.experts);
  return {name,
          shape.model,
          "row",
          units,
          units * static_cast<double>(row.RowBytes() + 8 * shape.top_k),
          tokens == 1 ? kSlots : 1,
          Text(types)};
}
Case<Route>::Make Make(const RouterShape& shape, const Types& types,
                       size_t tokens, bool renormalize = true,
                       const Change& change = {}) {
  return [=] {
    return std::make_unique<Route>(shape, types, tokens, renormalize, change);
  };
}

void Probe(Route& d, size_t slot, size_t begin, size_t end) {
  const Probes& probes = BestProbes();
  const size_t rows = end - begin;
  probes.move(d.logits.Data(slot * d.tokens + begin),
              rows * d.logits.RowBytes() / sizeof(float),
              d.ids.data() + begin * d.top_k, rows * d.top_k);
  probes.move(nullptr, 0, d.weights.data() + begin * d.top_k, rows * d.top_k);
}

// Checks ids that ggml has sorted by probabilities. If logits are so close that
// their probabilities are equal, their ids may be in any order.
void CheckIds(const Route& d, size_t slot, const std::vector<int32_t>& ids) {
  for (size_t t = 0; t < d.tokens; ++t) {
    const float* const row = d.logits.Data<float>(slot * d.tokens + t);
    const int32_t* const got = ids.data() + t * d.top_k;
    const std::vector<int32_t> want =
        reference::RouteRow({row, row + d.experts}, d.top_k, true, 0.0).ids;
    for (size_t i = 0; i < d.top_k; ++i) {
      if (got[i] < 0 || got[i] >= static_cast<int32_t>(d.experts) ||
          !(std::fabs(row[got[i]] - row[want[i]]) < 1e-6f) ||
          std::find(got, got + i, got[i]) != got + i) {
        throw std::runtime_error("id " + std::to_string(i) + " of row " +
                                 std::to_string(t) + " is " +
                                 std::to_string(got[i]) + " instead of " +
                                 std::to_string(want[i]));
      }
    }
  }
}

void AddGgml(Case<Route>& contest, size_t threads) {
  if (!ggml::Available()) return;
  contest.Add(ggml::Named(threads, {1}), [threads](Route& d) {
    const ggml::Router router = ggml::Route(d.tokens, d.experts, d.top_k,
                                            d.options.renormalize, threads);
    std::vector<int32_t> ids(d.ids.size());
    for (size_t slot = 0; slot < d.slots(); ++slot) {
      router.run(d.logits.Data<float>(slot * d.tokens), d.weights.data());
      router.ids(ids.data());
      CheckIds(d, slot, ids);
    }
    return [&d, run = router.run](size_t slot) {
      run(d.logits.Data<float>(slot * d.tokens), d.weights.data());
    };
  });
}

void Add(const RouterShape& shape, size_t tokens, bool renormalize,
         const Types& types) {
  const std::string kernel = renormalize ? "route/" : "route_unnormalised/";
  Case<Route> contest(
      FactsOf(kernel + RouterText(shape.experts, shape.top_k, tokens), shape,
              types, tokens),
      Make(shape, types, tokens, renormalize));
  contest.AddOurs(IsasFor(types), {0, 1});
  const std::string text = Text(types);
  const bool bf16 = text == "bf16";
  if (text.empty() || bf16) {
    contest.Add({"plain", {0, 1}}, [](Route& d) {
      return [&d](size_t slot) {
        plain::RouteTopK(d.In(slot), d.Out(), d.options.renormalize);
      };
    });
  }
  if (text.empty() || (bf16 && onednn::SupportsBf16())) {
    contest.Add({"onednn:softmax", {2}}, [](Route& d) {
      return onednn::Softmax(d.logits.format().type, d.tokens, d.experts,
                             d.slots(), d.logits.Data(),
                             d.probabilities.Data());
    });
  }
  if (text.empty()) AddGgml(contest, 1);
  contest.AddProbe("probe", tokens, Probe);
}

// Adds cases with many numbers of experts and the same top_k. Their times are
// per expert.
void AddAnyExperts(size_t top_k) {
  std::set<size_t> counts;
  for (const OddExperts& odd : kOddExperts) {
    counts.insert({odd.experts, odd.power_of_two});
  }
  for (const size_t experts : counts) {
    const RouterShape shape = {"", experts, top_k};
    Facts facts = FactsOf("route_experts/k=" + std::to_string(top_k) +
                              "/E=" + std::to_string(experts),
                          shape, kF32, kManyTokens);
    facts.unit = "expert of a row";
    facts.units *= static_cast<double>(experts);
    Case<Route>(facts, Make(shape, kF32, kManyTokens))
        .AddOurs(MainIsas(), {0, 1});
  }
}

// Adds cases with rows of logits that are hard for selection by thresholds or
// branches.
void AddHardRows(const RouterShape& shape) {
  const size_t experts = shape.experts;
  const std::pair<const char*, Change> rows[] = {
      {"random", {}},
      {"all_equal", [=](float* row) { std::fill(row, row + experts, 1.0f); }},
      {"sorted_up", [=](float* row) { std::sort(row, row + experts); }},
      {"sorted_down",
       [=](float* row) {
         std::sort(row, row + experts, [](float a, float b) { return a > b; });
       }},
      {"two_values",
       [=](float* row) {
         for (size_t e = 0; e < experts; ++e) {
           row[e] = row[e] < 0.0f ? -1.0f : 1.0f;
         }
       }},
      {"spread_over_200",
       [=](float* row) {
         for (size_t e = 0; e < experts; ++e) row[e] *= 25.0f;
       }},
  };
  for (const auto& [name, change] : rows) {
    Case<Route>(FactsOf("route_rows/E=" + std::to_string(experts) +
                            "/k=" + std::to_string(shape.top_k) + "/" + name,
                        shape, kF32, kManyTokens),
                Make(shape, kF32, kManyTokens, true, change))
        .AddOurs(MainIsas(), {0, 1});
  }
}

void AddOnThreads(const std::string& text, size_t tokens, bool idle) {
  const RouterShape shape = {"", 128, 8};
  Facts facts = FactsOf("route/E=128/k=8/" + text, shape, kF32, tokens);
  facts.model = "T=" + std::to_string(tokens);
  AddThreads<Route>(facts, Make(shape, kF32, tokens), {0, 1}, tokens, Probe,
                    idle, AddGgml);
}

const Registration registration([] {
  for (const RouterShape& shape : kRouters) {
    for (const size_t tokens : kRouteTokens) {
      for (const Types& types : kRouteTypes) Add(shape, tokens, true, types);
    }
  }
  for (const RouterShape& shape : kUnnormalisedRouters) {
    Add(shape, kManyTokens, false, kF32);
  }
  for (const size_t top_k : kTopKs) AddAnyExperts(top_k);
  for (const RouterShape& shape : kRouters) AddHardRows(shape);
  AddOnThreads("30us", 1024, true);
  AddOnThreads("100us", 3300, true);
  for (const size_t tokens : {size_t{64}, size_t{512}, size_t{4096}}) {
    AddOnThreads("T=" + std::to_string(tokens), tokens, false);
  }
});

const Registration asked([](const LayerShape& shape) {
  for (const Types& types : kRouteTypes) {
    Add({"", shape.experts, shape.top_k}, shape.tokens, true, types);
  }
});

}  // namespace
}  // namespace switchyard::bench
