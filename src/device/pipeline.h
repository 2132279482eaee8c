// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What a ComputePipelineState runs.

#ifndef SWITCHYARD_SRC_DEVICE_PIPELINE_H_
#define SWITCHYARD_SRC_DEVICE_PIPELINE_H_

#include <string>

#include "switchyard/device/device.h"
#include "switchyard/views.h"

namespace switchyard {
namespace device {

class Call;

// A built-in kernel: unpacks the call's bindings and hands the whole grid to
// the plain API.
struct BuiltIn {
  const char* name;
  void (*run)(Call& call);
};

// One list per stem, in <stem>.cc.
Span<const BuiltIn> BucketKernels();
Span<const BuiltIn> CombineKernels();
Span<const BuiltIn> RouteKernels();
Span<const BuiltIn> SiluMulKernels();

struct Pipeline {
  std::string name;
  // One of the two:
  void (*run)(Call& call) = nullptr;
  KernelFunction kernel;
};

}  // namespace device
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_DEVICE_PIPELINE_H_
