// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The defects of metal/planted*.metal: each is found on its line, and nothing
// of the clean twins, in any order of threads and threadgroups. checker_test.cc
// has those that cannot be written as a shader.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/findings.h"
#include "switchyard/device/kernels.h"
#include "tests/device/checked_kernels.h"
#include "tests/device/metal_text.h"

namespace switchyard::testing_support {
namespace {

#ifdef SWITCHYARD_SANITIZED
constexpr uint64_t kSchedules = 20;
#else
constexpr uint64_t kSchedules = 1000;
#endif

// The functions of a text, with and without `clean`.
class Functions {
 public:
  Functions(const std::shared_ptr<Device>& device, const char* file)
      : texts_(device), file_(file) {}

  std::shared_ptr<Function> Get(const std::string& name, bool clean) {
    auto& function = functions_[{name, clean}];
    if (function != nullptr) return function;
    const auto library = texts_.Get(file_);
    if (library == nullptr) return nullptr;
    FunctionConstantValues constants;
    constants.setConstantValue(&clean, DataTypeBool, size_t{0});
    std::string error;
    function = library->newFunction(name.c_str(), constants, &error);
    EXPECT_NE(function, nullptr) << name << ": " << error;
    return function;
  }

 private:
  MetalTexts texts_;
  const std::string file_;
  std::map<std::pair<std::string, bool>, std::shared_ptr<Function>> functions_;
};

struct PlantedText {
  const char* what;
  const char* kernel;  // that the marker is in
  std::function<void(Encoder&, CheckedQueue&, Functions&, bool clean)> encode;
  DispatchType type = DispatchTypeSerial;
};

void SetText(Encoder& e, CheckedQueue& q, Functions& functions,
             const char* kernel, bool clean,
             const std::vector<BufferPtr>& buffers) {
  e.setComputePipelineState(
      q.device->newComputePipelineState(functions.Get(kernel, clean)));
  CheckedQueue::SetBuffers(e, buffers);
}

PlantedText Of(
    const char* what, const char* kernel, size_t threadgroups, size_t threads,
    const std::function<std::vector<BufferPtr>(CheckedQueue&, bool)>& buffers) {
  return {
      what, kernel, [=](Encoder& e, CheckedQueue& q, Functions& f, bool clean) {
        SetText(e, q, f, kernel, clean, buffers(q, clean));
        e.setThreadgroupMemoryLength(threads < 64 ? 128 : 4096, 0);
        e.dispatchThreadgroups(Size(threadgroups, 1, 1), Size(threads, 1, 1));
      }};
}
// Over `count` floats each.
PlantedText Of(const char* what, const char* kernel, size_t threadgroups,
               size_t threads, size_t count) {
  return Of(what, kernel, threadgroups, threads, [=](CheckedQueue& q, bool) {
    return std::vector<BufferPtr>{q.Floats(count), q.Floats(count)};
  });
}
// Three threadgroups over ints.
PlantedText OfGroups(const char* what, const char* kernel) {
  return Of(what, kernel, 3, 32, [](CheckedQueue& q, bool) {
    return std::vector<BufferPtr>{q.Make(std::vector<int32_t>(96, 1)),
                                  q.Floats(96)};
  });
}

std::vector<PlantedText> Planted() {
  return {
      Of("an element of which only a part is bound", "words", 1, 1,
         [](CheckedQueue& q, bool) {
           return std::vector<BufferPtr>{q.Make(std::vector<char>(381)),
                                         q.Floats(1)};
         }),
      Of("a half of a word of threadgroup memory that no thread has written",
         "gather_halves", 1, 32, 96),
      Of("a tree reduction over a group size that is not a power of two",
         "tree", 1, 24, 96),
      Of("parameters in a fresh buffer", "params", 1, 1,
         [](CheckedQueue& q, bool clean) {
           const auto p = q.device->newBuffer(8);
           if (clean) *static_cast<uint32_t*>(p->contents()) = 7;
           return std::vector<BufferPtr>{p, q.Floats(1)};
         }),
      Of("two threads write one byte", "bytes", 1, 64, 1024),
      Of("half of a word is read, and the other one written since", "halves", 1,
         64, 1024),
      Of("no barrier between the write of a word and the read of its half",
         "halves_then_words", 1, 64, 1024),
      OfGroups("a threadgroup overwrites what all have read", "scale"),
      OfGroups("a threadgroup overwrites two words that all have read",
               "scale_words"),
  };
}

// Encodes two dispatches, with a memoryBarrier or without.
using EncodeTexts = std::function<void(Encoder&, CheckedQueue&, Functions&)>;
EncodeTexts Text(const char* kernel, const std::vector<BufferPtr>& buffers,
                 size_t threadgroups, size_t threads) {
  return [=](Encoder& e, CheckedQueue& q, Functions& f) {
    SetText(e, q, f, kernel, true, buffers);
    e.dispatchThreadgroups(Size(threadgroups, 1, 1), Size(threads, 1, 1));
  };
}
// A weighted sum of 2 tokens with 2 experts' rows of 32 columns.
EncodeTexts WeightedSum(const BufferPtr& slots, const BufferPtr& weights,
                        const BufferPtr& out) {
  return [=](Encoder& e, CheckedQueue& q, Functions&) {
    q.DispatchBuiltIn(e, "weighted_sum_batched_f32",
                      WeightedSumBatchedParams{2, 2, 32}, {slots, weights, out},
                      2);
  };
}

// The buffers x, y and z are the dispatches'.
struct Between {
  const char* what;
  const char* kernel;  // "": a built-in one, which has no line
  std::function<EncodeTexts(const std::vector<BufferPtr>&)> first, second;
  // The barriers of the clean run, and of the broken one: resources of a
  // memoryBarrier, empty for none, {-1} for all.
  std::vector<int> clean, broken;
};

std::vector<Between> PlantedBetween() {
  using Buffers = std::vector<BufferPtr>;
  const auto fill = [](const Buffers& b) {
    return Text("fill", {b[0]}, 2, 32);
  };
  const auto copy = [](const Buffers& b) {
    return Text("copy", {b[0], b[1]}, 2, 32);
  };
  return {
      {"read after write, user and user", "copy", fill, copy, {-1}, {}},
      {"write after read, user and user", "fill", copy, fill, {-1}, {}},
      {"write after write, user and user", "fill", fill, fill, {-1}, {}},
      {"the same memory behind two buffers",
       "copy",
       [](const Buffers& b) { return Text("fill", {b[2]}, 2, 32); },
       [](const Buffers& b) {
         return Text("copy", {b[3], b[1]}, 1, 32);
       },
       {-1},
       {}},
      {"read after write, user and built-in",
       "",
       [](const Buffers& b) { return Text("fill", {b[0]}, 4, 32); },
       [](const Buffers& b) { return WeightedSum(b[0], b[1], b[4]); },
       {-1},
       {}},
      {"write after read, built-in and user",
       "fill",
       [](const Buffers& b) { return WeightedSum(b[0], b[1], b[4]); },
       [](const Buffers& b) { return Text("fill", {b[1]}, 1, 4); },
       {-1},
       {}},
      {"parameters that may not be written yet",
       "reader",
       [](const Buffers& b) { return Text("ones", {b[0]}, 1, 3); },
       [](const Buffers& b) {
         return Text("reader", {b[0], b[1]}, 1, 1);
       },
       {-1},
       {}},
      {"a barrier for another buffer", "copy", fill, copy, {0}, {1}},
      {"a barrier for another buffer, write after read",
       "fill",
       copy,
       fill,
       {1, 0},
       {1, 1}},
      {"indirect arguments that may not be written yet",
       "",
       [](const Buffers& b) { return Text("ones", {b[0]}, 1, 3); },
       [](const Buffers& b) -> EncodeTexts {
         return [=](Encoder& e, CheckedQueue& q, Functions& f) {
           SetText(e, q, f, "copy", true, {b[1], b[4]});
           e.dispatchThreadgroups(b[0], 0, Size(32, 1, 1));
         };
       },
       {-1},
       {}},
  };
}

class MetalPlanted : public testing::Test {
 protected:
  void SetUp() override { SWITCHYARD_NEEDS_CLANG(); }

  static bool Marked(const std::vector<Finding>& findings,
                     const std::vector<MetalMarker>& markers,
                     const std::string& kernel) {
    for (const Finding& finding : findings) {
      if (kernel.empty() && !finding.where.known()) return true;
      for (const MetalMarker& marker : markers) {
        if (marker.kernel == kernel && finding.where.line == marker.line &&
            marker.kinds.find(NameOf(finding.kind)) != std::string::npos) {
          return true;
        }
      }
    }
    return false;
  }
  static std::vector<Finding> Run(CheckedQueue& q, const Encode& encode,
                                  DispatchType type) {
    const auto commands = Encoded(*q.queue, encode, type);
    commands->commit();
    commands->waitUntilCompleted();
    return commands->findings();
  }
  static std::string Texts(const std::vector<Finding>& findings) {
    std::string text;
    for (const Finding& f : findings) {
      text += "\n    " + f.where.text() + ": " + NameOf(f.kind) + ": " + f.text;
    }
    return text;
  }
  static uint64_t Schedules() {
    const char* const text = std::getenv("SWITCHYARD_SCHEDULES");
    return text == nullptr ? kSchedules : std::strtoull(text, nullptr, 10);
  }
};

// Run it alone to have the list.
TEST_F(MetalPlanted, IsFoundInEverySchedule) {
  Functions functions(NewDevice(false, {true, 0}), "planted");
  const auto markers = MarkersOf(TextOfFile(MetalPath("planted")));
  const uint64_t schedules = Schedules();
  for (const PlantedText& planted : Planted()) {
    for (uint64_t schedule = 0; schedule <= schedules; ++schedule) {
      CheckedQueue queue(schedule);
      const auto run = [&](bool clean) {
        return Run(
            queue,
            [&](Encoder& e) { planted.encode(e, queue, functions, clean); },
            planted.type);
      };
      const std::vector<Finding> findings = run(false);
      if (schedule == 0) {
        std::printf("* %s%s\n", planted.what, Texts(findings).c_str());
      }
      ASSERT_TRUE(Marked(findings, markers, planted.kernel))
          << planted.what << ", schedule " << schedule << Texts(findings);
      ASSERT_EQ(Texts(run(true)), "")
          << planted.what << ", clean, schedule " << schedule;
    }
  }
}

TEST_F(MetalPlanted, BetweenDispatchesIsFoundInEverySchedule) {
  Functions functions(NewDevice(false, {true, 0}), "planted_dispatches");
  const auto markers = MarkersOf(TextOfFile(MetalPath("planted_dispatches")));
  const uint64_t schedules = Schedules();
  for (const Between& planted : PlantedBetween()) {
    for (uint64_t schedule = 0; schedule <= schedules; ++schedule) {
      CheckedQueue q(schedule);
      std::vector<float> memory(64);
      const auto run = [&](bool clean) {
        const std::vector<BufferPtr> b = {
            q.Floats(128), q.Floats(128),
            q.device->newBufferWithBytesNoCopy(memory.data(), 256),
            q.device->newBufferWithBytesNoCopy(memory.data() + 32, 128),
            q.Floats(128)};
        return Run(
            q,
            [&](Encoder& e) {
              planted.first(b)(e, q, functions);
              std::vector<BufferPtr> resources;
              for (const int i : clean ? planted.clean : planted.broken) {
                if (i < 0) {
                  e.memoryBarrier(BarrierScopeBuffers);
                } else {
                  resources.push_back(b[static_cast<size_t>(i)]);
                }
              }
              if (!resources.empty()) {
                e.memoryBarrier(resources.data(), resources.size());
              }
              planted.second(b)(e, q, functions);
            },
            DispatchTypeConcurrent);
      };
      const std::vector<Finding> findings = run(false);
      if (schedule == 0) {
        std::printf("* %s%s\n", planted.what, Texts(findings).c_str());
      }
      ASSERT_TRUE(Marked(findings, markers, planted.kernel))
          << planted.what << ", schedule " << schedule << Texts(findings);
      ASSERT_EQ(Texts(run(true)), "")
          << planted.what << ", clean, schedule " << schedule;
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
