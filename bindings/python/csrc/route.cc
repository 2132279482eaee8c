// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "route.h"

#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <type_traits>
#include <vector>

#include "switchyard/presets.h"
#include "switchyard/route.h"
#include "torch_executor.h"

namespace switchyard {
namespace python {
namespace {

constexpr char kOp[] = "route";
constexpr char kPreset[] = "preset";

// Calls visit(name, field) for each option that text may say.
template <class Options, class Visit>
void ForEachOption(Options& route, Visit visit) {
#define SWITCHYARD_VISIT(field) visit(#field, route.field)
  SWITCHYARD_VISIT(renormalize);
  SWITCHYARD_VISIT(clamp);
  SWITCHYARD_VISIT(score);
  SWITCHYARD_VISIT(divisor);
  SWITCHYARD_VISIT(eps);
  SWITCHYARD_VISIT(zero_sum_is_zero);
  SWITCHYARD_VISIT(weight_of);
  SWITCHYARD_VISIT(bias_place);
  SWITCHYARD_VISIT(bias_in_weight);
  SWITCHYARD_VISIT(select_on_rounded_score);
  SWITCHYARD_VISIT(routed_scaling_factor);
  SWITCHYARD_VISIT(logit_scale);
  SWITCHYARD_VISIT(logit_softcap);
  SWITCHYARD_VISIT(logit_clip);
  SWITCHYARD_VISIT(num_expert_group);
  SWITCHYARD_VISIT(topk_group);
  SWITCHYARD_VISIT(group_score_of);
  SWITCHYARD_VISIT(dropped_key_is_zero);
  SWITCHYARD_VISIT(num_zero_experts);
  SWITCHYARD_VISIT(num_shared_experts);
  SWITCHYARD_VISIT(shared_weight);
  SWITCHYARD_VISIT(shared_logits);
  SWITCHYARD_VISIT(round_to);
  SWITCHYARD_VISIT(jitter_eps);
  SWITCHYARD_VISIT(needs_correction_bias);
  SWITCHYARD_VISIT(needs_expert_scale);
  SWITCHYARD_VISIT(needs_groups);
  SWITCHYARD_VISIT(needs_config);
#undef SWITCHYARD_VISIT
}

void Overwrite(const std::string& text, RouteOptions* route) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equal = word.find('=');
    bool found = false;
    ForEachOption(*route, [&](const char* name, auto& field) {
      using Field = std::remove_reference_t<decltype(field)>;
      if (equal == std::string::npos || word.compare(0, equal, name) != 0)
        return;
      std::istringstream value(word.substr(equal + 1));
      double number = 0;
      if (!(value >> number) || !value.eof()) return;
      // Converting a number that no count or enumerator can be would be
      // undefined.
      if (!std::is_floating_point_v<Field> &&
          !(number >= 0 && number < 256e6)) {
        return;
      }
      field = static_cast<Field>(
          static_cast<std::conditional_t<std::is_enum_v<Field>, int, Field>>(
              number));
      found = true;
    });
    if (!found)
      Fail(kOp, "options", "not name=number of a known name: '" + word + "'");
  }
}

// The preset of that name; an unknown one fails with the nearest name there is.
Preset FindNamed(const char* op, const char* argument,
                 const std::string& name) {
  Preset preset;
  const Status status = FindPreset(name.c_str(), &preset);
  if (!status.ok()) {
    Fail(op, argument, "unknown: '" + name + "' (" + status.message() + ")");
  }
  return preset;
}

ConstAnyMatrix RowOf(const char* argument, const OptionalTensor& tensor,
                     Tensor* keeper) {
  if (!tensor.has_value()) return {};
  Tensor row = *tensor;
  if (row.dim() == 1) row = torch::stable::view(row, {1, row.numel()});
  return MatrixOf(kOp, argument, row, keeper);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> Route(
    const Tensor& logits, const std::string& preset_name, int64_t top_k,
    const OptionalTensor& correction_bias, const OptionalTensor& expert_scale,
    const std::string& options, std::optional<ScalarType> dtype) {
  Preset preset = FindNamed(kOp, "preset", preset_name);
  Overwrite(options, &preset.route);
  Tensor logits_keeper = logits, bias_keeper = logits, scale_keeper = logits;
  RouteInputs in = {MatrixOf(kOp, "logits", logits, &logits_keeper)};
  CheckFloat(kOp, "logits", in.logits.type);
  in.correction_bias = RowOf("correction_bias", correction_bias, &bias_keeper);
  in.expert_scale = RowOf("expert_scale", expert_scale, &scale_keeper);
  Check(top_k > 0 && top_k <= static_cast<int64_t>(in.logits.cols), kOp,
        "top_k", "not in [1, experts]");
  const Type type = FloatOf(kOp, dtype.value_or(logits.scalar_type()));
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
  TorchExecutor pool(TorchThreads());
  Check(kOp, RouteTopK(in, out, preset.route, pool));
  return {ids, weights, rest};
}

std::string PresetsAsText() {
  std::ostringstream text;
  text.precision(9);
  for (const Preset& preset : Presets()) {
    text << preset.family;
    ForEachOption(preset.route, [&](const char* name, const auto& field) {
      text << ' ' << name << '=' << static_cast<double>(field);
    });
    text << " correction_bias=" << preset.correction_bias
         << " expert_scale=" << preset.expert_scale
         << " norm_topk_prob=" << preset.norm_topk_prob
         << " in_model_type=" << preset.in_model_type << '\n';
  }
  return text.str();
}

std::string ConfiguredPreset(const std::string& family,
                             const std::string& config) {
  Preset preset = FindNamed(kPreset, "family", family);
  ModelConfig fields;
  std::vector<std::string> texts;  // ModelConfig points into them
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) texts.push_back(line);
  for (const std::string& text : texts) {
    const size_t equal = text.find('=');
    Check(equal != std::string::npos, kPreset, "config",
          "a line that is not key=value");
    const std::string key = text.substr(0, equal);
    const char* const value = text.c_str() + equal + 1;
    char* end = nullptr;
    const double number = std::strtod(value, &end);
    const Status status = *value != '\0' && *end == '\0'
                              ? SetField(key.c_str(), number, &fields)
                              : SetField(key.c_str(), value, &fields);
    if (!status.ok()) Fail(kPreset, "config", status.message());
  }
  const Status status = ApplyConfig(fields, &preset);
  if (!status.ok()) Fail(kPreset, "config", status.message());
  std::ostringstream text;
  text.precision(9);
  text << preset.num_experts << ' ' << preset.top_k;
  ForEachOption(preset.route, [&](const char* name, const auto& field) {
    text << ' ' << name << '=' << static_cast<double>(field);
  });
  return text.str();
}

}  // namespace python
}  // namespace switchyard
