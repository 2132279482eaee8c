// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/contest.h"
#include "bench/inputs.h"
#include "bench/onednn.h"
#include "bench/plain.h"
#include "bench/probes.h"
#include "bench/shapes.h"
#include "switchyard/route.h"
#include "testing/reference.h"

namespace switchyard {
namespace bench {
namespace {

// One token at a time is taken from this many: a row that repeats is learnt by
// the branch predictor.
constexpr size_t kSlots = 256;

struct Route {
  size_t tokens, experts, top_k;
  bool renormalize;
  Aligned<float> logits;  // [slots * tokens, experts]
  Aligned<int32_t> ids = Aligned<int32_t>(tokens * top_k);
  Aligned<float> weights = Aligned<float>(tokens * top_k);

  Route(size_t t, size_t e, size_t k, bool renorm, size_t slots)
      : tokens(t),
        experts(e),
        top_k(k),
        renormalize(renorm),
        logits(Floats(slots * t * e, 1)) {}

  Matrix<const float> Logits(size_t slot) const {
    return {logits.data() + slot * tokens * experts, tokens, experts};
  }
  Matrix<int32_t> Ids() { return {ids.data(), tokens, top_k}; }
  Matrix<float> Weights() { return {weights.data(), tokens, top_k}; }
  Status Call(size_t slot, Executor& executor) {
    RouteOptions options;
    options.renormalize = renormalize;
    return RouteTopK(Logits(slot), options, Ids(), Weights(), executor);
  }

  // ids and weights as they should be.
  std::vector<Output> Outputs() {
    Output want_ids = {ids.data(), ids.size()};
    Output want_weights = {weights.data(), weights.size()};
    want_weights.tolerance = 1e-6;
    for (size_t r = 0; r < logits.size() / experts; ++r) {
      const float* const row = logits.data() + r * experts;
      const reference::Route want =
          reference::RouteRow(std::vector<float>(row, row + experts), top_k,
                              renormalize, RouteOptions().clamp);
      want_ids.ints.insert(want_ids.ints.end(), want.ids.begin(),
                           want.ids.end());
      want_weights.floats.insert(want_weights.floats.end(),
                                 want.weights.begin(), want.weights.end());
    }
    return {want_ids, want_weights};
  }
};

std::string Shape(size_t experts, size_t top_k, size_t tokens) {
  return "E=" + std::to_string(experts) + "/k=" + std::to_string(top_k) +
         "/T=" + std::to_string(tokens);
}

double Bytes(const Route& route) {
  return static_cast<double>(route.tokens) *
         (4.0 * static_cast<double>(route.experts) +
          8.0 * static_cast<double>(route.top_k));
}

Contest Ours(const char* kernel, const RouterShape& shape, size_t tokens,
             bool renormalize) {
  Contest contest;
  contest.kernel = kernel;
  contest.shape = Shape(shape.experts, shape.top_k, tokens);
  contest.model = shape.model;
  contest.units = static_cast<double>(tokens);
  contest.slots = tokens == 1 ? kSlots : 1;
  const auto data = std::make_shared<Route>(tokens, shape.experts, shape.top_k,
                                            renormalize, contest.slots);
  Route* const d = data.get();
  contest.data = data;
  contest.bytes = Bytes(*d);
  contest.outputs = d->Outputs();
  AddOurs(contest, {0, 1}, [d](size_t slot, Executor& executor) {
    return d->Call(slot, executor);
  });
  return contest;
}

// oneDNN's softmax alone, into a matrix of its own.
void AddSoftmax(Contest& contest, Route* d) {
  const auto probabilities =
      std::make_shared<Aligned<float>>(d->tokens * d->experts);
  Output want = {probabilities->data(), probabilities->size()};
  want.tolerance = 1e-6;
  for (size_t slot = 0; slot < contest.slots; ++slot) {
    const Matrix<const float> logits = d->Logits(slot);
    for (size_t t = 0; t < d->tokens; ++t) {
      const float* const row = logits.Row(t);
      double sum = 0.0;
      for (size_t e = 0; e < d->experts; ++e) {
        sum += std::exp(static_cast<double>(row[e]));
      }
      for (size_t e = 0; e < d->experts; ++e) {
        want.floats.push_back(std::exp(static_cast<double>(row[e])) / sum);
      }
    }
  }
  contest.outputs.push_back(want);
  AddRival(contest, Kind::kOneDnn, "oneDNN softmax alone", {2},
           [d, probabilities,
            softmax = onednn::Softmax(d->tokens, d->experts)](size_t slot) {
             softmax(d->Logits(slot).data, probabilities->data());
           });
}

Contest MakeRoute(const char* kernel, const RouterShape& shape, size_t tokens,
                  bool renormalize) {
  Contest contest = Ours(kernel, shape, tokens, renormalize);
  Route* const d = static_cast<Route*>(contest.data.get());
  AddRival(contest, Kind::kPlain, "plain C++", {0, 1}, [d](size_t slot) {
    plain::Route(d->Logits(slot), d->renormalize, d->Ids(), d->Weights());
  });
  AddSoftmax(contest, d);
  AddRival(contest, Kind::kProbe, "probe", {}, [d](size_t slot) {
    const Probes& probes = BestProbes();
    probes.move(d->Logits(slot).data, d->tokens * d->experts, d->ids.data(),
                d->ids.size());
    probes.move(nullptr, 0, d->weights.data(), d->weights.size());
  });
  return contest;
}

// Contenders that differ in their rows: routers of one ISA.
void AddRoute(Contest& contest, const std::string& name, const std::string& isa,
              const std::shared_ptr<Route>& route, double units) {
  Contender contender;
  contender.name = name;
  contender.units = units;
  contender.bytes = Bytes(*route);
  contender.timed.run =
      Repeat([route] { Check(route->Call(0, SerialExecutor())); });
  contender.timed.prepare = [isa] { Check(CapIsa(isa.c_str())); };
  for (Output& output : route->Outputs()) {
    contender.writes.push_back(contest.outputs.size());
    contest.outputs.push_back(output);
  }
  contest.contenders.push_back(contender);
}

constexpr size_t kManyTokens = 512;

// Any number of experts at the same k, per expert.
Contest MakeAnyExperts(const std::string& isa, size_t top_k) {
  Contest contest;
  contest.kernel = "route_experts";
  contest.shape = isa + "/k=" + std::to_string(top_k);
  contest.unit = "expert of a row";
  std::set<size_t> counts;
  for (const OddExperts& odd : kOddExperts) {
    counts.insert({odd.experts, odd.power_of_two});
  }
  for (const size_t experts : counts) {
    AddRoute(
        contest, "E=" + std::to_string(experts), isa,
        std::make_shared<Route>(kManyTokens, experts, top_k, true, size_t{1}),
        static_cast<double>(kManyTokens * experts));
  }
  return contest;
}

// Rows that are hard on a selection by thresholds or branches.
Contest MakeWorstRows(const std::string& isa, size_t experts, size_t top_k) {
  Contest contest;
  contest.kernel = "route_rows";
  contest.shape =
      isa + "/E=" + std::to_string(experts) + "/k=" + std::to_string(top_k);
  const auto add = [&](const char* name, const auto& change) {
    const auto route =
        std::make_shared<Route>(kManyTokens, experts, top_k, true, size_t{1});
    for (size_t t = 0; t < kManyTokens; ++t) {
      change(route->logits.data() + t * experts);
    }
    AddRoute(contest, name, isa, route, static_cast<double>(kManyTokens));
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

}  // namespace

void RegisterRoute() {
  const auto add = [](const char* kernel, const RouterShape& shape,
                      size_t tokens, bool renormalize) {
    Register(kernel, Shape(shape.experts, shape.top_k, tokens),
             [=] { return MakeRoute(kernel, shape, tokens, renormalize); });
  };
  for (const RouterShape& shape : kRouters) {
    for (const size_t tokens : kRouteTokens) {
      add("route", shape, tokens, true);
    }
  }
  for (const RouterShape& shape : kUnnormalisedRouters) {
    add("route_unnormalised", shape, kManyTokens, false);
  }
  for (const std::string& isa : AskedIsas()) {
    for (const size_t top_k : kTopKs) {
      Register("route_experts", isa + "/k=" + std::to_string(top_k),
               [=] { return MakeAnyExperts(isa, top_k); });
    }
    for (const RouterShape& shape : kRouters) {
      Register("route_rows",
               isa + "/E=" + std::to_string(shape.experts) +
                   "/k=" + std::to_string(shape.top_k),
               [=] { return MakeWorstRows(isa, shape.experts, shape.top_k); });
    }
  }
  RegisterThreads("route E=128 k=8", {64, 512, 4096}, [](size_t tokens) {
    return Ours("route", {"", 128, 8}, tokens, true);
  });
}

}  // namespace bench
}  // namespace switchyard
