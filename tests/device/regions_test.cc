// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Kernels that are cut where their threads meet give what they give uncut,
// which checked mode runs: src/device/metal/regions.h.

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
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

const std::vector<std::string> kCut = {
    "tiles",      "tree",     "nested",       "swap",       "uneven",
    "read_bound", "ways",     "constant_way", "own_memory", "argument_memory",
    "lanes",      "matrices", "deep"};
const std::vector<std::string> kUncut = {"some_meet", "as_many_as", "alone"};

class Runner {
 public:
  // Kernels of metal/regions.metal, or of that text.
  explicit Runner(bool check_kernels, const std::string& text = "")
      : device_(NewDevice(false, {check_kernels, 0})), texts_(device_) {
    std::string error;
    if (!text.empty()) library_ = device_->newLibrary(text.c_str(), {}, &error);
    EXPECT_EQ(error, "");
  }

  // The words of `out`; where it fails, the error.
  std::vector<uint32_t> operator()(const std::string& kernel, Size groups,
                                   Size threads, std::string* error = nullptr) {
    FunctionConstantValues values;
    const bool is_set = groups.width % 2 == 1;
    values.setConstantValue(&is_set, DataTypeBool, 0);
    const auto function = library_ != nullptr
                              ? library_->newFunction(kernel.c_str())
                              : texts_.Get("regions", kernel, &values);
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
  std::shared_ptr<Library> library_;
};

size_t CountCut(const std::vector<std::string>& kernels) {
  const TempFolder cache;
  metal::CompileRequest request;
  request.path = MetalPath("regions");
  request.kernels = kernels;
  request.cache = cache.path();
  return metal::Compile(request).kernels_cut;
}

TEST(Regions, AreThereWhereAllThreadsMeetAtTheSamePlaces) {
  SWITCHYARD_NEEDS_CLANG();
  EXPECT_EQ(CountCut(kCut), kCut.size());
  EXPECT_EQ(CountCut(kUncut), 0u);
}

// A Clang that does not take their text.
TEST(Regions, AreLeftOutWhereTheyDoNotCompile) {
  SWITCHYARD_NEEDS_CLANG();
  const TempFolder folder;
  const std::string clang = folder.File("clang++");
  std::ofstream(clang) << "#!/bin/sh\n"
                          "for each; do\n"
                          "  case $each in */llvm)\n"
                          "    grep -q swy_region_ \"$each\" && exit 1 ;;\n"
                          "  esac\n"
                          "done\n"
                          "exec " +
                              metal::FindCompiler("") + " \"$@\"\n";
  chmod(clang.c_str(), 0700);
  metal::CompileRequest request;
  request.path = MetalPath("regions");
  request.kernels = {"tree"};
  request.cache = folder.path();
  request.compiler = clang;
  const metal::Compiled compiled = metal::Compile(request);
  EXPECT_EQ(compiled.kernels_cut, 0u);
  EXPECT_NE(compiled.module, nullptr);
}

TEST(Regions, GiveWhatTheKernelGivesUncut) {
  SWITCHYARD_NEEDS_CLANG();
  Runner cut(false), uncut(true);
  std::vector<std::string> kernels = kCut;
  kernels.insert(kernels.end(), kUncut.begin(), kUncut.end());
  for (const std::string& kernel : kernels) {
    const Size threads(16, 8, 1);
    for (const size_t width : {size_t{48}, size_t{64}}) {
      const Size all(width, 16, 1);
      const std::vector<uint32_t> out = cut(kernel, all, threads);
      EXPECT_EQ(out, uncut(kernel, all, threads)) << kernel;
      // All that are there have done something.
      const auto written = std::count_if(
          out.begin(), out.begin() + static_cast<ptrdiff_t>(width) * 16,
          [](uint32_t word) { return word != 1; });
      EXPECT_GT(written, static_cast<ptrdiff_t>(width) * 15) << kernel;
    }
  }
}

TEST(Regions, TakeThreadgroupsThatAreSmallerAtTheEdge) {
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

TEST(Regions, EndWithTheErrorOfTheKernelUncut) {
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

// Writes kernels without races: threads exchange numbers where all of them
// meet, which they do in any order of branches and loops.
class Writer {
 public:
  explicit Writer(uint32_t seed) : random_(seed) {}

  std::string Kernel(const std::string& name) {
    loops_ = 0;
    left_ = 50;
    return "kernel void " + name +
           "(device const uint* in [[buffer(0)]], device uint* out "
           "[[buffer(1)]], constant uint& n [[buffer(2)]], uint2 at "
           "[[thread_position_in_grid]], uint group "
           "[[threadgroup_position_in_grid]], uint i "
           "[[thread_index_in_threadgroup]], uint lane "
           "[[thread_index_in_simdgroup]]) {\n"
           "  threadgroup uint x[64];\n  uint m[4] = {1, i, 3, at.x};\n"
           "  uint a = in[i + 64 * group], b = i, c = lane, u = n + group;\n"
           "  float f = float(i);\n" +
           Exchange("b += x[63 - i];") + Statements(4, true) +
           "  out[i + 64 * group] = Mix(a, b) + c * 3 + u + uint(f) + m[0] + "
           "m[1] * 5 + m[2] * 7 + m[3] * 11;\n}\n";
  }

 private:
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  std::string Number(uint32_t n) { return std::to_string(Below(n)); }
  std::string Own() { return std::string(1, "abc"[Below(3)]); }

  // `all`: whether all threads of a threadgroup are here.
  std::string Statements(int depth, bool all) {
    std::string text;
    for (uint32_t n = 2 + Below(4); n > 0 && left_ > 0; --n, --left_) {
      text += Statement(depth, all);
    }
    return text;
  }
  std::string Block(int depth, bool all) {
    return "{\n" + Statements(depth - 1, all) + "  }\n";
  }
  std::string Exchange(const std::string& take) {
    return "  x[i] = " + Own() + ";\n  MEET;\n  " + take + "\n  MEET;\n";
  }
  std::string Statement(int depth, bool all) {
    const std::string own = Own(), loop = "k" + std::to_string(loops_++);
    switch (Below(all ? 15 : 7)) {
      case 0:
        return "  " + own + " = Mix(" + Own() + ", " + Own() + " + " +
               Number(9) + ");\n";
      case 1:
        return "  m[" + Own() + " % 4] = " + Own() + "; " + own + " ^= m[" +
               Own() + " % 4];\n";
      case 2:
        return "  f = f * 0.5f + float(" + own + " % 100);\n";
      case 3:
        return "  " + own + " += u + uint(f);\n";
      case 4:
      case 5:
        if (depth == 0) return "";
        return "  if (" + own + " % 3 == u % " + std::to_string(2 + Below(3)) +
               ") " + Block(depth, false) +
               (Below(2) == 0 ? "" : "  else " + Block(depth, false));
      case 6:
        if (depth == 0) return "";
        return "  for (uint " + loop + " = 0; " + loop + " < " + own +
               " % 4; ++" + loop + ") " + Block(depth, false);
      case 7:
      case 8:
        return Exchange(own + " = Mix(" + own + ", x[(i + " + Number(64) +
                        ") % 64]);");
      case 9:
        return Exchange("u += x[" + Number(64) + "] % 3;");
      case 10:
        return "  u = u * " + Number(5) + " + 1;\n";
      case 11:
        return "  " + own + " += simd_sum(" + Own() + " % 50) + " +
               "simd_shuffle_xor(" + Own() + ", " + Number(32) +
               ") + quad_max(" + Own() + ");\n";
      case 12:
        if (depth == 0) return "";
        return "  if ((u + " + Number(5) + ") % 3 == 0) " + Block(depth, true) +
               (Below(2) == 0 ? "" : "  else " + Block(depth, true));
      case 13:
        if (depth == 0) return "";
        return "  for (uint " + loop + " = 0; " + loop + " < u % 4; ++" + loop +
               ") {\n" + Statements(depth - 1, true) + "  if ((u + " + loop +
               ") % 5 == 0) " + (Below(2) == 0 ? "break" : "continue") + ";\n" +
               Statements(depth - 1, true) + "  }\n";
      default:
        if (depth == 0) return "";
        return "  switch (u % 4) {\n  case 0: " + Block(depth, true) +
               (Below(2) == 0 ? "  break;\n" : "") +
               "  case 2: " + Block(depth, true) +
               "  break;\n  default: " + Block(depth, true) + "  }\n";
    }
  }

  std::mt19937 random_;
  int loops_ = 0, left_ = 0;
};

// SWITCHYARD_REGIONS_SEED takes other ones.
TEST(Regions, AreRightInRandomKernels) {
  SWITCHYARD_NEEDS_CLANG();
  const char* const given = std::getenv("SWITCHYARD_REGIONS_SEED");
  const auto seed = static_cast<uint32_t>(
      given == nullptr ? 1 : std::strtoul(given, nullptr, 10));
  constexpr int kKernels = 8;
  Writer writer(seed);
  std::string text =
      "#include <metal_stdlib>\nusing namespace metal;\n"
      "#define MEET threadgroup_barrier(mem_flags::mem_threadgroup)\n"
      "static uint Mix(uint a, uint b) {\n"
      "  return (a ^ b) * 2654435761u + (a >> 7);\n}\n";
  for (int k = 0; k < kKernels; ++k) {
    text += writer.Kernel("k" + std::to_string(k));
  }
  const TempFolder cache;
  metal::CompileRequest request;
  request.source = text;
  request.cache = cache.path();
  // Clang may bring paths together that its branches do not.
  EXPECT_GE(metal::Compile(request).kernels_cut, size_t{kKernels * 3 / 4});
  Runner cut(false, text), uncut(true, text);
  for (int k = 0; k < kKernels; ++k) {
    const std::string name = "k" + std::to_string(k);
    EXPECT_EQ(cut(name, {32, 8, 1}, {8, 8, 1}),
              uncut(name, {32, 8, 1}, {8, 8, 1}))
        << "seed " << seed << ", " << name << " of\n"
        << text;
  }
}

}  // namespace
}  // namespace switchyard::testing_support
