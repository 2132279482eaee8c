// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Types for the names that a model family's layer has in config.json and in
// checkpoints. moe_layer uses these names. The library does not compile them.

#ifndef SWITCHYARD_SRC_FAMILY_H_
#define SWITCHYARD_SRC_FAMILY_H_

#include <array>
#include <cstddef>
#include <type_traits>

namespace switchyard::families {

// The tensors of a layer that no GEMM multiplies.
enum Vector : size_t {
  kNorm,            // [hidden], the norm before the block
  kNextNorm,        // [hidden], the norm before the next block
  kRouterNorm,      // [hidden], for the router's input instead of kNorm
  kSharedNorm,      // [hidden], for the shared expert's input instead of kNorm
  kRoutedOutNorm,   // [hidden], for the routed experts' sum
  kSharedOutNorm,   // [hidden], for the shared expert's output
  kBlockOutNorm,    // [hidden], for the sum of these two outputs
  kCorrectionBias,  // [logits] or [1, logits]
  kExpertScale,     // [num_experts]
  kGateUpBias,      // [num_experts, 2 * intermediate], in the layout's order
  kDownBias,        // [num_experts, hidden]
  kLayerScalar,     // [1], multiplies the layer's whole output
  kVectors
};

// A rule that says which layers have experts. moe_layer runs only these layers.
struct LayerRule {
  enum Kind {
    kDense,        // all layers except the layers in the list
    kStep,         // layers n - 1, 2n - 1, 3n - 1, ..., if the number is n
    kFirst,        // layers >= the number
    kLast,         // layers <= the number
    kListed,       // layers in the list
    kTypes,        // layers for which the list has the word `type`
    kFirstByHash,  // as kFirst; earlier layers route by token id
    kFlags,        // layers with a 1 in the list, or multiples of the number
  };
  Kind kind = kDense;
  // The key of the list or number in config.json. If null, there is no rule.
  const char* key = nullptr;
  const char* type = "sparse";  // for kTypes: the word for a layer with experts
};

// The names of experts' tensors: `gate` [intermediate, hidden], `up` and
// `down`, or gate and up together in `gate_up`. In `gate_up`, all gates come
// first or, if interleaved, gates and ups alternate. A tensor's full name is
// the module's name, then one of these names. If the module's name has no
// {expert}, one tensor has all experts.
struct ExpertNames {
  const char *gate = nullptr, *up = nullptr, *down = nullptr;
  const char* gate_up = nullptr;
  bool transposed = false;  // [hidden, ...] and [intermediate, hidden]
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

// The names of a layer's tensors in checkpoints. transformers may have other
// names, because it renames tensors when it loads them (conversion_mapping.py
// of 5.23). {root} stands for one of `roots`, {layer} and {expert} for numbers.
// preset_fields.h has the names of ModelConfig's fields in config.json.
struct FamilyLayer {
  // Keys of config.json that are not in ModelConfig.
  const char* num_layers = "num_hidden_layers";
  const char* hidden = "hidden_size";
  const char* intermediate = "moe_intermediate_size";  // the width of an expert
  // The key of the shared expert's width. If null, the width is
  // n_shared_experts times `intermediate`, and may be 0.
  const char* shared_intermediate = nullptr;
  bool shared_is_optional = false;  // the shared width may be 0 or absent
  // The key of a flag that says whether there are experts, and must be true.
  const char* enabled_by = nullptr;
  // If config.json has hidden_act, it must have this value.
  const char* hidden_act = "silu";
  std::array<LayerRule, 4> rules = {};  // a layer with experts passes all rules

  // True if the router's norm is also divided by sqrt(hidden), as in Gemma 4.
  bool router_norm_by_root = false;
  // True if the router's matmul adds the bias to the logits, as in gpt-oss. The
  // weights then contain the bias.
  bool bias_in_logits = false;

  // {root} is the first of these names under which the checkpoint has kNorm.
  std::array<const char*, 4> roots = {"model.", "", "model.language_model.",
                                      "language_model.model."};
  const char* prefix = "{root}layers.{layer}.";  // of all names but last_norm
  // A name is null if the family does not have the vector. kNextNorm is a
  // tensor of the next layer.
  std::array<const char*, kVectors> vectors = {};
  const char* last_norm = "{root}norm.weight";  // the norm after the last layer
  const char* router = nullptr;
  // The names of the experts' tensors. moe_layer takes the first element whose
  // tensors the checkpoint has.
  std::array<ExpertTensors, 2> experts = {};
  // shared.module is null if the family has no shared experts.
  ExpertTensors shared = {};
  // The name of a tensor [1, hidden]. The shared expert's weight is the sigmoid
  // of this tensor's product with a token.
  const char* shared_logit = nullptr;

  // Returns a copy of the layer with another value of one member.
  template <class T>
  constexpr FamilyLayer Set(T FamilyLayer::*member,
                            std::common_type_t<T> value) const {
    FamilyLayer layer = *this;
    layer.*member = value;
    return layer;
  }
  constexpr FamilyLayer Set(Vector vector, const char* name) const {
    FamilyLayer layer = *this;
    layer.vectors[vector] = name;
    return layer;
  }
  constexpr FamilyLayer Router(const char* name) const {
    return Set(&FamilyLayer::router, name);
  }
  constexpr FamilyLayer Rules(LayerRule a = {}, LayerRule b = {},
                              LayerRule c = {}, LayerRule d = {}) const {
    return Set(&FamilyLayer::rules, {a, b, c, d});
  }
  constexpr FamilyLayer Experts(ExpertTensors first,
                                ExpertTensors second = {}) const {
    return Set(&FamilyLayer::experts, {first, second});
  }
  // Adds a shared expert, with the key of its width in config.json.
  constexpr FamilyLayer Shared(ExpertTensors tensors,
                               const char* key = nullptr) const {
    return Set(&FamilyLayer::shared, tensors)
        .Set(&FamilyLayer::shared_intermediate, key);
  }
};

struct Family;  // families.h

}  // namespace switchyard::families

#endif  // SWITCHYARD_SRC_FAMILY_H_
