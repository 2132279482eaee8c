// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Dispatches of a concurrent encoder that conflict, and fresh buffers for those
// that are looked at as a whole.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "switchyard/device/kernels.h"
#include "tests/device/planted.h"

namespace switchyard::testing_support {
namespace {

// Writes the grid of the next dispatch, or its parameters.
const auto kWriteOnes = [](auto& tg) {
  const auto out = buffer<uint32_t>(tg, 0);
  tg.for_each_thread([&](auto t) { out[t.thread_index_in_threadgroup] = 1; });
};
const auto kReadParams = [](auto& tg) { params<uint32_t>(tg, 0); };

// Of 2 tokens with 2 experts' rows of 32 columns.
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
Encode Ones(CheckedQueue& q, const BufferPtr& out) {
  return
      [=, &q](Encoder& e) { q.Dispatch(e, "ones", kWriteOnes, {out}, 1, 3); };
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

}  // namespace

std::vector<Planted> PlantedBetweenDispatches() {
  return {
      {"read after write, user and user",
       NoBarrier("copy: threadgroup (0, 0, 0), thread 0: reads buffer 0[0], "
                 "which dispatch 0 (fill) wrote"),
       [](CheckedQueue& q, bool clean) {
         const BufferPtr x = q.Floats(64), out = q.Floats(64);
         return Concurrent(q, clean, q.Fill(x), q.Copy(x, out));
       }},
      {"write after read, user and user",
       NoBarrier("fill: threadgroup (0, 0, 0), thread 0: writes buffer 0[0], "
                 "which dispatch 0 (copy) read"),
       [](CheckedQueue& q, bool clean) {
         const BufferPtr x = q.Floats(64), out = q.Floats(64);
         return Concurrent(q, clean, q.Copy(x, out), q.Fill(x));
       }},
      {"write after write, user and user",
       NoBarrier("fill: threadgroup (0, 0, 0), thread 0: writes buffer 0[0], "
                 "which dispatch 0 (fill) wrote"),
       [](CheckedQueue& q, bool clean) {
         const BufferPtr x = q.Floats(64);
         return Concurrent(q, clean, q.Fill(x), q.Fill(x));
       }},
      {"the same memory behind two buffers",
       NoBarrier("copy: threadgroup (0, 0, 0), thread 0: reads buffer 0[0], "
                 "which dispatch 0 (fill) wrote"),
       [](CheckedQueue& q, bool clean) {
         std::vector<float> memory(64);
         const BufferPtr a =
             q.device->newBufferWithBytesNoCopy(memory.data(), 256);
         const BufferPtr b =
             q.device->newBufferWithBytesNoCopy(memory.data() + 32, 128);
         return Concurrent(q, clean, q.Fill(a), q.Copy(b, q.Floats(64), 1));
       }},
      {"read after write, user and built-in",
       NoBarrier("weighted_sum_batched_f32: reads buffer 0 (slots)[0], which "
                 "dispatch 0 (fill) wrote"),
       [](CheckedQueue& q, bool clean) {
         const BufferPtr slots = q.Floats(128);
         return Concurrent(q, clean, q.Fill(slots, 4),
                           WeightedSum(q, slots, q.Floats(4), q.Floats(64)));
       }},
      {"write after read, built-in and user",
       NoBarrier("fill: threadgroup (0, 0, 0), thread 0: writes buffer 0[0], "
                 "which dispatch 0 (weighted_sum_batched_f32) read"),
       [](CheckedQueue& q, bool clean) {
         const BufferPtr w = q.Floats(4);
         return Concurrent(
             q, clean, WeightedSum(q, q.Floats(128), w, q.Floats(64)),
             [&](Encoder& e) { q.Dispatch(e, "fill", kFill, {w}, 1, 4); });
       }},
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
      {"indirect arguments that may not be written yet",
       "copy: reads the indirect arguments[0], which dispatch 0 (ones) wrote: "
       "memoryBarrier is missing between it and dispatch 2",
       [](CheckedQueue& q, bool clean) {
         const BufferPtr args = q.Floats(3);
         return Concurrent(q, clean, Ones(q, args), [&](Encoder& e) {
           q.Copy(q.Floats(32), q.Floats(32), 0)(e);
           e.dispatchThreadgroups(args, 0, Size(32, 1, 1));
         });
       }},
      {"parameters that may not be written yet",
       NoBarrier("reader: threadgroup (0, 0, 0), thread 0: reads buffer 0[0], "
                 "which dispatch 0 (ones) wrote"),
       [](CheckedQueue& q, bool clean) {
         const BufferPtr p = q.Floats(3);
         return Concurrent(q, clean, Ones(q, p), [&](Encoder& e) {
           q.Dispatch(e, "reader", kReadParams, {p}, 1, 1);
         });
       }},
      {"a barrier for another buffer",
       NoBarrier("copy: threadgroup (0, 0, 0), thread 0: reads buffer 0[0], "
                 "which dispatch 0 (fill) wrote"),
       [](CheckedQueue& q, bool clean) {
         const BufferPtr x = q.Floats(64), out = q.Floats(64);
         return Concurrent(q, false, q.Fill(x), [&](Encoder& e) {
           const BufferPtr resources[] = {clean ? x : out};
           e.memoryBarrier(resources, 1);
           q.Copy(x, out)(e);
         });
       }},
      {"a barrier for another buffer, write after read",
       NoBarrier("fill: threadgroup (0, 0, 0), thread 0: writes buffer 0[0], "
                 "which dispatch 0 (copy) read"),
       [](CheckedQueue& q, bool clean) {
         const BufferPtr x = q.Floats(64), out = q.Floats(64);
         return Concurrent(q, false, q.Copy(x, out), [&](Encoder& e) {
           const BufferPtr resources[] = {out, nullptr, clean ? x : out};
           e.memoryBarrier(resources, 3);
           q.Fill(x)(e);
         });
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

}  // namespace switchyard::testing_support
