// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Kernels that are cut where their threads meet give what they give uncut,
// which checked mode runs: src/device/metal/regions.h.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/device/metal/compile.h"
#include "switchyard/device/library.h"
#include "tests/device/device_test.h"
#include "tests/device/metal_text.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

struct Case {
  const char* kernel;
  bool is_cut;
};
constexpr Case kCases[] = {
    {"tiles", true},       {"tree", true},
    {"nested", true},      {"swap", true},
    {"uneven", true},      {"read_bound", true},
    {"ways", true},        {"constant_way", true},
    {"own_memory", true},  {"argument_memory", true},
    {"lanes", true},       {"matrices", true},
    {"deep", true},        {"some_meet", false},
    {"as_many_as", false}, {"alone", false},
};

class Runner {
 public:
  explicit Runner(bool check_kernels)
      : device_(NewDevice(false, {check_kernels, 0})), texts_(device_) {}

  // The words of `out`; where it fails, the error.
  std::vector<uint32_t> operator()(const char* kernel, Size groups,
                                   Size threads, std::string* error = nullptr) {
    FunctionConstantValues values;
    const bool is_set = groups.width % 2 == 1;
    values.setConstantValue(&is_set, DataTypeBool, 0);
    const auto function = texts_.Get("regions", kernel, &values);
    if (function == nullptr) return {};
    const auto pipeline = device_->newComputePipelineState(function);
    std::vector<uint32_t> in(size_t{1} << 14);
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<uint32_t>((i + 1) * 2654435761u >> 5);
    }
    const uint32_t n = 24;
    const auto input = NewBuffer(*device_, in);
    const auto out = NewBuffer(*device_, std::vector<uint32_t>(in.size(), 1));
    const auto commands = device_->newCommandQueue()->commandBuffer();
    const auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline);
    encoder->setBuffer(input, 0, 0);
    encoder->setBuffer(out, 0, 1);
    encoder->setBytes(&n, sizeof(n), 2);
    encoder->setThreadgroupMemoryLength(1024, 0);
    encoder->dispatchThreads(groups, threads);
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    if (error != nullptr) {
      *error = commands->error();
    } else {
      EXPECT_EQ(commands->error(), "") << kernel;
    }
    return Contents<uint32_t>(out);
  }

 private:
  std::shared_ptr<Device> device_;
  MetalTexts texts_;
};

class Regions : public testing::TestWithParam<Case> {};

TEST_P(Regions, AreThereWhereAllThreadsMeetAtTheSamePlaces) {
  SWITCHYARD_NEEDS_CLANG();
  const TempFolder cache;
  metal::CompileRequest request;
  request.path = MetalPath("regions");
  request.kernels = {GetParam().kernel};
  request.cache = cache.path();
  EXPECT_EQ(metal::Compile(request).kernels_cut, GetParam().is_cut ? 1u : 0u);
}

INSTANTIATE_TEST_SUITE_P(, Regions, testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.kernel; });

TEST(RegionsRun, GiveWhatTheKernelGivesUncut) {
  SWITCHYARD_NEEDS_CLANG();
  Runner cut(false), uncut(true);
  for (const Case& each : kCases) {
    const Size threads(16, 8, 1);
    for (const size_t width : {size_t{48}, size_t{64}}) {
      const Size all(width, 16, 1);
      const std::vector<uint32_t> out = cut(each.kernel, all, threads);
      EXPECT_EQ(out, uncut(each.kernel, all, threads)) << each.kernel;
      // All that are there have done something.
      const auto written = std::count_if(
          out.begin(), out.begin() + static_cast<ptrdiff_t>(width) * 16,
          [](uint32_t word) { return word != 1; });
      EXPECT_GT(written, static_cast<ptrdiff_t>(width) * 15) << each.kernel;
    }
  }
}

TEST(RegionsRun, TakeThreadgroupsThatAreSmallerAtTheEdge) {
  SWITCHYARD_NEEDS_CLANG();
  Runner cut(false), uncut(true);
  const Size all(41, 13, 1), threads(16, 8, 1);
  for (const char* const kernel : {"uneven", "tree"}) {
    EXPECT_EQ(cut(kernel, all, threads), uncut(kernel, all, threads)) << kernel;
  }
  for (const Size each : {Size(1, 128, 1), Size(128, 1, 1), Size(2, 64, 1)}) {
    const Size two(each.width * 2, each.height * 2, 1);
    EXPECT_EQ(cut("nested", two, each), uncut("nested", two, each))
        << each.width;
  }
  const Size rest(9, 7, 5);
  EXPECT_EQ(cut("deep", rest, {5, 3, 2}), uncut("deep", rest, {5, 3, 2}));
}

TEST(RegionsRun, EndWithTheErrorOfTheKernelUncut) {
  SWITCHYARD_NEEDS_CLANG();
  Runner cut(false), uncut(true);
  std::string error, expected;
  const Size all(32, 8, 1), threads(16, 8, 1);
  cut("needs_unbound", all, threads, &error);
  uncut("needs_unbound", all, threads, &expected);
  EXPECT_NE(error, "");
  EXPECT_EQ(error, expected);
  // The next one does not mind.
  EXPECT_EQ(cut("tree", all, threads), uncut("tree", all, threads));
}

}  // namespace
}  // namespace switchyard::testing_support
