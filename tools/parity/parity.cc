// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The functions that parity.py calls through ctypes: presets by name, with a
// configuration applied, and RouteTopK with their options, some of them
// overwritten. Options are text in both directions,
// "renormalize=1 num_expert_group=8", in the names of route.h; a configuration
// is lines of text, "norm_topk_prob=1", in the names of config.json.

#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "switchyard/presets.h"
#include "switchyard/route.h"

namespace switchyard {
namespace {

// Calls visit(name, field) for each option that parity.py reads or says.
template <class P, class Visit>
void ForEachOption(P& preset, Visit visit) {
  auto& route = preset.route;
#define SWITCHYARD_VISIT(field) visit(#field, route.field)
  SWITCHYARD_VISIT(renormalize);
  SWITCHYARD_VISIT(score);
  SWITCHYARD_VISIT(eps);
  SWITCHYARD_VISIT(routed_scaling_factor);
  SWITCHYARD_VISIT(logit_scale);
  SWITCHYARD_VISIT(logit_softcap);
  SWITCHYARD_VISIT(num_expert_group);
  SWITCHYARD_VISIT(topk_group);
  SWITCHYARD_VISIT(num_zero_experts);
  SWITCHYARD_VISIT(num_shared_experts);
  SWITCHYARD_VISIT(jitter_eps);
  SWITCHYARD_VISIT(round_to);
  SWITCHYARD_VISIT(weight_of);
  SWITCHYARD_VISIT(divisor);
#undef SWITCHYARD_VISIT
  visit("correction_bias", preset.correction_bias);
  visit("expert_scale", preset.expert_scale);
  visit("norm_topk_prob", preset.norm_topk_prob);
  visit("in_model_type", preset.in_model_type);
  visit("num_experts", preset.num_experts);
  visit("top_k", preset.top_k);
  visit("activation", preset.activate.activation);
  visit("limit", preset.activate.limit);
  visit("alpha", preset.activate.alpha);
  visit("beta", preset.activate.beta);
  visit("linear_beta", preset.activate.linear_beta);
  visit("combine_eps", preset.combine.eps);
  visit("block_eps", preset.combine.block_eps);
  visit("scales.routed", preset.combine.scales.routed);
  visit("scales.block", preset.combine.scales.block);
  visit("scales.residual", preset.combine.scales.residual);
  visit("form.num_shared_experts", preset.form.num_shared_experts);
  visit("form.has_weights_on_input", preset.form.has_weights_on_input);
}

// The struct of library.py. It has no data if `data` is null.
struct Array {
  void* data;
  size_t rows, cols;
  int type;

  template <class M>
  M As() const {
    return data == nullptr ? M()
                           : M(data, static_cast<Type>(type), rows, cols, cols);
  }
};
struct Arrays {
  Array logits, correction_bias, expert_scale, given_ids;
  Array topk_ids, topk_weights, identity_weights;
};

}  // namespace
}  // namespace switchyard

namespace switchyard {
namespace {

// The family's preset, with a configuration applied unless that is empty.
Status FindConfigured(const char* family, const std::string& config,
                      Preset* preset) {
  Status status = FindPreset(family, preset);
  if (!status.ok() || config.empty()) return status;
  ModelConfig fields;
  std::vector<std::string> texts;  // ModelConfig points into them
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) texts.push_back(line);
  for (std::string& text : texts) {
    const size_t equal = text.find('=');
    const std::string key = text.substr(0, equal);
    const char* value = text.c_str() + equal + 1;
    char* end = nullptr;
    const double number = std::strtod(value, &end);
    status = *value != '\0' && *end == '\0'
                 ? SetField(key.c_str(), number, &fields)
                 : SetField(key.c_str(), value, &fields);
    if (!status.ok()) return status;
  }
  return ApplyConfig(fields, preset);
}

}  // namespace
}  // namespace switchyard

// The preset's options, or what was wrong behind a "!". Valid until the next
// call.
extern "C" const char* SwitchyardPreset(const char* family,
                                        const char* config) {
  static std::string text;
  switchyard::Preset preset;
  const switchyard::Status status =
      switchyard::FindConfigured(family, config, &preset);
  std::ostringstream out;
  out.precision(17);
  if (!status.ok()) out << "!" << status.message();
  if (status.ok()) {
    switchyard::ForEachOption(preset, [&](const char* name, const auto& value) {
      out << name << '=' << static_cast<double>(value) << ' ';
    });
  }
  text = out.str();
  return text.c_str();
}

// Routes; null, or what was wrong.
extern "C" const char* SwitchyardRoute(const char* family, const char* config,
                                       const char* settings,
                                       const switchyard::Arrays* arrays) {
  using switchyard::AnyMatrix;
  using switchyard::ConstAnyMatrix;
  switchyard::Preset preset;
  switchyard::Status status =
      switchyard::FindConfigured(family, config, &preset);
  if (!status.ok()) return status.message();

  std::istringstream words(settings);
  for (std::string word; words >> word;) {
    const size_t equal = word.find('=');
    bool found = false;
    switchyard::ForEachOption(preset, [&](const char* name, auto& value) {
      using Value = std::remove_reference_t<decltype(value)>;
      if (word.compare(0, equal, name) != 0) return;
      value = static_cast<Value>(std::stod(word.substr(equal + 1)));
      found = true;
    });
    if (!found) return "SwitchyardRoute: settings: an unknown name";
  }

  switchyard::RouteInputs in = {arrays->logits.As<ConstAnyMatrix>()};
  in.correction_bias = arrays->correction_bias.As<ConstAnyMatrix>();
  in.expert_scale = arrays->expert_scale.As<ConstAnyMatrix>();
  in.given_ids = arrays->given_ids.As<ConstAnyMatrix>();
  switchyard::RouteOutputs out = {arrays->topk_ids.As<AnyMatrix>(),
                                  arrays->topk_weights.As<AnyMatrix>()};
  out.identity_weights = arrays->identity_weights.As<AnyMatrix>();
  status = switchyard::RouteTopK(in, out, preset.route);
  return status.ok() ? nullptr : status.message();
}
