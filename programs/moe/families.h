// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_FAMILIES_H_
#define SWITCHYARD_PROGRAMS_MOE_FAMILIES_H_

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace moe_layer {

// The tensors of a layer that no GEMM multiplies.
enum Vector : size_t {
  kNorm,            // [hidden], opens the block
  kNextNorm,        // [hidden], opens what follows it
  kRouterNorm,      // [hidden], of what the router reads, if not kNorm
  kSharedNorm,      // [hidden], of what the shared expert reads, if not kNorm
  kRoutedOutNorm,   // [hidden], of the routed experts' sum
  kSharedOutNorm,   // [hidden], of the shared expert's output
  kBlockOutNorm,    // [hidden], of both together
  kCorrectionBias,  // [logits] or [1, logits]
  kExpertScale,     // [num_experts]
  kGateUpBias,      // [num_experts, 2 * intermediate], as the layout has them
  kDownBias,        // [num_experts, hidden]
  kLayerScalar,     // [1], multiplies all that the layer gives
  kVectors
};

// Which layers have experts that this program can run.
struct LayerRule {
  enum Kind {
    kDense,        // not those in this list
    kStep,         // those whose number + 1 is a multiple of this
    kFirst,        // those from this number on
    kLast,         // those up to this number
    kListed,       // those in this list
    kTypes,        // those that this list of a word each calls so
    kFirstByHash,  // as kFirst: those before it route by token id
    kFlags,        // layers with a 1 in this list, or multiples of this number
  };
  Kind kind;
  const char* key;  // of config.json; absent or null: the rule says nothing
  const char* type = "sparse";  // of kTypes
};

// The names that a model family uses, and the computation. A family of known
// kinds is one more entry of the table in families.cc and nothing else.
struct Family {
  const char* model_type = "qwen3_moe";  // config.json's, or its text_config's
  // The preset with its options; null: that of model_type.
  const char* preset = nullptr;

  // Keys of config.json; null: there is no such thing.
  struct Keys {
    const char* num_layers = "num_hidden_layers";
    const char* hidden = "hidden_size";
    const char* intermediate = "moe_intermediate_size";  // of one expert
    const char* num_experts = "num_experts";
    const char* top_k = "num_experts_per_tok";
    const char* norm_eps = "rms_norm_eps";
    // Has to be Family::hidden_act; may be absent.
    const char* activation = "hidden_act";
    // The shared expert's width; or one that may be 0 or absent, as there may
    // be none; or how many times `intermediate` it is, in the same way.
    const char* shared_intermediate = nullptr;
    const char* shared_width = nullptr;
    const char* shared_count = nullptr;
  } keys;
  std::vector<LayerRule> layers;
  // A switch in config.json that adds the experts; it has to be true.
  const char* enabled_by = nullptr;

  const char* hidden_act = "silu";
  // The router's norm is divided by sqrt(hidden), too: Gemma 4.
  bool router_norm_by_root = false;
  // The bias is one of the router's matmul, for weights as well: gpt-oss.
  bool bias_in_logits = false;

  // Names of tensors. {root} stands for one of `roots`, {layer} and {expert}
  // for numbers.
  struct Names {
    // The one under which the first norm is found.
    std::vector<std::string> roots = {"model.", "", "model.language_model.",
                                      "language_model.model."};
    // Empty: there is none. kNextNorm is looked for in the layer after.
    std::array<std::string, kVectors> vectors;
    std::string last_norm = "{root}norm.weight";  // after the last layer
    std::string router;

    // One way to store the experts: `gate` [intermediate, hidden], `up` and
    // `down`; or `gate_up` with both, gate first or, interleaved, in turns.
    // Without {expert} in their names, one tensor has all experts.
    struct Experts {
      std::string gate, up, down;
      std::string gate_up;
      bool transposed = false;  // [hidden, ..] and [intermediate, hidden]
      bool interleaved = false;
    };
    // The first of these that is there is taken.
    std::vector<Experts> experts;
    Experts shared;
    // [1, hidden]: the sigmoid of its product with a token weights the shared
    // expert.
    std::string shared_logit;
  } names;
};

// All that the program knows.
const std::vector<Family>& Families();

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_FAMILIES_H_
