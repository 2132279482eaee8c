// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The pairs of metal/ in checked mode, and the score: what is found,
// missed, and said of those that are right.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/device/findings.h"
#include "switchyard/device/threadgroup.h"
#include "tests/device/metal_text.h"

namespace switchyard::testing_support {
namespace {

// Checked mode is to find of kernel NAME_yes what a marker in the text says, on
// that line, and of NAME_no nothing.
//
//   // FINDS: KINDS         on the line of an access or call of the kernel
//   // FINDS: KINDS in NAME  in a helper
//
// KINDS are names of FindingKind. Where a race has two sides, both lines are
// marked: which of them comes second is the schedule's.

// Bound besides what every kernel gets: at 0, 256 floats from 1 to 7 in no
// order; at 1, 256 floats 0, 1, 2, ...
struct MetalBinding {
  size_t index;
  size_t words;        // floats 0, 1, 2, ...
  bool fresh = false;  // as newBuffer() made them
};

struct MetalPair {
  const char* file;
  const char* name;
  device::Size groups;
  device::Size threads;
  std::vector<MetalBinding> bindings = {};
  size_t threadgroup_bytes = 0;
  // Why checked mode is not to find it, if it is not.
  const char* missed = nullptr;
  // It is an error of the binding, of no access.
  const char* error = nullptr;
  // Found only where the order of threads leads to it.
  bool by_schedule = false;
};

constexpr device::Size kOne(1, 1, 1), kThree(3, 1, 1), k32(32, 1, 1),
    k64(64, 1, 1), k8x8(8, 8, 1);

const std::vector<MetalPair>& MetalPairs() {
  static const auto& pairs = *new std::vector<MetalPair>{
      {"races_threadgroup", "tg_read_after_write", kOne, k64},
      {"races_threadgroup", "tg_write_after_read", kOne, k64},
      {"races_threadgroup", "tg_write_write", kOne, k64},
      {"races_threadgroup", "tg_same_value", kOne, k64},
      {"races_threadgroup", "tg_last_round", kOne, k64},
      {"races_threadgroup", "tg_next_round", kOne, k64},
      {"races_threadgroup", "tg_struct_member", kOne, k64},
      {"races_threadgroup", "tg_halves", kOne, k64},
      {"races_threadgroup", "tg_regions", kOne, k64, {}, 512},
      {"races_threadgroup", "tg_two_arrays", kOne, k64},
      {"races_threadgroup", "tg_helper", kOne, k64},
      {"races_threadgroup", "tg_wide", kOne, k64},
      {"races_threadgroup", "tg_candidates", kOne, k64},

      {"races_device", "dev_read_after_write", kOne, k64, {{2, 64}}},
      {"races_device", "dev_narrow_barrier", kOne, k64, {{2, 64}}},
      {"races_device", "dev_write_write", kOne, k64},
      {"races_device", "dev_shift_in_place", kOne, k64},
      {"races_device", "dev_bytes", kOne, k64},
      {"races_device", "dev_vectors", kOne, k64},
      {"races_device", "dev_produce_consume", kOne, k64, {{2, 4}, {3, 1}}},
      {"races_device", "groups_one_word", kThree, k32},
      {"races_device", "groups_stencil", kThree, k32},
      {"races_device", "groups_count", kThree, k32},
      {"races_device", "groups_tiles", kThree, k32},
      {"races_device", "groups_last_adds", kThree, k32, {{2, 4}, {3, 1}}},
      {"races_device", "groups_last_fenced", kThree, k32, {{2, 96}, {3, 1}}},
      {"races_device",
       "groups_handed_on",
       kThree,
       k32,
       {{2, 1}, {3, 3}},
       0,
       nullptr,
       nullptr,
       true},
      {"races_device", "groups_scratch", kThree, k32, {{2, 96}}},
      {"races_device", "groups_reverse", kThree, k32},
      {"races_device",
       "groups_publish",
       kThree,
       k32,
       {{2, 4}, {3, 1}},
       0,
       nullptr,
       nullptr,
       true},

      {"races_simdgroup", "simd_no_barrier", kOne, k32},
      {"races_simdgroup", "simd_sum_between", kOne, k32},
      {"races_simdgroup", "simd_read_then_write", kOne, k32},
      {"races_simdgroup", "simd_barrier_of_one", kOne, k64},
      {"races_simdgroup", "simd_barrier_none", kOne, k32},
      {"races_simdgroup", "simd_tree", kOne, k32},
      {"races_simdgroup", "simd_shuffle_branch", kOne, k32},
      {"races_simdgroup", "simd_short_group", kOne, device::Size(40, 1, 1)},
      {"races_simdgroup", "simd_quad", kOne, k32},

      {"races_atomics", "atomic_clear", kOne, k64},
      {"races_atomics",
       "atomic_clear_late",
       kOne,
       k64,
       {},
       0,
       "atomics against atomics, ordered or not"},
      {"races_atomics", "atomic_bins", kOne, k64},
      {"races_atomics", "atomic_max", kOne, k64},
      {"races_atomics",
       "atomic_ticket",
       kOne,
       k64,
       {{2, 1}},
       0,
       "threads change places at barriers and simd functions only"},
      {"races_atomics", "atomic_sum", kThree, k32},
      {"races_atomics", "atomic_progress", kThree, k32, {{2, 3}}},
      {"races_atomics", "atomic_exchange", kOne, k64, {{2, 64}}},

      {"races_barriers", "barrier_none", kOne, k64},
      {"races_barriers", "barrier_device", kOne, k64},
      {"races_barriers", "barrier_one_of_two", kOne, k64, {{2, 64}}},
      {"races_barriers", "barrier_early_return", kOne, k64},
      {"races_barriers", "barrier_in_branch", kOne, k64},
      {"races_barriers", "barrier_in_loop", kOne, k64},
      {"races_barriers", "barrier_in_helper", kOne, k64},
      {"races_barriers", "barrier_of_two_ways", kOne, k64},
      {"races_barriers", "barrier_too_early", kOne, k64},
      {"races_barriers", "barrier_of_lanes", kOne, k64},

      {"races_algorithms", "tree", kOne, k64},
      {"races_algorithms", "partials", kOne, k64},
      {"races_algorithms", "ping_pong", kOne, k64},
      {"races_algorithms", "scan", kOne, k64},
      {"races_algorithms", "transpose", kOne, k8x8},
      {"races_algorithms", "transpose_in_place", kOne, k8x8},
      {"races_algorithms", "stencil", kOne, k64},
      {"races_algorithms", "halo", kOne, k64},
      {"races_algorithms", "tiles", kOne, k8x8},
      {"races_algorithms", "bitonic", kOne, k64},
      {"races_algorithms", "merge_bins", kOne, k64},

      {"errors_memory", "fresh_threadgroup", kOne, k64},
      {"errors_memory", "fresh_last", kOne, k64},
      {"errors_memory", "fresh_buffer", kOne, k64, {{2, 64, true}}},
      {"errors_memory", "fresh_sum", kOne, k64, {{2, 64, true}}},
      {"errors_memory", "past_the_end", kOne, k64, {{2, 64}}},
      {"errors_memory", "negative", kOne, k64},
      {"errors_memory", "wraps_around", kOne, k64},
      {"errors_memory", "misaligned", kOne, k64},
      {"errors_memory", "unset_constant", kOne, k64},
      {"errors_memory", "past_scratch", kOne, k64, {}, 256},
      {"errors_memory", "too_many_simdgroups", kOne, device::Size(96, 1, 1)},
      {"errors_memory",
       "short_params",
       kOne,
       k64,
       {{2, 2}},
       0,
       nullptr,
       "buffer 2 (p) needs 12 bytes, 8 are bound"},
      {"errors_memory", "vector_tail", kOne, k64, {{2, 62}}},
      {"errors_memory", "no_guard", device::Size(2, 1, 1), k32, {{2, 62}}},
      {"errors_memory", "gather", kOne, k64, {{2, 62}}},
      {"errors_memory",
       "past_a_table",
       kOne,
       k64,
       {},
       0,
       "constants and variables of the program have no bounds here"},

      {"races_public", "log_sum_exp", kOne, k64},
      {"races_public", "row_max_mem_none", kOne, k64},
      {"races_public", "running_sum", kOne, k64},
      {"races_public", "norm_twice", kOne, k64},
  };
  return pairs;
}

// In order, and in schedules 1, 2, ...
#ifdef SWITCHYARD_SANITIZED
constexpr uint64_t kSchedules = 3;
#else
constexpr uint64_t kSchedules = 20;
#endif

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

// The functions of all pairs, compiled once; and a device per schedule.
class MetalCorpus : public testing::Test {
 protected:
  void SetUp() override { SWITCHYARD_NEEDS_CLANG(); }

  static std::shared_ptr<Device> DeviceOf(uint64_t schedule) {
    return NewDevice(false, {true, schedule});
  }
  std::vector<MetalMarker> Markers(const std::string& file,
                                   const std::string& kernel) {
    auto& all = markers_[file];
    if (all.empty()) all = MarkersOf(TextOfFile(MetalPath(file)));
    std::vector<MetalMarker> some;
    for (const MetalMarker& marker : all) {
      if (marker.kernel == kernel) some.push_back(marker);
    }
    return some;
  }

  // The findings and errors of a run in checked mode.
  struct Said {
    std::vector<Finding> findings;
    std::string error;

    std::string text() const {
      return findings.empty()
                 ? error
                 : findings[0].where.text() + ": " + NameOf(findings[0].kind) +
                       ": " + findings[0].text;
    }
  };
  Said Run(Device& device, const MetalPair& pair, const std::string& kernel) {
    std::string error;
    const auto pipeline =
        device.newComputePipelineState(texts_.Get(pair.file, kernel), &error);
    EXPECT_NE(pipeline, nullptr) << error;
    if (pipeline == nullptr) return {};
    const auto queue = device.newCommandQueue();
    const auto commands = Encoded(*queue, [&](Encoder& e) {
      e.setComputePipelineState(pipeline);
      e.setBuffer(NewBuffer(device, OneToSeven(256)), 0, 0);
      e.setBuffer(NewBuffer(device, Counting(256)), 0, 1);
      for (const MetalBinding& b : pair.bindings) {
        e.setBuffer(b.fresh ? device.newBuffer(4 * b.words)
                            : NewBuffer(device, Counting(b.words)),
                    0, b.index);
      }
      if (pair.threadgroup_bytes != 0) {
        e.setThreadgroupMemoryLength(pair.threadgroup_bytes, 0);
      }
      e.dispatchThreadgroups(pair.groups, pair.threads);
    });
    commands->commit();
    commands->waitUntilCompleted();
    return {commands->findings(), commands->error()};
  }

  // Whether one of the findings is of a marked kind, on its line.
  static bool IsMarked(const std::vector<Finding>& findings,
                       const std::vector<MetalMarker>& markers,
                       const std::string& file) {
    for (const Finding& finding : findings) {
      for (const MetalMarker& marker : markers) {
        if (finding.where.line == marker.line &&
            IsFile(finding.where.file, file) &&
            marker.kinds.find(NameOf(finding.kind)) != std::string::npos) {
          return true;
        }
      }
    }
    return false;
  }

  // Whether all of them are on marked lines.
  static bool AreOnMarkedLines(const std::vector<Finding>& findings,
                               const std::vector<MetalMarker>& markers) {
    return std::all_of(findings.begin(), findings.end(), [&](const Finding& f) {
      return std::any_of(
          markers.begin(), markers.end(),
          [&](const MetalMarker& m) { return m.line == f.where.line; });
    });
  }
  // Paths below the working folder are reported without it.
  static bool IsFile(const std::string& path, const std::string& file) {
    const std::string name = "/" + file + ".metal";
    return path.size() > name.size() &&
           path.compare(path.size() - name.size(), name.size(), name) == 0;
  }

  MetalTexts texts_{DeviceOf(0)};

 private:
  std::map<std::string, std::vector<MetalMarker>> markers_;
};

// Run it alone to have the list.
TEST_F(MetalCorpus, Score) {
  size_t found = 0, missed = 0, alarms = 0, kernels = 0;
  std::map<std::string, uint64_t> times;  // of a pair's _yes
  for (uint64_t schedule = 0; schedule <= kSchedules; ++schedule) {
    const auto device = DeviceOf(schedule);
    for (const MetalPair& pair : MetalPairs()) {
      const std::string yes = std::string(pair.name) + "_yes";
      const std::string no = std::string(pair.name) + "_no";
      const auto markers = Markers(pair.file, yes);
      ASSERT_FALSE(markers.empty()) << yes;
      const Said of_yes = Run(*device, pair, yes);
      const bool right =
          pair.error == nullptr
              ? IsMarked(of_yes.findings, markers, pair.file)
              : of_yes.error.find(pair.error) != std::string::npos;
      times[pair.name] += right;
      if (schedule == 0) {
        std::printf("%s %s\n    %s\n", right ? "*" : "-", pair.name,
                    of_yes.text().c_str());
      }
      EXPECT_EQ(of_yes.error.empty(),
                of_yes.findings.empty() && pair.error == nullptr)
          << of_yes.error;
      EXPECT_TRUE(right || pair.missed != nullptr || pair.by_schedule)
          << yes << ", schedule " << schedule << ": " << of_yes.text();
      EXPECT_TRUE(pair.error != nullptr ||
                  AreOnMarkedLines(of_yes.findings, markers))
          << yes << ", schedule " << schedule << ": " << of_yes.text();
      const Said of_no = Run(*device, pair, no);
      alarms += !of_no.error.empty();
      EXPECT_EQ(of_no.text(), "") << no << ", schedule " << schedule;
    }
  }
  for (const MetalPair& pair : MetalPairs()) {
    const uint64_t n = times[pair.name];
    kernels += 2;
    ++(n != 0 ? found : missed);
    if (n == kSchedules + 1) continue;
    std::printf("%s: found in %llu of %llu schedules: %s\n", pair.name,
                static_cast<unsigned long long>(n),
                static_cast<unsigned long long>(kSchedules + 1),
                pair.missed != nullptr ? pair.missed
                                       : "only where the order leads to it");
    // Defects listed as missed are not found, and all others are.
    EXPECT_EQ(n == 0, pair.missed != nullptr) << pair.name;
  }
  std::printf(
      "%zu kernels in %llu schedules: %zu defects found, %zu missed, %zu false "
      "alarms\n",
      kernels, static_cast<unsigned long long>(kSchedules + 1), found, missed,
      alarms);
  EXPECT_EQ(alarms, 0u);
  EXPECT_EQ(missed, 3u);
  EXPECT_GE(kernels, 160u);
}

// Every kernel of the texts is in the list.
TEST_F(MetalCorpus, IsAll) {
  std::map<std::string, size_t> listed;
  for (const MetalPair& pair : MetalPairs()) listed[pair.file] += 2;
  for (const auto& [file, count] : listed) {
    const auto library = texts_.Get(file);
    ASSERT_NE(library, nullptr);
    size_t pairs = 0;
    for (const std::string& name : library->functionNames()) {
      pairs += name.size() > 4 && (name.rfind("_yes") == name.size() - 4 ||
                                   name.rfind("_no") == name.size() - 3);
    }
    EXPECT_EQ(pairs, count) << file;
  }
}

// A concurrent encoder leaves this unordered: a column sum reads what the next
// dispatch changes in place.
TEST_F(MetalCorpus, WriteAfterReadOfDispatches) {
  const auto device = DeviceOf(0);
  const auto queue = device->newCommandQueue();
  const auto sums = device->newComputePipelineState(
      texts_.Get("races_public", "column_sums"));
  const auto scale = device->newComputePipelineState(
      texts_.Get("races_public", "scale_in_place"));
  ASSERT_NE(sums, nullptr);
  ASSERT_NE(scale, nullptr);
  const auto gradient = NewBuffer(*device, Counting(256));
  const auto out = device->newBuffer(256);
  const auto scales = NewBuffer(*device, OneToSeven(64));
  const auto run = [&](bool barrier) {
    const auto commands = Encoded(
        *queue,
        [&](Encoder& e) {
          e.setComputePipelineState(sums);
          e.setBuffer(gradient, 0, 0);
          e.setBuffer(out, 0, 1);
          e.dispatchThreads(Size(64, 1, 1), Size(32, 1, 1));
          if (barrier) e.memoryBarrier(BarrierScopeBuffers);
          e.setComputePipelineState(scale);
          e.setBuffer(scales, 0, 1);
          e.dispatchThreads(Size(256, 1, 1), Size(32, 1, 1));
        },
        DispatchTypeConcurrent);
    commands->commit();
    commands->waitUntilCompleted();
    return commands->findings();
  };
  EXPECT_TRUE(run(true).empty());
  const std::vector<Finding> findings = run(false);
  EXPECT_TRUE(IsMarked(findings, Markers("races_public", "scale_in_place"),
                       "races_public"))
      << (findings.empty() ? "nothing" : findings[0].text);
}

}  // namespace
}  // namespace switchyard::testing_support
