// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "family.h"

#include <string>
#include <vector>

namespace moe_layer {
namespace {

Family Qwen3Moe() {
  Family family;
  family.model_type = "qwen3_moe";
  return family;
}

Family Qwen2Moe() {
  Family family;
  family.model_type = "qwen2_moe";
  family.keys.shared_intermediate = "shared_expert_intermediate_size";
  family.names.shared_gate =
      "model.layers.{layer}.mlp.shared_expert.gate_proj.weight";
  family.names.shared_up =
      "model.layers.{layer}.mlp.shared_expert.up_proj.weight";
  family.names.shared_down =
      "model.layers.{layer}.mlp.shared_expert.down_proj.weight";
  family.names.shared_logit =
      "model.layers.{layer}.mlp.shared_expert_gate.weight";
  return family;
}

const std::vector<Family>& Table() {
  static const std::vector<Family> table = {Qwen2Moe(), Qwen3Moe()};
  return table;
}

}  // namespace

const Family* FindFamily(const std::string& model_type) {
  for (const Family& family : Table()) {
    if (model_type == family.model_type) return &family;
  }
  return nullptr;
}

std::string FamilyList() {
  std::string list;
  for (const Family& family : Table()) {
    list += (list.empty() ? "" : ", ") + std::string(family.model_type);
  }
  return list;
}

}  // namespace moe_layer
