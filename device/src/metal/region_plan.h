// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A plan says where a kernel is cut into regions, and which values cross the
// cuts.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_REGION_PLAN_H_
#define SWITCHYARD_DEVICE_SRC_METAL_REGION_PLAN_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "device/src/metal/llvm_function.h"

namespace switchyard::device::metal {

struct RegionPlan {
  // Regions by the edge that they begin with, from a block with a cut at its
  // end to one of its successors. The first is the function's beginning.
  std::vector<std::pair<size_t, size_t>> starts;
  // A block's is true if a region ends with it.
  std::vector<bool> is_cut;
  // A value's is true if all threads of a threadgroup have the same.
  std::vector<bool> uniform;
  // A value that one region makes and another one uses: how that comes by it.
  enum class Crossing {
    kNone,
    kShared,    // it is uniform: one place for all threads
    kComputed,  // from uniform ones and the thread's position
    kSaved,     // a place for each thread
  };
  // A class, as GCC exports the functions of a vector of a hidden enumeration.
  struct Crosses {
    Crossing how = Crossing::kNone;
  };
  std::vector<Crosses> crossing;
  // These values cross at an edge, which is given as in `starts`.
  std::map<std::pair<size_t, size_t>, std::set<size_t>> live;
  // True if a pointer to a thread's own memory may be read from memory.
  bool stores_pointers = false;
};

// Nothing if the function can't be cut.
std::optional<RegionPlan> PlanRegions(const LlvmFunction& function);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_REGION_PLAN_H_
