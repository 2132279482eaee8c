// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/layer.h"
#include "testing/layer_case.h"
#include "tools/corpus/corpus.h"

namespace switchyard::corpus {
namespace {

using testing_support::ExpertsLayer;
using testing_support::LayerCase;
using testing_support::LayerResult;

// Runs layers of any kind, planned for one worker and for many. Their
// products keep the promise that ExpertGemm requires.
void Run(Executor& executor, Digests& digests, size_t workers) {
  testing_support::Random random(17);
  for (int i = 0; i < 100; ++i) {
    LayerCase c = DrawLayerCase(random);
    c.plan.workers = workers;
    c.plan.least_cost = 0;
    LayerResult result;
    digests.Check(ExpertsLayer(c).Run(executor, &result));
    digests.floats.Add(Span<const float>(result.out));
    digests.floats.Add(Span<const float>(result.normed));
  }
}

const Registration registration("layer", [](std::vector<Case>& cases) {
  for (const size_t workers : {size_t{1}, size_t{64}}) {
    cases.push_back({"layer for " + std::to_string(workers),
                     [workers](Executor& executor, Digests& digests) {
                       Run(executor, digests, workers);
                     }});
  }
});

}  // namespace
}  // namespace switchyard::corpus
