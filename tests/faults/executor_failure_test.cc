// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests executors that fail half-way. The call has to return their status
// unchanged, leave the report alone and write only into the views.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "testing/guarded_buffer.h"
#include "testing/unwritten.h"
#include "tests/faults/layer.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

// Runs `ranges` ranges. After that, the current call of ParallelFor() and all
// later calls fail.
class FailingExecutor final : public Executor {
 public:
  explicit FailingExecutor(size_t ranges) : left_(ranges) {}
  size_t Concurrency() const noexcept override { return 4; }
  Status ParallelFor(size_t count, size_t /*grain*/, Body body,
                     void* context) noexcept override {
    ++calls;
    const size_t length = 1 + count / 8;
    for (size_t begin = 0; begin < count; begin += length) {
      if (left_ == 0) {
        failed = true;
        return Status(StatusCode::kInternal, kText);
      }
      --left_;
      body(context, left_ % 4, begin, std::min(count, begin + length));
    }
    return Status();
  }

  static constexpr const char kText[] = "FailingExecutor: as agreed";
  bool failed = false;
  size_t calls = 0;

 private:
  size_t left_;
};

constexpr Shape kShape = {64, 32, 4, 40};

// Tests each kernel with executors that fail after 0, 1, 2 or more ranges. The
// earlier kernels of the layer run without errors. The call must return the
// executor's own status, so the test compares the pointer of its message.
TEST(ExecutorFailure, StatusComesThroughAndReportIsLeftAlone) {
  size_t failures = 0;
  for (const uint64_t seed : {1u, 2u, 3u}) {
    Layer layer(kShape, seed);
    const uint64_t expected = layer.Expected();
    for (size_t step = 0; step < Layer::kSteps; ++step) {
      for (size_t ranges = 0;; ++ranges) {
        layer.Clear();
        for (size_t i = 0; i < step; ++i) {
          ASSERT_OK((layer.*Layer::Steps()[i])(SerialExecutor()));
        }
        layer.report = kUnwritten;
        FailingExecutor executor(ranges);
        const Status status = (layer.*Layer::Steps()[step])(executor);
        if (!executor.failed) {
          EXPECT_OK(status);
          break;
        }
        ++failures;
        EXPECT_EQ(status.code(), StatusCode::kInternal);
        EXPECT_EQ(status.message(), FailingExecutor::kText);
        EXPECT_EQ(layer.report, kUnwritten)
            << "step " << step << ", after " << ranges << " ranges";
        // After the executor has failed, the kernel must not call it again.
        FailingExecutor at_once(0);
        EXPECT_FALSE((layer.*Layer::Steps()[step])(at_once).ok());
        EXPECT_EQ(at_once.calls, 1u) << "step " << step;
      }
    }
    EXPECT_TRUE(layer.IsRight(SerialExecutor(), expected));
  }
  std::printf("%zu failures\n", failures);
  EXPECT_GT(failures, 3 * Layer::kSteps);
}

// Lets each product of a layer's experts fail, on every executor. No thread
// may hang. The other workers may finish the block of rows that they have
// begun, but may not begin another block.
TEST(ExecutorFailure, ProductsThatFail) {
  constexpr size_t kTokens = 20, kOfABlock = 2 * kTokens;
  size_t failures = 0;
  for (const Pool pool : EveryPool()) {
    const auto executor = MakeExecutor(pool);
    for (const uint64_t seed : {1u, 2u, 3u}) {
      Layer layer({kTokens, 8, 3, 40}, seed);
      const uint64_t expected = layer.Expected();
      const size_t products = layer.products;
      for (size_t i = 0; i < products; ++i) {
        layer.failing_product = i;
        layer.report = kUnwritten;
        const Status status = layer.Experts(*executor);
        EXPECT_EQ(status.code(), StatusCode::kInternal);
        EXPECT_EQ(status.message(), Layer::kProductFails);
        EXPECT_EQ(layer.report, kUnwritten);
        EXPECT_LE(layer.products,
                  i + 1 + kOfABlock * (executor->Concurrency() - 1));
        ++failures;
      }
      layer.failing_product = SIZE_MAX;
      EXPECT_TRUE(layer.IsRight(*executor, expected));
    }
  }
  std::printf("%zu failures\n", failures);
  EXPECT_GT(failures, 100u);
}

// Bucketing writes in several passes. Partly written counts must not lead to
// writes outside the views.
TEST(ExecutorFailure, NothingOutsideTheViews) {
  constexpr size_t kTokens = 300, kExperts = 24, kTopK = 3, kHidden = 13;
  constexpr size_t kPairs = kTokens * kTopK;
  std::vector<int32_t> ids(kPairs);
  for (size_t i = 0; i < kPairs; ++i) {
    ids[i] = static_cast<int32_t>(Hash(5, i) % kExperts);
  }
  std::vector<float> values(kPairs * kHidden);
  for (size_t i = 0; i < values.size(); ++i) values[i] = Uniform(6, i, 2.0f);
  const ConstAnyMatrix topk_ids(ids.data(), kTokens, kTopK);
  for (size_t ranges = 0, failed = 1; failed != 0; ++ranges) {
    failed = 0;
    const Guarded<int32_t> counts(1, kExperts), offsets(1, kExperts + 1),
        pairs(1, kPairs), index(kTokens, kTopK), table(1, kExperts * kPairs),
        scratch(1, 8192);
    const Guarded<float> rows(kPairs, kHidden), acted(kPairs, kHidden),
        out(kTokens, kHidden), weights(kTokens, kTopK),
        logits(kTokens, kExperts, 0, 0,
               std::vector<float>(values.begin(),
                                  values.begin() + kTokens * kExperts));
    const Guarded<int32_t> routed(kTokens, kTopK);
    const auto call = [&](auto kernel) {
      FailingExecutor executor(ranges);
      const Status status = kernel(executor);
      EXPECT_EQ(status.ok(), !executor.failed);
      failed += executor.failed;
    };
    call([&](Executor& e) {
      return RouteTopK({logits.view()}, {routed.view(), weights.view()}, {}, e);
    });
    call([&](Executor& e) {
      return BucketPacked(
          {topk_ids, scratch.span()},
          {counts.span(), offsets.span(), pairs.span(), index.view()}, {}, e);
    });
    call([&](Executor& e) {
      return BucketStrided({topk_ids, scratch.span()},
                           {counts.span(), table.span(), 0, true}, {}, e);
    });
    // Combine gets the order and the index that the failed calls left.
    call([&](Executor& e) {
      return GatherRows(
          {{values.data(), kTokens, kHidden}, pairs.span(), topk_ids},
          {rows.view()}, {true}, e);
    });
    call([&](Executor& e) {
      return Activate({rows.view(), {values.data(), kPairs, kHidden}},
                      {acted.view()}, {}, e);
    });
    call([&](Executor& e) {
      return Combine({acted.view(), weights.view(), index.view()}, {out.view()},
                     {1e-6f, true}, e);
    });
    for (const auto* g :
         {&counts, &offsets, &pairs, &index, &table, &scratch, &routed}) {
      g->ExpectIntact("of int32");
    }
    for (const auto* g : {&rows, &acted, &out, &weights, &logits}) {
      g->ExpectIntact("of floats");
    }
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace switchyard::testing_support
