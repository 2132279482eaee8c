// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the kernel in device/docs/metal.md and its broken variants, and
// compares the output with the output that the page shows.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "device/tests/checked_kernels.h"
#include "device/tests/metal_text.h"
#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"

namespace switchyard::testing_support {
namespace {

struct RmsNormParams {
  uint32_t n;
  float eps;
};

template <bool kBarrier>
struct RmsNorm {
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<RmsNormParams>(tg, 3);
    const size_t row = tg.threadgroup_position_in_grid.width;
    const auto x = buffer<const float>(tg, 0) + row * p.n;
    const auto weight = buffer<const float>(tg, 1);
    const auto out = buffer<float>(tg, 2) + row * p.n;
    const auto part = threadgroup_array<float, 8>(tg);

    auto sum = tg.per_thread(0.0f);
    tg.for_each_thread([&](auto t) {
      for (size_t i = t.thread_index_in_threadgroup; i < p.n; i += 256) {
        sum[t] += x[i] * x[i];
      }
    });
    const auto sg_sum = simd_sum(sum);
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_simdgroup == 0) {
        part[t.simdgroup_index_in_threadgroup] = sg_sum[t];
      }
    });
    if (kBarrier) tg.threadgroup_barrier(mem_flags::mem_threadgroup);
    tg.for_each_thread([&](auto t) {
      float total = 0.0f;
      for (size_t s = 0; s < 8; ++s) total += part[s];
      const float scale =
          1.0f / std::sqrt(total / static_cast<float>(p.n) + p.eps);
      for (size_t i = t.thread_index_in_threadgroup; i < p.n; i += 256) {
        out[i] = x[i] * scale * weight[i];
      }
    });
  }
};

constexpr size_t kRows = 5, kColumns = 700;

template <class Kernel>
std::string RunNorm(CheckedQueue& q, const Kernel& kernel, size_t threads,
                    uint32_t columns = kColumns) {
  const RmsNormParams p = {columns, 1e-6f};
  const auto x = q.Floats(kRows * kColumns, 3.0f);
  const auto weight = q.Floats(kColumns, 2.0f);
  const auto out = q.device->newBuffer(kRows * kColumns * sizeof(float));
  const std::string error = q.Run([&](Encoder& e) {
    q.SetKernel(e, MakeKernel("rms_norm", kernel));
    e.setBuffer(x, 0, 0);
    e.setBuffer(weight, 0, 1);
    e.setBuffer(out, 0, 2);
    e.setBytes(&p, sizeof(p), 3);
    e.dispatchThreadgroups(Size(kRows, 1, 1), Size(threads, 1, 1));
  });
  if (error.empty()) {
    for (const float v : Contents<float>(out)) EXPECT_NEAR(v, 2.0f, 1e-5f);
  }
  return error;
}

TEST(DeviceGuide, TheKernelRuns) {
  for (const uint64_t seed : {0u, 1u, 2u, 3u}) {
    CheckedQueue q(seed);
    EXPECT_EQ(RunNorm(q, RmsNorm<true>{}, 256), "");
  }
}

TEST(DeviceGuide, TheBrokenOnesSayWhatIsWrong) {
  CheckedQueue q;
  EXPECT_EQ(RunNorm(q, RmsNorm<false>{}, 256),
            "rms_norm: threadgroup (0, 0, 0), thread 0: reads threadgroup "
            "array 0[1], which thread 32 wrote in the same phase: a "
            "threadgroup_barrier is missing");
  EXPECT_EQ(RunNorm(q, RmsNorm<true>{}, 64),
            "rms_norm: threadgroup (0, 0, 0), thread 0: reads threadgroup "
            "array 0[2], which no thread has written");
  EXPECT_EQ(RunNorm(q, RmsNorm<true>{}, 256, 701),
            "rms_norm: threadgroup (0, 0, 0), thread 188: reads buffer 1[700], "
            "which has 700 elements");
}

// Runs the program in device/docs/metal.md on the page's shader, and compares
// the output with the output that the page shows.

namespace MTL = switchyard::device;

// The guide's main() as a function: it takes the shader's path as an argument
// and returns the output in *printed.
std::vector<MTL::Finding> Check(const char* path, std::string* printed) {
  std::vector<float> row(256, 1.0f);
  std::vector<MTL::Finding> findings;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    MTL::DeviceOptions options;
    options.check_kernels = true;
    options.schedule_seed = seed;
    auto device = MTL::CreateDevice(options);
    std::string error;
    auto library = device->newLibraryFromFile(path, {}, &error);
    auto function =
        library == nullptr ? nullptr : library->newFunction("row_max", &error);
    auto pipeline = function == nullptr
                        ? nullptr
                        : device->newComputePipelineState(function, &error);
    if (pipeline == nullptr) {
      *printed = error;
      return {};
    }
    auto queue = device->newCommandQueue();
    auto commands = queue->commandBuffer();
    auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline);
    encoder->setBuffer(device->newBuffer(row.data(), 4 * row.size()), 0, 0);
    encoder->setBuffer(device->newBuffer(4 * row.size()), 0, 1);
    encoder->dispatchThreadgroups(MTL::Size(1, 1, 1),
                                  MTL::Size(row.size(), 1, 1));
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    findings = commands->findings();
    if (!findings.empty()) break;
  }
  *printed = MTL::FindingsToText(findings);
  return findings;
}

TEST(DeviceShadersGuide, PrintsWhatItSays) {
  SWITCHYARD_NEEDS_CLANG();
  std::string printed;
  const auto findings = Check(MetalPath("guide").c_str(), &printed);
  std::printf("%s", printed.c_str());
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].kind, MTL::FindingKind::kBarrierFlags);
  EXPECT_EQ(findings[0].where.line, 15u);
  EXPECT_EQ(findings[0].other.line, 12u);
  // The page shows these lines, but names the file by another path.
  for (const char* const said :
       {"row_max: threadgroup (0, 0, 0), thread 0: reads part[1] at ",
        "guide.metal:15:43, which thread 32 wrote at ", "guide.metal:12:27",
        "the threadgroup_barrier between them has mem_none, this is "
        "threadgroup memory: it needs mem_threadgroup"}) {
    EXPECT_NE(printed.find(said), std::string::npos) << said;
  }

  // The repaired shader must have no findings.
  std::string text = TextOfFile(MetalPath("guide"));
  text.replace(text.find("mem_none"), 8, "mem_threadgroup");
  const std::string path = testing::TempDir() + "guide_repaired.metal";
  std::ofstream(path) << text;
  EXPECT_TRUE(Check(path.c_str(), &printed).empty()) << printed;
  EXPECT_EQ(printed, "");
}

}  // namespace
}  // namespace switchyard::testing_support
