// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests checked mode through CheckedFibers, the interface for code that runs
// each thread on its own fiber. Tests which accesses are ordered, and which
// places in the code the findings name.

#include "device/src/core/checked_fibers.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/tests/checked_kernels.h"
#include "gtest/gtest.h"

namespace switchyard::testing_support {
namespace {

// These tests have no real kernels. Each runs a script that calls checked
// mode's functions (SwitchTo(), Access(), ...) as a running shader would.
using device::kernel_internal::kAtomically;
using device::kernel_internal::kReads;
using device::kernel_internal::kWrites;
using device::kernel_internal::View;

constexpr uint32_t kNone = 0, kDevice = 1, kLocal = 2;
constexpr uint32_t kAll = UINT32_MAX;

// Gives a place to each code address. The addresses have the form 1000 * line
// + column.
struct Lines : Places {
  Place PlaceOf(const void* where) const override {
    const uint32_t at =
        static_cast<uint32_t>(reinterpret_cast<uintptr_t>(where));
    return {"k.metal", at / 1000, at % 1000};
  }
};
const void* At(uint32_t line, uint32_t column = 1) {
  return reinterpret_cast<const void*>(uintptr_t{line} * 1000 + column);
}

// Calls checked mode for a threadgroup of 64 threads, which has 64 words of
// threadgroup memory and a buffer.
struct Script {
  CheckedFibers& fibers;
  const View& scratch;
  const View& buffer;

  void Do(size_t thread, const View& view, size_t offset, size_t size,
          uint32_t kind, const void* where) const {
    fibers.SwitchTo(thread);
    fibers.Access(view, static_cast<ptrdiff_t>(offset), size, kind, where);
    if (offset + size > view.length) return;
    if ((kind & kWrites) != 0) view.data[offset] = ++*next;
  }
  // These functions access a word of the threadgroup memory.
  void Write(size_t thread, size_t word, uint32_t line) const {
    Do(thread, scratch, 4 * word, 4, kWrites, At(line));
  }
  void Read(size_t thread, size_t word, uint32_t line) const {
    Do(thread, scratch, 4 * word, 4, kReads, At(line));
  }
  unsigned char* const next;
};

struct Runner {
  DeviceOptions options;
  Lines lines;
  bool places = true;
  std::vector<Finding> findings;

  Runner() { options.check_kernels = true; }
  // Returns the texts of the findings.
  std::vector<std::string> Run(const std::function<void(const Script&)>& script,
                               size_t threadgroups = 1) {
    KernelFunction kernel;
    kernel.name = "k";
    kernel.threadgroup = [](const ThreadgroupContext&) {};
    kernel.checked = [&](const ThreadgroupContext& context) {
      using namespace device::kernel_internal;  // NOLINT
      DeclaredArrays arrays;
      unsigned char next = 0;
      CheckedFibers& fibers = CheckedFibers::From(context);
      fibers.Begin(64, places ? &lines : nullptr);
      const View& scratch = ArrayView(context, 256, &arrays);
      fibers.Describe(scratch, "tile", 4);
      script({fibers, scratch, BufferView(context, 0, 4, false), &next});
    };
    CheckedQueue q(CreateDevice(options));
    const auto commands = Encoded(*q.queue, [&](Encoder& e) {
      q.SetKernel(e, kernel);
      q.SetBuffers(e, {q.Floats(64)});
      e.dispatchThreadgroups(Size(threadgroups, 1, 1), Size(64, 1, 1));
    });
    commands->commit();
    commands->waitUntilCompleted();
    findings = commands->findings();
    EXPECT_EQ(commands->error(), findings.empty() ? "" : findings[0].text);
    std::vector<std::string> texts;
    for (const Finding& finding : findings) texts.push_back(finding.text);
    return texts;
  }
};
using Strings = std::vector<std::string>;
const Strings kNothing;

TEST(DeviceCheckedFibers, BothPlacesAreNamed) {
  Runner r;
  EXPECT_EQ(r.Run([](const Script& s) {
    s.Write(0, 5, 10);
    s.Read(33, 5, 20);
    s.Read(33, 5, 21);  // at another place, so this is a second finding
    s.Read(34, 5, 21);  // at the same place, so this is no new finding
  }),
            (Strings{"k: threadgroup (0, 0, 0), thread 33: reads tile[5] at "
                     "k.metal:20:1, which thread 0 wrote at k.metal:10:1 in "
                     "the same phase: a threadgroup_barrier is missing",
                     "k: threadgroup (0, 0, 0), thread 33: reads tile[5] at "
                     "k.metal:21:1, which thread 0 wrote at k.metal:10:1 in "
                     "the same phase: a threadgroup_barrier is missing"}));
  EXPECT_EQ(r.findings[1].where.text(), "k.metal:21:1");
  EXPECT_EQ(r.findings[1].other.text(), "k.metal:10:1");
  // All threads have read the word.
  const auto reads_then_write = [](const Script& s) {
    s.Write(9, 5, 1);
    s.fibers.ThreadgroupBarrier(kLocal);
    for (size_t t = 0; t < 64; ++t) {
      s.Read(t, 5, 100 + static_cast<uint32_t>(t));
    }
    s.Write(0, 5, 10);
  };
  EXPECT_EQ(r.Run(reads_then_write),
            (Strings{"k: threadgroup (0, 0, 0), thread 0: writes tile[5] at "
                     "k.metal:10:1, which thread 32 read at k.metal:132:1, and "
                     "others, in the same phase: a threadgroup_barrier is "
                     "missing"}));
  r.places = false;
  EXPECT_EQ(r.Run(reads_then_write),
            (Strings{"k: threadgroup (0, 0, 0), thread 0: writes tile[5], "
                     "which thread 32 read, and others, in the same phase: a "
                     "threadgroup_barrier is missing"}));
  EXPECT_FALSE(r.findings[0].where.known());
}

TEST(DeviceCheckedFibers, EveryKindHasItsPlace) {
  Runner r;
  EXPECT_EQ(r.Run([](const Script& s) {
    s.Do(1, s.scratch, 8, 2, kReads, At(3));
    s.Do(2, s.buffer, 16, 16, kWrites, At(4));
    s.Do(3, s.buffer, 24, 2, kReads | kWrites | kAtomically, At(5));
    s.Do(3, s.buffer, 250, 8, kReads, At(6));
  }),
            (Strings{"k: threadgroup (0, 0, 0), thread 1: reads tile[2] at "
                     "k.metal:3:1, which no thread has written",
                     "k: threadgroup (0, 0, 0), thread 3: atomically updates "
                     "buffer 0[12] at k.metal:5:1, which thread 2 wrote at "
                     "k.metal:4:1 in the same phase: a simdgroup_barrier "
                     "with mem_device is missing",
                     "k: threadgroup (0, 0, 0), thread 3: reads buffer 0, byte "
                     "250, at k.metal:6:1, which has 32 elements"}));
  EXPECT_EQ(r.findings[2].where.line, 6u);
  // Checked mode remembers a separate place in the code for each half of a
  // word.
  EXPECT_EQ(r.Run([](const Script& s) {
    s.Do(1, s.scratch, 0, 4, kWrites, At(1));
    s.fibers.ThreadgroupBarrier(kLocal);
    s.Do(1, s.scratch, 0, 2, kWrites, At(2));
    s.Do(2, s.scratch, 2, 2, kWrites, At(3));
    s.Do(3, s.scratch, 0, 2, kReads, At(4));
    s.Do(4, s.scratch, 2, 2, kReads, At(5));
  }),
            (Strings{"k: threadgroup (0, 0, 0), thread 3: reads tile[0] at "
                     "k.metal:4:1, which thread 1 wrote at k.metal:2:1 in the "
                     "same phase: a simdgroup_barrier is missing",
                     "k: threadgroup (0, 0, 0), thread 4: reads tile, byte 2, "
                     "at k.metal:5:1, which thread 2 wrote at k.metal:3:1 in "
                     "the same phase: a simdgroup_barrier is missing"}));
}

// The finding names the place of the other access, which is in another
// threadgroup, or in another dispatch with other code.
TEST(DeviceCheckedFibers, OtherThreadgroups) {
  Runner r;
  EXPECT_EQ(
      r.Run([](const Script& s) { s.Do(7, s.buffer, 12, 4, kWrites, At(8)); },
            2),
      (Strings{"k: threadgroup (1, 0, 0), thread 7: writes buffer 0[3] "
               "at k.metal:8:1, which threadgroup (0, 0, 0), thread 7, "
               "wrote at k.metal:8:1 in the same dispatch, without "
               "atomics"}));
}

TEST(DeviceCheckedFibers, SimdgroupsMeetAlone) {
  Runner r;
  const auto write_meet_read = [&](size_t simdgroup, bool barrier,
                                   uint32_t flags, size_t writer,
                                   size_t reader) {
    return r
        .Run([=](const Script& s) {
          s.Write(writer, 5, 1);
          if (barrier) {
            s.fibers.SimdgroupBarrier(simdgroup, kAll, flags);
          } else {
            s.fibers.SimdFunction(simdgroup, kAll);
          }
          s.Read(reader, 5, 2);
        })
        .size();
  };
  EXPECT_EQ(write_meet_read(0, true, kLocal, 3, 4), 0u);
  EXPECT_EQ(write_meet_read(1, true, kLocal, 33, 34), 0u);
  // A meeting is a simd function or barrier that lanes reach together. These
  // meetings do not order the accesses: a barrier of another simdgroup, a
  // simd function, a simdgroup_barrier for threads in different simdgroups,
  // and a barrier for device memory.
  EXPECT_EQ(write_meet_read(1, true, kLocal, 3, 4), 1u);
  EXPECT_EQ(write_meet_read(0, true, kLocal, 33, 34), 1u);
  EXPECT_EQ(write_meet_read(0, false, kNone, 3, 4), 1u);
  EXPECT_EQ(write_meet_read(0, true, kLocal, 3, 34), 1u);
  EXPECT_EQ(write_meet_read(0, true, kDevice, 3, 4), 1u);
  EXPECT_EQ(r.findings[0].kind, FindingKind::kBarrierFlags);
  // After a meeting, the reads of its lanes are over. Meetings of the other
  // simdgroup have no effect.
  const auto read_meet_write = [&](size_t simdgroup, size_t others) {
    return r
        .Run([=](const Script& s) {
          s.Write(9, 5, 1);
          s.fibers.ThreadgroupBarrier(kLocal);
          for (size_t i = 0; i < others; ++i) s.fibers.SimdFunction(1, kAll);
          s.Read(3, 5, 2);
          s.fibers.SimdFunction(simdgroup, kAll);
          s.Write(4, 5, 3);
        })
        .size();
  };
  EXPECT_EQ(read_meet_write(0, 0), 0u);
  EXPECT_EQ(read_meet_write(0, 3), 0u);
  EXPECT_EQ(read_meet_write(1, 0), 1u);
  EXPECT_EQ(read_meet_write(1, 3), 1u);
}

// A meeting orders only the accesses of the lanes that take part.
TEST(DeviceCheckedFibers, SomeLanesMeet) {
  Runner r;
  const auto run = [&](uint32_t lanes, bool write, size_t first,
                       size_t second) {
    return r
        .Run([=](const Script& s) {
          s.Write(first, 5, 1);
          if (!write) {
            s.fibers.ThreadgroupBarrier(kLocal);
            s.Read(first, 5, 2);
            s.fibers.SimdFunction(1, lanes);
          } else {
            s.fibers.SimdgroupBarrier(1, lanes, kLocal);
          }
          s.Write(second, 5, 3);
        })
        .size();
  };
  for (const bool write : {false, true}) {
    EXPECT_EQ(run(0x00FF, write, 33, 34), 0u);
    EXPECT_EQ(run(0x00FF, write, 33, 40), 1u);
    EXPECT_EQ(run(0x00FF, write, 40, 33), 1u);
    EXPECT_EQ(run(0xFF00, write, 40, 41), 0u);
    EXPECT_EQ(run(0xFF00, write, 40, 8), 1u);
  }
}

TEST(DeviceCheckedFibers, BarriersOfTheThreadgroup) {
  Runner r;
  const auto run = [&](uint32_t flags) {
    return r.Run([=](const Script& s) {
      s.fibers.SimdFunction(1, kAll);
      s.Write(3, 5, 1);
      s.Do(3, s.buffer, 20, 4, kWrites, At(1));
      s.fibers.ThreadgroupBarrier(flags);
      s.Read(40, 5, 2);
      s.Do(40, s.buffer, 20, 4, kReads, At(2));
    });
  };
  EXPECT_EQ(run(kLocal | kDevice), kNothing);
  EXPECT_EQ(run(kLocal).size(), 1u);
  EXPECT_EQ(r.findings[0].text,
            "k: threadgroup (0, 0, 0), thread 40: reads buffer 0[5] at "
            "k.metal:2:1, which thread 3 wrote at k.metal:1:1 in the same "
            "phase: the threadgroup_barrier between them has mem_threadgroup, "
            "this is device memory: it needs mem_device");
  EXPECT_EQ(run(kDevice).size(), 1u);
  EXPECT_EQ(run(kNone).size(), 2u);
  // With a seed, the threads of 20 threadgroups run in a shuffled order. The
  // barriers must order the accesses in this run, too.
  r.options.schedule_seed = 7;
  EXPECT_EQ(r.Run(
                [](const Script& s) {
                  const uint16_t* const order = s.fibers.Order();
                  ASSERT_NE(order, nullptr);
                  for (size_t round = 0; round < 3; ++round) {
                    for (size_t i = 0; i < 64; ++i) {
                      s.Write(order[i], order[i] ^ round, 1);
                    }
                    s.fibers.ThreadgroupBarrier(kLocal);
                  }
                },
                20),
            kNothing);
}

TEST(DeviceCheckedFibers, TheRunnersOwnFindings) {
  Runner r;
  EXPECT_EQ(
      r.Run(
          [](const Script& s) {
            s.fibers.Report(FindingKind::kDivergentSimd, 3, At(7), At(9),
                            "simd_sum without lane 4", "all lanes");
            s.fibers.Report(FindingKind::kDivergentSimd, 5, At(7), At(9),
                            "again", "");
            s.fibers.EndThreadgroup(FindingKind::kDivergentBarrier,
                                    Finding::kNoThread, At(8), nullptr,
                                    "threads part", "");
          },
          2),
      (Strings{"k: threadgroup (0, 0, 0), thread 3: simd_sum without lane 4",
               "k: threadgroup (0, 0, 0): threads part"}));
  EXPECT_EQ(r.findings[0].where.text(), "k.metal:7:1");
  EXPECT_EQ(r.findings[0].other.text(), "k.metal:9:1");
  EXPECT_EQ(r.findings[0].help, "all lanes");
  EXPECT_EQ(r.findings[1].thread, Finding::kNoThread);
}

// The fast path must report the same races as the slow path. Kernels of
// kernel.h always take the slow path.
TEST(DeviceCheckedFibers, TheShortWayFindsTheSame) {
  Runner r;
  uint64_t state = 1;
  const auto below = [&state](uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state >> 33) % n);
  };
  size_t found = 0;
  for (int round = 0; round < 3000; ++round) {
    struct Step {
      size_t what, thread, offset;
      uint32_t kind;
    };
    const size_t size = size_t{2} << below(3);
    const bool local = below(2) != 0;
    std::vector<Step> steps;
    for (size_t i = 0; i < 8; ++i) {
      const size_t lanes[] = {0, 1, 2, 33};
      steps.push_back({below(6), lanes[below(4)], size * below(2),
                       below(3) == 0 ? kWrites : kReads});
    }
    const size_t threadgroups = 1 + below(2);
    const auto run = [&](bool long_way) {
      return r.Run(
          [&](const Script& s) {
            const View& view = local ? s.scratch : s.buffer;
            for (size_t i = 0; local && i < 16; ++i) {
              s.Do(5, view, 2 * i, 2, kWrites, At(1));
            }
            s.fibers.ThreadgroupBarrier(kLocal | kDevice);
            // Every other round splits the word into halves.
            if (round % 2 == 0) s.Do(5, view, 0, 8, kWrites, At(1));
            s.fibers.ThreadgroupBarrier(kLocal | kDevice);
            for (const Step& step : steps) {
              if (step.what == 0) {
                s.fibers.ThreadgroupBarrier(kLocal | kDevice);
              } else if (step.what == 1) {
                s.fibers.SimdFunction(0, kAll);
              } else if (step.what == 2) {
                s.fibers.SimdgroupBarrier(0, kAll, kLocal | kDevice);
              } else if (!long_way) {
                s.Do(step.thread, view, step.offset, size, step.kind, At(2));
              } else {
                s.fibers.SwitchTo(step.thread);
                device::kernel_internal::CheckAccess(
                    view, static_cast<ptrdiff_t>(step.offset), size, step.kind);
                if (step.kind == kWrites) view.data[step.offset] = ++*s.next;
              }
            }
          },
          threadgroups);
    };
    const size_t together = run(false).size();
    found += together != 0;
    ASSERT_EQ(together != 0, !run(true).empty()) << round;
  }
  EXPECT_GT(found, 1000u);
  EXPECT_LT(found, 2000u);
}

// For elements of several words, the fast path must report the same races as
// the slow path.
TEST(DeviceCheckedFibers, WordsOfLargerElements) {
  Runner r;
  for (const size_t size : {4u, 8u, 16u}) {
    EXPECT_EQ(r.Run([=](const Script& s) {
      for (size_t t = 0; t < 8; ++t) {
        s.Do(t, s.buffer, t * size, size, kWrites, At(1));
        s.Do(t, s.buffer, t * size, size, kReads, At(2));
      }
    }),
              kNothing);
    // Thread 1 accesses only the last word of the element of thread 2.
    EXPECT_EQ(r.Run([=](const Script& s) {
                 s.Do(1, s.buffer, 60, 4, kWrites, At(1));
                 s.Do(2, s.buffer, 64 - size, size, kReads, At(2));
               }).size(),
              1u);
    EXPECT_EQ(r.Run([=](const Script& s) {
                 s.Do(1, s.buffer, 60, 4, kReads, At(1));
                 s.Do(2, s.buffer, 64 - size, size, kWrites, At(2));
               }).size(),
              1u);
    EXPECT_EQ(r.findings[0].other.text(), "k.metal:1:1");
    for (const ptrdiff_t offset : {-4, 252, 256}) {
      EXPECT_EQ(r.Run([=](const Script& s) {
                   s.fibers.Access(s.buffer, offset, size, kReads, At(2));
                 }).size(),
                offset == 252 && size == 4 ? 0u : 1u);
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
