// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Checked mode finds every planted defect, says exactly where, and nothing of
// the clean twins; in any order of threads and threadgroups. Here are those
// that no shader has: of built-in kernels, of which checked mode knows what
// they access as a whole, and of an index that is wrong before it is an
// address. All others are in metal/planted.metal and
// metal/planted_dispatches.metal.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/kernels.h"
#include "tests/device/checked_kernels.h"

namespace switchyard::testing_support {
namespace {

struct Planted {
  const char* name;
  // The error of a run without a schedule_seed; the clean one has none.
  std::string error;
  std::function<std::string(CheckedQueue&, bool clean)> run;
  // Unchecked, it would write out of bounds.
  bool is_dangerous = false;
};

// A weighted sum of 2 tokens with 2 experts' rows of 32 columns.
Encode WeightedSum(CheckedQueue& q, const BufferPtr& slots,
                   const BufferPtr& weights, const BufferPtr& out) {
  return [=, &q](Encoder& e) {
    q.DispatchBuiltIn(e, "weighted_sum_batched_f32",
                      WeightedSumBatchedParams{2, 2, 32}, {slots, weights, out},
                      2);
  };
}
// `rows` rows of 32 columns, from `first` of `out` on.
Encode SiluMul(CheckedQueue& q, const BufferPtr& gate, const BufferPtr& up,
               const BufferPtr& out, size_t rows = 4, size_t first = 0) {
  return [=, &q](Encoder& e) {
    const SiluMulBatchedParams p = {4, 32};
    e.setComputePipelineState(
        q.device->newComputePipelineState("silu_mul_batched_f32"));
    q.SetBuffers(e, {gate, up});
    e.setBuffer(out, first * 32 * sizeof(float), 2);
    e.setBytes(&p, sizeof(p), 3);
    e.dispatchThreadgroups(Size(1, rows, 1), Size(256, 1, 1));
  };
}
// One row of half elements, from `gate` and to `out` as many halves into the
// buffers: 33 of them, or as many as are said.
Encode HalfSiluMul(CheckedQueue& q, const BufferPtr& gate, size_t gate_at,
                   const BufferPtr& out, size_t out_at, int32_t cols = 33) {
  return [=, &q](Encoder& e) {
    const SiluMulBatchedParams p = {1, cols};
    e.setComputePipelineState(
        q.device->newComputePipelineState("silu_mul_batched_f16"));
    e.setBuffer(gate, 2 * gate_at, 0);
    e.setBuffer(gate, 2 * gate_at, 1);
    e.setBuffer(out, 2 * out_at, 2);
    e.setBytes(&p, sizeof(p), 3);
    e.dispatchThreadgroups(Size(1, 1, 1), Size(256, 1, 1));
  };
}
// A kernel that the checker sees the bindings of only.
Encode Opaque(CheckedQueue& q, const BufferPtr& written) {
  return [=, &q](Encoder& e) {
    q.SetKernel(e, {"opaque", [](const ThreadgroupContext& tg) {
                      tg.buffer<float>(0).data[0] = 1.0f;
                    }});
    e.setBuffer(written, 0, 0);
    e.dispatchThreadgroups(Size(2, 1, 1), Size(1, 1, 1));
  };
}
std::string Concurrent(CheckedQueue& q, bool barrier, const Encode& first,
                       const Encode& second) {
  return q.Run(
      [&](Encoder& e) {
        first(e);
        if (barrier) e.memoryBarrier(BarrierScopeBuffers);
        second(e);
      },
      DispatchTypeConcurrent);
}

// The error of one of two dispatches.
std::string NoBarrier(const std::string& what) {
  return what + ": memoryBarrier is missing between it and dispatch 1";
}

std::vector<Planted> All() {
  return {
      {"an index that overflows to one in bounds",
       "huge: threadgroup (0, 0, 0), thread 0: an index overflows: buffer 0 "
       "has 96 elements",
       [](CheckedQueue& q, bool clean) {
         const auto huge = [clean](auto& tg) {
           const auto out = buffer<float>(tg, 0);
           // In bytes this is 0 again.
           tg.for_each_thread(
               [&](auto) { out[clean ? 0 : SIZE_MAX / 4 + 1] = 1.0f; });
         };
         return q.Run("huge", huge, {q.Floats(96)}, 1, 1);
       },
       true},
      {"read after write, built-in and built-in",
       NoBarrier("weighted_sum_batched_f32: reads buffer 0 (slots)[0], which "
                 "dispatch 0 (silu_mul_batched_f32) wrote"),
       [](CheckedQueue& q, bool clean) {
         const BufferPtr act = q.Floats(128);
         return Concurrent(q, clean,
                           SiluMul(q, q.Floats(128), q.Floats(128), act),
                           WeightedSum(q, act, q.Floats(4), q.Floats(64)));
       }},
      {"write after write, rows of a built-in that overlap",
       NoBarrier("silu_mul_batched_f32: writes buffer 2 (out)[0], which "
                 "dispatch 0 (silu_mul_batched_f32) wrote"),
       [](CheckedQueue& q, bool clean) {
         const BufferPtr gate = q.Floats(128), up = q.Floats(128),
                         act = q.Floats(256);
         return Concurrent(q, false, SiluMul(q, gate, up, act, 2),
                           SiluMul(q, gate, up, act, 2, clean ? 2 : 1));
       }},
      {"write after write, half a word of two rows",
       NoBarrier("silu_mul_batched_f16: writes buffer 2 (out)[0], which "
                 "dispatch 0 (silu_mul_batched_f16) wrote"),
       [](CheckedQueue& q, bool clean) {
         // The first ends, and the second begins, inside a word.
         const BufferPtr x = q.Floats(64), out = q.Floats(64);
         return Concurrent(q, false, HalfSiluMul(q, x, 0, out, 0),
                           HalfSiluMul(q, x, 0, out, clean ? 33 : 32));
       }},
      {"read after write, half a word of which the other is written since",
       "silu_mul_batched_f16: reads buffer 0 (gate)[0], which dispatch 0 "
       "(silu_mul_batched_f16) wrote: memoryBarrier is missing between it and "
       "dispatch 2",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr x = q.Floats(64), y = q.Floats(64), z = q.Floats(64);
         return Concurrent(q, false, HalfSiluMul(q, x, 0, y, 0),
                           [&](Encoder& e) {
                             HalfSiluMul(q, x, 0, y, 33)(e);
                             if (clean) e.memoryBarrier(&y, 1);
                             HalfSiluMul(q, y, 32, z, 0, 1)(e);
                           });
       }},
      {"write after read, half a word of a built-in's and a user's",
       NoBarrier(
           "halves: threadgroup (0, 0, 0), thread 0: writes buffer 0[32], "
           "which dispatch 0 (silu_mul_batched_f16) read"),
       [](CheckedQueue& q, bool clean) {
         const BufferPtr x = q.Floats(64);
         const auto halves = [clean](auto& tg) {
           const auto out = buffer<uint16_t>(tg, 0) + (clean ? 33 : 32);
           tg.for_each_thread(
               [&](auto t) { out[t.thread_index_in_threadgroup] = 1; });
         };
         return Concurrent(
             q, false, HalfSiluMul(q, x, 0, q.Floats(64), 0),
             [&](Encoder& e) { q.Dispatch(e, "halves", halves, {x}, 1, 4); });
       }},
      {"a kernel of which only the bindings are known",
       NoBarrier("opaque: writes buffer 0 (as a whole)[0], which dispatch 0 "
                 "(fill) wrote"),
       [](CheckedQueue& q, bool clean) {
         const BufferPtr x = q.Floats(64);
         return Concurrent(q, clean, q.Fill(x), Opaque(q, x));
       }},
      {"a fresh buffer into a built-in kernel",
       "silu_mul_batched_f32: reads buffer 1 (up)[127], which nothing has "
       "written since newBuffer()",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr gate = q.Floats(128), up = q.device->newBuffer(512),
                         act = q.device->newBuffer(512);
         for (size_t i = 0; i < (clean ? 128 : 127); ++i) {
           static_cast<float*>(up->contents())[i] = 1.0f;
         }
         return q.Run(SiluMul(q, gate, up, act));
       }},
      {"indirect arguments in a fresh buffer",
       "copy: reads the indirect arguments[0], which nothing has written since "
       "newBuffer()",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr args = q.device->newBuffer(12);
         if (clean) std::memset(args->contents(), 0, 12);
         return q.Run([&](Encoder& e) {
           q.Copy(q.Floats(32), q.Floats(32), 0)(e);
           e.dispatchThreadgroups(args, 0, Size(32, 1, 1));
         });
       }},
  };
}

// Run it alone to have the list.
TEST(DeviceChecker, FindsWhatIsPlanted) {
  CheckedQueue queue;
  for (const Planted& planted : All()) {
    const std::string error = planted.run(queue, false);
    std::printf("* %s\n    %s\n", planted.name, error.c_str());
    EXPECT_EQ(error, planted.error) << planted.name;
    EXPECT_EQ(planted.run(queue, true), "") << planted.name;
    // A second run finds the same first mistake.
    EXPECT_EQ(planted.run(queue, false), planted.error) << planted.name;
  }
}

// Which of the defects comes first depends on the order, that there is one does
// not.
TEST(DeviceChecker, FindsItInAnyOrder) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CheckedQueue queue(seed);
    const std::string end = " (schedule_seed " + std::to_string(seed) + ")";
    for (const Planted& planted : All()) {
      const std::string error = planted.run(queue, false);
      EXPECT_NE(error, "") << planted.name << end;
      EXPECT_EQ(planted.run(queue, false), error) << planted.name << end;
      if (error.find("threadgroup (") != std::string::npos) {
        EXPECT_EQ(error.substr(error.size() - end.size()), end);
      }
      EXPECT_EQ(planted.run(queue, true), "") << planted.name << end;
    }
  }
}

// Unchecked, the same kernels run, the broken ones too (those that stay in
// bounds; on one thread).
TEST(DeviceChecker, IsOffByDefault) {
  DeviceOptions options;
  options.executor =
      std::shared_ptr<Executor>(&SerialExecutor(), [](Executor*) {});
  CheckedQueue queue(CreateDevice(options));
  for (const Planted& planted : All()) {
    if (planted.is_dangerous) continue;
    EXPECT_EQ(planted.run(queue, false), "") << planted.name;
    EXPECT_EQ(planted.run(queue, true), "") << planted.name;
  }
}

}  // namespace
}  // namespace switchyard::testing_support
