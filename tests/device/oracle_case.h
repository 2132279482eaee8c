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

namespace switchyard::testing_support {

using Words32 = std::vector<uint32_t>;

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

// The results of a dispatch.
struct Ran {
  std::string error;
  std::vector<Finding> findings;  // of a checked run
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

// The error in a result, and the reason why two are not equally good.
using Judge = std::function<std::string(const Ran&)>;
using Compare = std::function<std::string(const Ran&, const Ran&)>;

// Compares bits, for kernels whose order of operations does not depend on the
// schedule.
inline std::string BitsDiffer(const Ran& a, const Ran& b) {
  for (const auto& [index, words] : a.after) {
    if (b.after.at(index) != words) return Text("buffer ", index, " differs");
  }
  return "";
}

struct OracleWork {
  // The binding at an index. An output that is not read either starts as
  // canaries, or as what a new buffer of a checked device holds.
  struct Memory {
    Words32 words;
    bool written = false;
    bool fresh = false;
  };

  std::string shape;          // for texts
  Judge wrong;                // of either kernel
  Compare differ;             // of both
  bool in_any_order = false;  // the schedule shows in the results
  KernelFunction seed;        // its name is the built-in kernel's, too
  size_t threads = 0;         // per threadgroup
  Size grid;                  // in threadgroups
  size_t params_index = 0;
  Words32 params;
  size_t threadgroup_memory = 0;
  std::map<size_t, Memory> memory;

  // Compares one kernel in two schedules.
  std::string DifferByOrder(const Ran& a, const Ran& b) const {
    return in_any_order ? differ(a, b) : BitsDiffer(a, b);
  }
  // Adds the parameters of both.
  template <class Seed, class Params>
  void SetSeed(const char* name, const Seed& kernel, size_t params_at,
               const Params& p) {
    seed = MakeKernel(name, kernel);
    params_index = params_at;
    params = Words(std::vector<Params>{p});
  }
  template <class T>
  void In(size_t index, const std::vector<T>& values) {
    memory[index] = {Words(values), false, false};
  }
  template <class T>
  void InOut(size_t index, const std::vector<T>& values) {
    memory[index] = {Words(values), true, false};
  }
  void Out(size_t index, size_t size) {
    memory[index] = {Words32(size, kCanary), true, true};
  }
};

// The built-in kernel, the seed's in C++, or the seed's own text
// (seed_texts.h).
enum class Who { kBuiltIn, kSeed, kText };

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

  // The function of a kText, by its name.
  using Texts = std::function<std::shared_ptr<Function>(const std::string&)>;
  void SetTexts(Texts texts) { texts_ = std::move(texts); }

  Ran Run(const OracleWork& work, Who who) {
    Ran ran;
    const std::shared_ptr<ComputePipelineState> pipeline =
        Pipeline(work, who, &ran.error);
    if (pipeline == nullptr) return ran;
    const auto commands = queue_->commandBuffer();
    const auto encoder = commands->computeCommandEncoder();
    encoder->setComputePipelineState(pipeline);
    std::map<size_t, BufferPtr> buffers;
    for (const auto& [index, memory] : work.memory) {
      buffers[index] = Make(memory);
      ran.before[index] = Contents<uint32_t>(buffers[index]);
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
    ran.findings = commands->findings();
    for (const auto& [index, memory] : work.memory) {
      ran.after[index] = Contents<uint32_t>(buffers[index]);
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

  // Both right, and alike.
  void ExpectAlike(const OracleWork& work) {
    const Ran built_in = Run(work, Who::kBuiltIn), seed = Run(work, Who::kSeed);
    ASSERT_EQ(work.wrong(built_in), "") << "built-in, " << work.shape;
    ASSERT_EQ(work.wrong(seed), "") << "seed, " << work.shape;
    ASSERT_EQ(work.differ(built_in, seed), "") << work.shape;
  }
  std::string Wrong(const OracleWork& work, Who who) {
    return work.wrong(Run(work, who));
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
    return NewBuffer(*device_, words);
  }

  std::shared_ptr<ComputePipelineState> Pipeline(const OracleWork& work,
                                                 Who who, std::string* error) {
    switch (who) {
      case Who::kBuiltIn:
        return device_->newComputePipelineState(work.seed.name.c_str(), error);
      case Who::kSeed:
        return device_->newComputePipelineState(work.seed, error);
      case Who::kText:
        return device_->newComputePipelineState(texts_(work.seed.name), error);
    }
    return nullptr;
  }

  const bool checked_;
  Texts texts_;
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

// A kernel's i-th random case, and the one that is run in every schedule.
struct OracleKernel {
  std::function<OracleWork(uint64_t i)> random;
  std::function<OracleWork()> fixed;

  std::string Name() const { return fixed().seed.name; }
};

// Each oracle_<stem>.cc adds its kernels while the program starts.
inline std::vector<OracleKernel>& OracleKernels() {
  static std::vector<OracleKernel> kernels;
  return kernels;
}
template <class Kernels, class Random, class Fixed>
bool AddOracles(const Kernels& kernels, const Random& random,
                const Fixed& fixed) {
  for (const auto kernel : kernels) {
    OracleKernels().push_back({[=](uint64_t i) { return random(kernel, i); },
                               [=] { return fixed(kernel); }});
  }
  return true;
}

class OracleTest : public IsaTest {
 protected:
  OracleDevice device_;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_DEVICE_ORACLE_CASE_H_
