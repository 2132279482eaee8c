// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Checked mode's knowledge of built-in kernels: every buffer that each of them
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

// Its last element.
template <class T>
struct Touch {
  bool write;
  size_t at;
  T value;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto x = buffer<T>(tg, 0);
    tg.for_each_thread([&](auto) {
      const T was = write ? value : T{x[at]};
      if (write) x[at] = was;
    });
  }
};

// The case with zeros for all that it reads. Each arg is bound one element into
// its buffer, so that those of two bytes begin inside a word.
struct Bound {
  const KernelCase& c;
  CheckedQueue& q;
  std::vector<BufferPtr> args;
  BufferPtr params;

  Bound(const KernelCase& kernel_case, CheckedQueue& queue)
      : c(kernel_case), q(queue), params(q.Make(c.params)) {
    for (const Arg& arg : c.args) {
      const size_t length = arg.Element() + arg.Bytes();
      args.push_back(arg.read ? q.Make(RawBytes(length))
                              : q.device->newBuffer(length));
    }
  }
  BufferPtr At(size_t arg) const { return arg == kParams ? params : args[arg]; }
  size_t Element(size_t arg) const {
    return arg == kParams ? 4 : c.args[arg].Element();
  }
  // The index counts from the binding's offset.
  size_t IndexOf(size_t arg, size_t byte) const {
    return byte / Element(arg) - (arg == kParams ? 0 : 1);
  }
  size_t Last(size_t arg) const {
    return IndexOf(arg, At(arg)->length() - Element(arg));
  }
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
      e.setBuffer(args[i], Element(i), c.args[i].index);
    }
    e.dispatchThreadgroups(c.grid, Size(c.width, 1, 1));
  }
  // After a kernel that touches the last element of an arg.
  std::string After(size_t arg, bool write, bool barrier) const {
    return q.Run(
        [&](Encoder& e) {
          if (Element(arg) == 2) {
            EncodeTouch<uint16_t>(e, arg, write, 0);
          } else {
            EncodeTouch<int32_t>(e, arg, write,
                                 arg == kParams ? c.params.back() : 0);
          }
          if (barrier) e.memoryBarrier(BarrierScopeBuffers);
          Encode(e);
        },
        DispatchTypeConcurrent);
  }
  template <class T>
  void EncodeTouch(Encoder& e, size_t arg, bool write, T value) const {
    const size_t at = At(arg)->length() / sizeof(T) - 1;
    q.Dispatch(e, "other", Touch<T>{write, at, value}, {At(arg)}, 1, 1);
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
    const size_t last = bound.Last(arg);
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
    // The other kernel reads memory that has been written.
    std::memset(bound.At(arg)->contents(), 0, bound.At(arg)->length());
    const size_t last = bound.Last(arg);
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
    // All but the last word, of which the first element is told.
    const size_t words = arg == kParams ? 0 : (fresh->length() + 3) / 4 - 1;
    const size_t last = bound.IndexOf(arg, 4 * words);
    std::memset(fresh->contents(), 0, 4 * words);
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
