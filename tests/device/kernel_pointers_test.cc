// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Pointers of kernels: that move, compare and subtract, and members of what
// they point to, which checked mode looks at one by one.

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/kernel.h"
#include "tests/device/checked_kernels.h"
#include "tests/device/kernel_test.h"

namespace switchyard::testing_support {
namespace {

struct Block {
  half scale;
  int8_t codes[6];
  float2 range;
};
SWITCHYARD_MEMBERS(Block, scale, codes, range)
struct Pair {
  uint32_t key;
  float value;
};
SWITCHYARD_MEMBERS(Pair, key, value)

using DeviceKernelPointers = KernelTest;

const auto kWalk = [](auto& tg) {
  const auto in = buffer<const int32_t>(tg, 0);
  const auto out = buffer<int32_t>(tg, 1);
  tg.for_each_thread([&](auto) {
    auto p = in;
    const auto end = in + 4;
    auto q = out;
    while (p < end) *q++ = *p++ * 10;
    q[0] = static_cast<int32_t>(p - in);
    q[1] = p == end && p >= end && p <= end && !(p != end) && !(p > end);
    q[2] = static_cast<int32_t>(in - end);
    *--q = *(p-- - 1);  // q is out + 3
    q[4] = *p;
    q[5] = in[in[0]];  // an element for an index
    q += in[0];
    *q += in[1];
  });
};

TEST_P(DeviceKernelPointers, MoveCompareAndSubtract) {
  const auto out = Threadgroup<int32_t, int32_t>({1, 2, 3, 5}, 10, 1, kWalk);
  EXPECT_EQ(out, (std::vector<int32_t>{10, 20, 30, 5, 4 + 2, 1, -4, 5, 2, 77}));
}

const auto kMembers = [](auto& tg) {
  const auto in = buffer<const Block>(tg, 0);
  const auto out = buffer<Block>(tg, 1);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    const auto p = out + i;
    p->scale = in[i].scale * half(2);
    for (size_t j = 0; j < 6; ++j) {
      p->codes[j] = in[i].codes[j];
      p->codes[j] += int8_t{1};
    }
    out[i].range = float2(0.0f);
    out[i].range.x = in[i].range.y;
    p->range.y += 3.0f;
    const Block whole = in[i];
    p->range.y *= whole.range.x;
    (in + i)->range.x < 2.0f ? p->range.x += 1.0f : p->range.x -= 1.0f;
  });
};

TEST_P(DeviceKernelPointers, Members) {
  std::vector<Block> in(3);
  for (size_t i = 0; i < in.size(); ++i) {
    in[i].scale = half(static_cast<int>(i) + 1);
    for (size_t j = 0; j < 6; ++j) {
      in[i].codes[j] = static_cast<int8_t>(10 * i + j);
    }
    in[i].range = float2(static_cast<float>(i + 1), 7.0f);
  }
  const auto buffer_in = Make(in), buffer_out = Make(std::vector<Block>(3));
  ASSERT_EQ(Run(MakeKernel("members", kMembers),
                [&](Encoder& e) {
                  e.setBuffer(buffer_in, 0, 0);
                  e.setBuffer(buffer_out, 0, 1);
                  e.dispatchThreadgroups(Size(1, 1, 1), Size(3, 1, 1));
                }),
            "");
  const auto out = Contents<Block>(buffer_out);
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(static_cast<float>(out[i].scale),
              2.0f * static_cast<float>(i + 1));
    for (size_t j = 0; j < 6; ++j) {
      EXPECT_EQ(out[i].codes[j], in[i].codes[j] + 1);
    }
    EXPECT_EQ(out[i].range.x, i == 0 ? 8.0f : 6.0f);
    EXPECT_EQ(out[i].range.y, 3.0f * static_cast<float>(i + 1));
  }
}

// Each thread has its member of one element: no race, and no read of what is
// next to it.
const auto kOwnMember = [](auto& tg) {
  const auto out = buffer<Pair>(tg, 0);
  const auto vectors = buffer<float4>(tg, 1);
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup == 0) {
      out[0].key = 4;
      vectors[0].x = 1.0f;
      vectors->y = vectors[0].x;
    } else {
      out->value = 5.0f;
      vectors[0].w = 2.0f;
    }
  });
};
// The kernel uses the whole element.
const auto kWholeElement = [](auto& tg) {
  const auto out = buffer<Pair>(tg, 0);
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup == 0) {
      out[0].key = 4;
    } else {
      const Pair pair = out[0];
      out[1] = pair;
    }
  });
};
const auto kOtherMember = [](auto& tg) {
  const auto out = buffer<Pair>(tg, 0);
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup == 0) out[1].value = 1.0f;
    if (t.thread_index_in_threadgroup == 1) out->key = 1;
    if (t.thread_index_in_threadgroup == 2) out[0].key = (out + 1)->key;
  });
};

TEST(DeviceKernelMembersChecked, OnlyTheMemberIsTouched) {
  CheckedQueue q;
  const auto pairs = q.device->newBuffer(16), vectors = q.device->newBuffer(16);
  EXPECT_EQ(q.Run("own", kOwnMember, {pairs, vectors}, 1, 2), "");
  EXPECT_EQ(Contents<Pair>(pairs)[0].key, 4u);
  EXPECT_EQ(Contents<Pair>(pairs)[0].value, 5.0f);
  EXPECT_EQ(Contents<float>(vectors)[1], 1.0f);
  EXPECT_EQ(q.Run("whole", kWholeElement, {pairs}, 1, 2),
            "whole: threadgroup (0, 0, 0), thread 1: reads buffer 0[0], which "
            "thread 0 wrote in the same phase: a threadgroup_barrier with "
            "mem_device is missing");
}

TEST(DeviceKernelMembersChecked, ErrorsNameWhatWasTouched) {
  CheckedQueue q;
  const auto fresh = q.device->newBuffer(16);
  EXPECT_EQ(q.Run("other", kOtherMember, {fresh}, 1, 3),
            "other: threadgroup (0, 0, 0), thread 2: reads buffer 0[2], which "
            "nothing has written since newBuffer()");
  const auto zeros = q.Floats(4, 0.0f);
  EXPECT_EQ(q.Run("other", kOtherMember, {zeros}, 1, 3),
            "other: threadgroup (0, 0, 0), thread 2: writes buffer 0[0], which "
            "thread 1 wrote in the same phase: a threadgroup_barrier with "
            "mem_device is missing");
  const auto small = q.Floats(3, 0.0f);
  EXPECT_EQ(q.Run("other", kOtherMember, {small}, 1, 1),
            "other: threadgroup (0, 0, 0), thread 0: writes buffer 0[3], which "
            "has 3 elements");
}

INSTANTIATE_TEST_SUITE_P(Modes, DeviceKernelPointers, testing::ValuesIn(kModes),
                         ModeName);

}  // namespace
}  // namespace switchyard::testing_support
