// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// How model families route, by name. docs/models.md lists them, with what else
// their layers compute and how far each was compared with transformers.

#ifndef SWITCHYARD_PRESETS_H_
#define SWITCHYARD_PRESETS_H_

#include <cstddef>

#include "switchyard/route.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {

// A family in its default configuration. A checkpoint's own config.json goes
// before it: num_experts, top_k, routed_scaling_factor, groups, and where it is
// said below renormalize and round_to.
struct Preset {
  // model_type of config.json, or of its text_config, as transformers has it.
  const char* family = nullptr;
  // The family that this is an exact copy of, or null.
  const char* same_as = nullptr;

  RouteOptions route;
  // Which of RouteInputs it has beside the logits.
  bool correction_bias = false;
  bool expert_scale = false;
  // Its configurations have norm_topk_prob, which is route.renormalize.
  bool norm_topk_prob = false;
  // It computes scores and weights in the type of the model: with that as
  // route.round_to its roundings are made, too. What other families round is
  // the logits, and the weights to the type of topk_weights.
  bool in_model_type = false;

  // RouteTopK's num_experts (with route.num_zero_experts) and top_k; 0 where a
  // configuration has to say.
  size_t num_experts = 0;
  size_t top_k = 0;

  // What it follows: file and line in transformers 5.23, or in words.
  const char* source = nullptr;
};

// All of them, in alphabetical order of bytes.
Span<const Preset> Presets() noexcept;

// The preset of a family, into `preset`. kInvalidArgument, and nothing written,
// where a pointer is null or the name is unknown.
Status FindPreset(const char* family, Preset* preset) noexcept;

}  // namespace switchyard

#endif  // SWITCHYARD_PRESETS_H_
