// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Errors of single built-in kernels: what the plain API refuses, in its words,
// and what else is in the way of their shapes. No buffer has changed.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "testing/guarded_buffer.h"
#include "tests/device/device_test.h"
#include "tests/device/kernel_cases.h"

namespace switchyard::testing_support {
namespace {

// `spoil` works on the parameters and buffers of the kernel's case.
class DevicePlainErrors : public DeviceTest {
 protected:
  struct Spoilt {
    std::vector<int32_t> params;
    std::vector<BufferPtr> buffers;
    std::vector<size_t> offsets;
    Size grid;
  };
  // The same of every row type.
  void ExpectAllFail(const std::string& stem, const std::string& error,
                     const std::function<void(Spoilt&)>& spoil) {
    for (const RowType& type : kRowTypes) {
      ExpectFails(stem + type.suffix, error, spoil);
    }
  }
  void ExpectFails(const std::string& kernel, const std::string& error,
                   const std::function<void(Spoilt&)>& spoil) {
    const std::vector<KernelCase>& cases = KernelCases();
    const auto found = std::find_if(
        cases.begin(), cases.end(),
        [&](const KernelCase& one) { return one.name() == kernel; });
    ASSERT_NE(found, cases.end()) << kernel;
    const KernelCase& c = *found;
    Spoilt spoilt;
    spoilt.params = c.params;
    spoilt.grid = c.grid;
    for (size_t i = 0; i < c.args.size(); ++i) {
      // Room enough for a shape that is spoilt.
      spoilt.buffers.push_back(device_->newBuffer(4096));
      spoilt.offsets.push_back(0);
      int32_t* words = static_cast<int32_t*>(spoilt.buffers[i]->contents());
      std::fill_n(words, 1024,
                  c.args[i].written ? static_cast<int32_t>(kCanary) : 0);
    }
    spoil(spoilt);
    std::vector<std::vector<char>> contents;
    for (const BufferPtr& b : spoilt.buffers) {
      contents.push_back(Contents<char>(b));
    }
    ExpectBetweenOthers(kernel + ": " + error, [&](Encoder& e) {
      e.setComputePipelineState(device_->newComputePipelineState(c.name()));
      e.setBytes(spoilt.params.data(), 4 * spoilt.params.size(),
                 c.kernel->params.index);
      for (size_t i = 0; i < c.args.size(); ++i) {
        e.setBuffer(spoilt.buffers[i], spoilt.offsets[i], c.args[i].index);
      }
      e.dispatchThreadgroups(spoilt.grid, Size(c.width, 1, 1));
    });
    for (size_t i = 0; i < contents.size(); ++i) {
      EXPECT_EQ(Contents<char>(spoilt.buffers[i]), contents[i])
          << c.args[i].name;
    }
  }
};

TEST_F(DevicePlainErrors, ShapesBeyondTheAddressSpace) {
  ExpectFails("moe_router_topk_softmax_f32",
              "buffer 0 (logits): [576460752303423487, 2147483647] overflows "
              "the address space",
              [](Spoilt& s) {
                s.params[0] = INT32_MAX;
                s.grid = Size(SIZE_MAX / 32, 1, 1);
              });
  // 2^62 elements, of which four bytes each come to 0.
  ExpectFails(
      "moe_router_topk_softmax_f32",
      "buffer 0 (logits): [72057594037927936, 64] overflows the address "
      "space",
      [](Spoilt& s) {
        s.params[0] = 64;
        s.grid = Size(size_t{1} << 56, 1, 1);
      });
  ExpectFails("weighted_sum_batched_f32",
              "buffer 0 (slots): [4611686014132420609, 2147483647] overflows "
              "the address space",
              [](Spoilt& s) {
                s.params = {INT32_MAX, INT32_MAX, INT32_MAX};
              });
  ExpectFails("silu_mul_stacked_f32",
              "buffer 0 (gate): [2147483647, 2147483647] needs "
              "18446744056529682436 bytes, 4096 are bound: "
              "18446744056529678340 too few",
              [](Spoilt& s) {
                s.params = {INT32_MAX, INT32_MAX};
              });
  ExpectFails("silu_mul_stacked_f16",
              "buffer 0 (gate): [2147483647, 2147483647] needs "
              "9223372028264841218 bytes, 4096 are bound: "
              "9223372028264837122 too few",
              [](Spoilt& s) {
                s.params = {INT32_MAX, INT32_MAX};
              });
  // 2^63 elements, of which two bytes each come to 0.
  ExpectFails("moe_router_topk_softmax_bf16",
              "buffer 0 (logits): [144115188075855872, 64] overflows the "
              "address space",
              [](Spoilt& s) {
                s.params[0] = 64;
                s.grid = Size(size_t{1} << 57, 1, 1);
              });
}

TEST_F(DevicePlainErrors, Route) {
  ExpectAllFail("moe_router_topk_softmax",
                "RouteTopK: topk_ids: top_k (cols) exceeds the experts",
                [](Spoilt& s) { s.params[1] = 6; });
  ExpectAllFail("moe_router_topk_softmax",
                "RouteTopK: topk_ids: top_k (cols) is 0",
                [](Spoilt& s) { s.params[1] = 0; });
  ExpectAllFail("moe_router_topk_softmax",
                "RouteTopK: topk_ids: overlaps logits",
                [](Spoilt& s) { s.buffers[1] = s.buffers[0]; });
  ExpectAllFail("moe_softmax_topk", "params: n_experts is 0",
                [](Spoilt& s) { s.params[1] = 0; });
  ExpectAllFail("moe_softmax_topk",
                "RouteTopK: topk_weights: overlaps topk_ids",
                [](Spoilt& s) { s.buffers[2] = s.buffers[1]; });
}

TEST_F(DevicePlainErrors, Bucket) {
  const char* const kernel = "moe_compute_ids_tpe_f32";
  // All three pairs are of expert 0.
  ExpectFails(kernel, "params: row_stride is 2, and an expert has 3 pairs",
              [](Spoilt& s) { s.params[1] = 2; });
  ExpectFails(kernel, "params: row_stride is 0",
              [](Spoilt& s) { s.params[1] = 0; });
  ExpectFails(kernel, "BucketStrided: tokens_per_expert: no experts",
              [](Spoilt& s) { s.params[0] = 0; });
  ExpectFails(kernel, "BucketStrided: tokens_per_expert: overlaps topk_ids",
              [](Spoilt& s) { s.buffers[1] = s.buffers[0]; });
  // The same, where tpe would have to be restored.
  ExpectFails(kernel, "BucketStrided: tokens_per_expert: overlaps topk_ids",
              [](Spoilt& s) {
                s.buffers[1] = s.buffers[0];
                s.params[1] = 2;
              });
  const std::string overlap =
      "buffers 3 and 4 (args) overlap another buffer or each other";
  for (const size_t other : {0u, 1u, 2u, 4u}) {
    ExpectFails(kernel, overlap,
                [&](Spoilt& s) { s.buffers[3] = s.buffers[other]; });
  }
  for (const size_t other : {0u, 1u, 2u}) {
    ExpectFails(kernel, overlap, [&](Spoilt& s) {
      s.buffers[4] = s.buffers[other];
      s.offsets[4] = 8;  // by its last element
    });
  }
}

TEST_F(DevicePlainErrors, SiluMul) {
  ExpectAllFail("silu_mul_stacked",
                "Activate: out: overlaps gate without being the same view",
                [](Spoilt& s) {
                  s.buffers[2] = s.buffers[0];
                  s.offsets[2] = 4;
                });
  ExpectAllFail("silu_mul_batched",
                "Activate: out: overlaps up without being the same view",
                [](Spoilt& s) {
                  s.buffers[2] = s.buffers[1];
                  s.offsets[1] = 4;
                });
}

TEST_F(DevicePlainErrors, Combine) {
  ExpectAllFail("weighted_sum_stacked",
                "Combine: topk_weights: top_k (cols) is 0",
                [](Spoilt& s) { s.params[1] = 0; });
  ExpectAllFail("weighted_sum_residual_stacked", "Combine: out: overlaps rows",
                [](Spoilt& s) { s.buffers[2] = s.buffers[0]; });
  ExpectAllFail("weighted_sum_batched", "Combine: out: overlaps topk_weights",
                [](Spoilt& s) { s.buffers[2] = s.buffers[1]; });
  ExpectAllFail("weighted_sum_residual_norm_stacked",
                "Combine: options: eps is negative or NaN",
                [](Spoilt& s) { s.params[2] = static_cast<int32_t>(kCanary); });
  ExpectAllFail("weighted_sum_residual_norm_batched",
                "Combine: normed: overlaps out",
                [](Spoilt& s) { s.buffers[4] = s.buffers[2]; });
  ExpectAllFail("moe_weighted_reduce",
                "Combine: out: overlaps residual without being the same view",
                [](Spoilt& s) {
                  s.buffers[5] = s.buffers[4];
                  s.offsets[4] = 4;
                });
}

}  // namespace
}  // namespace switchyard::testing_support
