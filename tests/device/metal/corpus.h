// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The pairs of this folder: of kernel NAME_yes checked mode is to find what a
// marker in the text says, on that line, and of NAME_no nothing.
//
//   // FINDS: KINDS         on the line of an access or call of the kernel
//   // FINDS: KINDS in NAME  in a helper
//
// KINDS are names of FindingKind. Where a race has two sides, both lines are
// marked: which of them comes second is the schedule's.

#ifndef SWITCHYARD_TESTS_DEVICE_METAL_CORPUS_H_
#define SWITCHYARD_TESTS_DEVICE_METAL_CORPUS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "switchyard/device/threadgroup.h"

namespace switchyard::testing_support {

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

inline const std::vector<MetalPair>& MetalPairs() {
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

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_DEVICE_METAL_CORPUS_H_
