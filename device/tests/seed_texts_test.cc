// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the original shaders of the built-in kernels, without changes. The
// shaders are in the folder that the environment variable SWITCHYARD_SEEDS
// names; without the variable, the tests are skipped. The shaders are
// compiled when the test runs, and never copied. Each shader is compared with
// the built-in kernel of its name, and its known defects must be found on
// their lines.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "device/tests/finding_queue.h"
#include "device/tests/kernel_cases.h"
#include "gtest/gtest.h"
#include "switchyard/device/library.h"
#include "testing/guarded_buffer.h"
#include "testing/inputs.h"

namespace switchyard::testing_support {
namespace {

using Memory = std::map<size_t, RawBytes>;  // the contents of buffers by index

// The dimensions of a dispatch, in the order of BuiltIn::dimensions in the
// kernel's table (device/src/builtin/).
struct Sizes {
  const char* kernel;
  std::vector<int32_t> dimensions;
};
const Sizes kSizes[] = {
    {"moe_router_topk_softmax_f32", {60, 4, 1}},
    {"moe_router_topk_softmax_f32", {17, 5, 0}},
    {"moe_softmax_topk_f32", {64, 8, 5}},
    {"moe_softmax_topk_f32", {257, 3, 2}},
    {"moe_compute_ids_tpe_f32", {11, 290, 290, 100, 700}},
    {"silu_mul_stacked_f32", {3, 300}},
    {"weighted_sum_stacked_f32", {4, 700}},
    {"weighted_sum_residual_stacked_f32", {33, 257}},
    {"weighted_sum_residual_norm_stacked_f32", {8, 1001}},
};

const BuiltIn& BuiltInOf(const std::string& name) {
  const auto& cases = KernelCases();
  return *std::find_if(cases.begin(), cases.end(), [&](const KernelCase& c) {
            return c.name() == name;
          })->kernel;
}

// Returns random inputs of a kernel. Float inputs are logits or rows. Integer
// inputs are ids of experts, and some of these ids are invalid.
Memory InputsOf(const KernelCase& c) {
  Memory memory;
  Random random(c.args.size());
  for (const Arg& arg : c.args) {
    RawBytes& bytes = memory[arg.index];
    const size_t count = arg.rows * arg.cols;
    if (!arg.read) {
      bytes = Recast<unsigned char>(std::vector<uint32_t>(count, kCanary));
    } else if (arg.type == Type::kF32) {
      bytes = Recast<unsigned char>(random.Uniforms(count, -9.0f, 9.0f));
    } else {
      std::vector<int32_t> ids;
      for (size_t p = 0; p < count; ++p) {
        ids.push_back(static_cast<int32_t>(random.Below(13)) - 1);
      }
      bytes = Recast<unsigned char>(ids);
    }
  }
  return memory;
}

class DeviceSeedTexts : public testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("SWITCHYARD_SEEDS");
    if (folder == nullptr) {
      GTEST_SKIP() << "no shaders of others: SWITCHYARD_SEEDS=FOLDER";
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string page{std::istreambuf_iterator<char>(file), {}};
      if (page.find("\n#include <metal_stdlib>") != page.npos) AddText(page);
    }
  }
  // Adds the kernels in a page of text. Lines before the first kernel become
  // empty, so that all lines keep their numbers.
  void AddText(const std::string& page) {
    std::istringstream lines(page);
    std::string line, text, error;
    bool begun = false;
    while (std::getline(lines, line)) {
      begun |= line.rfind("//", 0) == 0 || line.rfind("#", 0) == 0;
      text += begun ? line + "\n" : "\n";
    }
    const auto library = queue_.device->newLibrary(text.c_str(), {}, &error);
    ASSERT_NE(library, nullptr) << error;
    EXPECT_TRUE(library->unsupported().empty());
    for (const std::string& name : library->functionNames()) {
      functions_[name] = library->newFunction(name.c_str(), &error);
      ASSERT_NE(functions_[name], nullptr) << error;
      texts_[name] = text;
    }
  }

  // Runs a dispatch on `memory`: the shader if `text` is true, otherwise the
  // built-in kernel. Returns the findings.
  std::vector<Finding> Run(const KernelCase& c, bool text, Memory* memory) {
    FindingQueue& q = queue_;
    std::map<size_t, BufferPtr> buffers;
    const auto findings = q.Find([&](Encoder& e) {
      e.setComputePipelineState(
          text ? q.device->newComputePipelineState(functions_.at(c.name()))
               : q.device->newComputePipelineState(c.name()));
      e.setBytes(c.params.data(), 4 * c.params.size(), c.kernel->params.index);
      for (const auto& [index, bytes] : *memory) {
        e.setBuffer(buffers[index] = q.Make(bytes), 0, index);
      }
      // The routers get scratch memory of the size that their engines set.
      const auto experts = static_cast<size_t>(c.params[0]);
      const auto router_bytes = 4 * (experts + 2 * c.args[1].cols + 1);
      e.setThreadgroupMemoryLength(
          c.OverRows() && c.kernel->params.index == 3 ? router_bytes
          : c.kernel->params.index == 0
              ? 4 * (2 * c.width + static_cast<size_t>(c.params[1]))
              : 0,
          0);
      e.dispatchThreadgroups(c.grid, Size(c.width, 1, 1));
    });
    for (auto& [index, bytes] : *memory) {
      bytes = Contents<unsigned char>(buffers[index]);
    }
    return findings;
  }
  // Returns a line of a kernel's text. Lines are counted from 1.
  std::string Line(const std::string& kernel, size_t number) const {
    std::istringstream lines(texts_.at(kernel));
    std::string line;
    for (size_t i = 0; i < number; ++i) std::getline(lines, line);
    return line;
  }

  FindingQueue queue_;
  std::map<std::string, std::shared_ptr<Function>> functions_;
  std::map<std::string, std::string> texts_;
};

TEST_F(DeviceSeedTexts, GiveWhatBuiltInKernelsDo) {
  EXPECT_EQ(functions_.size(), 7u);
  for (const Sizes& sizes : kSizes) {
    SCOPED_TRACE(sizes.kernel);
    const KernelCase c(BuiltInOf(sizes.kernel), sizes.dimensions);
    Memory built_in = InputsOf(c), text = built_in;
    ASSERT_TRUE(Run(c, false, &built_in).empty());
    const auto findings = Run(c, true, &text);
    ASSERT_TRUE(findings.empty()) << findings[0].text;
    for (const Arg& arg : c.args) {
      if (arg.type != Type::kF32) {
        auto a = Recast<int32_t>(built_in[arg.index]);
        auto b = Recast<int32_t>(text[arg.index]);
        // The kernels may list the pairs of an expert in different orders.
        if (arg.rows == 11) {
          for (auto* ids : {&a, &b}) {
            for (auto row = ids->begin(); row != ids->end();
                 row += static_cast<ptrdiff_t>(arg.cols)) {
              std::sort(row, row + static_cast<ptrdiff_t>(arg.cols));
            }
          }
        }
        EXPECT_EQ(a, b) << arg.name;
        continue;
      }
      const auto a = Recast<float>(built_in[arg.index]);
      const auto b = Recast<float>(text[arg.index]);
      float largest = 0;
      for (const float value : a) largest = std::max(largest, std::fabs(value));
      for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_NEAR(a[i], b[i], 1e-5f * largest) << arg.name << "[" << i << "]";
      }
    }
  }
}

// The original shaders have two defects, which are accesses out of bounds:
// * If a row has a NaN, the router finds no maximum, and writes at index -1.
// * If row_stride is smaller than an expert's number of pairs, the bucket
//   kernel writes past that expert's row of `ids`.
// Each finding must name the line of the defect.
TEST_F(DeviceSeedTexts, HaveTheDefects) {
  const auto expect = [&](const KernelCase& c, Memory memory,
                          const std::string& code) {
    const auto findings = Run(c, true, &memory);
    ASSERT_FALSE(findings.empty()) << code;
    EXPECT_EQ(findings[0].kind, FindingKind::kBounds) << findings[0].text;
    const std::string line = Line(c.name(), findings[0].where.line);
    EXPECT_NE(line.find(code), line.npos) << line;
  };
  const KernelCase router(BuiltInOf("moe_router_topk_softmax_f32"), {9, 2, 1});
  Memory with_nan = InputsOf(router);
  std::memcpy(&with_nan[0][4 * 13], &kNaN, sizeof(kNaN));
  expect(router, with_nan, "] = -INFINITY");
  const KernelCase bucket(BuiltInOf("moe_compute_ids_tpe_f32"),
                          {2, 2, 4, 64, 64});
  Memory one_expert = InputsOf(bucket);
  one_expert[0] = Recast<unsigned char>(std::vector<int32_t>{0, 1, 1, 1});
  expect(bucket, one_expert, "ids[");
}

}  // namespace
}  // namespace switchyard::testing_support
