// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/contest.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "switchyard/route.h"
#include "testing/reference.h"

namespace switchyard::bench {
namespace {

// One token at a time is taken from this many: a row that repeats is learnt by
// the branch predictor.
constexpr size_t kSlots = 256;

struct Route {
  size_t tokens, experts, top_k;
  RouteOptions options;
  Aligned<float> logits;  // [slots * tokens, experts]
  Aligned<int32_t> ids = Aligned<int32_t>(tokens * top_k);
  Aligned<float> weights = Aligned<float>(tokens * top_k);

  Route(size_t t, size_t e, size_t k, bool renormalize = true, size_t slots = 1)
      : tokens(t),
        experts(e),
        top_k(k),
        options{renormalize},
        logits(Floats(slots * t * e, 1)) {}

  const float* Logits(size_t slot) const {
    return logits.data() + slot * tokens * experts;
  }
  RouteInputs In(size_t slot) const {
    return {{Logits(slot), tokens, experts}};
  }
  RouteOutputs Out() {
    return {{ids.data(), tokens, top_k}, {weights.data(), tokens, top_k}};
  }
  Status Call(size_t slot, Executor& executor) {
    return RouteTopK(In(slot), Out(), options, executor);
  }
  double Bytes() const {
    return static_cast<double>(tokens) * (4.0 * static_cast<double>(experts) +
                                          8.0 * static_cast<double>(top_k));
  }

  // ids and weights as they should be.
  std::vector<Output> Wanted() {
    Output want_ids(ids), want_weights(weights, 1e-6);
    for (size_t r = 0; r < logits.size() / experts; ++r) {
      const float* const row = logits.data() + r * experts;
      const reference::Route want = reference::RouteRow(
          std::vector<float>(row, row + experts), top_k, options.renormalize,
          static_cast<double>(options.clamp));
      Append(want.ids, &want_ids.ints);
      Append(want.weights, &want_weights.floats);
    }
    return {want_ids, want_weights};
  }
};

// oneDNN's softmax alone, into a matrix of its own.
void AddSoftmax(Contest& contest, const std::shared_ptr<Route>& d) {
  const auto probabilities =
      std::make_shared<Aligned<float>>(d->tokens * d->experts);
  Output want(*probabilities, 1e-6);
  for (size_t at = 0; at < d->logits.size(); at += d->experts) {
    double sum = 0.0;
    const auto exp = [&](size_t e) {
      return std::exp(static_cast<double>(d->logits[at + e]));
    };
    for (size_t e = 0; e < d->experts; ++e) sum += exp(e);
    for (size_t e = 0; e < d->experts; ++e) {
      want.floats.push_back(exp(e) / sum);
    }
  }
  contest.outputs.push_back(want);
  AddRival(
      contest, Kind::kOneDnn, "oneDNN softmax alone", {2},
      [d, probabilities, softmax = onednn::Softmax(d->tokens, d->experts)](
          size_t slot) { softmax(d->Logits(slot), probabilities->data()); });
}

Contest MakeRoute(const RouterShape& shape, size_t tokens, bool renormalize) {
  Contest contest = {shape.model, "row", static_cast<double>(tokens)};
  contest.slots = tokens == 1 ? kSlots : 1;
  const auto d = std::make_shared<Route>(tokens, shape.experts, shape.top_k,
                                         renormalize, contest.slots);
  contest.bytes = d->Bytes();
  contest.outputs = d->Wanted();
  AddOurs(contest, {0, 1}, [d](size_t slot, Executor& executor) {
    return d->Call(slot, executor);
  });
  AddRival(contest, Kind::kPlain, "plain C++", {0, 1}, [d](size_t slot) {
    plain::RouteTopK(d->In(slot), d->Out(), d->options.renormalize);
  });
  AddSoftmax(contest, d);
  AddRival(contest, Kind::kProbe, "probe", {}, [d](size_t slot) {
    const Probes& probes = BestProbes();
    probes.move(d->Logits(slot), d->tokens * d->experts, d->ids.data(),
                d->ids.size());
    probes.move(nullptr, 0, d->weights.data(), d->weights.size());
  });
  return contest;
}

// Contenders that differ in their rows: routers of one ISA.
void AddRoute(Contest& contest, const std::string& name, const std::string& isa,
              const std::shared_ptr<Route>& route, size_t units) {
  Contender contender = {
      name,
      Kind::kOurs,
      {Repeat([route] { Check(route->Call(0, SerialExecutor())); }),
       [isa] { Check(CapIsa(isa.c_str())); }}};
  contender.units = static_cast<double>(units);
  contender.bytes = route->Bytes();
  for (Output& output : route->Wanted()) {
    contender.writes.push_back(contest.outputs.size());
    contest.outputs.push_back(output);
  }
  contest.contenders.push_back(contender);
}

constexpr size_t kManyTokens = 512;

// Any number of experts at the same k, per expert.
Contest MakeAnyExperts(const std::string& isa, size_t top_k) {
  Contest contest;
  contest.unit = "expert of a row";
  std::set<size_t> counts;
  for (const OddExperts& odd : kOddExperts) {
    counts.insert({odd.experts, odd.power_of_two});
  }
  for (const size_t experts : counts) {
    AddRoute(contest, "E=" + std::to_string(experts), isa,
             std::make_shared<Route>(kManyTokens, experts, top_k),
             kManyTokens * experts);
  }
  return contest;
}

// Rows that are hard on a selection by thresholds or branches.
Contest MakeWorstRows(const std::string& isa, size_t experts, size_t top_k) {
  Contest contest;
  const auto add = [&](const char* name, const auto& change) {
    const auto route = std::make_shared<Route>(kManyTokens, experts, top_k);
    for (size_t t = 0; t < kManyTokens; ++t) {
      change(route->logits.data() + t * experts);
    }
    AddRoute(contest, name, isa, route, kManyTokens);
  };
  add("random", [](float*) {});
  add("all equal", [=](float* row) { std::fill(row, row + experts, 1.0f); });
  add("sorted up", [=](float* row) { std::sort(row, row + experts); });
  add("sorted down", [=](float* row) {
    std::sort(row, row + experts, [](float a, float b) { return a > b; });
  });
  add("two values", [=](float* row) {
    for (size_t e = 0; e < experts; ++e) row[e] = row[e] < 0.0f ? -1.0f : 1.0f;
  });
  add("spread over 200", [=](float* row) {
    for (size_t e = 0; e < experts; ++e) row[e] *= 25.0f;
  });
  return contest;
}

struct RouterAsk {
  size_t experts, top_k;
  double bound;
};

void RouteAsks(Table& table) {
  const std::string& avx512 = table.avx512;
  for (const char* kernel : {"route", "route_unnormalised"}) {
    const bool renormalised = std::strcmp(kernel, "route") == 0;
    for (const auto& [experts, top_k, bound] :
         std::initializer_list<RouterAsk>{{8, 2, 1.0},
                                          {64, 8, 1.0},
                                          {128, 8, 0.8},
                                          {256, 8, 0.65},
                                          {512, 10, 0.7}}) {
      const std::string shape = RouterText(experts, top_k, 512);
      table.AtMost(renormalised ? bound : 1.05,
                   table.Ratio(kernel, shape, avx512, Kind::kOneDnn),
                   std::string("router, ") + (renormalised ? "" : "not ") +
                       "renormalised, " + shape + ", " + avx512 +
                       " / oneDNN's softmax alone");
    }
  }
  for (const size_t experts : {size_t{64}, size_t{128}, size_t{256}}) {
    const std::string shape = RouterText(experts, 8, 512);
    table.AtMost(1.5, table.Ratio("route", shape, "AVX2", avx512),
                 "router, " + shape + ", AVX2 / " + avx512);
  }
  const std::string one = RouterText(128, 8, 1);
  table.AtMost(0.4, table.Ratio("route", one, avx512, Kind::kOneDnn),
               "router, " + one + ", rows rotating, " + avx512 +
                   " / oneDNN's softmax alone");
}

// Any number of experts; hard rows.
void RangeAsks(Table& table) {
  for (const std::string& isa : AskedIsas()) {
    for (const size_t top_k : kTopKs) {
      const std::string shape = isa + "/k=" + std::to_string(top_k);
      double worst = NAN;
      size_t at = 0;
      for (const OddExperts& odd : kOddExperts) {
        const double ratio = table.Ratio(
            "route_experts", shape, "E=" + std::to_string(odd.experts),
            "E=" + std::to_string(odd.power_of_two));
        if (!(ratio <= worst)) {
          worst = ratio;
          at = odd.experts;
        }
      }
      table.AtMost(1.5, worst,
                   "router, " + shape +
                       ", ns per expert / that of the nearest power of two, "
                       "worst at E=" +
                       std::to_string(at));
    }
    for (const char* shape : {"E=8/k=2", "E=64/k=8", "E=128/k=8", "E=256/k=8",
                              "E=384/k=8", "E=512/k=10"}) {
      const std::string name = isa + "/" + shape;
      const double random = table.Ns("route_rows", name, "random");
      double worst = NAN;
      std::string at;
      for (const Figure& figure : table.Figures("route_rows", name)) {
        if (figure.NsPerUnit() / random <= worst) continue;
        worst = figure.NsPerUnit() / random;
        at = figure.name;
      }
      table.AtMost(4.0, worst,
                   "router, " + name + ", worst row / random row: " + at);
    }
  }
}

const Registration registration(
    [] {
      for (const RouterShape& shape : kRouters) {
        for (const size_t tokens : kRouteTokens) {
          Register("route", RouterText(shape.experts, shape.top_k, tokens),
                   [=] { return MakeRoute(shape, tokens, true); });
        }
      }
      for (const RouterShape& shape : kUnnormalisedRouters) {
        Register("route_unnormalised",
                 RouterText(shape.experts, shape.top_k, kManyTokens),
                 [=] { return MakeRoute(shape, kManyTokens, false); });
      }
      for (const std::string& isa : AskedIsas()) {
        for (const size_t k : kTopKs) {
          Register("route_experts", isa + "/k=" + std::to_string(k),
                   [=] { return MakeAnyExperts(isa, k); });
        }
        for (const auto& [model, experts, k] : kRouters) {
          Register(
              "route_rows",
              isa + "/E=" + std::to_string(experts) + "/k=" + std::to_string(k),
              [isa, e = experts, k = k] { return MakeWorstRows(isa, e, k); });
        }
      }
      RegisterThreads("route E=128 k=8", {64, 512, 4096}, [](size_t tokens) {
        return MakeRoute({"", 128, 8}, tokens, true);
      });
    },
    [](Table& table) {
      RouteAsks(table);
      RangeAsks(table);
    });

}  // namespace
}  // namespace switchyard::bench
