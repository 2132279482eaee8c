// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the planted defects of metal/ in checked mode, and prints the score.
// Checked mode must find each defect on its line, in any order of threads and
// threadgroups, and nothing in the correct kernels. Defects that a shader
// cannot have are in checker_test.cc.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "device/tests/checked_kernels.h"
#include "device/tests/metal_text.h"
#include "gtest/gtest.h"
#include "switchyard/device/findings.h"
#include "switchyard/device/kernels.h"

namespace switchyard::testing_support {
namespace {

// Each kernel of kCorpus and of planted.metal is a pair. If kDefect, its
// function constant 0, is true, checked mode must find the marked kinds on
// the marked line. If kDefect is false, it must find nothing.
//
//   // FINDS: KINDS          on the line of an access or call of the kernel
//   // FINDS: KINDS in NAME  in a helper of the kernel NAME
//
// KINDS are names of FindingKind. Both lines of a race are marked, because
// the schedule decides which one comes second. Lines before the kernel give
// more details:
//
//   // RUN: groups=3 threads=8x8 buffer2=64 fresh3=64 threadgroup=512
//   // MISSED: WHY      checked mode does not find it
//   // ERROR: TEXT      the binding is wrong, and no access is reported
//   // SOMETIMES: WHEN  it is found in some schedules only
//
// One threadgroup of 64 threads runs, unless RUN says otherwise. Every kernel
// gets 256 floats from 1 to 7 in mixed order at buffer 0, and 256 floats 0, 1,
// 2, ... at buffer 1. The words of RUN:
// * `buffer2=64` binds 64 floats 0, 1, 2, ... at buffer 2.
// * `fresh` memory comes from newBuffer() and is not written.
// * `bytes` counts bytes instead of floats.
// * `threadgroup` is the length of threadgroup memory 0 in bytes.
// A value A/B is A with the defect and B without it. A length of 0 binds no
// buffer.
constexpr const char* kCorpus[] = {
    "races_threadgroup", "races_device",     "races_simdgroup", "races_atomics",
    "races_barriers",    "races_algorithms", "errors_memory",   "races_public"};

struct MetalPair {
  std::string file, name;
  std::string run, missed, error, sometimes;
  std::map<size_t, std::string> marks;  // the marked lines, with their KINDS
};

std::vector<MetalPair> PairsOf(const std::string& file) {
  const std::string declared = "kernel void ",
                    finds = "// FINDS: ", elsewhere = " in ";
  const std::pair<std::string, std::string MetalPair::*> words[] = {
      {"// RUN: ", &MetalPair::run},
      {"// MISSED: ", &MetalPair::missed},
      {"// ERROR: ", &MetalPair::error},
      {"// SOMETIMES: ", &MetalPair::sometimes}};
  std::vector<MetalPair> pairs;
  MetalPair next;
  // The marks of each kernel.
  std::map<std::string, std::map<size_t, std::string>> marks;
  std::istringstream lines(TextOfFile(MetalPath(file)));
  std::string line, kernel;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    for (const auto& [word, text] : words) {
      if (line.rfind(word, 0) == 0) next.*text = line.substr(word.size());
    }
    if (line.rfind(declared, 0) == 0) {
      const size_t from = declared.size();
      next.file = file;
      next.name = kernel = line.substr(from, line.find('(') - from);
      pairs.push_back(next);
      next = {};
    }
    const size_t at = line.find(finds);
    if (at == std::string::npos) continue;
    const std::string kinds = line.substr(at + finds.size());
    const size_t in = kinds.find(elsewhere);
    const bool is_helper = in != std::string::npos;
    marks[is_helper ? kinds.substr(in + elsewhere.size()) : kernel][number] =
        kinds.substr(0, in);
  }
  for (MetalPair& pair : pairs) pair.marks = marks[pair.name];
  return pairs;
}

// True if the finding's line is marked. With `of_kind`, the mark must also
// have the finding's kind. Findings name files below the working folder by
// relative paths.
bool IsMarked(const Finding& finding, const MetalPair& pair, bool of_kind) {
  const std::string& path = finding.where.file;
  const std::string ending = "/" + pair.file + ".metal";
  const auto mark = pair.marks.find(finding.where.line);
  return mark != pair.marks.end() && path.size() > ending.size() &&
         path.compare(path.size() - ending.size(), path.npos, ending) == 0 &&
         (!of_kind ||
          mark->second.find(NameOf(finding.kind)) != std::string::npos);
}
bool IsAnyMarked(const std::vector<Finding>& findings, const MetalPair& pair) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& f) { return IsMarked(f, pair, true); });
}

// Schedule 0 runs in order; schedules 1, 2, ... are shuffled.
#ifdef SWITCHYARD_SANITIZED
constexpr uint64_t kCorpusSchedules = 3, kPlantedSchedules = 20;
#else
constexpr uint64_t kCorpusSchedules = 20, kPlantedSchedules = 1000;
#endif
uint64_t PlantedSchedules() {
  const char* const text = std::getenv("SWITCHYARD_SCHEDULES");
  return text == nullptr ? kPlantedSchedules : std::strtoull(text, nullptr, 10);
}

std::vector<float> Counting(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>(i);
  return v;
}
std::vector<float> OneToSeven(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>(1 + 5 * i % 7);
  return v;
}

// The result of a run in checked mode: the findings and the error.
struct Said {
  std::vector<Finding> findings;
  std::string error;

  std::string text() const {
    if (findings.empty()) return error;
    const Finding& f = findings[0];
    return f.where.text() + ": " + NameOf(f.kind) + ": " + f.text;
  }
};
Said SaidOf(CommandQueue& queue, const Encode& encode,
            DispatchType type = DispatchTypeSerial) {
  const auto commands = Encoded(queue, encode, type);
  commands->commit();
  commands->waitUntilCompleted();
  return {commands->findings(), commands->error()};
}

// The fixture compiles the functions of each file only once.
class MetalPlanted : public testing::Test {
 protected:
  void SetUp() override { SWITCHYARD_NEEDS_CLANG(); }

  std::shared_ptr<Function> Get(const std::string& file,
                                const std::string& kernel, bool defect) {
    auto& function = functions_[{file, kernel, defect}];
    if (function == nullptr) {
      FunctionConstantValues values;
      values.setConstantValue(&defect, DataTypeBool, size_t{0});
      function = texts_.Get(file, kernel, &values);
    }
    return function;
  }

  Said RunPair(Device& device, const MetalPair& pair, bool defect) {
    std::string error;
    const auto pipeline = device.newComputePipelineState(
        Get(pair.file, pair.name, defect), &error);
    EXPECT_NE(pipeline, nullptr) << error;
    if (pipeline == nullptr) return {};
    return SaidOf(*device.newCommandQueue(), [&](Encoder& e) {
      e.setComputePipelineState(pipeline);
      e.setBuffer(NewBuffer(device, OneToSeven(256)), 0, 0);
      e.setBuffer(NewBuffer(device, Counting(256)), 0, 1);
      Size groups(1, 1, 1), threads(64, 1, 1);
      std::istringstream words(pair.run);
      for (std::string word; words >> word;) {
        const size_t equals = word.find('='), slash = word.find('/');
        const bool second = !defect && slash != std::string::npos;
        char* end = &word[(second ? slash : equals) + 1];
        const size_t n = std::strtoul(end, &end, 10);
        const size_t rows = *end == 'x' ? std::strtoul(end + 1, &end, 10) : 1;
        const auto index = static_cast<size_t>(word[equals - 1] - '0');
        const std::string what = word.substr(0, equals);
        if (what == "groups") {
          groups = Size(n, rows, 1);
        } else if (what == "threads") {
          threads = Size(n, rows, 1);
        } else if (what == "threadgroup") {
          e.setThreadgroupMemoryLength(n, 0);
        } else if (what.rfind("buffer", 0) == 0) {
          if (n != 0) e.setBuffer(NewBuffer(device, Counting(n)), 0, index);
        } else if (what.rfind("fresh", 0) == 0) {
          if (n != 0) e.setBuffer(device.newBuffer(4 * n), 0, index);
        } else if (what.rfind("bytes", 0) == 0) {
          e.setBuffer(NewBuffer(device, std::vector<char>(n)), 0, index);
        } else {
          ADD_FAILURE() << pair.name << ": " << pair.run;
        }
      }
      e.dispatchThreadgroups(groups, threads);
    });
  }

  // Counts of pairs. The exception is `kernels`, which counts both kernels of
  // each pair.
  struct Score {
    size_t kernels = 0, found = 0, missed = 0, alarms = 0;
  };
  Score ScoreOf(const std::vector<std::string>& files, uint64_t schedules) {
    std::vector<MetalPair> pairs;
    for (const std::string& file : files) {
      for (const MetalPair& pair : PairsOf(file)) pairs.push_back(pair);
    }
    Score score;
    // How often each defect was found.
    std::map<std::string, uint64_t> times;
    for (uint64_t schedule = 0; schedule <= schedules; ++schedule) {
      const auto device = NewDevice(false, {true, schedule});
      for (const MetalPair& pair : pairs) {
        EXPECT_FALSE(pair.marks.empty()) << pair.name;
        SCOPED_TRACE(pair.name + ", schedule " + std::to_string(schedule));
        const Said said = RunPair(*device, pair, true);
        const bool is_found =
            pair.error.empty()
                ? IsAnyMarked(said.findings, pair)
                : said.error.find(pair.error) != std::string::npos;
        times[pair.name] += is_found;
        if (schedule == 0) {
          std::printf("%s %s\n    %s\n", is_found ? "*" : "-",
                      pair.name.c_str(), said.text().c_str());
        }
        EXPECT_EQ(said.error.empty(),
                  said.findings.empty() && pair.error.empty())
            << said.error;
        EXPECT_TRUE(is_found || !pair.missed.empty() || !pair.sometimes.empty())
            << said.text();
        for (const Finding& f : said.findings) {
          EXPECT_TRUE(IsMarked(f, pair, false)) << f.where.text() << f.text;
        }
        const Said of_clean = RunPair(*device, pair, false);
        score.alarms += !of_clean.error.empty();
        EXPECT_EQ(of_clean.text(), "");
      }
      if (HasFailure()) return score;
    }
    for (const MetalPair& pair : pairs) {
      const uint64_t n = times[pair.name];
      score.kernels += 2;
      ++(n != 0 ? score.found : score.missed);
      // A defect that is marked MISSED must not be found, and any other
      // defect must be found.
      EXPECT_EQ(n == 0, !pair.missed.empty()) << pair.name;
      if (n == schedules + 1) continue;
      std::printf("%s: found in %llu of %llu schedules: %s\n",
                  pair.name.c_str(), static_cast<unsigned long long>(n),
                  static_cast<unsigned long long>(schedules + 1),
                  (pair.missed + pair.sometimes).c_str());
    }
    std::printf(
        "%zu kernels in %llu schedules: %zu defects found, %zu missed, %zu "
        "false alarms\n",
        score.kernels, static_cast<unsigned long long>(schedules + 1),
        score.found, score.missed, score.alarms);
    EXPECT_EQ(score.alarms, 0u);
    return score;
  }

  MetalTexts texts_{NewDevice(false, {true, 0})};

 private:
  std::map<std::tuple<std::string, std::string, bool>,
           std::shared_ptr<Function>>
      functions_;
};

// If this test runs alone, it prints the list of defects.
TEST_F(MetalPlanted, Corpus) {
  const Score score =
      ScoreOf({std::begin(kCorpus), std::end(kCorpus)}, kCorpusSchedules);
  EXPECT_EQ(score.missed, 3u);
  EXPECT_GE(score.kernels, 160u);
}

// The defects of planted.metal are found in every schedule.
TEST_F(MetalPlanted, IsFoundInEverySchedule) {
  const Score score = ScoreOf({"planted"}, PlantedSchedules());
  EXPECT_EQ(score.missed, 0u);
  EXPECT_GE(score.kernels, 18u);
}

// Checks that the files contain no kernel that is not a pair.
TEST_F(MetalPlanted, IsAllOfTheTexts) {
  for (const char* const file : kCorpus) {
    const auto library = texts_.Get(file);
    ASSERT_NE(library, nullptr);
    EXPECT_EQ(library->functionNames().size(), PairsOf(file).size()) << file;
  }
}

// A dispatch of a kernel in planted_dispatches.metal, or of a built-in
// kernel, over some of the test's buffers. If `threadgroups` is 0, the
// dispatch reads its grid from buffer 0.
struct TextDispatch {
  const char* kernel;
  std::vector<size_t> buffers;
  size_t threadgroups, threads;
};

struct Between {
  const char* what;
  const char* kernel;  // "": a built-in kernel, which has no line
  TextDispatch first, second;
  // The barriers between the two dispatches, in the correct run and in the
  // broken run. The list holds the buffers of a memoryBarrier. An empty list
  // means no barrier, and {-1} means a barrier for all buffers.
  std::vector<int> clean, broken;
};

std::vector<Between> PlantedBetween() {
  const TextDispatch fill = {"fill", {0}, 2, 32},
                     copy = {"copy", {0, 1}, 2, 32}, ones = {"ones", {0}, 1, 3},
                     sum = {"weighted_sum_batched_f32", {0, 1, 4}, 2, 256};
  return {
      {"read after write, user and user", "copy", fill, copy, {-1}, {}},
      {"write after read, user and user", "fill", copy, fill, {-1}, {}},
      {"write after write, user and user", "fill", fill, fill, {-1}, {}},
      {"write after read, in a public project",
       "scale_in_place",
       {"column_sums", {0, 1}, 2, 32},
       {"scale_in_place", {0, 4}, 8, 32},
       {-1},
       {}},
      {"the same memory behind two buffers",
       "copy",
       {"fill", {2}, 2, 32},
       {"copy", {3, 1}, 1, 32},
       {-1},
       {}},
      {"read after write, user and built-in",
       "",
       {"fill", {0}, 4, 32},
       sum,
       {-1},
       {}},
      {"write after read, built-in and user",
       "fill",
       sum,
       {"fill", {1}, 1, 4},
       {-1},
       {}},
      {"parameters that may not be written yet",
       "reader",
       ones,
       {"reader", {0, 1}, 1, 1},
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
       ones,
       {"copy", {1, 4}, 0, 32},
       {-1},
       {}},
  };
}

TEST_F(MetalPlanted, BetweenDispatchesIsFoundInEverySchedule) {
  std::map<std::string, MetalPair> kernels;
  for (const MetalPair& kernel : PairsOf("planted_dispatches")) {
    kernels[kernel.name] = kernel;
  }
  const uint64_t schedules = PlantedSchedules();
  for (const Between& planted : PlantedBetween()) {
    for (uint64_t schedule = 0; schedule <= schedules; ++schedule) {
      SCOPED_TRACE(planted.what + std::string(", schedule ") +
                   std::to_string(schedule));
      CheckedQueue q(schedule);
      std::vector<float> memory(64);
      const BufferPtr buffers[] = {
          q.Floats(256), q.Floats(128),
          q.device->newBufferWithBytesNoCopy(memory.data(), 256),
          q.device->newBufferWithBytesNoCopy(memory.data() + 32, 128),
          q.Floats(128)};
      const auto encode = [&](Encoder& e, const TextDispatch& dispatch) {
        std::vector<BufferPtr> bound;
        for (const size_t i : dispatch.buffers) bound.push_back(buffers[i]);
        if (kernels.count(dispatch.kernel) == 0) {
          q.DispatchBuiltIn(e, dispatch.kernel,
                            WeightedSumBatchedParams{2, 2, 32}, bound,
                            dispatch.threadgroups);
          return;
        }
        const Size threads(dispatch.threads, 1, 1);
        e.setComputePipelineState(q.device->newComputePipelineState(
            Get("planted_dispatches", dispatch.kernel, false)));
        CheckedQueue::SetBuffers(e, bound);
        if (dispatch.threadgroups == 0) {
          e.dispatchThreadgroups(buffers[0], 0, threads);
        } else {
          e.dispatchThreadgroups(Size(dispatch.threadgroups, 1, 1), threads);
        }
      };
      const auto run = [&](const std::vector<int>& barriers) {
        return SaidOf(
            *q.queue,
            [&](Encoder& e) {
              encode(e, planted.first);
              std::vector<BufferPtr> resources;
              for (const int i : barriers) {
                if (i < 0) {
                  e.memoryBarrier(BarrierScopeBuffers);
                } else {
                  resources.push_back(buffers[i]);
                }
              }
              if (!resources.empty()) {
                e.memoryBarrier(resources.data(), resources.size());
              }
              encode(e, planted.second);
            },
            DispatchTypeConcurrent);
      };
      const Said said = run(planted.broken);
      if (schedule == 0) {
        std::printf("* %s\n    %s\n", planted.what, said.text().c_str());
      }
      const bool is_found =
          planted.kernel[0] == '\0'
              ? std::any_of(said.findings.begin(), said.findings.end(),
                            [](const Finding& f) { return !f.where.known(); })
              : IsAnyMarked(said.findings, kernels[planted.kernel]);
      ASSERT_TRUE(is_found) << said.text();
      ASSERT_EQ(run(planted.clean).text(), "");
    }
  }
}

}  // namespace
}  // namespace switchyard::testing_support
