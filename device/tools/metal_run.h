// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_DEVICE_TOOLS_METAL_RUN_H_
#define SWITCHYARD_DEVICE_TOOLS_METAL_RUN_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/tools/metal.h"

namespace swy {

struct MetalRunOptions {
  MetalOptions compile;
  std::string kernel, grid, groups, threadgroup;
  std::vector<std::string> buffers, memory, constants;  // "NAME=..."
  std::string dispatches;  // the name of the --dispatches file
  std::vector<std::string> expect, print, write, suppress;
  std::optional<double> rtol, atol;
  uint64_t seeds = 1;
  std::string json, sarif;
};
CLI::App* AddMetalRun(CLI::App& metal, MetalRunOptions& options);

// Runs `swy metal run`: dispatches kernels over the buffers that the options
// describe. Returns 0 if there are no findings and all buffers have the
// expected values, otherwise 1.
int MetalRun(const MetalRunOptions& options);

}  // namespace swy

#endif  // SWITCHYARD_DEVICE_TOOLS_METAL_RUN_H_
