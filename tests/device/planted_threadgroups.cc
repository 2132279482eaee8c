// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Threads of one threadgroup that race, or part ways.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/device/planted.h"

namespace switchyard::testing_support {
namespace {

// Each thread reads what another one wrote, near by or in the next simdgroup.
template <class Tg>
void Neighbours(Tg& tg, bool barrier, size_t distance = 1,
                bool of_simdgroup = false) {
  const auto x = buffer<const float>(tg, 0);
  const auto out = buffer<float>(tg, 1);
  const auto scratch = threadgroup_memory<float>(tg, 0);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    scratch[i] = x[i];
  });
  if (barrier && !of_simdgroup) {
    tg.threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (of_simdgroup) tg.simdgroup_barrier(mem_flags::mem_threadgroup);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    out[t.thread_position_in_grid().width] = scratch[i ^ distance];
  });
}

// Values go through device memory.
template <class Tg>
void ThroughDeviceMemory(Tg& tg, bool barrier, mem_flags flags) {
  const auto out = buffer<float>(tg, 1);
  const auto last = out + (tg.threads_per_threadgroup.width - 1);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    out[i] = static_cast<float>(i);
  });
  if (barrier) tg.threadgroup_barrier(flags);
  auto sum = tg.per_thread(0.0f);
  tg.for_each_thread(
      [&](auto t) { sum[t] = *(last - t.thread_index_in_threadgroup); });
}

// Lanes of a simdgroup talk through scratch, with a simd function in between.
template <class Tg>
void LanesTalk(Tg& tg, bool barrier, bool backwards) {
  const auto scratch = threadgroup_memory<float>(tg, 0);
  auto v = tg.per_thread(1.0f);
  const auto write = [&] {
    tg.for_each_thread([&](auto t) {
      const size_t i = t.thread_index_in_threadgroup;
      scratch[i] = v[t];
    });
  };
  write();
  if (backwards) {  // reads, then writes
    tg.threadgroup_barrier();
  } else if (barrier) {
    tg.simdgroup_barrier();
  } else {
    simd_sum(v);
  }
  tg.for_each_thread(
      [&](auto t) { v[t] = scratch[t.thread_index_in_threadgroup ^ 1]; });
  if (!backwards) return;
  if (barrier) simd_sum(v);  // waits for the values read
  write();
}

// Threads write 8-bit values: neighbours, or the same.
template <class Tg>
void Bytes(Tg& tg, bool clean) {
  const auto out = pointer_cast<uint8_t>(buffer<float>(tg, 1)) + 1;
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    out[clean ? i : i / 2] = static_cast<uint8_t>(i);
  });
}

// Threads write values of two bytes, of which two share a word. The lower one
// is then read, by another thread than wrote it.
template <class Tg>
void Halves(Tg& tg, bool clean) {
  const auto out = pointer_cast<uint16_t>(buffer<float>(tg, 1)) + 1;
  auto value = tg.per_thread(uint16_t{0});
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    out[i] = static_cast<uint16_t>(i);
  });
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    if (i == 40) value[t] = out[clean ? 40 : 7];
  });
}

// Halves of words are written, then whole words, and then an upper half is
// read.
template <class Tg>
void HalvesThenWords(Tg& tg, bool clean) {
  const auto words = buffer<float>(tg, 1);
  const auto halves = pointer_cast<uint16_t>(words);
  auto value = tg.per_thread(uint16_t{0});
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    halves[2 * i] = 1;
  });
  tg.threadgroup_barrier(mem_flags::mem_device);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    words[i] = 1.0f;
  });
  if (clean) tg.threadgroup_barrier(mem_flags::mem_device);
  tg.for_each_thread([&](auto t) {
    const size_t i = t.thread_index_in_threadgroup;
    if (i == 40) value[t] = halves[2 * 7 + 1];
  });
}

// A count by atomics, that thread 0 reads.
template <class Tg>
void CountThenRead(Tg& tg, bool clean) {
  const auto out = buffer<float>(tg, 1);
  const auto count = threadgroup_array<int32_t, 1>(tg);
  const auto atomic = atomic_pointer(count);
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup == 0) count[0] = 0;
  });
  tg.threadgroup_barrier();
  tg.for_each_thread([&](auto) { atomic.fetch_add(0, 1); });
  if (clean) tg.threadgroup_barrier();
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup != 0) return;
    const int32_t n = count[0];
    out[0] = static_cast<float>(n);
  });
}

// Threads past the end of the row return, and the others wait for them.
template <class Tg>
void ReturnsEarly(Tg& tg, bool clean, bool simdgroup) {
  const size_t n = 40;
  tg.for_each_thread([&](auto t) {
    if (t.thread_index_in_threadgroup >= n && !clean) return t.exit();
  });
  if (simdgroup) {
    tg.simdgroup_barrier();
  } else {
    tg.threadgroup_barrier();
  }
}

template <class Kernel>
auto Of(const char* name, size_t threads, size_t threadgroups,
        const Kernel& kernel) {
  return [=](CheckedQueue& q, bool clean) {
    return q.Run([&](Encoder& e) {
      e.setThreadgroupMemoryLength(4096, 0);
      q.Dispatch(
          e, name, [=](auto& tg) { kernel(tg, clean); },
          {q.Floats(1024), q.Floats(1024)}, threadgroups, threads);
    });
  };
}

}  // namespace

std::vector<Planted> PlantedInThreadgroups() {
  return {
      {"no barrier between writing scratch and reading it",
       "shift: threadgroup (0, 0, 0), thread 0: reads threadgroup memory 0[1], "
       "which thread 1 wrote in the same phase: a threadgroup_barrier is "
       "missing",
       Of("shift", 32, 2, [](auto& tg, bool clean) { Neighbours(tg, clean); })},
      {"a simdgroup barrier between simdgroups",
       "shift: threadgroup (0, 0, 0), thread 0: reads threadgroup memory "
       "0[32], which thread 32 wrote in the same phase: a threadgroup_barrier "
       "is missing",
       Of("shift", 64, 2,
          [](auto& tg, bool clean) {
            Neighbours(tg, true, clean ? 16u : 32u, true);
          })},
      {"no barrier between a reduction and its reuse of the scratch",
       "softmax: threadgroup (0, 0, 0), thread 0: writes threadgroup array "
       "0[0], which thread 32 read, and others, in the same phase: a "
       "threadgroup_barrier is missing",
       Of("softmax", 64, 2,
          [](auto& tg, bool clean) {
            // Maximum, then sum, of a row over the same scratch.
            const auto x = buffer<const float>(tg, 0);
            const auto out = buffer<float>(tg, 1);
            const auto part = threadgroup_array<float, 2>(tg);
            auto v = tg.per_thread(0.0f);
            tg.for_each_thread(
                [&](auto t) { v[t] = x[t.thread_index_in_threadgroup]; });
            const auto max = simd_max(v);
            tg.for_each_thread([&](auto t) {
              if (t.thread_index_in_simdgroup == 0) {
                part[t.simdgroup_index_in_threadgroup] = max[t];
              }
            });
            tg.threadgroup_barrier();
            tg.for_each_thread([&](auto t) {
              const float row_max = std::max<float>(part[0], part[1]);
              v[t] = v[t] - row_max;
            });
            const auto sum = simd_sum(v);
            if (clean) tg.threadgroup_barrier();
            tg.for_each_thread([&](auto t) {
              if (t.thread_index_in_simdgroup == 0) {
                part[t.simdgroup_index_in_threadgroup] = sum[t];
              }
            });
            tg.threadgroup_barrier();
            tg.for_each_thread([&](auto t) {
              out[t.thread_position_in_grid().width] = part[0] + part[1];
            });
          })},
      {"no barrier between writing device memory and reading it",
       "mirror: threadgroup (0, 0, 0), thread 0: reads buffer 1[63], which "
       "thread 63 wrote in the same phase: a threadgroup_barrier with "
       "mem_device is missing",
       Of("mirror", 64, 1,
          [](auto& tg, bool clean) {
            ThroughDeviceMemory(tg, clean, mem_flags::mem_device);
          })},
      {"a barrier that is for threadgroup memory only",
       "mirror: threadgroup (0, 0, 0), thread 0: reads buffer 1[63], which "
       "thread 63 wrote in the same phase: the threadgroup_barrier between "
       "them has mem_threadgroup, this is device memory: it needs mem_device",
       Of("mirror", 64, 1,
          [](auto& tg, bool clean) {
            ThroughDeviceMemory(tg, true,
                                clean ? mem_flags::mem_device_and_threadgroup
                                      : mem_flags::mem_threadgroup);
          })},
      {"a simd function taken for a barrier, write before read",
       "lanes: threadgroup (0, 0, 0), thread 0: reads threadgroup memory 0[1], "
       "which thread 1 wrote in the same phase: a threadgroup_barrier is "
       "missing",
       Of("lanes", 64, 2,
          [](auto& tg, bool clean) { LanesTalk(tg, clean, false); })},
      {"nothing between reads of lanes and their writes",
       "lanes: threadgroup (0, 0, 0), thread 0: writes threadgroup memory "
       "0[0], which thread 1 read in the same phase: a threadgroup_barrier is "
       "missing",
       Of("lanes", 64, 2,
          [](auto& tg, bool clean) { LanesTalk(tg, clean, true); })},
      {"two threads write one word of scratch",
       "flag: threadgroup (0, 0, 0), thread 1: writes threadgroup array 0[3], "
       "which thread 0 wrote in the same phase: a threadgroup_barrier is "
       "missing",
       Of("flag", 64, 2,
          [](auto& tg, bool clean) {
            const auto flag = threadgroup_array<int32_t, 4>(tg);
            tg.for_each_thread([&](auto t) {
              if (t.thread_index_in_threadgroup == 5 || !clean) flag[3] = 1;
            });
          })},
      {"two threads write one byte",
       "bytes: threadgroup (0, 0, 0), thread 1: writes buffer 1[1], which "
       "thread 0 wrote in the same phase: a threadgroup_barrier with "
       "mem_device is missing",
       Of("bytes", 64, 1, [](auto& tg, bool clean) { Bytes(tg, clean); })},
      {"half of a word is read, and the other one written since",
       "halves: threadgroup (0, 0, 0), thread 40: reads buffer 1[8], which "
       "thread 7 wrote in the same phase: a threadgroup_barrier with "
       "mem_device is missing",
       Of("halves", 64, 1, [](auto& tg, bool clean) { Halves(tg, clean); })},
      {"no barrier between the write of a word and the read of its half",
       "words: threadgroup (0, 0, 0), thread 40: reads buffer 1[15], which "
       "thread 7 wrote in the same phase: a threadgroup_barrier with "
       "mem_device is missing",
       Of("words", 64, 1,
          [](auto& tg, bool clean) { HalvesThenWords(tg, clean); })},
      {"no barrier between atomics and a plain read",
       "count: threadgroup (0, 0, 0), thread 0: reads threadgroup array 0[0], "
       "which thread 32 atomically wrote, and others, in the same phase: a "
       "threadgroup_barrier is missing",
       Of("count", 64, 1,
          [](auto& tg, bool clean) { CountThenRead(tg, clean); })},
      {"threads that return before a barrier",
       "early: threadgroup (0, 0, 0): thread 0 waits at a threadgroup_barrier, "
       "thread 40 has returned",
       Of("early", 64, 2,
          [](auto& tg, bool clean) { ReturnsEarly(tg, clean, false); })},
      {"lanes that return before a simdgroup barrier",
       "early: threadgroup (0, 0, 0): thread 32 waits at a simdgroup_barrier, "
       "thread 40 has returned",
       Of("early", 64, 2,
          [](auto& tg, bool clean) { ReturnsEarly(tg, clean, true); })},
      {"a barrier in a divergent loop",
       "newton: threadgroup (0, 0, 0): threads disagree on a uniform() value: "
       "threads 0 and 7 have 0 and 1",
       Of("newton", 64, 2,
          [](auto& tg, bool clean) {
            // Newton's steps until each thread is happy, with a barrier in the
            // loop.
            auto steps = tg.per_thread(0);
            auto more = tg.per_thread(true);
            while (tg.uniform(more)) {
              tg.for_each_thread([&](auto t) {
                const size_t wanted =
                    clean ? 3 : 2 + t.thread_index_in_threadgroup / 7;
                more[t] = static_cast<size_t>(++steps[t]) < wanted;
              });
              tg.threadgroup_barrier();
            }
          })},
      {"a broadcast of a lane that is not there",
       "lane: threadgroup (0, 0, 0): simd_broadcast: lane 8 of simdgroup 1 is "
       "not there",
       Of("lane", 40, 2,
          [](auto& tg, bool clean) {
            const auto v = tg.per_thread(1.0f);
            simd_broadcast(v, clean ? 7 : 8);
          })},
  };
}

}  // namespace switchyard::testing_support
