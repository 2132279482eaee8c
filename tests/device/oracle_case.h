// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// One dispatch, for a built-in kernel and for the seed's of the same name
// (seed_*.h): both get the same memory, and what they leave there is judged.
// Judges return what is wrong in words, "" if nothing is, so that a test can
// say which of the two is to be found wrong.

#ifndef SWITCHYARD_TESTS_DEVICE_ORACLE_CASE_H_
#define SWITCHYARD_TESTS_DEVICE_ORACLE_CASE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel.h"
#include "testing/guarded_buffer.h"
#include "testing/inputs.h"
#include "tests/device/device_test.h"
#include "tests/target_test.h"

#if !defined(__SANITIZE_ADDRESS__) && defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SWITCHYARD_TESTS_SLOW 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SWITCHYARD_TESTS_SLOW 1
#endif

namespace switchyard {
namespace testing_support {

// All that kernels read and write has 32 bits.
using Words32 = std::vector<uint32_t>;

template <class To, class From>
std::vector<To> Recast(const std::vector<From>& values) {
  static_assert(sizeof(To) == sizeof(From));
  std::vector<To> result(values.size());
  if (!values.empty()) {
    std::memcpy(result.data(), values.data(), values.size() * sizeof(To));
  }
  return result;
}

template <class... Parts>
std::string Text(const Parts&... parts) {
  std::ostringstream text;
  text.precision(9);
  (text << ... << parts);
  return text.str();
}

// For texts: NaN has a sign that no one promises.
inline std::string Number(double value) {
  return std::isnan(value) ? "NaN" : Text(value);
}

struct OracleWork {
  // What is bound at an index. An output that is not read either starts as
  // canaries, or as what a new buffer of a checked device holds.
  struct Memory {
    Words32 words;
    bool written = false;
    bool fresh = false;
  };

  KernelFunction seed;  // its name is the built-in kernel's, too
  size_t threads = 0;   // per threadgroup
  Size grid;            // in threadgroups
  size_t params_index = 0;
  Words32 params;
  size_t threadgroup_memory = 0;
  std::map<size_t, Memory> memory;

  template <class Params>
  void SetParams(size_t index, const Params& p) {
    params_index = index;
    params.resize(sizeof(p) / sizeof(uint32_t));
    std::memcpy(params.data(), &p, sizeof(p));
  }
  template <class T>
  void In(size_t index, const std::vector<T>& values) {
    memory[index] = {Recast<uint32_t>(values), false, false};
  }
  template <class T>
  void InOut(size_t index, const std::vector<T>& values) {
    memory[index] = {Recast<uint32_t>(values), true, false};
  }
  void Out(size_t index, size_t size) {
    memory[index] = {Words32(size, kCanary), true, true};
  }
};

// What a dispatch left.
struct Ran {
  std::string error;
  std::map<size_t, Words32> before, after;

  std::vector<float> Floats(size_t index) const {
    return Recast<float>(after.at(index));
  }
  std::vector<int32_t> Ints(size_t index) const {
    return Recast<int32_t>(after.at(index));
  }
  bool Untouched(size_t index) const {
    return before.at(index) == after.at(index);
  }
};

enum class Who { kBuiltIn, kSeed };

// A device, with a schedule if it is checked.
class OracleDevice {
 public:
  explicit OracleDevice(bool checked = false, uint64_t schedule = 0)
      : checked_(checked) {
    DeviceOptions options;
    if (checked) {
      options.executor =
          std::shared_ptr<Executor>(&SerialExecutor(), [](Executor*) {});
      options.check_kernels = true;
      options.schedule_seed = schedule;
    } else {
      options.executor = MakeExecutor(Pool::kShuffle);
    }
    device_ = CreateDevice(options);
    queue_ = device_->newCommandQueue();
  }

  Ran Run(const OracleWork& work, Who who) {
    Ran ran;
    const std::shared_ptr<ComputePipelineState> pipeline =
        who == Who::kSeed
            ? device_->newComputePipelineState(work.seed, &ran.error)
            : device_->newComputePipelineState(work.seed.name.c_str(),
                                               &ran.error);
    if (pipeline == nullptr) return ran;
    const auto commands = queue_->commandBuffer();
    const auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline);
    std::map<size_t, BufferPtr> buffers;
    for (const auto& [index, memory] : work.memory) {
      buffers[index] = Make(memory);
      ran.before[index] = Read(*buffers[index]);
      encoder->setBuffer(buffers[index], 0, index);
    }
    encoder->setBytes(work.params.data(), work.params.size() * sizeof(uint32_t),
                      work.params_index);
    encoder->setThreadgroupMemoryLength(work.threadgroup_memory, 0);
    encoder->dispatchThreadgroups(work.grid, Size(work.threads, 1, 1));
    encoder->endEncoding();
    commands->commit();
    commands->waitUntilCompleted();
    ran.error = commands->error();
    for (const auto& [index, memory] : work.memory) {
      ran.after[index] = Read(*buffers[index]);
      const ptrdiff_t from = memory.written ? SizeOf(memory) : 0;
      const bool kept =
          std::equal(ran.before[index].begin() + from, ran.before[index].end(),
                     ran.after[index].begin() + from);
      if (!kept && ran.error.empty()) {
        ran.error = Text("buffer ", index, " was written ",
                         memory.written ? "behind its end" : "to");
      }
      ran.before[index].resize(memory.words.size());
      ran.after[index].resize(memory.words.size());
    }
    return ran;
  }

 private:
  // Canaries behind what the kernel is to know of, where only they tell.
  static constexpr size_t kBehind = 5;

  static ptrdiff_t SizeOf(const OracleWork::Memory& memory) {
    return static_cast<ptrdiff_t>(memory.words.size());
  }
  BufferPtr Make(const OracleWork::Memory& memory) {
    Words32 words = memory.words;
    if (checked_ && memory.fresh) return device_->newBuffer(4 * words.size());
    if (!checked_) words.resize(words.size() + kBehind, kCanary);
    return device_->newBuffer(words.data(), 4 * words.size());
  }
  static Words32 Read(const Buffer& buffer) {
    Words32 words(buffer.length() / 4);
    std::memcpy(words.data(), buffer.contents(), buffer.length());
    return words;
  }

  const bool checked_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<CommandQueue> queue_;
};

// "" where |a - b| <= bound, and both are numbers.
inline std::string Apart(const char* name, size_t i, double a, double b,
                         double bound) {
  if (std::fabs(a - b) <= bound) return "";
  return Text(name, "[", i, "] is ", Number(a), ", and ought to be within ",
              bound, " of ", Number(b));
}

// What is wrong with a result, and what keeps two from being equally good.
using Judge = std::function<std::string(const Ran&)>;
using Compare = std::function<std::string(const Ran&, const Ran&)>;

// Where a kernel's order of operations does not depend on the schedule.
inline std::string BitsDiffer(const Ran& a, const Ran& b) {
  for (const auto& [index, words] : a.after) {
    if (b.after.at(index) != words) return Text("buffer ", index, " differs");
  }
  return "";
}

// Seed and built-in kernel in checked mode, in order and in one schedule: it
// has nothing to say of either, and changes no result. Goes first, so that a
// kernel that writes anywhere is named rather than let loose.
inline void ExpectClean(const OracleWork& work, uint64_t schedule,
                        const Judge& judge, const Compare& differs) {
  for (const Who who : {Who::kSeed, Who::kBuiltIn}) {
    SCOPED_TRACE(who == Who::kSeed ? "seed" : "built-in");
    const Ran in_order = OracleDevice(true).Run(work, who);
    ASSERT_EQ(judge(in_order), "");
    const Ran shuffled = OracleDevice(true, schedule).Run(work, who);
    ASSERT_EQ(judge(shuffled), "") << "schedule " << schedule;
    const Ran plain = OracleDevice().Run(work, who);
    ASSERT_EQ(differs(plain, in_order), "");
    ASSERT_EQ(differs(plain, shuffled), "") << "schedule " << schedule;
  }
}

// How many random shapes a test of a kernel takes.
#ifdef SWITCHYARD_TESTS_SLOW
constexpr uint64_t kShapes = 60, kSchedules = 200;
#else
constexpr uint64_t kShapes = 300, kSchedules = 1000;
#endif

// How many schedules: SWITCHYARD_SCHEDULES in the environment, or these; and
// says so.
inline uint64_t Schedules() {
  const char* const text = std::getenv("SWITCHYARD_SCHEDULES");
  const uint64_t count =
      text == nullptr ? kSchedules : std::strtoull(text, nullptr, 10);
  std::printf("%llu schedules\n", static_cast<unsigned long long>(count));
  return count;
}

// The seed in every schedule against the seed in order.
inline void ExpectSameInEverySchedule(const OracleWork& work,
                                      const Judge& judge,
                                      const Compare& differs) {
  SCOPED_TRACE(work.seed.name);
  const Ran in_order = OracleDevice(true).Run(work, Who::kSeed);
  ASSERT_EQ(judge(in_order), "");
  const uint64_t schedules = Schedules();
  for (uint64_t schedule = 1; schedule <= schedules; ++schedule) {
    const Ran ran = OracleDevice(true, schedule).Run(work, Who::kSeed);
    ASSERT_EQ(judge(ran), "") << "schedule " << schedule;
    ASSERT_EQ(differs(in_order, ran), "") << "schedule " << schedule;
  }
}

}  // namespace testing_support
}  // namespace switchyard

#endif  // SWITCHYARD_TESTS_DEVICE_ORACLE_CASE_H_
