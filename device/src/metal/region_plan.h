// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Plans the regions of a kernel. The plan says which values and branches are
// uniform, where regions end, which values are live there, and which of these
// are spilled. regions.h explains the method.

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
  // Each region begins with an edge: from a block that ends a region to one
  // of its successors. The first region begins with the function.
  std::vector<std::pair<size_t, size_t>> entries;
  // True for a block that ends a region. It ends with a barrier, or with a
  // uniform branch that decides which barrier is next.
  std::vector<bool> ends_region;
  // True for a uniform value: it is the same in all threads of a threadgroup.
  // All other values are divergent.
  std::vector<bool> is_uniform;
  // How a region gets a live value that another region defines.
  enum class Transfer {
    kNone,
    kShared,  // it is uniform, so there is one copy for all threads
    // The region computes it again, from uniform values and the position.
    kRematerialized,
    // It is stored in the context, in an array with an element for each
    // thread.
    kSpilled,
  };
  // A struct around the enumeration, because GCC exports the functions of
  // std::vector<Transfer> although Transfer is hidden.
  struct LiveValue {
    Transfer transfer = Transfer::kNone;
  };
  std::vector<LiveValue> values;
  // The values that are live at the entry of each region.
  std::map<std::pair<size_t, size_t>, std::set<size_t>> live;
  // True if a pointer to a thread's own memory may itself be stored in
  // memory, so that the kernel may load it from there.
  bool private_pointers_escape = false;
};

// Returns nothing if a divergent branch decides which barrier is next.
std::optional<RegionPlan> PlanRegions(const LlvmFunction& function);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_REGION_PLAN_H_
