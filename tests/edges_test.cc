// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests arguments at the edge of what is valid: calls without work, single
// rows with any stride, incomplete optional arguments, and sizes of every
// integer type.

#include <pthread.h>

#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <vector>

#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/quantize.h"
#include "switchyard/route.h"
#include "testing/formats.h"
#include "testing/inputs.h"
#include "tests/call_errors.h"
#include "tests/row_types.h"
#include "tests/rows_case.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

// A pool that divides by the grain. The library must not call this pool if a
// call has no work.
class DividingExecutor final : public Executor {
 public:
  size_t Concurrency() const noexcept override { return 2; }
  Status ParallelFor(size_t count, size_t grain, Body body,
                     void* context) noexcept override {
    EXPECT_GE(count, 1u);
    EXPECT_GE(grain, 1u);
    body(context, 0, 0, count);
    return Status();
  }
};

TEST(NothingToDo, DoesNotReachTheExecutor) {
  DividingExecutor pool;
  float* const f = nullptr;
  int32_t* const i = nullptr;
  std::vector<int32_t> counts(3), offsets(4), table(15);
  for (const size_t tokens : {0u, 5u}) {
    std::vector<float> logits(tokens * 3), weights(tokens * 2);
    std::vector<int32_t> ids(tokens * 2), pairs(tokens * 2);
    EXPECT_OK(RouteTopK({{logits.data(), tokens, 3}},
                        {{ids.data(), tokens, 2}, {weights.data(), tokens, 2}},
                        {}, pool));
    const ConstAnyMatrix topk_ids(ids.data(), tokens, 2);
    EXPECT_OK(BucketPacked({topk_ids}, {counts, offsets, pairs}, {}, pool));
    EXPECT_OK(BucketStrided({topk_ids}, {counts, table, 0, true}, {}, pool));
    EXPECT_OK(GatherRows({{f, tokens, 0}, pairs, topk_ids},
                         {{f, pairs.size(), 0}}, {}, pool));
    EXPECT_OK(
        Activate({{f, tokens, 0}, {f, tokens, 0}}, {{f, tokens, 0}}, {}, pool));
    EXPECT_OK(Combine({{f, tokens * 2, 0},
                       {weights.data(), tokens, 2},
                       RowIndex::kTokenOrder},
                      {{f, tokens, 0}}, {}, pool));
  }
  EXPECT_OK(Activate({{f, 0, 5}, {f, 0, 5}}, {{f, 0, 5}}, {}, pool));
  const std::vector<float> hidden(20);
  EXPECT_OK(GatherRows({{hidden.data(), 4, 5}, {i, 0}, {table.data(), 4, 2}},
                       {{f, 0, 5}}, {}, pool));
  EXPECT_OK(Combine({{f, 0, 5}, {f, 0, 2}, RowIndex::kTokenOrder}, {{f, 0, 5}},
                    {}, pool));
}

// A single row ends after its columns, and its stride does not matter.
TEST(OneRow, OverlapsWhateverItsStride) {
  std::vector<float> floats(64, 1.0f);
  float* const f = floats.data();
  for (const size_t stride :
       {size_t{6}, size_t{PTRDIFF_MAX}, SIZE_MAX, SIZE_MAX / 4, size_t{0}}) {
    ExpectError(Activate({{f, 1, 6, stride}, {f + 40, 1, 6}}, {{f + 2, 1, 6}}),
                "Activate: out: overlaps gate without being the same view");
    ExpectError(Activate({{f, 1, 6}, {f + 40, 1, 6}}, {{f + 2, 1, 6, stride}}),
                "Activate: out: overlaps gate without being the same view");
    EXPECT_OK(Activate({{f, 1, 6, stride}, {f + 40, 1, 6, stride}},
                       {{f + 6, 1, 6, stride}}));
    // `out` is the same row as the gate, but may have another stride.
    EXPECT_OK(Activate({{f, 1, 6, stride}, {f + 40, 1, 6}}, {{f, 1, 6}}));
  }
}

// Views of different types are compared in bytes.
TEST(Overlaps, AreCountedInBytes) {
  std::vector<float> floats(128, 1.0f);
  float* const f = floats.data();
  BFloat16* const b = reinterpret_cast<BFloat16*>(f);
  const std::string message =
      "Activate: out: overlaps gate without being the same view";
  const ConstAnyMatrix up(f + 96, 1, 6);
  // `out` begins in the middle of the gate's last float.
  ExpectError(Activate({{f + 8, 1, 6}, up}, {{b + 27, 1, 6}}), message);
  EXPECT_OK(Activate({{f + 8, 1, 6}, up}, {{b + 28, 1, 6}}));
  ExpectError(Activate({{f + 8, 1, 6}, up}, {{b + 11, 1, 6}}), message);
  EXPECT_OK(Activate({{f + 8, 1, 6}, up}, {{b + 10, 1, 6}}));
  // Rows of f32 and rows of bf16 are side by side in one buffer.
  const ConstAnyMatrix wide(f, 4, 5, 8), other(f + 64, 4, 5);
  EXPECT_OK(Activate({wide, other}, {{b + 10, 4, 5, 16}}));
  ExpectError(Activate({wide, other}, {{b + 9, 4, 5, 16}}), message);
  ExpectError(Activate({wide, other}, {{b + 12, 4, 5, 16}}), message);
}

class HalfThere : public testing::Test {
 protected:
  static constexpr size_t kTokens = 3, kTopK = 2, kHidden = 4;
  Status Run(const CombineInputs& in) {
    return Combine(in, {{out_.data(), kTokens, kHidden}});
  }

  std::vector<float> rows_ = std::vector<float>(24, 1.0f), weights_ = rows_,
                     out_ = std::vector<float>(12);
  CombineInputs in_ = {{rows_.data(), 6, kHidden},
                       {weights_.data(), kTokens, kTopK},
                       RowIndex::kTokenOrder};
  float* const nowhere_ = nullptr;
  int32_t* const no_ints_ = nullptr;
};

TEST_F(HalfThere, IsAnErrorAndNotAbsent) {
  CombineInputs in = in_;
  EXPECT_OK(Run(in));
  const std::string residual = "Combine: residual: ";
  in.residual = {nowhere_, 5, 0};
  ExpectError(Run(in), residual + "is not [tokens, hidden]");
  in.residual = {nowhere_, 0, kHidden};
  ExpectError(Run(in), residual + "is not [tokens, hidden]");
  in.residual = {nowhere_, kTokens, kHidden};
  ExpectError(Run(in), residual + "data is null");
  in = in_;
  const std::string scales = "Combine: rows.scales: ";
  in.rows.scales = {nowhere_, 0, 1};
  ExpectError(Run(in), scales + "given, but the rows' type has none");
  in.rows.type = Type::kI8;
  ExpectError(Run(in), scales +
                           "is not [rows, 1] or one for 32, 64 or 128 columns "
                           "(e8m0: 32)");
  in.rows.scales = {nowhere_, 6, 1};
  ExpectError(Run(in), scales + "data is null");
  in = in_;
  in.shared.rows = {nowhere_, 9, 0};
  in.shared.kind = SharedGate::kNone;
  ExpectError(Run(in), "Combine: shared.rows: is not [tokens, hidden]");
  in = in_;
  in.row_index = {no_ints_, 0, 7};
  ExpectError(Run(in), "Combine: row_index: is not [tokens, top_k]");
  in.row_index = std::vector<int32_t>();
  const std::string neither =
      "Combine: row_index: neither row_index nor RowIndex::kTokenOrder is "
      "given";
  ExpectError(Run(in), neither);
  in.row_index = {};
  ExpectError(Run(in), neither);
  // An argument with a pointer but no sizes counts as given, and its shape is
  // wrong.
  in.row_index = {no_ints_ + 64, 0, 0};
  ExpectError(Run(in), "Combine: row_index: is not [tokens, top_k]");

  std::vector<int32_t> ids(6), counts(3), offsets(4), pairs(6);
  const ConstAnyMatrix topk_ids(ids.data(), 3, 2);
  const auto pack = [&](const AnyMatrix& row_index) {
    return BucketPacked({topk_ids}, {counts, offsets, pairs, row_index});
  };
  EXPECT_OK(pack({}));
  ExpectError(pack({no_ints_, 0, 7}),
              "BucketPacked: row_index: is not [tokens, top_k]");
  ExpectError(pack({no_ints_, 3, 2}), "BucketPacked: row_index: data is null");
}

// Engines pass an empty batch as vectors that are resized to 0.
TEST_F(HalfThere, NoTokensAreFine) {
  const CombineOutputs no_tokens = {{nowhere_, 0, kHidden}};
  CombineInputs in = {{rows_.data(), 6, kHidden},  // rows of an earlier batch
                      {nowhere_, 0, kTopK},
                      {no_ints_, 0, kTopK}};
  EXPECT_OK(Combine(in, no_tokens));
  in.residual = {nowhere_, 0, kHidden};
  in.shared = {{nowhere_, 0, kHidden}, {nowhere_, 0, 1}};
  EXPECT_OK(Combine(in, no_tokens));
  in.shared.gate = std::vector<float>();
  EXPECT_OK(Combine(in, no_tokens));
  // A shared expert has a gate but no columns.
  in = {{nowhere_, 6, 0},
        {weights_.data(), kTokens, kTopK},
        RowIndex::kTokenOrder};
  in.shared = {{nowhere_, kTokens, 0}, {weights_.data(), kTokens, 1}};
  EXPECT_OK(Combine(in, {{nowhere_, kTokens, 0}}));
}

// A call has to give row_index or kTokenOrder, as
// HalfThere.IsAnErrorAndNotAbsent tests. RowIndex still has a default, so
// that C++17 code can set the inputs field by field.
static_assert(std::is_default_constructible_v<RowIndex>);
static_assert(!RowIndex().token_order);
static_assert(std::is_constructible_v<RowIndex, AnyMatrix>);
static_assert(std::is_constructible_v<RowIndex, ConstAnyMatrix>);
static_assert(std::is_constructible_v<RowIndex, Matrix<int32_t>>);
static_assert(std::is_constructible_v<RowIndex, std::vector<int32_t>&>);

// ggml's sizes are int64_t. Braces do not allow narrowing them to size_t.
TEST(Sizes, OfAnyIntegerType) {
  const int64_t tokens = 3, top_k = 2, experts = 4;
  std::vector<int32_t> ids(6, 3), counts(4), offsets(5), pairs(6), index(6);
  const PackedBuckets buckets{{counts.data(), experts},
                              {offsets.data(), experts + 1},
                              {pairs.data(), tokens * top_k}};
  EXPECT_OK(BucketPacked({{ids.data(), tokens, top_k}}, buckets));
  EXPECT_EQ(counts, (std::vector<int32_t>{0, 0, 0, 6}));
  const Matrix<int32_t> rows{index.data(), tokens, top_k, top_k};
  EXPECT_OK(BucketPacked({{ids.data(), tokens, top_k}},
                         {counts, offsets, pairs, rows}));
  EXPECT_EQ(index, (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  // Sizes may also be enum constants, as in C.
  enum { kTokens = 3, kTopK = 2 };
  EXPECT_OK(BucketPacked({{ids.data(), kTokens, kTopK}},
                         {counts, offsets, {pairs.data(), kTokens * kTopK}}));
  // Negative sizes are converted to sizes that are far too large.
  ExpectError(BucketPacked({{ids.data(), tokens, int64_t{-1}}}, buckets),
              "BucketPacked: topk_ids: size overflows the address space");
  ExpectError(BucketPacked({{ids.data(), tokens, top_k}},
                           {counts, offsets, {pairs.data(), int64_t{-6}}}),
              "BucketPacked: pairs: size overflows the address space");
}

// Runs the calls on a thread that has only as much stack as docs/models.md
// promises to be enough.

// Builds without optimisation or with sanitizers have larger frames.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
constexpr size_t kStackBytes = 256 << 10;
#else
constexpr size_t kStackBytes = 40256 << 10;
#endif

// Runs the call. If it needs more stack, it hits the thread's guard page and
// crashes.
void OnSmallStack(const std::function<void()>& call) {
  pthread_attr_t attr;
  ASSERT_EQ(pthread_attr_init(&attr), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attr, kStackBytes), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attr,
                [](void* context) -> void* {
                  (*static_cast<const std::function<void()>*>(context))();
                  return nullptr;
                },
                const_cast<std::function<void()>*>(&call)),
            0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  ASSERT_EQ(pthread_attr_destroy(&attr), 0);
}

class StackTest : public IsaTest {};
SWITCHYARD_FOR_EVERY_ISA(StackTest);

TEST_P(StackTest, Route) {
  for (const size_t experts : {64u, 512u, 1024u, 16384u, 20000u}) {
    for (const size_t top_k : {8u, 32u, 64u}) {
      for (const Type type : kFloatTypes) {
        const size_t tokens = 40;
        Stored logits(type, std::vector<float>(tokens * experts, 1.0f));
        Stored weights(type, std::vector<float>(tokens * top_k));
        std::vector<int32_t> ids(tokens * top_k);
        OnSmallStack([&] {
          EXPECT_OK(RouteTopK(
              {logits.View(tokens, experts)},
              {{ids.data(), tokens, top_k}, weights.View(tokens, top_k)}));
        });
        EXPECT_EQ(ids.back(), static_cast<int32_t>(top_k - 1));
      }
    }
  }
}

TEST_P(StackTest, Rows) {
  const size_t rows = 2, cols = 20480;  // a multiple of all block sizes
  Stored gate(Type::kBF16, std::vector<float>(rows * cols, 1.0f));
  Stored weights(Type::kBF16, std::vector<float>(cols, 1.0f));
  Stored sums(Type::kBF16, std::vector<float>(rows * cols));
  const std::vector<int32_t> pairs = {1, 0};
  for (const Format& format : kFormats) {
    for (const size_t n : {size_t{8192}, cols}) {
      std::list<std::vector<unsigned char>> memory;
      const AnyRows out =
          MapRows(format, rows, n, [&](Type type, size_t r, size_t c) {
            memory.emplace_back(r * BytesOf(type, c));
            return AnyMatrix(static_cast<void*>(memory.back().data()), type, r,
                             c, c);
          });
      const ConstAnyMatrix in = gate.View(rows, n);
      OnSmallStack([&] {
        EXPECT_OK(Quantize({in}, {out}));
        EXPECT_OK(GatherRows({in, pairs, {pairs.data(), rows, 1}}, {out}));
        EXPECT_OK(Activate({in, in}, {out}));
        EXPECT_OK(Combine({in,
                           ConstAnyMatrix(gate.View(rows, 1)),
                           RowIndex::kTokenOrder,
                           in,
                           ConstAnyMatrix(weights.View(1, n)),
                           {in, {}, SharedGate::kNone}},
                          {sums.View(rows, n), out}));
      });
      EXPECT_EQ(sums.Values()[rows * n - 1], 3.0f) << format.name;
    }
  }
}

// Tests threads with all floating-point exceptions unmasked. No call may
// raise SIGFPE, and no call may change the thread's floating-point
// environment.

class FpTrapsTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(FpTrapsTest);

// Runs the call with floating-point traps. A trap ends the process, so the
// test only has to check the status.
Status Trapping(const std::function<Status()>& call) {
  std::fenv_t saved;
  std::feholdexcept(&saved);
  feenableexcept(FE_ALL_EXCEPT);
  const Status status = call();
  EXPECT_EQ(fegetexcept(), FE_ALL_EXCEPT);
  std::fesetenv(&saved);
  return status;
}

// Calls every function with every type, with sizes that do not divide evenly,
// and with values that raise every exception: NaNs of both kinds, infinities,
// denormals and overflow.
TEST_P(FpTrapsTest, EveryFunctionOnAnyValues) {
  const size_t tokens = 301, experts = 97, top_k = 7, hidden = 333;
  const size_t pairs = tokens * top_k;
  std::vector<int32_t> ids(pairs), counts(experts), offsets(experts + 1),
      order(pairs), index(pairs), table(experts * pairs);
  std::vector<int32_t> scratch(BucketScratchSize(pairs, experts, executor()));
  const ConstAnyMatrix topk_ids(ids.data(), tokens, top_k);
  for (const Type type : kFloatTypes) {
    SCOPED_TRACE(type);
    Random random(31);
    const auto any = [&](size_t n) { return Stored(type, random.AnyBits(n)); };
    const auto none = [&](size_t n) {
      return Stored(type, std::vector<float>(n));
    };
    Stored logits = any(tokens * experts), hiddens = any(tokens * hidden),
           residual = any(tokens * hidden), weight = any(hidden),
           up = any(pairs * hidden);
    Stored weights = none(pairs), rows = none(pairs * hidden),
           acted = none(pairs * hidden), out = none(tokens * hidden),
           normed = none(tokens * hidden);
    for (const bool renormalize : {true, false}) {
      ASSERT_OK(Trapping([&] {
        return RouteTopK(
            {logits.View(tokens, experts)},
            {{ids.data(), tokens, top_k}, weights.View(tokens, top_k)},
            {renormalize, 0.3f}, executor());
      }));
    }
    ASSERT_OK(Trapping([&] {
      return BucketPacked(
          {topk_ids, scratch},
          {counts, offsets, order, {index.data(), tokens, top_k}}, {},
          executor());
    }));
    ASSERT_OK(Trapping([&] {
      return BucketStrided({topk_ids, scratch}, {counts, table, pairs, true},
                           {}, executor());
    }));
    ASSERT_OK(Trapping([&] {
      return GatherRows({hiddens.View(tokens, hidden), order, topk_ids},
                        {rows.View(pairs, hidden)}, {}, executor());
    }));
    ASSERT_OK(Trapping([&] {
      return Activate({rows.View(pairs, hidden), up.View(pairs, hidden)},
                      {acted.View(pairs, hidden)}, {}, executor());
    }));
    ASSERT_OK(Trapping([&] {
      return Combine({acted.View(pairs, hidden),
                      weights.View(tokens, top_k),
                      {index.data(), tokens, top_k},
                      residual.View(tokens, hidden),
                      weight.View(1, hidden)},
                     {out.View(tokens, hidden), normed.View(tokens, hidden)},
                     {}, executor());
    }));
    // Converts f32 to each type, with overflow, and with underflow to
    // denormals.
    Stored wide(Type::kF32, random.AnyBits(pairs * hidden));
    ASSERT_OK(Trapping([&] {
      return Activate({wide.View(pairs, hidden), wide.View(pairs, hidden)},
                      {acted.View(pairs, hidden)}, {}, executor());
    }));
  }
  Stored wide(Type::kF32, Random(32).AnyBits(tokens * 512));
  for (const Format& format : kFormats) {
    SCOPED_TRACE(format.name);
    const GuardedRows rows(format, tokens, 512, 0, 0);
    ASSERT_OK(Trapping([&] {
      return Quantize({wide.View(tokens, 512)}, {rows.view()}, {}, executor());
    }));
    ASSERT_OK(Trapping([&] {
      return Activate({wide.View(tokens, 512), wide.View(tokens, 512)},
                      {rows.view()}, {}, executor());
    }));
  }
}

// The check of an option must not compare a NaN, because that would trap.
TEST(FpTraps, NaNOptionsAreRefused) {
  const std::vector<float> logits(8), weight(8);
  std::vector<float> weights(2), out(8), normed(8);
  std::vector<int32_t> ids(2);
  const float signalling = std::numeric_limits<float>::signaling_NaN();
  for (const float nan : {kNaN, -kNaN, signalling}) {
    ExpectError(Trapping([&] {
                  return RouteTopK({logits}, {ids, weights}, {true, nan});
                }),
                "RouteTopK: options: clamp is not in [0, 1]");
    ExpectError(Trapping([&] {
                  return Combine({logits,
                                  {logits.data(), 1, 1},
                                  RowIndex::kTokenOrder,
                                  {},
                                  weight},
                                 {out, normed}, {nan});
                }),
                "Combine: options: eps is negative or NaN");
  }
}

}  // namespace
}  // namespace switchyard::testing_support
