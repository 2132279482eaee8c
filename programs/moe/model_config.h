// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_MODEL_CONFIG_H_
#define SWITCHYARD_PROGRAMS_MOE_MODEL_CONFIG_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/family.h"
#include "src/preset_fields.h"
#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/presets.h"
#include "switchyard/route.h"

namespace moe_layer {

using namespace switchyard::families;  // NOLINT(build/namespaces)

// The sizes of one MoE block, and the options of its calls.
struct MoeShape {
  size_t hidden = 0;
  size_t intermediate = 0;
  size_t num_experts = 0;  // without the zero experts, which compute nothing
  size_t top_k = 0;
  size_t shared_intermediate = 0;  // 0 if there is no shared expert
  float norm_eps = 0;

  switchyard::RouteOptions route;
  // The activation's options for all experts. The shared expert uses the same
  // options, except the layout.
  switchyard::ActivateOptions activate = {
      switchyard::Activation::kSilu, switchyard::GateUpLayout::kConcatenated};
  switchyard::SharedGate shared_gate = switchyard::SharedGate::kLogit;
  switchyard::NormKind norm = switchyard::NormKind::kWeight;
  switchyard::CombineScales scales;
  bool weighs_input =
      false;  // true if the router's weight multiplies the expert's input
  bool residual = true;

  // Returns the number of logits per token.
  size_t NumLogits() const { return num_experts + route.num_zero_experts; }
  bool HasSharedLogit() const {
    return shared_intermediate != 0 &&
           shared_gate == switchyard::SharedGate::kLogit;
  }
};

// Returns the names of the families that the program can run, such as "afmoe,
// axk1".
std::string KnownFamilies();

// Reads a config.json. Errors are InputErrors that begin with `path`.
class ModelConfig {
 public:
  // The first constructor finds the family by the key model_type, which may be
  // in the file's outer object, in text_config or in another object for the
  // text model. It reads all fields from this object. The second constructor
  // takes the family's name and the names of the layer's tensors from the
  // caller.
  ModelConfig(const std::string& path, const nlohmann::json& config);
  ModelConfig(const std::string& path, const nlohmann::json& config,
              const char* family, const FamilyLayer& layer);

  // Returns the name of the family's preset.
  const char* family() const { return family_; }
  const FamilyLayer& layer() const { return layer_; }
  const MoeShape& shape() const { return shape_; }
  size_t num_layers() const { return num_layers_; }

  // Returns the reason why the program cannot run the layer, such as "is dense
  // (...)", or an empty text if the program can run it.
  std::string WhyNot(size_t layer) const;
  // Checks and returns `layer`. If `layer` is empty, returns the first layer
  // that the program can run. Throws InputError if the program cannot run it.
  size_t SelectLayer(std::optional<size_t> layer) const;

 private:
  // A rule that says which layers have experts. `number`, or the sorted `list`,
  // is the value that config.json has for the rule's key.
  struct Rule {
    LayerRule rule;
    size_t number = 0;
    std::vector<size_t> list = {};

    // Returns the first layer that passes the rule and is not before `layer`.
    // Returns SIZE_MAX if no layer passes.
    size_t First(size_t layer) const;
  };

  ModelConfig(const std::string& path, const nlohmann::json& config,
              const Family& family);
  // Returns the first of the field's names that config.json has. If it has no
  // such name, returns the field's first name.
  const char* KeyOf(switchyard::internal::ConfigField field) const;
  void ReadSizes();
  void ReadRecipe();
  // Changes the preset's options as config.json says.
  void Apply(switchyard::Preset* preset) const;
  // Returns config.json's key for a field of switchyard::ModelConfig.
  std::string KeyOfField(const std::string& field) const;
  void AddRule(const LayerRule& rule);
  // Returns the first layer that the program can run and that is not before
  // `layer`. Returns SIZE_MAX if the program can run no such layer.
  size_t FirstFrom(size_t layer) const;

  const nlohmann::json& Require(const char* key) const;
  size_t Size(const char* key, size_t least = 1) const;
  // Returns the number at `key`. Throws InputError unless it is from 0 to
  // `most`.
  float Number(const char* key, double most) const;
  // True if the family has the key and config.json has a value for it.
  bool Has(const char* key) const;
  [[noreturn]] void Fail(const char* key, const std::string& what) const;

  std::string path_;
  nlohmann::json config_;
  const char* family_;
  const FamilyLayer& layer_;
  MoeShape shape_;
  size_t num_layers_ = 0;
  std::vector<Rule> rules_;
};

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_MODEL_CONFIG_H_
