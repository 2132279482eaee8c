// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Grids of built-in kernels that leave out what their parameters name: legal,
// and told in checked mode.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/kernels.h"
#include "tests/device/checked_kernels.h"

namespace switchyard::testing_support {
namespace {

using Warnings = std::vector<std::string>;

class DeviceWarnings : public testing::Test {
 protected:
  // silu_mul_batched over [rows, cols], and what is said of the grid.
  Warnings Silu(uint32_t rows, uint32_t cols, Size grid, size_t times = 1,
                bool check = true) {
    CheckedQueue q(NewDevice(false, {check, 0}));
    const SiluMulBatchedParams params = {static_cast<int32_t>(rows),
                                         static_cast<int32_t>(cols)};
    const BufferPtr x = q.Floats(rows * cols);
    const auto commands = Encoded(*q.queue, [&](Encoder& e) {
      e.setLabel("mlp");
      e.setComputePipelineState(
          q.device->newComputePipelineState("silu_mul_batched_f32"));
      CheckedQueue::SetBuffers(e, {x, x, x});
      e.setBytes(&params, sizeof(params), 3);
      for (size_t i = 0; i < times; ++i) {
        e.dispatchThreadgroups(grid, Size(256, 1, 1));
      }
    });
    EXPECT_EQ(commands->warnings(), Warnings());
    commands->commit();
    commands->waitUntilCompleted();
    EXPECT_EQ(commands->error(), "");
    return commands->warnings();
  }
};

TEST_F(DeviceWarnings, AGridThatIsTooSmall) {
  EXPECT_EQ(Silu(7, 512, Size(2, 7, 1)), Warnings());
  EXPECT_EQ(Silu(7, 512, Size(3, 9, 1)), Warnings());  // larger is usual
  EXPECT_EQ(Silu(7, 512, Size(2, 5, 1)),
            Warnings({"silu_mul_batched_f32: the grid covers 5 of 7 rows "
                      "[encoder \"mlp\"]"}));
  EXPECT_EQ(Silu(7, 512, Size(1, 7, 1), 3),  // once
            Warnings({"silu_mul_batched_f32: the grid covers 256 of 512 "
                      "columns [encoder \"mlp\"]"}));
}

TEST_F(DeviceWarnings, AGridThatIsSwapped) {
  EXPECT_EQ(Silu(7, 512, Size(7, 2, 1)),
            Warnings({"silu_mul_batched_f32: the grid covers 2 of 7 rows: its "
                      "width and height are swapped [encoder \"mlp\"]"}));
  EXPECT_EQ(Silu(2, 1500, Size(2, 6, 1)),
            Warnings({"silu_mul_batched_f32: the grid covers 512 of 1500 "
                      "columns: its width and height are swapped [encoder "
                      "\"mlp\"]"}));
}

TEST_F(DeviceWarnings, OnlyInCheckedMode) {
  EXPECT_EQ(Silu(7, 512, Size(2, 5, 1), 1, false), Warnings());
}

// An earlier dispatch has found the threads to be enough.
TEST_F(DeviceWarnings, NotOfIndirectGrids) {
  CheckedQueue q;
  const SiluMulBatchedParams params = {7, 512};
  const uint32_t args[3] = {2, 5, 1};
  const BufferPtr x = q.Floats(7 * 512);
  const auto commands = Encoded(*q.queue, [&](Encoder& e) {
    e.setComputePipelineState(
        q.device->newComputePipelineState("silu_mul_batched_f32"));
    CheckedQueue::SetBuffers(e, {x, x, x});
    e.setBytes(&params, sizeof(params), 3);
    e.dispatchThreadgroups(q.device->newBuffer(args, sizeof(args)), 0,
                           Size(256, 1, 1));
  });
  commands->commit();
  commands->waitUntilCompleted();
  EXPECT_EQ(commands->error(), "");
  EXPECT_EQ(commands->warnings(), Warnings());
}

}  // namespace
}  // namespace switchyard::testing_support
