// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The kernel that a ComputePipelineState runs.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_PIPELINE_H_
#define SWITCHYARD_DEVICE_SRC_CORE_PIPELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "switchyard/device/threadgroup.h"

namespace switchyard::device {

struct BuiltIn;  // defined in device/src/builtin
struct RunningDispatch;

enum class Blit : uint8_t { kNone, kFill, kCopy };

struct Pipeline {
  std::string name;
  // Exactly one of the following three members is set.
  Blit blit = Blit::kNone;
  const BuiltIn* built_in = nullptr;
  KernelFunction kernel;
};

// Returns the built-in kernel with this name, or null. Defined in
// device/src/builtin.
const BuiltIn* FindBuiltIn(const char* name);
// Returns the names of all built-in kernels. The name most similar to `name`
// comes first.
std::vector<std::string> BuiltInNames(const std::string& name);
void RunBuiltIn(const BuiltIn& kernel, RunningDispatch& running);

// Defined in blit_command_encoder.cc.
void RunBlit(Blit blit, RunningDispatch& running);

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_PIPELINE_H_
