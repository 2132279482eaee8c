// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The names of a model family's layer in config.json and in its checkpoints,
// for moe_layer. The library does not compile them.

#ifndef SWITCHYARD_SRC_FAMILY_H_
#define SWITCHYARD_SRC_FAMILY_H_

#include <array>
#include <cstddef>
#include <type_traits>

namespace switchyard::families {

// The tensors of a layer that no GEMM multiplies.
enum Vector : size_t {
  kNorm,            // [hidden], opens the block
  kNextNorm,        // [hidden], opens the next block
  kRouterNorm,      // [hidden], of the router's input, if not kNorm
  kSharedNorm,      // [hidden], of the shared expert's input, if not kNorm
  kRoutedOutNorm,   // [hidden], of the routed experts' sum
  kSharedOutNorm,   // [hidden], of the shared expert's output
  kBlockOutNorm,    // [hidden], of both together
  kCorrectionBias,  // [logits] or [1, logits]
  kExpertScale,     // [num_experts]
  kGateUpBias,      // [num_experts, 2 * intermediate], as the layout has them
  kDownBias,        // [num_experts, hidden]
  kLayerScalar,     // [1], multiplies the layer's whole output
  kVectors
};

// Selects the layers with experts that moe_layer can run.
struct LayerRule {
  enum Kind {
    kDense,        // not the layers in this list
    kStep,         // layers that are multiples of this, counted from 1
    kFirst,        // the layers from this number on
    kLast,         // the layers up to this number
    kListed,       // the layers in this list
    kTypes,        // the layers that have the word `type` in this list
    kFirstByHash,  // as kFirst: the layers before it route by token id
    kFlags,        // layers with a 1 in this list, or multiples of this number
  };
  Kind kind = kDense;
  // A key of config.json. Without it, the rule does not apply.
  const char* key = nullptr;
  const char* type = "sparse";  // of kTypes
};

// One way to store experts: `gate` [intermediate, hidden], `up` and `down`; or
// `gate_up` with both, gate first or, interleaved, in turns. A tensor's name is
// the module's name followed by one of these. If the module's name lacks
// {expert}, one tensor has all experts.
struct ExpertNames {
  const char *gate = nullptr, *up = nullptr, *down = nullptr;
  const char* gate_up = nullptr;
  bool transposed = false;  // [hidden, ..] and [intermediate, hidden]
  bool interleaved = false;
};
constexpr ExpertNames kProj = {".gate_proj.weight", ".up_proj.weight",
                               ".down_proj.weight"};  // Llama's
constexpr ExpertNames kNumbered = {".w1.weight", ".w3.weight",
                                   ".w2.weight"};  // Mixtral's
constexpr ExpertNames kFused = {nullptr, nullptr, ".down_proj",
                                ".gate_up_proj"};
constexpr ExpertNames kTransposed = {nullptr, nullptr, ".down_proj",
                                     ".gate_up_proj", true};
constexpr ExpertNames kInterleaved = {nullptr,         nullptr, ".down_proj",
                                      ".gate_up_proj", true,    true};
constexpr ExpertNames kLinear = {nullptr, nullptr, ".output_linear.weight",
                                 ".input_linear.weight"};

struct ExpertTensors {
  const char* module = nullptr;
  ExpertNames names = kProj;
};

// The names of a layer's tensors in checkpoints. transformers' names may
// differ, because it renames while it loads (conversion_mapping.py of 5.23).
// {root} stands for one of `roots`, {layer} and {expert} for numbers.
// preset_fields.h has the names of ModelConfig's fields in config.json.
struct FamilyLayer {
  // Other keys of config.json.
  const char* num_layers = "num_hidden_layers";
  const char* hidden = "hidden_size";
  const char* intermediate = "moe_intermediate_size";  // of one expert
  // The shared expert's width; null: the width is n_shared_experts times
  // `intermediate`, and may be 0.
  const char* shared_intermediate = nullptr;
  bool shared_is_optional = false;  // that width may be 0 or absent
  // A switch that adds the experts; it must be true.
  const char* enabled_by = nullptr;
  const char* hidden_act = "silu";      // required, if config.json has the key
  std::array<LayerRule, 4> rules = {};  // a layer must pass all of them

  // The router's norm is divided by sqrt(hidden), too: Gemma 4.
  bool router_norm_by_root = false;
  // The router's matmul adds the bias, so it changes weights, too: gpt-oss.
  bool bias_in_logits = false;

  // {root} is the first of these with which the checkpoint has kNorm.
  std::array<const char*, 4> roots = {"model.", "", "model.language_model.",
                                      "language_model.model."};
  const char* prefix = "{root}layers.{layer}.";  // of all names but last_norm
  // Null if the family lacks the tensor. kNextNorm is the next layer's.
  std::array<const char*, kVectors> vectors = {};
  const char* last_norm = "{root}norm.weight";  // after the last layer
  const char* router = nullptr;
  // moe_layer takes the first way to store experts that the checkpoint has.
  std::array<ExpertTensors, 2> experts = {};
  // The module is null for a family without shared experts.
  ExpertTensors shared = {};
  // [1, hidden]: the sigmoid of its product with a token weights the shared
  // expert.
  const char* shared_logit = nullptr;

  // A layer that differs in one part.
  template <class T>
  constexpr FamilyLayer With(T FamilyLayer::*member,
                             std::common_type_t<T> value) const {
    FamilyLayer layer = *this;
    layer.*member = value;
    return layer;
  }
  constexpr FamilyLayer With(Vector vector, const char* name) const {
    FamilyLayer layer = *this;
    layer.vectors[vector] = name;
    return layer;
  }
  constexpr FamilyLayer Router(const char* name) const {
    return With(&FamilyLayer::router, name);
  }
  constexpr FamilyLayer Rules(LayerRule a = {}, LayerRule b = {},
                              LayerRule c = {}, LayerRule d = {}) const {
    return With(&FamilyLayer::rules, {a, b, c, d});
  }
  constexpr FamilyLayer Experts(ExpertTensors first,
                                ExpertTensors second = {}) const {
    return With(&FamilyLayer::experts, {first, second});
  }
  // A shared expert of a width that config.json has as `key`.
  constexpr FamilyLayer Shared(ExpertTensors tensors,
                               const char* key = nullptr) const {
    return With(&FamilyLayer::shared, tensors)
        .With(&FamilyLayer::shared_intermediate, key);
  }
};

struct Family;  // families.h

}  // namespace switchyard::families

#endif  // SWITCHYARD_SRC_FAMILY_H_
