// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TOOLS_CLI_SHAPES_H_
#define SWITCHYARD_TOOLS_CLI_SHAPES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "switchyard/executor.h"
#include "switchyard/types.h"

namespace swy {

// What `swy bench` can time.
const std::vector<std::string>& Kernels();

// A kernel at one shape, `units` of `unit` a call.
struct Shape {
  std::string kernel;
  std::string name;   // "E=128 k=8 T=512"
  std::string model;  // empty: nobody's in particular
  const char* unit;
  double units;
  double bytes;       // that a call has to move; 0: that is not what bounds it
  double memory;      // that its data take, about
  std::string types;  // of its rows; empty: f32, or it has none
  // Makes the data, and a call on them.
  std::function<std::function<void(switchyard::Executor&)>()> make;
};

struct Model {
  size_t experts = 128;
  size_t top_k = 8;
  size_t hidden = 2048;
  size_t intermediate = 768;
  // Of row data: logits, rows, residual; weights are f32.
  switchyard::Type type = switchyard::Type::kF32;
  std::string name = "Qwen3-30B-A3B";
};

// A kernel of the model's layer, on a batch of so many tokens.
Shape ShapeOf(const std::string& kernel, const Model& model, size_t tokens);

// A short matrix of all kernels.
std::vector<Shape> DefaultShapes(switchyard::Type type);

// "f32", "bf16", "f16": what row data may be.
const std::map<std::string, switchyard::Type>& DataTypes();

}  // namespace swy

#endif  // SWITCHYARD_TOOLS_CLI_SHAPES_H_
