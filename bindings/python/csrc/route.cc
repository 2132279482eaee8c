// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Operators that call RouteTopK with the options of a preset.

#include "switchyard/route.h"

#include <torch/csrc/stable/library.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "options.h"
#include "switchyard/presets.h"
#include "torch_executor.h"

namespace switchyard {
namespace python {
namespace {

constexpr char kRoute[] = "route";
constexpr char kRecordRoute[] = "record_route";
constexpr char kPreset[] = "preset";

// Writes " name=value" for each option of routing.
void PutOptions(const Preset& preset, std::ostream& text) {
  for (size_t i = 0; OptionAt(preset, i).name != nullptr; ++i) {
    const PresetOption option = OptionAt(preset, i);
    if (std::strcmp(option.part, "route") != 0) continue;
    text << ' ' << option.name << '=' << option.value;
  }
}

// Returns the preset with the name `name`. The error for an unknown name
// suggests the nearest name.
Preset FindNamed(const char* op, const char* argument,
                 const std::string& name) {
  Preset preset;
  const Status status = FindPreset(name.c_str(), &preset);
  if (!status.ok()) {
    Fail(op, argument, "unknown: '" + name + "' (" + status.message() + ")");
  }
  return preset;
}

ConstAnyMatrix RowOf(const char* op, const char* argument,
                     const OptionalTensor& tensor, Tensor* keeper) {
  if (!tensor.has_value()) return {};
  Tensor row = *tensor;
  if (row.dim() == 1) row = torch::stable::view(row, {1, row.numel()});
  return MatrixOf(op, argument, row, keeper);
}

// Drops the options and inputs that only selection uses, because RouteTopK
// refuses them with given_ids.
void DropSelection(RouteInputs* in, RouteOptions* options) {
  if (options->num_expert_group > 1) options->num_expert_group = 1;
  options->topk_group = 0;
  options->select_on_rounded_score = false;
  if (!options->bias_in_weight) in->correction_bias = {};
}

// Returns ids, weights, and weights of identity experts. `options`, such as
// "renormalize=1 num_expert_group=8", replaces some options of the preset.
std::tuple<Tensor, Tensor, Tensor> RouteTo(
    const char* op, const Tensor& logits, const std::string& preset_name,
    int64_t top_k, const OptionalTensor& record,
    const OptionalTensor& correction_bias, const OptionalTensor& expert_scale,
    const std::string& options, std::optional<ScalarType> dtype,
    const OptionalTensor& given_ids, const OptionalTensor& token_mask) {
  Preset preset = FindNamed(op, "preset", preset_name);
  SetOptions(op, "route", options, &preset);
  Tensor logits_keeper = logits, bias_keeper = logits, scale_keeper = logits,
         given_keeper = logits, mask_keeper = logits;
  RouteInputs in = {MatrixOf(op, "logits", logits, &logits_keeper)};
  CheckFloat(op, "logits", in.logits.type);
  in.correction_bias =
      RowOf(op, "correction_bias", correction_bias, &bias_keeper);
  in.expert_scale = RowOf(op, "expert_scale", expert_scale, &scale_keeper);
  in.token_mask = RowOf(op, "token_mask", token_mask, &mask_keeper);
  if (given_ids.has_value()) {
    in.given_ids = MatrixOf(op, "given_ids", *given_ids, &given_keeper);
    DropSelection(&in, &preset.route);
  }
  Check(top_k > 0 && top_k <= static_cast<int64_t>(in.logits.cols), op, "top_k",
        "not in [1, experts]");
  const Type type = FloatOf(op, dtype.value_or(logits.scalar_type()));
  const size_t tokens = in.logits.rows;
  const bool identity = preset.route.num_zero_experts > 0;
  const Tensor ids = Empty(Type::kI64, tokens, top_k);
  const Tensor weights = Empty(type, tokens, top_k);
  const Tensor rest = Empty(type, identity ? tokens : 0, 1);
  RouteOutputs out = {
      AnyMatrix(static_cast<int64_t*>(ids.data_ptr()), tokens, top_k),
      AnyMatrix(weights.data_ptr(), type, tokens, top_k, top_k)};
  if (identity) {
    out.identity_weights = AnyMatrix(rest.data_ptr(), type, tokens, 1, 1);
  }
  if (record.has_value()) out.record = MatrixOf(op, "record", *record);
  TorchExecutor pool(TorchThreads());
  Check(op, RouteTopK(in, out, preset.route, pool));
  return {ids, weights, rest};
}

std::tuple<Tensor, Tensor, Tensor> Route(
    const Tensor& logits, const std::string& preset, int64_t top_k,
    const OptionalTensor& correction_bias, const OptionalTensor& expert_scale,
    const std::string& options, std::optional<ScalarType> dtype,
    const OptionalTensor& given_ids, const OptionalTensor& token_mask) {
  return RouteTo(kRoute, logits, preset, top_k, {}, correction_bias,
                 expert_scale, options, dtype, given_ids, token_mask);
}

// Routes like Route(), and also writes the selected experts to `record`.
std::tuple<Tensor, Tensor, Tensor> RecordRoute(
    const Tensor& logits, const std::string& preset, int64_t top_k,
    const Tensor& record, const OptionalTensor& correction_bias,
    const OptionalTensor& expert_scale, const std::string& options,
    std::optional<ScalarType> dtype, const OptionalTensor& given_ids,
    const OptionalTensor& token_mask) {
  return RouteTo(kRecordRoute, logits, preset, top_k, record, correction_bias,
                 expert_scale, options, dtype, given_ids, token_mask);
}

// Returns a line for each preset: its name, then " name=value" for each option.
std::string PresetsAsText() {
  std::ostringstream text;
  text.precision(9);
  for (const Preset& preset : Presets()) {
    text << preset.family;
    PutOptions(preset, text);
    text << " correction_bias=" << preset.correction_bias
         << " expert_scale=" << preset.expert_scale
         << " norm_topk_prob=" << preset.norm_topk_prob
         << " in_model_type=" << preset.in_model_type << '\n';
  }
  return text.str();
}

// Applies a config.json to the preset of a family. Returns num_experts, top_k
// and all options. `config` has a line for each scalar of config.json, such as
// norm_topk_prob=1. A line with a text, hidden_act="silu, has a quote before
// the text and none behind it. A line with null is the key alone.
std::string ConfiguredPreset(const std::string& family,
                             const std::string& config) {
  Preset preset = FindNamed(kPreset, "family", family);
  ModelConfig fields;
  std::vector<std::string> texts;  // owns the texts of the ModelConfig
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) texts.push_back(line);
  for (const std::string& text : texts) {
    const size_t equal = text.find('=');
    const std::string key = text.substr(0, equal);
    const char* const value =
        equal == text.npos ? nullptr : text.c_str() + equal + 1;
    const Status status =
        value == nullptr ? SetNull(key.c_str(), &fields)
        : *value == '"'
            ? SetField(key.c_str(), value + 1, &fields)
            : SetField(key.c_str(), std::strtod(value, nullptr), &fields);
    if (!status.ok()) Fail(kPreset, "config", status.message());
  }
  const Status status = ApplyConfig(fields, &preset);
  if (!status.ok()) Fail(kPreset, "config", status.message());
  std::ostringstream text;
  text.precision(9);
  text << preset.num_experts << ' ' << preset.top_k;
  PutOptions(preset, text);
  return text.str();
}

}  // namespace
}  // namespace python
}  // namespace switchyard

STABLE_TORCH_LIBRARY_FRAGMENT(switchyard, m) {
  m.def(
      "route(Tensor logits, str preset, int top_k, "
      "Tensor? correction_bias=None, Tensor? expert_scale=None, *, "
      "str options='', ScalarType? dtype=None, Tensor? given_ids=None, "
      "Tensor? token_mask=None) -> (Tensor, Tensor, Tensor)");
  m.def(
      "record_route(Tensor logits, str preset, int top_k, Tensor(a!) record, "
      "Tensor? correction_bias=None, Tensor? expert_scale=None, *, "
      "str options='', ScalarType? dtype=None, Tensor? given_ids=None, "
      "Tensor? token_mask=None) -> (Tensor, Tensor, Tensor)");
  m.def("presets() -> str");
  m.def("preset(str family, str config) -> str");
}
STABLE_TORCH_LIBRARY_IMPL(switchyard, CPU, m) {
  m.impl("route", TORCH_BOX(&switchyard::python::Route));
  m.impl("record_route", TORCH_BOX(&switchyard::python::RecordRoute));
}
STABLE_TORCH_LIBRARY_IMPL(switchyard, CompositeExplicitAutograd, m) {
  m.impl("presets", TORCH_BOX(&switchyard::python::PresetsAsText));
  m.impl("preset", TORCH_BOX(&switchyard::python::ConfiguredPreset));
}
