// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What a ComputePipelineState runs.

#ifndef SWITCHYARD_SRC_DEVICE_PIPELINE_H_
#define SWITCHYARD_SRC_DEVICE_PIPELINE_H_

#include <string>

#include "switchyard/device/threadgroup.h"

namespace switchyard::device {

struct BuiltIn;  // src/device/builtin
struct RunningDispatch;

struct Pipeline {
  std::string name;
  // One of the two:
  const BuiltIn* built_in = nullptr;
  KernelFunction kernel;
};

// Defined in src/device/builtin. Null if there is none of that name.
const BuiltIn* FindBuiltIn(const char* name);
void RunBuiltIn(const BuiltIn& kernel, RunningDispatch& running);

}  // namespace switchyard::device

#endif  // SWITCHYARD_SRC_DEVICE_PIPELINE_H_
