// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Plants defects in kernels. Checked mode must find every planted defect,
// name its place, and report nothing for the same kernel without the defect,
// in any order of threads and threadgroups.
//
// This file has the defects that a shader cannot have: those in built-in
// kernels, which access whole buffers, and an index that overflows before it
// becomes an address. All other defects are in metal/planted.metal and
// metal/planted_dispatches.metal.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/tests/checked_kernels.h"
#include "device/tests/finding_queue.h"
#include "device/tests/kernel_cases.h"
#include "gtest/gtest.h"
#include "switchyard/device/kernels.h"

namespace switchyard::testing_support {
namespace {

struct Planted {
  const char* name;
  // The error of the broken kernel in a run without a schedule_seed. The
  // correct kernel has no error.
  std::string error;
  std::function<std::string(CheckedQueue&, bool clean)> run;
  // True if the kernel writes out of bounds when it runs unchecked.
  bool is_dangerous = false;
};

// Encodes the kernel for weighted sums: 2 tokens, 2 experts per token and 32
// columns.
Encode WeightedSum(CheckedQueue& q, const BufferPtr& slots,
                   const BufferPtr& weights, const BufferPtr& out) {
  return [=, &q](Encoder& e) {
    q.DispatchBuiltIn(e, "weighted_sum_batched_f32",
                      WeightedSumBatchedParams{2, 2, 32}, {slots, weights, out},
                      2);
  };
}
// Encodes silu_mul for `rows` rows of 32 columns. The output starts at row
// `first` of `out`.
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
// Encodes silu_mul for one row of `cols` halves. `gate_at` and `out_at` are
// offsets in elements of two bytes.
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
// Encodes a kernel without checked code: checked mode sees only the kernel's
// bindings, not its accesses.
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

// Returns the error for the second of two dispatches that lack a barrier.
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
           // The byte offset of this index overflows to 0.
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
         // The first range ends inside a word, and the second begins inside
         // the same word.
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

// If this test runs alone, it prints the list of defects.
TEST(DeviceChecker, FindsWhatIsPlanted) {
  CheckedQueue queue;
  for (const Planted& planted : All()) {
    const std::string error = planted.run(queue, false);
    std::printf("* %s\n    %s\n", planted.name, error.c_str());
    EXPECT_EQ(error, planted.error) << planted.name;
    EXPECT_EQ(planted.run(queue, true), "") << planted.name;
    // A second run must report the same mistake first.
    EXPECT_EQ(planted.run(queue, false), planted.error) << planted.name;
  }
}

// Checked mode must report a mistake in any order of the threads. The order
// decides which mistake it reports first.
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

// Runs the same kernels unchecked on one thread. Broken kernels run, too, if
// they stay in bounds.
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

// The next tests show that checked mode knows all memory that a built-in
// kernel reads or writes: its buffers and its parameters.

// An index that stands for the parameters, which are not in the list of
// arguments.
constexpr size_t kParams = SIZE_MAX;

// A kernel that reads or writes the element at index `at`.
template <class T>
struct Touch {
  bool write;
  size_t at;
  T value;
  template <class Tg>
  void operator()(Tg& tg) const {
    const auto x = buffer<T>(tg, 0);
    tg.for_each_thread([&](auto) {
      const T was = write ? value : T{x[at]};
      if (write) x[at] = was;
    });
  }
};

// A kernel case whose inputs are all zeros. Each argument is bound one
// element after the start of its buffer, so that arguments with two-byte
// elements begin inside a word.
struct Bound {
  const KernelCase& c;
  CheckedQueue& q;
  std::vector<BufferPtr> args;
  BufferPtr params;

  Bound(const KernelCase& kernel_case, CheckedQueue& queue)
      : c(kernel_case), q(queue), params(q.Make(c.params)) {
    for (const Arg& arg : c.args) {
      const size_t length = arg.Element() + arg.Bytes();
      args.push_back(arg.read ? q.Make(RawBytes(length))
                              : q.device->newBuffer(length));
    }
  }
  BufferPtr At(size_t arg) const { return arg == kParams ? params : args[arg]; }
  size_t Element(size_t arg) const {
    return arg == kParams ? 4 : c.args[arg].Element();
  }
  // Returns the index of a byte's element, counted from the binding's offset.
  size_t IndexOf(size_t arg, size_t byte) const {
    return byte / Element(arg) - (arg == kParams ? 0 : 1);
  }
  size_t Last(size_t arg) const {
    return IndexOf(arg, At(arg)->length() - Element(arg));
  }
  std::string Name(size_t arg) const {
    const size_t index =
        arg == kParams ? c.kernel->params.index : c.args[arg].index;
    return "buffer " + std::to_string(index) + " (" +
           (arg == kParams ? "params" : c.args[arg].name) + ")";
  }

  void Encode(Encoder& e) const {
    e.setComputePipelineState(q.device->newComputePipelineState(c.name()));
    e.setBuffer(params, 0, c.kernel->params.index);
    for (size_t i = 0; i < args.size(); ++i) {
      e.setBuffer(args[i], Element(i), c.args[i].index);
    }
    e.dispatchThreadgroups(c.grid, Size(c.width, 1, 1));
  }
  // Encodes a kernel that reads or writes the last element of an argument,
  // and then the built-in kernel. Returns the error of the built-in kernel.
  std::string After(size_t arg, bool write, bool barrier) const {
    return q.Run(
        [&](Encoder& e) {
          if (Element(arg) == 2) {
            EncodeTouch<uint16_t>(e, arg, write, 0);
          } else {
            EncodeTouch<int32_t>(e, arg, write,
                                 arg == kParams ? c.params.back() : 0);
          }
          if (barrier) e.memoryBarrier(BarrierScopeBuffers);
          Encode(e);
        },
        DispatchTypeConcurrent);
  }
  template <class T>
  void EncodeTouch(Encoder& e, size_t arg, bool write, T value) const {
    const size_t at = At(arg)->length() / sizeof(T) - 1;
    q.Dispatch(e, "other", Touch<T>{write, at, value}, {At(arg)}, 1, 1);
  }
};

class DeviceCheckerBuiltIn : public testing::TestWithParam<KernelCase> {};

TEST_P(DeviceCheckerBuiltIn, RunsClean) {
  CheckedQueue q;
  const Bound bound(GetParam(), q);
  EXPECT_EQ(q.Run([&](Encoder& e) { bound.Encode(e); }), "");
}

TEST_P(DeviceCheckerBuiltIn, ReadsAfterWrites) {
  CheckedQueue q;
  const KernelCase& c = GetParam();
  for (size_t i = 0; i <= c.args.size(); ++i) {
    const size_t arg = i == c.args.size() ? kParams : i;
    if (arg != kParams && !c.args[arg].read) continue;
    const Bound bound(c, q);
    const size_t last = bound.Last(arg);
    EXPECT_EQ(bound.After(arg, true, false),
              std::string(c.name()) + ": reads " + bound.Name(arg) + "[" +
                  std::to_string(last) +
                  "], which dispatch 0 (other) wrote: memoryBarrier is missing "
                  "between it and dispatch 1");
    EXPECT_EQ(bound.After(arg, true, true), "") << bound.Name(arg);
  }
}

TEST_P(DeviceCheckerBuiltIn, WritesAfterReads) {
  CheckedQueue q;
  const KernelCase& c = GetParam();
  for (size_t arg = 0; arg < c.args.size(); ++arg) {
    const Bound bound(c, q);
    // This memory must be written, because After() first runs a kernel that
    // reads it.
    std::memset(bound.At(arg)->contents(), 0, bound.At(arg)->length());
    const size_t last = bound.Last(arg);
    EXPECT_EQ(bound.After(arg, false, false),
              c.args[arg].written
                  ? std::string(c.name()) + ": writes " + bound.Name(arg) +
                        "[" + std::to_string(last) +
                        "], which dispatch 0 (other) read: memoryBarrier is "
                        "missing between it and dispatch 1"
                  : "");
    EXPECT_EQ(bound.After(arg, false, true), "") << bound.Name(arg);
  }
}

TEST_P(DeviceCheckerBuiltIn, NeverWritten) {
  CheckedQueue q;
  const KernelCase& c = GetParam();
  for (size_t i = 0; i <= c.args.size(); ++i) {
    const size_t arg = i == c.args.size() ? kParams : i;
    if (arg != kParams && !c.args[arg].read) continue;
    Bound bound(c, q);
    const BufferPtr fresh = q.device->newBuffer(bound.At(arg)->length());
    // All words but the last are written. The finding must name the first
    // element of the last word.
    const size_t words = arg == kParams ? 0 : (fresh->length() + 3) / 4 - 1;
    const size_t last = bound.IndexOf(arg, 4 * words);
    std::memset(fresh->contents(), 0, 4 * words);
    (arg == kParams ? bound.params : bound.args[arg]) = fresh;
    EXPECT_EQ(q.Run([&](Encoder& e) { bound.Encode(e); }),
              std::string(c.name()) + ": reads " + bound.Name(arg) + "[" +
                  std::to_string(last) +
                  "], which nothing has written since newBuffer()");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, DeviceCheckerBuiltIn,
                         testing::ValuesIn(KernelCases()), KernelName);

// The next tests are about memory that nothing has written: reads of it, and
// words that a run leaves unwritten.

// The test writes parts of words in threadgroup memory. A read of bytes
// beside the written bytes must be a finding.
TEST(DeviceNeverWritten, Parts) {
  FindingQueue q;
  // Thread 0 writes the parts in order. After a barrier, thread 1 reads one
  // part.
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
      // This read has no finding, because the unwritten byte may be padding.
      {{{4, 2}, {7, 1}}, {4, 4}, false},
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
  // Bytes that another threadgroup has written do not count as written.
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
  // Bytes that another dispatch of this run has written count as written.
  q.Find([&](Encoder& e) {
    q.Dispatch(e, "some", some, {words, halves}, 1, 16);
    q.Dispatch(e, "fill", kFill, {words}, 1, 16);
  });
  ASSERT_EQ(q.last->neverWritten().size(), 2u);
  EXPECT_EQ(RangesOf(q.last->neverWritten()[0]), "some 0 buffer 0 of 70: 64+6");
  // Bytes that an earlier run has written do not count as written.
  q.Find("some", some, {words, halves}, 1, 16);
  ASSERT_EQ(q.last->neverWritten().size(), 2u);
  EXPECT_EQ(RangesOf(q.last->neverWritten()[0]),
            "some 0 buffer 0 of 70: 12+4 32+38");
  // A kernel without checked code counts as one that writes all bytes of its
  // bindings.
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
