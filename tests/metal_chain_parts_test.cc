// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// metal_chain's GEMM tile, GEMV and the kernels on them, against double
// precision; and its comparison of buffers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine.h"
#include "gemm.h"
#include "gtest/gtest.h"
#include "host_chain.h"
#include "layer.h"
#include "switchyard/device/device.h"
#include "switchyard/executor.h"
#include "testing/inputs.h"

namespace metal_chain {
namespace {

namespace MTL = switchyard::device;

constexpr float kUntouched = -12345.0f;

std::vector<float> Values(size_t size, uint32_t stream) {
  return switchyard::testing_support::Random(stream).Uniforms(size, -1, 1);
}

// Any order of n products in float.
void ExpectDot(const float* a, const float* b, size_t n, float found,
               const std::string& where) {
  double sum = 0, magnitude = 0;
  for (size_t i = 0; i < n; ++i) {
    const double product = double{a[i]} * double{b[i]};
    sum += product;
    magnitude += std::fabs(product);
  }
  const double bound = (static_cast<double>(n) + 1) * 0x1p-24 * magnitude;
  EXPECT_LE(std::fabs(double{found} - sum), bound) << where;
}

// Input and output rows in any order, rows of `out` longer than the tile's.
TEST(MetalChainGemm, TileMatchesDouble) {
  for (const size_t cols : {1u, 7u, 127u, 128u, 129u, 300u, 768u}) {
    for (const size_t rows : {1u, 3u, 63u, 64u}) {
      for (const size_t pairs : {1u, 2u, 31u, 32u}) {
        const auto weights = Values(rows * cols, 1);
        const auto inputs = Values(pairs * cols, 2);
        std::vector<float> out(pairs * (rows + 5), kUntouched);
        std::vector<float> staged(kStagedFloats, NAN);
        GemmTile tile = {weights.data(), rows, cols, pairs, {}, {}};
        for (size_t p = 0; p < pairs; ++p) {
          tile.inputs[p] = inputs.data() + (pairs - 1 - p) * cols;
          tile.outputs[p] = out.data() + p * (rows + 5);
        }
        RunGemmTile(tile, staged);
        for (size_t p = 0; p < pairs; ++p) {
          const std::string where = "cols " + std::to_string(cols) + ", rows " +
                                    std::to_string(rows) + ", pair " +
                                    std::to_string(p) + " of " +
                                    std::to_string(pairs);
          for (size_t r = 0; r < rows; ++r) {
            ExpectDot(weights.data() + r * cols, tile.inputs[p], cols,
                      tile.outputs[p][r], where);
          }
          for (size_t r = rows; r < rows + 5; ++r) {
            EXPECT_EQ(tile.outputs[p][r], kUntouched) << where;
          }
        }
      }
    }
  }
}

// The bits of a result do not depend on how the matrix is cut.
TEST(MetalChainGemm, TilesOfAnyShapeHaveTheSameBits) {
  constexpr size_t kRows = 64, kCols = 333, kPairs = 32;
  const auto weights = Values(kRows * kCols, 3);
  const auto inputs = Values(kPairs * kCols, 4);
  std::vector<float> whole(kPairs * kRows), cut(kPairs * kRows);
  std::vector<float> staged(kStagedFloats);
  const auto run = [&](size_t rows, size_t pairs, std::vector<float>& out) {
    for (size_t row = 0; row < kRows; row += rows) {
      for (size_t pair = 0; pair < kPairs; pair += pairs) {
        GemmTile tile = {weights.data() + row * kCols,
                         std::min(rows, kRows - row),
                         kCols,
                         std::min(pairs, kPairs - pair),
                         {},
                         {}};
        for (size_t p = 0; p < tile.pairs; ++p) {
          tile.inputs[p] = inputs.data() + (pair + p) * kCols;
          tile.outputs[p] = out.data() + (pair + p) * kRows + row;
        }
        RunGemmTile(tile, staged);
      }
    }
  };
  run(kRows, kPairs, whole);
  for (const size_t rows : {1u, 7u, 64u}) {
    for (const size_t pairs : {1u, 5u, 32u}) {
      run(rows, pairs, cut);
      EXPECT_EQ(std::memcmp(cut.data(), whole.data(), 4 * cut.size()), 0)
          << rows << " x " << pairs;
    }
  }
}

TEST(MetalChainGemm, GemvMatchesDouble) {
  for (const size_t cols : {0u, 1u, 31u, 32u, 33u, 256u, 777u}) {
    for (const size_t rows : {1u, 5u, 64u}) {
      const auto weights = Values(rows * cols, 5);
      const auto input = Values(cols, 6);
      std::vector<float> out(rows + 1, kUntouched);
      RunGemv(weights.data(), rows, cols, input.data(), out.data());
      for (size_t r = 0; r < rows; ++r) {
        ExpectDot(weights.data() + r * cols, input.data(), cols, out[r],
                  "cols " + std::to_string(cols));
      }
      EXPECT_EQ(out[rows], kUntouched);
    }
  }
}

// Two experts of 70 rows, three pairs of which the first expert has two.
class ExpertGemmKernelTest : public testing::Test {
 protected:
  static constexpr int32_t kRows = 70, kCols = 130, kStride = 4;

  // Returns the command buffer's error.
  std::string Run(size_t experts_in_grid, size_t out_floats) {
    const auto device = MTL::CreateSystemDefaultDevice();
    const auto copy = [&](const auto& values) {
      return device->newBuffer(values.data(),
                               values.size() * sizeof(values[0]));
    };
    const auto out = device->newBuffer(out_floats * sizeof(float));
    const auto buffer = device->newCommandQueue()->commandBuffer();
    const auto encoder = buffer->computeCommandEncoder();
    encoder->setComputePipelineState(device->newComputePipelineState(
        ExpertGemmKernel("gemm", size_t{kCols})));
    encoder->setBuffer(copy(weights_), 0, 0);
    encoder->setBuffer(copy(input_), 0, 1);
    encoder->setBuffer(out, 0, 2);
    encoder->setBuffer(copy(tpe_), 0, 3);
    encoder->setBuffer(copy(ids_), 0, 4);
    const ExpertGemmParams params = {kRows, kCols, kStride, 1};
    encoder->setBytes(&params, sizeof(params), 5);
    encoder->setThreadgroupMemoryLength(kStagedFloats * sizeof(float), 0);
    // Wider and higher than needed, as an indirect grid may be.
    encoder->dispatchThreadgroups(MTL::Size(3, 4, experts_in_grid),
                                  MTL::Size(kThreads, 1, 1));
    encoder->endEncoding();
    buffer->commit();
    buffer->waitUntilCompleted();
    const float* const found = static_cast<const float*>(out->contents());
    out_.assign(found, found + out_floats);
    return buffer->error();
  }

  const std::vector<float> weights_ = Values(2 * kRows * kCols, 7);
  const std::vector<float> input_ = Values(3 * kCols, 8);
  const std::vector<int32_t> tpe_ = {2, 1};
  const std::vector<int32_t> ids_ = {0, 2, -1, -1, 1, -1, -1, -1};
  std::vector<float> out_;
};

TEST_F(ExpertGemmKernelTest, ResultsAreAtTheIndexOfThePair) {
  ASSERT_EQ(Run(2, 3 * kRows), "");
  const size_t expert_of_pair[] = {0, 1, 0};
  for (size_t p = 0; p < 3; ++p) {
    for (size_t r = 0; r < kRows; ++r) {
      ExpectDot(weights_.data() + (expert_of_pair[p] * kRows + r) * kCols,
                input_.data() + p * kCols, kCols, out_[p * kRows + r],
                "pair " + std::to_string(p) + ", row " + std::to_string(r));
    }
  }
}

TEST_F(ExpertGemmKernelTest, WrongGridsAndBuffersAreErrors) {
  const std::string too_short =
      "gemm: a bound buffer is too short for the params";
  EXPECT_EQ(Run(3, 3 * kRows), too_short);
  EXPECT_EQ(Run(2, 3 * kRows - 1), too_short);
}

// The comparison with the plain API sees a single bit, wherever it is.
class MetalChainComparison : public testing::Test {
 protected:
  static std::shared_ptr<switchyard::Executor> Serial() {
    return {&switchyard::SerialExecutor(), [](switchyard::Executor*) {}};
  }

  MetalChainComparison() { (void)engine_.RunPrefill(prompt_, device_); }

  Comparison Compare() const {
    return CompareActivations(kSmallShape, device_, host_);
  }

  // Flips the lowest bit of the last element of a device's buffer, looks, and
  // flips it back.
  Comparison CompareFlipped(const BufferPtr& buffer) const {
    auto* const last =
        static_cast<unsigned char*>(buffer->contents()) + buffer->length() - 4;
    *last ^= 1;
    const Comparison result = Compare();
    *last ^= 1;
    return result;
  }

  const Layer layer_ = GenerateLayer(kSmallShape, *Serial());
  const HiddenStates prompt_ = GenerateHidden(3, kSmallShape, *Serial());
  const Engine engine_{layer_, Serial()};
  const Activations device_ = engine_.NewActivations(prompt_);
  const HostActivations host_ = PrefillOnHost(layer_, prompt_, *Serial());
};

TEST_F(MetalChainComparison, SeesOneBitInEachBuffer) {
  EXPECT_TRUE(Compare().differences.empty());
  EXPECT_EQ(Compare().buffers, 13u);
  const std::vector<std::pair<std::string, BufferPtr>> buffers = {
      {"logits", device_.logits},
      {"ids", device_.ids},
      {"weights", device_.weights},
      {"gate", device_.gate},
      {"up", device_.up},
      {"activated", device_.activated},
      {"down", device_.down},
      {"residual", device_.residual},
      {"normed", device_.normed},
      {"tokens_per_expert", device_.tokens_per_expert},
      {"gate_up_args", device_.gate_up_args},
      {"down_args", device_.down_args}};
  for (const auto& [name, buffer] : buffers) {
    const Comparison result = CompareFlipped(buffer);
    ASSERT_EQ(result.differences.size(), 1u) << name;
    EXPECT_EQ(result.differences[0].find(name + ": row "), 0u)
        << result.differences[0];
  }
  EXPECT_EQ(CompareFlipped(device_.down_args).differences[0],
            "down_args: row 0, column 2: 17 instead of 16; 1 of 1 row");
}

// Only the filled part of an expert's bucket counts: the rest is nobody's.
TEST_F(MetalChainComparison, BucketsCountUpToTheirLength) {
  const size_t row_stride = RowStride(host_.ids.size());
  auto* const pairs = static_cast<int32_t*>(device_.buckets->contents());
  for (size_t e = 0; e < host_.tokens_per_expert.size(); ++e) {
    const auto num_pairs = static_cast<size_t>(host_.tokens_per_expert[e]);
    pairs[e * row_stride + num_pairs] ^= 1;
    EXPECT_TRUE(Compare().differences.empty()) << e;
    if (num_pairs == 0) continue;
    pairs[e * row_stride + num_pairs - 1] ^= 1;
    const Comparison result = Compare();
    ASSERT_EQ(result.differences.size(), 1u) << e;
    EXPECT_EQ(
        result.differences[0].find("buckets: row " + std::to_string(e) +
                                   ", column " + std::to_string(num_pairs - 1)),
        0u);
    pairs[e * row_stride + num_pairs - 1] ^= 1;
  }
}

}  // namespace
}  // namespace metal_chain
