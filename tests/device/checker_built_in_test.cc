// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What checked mode knows of built-in kernels: every buffer that each of them
// reads or writes, and its parameters.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/checked_kernels.h"
#include "tests/device/kernel_cases.h"

namespace switchyard::testing_support {
namespace {

constexpr size_t kParams = SIZE_MAX;  // in the place of an arg

// Its last word.
struct Touch {
  bool write;
  size_t at;
  int32_t value;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto x = buffer<int32_t>(tg, 0);
    tg.for_each_thread([&](auto) {
      const int32_t was = write ? value : int32_t{x[at]};
      if (write) x[at] = was;
    });
  }
};

// The case with zeros for all that it reads.
struct Bound {
  const KernelCase& c;
  CheckedQueue& q;
  std::vector<BufferPtr> args;
  BufferPtr params;

  Bound(const KernelCase& kernel_case, CheckedQueue& queue)
      : c(kernel_case), q(queue), params(q.Make(c.params)) {
    for (const Arg& arg : c.args) {
      args.push_back(!arg.read ? q.device->newBuffer(arg.Bytes())
                               : q.Make(std::vector<int32_t>(arg.Bytes() / 4)));
    }
  }
  BufferPtr At(size_t arg) const { return arg == kParams ? params : args[arg]; }
  std::string Name(size_t arg) const {
    const size_t index =
        arg == kParams ? c.kernel->params.index : c.args[arg].index;
    return "buffer " + std::to_string(index) + " (" +
           (arg == kParams ? "params" : c.args[arg].name) + ")";
  }

  void Encode(Encoder& e) const {
    e.setComputePipelineState(q.device->newComputePipelineState(c.name()));
    e.setBuffer(params, 0, c.kernel->params.index);
    for (size_t i = 0; i < args.size(); ++i) {
      e.setBuffer(args[i], 0, c.args[i].index);
    }
    e.dispatchThreadgroups(c.grid, Size(c.width, 1, 1));
  }
  // After, or before, a kernel that touches the last word of an arg.
  std::string After(size_t arg, bool write, bool barrier) const {
    return q.Run(
        [&](Encoder& e) {
          const size_t at = At(arg)->length() / 4 - 1;
          q.Dispatch(e, "other",
                     Touch{write, at, arg == kParams ? c.params.back() : 0},
                     {At(arg)}, 1, 1);
          if (barrier) e.memoryBarrier(BarrierScopeBuffers);
          Encode(e);
        },
        DispatchTypeConcurrent);
  }
};

class DeviceCheckerBuiltIn : public testing::TestWithParam<KernelCase> {};

TEST_P(DeviceCheckerBuiltIn, RunsClean) {
  CheckedQueue q;
  const Bound bound(GetParam(), q);
  EXPECT_EQ(q.Run([&](Encoder& e) { bound.Encode(e); }), "");
}

TEST_P(DeviceCheckerBuiltIn, ReadsAfterWrites) {
  CheckedQueue q;
  const KernelCase& c = GetParam();
  for (size_t i = 0; i <= c.args.size(); ++i) {
    const size_t arg = i == c.args.size() ? kParams : i;
    if (arg != kParams && !c.args[arg].read) continue;
    const Bound bound(c, q);
    const size_t last = bound.At(arg)->length() / 4 - 1;
    EXPECT_EQ(bound.After(arg, true, false),
              std::string(c.name()) + ": reads " + bound.Name(arg) + "[" +
                  std::to_string(last) +
                  "], which dispatch 0 (other) wrote: memoryBarrier is missing "
                  "between it and dispatch 1");
    EXPECT_EQ(bound.After(arg, true, true), "") << bound.Name(arg);
  }
}

TEST_P(DeviceCheckerBuiltIn, WritesAfterReads) {
  CheckedQueue q;
  const KernelCase& c = GetParam();
  for (size_t arg = 0; arg < c.args.size(); ++arg) {
    const Bound bound(c, q);
    // What the other kernel reads has been written.
    std::memset(bound.At(arg)->contents(), 0, c.args[arg].Bytes());
    const size_t last = c.args[arg].Bytes() / 4 - 1;
    EXPECT_EQ(bound.After(arg, false, false),
              c.args[arg].written
                  ? std::string(c.name()) + ": writes " + bound.Name(arg) +
                        "[" + std::to_string(last) +
                        "], which dispatch 0 (other) read: memoryBarrier is "
                        "missing between it and dispatch 1"
                  : "");
    EXPECT_EQ(bound.After(arg, false, true), "") << bound.Name(arg);
  }
}

TEST_P(DeviceCheckerBuiltIn, NeverWritten) {
  CheckedQueue q;
  const KernelCase& c = GetParam();
  for (size_t i = 0; i <= c.args.size(); ++i) {
    const size_t arg = i == c.args.size() ? kParams : i;
    if (arg != kParams && !c.args[arg].read) continue;
    Bound bound(c, q);
    const BufferPtr fresh = q.device->newBuffer(bound.At(arg)->length());
    const size_t last = arg == kParams ? 0 : fresh->length() / 4 - 1;
    std::memset(fresh->contents(), 0, 4 * last);
    (arg == kParams ? bound.params : bound.args[arg]) = fresh;
    EXPECT_EQ(q.Run([&](Encoder& e) { bound.Encode(e); }),
              std::string(c.name()) + ": reads " + bound.Name(arg) + "[" +
                  std::to_string(last) +
                  "], which nothing has written since newBuffer()");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, DeviceCheckerBuiltIn,
                         testing::ValuesIn(KernelCases()), KernelName);

}  // namespace
}  // namespace switchyard::testing_support
