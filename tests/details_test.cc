// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests that Status::details() describes its own error, and never another
// error.

#include "src/base/details.h"

#include <atomic>
#include <cfloat>
#include <clocale>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/quantize.h"
#include "switchyard/route.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

class DetailsTest : public testing::Test {
 protected:
  // Calls RouteTopK() with logits [tokens, 8] and ids [rows, 2].
  Status Route(size_t tokens, size_t rows, const RouteOptions& options = {}) {
    return RouteTopK(
        {{floats_.data(), tokens, 8}},
        {{ints_.data(), rows, 2}, {floats_.data() + 2000, tokens, 2}}, options);
  }
  void ExpectDetails(const Status& status, const std::string& message,
                     const std::string& details) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << message;
    EXPECT_EQ(status.message(), message);
    EXPECT_EQ(status.details(), details) << message;
  }

  std::vector<float> floats_ = std::vector<float>(8000);
  std::vector<int32_t> ints_ = std::vector<int32_t>(4000);
};

TEST_F(DetailsTest, AreTheNumbersOfTheMessage) {
  EXPECT_STREQ(Route(16, 16).details(), "");
  ExpectDetails(Route(16, 15), "RouteTopK: topk_ids: is not [tokens, top_k]",
                "got [15, 2], needs [16, 2]");
  // details() is about the first output that does not match the inputs.
  float* const f = floats_.data();
  int32_t* const i = ints_.data();
  ExpectDetails(RouteTopK({{f, 15, 8}}, {{i, 16, 2}, {f + 2000, 16, 2}}),
                "RouteTopK: topk_ids: is not [tokens, top_k]",
                "got [16, 2], needs [15, 2]");
  ExpectDetails(RouteTopK({{f, 16, 8}}, {{i, 16, 9}, {f + 2000, 16, 9}}),
                "RouteTopK: topk_ids: top_k (cols) exceeds the experts",
                "got [16, 9], tokens 16, num_experts 8, top_k 9");
  ExpectDetails(RouteTopK({{ConstAnyMatrix(f, Type::kI8, 16, 8, 8)}},
                          {{i, 16, 2}, {f + 2000, 16, 2}}),
                "RouteTopK: logits: has to be f32, bf16 or f16",
                "got i8, takes f32, bf16 or f16");
  ExpectDetails(RouteTopK({{f, 16, 8, 7}}, {{i, 16, 2}, {f + 2000, 16, 2}}),
                "RouteTopK: logits: stride is smaller than cols",
                "got [16, 8] of stride 7, needs at least 8");
  // An array may need an exact size, a minimum size, or the size of another
  // array.
  const auto packed = [&](size_t experts, size_t offsets, size_t pairs) {
    return BucketPacked(
        {{i, 16, 2}},
        {{i + 100, experts}, {i + 200, offsets}, {i + 300, pairs}});
  };
  ExpectDetails(packed(8, 8, 32),
                "BucketPacked: offsets: size is not num_experts + 1",
                "got 8, needs 9");
  ExpectDetails(packed(7, 9, 32),
                "BucketPacked: tokens_per_expert: size is not num_experts",
                "got 7, needs 8");
  ExpectDetails(packed(8, 9, 31),
                "BucketPacked: pairs: fewer than tokens * top_k elements",
                "got 31, needs at least 32");
  // A size may be a product.
  CombineInputs sums = {{f, 31, 8}, {f + 2000, 16, 2}, RowIndex::kTokenOrder};
  ExpectDetails(Combine(sums, {{f + 4000, 16, 8}}),
                "Combine: rows: is not [tokens * top_k, hidden]",
                "got [31, 8], needs [32, 8]");
  // For quantised rows, details() has the size of a block, or the valid shapes
  // of scales.
  std::vector<unsigned char> codes(4000);
  const auto quantize = [&](Type type, size_t cols, const AnyMatrix& scales) {
    const AnyMatrix to(static_cast<void*>(codes.data()), type, 4, cols, cols);
    return Quantize({ConstAnyMatrix(f, 4, cols)}, {AnyRows(to, scales)});
  };
  ExpectDetails(quantize(Type::kQ8_0, 48, {}),
                "Quantize: rows: cols or stride is not a multiple of its block",
                "got [4, 48] of stride 48, needs multiples of 32");
  ExpectDetails(quantize(Type::kI8, 256, {f + 4000, 4, 3}),
                "Quantize: rows.scales: is not [rows, 1] or one for 32, 64 or "
                "128 columns (e8m0: 32)",
                "got [4, 3], needs [4, 1] or [4, 2] or [4, 4] or [4, 8]");
}

TEST_F(DetailsTest, AreValuesOfOptions) {
  RouteOptions options;
  options.clamp = 1.5f;
  ExpectDetails(Route(4, 4, options),
                "RouteTopK: options: clamp is not in [0, 1]",
                "got 1.5, needs 0 to 1");
  options.clamp = -0x1p-149f;
  EXPECT_STREQ(Route(4, 4, options).details(), "got -1.4013e-45, needs 0 to 1");
  options.clamp = 0x1.000002p0f;
  EXPECT_STREQ(Route(4, 4, options).details(), "got 1.0000001, needs 0 to 1");
  options = {};
  options.score = static_cast<Score>(77);
  const std::string details = Route(4, 4, options).details();
  EXPECT_EQ(details.rfind("got 77, needs 0 to ", 0), 0u) << details;
  options = {};
  options.num_expert_group = 3;
  options.topk_group = 1;
  const Status status = Route(4, 4, options);
  EXPECT_STREQ(status.details(),
               "got num_expert_group 3, tokens 4, num_experts 8, top_k 2");
}

// If no argument fixes a size, details() has the name of the size.
TEST_F(DetailsTest, NameSizesThatAreUnknown) {
  float* const f = floats_.data();
  int32_t* const i = ints_.data();
  ExpectDetails(Combine({{}, {f, 8, 2}, RowIndex::kTokenOrder}, {{f, 8, 16}}),
                "Combine: rows: not given", "needs [16, 16]");
  ExpectDetails(RouteTopK({}, {{i, 8, 2}, {f, 8, 2}}),
                "RouteTopK: logits: not given", "needs [8, num_experts]");
  ExpectDetails(RouteTopK({{f, 8, 8}}, {{}, {f + 2000, 8, 2}}),
                "RouteTopK: topk_ids: not given", "needs [8, 2]");
  ExpectDetails(RouteTopK({{f, 8, 8}}, {}), "RouteTopK: topk_ids: not given",
                "needs [8, top_k]");
  ExpectDetails(Activate({}, {{f, 8, 16}}), "Activate: gate: not given",
                "needs [8, 16]");
  ExpectDetails(Quantize({{f, 8, 16}}, {}), "Quantize: rows: not given",
                "needs [8, 16]");
}

// For errors in the data, details() says which elements are wrong, or how
// many.
TEST_F(DetailsTest, AreOfTheDataToo) {
  float* const f = floats_.data();
  const auto expect = [](const Status& status, const std::string& details) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition)
        << status.message();
    EXPECT_EQ(status.details(), details) << status.message();
  };
  std::vector<int32_t> ids = {0, 1, 5, 2, 0, -1, 1, 1}, counts(3), offsets(4),
                       pairs(8), table(4);
  const BucketInputs sort = {{ids.data(), 4, 2}};
  expect(BucketPacked(sort, {counts, offsets, pairs}), "got 2 of 8");
  expect(BucketStrided(sort, {counts, table, 2}), "got 2, needs at least 3");
  expect(BucketStrided(sort, {counts, table, 0}), "got 4, needs at least 9");
  const std::vector<int32_t> rows = {0, 9, 1, -5};
  expect(Combine({{f, 4, 8}, {f + 100, 2, 2}, {rows.data(), 2, 2}},
                 {{f + 200, 2, 8}}),
         "got 2 of 4");
  const ConstAnyMatrix shape = {ids.data(), 2, 1};
  expect(GatherRows({{f, 2, 8}, rows, shape}, {{f + 200, 4, 8}}), "got 2 of 4");
  expect(ScatterRows({{f, 4, 8}, {rows.data(), 2, 2}}, {{f + 200, 4, 8}}),
         "got 2 of 4");
  ActivateInputs gates = {{f, 8, 4}, {f + 100, 8, 4}};
  const std::vector<int32_t> descends = {0, 5, 3, 8}, most = {0, 9};
  gates.offsets = descends;
  expect(Activate(gates, {{f + 200, 8, 4}}), "got 3 at 2, needs 5 to 8");
  gates.offsets = {};
  gates.tokens_per_expert = most;
  expect(Activate(gates, {{f + 200, 8, 4}}), "got 9 at 1, needs 0 to 4");
}

// Two calls fail on one thread. The status of the first call loses its
// details, and never shows the details of the second.
TEST_F(DetailsTest, AreGoneAfterTheNextError) {
  const Status first = Route(16, 15);
  const Status copy = first;
  EXPECT_STREQ(copy.details(), "got [15, 2], needs [16, 2]");
  EXPECT_STREQ(Route(3, 3).details(), "");
  EXPECT_STREQ(first.details(), "got [15, 2], needs [16, 2]");
  const Status second = Route(16, 14);
  EXPECT_STREQ(second.message(), first.message());
  EXPECT_STREQ(second.details(), "got [14, 2], needs [16, 2]");
  EXPECT_STREQ(first.details(), "");
  EXPECT_STREQ(Status(second.code(), second.message()).details(), "");
  EXPECT_STREQ(Status().details(), "");
}

TEST_F(DetailsTest, AreOfOneThread) {
  const Status here = Route(16, 15);
  std::thread([&] {
    EXPECT_STREQ(here.details(), "");
    EXPECT_STREQ(Route(16, 14).details(), "got [14, 2], needs [16, 2]");
    EXPECT_STREQ(here.details(), "");
  }).join();
  EXPECT_STREQ(here.details(), "got [15, 2], needs [16, 2]");
  // On several threads, details() has the numbers of the calling thread's own
  // calls.
  constexpr size_t kThreads = 4, kCalls = 2000;
  std::atomic<size_t> wrong{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &wrong] {
      for (size_t n = 0; n < kCalls; ++n) {
        const size_t rows = 1 + (t * kCalls + n) % 900;
        const std::string expected =
            "got [" + std::to_string(rows) + ", 2], needs [950, 2]";
        wrong += Route(950, rows).details() != expected;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
}

TEST(Details, EndInDotsIfTheyAreTooLong) {
  internal::Details details;
  for (int i = 0; i < 20; ++i) details.PutShape(SIZE_MAX, SIZE_MAX);
  const std::string text = details.text();
  EXPECT_EQ(text.size(), kMaxDetails);
  EXPECT_EQ(text.substr(text.size() - 3), "...");
}

TEST(Details, NumbersReadBack) {
  const auto text = [](auto value) {
    return std::string(internal::Details().Put(value).text());
  };
  EXPECT_EQ(text(size_t{0}), "0");
  EXPECT_EQ(text(SIZE_MAX), "18446744073709551615");
  EXPECT_EQ(text(INT32_MIN), "-2147483648");
  EXPECT_EQ(text(0.0f), "0");
  EXPECT_EQ(text(-0.0f), "-0");
  EXPECT_EQ(text(FLT_MAX), "3.4028235e+38");
  EXPECT_EQ(text(1e-45f), "1.4013e-45");
  EXPECT_EQ(text(0.1f), "0.1");
  const ScopedFlushToZero flush;
  EXPECT_EQ(text(1e-45f), "1.4013e-45");
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8"}) {
    if (std::setlocale(LC_NUMERIC, name) == nullptr) continue;
    EXPECT_EQ(text(1.5f), "1.5") << name;
  }
  std::setlocale(LC_NUMERIC, "C");
}

}  // namespace
}  // namespace switchyard::testing_support
