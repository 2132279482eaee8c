// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The stack that docs/models.md promises, on a thread that has no more.

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <vector>

#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/quantize.h"
#include "switchyard/route.h"
#include "testing/formats.h"
#include "testing/inputs.h"
#include "tests/row_types.h"
#include "tests/target_test.h"

namespace switchyard::testing_support {
namespace {

// The frames of checked builds are larger.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
constexpr size_t kStackBytes = 256 << 10;
#else
constexpr size_t kStackBytes = 40256 << 10;
#endif

// Overflowing it hits the thread's guard page.
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
  const size_t rows = 2, cols = 20480;  // a multiple of every block
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

}  // namespace
}  // namespace switchyard::testing_support
