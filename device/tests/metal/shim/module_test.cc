// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the description of kernels, threadgroup variables, atomics, and the
// accesses that a checked module reports.

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "device/tests/metal/shim/shim_module.h"
#include "gtest/gtest.h"

namespace switchyard::testing_support {
namespace {

using switchyard_metal::Input;
using switchyard_metal::kAtomically;
using switchyard_metal::kReads;
using switchyard_metal::kVolatile;
using switchyard_metal::kWrites;
using switchyard_metal::Parameter;

TEST(ShimModuleTest, DescribesAKernel) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("module", false);
  const auto describe = module.Function<const Parameter*()>("describe");
  ASSERT_NE(describe, nullptr);
  const Parameter* const p = describe();
  EXPECT_STREQ(p[0].name, "x");
  EXPECT_STREQ(p[0].text, "device const float* x");
  EXPECT_EQ(p[0].index, 3u);
  EXPECT_EQ(p[0].bytes, 4u);
  EXPECT_TRUE(p[0].only_reads);
  EXPECT_FALSE(p[0].reference);
  EXPECT_FALSE(p[1].only_reads);
  // The struct has a uint and a float3. A float3 has the size and alignment
  // of a float4.
  EXPECT_EQ(p[2].bytes, 32u);
  EXPECT_EQ(p[2].alignment, 16u);
  EXPECT_TRUE(p[2].reference);
  EXPECT_TRUE(p[2].only_reads);
  EXPECT_EQ(p[3].input, Input::kThreadgroup);
  EXPECT_EQ(p[3].bytes, 2u);
  EXPECT_EQ(p[4].input, Input::kThreadPositionInGrid);
}

TEST(ShimModuleTest, HasThreadgroupVariables) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("module", false);
  const auto variables =
      module.Function<void(const int*, int*, uint32_t)>("variables");
  ASSERT_NE(variables, nullptr);
  std::vector<int> in(32), out(32);
  for (int i = 0; i < 32; ++i) in[static_cast<size_t>(i)] = i;
  ShimModule::RunLanes(
      32, [&](uint32_t lane) { variables(in.data(), out.data(), lane); });
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(out[static_cast<size_t>(i)], 1010 * (31 - i) + 2);
  }
}

// The accesses to `memory` that one call makes. Each has an offset, a number
// of bytes and a kind.
using Accesses = std::vector<std::tuple<size_t, size_t, uint32_t>>;
Accesses AccessesOf(const ShimModule& module, int what) {
  alignas(64) static char memory[256];
  const auto access = module.Function<void(void*, int)>("access");
  if (access == nullptr) return {};
  ShimModule::TakeAccesses();
  ShimModule::RunLanes(1, [&](uint32_t) { access(memory, what); });
  Accesses found;
  for (const Access& each : ShimModule::TakeAccesses()) {
    const auto* const at = static_cast<const char*>(each.address);
    EXPECT_TRUE(at >= memory && at < memory + sizeof(memory)) << what;
    // kAligned is ignored. A call with kAligned alone is not an access: it only
    // checks the address.
    const uint32_t kind = each.kind & ~uint32_t{switchyard_metal::kAligned};
    if (kind != 0) found.emplace_back(at - memory, each.bytes, kind);
  }
  return found;
}

TEST(ShimModuleTest, TellsOfAccesses) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("module", true);
  EXPECT_EQ(AccessesOf(module, 0), Accesses({{0, 1, kWrites | kVolatile}}));
  EXPECT_EQ(AccessesOf(module, 1), Accesses({{0, 2, kReads | kVolatile}}));
  EXPECT_EQ(AccessesOf(module, 2), Accesses({{0, 4, kWrites}}));
  EXPECT_EQ(AccessesOf(module, 3), Accesses({{0, 8, kWrites}}));
  EXPECT_EQ(AccessesOf(module, 4),
            Accesses({{0, 16, kReads}, {16, 16, kWrites}}));
  EXPECT_EQ(AccessesOf(module, 5),
            Accesses({{0, 46, kReads}, {92, 46, kWrites}}));
  EXPECT_EQ(AccessesOf(module, 6), Accesses({{0, 100, kWrites}}));
  // Only accesses to the elements of the swizzle are reported.
  Accesses swizzle = AccessesOf(module, 7);
  std::sort(swizzle.begin(), swizzle.end());
  EXPECT_EQ(
      swizzle,
      Accesses(
          {{2, 2, kWrites}, {4, 2, kWrites}, {8, 2, kReads}, {10, 2, kReads}}));
  EXPECT_EQ(AccessesOf(module, 8), Accesses());
}

TEST(ShimModuleTest, TellsOfAtomics) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("module", true);
  EXPECT_EQ(AccessesOf(module, 9),
            Accesses({{0, 4, kReads | kWrites | kAtomically}}));
  EXPECT_EQ(AccessesOf(module, 10), Accesses({{0, 1, kWrites | kAtomically}}));
  EXPECT_EQ(AccessesOf(module, 11), Accesses({{0, 8, kReads | kAtomically}}));
  EXPECT_EQ(AccessesOf(module, 12),
            Accesses({{0, 4, kReads | kWrites | kAtomically}}));
}

template <class T>
std::vector<T> Updated(const ShimModule& module, const char* name) {
  const auto update = module.Function<void(T*, T)>(name);
  EXPECT_NE(update, nullptr);
  std::vector<T> a = {0, 1000, 500, 3, static_cast<T>(0x7fffffff),
                      0, 0,    0,   5, 50};
  ShimModule::RunLanes(28, [&](uint32_t lane) {
    for (int i = 0; i < 50; ++i) update(a.data(), static_cast<T>(lane + 1));
  });
  return a;
}

TEST(ShimModuleTest, UpdatesAtomically) {
  SWITCHYARD_NEEDS_CLANG();
  const ShimModule module("module", false);
  // The sum is 50 times 1 + 2 + ... + 28. The operations `and` and `or`
  // change bits 1 to 28, and `xor` flips every bit an even number of times.
  constexpr int kSum = 50 * 406;
  const auto ints = Updated<int>(module, "update_int");
  EXPECT_EQ(std::vector<int>(ints.begin(), ints.begin() + 8),
            (std::vector<int>{kSum, 1000 - kSum, 1, 28, 0x60000001, 0x1ffffffe,
                              0, kSum}));
  const auto uints = Updated<uint32_t>(module, "update_uint");
  EXPECT_EQ(uints[0], uint32_t{kSum});
  EXPECT_EQ(uints[1], uint32_t{1000} - uint32_t{kSum});
  const auto ulongs = Updated<uint64_t>(module, "update_ulong");
  EXPECT_EQ(ulongs[7], uint64_t{kSum});
  EXPECT_EQ(ulongs[8], 28u);
  EXPECT_EQ(ulongs[9], 1u);
  const auto floats = Updated<float>(module, "update_float");
  EXPECT_EQ(floats[0], kSum);
  EXPECT_EQ(floats[2], 1);
  EXPECT_EQ(floats[3], 28);
  EXPECT_EQ(floats[7], kSum);
}

}  // namespace
}  // namespace switchyard::testing_support
