// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/expert_weights.h"

#include <cstddef>
#include <cstdint>

#include "src/c/call.h"

namespace switchyard::c {
namespace {

ExpertWeights WeightsOf(const swy_expert_weights& given) {
  ExpertWeights weights;
  uint8_t format, layout;
  Convert(&given.format, &format);
  Convert(&given.layout, &layout);
  weights.format = static_cast<WeightFormat>(format);
  weights.layout = static_cast<WeightLayout>(layout);
  weights.rows = given.rows;
  weights.cols = given.cols;
  Convert(&given.data, &weights.data);
  Convert(&given.scales, &weights.scales);
  return weights;
}
swy_expert_weights WeightsOf(const ExpertWeights& weights) {
  swy_expert_weights c = SWY_NO_EXPERT_WEIGHTS;
  c.format = static_cast<int32_t>(weights.format);
  c.layout = static_cast<int32_t>(weights.layout);
  c.rows = weights.rows;
  c.cols = weights.cols;
  Convert(&weights.data, &c.data);
  Convert(&weights.scales, &c.scales);
  return c;
}

ExpertTile TileOf(const swy_expert_tile& given) {
  ExpertTile tile = {};
  // A value that does not fit in 8 bits becomes 255, which is not an
  // ExpertProduct.
  tile.product = static_cast<ExpertProduct>(
      given.product < 0 || given.product > UINT8_MAX ? UINT8_MAX
                                                     : given.product);
  tile.expert = given.expert;
  tile.first_column = given.first_column;
  tile.worker = given.worker;
  Convert(&given.rows, &tile.rows);
  Convert(&given.out, &tile.out);
  return tile;
}

}  // namespace
}  // namespace switchyard::c

using namespace switchyard::c;

size_t swy_expert_weights_size(const swy_expert_weights* weights) noexcept {
  return weights == nullptr
             ? SIZE_MAX
             : switchyard::ExpertWeightsSize(WeightsOf(*weights));
}
size_t swy_packed_weights_size(const swy_expert_weights* weights) noexcept {
  return weights == nullptr
             ? SIZE_MAX
             : switchyard::PackedWeightsSize(WeightsOf(*weights));
}

swy_status swy_pack_weights(const swy_pack_weights_inputs* inputs,
                            const swy_pack_weights_outputs* outputs,
                            const swy_pack_weights_options* options,
                            const swy_executor* executor) noexcept {
  constexpr Texts texts = SWITCHYARD_C_TEXTS("PackWeights", "executor");
  return Call(texts, inputs, outputs, options,
              [&](const auto& in, auto& out, const auto& opt) {
                swy_expert_weights* const given =
                    AloneIn(outputs, &swy_pack_weights_outputs::weights);
                switchyard::ExpertWeights weights;
                if (given != nullptr) out.weights = &weights;
                const switchyard::Status status = WithExecutor(
                    texts, executor, [&](switchyard::Executor& who) {
                      return switchyard::PackWeights(in, out, opt, who);
                    });
                if (status.ok() && given != nullptr)
                  *given = WeightsOf(weights);
                return status;
              });
}

swy_row_format swy_operands_of(int32_t format) noexcept {
  swy_expert_weights weights = SWY_NO_EXPERT_WEIGHTS;
  weights.format = format;
  const switchyard::RowFormat rows =
      switchyard::OperandsOf(WeightsOf(weights).format);
  return {static_cast<int32_t>(rows.type),
          static_cast<int32_t>(rows.scale_type), rows.scale_columns,
          rows.has_sums};
}

void swy_set_costs(int32_t format, swy_experts_plan_options* options) noexcept {
  Argument<swy_experts_plan_options> given(options, ArgumentTexts());
  if (!given.status.ok()) return;
  swy_expert_weights weights = SWY_NO_EXPERT_WEIGHTS;
  weights.format = format;
  switchyard::SetCosts(WeightsOf(weights).format, &given.value);
  WriteFields(given.value, options);
}

swy_status swy_multiply_tile(const swy_expert_weights* weights,
                             const swy_expert_tile* tile) noexcept {
  if (weights == nullptr) return ToC(Invalid("MultiplyTile: weights: is null"));
  if (tile == nullptr) return ToC(Invalid("MultiplyTile: tile: is null"));
  return ToC(switchyard::MultiplyTile(WeightsOf(*weights), TileOf(*tile)));
}

swy_status swy_multiply_layer(void* layer_weights,
                              const swy_expert_tile* tile) noexcept {
  constexpr ArgumentTexts texts =
      SWITCHYARD_C_ARGUMENT_TEXTS("MultiplyTile", "layer_weights");
  const auto* const given =
      static_cast<const swy_layer_weights*>(layer_weights);
  const switchyard::Status status = Check(given, texts);
  if (!status.ok()) return ToC(status);
  if (tile == nullptr) return ToC(Invalid("MultiplyTile: tile: is null"));
  switchyard::LayerWeights layer;
  layer.gate_up = WeightsOf(AloneIn(given, &swy_layer_weights::gate_up));
  layer.gate = WeightsOf(AloneIn(given, &swy_layer_weights::gate));
  layer.up = WeightsOf(AloneIn(given, &swy_layer_weights::up));
  layer.down = WeightsOf(AloneIn(given, &swy_layer_weights::down));
  layer.shared_gate_up =
      WeightsOf(AloneIn(given, &swy_layer_weights::shared_gate_up));
  layer.shared_gate =
      WeightsOf(AloneIn(given, &swy_layer_weights::shared_gate));
  layer.shared_up = WeightsOf(AloneIn(given, &swy_layer_weights::shared_up));
  layer.shared_down =
      WeightsOf(AloneIn(given, &swy_layer_weights::shared_down));
  return ToC(layer(TileOf(*tile)));
}
