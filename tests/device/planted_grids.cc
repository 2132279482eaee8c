// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Threadgroups of one dispatch that race.

#include <cstdint>
#include <vector>

#include "tests/device/planted.h"

namespace switchyard::testing_support {
namespace {

// The last threadgroup overwrites, behind barriers of its own, what all read.
template <class T, class Tg>
void Overwrites(Tg& tg, bool clean) {
  const auto x = buffer<T>(tg, 0);
  auto v = tg.per_thread(T());
  for (int round = 0; round < 2; ++round) {
    tg.for_each_thread([&](auto t) { v[t] += x[0]; });
    tg.threadgroup_barrier();
  }
  tg.for_each_thread([&](auto t) {
    if (t.thread_position_in_grid().width != 95) return;
    x[clean ? 1 : 0] = v[t];
  });
}

template <class Kernel>
auto Of(const char* name, const Kernel& kernel) {
  return [=](CheckedQueue& q, bool clean) {
    return q.Run([&](Encoder& e) {
      q.Dispatch(
          e, name, [=](auto& tg) { kernel(tg, clean); },
          {q.Make(std::vector<int32_t>(96, 1)), q.Floats(96)}, 3, 32);
    });
  };
}

}  // namespace

std::vector<Planted> PlantedBetweenThreadgroups() {
  return {
      {"two threadgroups write one word",
       "dot: threadgroup (1, 0, 0), thread 3: writes buffer 1[7], which "
       "threadgroup (0, 0, 0), thread 3, wrote in the same dispatch, without "
       "atomics",
       Of("dot",
          [](auto& tg, bool clean) {
            // Every threadgroup leaves its sum in one word.
            const auto x = buffer<const float>(tg, 0);
            const auto out = buffer<float>(tg, 1);
            auto v = tg.per_thread(0.0f);
            tg.for_each_thread(
                [&](auto t) { v[t] = x[t.thread_position_in_grid().width]; });
            const auto sum = simd_sum(v);
            tg.for_each_thread([&](auto t) {
              if (t.thread_index_in_threadgroup != 3) return;
              out[clean ? tg.threadgroup_position_in_grid.width : 7] = sum[t];
            });
          })},
      {"a histogram by plain adds",
       "histogram: threadgroup (0, 0, 0), thread 1: reads buffer 1[1], which "
       "thread 0 wrote in the same phase: a threadgroup_barrier with "
       "mem_device is missing",
       Of("histogram",
          [](auto& tg, bool clean) {
            const auto x = buffer<const int32_t>(tg, 0);
            const auto counts = buffer<int32_t>(tg, 1);
            const auto atomic = atomic_buffer<int32_t>(tg, 1);
            tg.for_each_thread([&](auto t) {
              const int32_t bin = x[t.thread_position_in_grid().width];
              if (clean) {
                atomic.fetch_add(bin, 1);
              } else {
                counts[bin] += 1;
              }
            });
          })},
      {"a threadgroup reads what another one writes",
       "stencil: threadgroup (1, 0, 0), thread 0: writes buffer 0[32], which "
       "threadgroup (0, 0, 0), thread 31, read in the same dispatch, without "
       "atomics",
       Of("stencil",
          [](auto& tg, bool clean) {
            // Adds into a row that the next threadgroup reads the start of.
            const auto x = buffer<float>(tg, 0);
            const auto out = buffer<float>(tg, clean ? 1 : 0);
            const size_t n = tg.threads_per_grid.width;
            auto v = tg.per_thread(0.0f);
            tg.for_each_thread([&](auto t) {
              const size_t i = t.thread_position_in_grid().width;
              v[t] = x[i] + x[(i + 1) % n];
            });
            tg.threadgroup_barrier();
            tg.for_each_thread(
                [&](auto t) { out[t.thread_position_in_grid().width] = v[t]; });
          })},
      {"a threadgroup overwrites what all have read",
       "scale: threadgroup (2, 0, 0), thread 31: writes buffer 0[0], which "
       "threadgroup (0, 0, 0), thread 0, read in the same dispatch, without "
       "atomics",
       Of("scale", [](auto& tg, bool clean) { Overwrites<float>(tg, clean); })},
      {"a threadgroup overwrites two words that all have read",
       "scale: threadgroup (2, 0, 0), thread 31: writes buffer 0[0], which "
       "threadgroup (0, 0, 0), thread 0, read in the same dispatch, without "
       "atomics",
       Of("scale",
          [](auto& tg, bool clean) { Overwrites<double>(tg, clean); })},
      {"a plain read of a word that other threadgroups update",
       "count: threadgroup (1, 0, 0), thread 0: atomically updates buffer "
       "1[0], which threadgroup (0, 0, 0), thread 0, read in the same "
       "dispatch, "
       "without atomics",
       Of("count",
          [](auto& tg, bool clean) {
            // The last threadgroup to count reads the others' results.
            const auto count = buffer<int32_t>(tg, 1);
            const auto atomic = atomic_buffer<int32_t>(tg, 1);
            tg.for_each_thread([&](auto t) {
              if (t.thread_index_in_threadgroup != 0) return;
              atomic.fetch_add(0, 1);
              const int32_t n = clean ? atomic.load(0) : int32_t{count[0]};
              (void)n;
            });
          })},
  };
}

}  // namespace switchyard::testing_support
