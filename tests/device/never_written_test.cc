// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Memory that nothing has written: reads of it, and what a run leaves so.

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/finding_queue.h"

namespace switchyard::testing_support {
namespace {

// Bytes of threadgroup memory next to written ones.
TEST(DeviceNeverWritten, Parts) {
  FindingQueue q;
  // Thread 0 writes `size` bytes at `written`, each in turn, and after a
  // barrier thread 1 reads.
  struct Part {
    size_t offset, size;
  };
  const auto kernel = [](std::vector<Part> written, Part read) {
    return [=](auto& tg) {
      const auto words = threadgroup_array<uint32_t, 4>(tg);
      const auto halves = pointer_cast<uint16_t>(words);
      const auto bytes = pointer_cast<uint8_t>(words);
      tg.for_each_thread([&](auto t) {
        if (t.thread_index_in_threadgroup != 0) return;
        for (const Part& part : written) {
          const size_t i = part.offset / part.size;
          if (part.size == 1) bytes[i] = 1;
          if (part.size == 2) halves[i] = 1;
          if (part.size == 4) words[i] = 1;
        }
      });
      tg.threadgroup_barrier();
      auto v = tg.per_thread(0u);
      tg.for_each_thread([&](auto t) {
        if (t.thread_index_in_threadgroup != 1) return;
        const size_t i = read.offset / read.size;
        if (read.size == 1) v[t] = bytes[i];
        if (read.size == 2) v[t] = halves[i];
        if (read.size == 4) v[t] = words[i];
      });
    };
  };
  const struct {
    std::vector<Part> written;
    Part read;
    bool found;
  } cases[] = {
      {{{4, 1}}, {4, 1}, false},
      {{{4, 1}}, {5, 1}, true},
      {{{4, 1}}, {4, 2}, true},
      {{{4, 1}, {5, 1}}, {4, 2}, false},
      {{{5, 1}, {4, 1}}, {4, 1}, false},
      {{{4, 1}, {5, 1}}, {6, 1}, true},
      {{{4, 2}}, {6, 2}, true},
      {{{4, 2}}, {6, 1}, true},
      {{{4, 2}}, {5, 1}, false},
      {{{4, 2}}, {4, 4}, true},
      {{{6, 2}}, {4, 4}, true},
      {{{4, 2}, {6, 2}}, {4, 4}, false},
      {{{4, 2}, {7, 1}}, {4, 4}, false},  // one may be padding
      {{{4, 4}, {4, 1}}, {5, 1}, false},
      {{{4, 4}, {4, 2}}, {4, 4}, false},
      {{{4, 4}, {6, 1}, {4, 1}}, {7, 1}, false},
      {{{4, 4}}, {8, 1}, true},
      {{{4, 1}, {4, 4}}, {7, 1}, false},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    EXPECT_EQ(
        Kinds(q.Find("k", kernel(cases[i].written, cases[i].read), {}, 2, 32)),
        cases[i].found ? Strings{"never-written"} : Strings())
        << i;
  }
  // Bytes that another threadgroup has written do not count.
  const auto second = [](auto& tg) {
    const auto bytes =
        pointer_cast<uint8_t>(threadgroup_array<uint32_t, 4>(tg));
    auto v = tg.per_thread(0u);
    const bool first = tg.threadgroup_position_in_grid.width == 0;
    tg.for_each_thread([&](auto t) {
      if (first) {
        bytes[t.thread_index_in_threadgroup] = 1;
      } else {
        v[t] = bytes[t.thread_index_in_threadgroup];
      }
    });
  };
  EXPECT_EQ(Kinds(q.Find("k", second, {}, 2, 4)), (Strings{"never-written"}));
}

TEST(DeviceNeverWritten, ZeroedBuffers) {
  CheckedOptions options;
  EXPECT_EQ(Kinds(FindingQueue(options).Find([&](Encoder&) {})), Strings());
  for (const bool zeroed : {false, true}) {
    options.zeroed_buffers = zeroed;
    FindingQueue q(options);
    const BufferPtr x = q.device->newBuffer(64 * 4), y = q.Floats(64);
    EXPECT_EQ(Kinds(q.Find(q.Copy(x, y))),
              zeroed ? Strings() : Strings{"never-written"});
    EXPECT_EQ(Contents<uint32_t>(y)[63], zeroed ? 0 : 0x7FA5C3E1u);
  }
}

std::string RangesOf(const NeverWritten& output) {
  std::string text = output.kernel + " " + std::to_string(output.dispatch) +
                     " buffer " + std::to_string(output.index) + " of " +
                     std::to_string(output.length) + ":";
  for (const NeverWritten::Bytes& bytes : output.ranges) {
    text +=
        " " + std::to_string(bytes.offset) + "+" + std::to_string(bytes.length);
  }
  return text;
}

TEST(DeviceNeverWritten, Outputs) {
  CheckedOptions options;
  options.track_never_written = true;
  options.zeroed_buffers = true;
  FindingQueue q(options);
  const auto some = [](auto& tg) {
    const auto words = buffer<uint32_t>(tg, 0);
    const auto halves = buffer<uint16_t>(tg, 1) + 1;
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      if (i != 3 && i < 8) words[i] = 1;
      if (i % 4 != 1) halves[i] = 2;
    });
  };
  const BufferPtr words = q.device->newBuffer(70), halves = q.Floats(9);
  const BufferPtr x = q.Floats(64), y = q.Floats(64);
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_EQ(q.Find([&](Encoder& e) {
                 q.Dispatch(e, "some", some, {words, halves}, 1, 16);
                 q.Copy(x, y)(e);
               }).size(),
              0u);
    const std::vector<NeverWritten> outputs = q.last->neverWritten();
    ASSERT_EQ(outputs.size(), 2u);
    EXPECT_EQ(RangesOf(outputs[0]), "some 0 buffer 0 of 70: 12+4 32+38");
    EXPECT_EQ(outputs[0].data, words->contents());
    EXPECT_EQ(RangesOf(outputs[1]),
              "some 0 buffer 1 of 36: 0+2 4+2 12+2 20+2 28+2 34+2");
  }
  // Bytes that another dispatch writes count.
  q.Find([&](Encoder& e) {
    q.Dispatch(e, "some", some, {words, halves}, 1, 16);
    q.Dispatch(e, "fill", kFill, {words}, 1, 16);
  });
  ASSERT_EQ(q.last->neverWritten().size(), 2u);
  EXPECT_EQ(RangesOf(q.last->neverWritten()[0]), "some 0 buffer 0 of 70: 64+6");
  // Bytes that an earlier run has written do not.
  q.Find("some", some, {words, halves}, 1, 16);
  ASSERT_EQ(q.last->neverWritten().size(), 2u);
  EXPECT_EQ(RangesOf(q.last->neverWritten()[0]),
            "some 0 buffer 0 of 70: 12+4 32+38");
  // A kernel of which only the bindings are known writes all of them.
  q.Find([&](Encoder& e) {
    q.Dispatch(e, "some", some, {words, halves}, 1, 16);
    KernelFunction opaque;
    opaque.name = "opaque";
    opaque.threadgroup = [](const ThreadgroupContext& tg) {
      tg.buffer<uint16_t>(0);
    };
    q.SetKernel(e, opaque);
    q.SetBuffers(e, {words});
    e.dispatchThreadgroups(Size(1, 1, 1), Size(1, 1, 1));
  });
  ASSERT_EQ(q.last->neverWritten().size(), 1u);
  EXPECT_EQ(q.last->neverWritten()[0].index, 1u);
  FindingQueue untracked;
  untracked.Find("some", some, {words, halves}, 1, 16);
  EXPECT_TRUE(untracked.last->neverWritten().empty());
}

}  // namespace
}  // namespace switchyard::testing_support
