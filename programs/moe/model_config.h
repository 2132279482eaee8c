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

// The sizes and recipe of one MoE block.
struct MoeShape {
  size_t hidden = 0;
  size_t intermediate = 0;
  size_t num_experts = 0;  // without the experts that compute nothing
  size_t top_k = 0;
  size_t shared_intermediate = 0;  // 0: no shared expert
  float norm_eps = 0;

  switchyard::RouteOptions route;
  // Also the options of the shared expert, except the layout.
  switchyard::ActivateOptions activate = {
      switchyard::Activation::kSilu, switchyard::GateUpLayout::kConcatenated};
  switchyard::SharedGate shared_gate = switchyard::SharedGate::kLogit;
  switchyard::NormKind norm = switchyard::NormKind::kWeight;
  switchyard::CombineScales scales;
  bool weighs_input =
      false;  // the router's weight multiplies the expert's input
  bool residual = true;

  // The number of a token's logits.
  size_t NumLogits() const { return num_experts + route.num_zero_experts; }
  bool HasSharedLogit() const {
    return shared_intermediate != 0 &&
           shared_gate == switchyard::SharedGate::kLogit;
  }
};

// The families with a layer that the program runs, "afmoe, axk1".
std::string KnownFamilies();

// Reads a config.json. Errors are InputErrors that begin with `path`.
class ModelConfig {
 public:
  // The first constructor takes the family from the model_type of the file, of
  // its text_config or of another object of the text model, and reads all
  // fields from that object. The second is given the preset's name and the
  // layer.
  ModelConfig(const std::string& path, const nlohmann::json& config);
  ModelConfig(const std::string& path, const nlohmann::json& config,
              const char* family, const FamilyLayer& layer);

  // The name of the family's preset.
  const char* family() const { return family_; }
  const FamilyLayer& layer() const { return layer_; }
  const MoeShape& shape() const { return shape_; }
  size_t num_layers() const { return num_layers_; }

  // Why the layer cannot be run, as "is dense (...)"; empty if it can.
  std::string WhyNot(size_t layer) const;
  // Checks the requested layer; without one, selects the first with experts.
  size_t SelectLayer(std::optional<size_t> layer) const;

 private:
  // A rule, and its number or sorted list from config.json.
  struct Rule {
    LayerRule rule;
    size_t number = 0;
    std::vector<size_t> list = {};

    // The first layer from `layer` on that passes the rule; SIZE_MAX: none.
    size_t First(size_t layer) const;
  };

  ModelConfig(const std::string& path, const nlohmann::json& config,
              const Family& family);
  // The first of the field's names that config.json has, or else the first.
  const char* KeyOf(switchyard::internal::ConfigField field) const;
  void ReadSizes();
  void ReadRecipe();
  // Puts the file's fields into the preset.
  void Apply(switchyard::Preset* preset) const;
  // config.json's key for a field of switchyard::ModelConfig.
  std::string KeyOfField(const std::string& field) const;
  void AddRule(const LayerRule& rule);
  // The first layer from `layer` on that can be run; SIZE_MAX: none.
  size_t FirstFrom(size_t layer) const;

  const nlohmann::json& Require(const char* key) const;
  size_t Size(const char* key, size_t least = 1) const;
  // A number of at least 0 and at most `most`.
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
