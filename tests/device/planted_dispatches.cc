// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Dispatches of a concurrent encoder that conflict, and fresh buffers for those
// that are looked at as a whole.

#include <cstdint>
#include <cstring>
#include <vector>

#include "switchyard/device/kernels.h"
#include "tests/device/planted.h"

namespace switchyard {
namespace testing_support {
namespace {

const auto kFill = [](auto& tg) {
  const auto out = buffer<float>(tg, 0);
  tg.for_each_thread(
      [&](auto t) { out[t.thread_position_in_grid().width] = 2.0f; });
};
const auto kCopy = [](auto& tg) {
  const auto x = buffer<const float>(tg, 0);
  const auto out = buffer<float>(tg, 1);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_position_in_grid().width;
    out[i] = x[i];
  });
};
// Writes the grid of the next dispatch, or its parameters.
const auto kWriteOnes = [](auto& tg) {
  const auto out = buffer<uint32_t>(tg, 0);
  tg.for_each_thread([&](auto t) { out[t.thread_index_in_threadgroup] = 1; });
};
const auto kReadParams = [](auto& tg) { params<uint32_t>(tg, 0); };

// weighted_sum_batched_f32 of 2 tokens with 2 experts' rows of 32 columns.
void WeightedSum(CheckedQueue& q, Encoder& e, const BufferPtr& slots,
                 const BufferPtr& weights, const BufferPtr& out) {
  const WeightedSumBatchedParams p = {2, 2, 32};
  q.SetBuiltIn(e, "weighted_sum_batched_f32");
  e.setBuffer(slots, 0, 0);
  e.setBuffer(weights, 0, 1);
  e.setBuffer(out, 0, 2);
  e.setBytes(&p, sizeof(p), 3);
  e.dispatchThreadgroups(Size(1, 2, 1), Size(256, 1, 1));
}
// silu_mul_batched_f32 of `rows` rows of 32 columns.
void SiluMul(CheckedQueue& q, Encoder& e, const BufferPtr& gate,
             const BufferPtr& up, const BufferPtr& out, size_t rows = 4,
             size_t first = 0) {
  const SiluMulBatchedParams p = {4, 32};
  q.SetBuiltIn(e, "silu_mul_batched_f32");
  e.setBuffer(gate, 0, 0);
  e.setBuffer(up, 0, 1);
  e.setBuffer(out, first * 32 * sizeof(float), 2);
  e.setBytes(&p, sizeof(p), 3);
  e.dispatchThreadgroups(Size(1, rows, 1), Size(256, 1, 1));
}
// A kernel that the checker sees the bindings of only.
void Opaque(CheckedQueue& q, Encoder& e, const BufferPtr& written) {
  q.SetKernel(e, {"opaque", [](const ThreadgroupContext& tg) {
                    tg.buffer<float>(0).data[0] = 1.0f;
                  }});
  e.setBuffer(written, 0, 0);
  e.dispatchThreadgroups(Size(2, 1, 1), Size(1, 1, 1));
}

template <class First, class Second>
std::string Concurrent(CheckedQueue& q, bool barrier, const First& first,
                       const Second& second) {
  return q.Run(
      [&](Encoder& e) {
        first(e);
        if (barrier) e.memoryBarrier(BarrierScopeBuffers);
        second(e);
      },
      DispatchTypeConcurrent);
}

// Fill one buffer and copy it to another, from threadgroups of 32.
std::string FillAndCopy(CheckedQueue& q, bool fill_first, bool barrier) {
  const BufferPtr x = q.Floats(64), out = q.Floats(64);
  const auto fill = [&](Encoder& e) {
    q.Dispatch(e, "fill", kFill, {x}, 2, 32);
  };
  const auto copy = [&](Encoder& e) {
    q.Dispatch(e, "copy", kCopy, {x, out}, 2, 32);
  };
  return fill_first ? Concurrent(q, barrier, fill, copy)
                    : Concurrent(q, barrier, copy, fill);
}

}  // namespace

std::vector<Planted> PlantedBetweenDispatches() {
  return {
      {"read after write, user and user",
       "copy: threadgroup (0, 0, 0), thread 0: reads buffer 0[0], which "
       "dispatch 0 (fill) wrote: memoryBarrier is missing between it and "
       "dispatch 1",
       [](CheckedQueue& q, bool clean) { return FillAndCopy(q, true, clean); }},
      {"write after read, user and user",
       "fill: threadgroup (0, 0, 0), thread 0: writes buffer 0[0], which "
       "dispatch 0 (copy) read: memoryBarrier is missing between it and "
       "dispatch 1",
       [](CheckedQueue& q, bool clean) {
         return FillAndCopy(q, false, clean);
       }},
      {"write after write, user and user",
       "fill: threadgroup (0, 0, 0), thread 0: writes buffer 0[0], which "
       "dispatch 0 (fill) wrote: memoryBarrier is missing between it and "
       "dispatch 1",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr x = q.Floats(64);
         const auto fill = [&](Encoder& e) {
           q.Dispatch(e, "fill", kFill, {x}, 2, 32);
         };
         return Concurrent(q, clean, fill, fill);
       }},
      {"the same memory behind two buffers",
       "copy: threadgroup (0, 0, 0), thread 0: reads buffer 0[0], which "
       "dispatch 0 (fill) wrote: memoryBarrier is missing between it and "
       "dispatch 1",
       [](CheckedQueue& q, bool clean) {
         std::vector<float> memory(64);
         const BufferPtr a =
             q.device->newBufferWithBytesNoCopy(memory.data(), 256);
         const BufferPtr b =
             q.device->newBufferWithBytesNoCopy(memory.data() + 32, 128);
         const BufferPtr out = q.Floats(64);
         return Concurrent(
             q, clean,
             [&](Encoder& e) { q.Dispatch(e, "fill", kFill, {a}, 2, 32); },
             [&](Encoder& e) {
               q.Dispatch(e, "copy", kCopy, {b, out}, 1, 32);
             });
       }},
      {"read after write, user and built-in",
       "weighted_sum_batched_f32: reads buffer 0 (slots)[0], which dispatch 0 "
       "(fill) wrote: memoryBarrier is missing between it and dispatch 1",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr slots = q.Floats(128), w = q.Floats(4),
                         out = q.Floats(64);
         return Concurrent(
             q, clean,
             [&](Encoder& e) { q.Dispatch(e, "fill", kFill, {slots}, 4, 32); },
             [&](Encoder& e) { WeightedSum(q, e, slots, w, out); });
       }},
      {"write after read, built-in and user",
       "fill: threadgroup (0, 0, 0), thread 0: writes buffer 0[0], which "
       "dispatch 0 (weighted_sum_batched_f32) read: memoryBarrier is missing "
       "between it and dispatch 1",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr slots = q.Floats(128), w = q.Floats(4),
                         out = q.Floats(64);
         return Concurrent(
             q, clean, [&](Encoder& e) { WeightedSum(q, e, slots, w, out); },
             [&](Encoder& e) { q.Dispatch(e, "fill", kFill, {w}, 1, 4); });
       }},
      {"read after write, built-in and built-in",
       "weighted_sum_batched_f32: reads buffer 0 (slots)[0], which dispatch 0 "
       "(silu_mul_batched_f32) wrote: memoryBarrier is missing between it and "
       "dispatch 1",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr gate = q.Floats(128), up = q.Floats(128),
                         act = q.Floats(128), w = q.Floats(4),
                         out = q.Floats(64);
         return Concurrent(
             q, clean, [&](Encoder& e) { SiluMul(q, e, gate, up, act); },
             [&](Encoder& e) { WeightedSum(q, e, act, w, out); });
       }},
      {"write after write, rows of a built-in that overlap",
       "silu_mul_batched_f32: writes buffer 2 (out)[0], which dispatch 0 "
       "(silu_mul_batched_f32) wrote: memoryBarrier is missing between it and "
       "dispatch 1",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr gate = q.Floats(128), up = q.Floats(128),
                         act = q.Floats(256);
         return Concurrent(
             q, false, [&](Encoder& e) { SiluMul(q, e, gate, up, act, 2); },
             [&](Encoder& e) {
               SiluMul(q, e, gate, up, act, 2, clean ? 2 : 1);
             });
       }},
      {"indirect arguments that may not be written yet",
       "copy: reads the indirect arguments[0], which dispatch 0 (ones) wrote: "
       "memoryBarrier is missing between it and dispatch 2",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr args = q.Floats(3), x = q.Floats(32),
                         out = q.Floats(32);
         return Concurrent(
             q, clean,
             [&](Encoder& e) {
               q.Dispatch(e, "ones", kWriteOnes, {args}, 1, 3);
             },
             [&](Encoder& e) {
               q.Dispatch(e, "copy", kCopy, {x, out}, 0, 32);
               e.dispatchThreadgroups(args, 0, Size(32, 1, 1));
             });
       }},
      {"parameters that may not be written yet",
       "reader: threadgroup (0, 0, 0), thread 0: reads buffer 0[0], which "
       "dispatch 0 (ones) wrote: memoryBarrier is missing between it and "
       "dispatch 1",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr p = q.Floats(3);
         return Concurrent(
             q, clean,
             [&](Encoder& e) { q.Dispatch(e, "ones", kWriteOnes, {p}, 1, 3); },
             [&](Encoder& e) {
               q.Dispatch(e, "reader", kReadParams, {p}, 1, 1);
             });
       }},
      {"a barrier for another buffer",
       "copy: threadgroup (0, 0, 0), thread 0: reads buffer 0[0], which "
       "dispatch 0 (fill) wrote: memoryBarrier is missing between it and "
       "dispatch 1",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr x = q.Floats(64), out = q.Floats(64);
         return q.Run(
             [&](Encoder& e) {
               q.Dispatch(e, "fill", kFill, {x}, 2, 32);
               const BufferPtr resources[] = {clean ? x : out};
               e.memoryBarrier(resources, 1);
               q.Dispatch(e, "copy", kCopy, {x, out}, 2, 32);
             },
             DispatchTypeConcurrent);
       }},
      {"a barrier for another buffer, write after read",
       "fill: threadgroup (0, 0, 0), thread 0: writes buffer 0[0], which "
       "dispatch 0 (copy) read: memoryBarrier is missing between it and "
       "dispatch 1",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr x = q.Floats(64), out = q.Floats(64);
         return q.Run(
             [&](Encoder& e) {
               q.Dispatch(e, "copy", kCopy, {x, out}, 2, 32);
               const BufferPtr resources[] = {out, nullptr, clean ? x : out};
               e.memoryBarrier(resources, 3);
               q.Dispatch(e, "fill", kFill, {x}, 2, 32);
             },
             DispatchTypeConcurrent);
       }},
      {"a kernel of which only the bindings are known",
       "opaque: writes buffer 0 (as a whole)[0], which dispatch 0 (fill) "
       "wrote: "
       "memoryBarrier is missing between it and dispatch 1",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr x = q.Floats(64);
         return Concurrent(
             q, clean,
             [&](Encoder& e) { q.Dispatch(e, "fill", kFill, {x}, 2, 32); },
             [&](Encoder& e) { Opaque(q, e, x); });
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
         return q.Run([&](Encoder& e) { SiluMul(q, e, gate, up, act); });
       }},
      {"indirect arguments in a fresh buffer",
       "copy: reads the indirect arguments[0], which nothing has written since "
       "newBuffer()",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr args = q.device->newBuffer(12);
         if (clean) std::memset(args->contents(), 0, 12);
         return q.Run([&](Encoder& e) {
           q.Dispatch(e, "copy", kCopy, {q.Floats(32), q.Floats(32)}, 0, 32);
           e.dispatchThreadgroups(args, 0, Size(32, 1, 1));
         });
       }},
  };
}

}  // namespace testing_support
}  // namespace switchyard
