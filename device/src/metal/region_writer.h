// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Writes a kernel's regions as LLVM text. Each region becomes a function with
// a work-item loop.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_REGION_WRITER_H_
#define SWITCHYARD_DEVICE_SRC_METAL_REGION_WRITER_H_

#include <cstddef>
#include <string>

#include "device/src/metal/llvm_function.h"
#include "device/src/metal/region_plan.h"

namespace switchyard::device::metal {

// Functions of the shim that call the library.
constexpr char kBarrier[] = "@swy_threadgroup_barrier";
constexpr char kSimdgroupBarrier[] = "@swy_simdgroup_barrier";
constexpr char kSimd[] = "@swy_simd";
constexpr char kVariable[] = "@swy_threadgroup_variable";
constexpr char kNotBound[] = "@swy_not_bound";
constexpr char kFail[] = "@swy_fail";
constexpr char kLane[] = "@swy_lane";
constexpr char kThreadType[] = "%\"struct.switchyard_metal::Thread\"";

// Names of the module that occur in the text of the regions.
struct RegionNames {
  size_t kernel = 0;
  std::string thread_type;  // "%struct...Thread"
  bool typed_pointers = false;
  std::string attributes, accesses, loop;  // "#4", "!7", "!8"

  std::string PointerTo(const std::string& type) const {
    return typed_pointers ? type + "*" : "ptr";
  }
};

// Returns the text of the regions, or an empty text if a value's type is
// unknown.
std::string WriteRegions(const LlvmFunction& function, const RegionPlan& plan,
                         const RegionNames& names);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_REGION_WRITER_H_
