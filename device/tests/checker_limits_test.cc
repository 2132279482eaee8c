// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests cases in which checked mode could be wrong: correct code that looks
// like a mistake, and memory that is hard to track.

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/tests/checked_kernels.h"
#include "gtest/gtest.h"
#include "switchyard/device/kernels.h"

namespace switchyard::testing_support {
namespace {

constexpr uint32_t kPattern = 0x7FA5C3E1u;

TEST(DeviceCheckerLimits, FreshMemoryIsMarked) {
  CheckedQueue q;
  const BufferPtr fresh = q.device->newBuffer(4099);
  const std::vector<uint32_t> words = Contents<uint32_t>(fresh);
  EXPECT_EQ(words.size(), 1024u);
  for (const uint32_t word : words) ASSERT_EQ(word, kPattern);
  EXPECT_EQ(static_cast<unsigned char*>(fresh->contents())[4098], 0xA5);
  const auto unchecked = NewDevice()->newBuffer(64);
  EXPECT_EQ(Contents<uint32_t>(unchecked), std::vector<uint32_t>(16));
}

// A value may equal the pattern that marks memory as never written. The test
// puts such values in a copied buffer and in host memory, and lets a kernel
// write them.
TEST(DeviceCheckerLimits, ThePatternAsAValue) {
  CheckedQueue q;
  std::vector<uint32_t> host(32, kPattern);
  const BufferPtr out = q.Floats(32);
  for (const BufferPtr& x :
       {q.Make(host),
        BufferPtr(q.device->newBufferWithBytesNoCopy(host.data(), 128))}) {
    EXPECT_EQ(q.Run(q.Copy(x, out, 1)), "");
    EXPECT_EQ(Contents<uint32_t>(out), host);
  }
  const auto writes = [](auto& tg) {
    const auto x = buffer<uint32_t>(tg, 0);
    const auto scratch = threadgroup_array<uint32_t, 32>(tg);
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      x[i] = kPattern;
      scratch[i] = x[i];
    });
    tg.threadgroup_barrier();
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      x[i] = scratch[31 - i];
    });
  };
  const BufferPtr fresh = q.device->newBuffer(128);
  EXPECT_EQ(q.Run([&](Encoder& e) {
    q.Dispatch(e, "writes", writes, {fresh}, 1, 32);
    q.Copy(fresh, out, 1)(e);
  }),
            "");
}

TEST(DeviceCheckerLimits, OneAfterTheOther) {
  CheckedQueue q;
  const BufferPtr x = q.Floats(64), out = q.Floats(64);
  const auto both = [&](Encoder& e) {
    q.Fill(x)(e);
    e.memoryBarrier(nullptr, 0);  // this barrier is for no resources
    q.Copy(x, out)(e);
  };
  EXPECT_EQ(q.Run(both), "");
  EXPECT_NE(q.Run(both, DispatchTypeConcurrent), "");
  // The two dispatches are first in two encoders, and then in two command
  // buffers.
  const auto commands = q.queue->commandBuffer();
  for (const bool fill : {true, false}) {
    const auto encoder =
        commands->computeCommandEncoder(DispatchTypeConcurrent);
    (fill ? q.Fill(x) : q.Copy(x, out))(*encoder);
    encoder->endEncoding();
  }
  commands->commit();
  commands->waitUntilCompleted();
  EXPECT_EQ(commands->error(), "");
  EXPECT_EQ(q.Run([](Encoder& e) { e.memoryBarrier(nullptr, 1); }),
            "memoryBarrier: resources is null");
}

// The test binds the middle of a range first. When the range grows, its cells
// (the records of accesses) move and keep their contents.
TEST(DeviceCheckerLimits, RangesThatGrow) {
  CheckedQueue q;
  const BufferPtr x = q.Floats(96), out = q.Floats(96);
  const auto copy_after_fill = [&](size_t first) {
    return q.Run(
        [&](Encoder& e) {
          q.SetKernel(e, MakeKernel("fill", kFill));
          for (const size_t offset : {32u, 64u}) {
            e.setBuffer(x, offset * 4, 0);
            e.dispatchThreadgroups(Size(1, 1, 1), Size(32, 1, 1));
          }
          if (first != 0) q.Copy(x, out, first)(e);
          q.Copy(x, out, 3)(e);
        },
        DispatchTypeConcurrent);
  };
  EXPECT_EQ(copy_after_fill(0),
            "copy: threadgroup (1, 0, 0), thread 0: reads buffer 0[32], which "
            "dispatch 0 (fill) wrote: memoryBarrier is missing between it and "
            "dispatch 2");
  EXPECT_EQ(copy_after_fill(1),
            "copy: threadgroup (0, 0, 0), thread 0: writes buffer 1[0], which "
            "dispatch 2 (copy) wrote: memoryBarrier is missing between it and "
            "dispatch 3");
}

// When a range grows, cells that record halves of words also move and keep
// their contents. The kernel writes only the upper half of each word.
TEST(DeviceCheckerLimits, HalvesOfRangesThatGrow) {
  const auto upper = [](auto& tg) {
    const auto halves = buffer<uint16_t>(tg, 0);
    tg.for_each_thread(
        [&](auto t) { halves[2 * t.thread_index_in_threadgroup + 1] = 1; });
  };
  const auto read = [](size_t half) {
    return [half](auto& tg) {
      const auto halves = buffer<const uint16_t>(tg, 0);
      const auto sum = buffer<uint32_t>(tg, 1);
      tg.for_each_thread([&](auto) { sum[0] = halves[half]; });
    };
  };
  const auto read_after_upper = [&](size_t half) {
    CheckedQueue q;  // a new queue has no cells
    const BufferPtr x = q.Floats(96), out = q.Floats(96);
    return q.Run(
        [&](Encoder& e) {
          q.SetKernel(e, MakeKernel("upper", upper));
          e.setBuffer(x, 32 * 4, 0);
          e.dispatchThreadgroups(Size(1, 1, 1), Size(8, 1, 1));
          q.Dispatch(e, "read", read(half), {x, out}, 1, 1);
        },
        DispatchTypeConcurrent);
  };
  EXPECT_EQ(read_after_upper(2 * 35), "");
  EXPECT_EQ(read_after_upper(2 * 35 + 1),
            "read: threadgroup (0, 0, 0), thread 0: reads buffer 0[71], which "
            "dispatch 0 (upper) wrote: memoryBarrier is missing between it and "
            "dispatch 1");
}

TEST(DeviceCheckerLimits, AtomicsOfTwoDispatches) {
  CheckedQueue q;
  const BufferPtr count = q.Make(std::vector<int32_t>(1));
  const auto add = [](auto& tg) {
    const auto n = atomic_buffer<int32_t>(tg, 0);
    tg.for_each_thread(
        [&](auto) { atomic_fetch_add_explicit(n, 1, memory_order_relaxed); });
  };
  EXPECT_EQ(q.Run(
                [&](Encoder& e) {
                  q.Dispatch(e, "add", add, {count}, 3, 50);
                  q.Dispatch(e, "add", add, {count}, 3, 50);
                },
                DispatchTypeConcurrent),
            "");
  EXPECT_EQ(Contents<int32_t>(count)[0], 300);
}

// Some threads read a word atomically, and one thread reads it without
// atomics. The finding names the plain read, because it conflicts with the
// atomic write.
TEST(DeviceCheckerLimits, ThePlainReadIsNamed) {
  CheckedQueue q;
  const auto mixed = [](auto& tg) {
    const auto x = buffer<uint32_t>(tg, 0);
    const auto n = atomic_buffer<uint32_t>(tg, 0);
    const size_t group = tg.threadgroup_position_in_grid.width;
    tg.for_each_thread([&](auto) {
      uint32_t v = 0;
      if (group < 3)
        v = group == 2 ? uint32_t{x[0]}
                       : atomic_load_explicit(n, memory_order_relaxed);
      if (group == 3) atomic_store_explicit(n, v, memory_order_relaxed);
    });
  };
  EXPECT_EQ(q.Run("mixed", mixed, {q.Floats(1)}, 4, 1),
            "mixed: threadgroup (3, 0, 0), thread 0: atomically writes buffer "
            "0[0], which threadgroup (2, 0, 0), thread 0, read in the same "
            "dispatch, without atomics");
}

TEST(DeviceCheckerLimits, ThePlainReadIsNamedWithinAThreadgroup) {
  CheckedQueue q;
  const auto mixed = [](auto& tg) {
    const auto x = buffer<uint32_t>(tg, 0);
    const auto n = atomic_buffer<uint32_t>(tg, 0);
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      uint32_t v = 0;
      if (i % 32 == 0) v = atomic_load_explicit(n, memory_order_relaxed);
      if (i == 33) v = x[0];
      if (i == 34) atomic_store_explicit(n, v, memory_order_relaxed);
    });
  };
  EXPECT_EQ(q.Run("mixed", mixed, {q.Floats(1)}, 1, 64),
            "mixed: threadgroup (0, 0, 0), thread 34: atomically writes buffer "
            "0[0], which thread 33 read, and others, in the same phase: a "
            "threadgroup_barrier with mem_device is missing");
}

// A plain read by this threadgroup does not erase the record of another
// threadgroup's atomic read.
TEST(DeviceCheckerLimits, AnAtomicReadIsNotForgotten) {
  CheckedQueue q;
  const auto mixed = [](auto& tg) {
    const auto x = buffer<uint32_t>(tg, 0);
    const auto n = atomic_buffer<uint32_t>(tg, 0);
    const bool last = tg.threadgroup_position_in_grid.width == 1;
    auto v = tg.per_thread(0u);
    tg.for_each_thread([&](auto t) {
      v[t] =
          last ? uint32_t{x[0]} : atomic_load_explicit(n, memory_order_relaxed);
    });
    tg.threadgroup_barrier();
    tg.for_each_thread([&](auto t) {
      if (last) x[0] = v[t];
    });
  };
  EXPECT_EQ(q.Run("mixed", mixed, {q.Floats(1)}, 2, 1),
            "mixed: threadgroup (1, 0, 0), thread 0: writes buffer 0[0], which "
            "threadgroup (0, 0, 0), thread 0, atomically read in the same "
            "dispatch");
}

// A lane overwrites a value that another lane has read before a simd
// function. This is correct, because the function's result proves that the
// read is done. A read by a lane of another simdgroup may not be done yet.
struct Mask {
  size_t masked;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto scratch = threadgroup_array<int32_t, 64>(tg);
    auto v = tg.per_thread(0);
    tg.for_each_thread(
        [&](auto t) { scratch[t.thread_index_in_threadgroup] = 1; });
    tg.threadgroup_barrier();
    for (int round = 0; round < 3; ++round) {
      tg.for_each_thread([&](auto t) {
        // All lanes read the value that lane 0 overwrites. Lane 0 reads it
        // twice.
        const size_t first = t.thread_index_in_threadgroup / 32 * 32;
        v[t] = scratch[first] + scratch[t.thread_index_in_threadgroup];
      });
      simd_max(v);
      tg.for_each_thread([&](auto t) {
        if (t.thread_index_in_threadgroup == 5) v[t] = scratch[0];
      });
      simd_max(v);
      tg.for_each_thread([&](auto t) {
        if (t.thread_index_in_threadgroup == masked) scratch[0] = -1;
      });
      tg.threadgroup_barrier();
    }
  }
};

TEST(DeviceCheckerLimits, SimdFunctionsWaitForReads) {
  CheckedQueue q;
  EXPECT_EQ(q.Run("mask", Mask{7}, {}, 2, 64), "");
  EXPECT_EQ(q.Run("mask", Mask{32}, {}, 2, 64),
            "mask: threadgroup (0, 0, 0), thread 32: writes threadgroup array "
            "0[0], which thread 5 read in the same phase: a "
            "threadgroup_barrier is missing");
}

// If an element has two words, its second word is checked, too.
TEST(DeviceCheckerLimits, WideElements) {
  CheckedQueue q;
  const auto wide = [](auto& tg) {
    const auto words = buffer<uint32_t>(tg, 0);
    const auto doubles = pointer_cast<double>(words);
    tg.for_each_thread([&](auto t) {
      if (t.thread_index_in_threadgroup == 0) words[5] = 1;
      if (t.thread_index_in_threadgroup == 1) doubles[2] = 1.0;
    });
  };
  EXPECT_EQ(q.Run("wide", wide, {q.Floats(8)}, 1, 2),
            "wide: threadgroup (0, 0, 0), thread 1: writes buffer 0[2], which "
            "thread 0 wrote in the same phase: a simdgroup_barrier with "
            "mem_device is missing");
  const auto misaligned = [](auto& tg) {
    pointer_cast<double>(buffer<uint32_t>(tg, 0) + 1);
  };
  EXPECT_EQ(q.Run("odd", misaligned, {q.Floats(8)}, 1, 2),
            "odd: threadgroup (0, 0, 0), thread 0: pointer_cast: buffer 0, "
            "byte 4, is not a multiple of 8");
}

// An element of four bytes may lie in two words.
TEST(DeviceCheckerLimits, ElementsAcrossWords) {
  struct Pair {
    uint16_t x, y;
  };
  CheckedQueue q;
  const auto pairs = [](size_t word) {
    return [word](auto& tg) {
      const auto words = buffer<uint32_t>(tg, 0);
      const auto pair = pointer_cast<Pair>(pointer_cast<uint16_t>(words) +
                                           // Writes half of word 0 and half
                                           // of word 1.
                                           1);
      tg.for_each_thread([&](auto t) {
        if (t.thread_index_in_threadgroup == 0) pair[0] = Pair{1, 2};
        if (t.thread_index_in_threadgroup == 1) words[word] = 3;
      });
    };
  };
  EXPECT_EQ(q.Run("pairs", pairs(2), {q.Floats(8)}, 1, 2), "");
  for (const size_t word : {0u, 1u}) {
    EXPECT_EQ(q.Run("pairs", pairs(word), {q.Floats(8)}, 1, 2),
              "pairs: threadgroup (0, 0, 0), thread 1: writes buffer 0[" +
                  std::to_string(word) +
                  "], which thread 0 wrote in the same phase: a "
                  "simdgroup_barrier with mem_device is missing");
  }
}

// Built-in kernels give the same results as in unchecked mode, although their
// buffers are marked as never written.
TEST(DeviceCheckerLimits, BuiltInKernelsRunAsEver) {
  std::vector<std::vector<uint32_t>> results;
  for (const bool checked : {false, true}) {
    CheckedQueue q(checked ? NewDevice(false, {true, 0}) : NewDevice());
    const BufferPtr gate = q.Floats(512, 0.75f), up = q.Floats(512, -3.0f),
                    act = q.device->newBuffer(2048), w = q.Floats(4, 0.25f),
                    out = q.device->newBuffer(1024);
    EXPECT_EQ(q.Run([&](Encoder& e) {
      q.DispatchBuiltIn(e, "silu_mul_batched_f32", SiluMulBatchedParams{4, 128},
                        {gate, up, act}, 4);
      q.DispatchBuiltIn(e, "weighted_sum_batched_f32",
                        WeightedSumBatchedParams{2, 2, 128}, {act, w, out}, 2);
    }),
              "");
    results.push_back(Contents<uint32_t>(out));
  }
  EXPECT_EQ(results[0], results[1]);
}

// The buffers need more cells than checked mode keeps for the next command
// buffer.
TEST(DeviceCheckerLimits, LargeBuffers) {
  CheckedQueue q;
  std::vector<uint32_t> host(size_t{20} << 20, 1);
  const BufferPtr x =
      q.device->newBufferWithBytesNoCopy(host.data(), host.size() * 4);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(q.Run(q.Fill(x)), "");
  }
  EXPECT_EQ(host[63] + host[64], 4u);
}

// If a kernel has no checked code, checked mode knows only its bindings, not
// its accesses.
TEST(DeviceCheckerLimits, OpaqueKernels) {
  CheckedQueue q;
  const BufferPtr x = q.Floats(64), out = q.device->newBuffer(256);
  const auto run = [&](bool writes) {
    return q.Run(
        [&](Encoder& e) {
          q.SetKernel(e, {"opaque", [=](const ThreadgroupContext& tg) {
                            tg.buffer<const float>(0);
                            if (writes) tg.buffer<float>(0);
                            tg.params<float>(1);
                          }});
          e.setBuffer(x, 0, 0);
          e.setBuffer(out, 0, 1);
          for (int i = 0; i < 2; ++i) {
            e.dispatchThreadgroups(Size(5, 1, 1), Size(4, 1, 1));
          }
          q.SetKernel(e, MakeKernel("fill", kFill));
          e.setBuffer(out, 4, 0);  // after the parameters
          e.dispatchThreadgroups(Size(1, 1, 1), Size(4, 1, 1));
        },
        DispatchTypeConcurrent);
  };
  EXPECT_EQ(run(false), "");
  EXPECT_EQ(run(true),
            "opaque: reads buffer 0 (as a whole)[0], which dispatch 0 (opaque) "
            "wrote: memoryBarrier is missing between it and dispatch 1");
}

// The next tests are about ported kernels. Two kernels have mistakes that are
// not races: one calls, inside for_each_thread(), a function in which all
// threads meet, and one catches the error of a wrong access. Three kernels
// have no mistake: one goes on when all its threads have returned, one calls
// uniform() with NaN, and one reads padding that nothing has written.

constexpr int kKinds = 7;

// A kernel that calls a function in which all threads meet. If `inside` is
// true, the call is wrong, because it is inside for_each_thread().
struct MeetsAt {
  int kind;
  bool inside;

  template <class Tg, class Values>
  void Meet(Tg& tg, Values& v) const {
    if (kind == 0) tg.threadgroup_barrier();
    if (kind == 1) tg.simdgroup_barrier();
    if (kind == 2) (void)simd_sum(v);
    if (kind == 3) (void)simd_shuffle_xor(v, 1);
    if (kind == 4) (void)tg.uniform(v);
    if (kind == 5) (void)threadgroup_array<float, 2>(tg);
    if (kind == 6) tg.for_each_thread([](auto) {});
  }
  template <class Tg>
  void operator()(Tg& tg) const {
    auto v = tg.per_thread(1.0f);
    const auto out = buffer<float>(tg, 0);
    tg.for_each_thread([&](auto t) {
      if (inside) Meet(tg, v);
      out[t.thread_position_in_grid().width] = v[t];
    });
    if (!inside) Meet(tg, v);
    tg.for_each_thread(
        [&](auto t) { out[t.thread_position_in_grid().width] = v[t]; });
  }
};

TEST(DeviceCheckerMisuse, ThreadsMeetOutside) {
  const char* const names[kKinds] = {
      "threadgroup_barrier", "simdgroup_barrier", "a simd function",
      "a simd function",     "uniform",           "threadgroup_array",
      "for_each_thread"};
  for (const uint64_t seed : {0u, 5u}) {
    CheckedQueue queue(seed);
    const auto out = queue.Floats(64);
    for (int kind = 0; kind < kKinds; ++kind) {
      const auto run = [&](bool inside) {
        return queue.Run("meets", MeetsAt{kind, inside}, {out}, 2, 32);
      };
      const std::string error = run(true);
      const std::string says =
          std::string(": ") + names[kind] +
          " is called inside for_each_thread: all threads meet there, so the "
          "stretch has to end before it";
      if (seed == 0) {
        EXPECT_EQ(error, "meets: threadgroup (0, 0, 0), thread 0" + says);
      }
      EXPECT_NE(error.find(says), std::string::npos) << error;
      EXPECT_EQ(run(false), "") << names[kind];
    }
  }
}

// A kernel that loops until all threads are done. Each thread returns when it
// is done.
const auto kAllReturn = [](auto& tg) {
  const auto out = buffer<float>(tg, 0);
  auto rounds = tg.per_thread(0);
  auto done = tg.per_thread(false);
  while (!tg.uniform(done)) {
    tg.for_each_thread([&](auto t) {
      if (++rounds[t] == 3) {
        out[t.thread_position_in_grid().width] = 3.0f;
        t.exit();
      }
    });
  }
  tg.for_each_thread([&](auto) { throw std::logic_error("nobody is left"); });
};

TEST(DeviceCheckerMisuse, TheKernelEndsWhenAllHaveReturned) {
  for (const bool check : {false, true}) {
    CheckedQueue queue(check ? NewDevice(false, {true, 0}) : CreateDevice({}));
    const auto out = queue.Floats(128);
    EXPECT_EQ(queue.Run("returns", kAllReturn, {out}, 4, 32), "");
    EXPECT_EQ(Contents<float>(out), std::vector<float>(128, 3.0f));
  }
}

const auto kUniformNaN = [](auto& tg) {
  buffer<float>(tg, 0)[0] =
      tg.uniform(tg.per_thread(std::numeric_limits<float>::quiet_NaN()));
};

TEST(DeviceCheckerMisuse, NaNIsAValueToAgreeOn) {
  CheckedQueue queue;
  EXPECT_EQ(queue.Run("nan", kUniformNaN, {queue.Floats(1)}, 1, 64), "");
}

// A kernel that catches the error of an access out of bounds.
struct Catches {
  bool clean;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto out = buffer<float>(tg, 0);
    tg.for_each_thread([&](auto t) {
      if (clean && t.thread_index_in_threadgroup >= 32) return;
      try {
        out[t.thread_index_in_threadgroup] = 1.0f;
      } catch (...) {
      }
    });
  }
};

TEST(DeviceCheckerMisuse, WhatAKernelCatchesIsFoundAllTheSame) {
  CheckedQueue queue;
  const auto run = [&](bool clean) {
    return queue.Run("catches", Catches{clean}, {queue.Floats(32)}, 1, 64);
  };
  EXPECT_EQ(run(false),
            "catches: threadgroup (0, 0, 0), thread 32: writes buffer 0[32], "
            "which has 32 elements");
  EXPECT_EQ(run(true), "");
}

struct Padded {
  float f;
  double d;
  int32_t i;
};
const auto kReadsPadded = [](auto& tg) {
  const auto from = buffer<const Padded>(tg, 0);
  const auto to = buffer<float>(tg, 1);
  tg.for_each_thread([&](auto t) {
    const Padded p = from[t.thread_index_in_threadgroup];
    to[t.thread_index_in_threadgroup] = p.f;
  });
};

// The host writes only the fields, not the padding between them.
TEST(DeviceCheckerMisuse, PaddingNeedNotBeWritten) {
  CheckedQueue queue;
  const auto from = queue.device->newBuffer(2 * sizeof(Padded));
  const auto to = queue.Floats(2);
  const auto run = [&] {
    return queue.Run("padded", kReadsPadded, {from, to}, 1, 2);
  };
  Padded* const rows = static_cast<Padded*>(from->contents());
  rows[0].f = 1.5f;
  rows[0].d = 2.0;
  rows[0].i = 3;
  EXPECT_EQ(run(),
            "padded: threadgroup (0, 0, 0), thread 1: reads buffer 0[1], which "
            "nothing has written since newBuffer()");
  rows[1].f = 2.5f;
  rows[1].d = 2.0;
  rows[1].i = 3;
  EXPECT_EQ(run(), "");
  EXPECT_EQ(Contents<float>(to), (std::vector<float>{1.5f, 2.5f}));
}

}  // namespace
}  // namespace switchyard::testing_support
