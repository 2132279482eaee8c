// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests whole layers, from the router's logits to the residual and the next
// norm. Each row of a batch has the same bits as if it were computed alone,
// on any number of threads.

#include "testing/model_layer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "src/calls/expert_weights.h"
#include "switchyard/bucket.h"
#include "testing/crew.h"
#include "testing/inputs.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

std::string NameOf(const ModelFamily& family, const ModelFormats& formats) {
  return std::string(family.family) + ", " + calls::NameOf(formats.gate_up) +
         " and " + calls::NameOf(formats.down);
}

// Runs each index on its own thread, so that `n` threads are inside bodies at
// the same time, on any number of cores.
class ThreadsExecutor final : public Executor {
 public:
  explicit ThreadsExecutor(size_t n) : n_(n) {}
  size_t Concurrency() const noexcept override { return n_; }
  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    const size_t threads = count <= grain ? 1 : std::min(count, n_);
    most_threads_ = std::max(most_threads_, threads);
    EngineThreads crew(threads);
    crew.Run([&](const EngineThread& team) {
      team.barrier(team.context);
      for (size_t i = team.thread; i < count; i += threads) {
        body(context, team.thread, i, i + 1);
      }
    });
    return Status();
  }
  size_t most_threads() const { return most_threads_; }

 private:
  const size_t n_;
  size_t most_threads_ = 0;
};

// Returns rows [begin, end) of a result.
ModelResult RowsOf(const ModelResult& batch, size_t tokens, size_t begin,
                   size_t end) {
  const auto rows = [&](const auto& all) {
    const size_t cols = all.size() / tokens;
    return std::decay_t<decltype(all)>(&all[begin * cols],
                                       &all[0] + end * cols);
  };
  return {rows(batch.ids), rows(batch.weights), rows(batch.out),
          rows(batch.normed)};
}
void ExpectSame(const ModelResult& found, const ModelResult& wanted) {
  ASSERT_EQ(found.ids, wanted.ids);
  ASSERT_EQ(CanonicalBits(found.weights), CanonicalBits(wanted.weights));
  ASSERT_EQ(CanonicalBits(found.out), CanonicalBits(wanted.out));
  ASSERT_EQ(CanonicalBits(found.normed), CanonicalBits(wanted.normed));
}

// The layer has the same bits if its products are computed one weight at a
// time.
TEST(ModelLayers, HaveTheBitsOfTheDefinition) {
  for (const std::string& isa : FmaIsaNames()) {
    const ScopedIsa scoped(isa);
    for (const ModelFamily& family : kModelFamilies) {
      for (const ModelFormats& formats : kModelFormats) {
        SCOPED_TRACE(isa + ", " + NameOf(family, formats));
        const ModelLayer layer(family, formats, 7);
        ModelResult wanted, found;
        const ModelCut definition = {3, 40, ModelCut::kByDefinition, false};
        ASSERT_OK(layer.Run(definition, 0, 7, SerialExecutor(), &wanted));
        for (const ModelCut& cut : kModelCuts) {
          ASSERT_OK(layer.Run(cut, 0, 7, SerialExecutor(), &found));
          ExpectSame(found, wanted);
        }
        ASSERT_EQ(LastIsa()->name, isa);
        // The inputs are chosen so that nothing overflows or vanishes.
        size_t large = 0;
        for (const float f : found.out) {
          ASSERT_TRUE(std::isfinite(f));
          large += std::fabs(f) > 4.0f;  // too large to be the residual alone
        }
        EXPECT_GT(large, found.out.size() / 8);
      }
    }
  }
}

class ModelLayerThreads : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, ModelLayerThreads,
                         testing::Values(1, 2, 3, 8, 16, 33, 64),
                         testing::PrintToStringParamName());

TEST_P(ModelLayerThreads, RowsOfABatchAreRowsAlone) {
  constexpr size_t kTokens = 64;
  const size_t threads = GetParam();
  for (const ModelFamily& family : kModelFamilies) {
    for (const ModelFormats& formats : kModelFormats) {
      // The family with a shared expert runs with all formats, the others
      // with q4_0.
      if (formats.gate_up != WeightFormat::kQ4_0 &&
          family.family != std::string("deepseek_v3")) {
        continue;
      }
      SCOPED_TRACE(NameOf(family, formats));
      const ModelLayer layer(family, formats, kTokens);
      ModelResult batch, found;
      ASSERT_OK(layer.Run(kModelCuts[0], 0, kTokens, SerialExecutor(), &batch));
      ThreadsExecutor executor(threads);
      for (const auto weights : {ModelCut::kPacked, ModelCut::kStored}) {
        const ModelCut cut = {threads, 16, weights,
                              weights == ModelCut::kPacked};
        ASSERT_OK(layer.Run(cut, 0, kTokens, executor, &found));
        ExpectSame(found, batch);
      }
      EXPECT_EQ(executor.most_threads(), threads);
      for (size_t t = 0; t < kTokens; ++t) {
        SCOPED_TRACE(t);
        const ModelCut cut = {
            threads, 16, t % 2 == 0 ? ModelCut::kPacked : ModelCut::kStored,
            t % 4 < 2};
        ASSERT_OK(layer.Run(cut, t, t + 1, executor, &found));
        ExpectSame(found, RowsOf(batch, kTokens, t, t + 1));
      }
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
