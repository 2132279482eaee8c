// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Accesses that are wrong by themselves: out of bounds, or of what nothing has
// written.

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/device/planted.h"

namespace switchyard::testing_support {
namespace {

// Words of a buffer that is three bytes short of the last.
struct HalfAnElement {
  bool clean;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto x = pointer_cast<const uint64_t>(buffer<const float>(tg, 0));
    const auto out = buffer<float>(tg, 1);
    tg.for_each_thread(
        [&](auto) { out[0] = static_cast<float>(x[clean ? 46 : 47] & 1); });
  }
};

struct CopyOfStruct {
  struct Params {
    uint32_t n, padding;
  };
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto p = params<Params>(tg, 0);
    const auto out = buffer<float>(tg, 1);
    tg.for_each_thread([&](auto) { out[0] = static_cast<float>(p.n); });
  }
};

// Buffer 0 has 96 elements, buffer 1 as many, threadgroup memory 0 has 32.
template <class Kernel>
auto Of(const char* name, size_t threads, float value, const Kernel& kernel) {
  return [=](CheckedQueue& q, bool clean) {
    return q.Run([&](Encoder& e) {
      e.setThreadgroupMemoryLength(128, 0);
      q.Dispatch(
          e, name, [=](auto& tg) { kernel(tg, clean); },
          {q.Floats(96, value), q.Floats(96)}, 1, threads);
    });
  };
}

}  // namespace

std::vector<Planted> PlantedInMemory() {
  return {
      {"an element past the end of a buffer",
       "stencil: threadgroup (0, 0, 0), thread 95: reads buffer 0[96], which "
       "has 96 elements",
       Of("stencil", 96, 1.0f,
          [](auto& tg, bool clean) {
            // out[i] = x[i] + x[i + 1]
            const auto x = buffer<const float>(tg, 0);
            const auto out = buffer<float>(tg, 1);
            tg.for_each_thread([&](auto t) {
              const size_t i = t.thread_position_in_grid().width;
              const size_t next = clean ? (i + 1) % 96 : i + 1;
              out[i] = x[i] + x[next];
            });
          })},
      {"index -1 after an arg-max over NaN",
       "top1: threadgroup (0, 0, 0), thread 0: writes threadgroup memory "
       "0[-1], which has 32 elements",
       Of("top1", 32, NAN,
          [](auto& tg, bool clean) {
            // An arg-max that finds nothing in a row of NaN, and masks what it
            // found.
            const auto x = buffer<const float>(tg, 0);
            const auto scores = threadgroup_memory<float>(tg, 0);
            auto best = tg.per_thread(-1);
            tg.for_each_thread([&](auto t) {
              const size_t i = t.thread_index_in_threadgroup;
              scores[i] = x[i];
              if (x[i] > -1e30f || clean) best[t] = static_cast<int32_t>(i);
            });
            const auto winner = simd_max(best);
            tg.threadgroup_barrier();
            tg.for_each_thread([&](auto t) {
              if (t.thread_index_in_threadgroup == 0)
                scores[winner[t]] = -1e30f;
            });
          })},
      {"a scratch region smaller than the reduction that uses it",
       "sum: threadgroup (0, 0, 0), thread 64: writes threadgroup array 0[2], "
       "which has 2 elements",
       Of("sum", 96, 1.0f,
          [](auto& tg, bool clean) {
            // One slot per simdgroup, for a group that has more of them.
            const auto x = buffer<const float>(tg, 0);
            const auto part = threadgroup_array<float, 2>(tg);
            const auto rest = threadgroup_array<float, 8>(tg);
            auto v = tg.per_thread(0.0f);
            tg.for_each_thread(
                [&](auto t) { v[t] = x[t.thread_index_in_threadgroup]; });
            const auto sum = simd_sum(v);
            tg.for_each_thread([&](auto t) {
              if (t.thread_index_in_simdgroup != 0) return;
              (clean ? rest : part)[t.simdgroup_index_in_threadgroup] = sum[t];
            });
          })},
      {"an element of which only a part is bound",
       "words: threadgroup (0, 0, 0), thread 0: reads buffer 0[47], which has "
       "47 elements",
       [](CheckedQueue& q, bool clean) {
         return q.Run("words", HalfAnElement{clean},
                      {q.Make(std::vector<char>(381)), q.Floats(1)}, 1, 1);
       }},
      {"an index that overflows to one in bounds",
       "huge: threadgroup (0, 0, 0), thread 0: an index overflows: buffer 1 "
       "has 96 elements",
       Of("huge", 1, 1.0f,
          [](auto& tg, bool clean) {
            const auto out = buffer<float>(tg, 1);
            // In bytes this is 0 again.
            tg.for_each_thread(
                [&](auto) { out[clean ? 0 : SIZE_MAX / 4 + 1] = 1.0f; });
          })},
      {"a pointer that walks to before the start",
       "reverse: threadgroup (0, 0, 0), thread 26: reads buffer 0[-2], which "
       "has 96 elements",
       Of("reverse", 32, 1.0f,
          [](auto& tg, bool clean) {
            // Pointers may point anywhere; what they are used for counts.
            auto x = buffer<const float>(tg, 0) + 200;
            const auto out = buffer<float>(tg, 1);
            x -= 150;
            tg.for_each_thread([&](auto t) {
              const int32_t i =
                  static_cast<int32_t>(t.thread_index_in_threadgroup);
              out[i] = x[clean ? -i : -2 * i];
            });
          })},
      {"a read of threadgroup memory that no thread has written",
       "gather: threadgroup (0, 0, 0), thread 0: reads threadgroup memory "
       "0[31], which no thread has written",
       Of("gather", 32, 1.0f,
          [](auto& tg, bool clean) {
            // Thread 0 writes what all add up, but one less than they are.
            const auto out = buffer<float>(tg, 1);
            const auto scratch = threadgroup_memory<float>(tg, 0);
            tg.for_each_thread([&](auto t) {
              const size_t i = t.thread_index_in_threadgroup;
              if (i < 31 || clean) scratch[i] = 1.0f;
            });
            tg.threadgroup_barrier();
            tg.for_each_thread([&](auto t) {
              const size_t i = t.thread_index_in_threadgroup;
              out[i] = scratch[31 - i];
            });
          })},
      {"a half of a word of threadgroup memory that no thread has written",
       "gather: threadgroup (0, 0, 0), thread 0: reads threadgroup memory "
       "0[31], which no thread has written",
       Of("gather", 32, 1.0f,
          [](auto& tg, bool clean) {
            // The same of elements of two bytes.
            const auto out = buffer<float>(tg, 1);
            const auto scratch =
                pointer_cast<uint16_t>(threadgroup_memory<float>(tg, 0));
            tg.for_each_thread([&](auto t) {
              const size_t i = t.thread_index_in_threadgroup;
              if (i < 31 || clean) scratch[i] = 1;
            });
            tg.threadgroup_barrier();
            tg.for_each_thread([&](auto t) {
              const size_t i = t.thread_index_in_threadgroup;
              out[i] = scratch[31 - i];
            });
          })},
      {"a tree reduction over a group size that is not a power of two",
       "tree: threadgroup (0, 0, 0), thread 8: reads threadgroup array 0[24], "
       "which no thread has written",
       Of("tree", 24, 1.0f,
          [](auto& tg, bool clean) {
            // Adds halves for a group of 24, as if it had 32.
            const auto x = buffer<const float>(tg, 0);
            const auto out = buffer<float>(tg, 1);
            const auto scratch = threadgroup_array<float, 32>(tg);
            const size_t n = tg.threads_per_threadgroup.width;
            tg.for_each_thread([&](auto t) {
              const size_t i = t.thread_index_in_threadgroup;
              scratch[i] = x[i];
            });
            tg.threadgroup_barrier();
            for (size_t half = 16; half != 0; half /= 2) {
              tg.for_each_thread([&](auto t) {
                const size_t i = t.thread_index_in_threadgroup;
                if (i < half && (i + half < n || !clean)) {
                  scratch[i] += scratch[i + half];
                }
              });
              tg.threadgroup_barrier();
            }
            tg.for_each_thread([&](auto t) {
              if (t.thread_index_in_threadgroup == 0) out[0] = scratch[0];
            });
          })},
      {"a fresh buffer that nothing has written",
       "copy: threadgroup (0, 0, 0), thread 2: reads buffer 0[2], which "
       "nothing "
       "has written since newBuffer()",
       [](CheckedQueue& q, bool clean) {
         const auto x = q.device->newBuffer(16);
         float* const host = static_cast<float*>(x->contents());
         host[0] = host[1] = 1.0f;
         if (clean) host[2] = host[3] = 1.0f;
         return q.Run("copy", kCopy, {x, q.Floats(4)}, 1, 4);
       }},
      {"parameters in a fresh buffer",
       "params: threadgroup (0, 0, 0): reads the parameters in buffer 0, which "
       "nothing has written since newBuffer()",
       [](CheckedQueue& q, bool clean) {
         const auto p = q.device->newBuffer(sizeof(CopyOfStruct::Params));
         if (clean) *static_cast<uint32_t*>(p->contents()) = 7;  // no padding
         return q.Run("params", CopyOfStruct{}, {p, q.Floats(1)}, 1, 1);
       }},
  };
}

}  // namespace switchyard::testing_support
