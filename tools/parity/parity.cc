// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The functions that parity.py and norms.py call through ctypes:
// * find a preset by its name, and apply a configuration to it;
// * run RouteTopK, or the norms of Combine, with the preset's options. The
//   caller may overwrite some options.
//
// Options are passed and returned as text, "renormalize=1
// num_expert_group=8", with the names of route.h. A configuration is lines of
// text, "norm_topk_prob=1", with the names of config.json.

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "src/families.h"
#include "src/preset_fields.h"
#include "switchyard/combine.h"
#include "switchyard/presets.h"
#include "switchyard/route.h"

namespace switchyard {
namespace {

// The struct Array of library.py. `data` is null for an empty array.
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

// Calls set(name, value) for "name=value". If the value is a number, it is
// passed as a double.
template <class Set>
Status SetPair(const std::string& pair, const Set& set) {
  const size_t equal = pair.find('=');
  const char* const value = pair.c_str() + equal + 1;
  char* end = nullptr;
  const double number = std::strtod(value, &end);
  const std::string name = pair.substr(0, equal);
  return *value != '\0' && *end == '\0' ? set(name.c_str(), number)
                                        : set(name.c_str(), value);
}

// Finds the family's preset, and applies the configuration if it is not empty.
Status FindConfigured(const char* family, const std::string& config,
                      Preset* preset) {
  Status status = FindPreset(family, preset);
  if (!status.ok() || config.empty()) return status;
  ModelConfig fields;
  std::vector<std::string> texts;  // ModelConfig points into these
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) texts.push_back(line);
  for (std::string& text : texts) {
    status = SetPair(text, [&](const char* key, auto value) {
      return SetField(key, value, &fields);
    });
    if (!status.ok()) return status;
  }
  return ApplyConfig(fields, preset);
}

// Calls put(name, value) for each option.
template <class Put>
void PutOptions(const Preset& preset, const Put& put) {
  for (size_t i = 0; OptionAt(preset, i).name != nullptr; ++i) {
    const PresetOption option = OptionAt(preset, i);
    const std::string part = option.part;
    put((part == "route" ? "" : part + ".") + option.name, option.value);
  }
}

// Sets options from words of text, "renormalize=1 score=sigmoid".
Status SetOptions(const char* settings, Preset* preset) {
  std::istringstream words(settings);
  for (std::string word; words >> word;) {
    const Status status = SetPair(word, [&](const char* name, auto value) {
      return SetOption(name, value, preset);
    });
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace
}  // namespace switchyard

// Returns the preset's options, or "!" and the error. The text is valid until
// the next call.
extern "C" const char* SwitchyardPreset(const char* family,
                                        const char* config) {
  static std::string text;
  switchyard::Preset preset;
  const switchyard::Status status =
      switchyard::FindConfigured(family, config, &preset);
  std::ostringstream out;
  out.precision(17);
  if (!status.ok()) out << "!" << status.message();
  const auto put = [&](const std::string& name, auto value) {
    out << name << '=' << static_cast<double>(value) << ' ';
  };
  if (status.ok()) {
    switchyard::PutOptions(preset, put);
    put("correction_bias", preset.correction_bias);
    put("expert_scale", preset.expert_scale);
    put("norm_topk_prob", preset.norm_topk_prob);
    put("in_model_type", preset.in_model_type);
    put("num_experts", preset.num_experts);
    put("top_k", preset.top_k);
    put("form.num_shared_experts", preset.form.num_shared_experts);
    put("form.has_weights_on_input", preset.form.has_weights_on_input);
    put("form.has_block_norm", preset.form.has_block_norm);
  }
  text = out.str();
  return text.c_str();
}

// Changes defaults as `settings` says, and returns all options of RouteTopK and
// Combine, as SwitchyardPreset() does, or "!" and the error. Enumerators become
// numbers.
extern "C" const char* SwitchyardOptions(const char* settings) {
  static std::string text;
  switchyard::Preset preset;
  const switchyard::Status status = switchyard::SetOptions(settings, &preset);
  std::ostringstream out;
  out.precision(17);
  if (!status.ok()) out << "!" << status.message();
  if (status.ok()) {
    switchyard::PutOptions(preset, [&](const std::string& name, auto value) {
      out << name << '=' << static_cast<double>(value) << ' ';
    });
  }
  text = out.str();
  return text.c_str();
}

// Runs RouteTopK. Returns null, or the error.
extern "C" const char* SwitchyardRoute(const char* family, const char* config,
                                       const char* settings,
                                       const switchyard::Arrays* arrays) {
  using switchyard::AnyMatrix;
  using switchyard::ConstAnyMatrix;
  switchyard::Preset preset;
  switchyard::Status status =
      switchyard::FindConfigured(family, config, &preset);
  if (!status.ok()) return status.message();

  status = switchyard::SetOptions(settings, &preset);
  if (!status.ok()) return status.message();

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

// Returns a line for each family with a preset from a file of transformers. A
// line has the family's name, the file's folder, the line in the file, "1" if
// the name is another name of a family with the same source, and "1" if
// moe_layer runs it.
extern "C" const char* SwitchyardFamilies() {
  static std::string text;
  std::ostringstream out;
  const char* last_source = "";
  for (size_t i = 0; i < std::size(switchyard::families::kFamilies); ++i) {
    const switchyard::families::Family& family =
        switchyard::families::kFamilies[i];
    const char* const own = family.preset.source;
    const std::string source = switchyard::Presets().data[i].source;
    const std::string before = "modeling_", behind = ".py:";
    if (source.rfind(before, 0) != 0) continue;
    const size_t end = source.find(behind);
    const bool is_copy = own == nullptr || std::strcmp(own, last_source) == 0;
    out << family.preset.family << ' '
        << source.substr(before.size(), end - before.size()) << ' '
        << source.substr(end + behind.size()) << ' ' << is_copy << ' '
        << (family.layer != nullptr) << '\n';
    if (own != nullptr) last_source = own;
  }
  text = out.str();
  return text.c_str();
}

// Returns a line for each field of ModelConfig, with the field's names in
// config.json.
extern "C" const char* SwitchyardNames() {
  static std::string text;
  text.clear();
  for (const char* const field : switchyard::internal::kConfigNames) {
    for (const char* name = field; *name != '\0';
         name = switchyard::internal::NextName(name)) {
      text += std::string(name) + " ";
    }
    text += '\n';
  }
  return text.c_str();
}

// Computes the norm of each row of `rows`: the norm that opens the next
// layer, or the norm after the block. Returns null, or the error.
extern "C" const char* SwitchyardNorm(const char* family, const char* config,
                                      int is_block, float eps,
                                      const switchyard::Array* rows,
                                      const switchyard::Array* weight,
                                      const switchyard::Array* out) {
  using switchyard::AnyMatrix;
  using switchyard::ConstAnyMatrix;
  switchyard::Preset preset;
  switchyard::Status status =
      switchyard::FindConfigured(family, config, &preset);
  if (!status.ok()) return status.message();
  switchyard::CombineOptions options = preset.combine;
  options.eps = options.block_eps = eps;
  options.round_like_unfused = true;
  switchyard::CombineInputs in = {{}, {}, switchyard::RowIndex::kTokenOrder};
  switchyard::CombineOutputs outputs;
  if (is_block != 0) {
    in.shared.rows = rows->As<ConstAnyMatrix>();
    in.shared.kind = switchyard::SharedGate::kNone;
    in.norms.block = weight->As<ConstAnyMatrix>();
    outputs.out = out->As<AnyMatrix>();
  } else {
    in.residual = rows->As<ConstAnyMatrix>();
    in.norm_weight = weight->As<ConstAnyMatrix>();
    outputs.normed = out->As<AnyMatrix>();
  }
  status = switchyard::Combine(in, outputs, options);
  return status.ok() ? nullptr : status.message();
}
