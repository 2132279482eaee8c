// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "testing/model_layer.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "switchyard/route.h"
#include "testing/floats.h"
#include "testing/inputs.h"

namespace switchyard::testing_support {
namespace {

std::vector<float> Uniforms(size_t count, uint32_t seed, float range) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = Uniform(seed, i, range);
  return values;
}
// Aborts if `status` is an error. This file makes the arguments, so they have
// to be valid.
void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "ModelLayer: %s\n", status.message());
  std::abort();
}

// Makes random codes and small scales, so that most weights are below 1 in
// magnitude. The gate's products then have a magnitude of a few units.
WeightBytes RealisticWeights(WeightFormat format, size_t num_experts,
                             size_t rows, size_t cols, uint32_t seed) {
  WeightBytes w = RandomWeights(format, num_experts, rows, cols, seed, false);
  for (size_t i = 0; i < w.scales.size(); ++i) {
    w.scales[i] = Uniform(seed + 1, i, 0x1p-7f);
  }
  if (IsFloatFormat(format)) {
    for (size_t i = 0; i < num_experts * rows * cols; ++i) {
      RoundAt(FloatTypeOf(format), Uniform(seed + 1, i, 0.5f), w.data.data(),
              i);
    }
  }
  if (HasAnyColumns(format)) return w;
  const size_t block = StoredFormatOf(format).bytes;
  for (size_t i = 0; i < w.data.size(); i += block) {
    const auto put = [&](size_t at, float range) {
      const auto d = Round<Float16>(Uniform(seed + 1, i + at, range));
      std::memcpy(&w.data[i + at], &d, sizeof(d));
    };
    switch (format) {
      case WeightFormat::kQ8_0:
        put(0, 0x1p-7f);
        break;
      case WeightFormat::kMXFP4:
        w.data[i] = static_cast<uint8_t>(122 + Hash(seed + 1, i) % 3);
        break;
      case WeightFormat::kQ4_K:
        put(0, 0x1p-10f);
        put(2, 0x1p-7f);
        break;
      case WeightFormat::kQ6_K:
        put(208, 0x1p-11f);
        break;
      default:  // codes of four bits
        put(0, 0x1p-3f);
    }
  }
  return w;
}

}  // namespace

void ModelLayer::Weights::Make(WeightFormat format, size_t num_experts,
                               size_t rows, size_t cols, uint32_t seed) {
  bytes = RealisticWeights(format, num_experts, rows, cols, seed);
  stored = bytes.View();
}

void ModelLayer::Weights::View(const Weights& both, bool is_second) {
  stored = both.stored;
  const auto half = [&](const ConstAnyMatrix& m) {
    const size_t middle = m.cols / 2;
    return is_second ? m.ColRange(middle, m.cols) : m.ColRange(0, middle);
  };
  stored.rows /= 2;
  stored.data = half(stored.data);
  if (stored.scales.data != nullptr) stored.scales = half(stored.scales);
}

Status ModelLayer::Weights::Pack(Executor& executor) {
  const size_t size = PackedWeightsSize(stored), experts = stored.data.rows;
  memory.resize(experts * size);
  return PackWeights({stored}, {{memory.data(), experts, size}, &packed}, {},
                     executor);
}

ModelLayer::ModelLayer(const ModelFamily& family, const ModelFormats& formats,
                       size_t tokens, Executor& executor)
    : num_experts_(family.num_experts),
      top_k_(family.top_k),
      hidden_size_(256),
      formats_(formats) {
  // ApplyConfig() reads only the fields that the family has.
  ModelConfig config;
  config.num_experts = num_experts_;
  config.num_experts_per_tok = top_k_;
  config.norm_topk_prob = true;
  config.n_group = 4;
  config.topk_group = 2;
  config.routed_scaling_factor = 2.5f;
  config.n_shared_experts = 1;
  config.swiglu_limit = 7.0f;
  config.rms_norm_eps = 1e-6f;
  Check(FindPreset(family.family, &preset_));
  Check(ApplyConfig(config, &preset_));

  const bool is_super = StoredFormatOf(formats.gate_up).block == 256;
  const bool is_down_super = StoredFormatOf(formats.down).block == 256;
  intermediate_ = is_down_super ? 256 : is_super ? 288 : 96;
  const auto make = [&](Products& p, size_t experts, uint32_t seed) {
    p.both.Make(formats.gate_up, experts, 2 * intermediate_, hidden_size_,
                seed);
    p.gate.View(p.both, false);
    p.up.View(p.both, true);
    p.down.Make(formats.down, experts, hidden_size_, intermediate_, seed + 2);
    for (Weights* w : {&p.both, &p.gate, &p.up, &p.down}) {
      const Status status = w->Pack(executor);
      if (made_.ok()) made_ = status;
    }
  };
  make(routed_, num_experts_, 101);
  if (preset_.form.num_shared_experts != 0) {
    shared_intermediate_ = intermediate_;
    make(shared_, 1, 105);
  }
  for (const float f : Uniforms(tokens * hidden_size_, 109, 1.0f)) {
    hidden_.push_back(Round<BFloat16>(f).bits);
  }
  logits_ = Uniforms(tokens * num_experts_, 110, 4.0f);
  correction_bias_ = Uniforms(num_experts_, 111, 0.125f);
  residual_ = Uniforms(tokens * hidden_size_, 112, 4.0f);
  norm_ = Uniforms(hidden_size_, 113, 2.0f);
  gate_bias_ = Uniforms(num_experts_ * 2 * intermediate_, 114, 1.0f);
  down_bias_ = Uniforms(num_experts_ * hidden_size_, 115, 1.0f);
}

bool ModelLayer::IsSplit(const ModelCut& cut) const {
  return cut.is_split && preset_.activate.layout == GateUpLayout::kConcatenated;
}

LayerWeights ModelLayer::WeightsOf(const ModelCut& cut) const {
  const auto of = [&](const Weights& w) {
    return cut.weights == ModelCut::kPacked ? w.packed : w.stored;
  };
  return {of(routed_.both), of(routed_.gate), of(routed_.up), of(routed_.down),
          of(shared_.both), of(shared_.gate), of(shared_.up), of(shared_.down)};
}

Status ModelLayer::Multiply(const ModelCut& cut, const LayerWeights& weights,
                            const ExpertTile& tile) const {
  const bool is_down = tile.product == ExpertProduct::kDown;
  const Matrix<float> out(static_cast<float*>(tile.out.data), tile.out.rows,
                          tile.out.cols, tile.out.stride);
  if (cut.weights != ModelCut::kByDefinition) {
    const Status status = weights(tile);
    if (!status.ok()) return status;
  } else {
    const bool is_shared = tile.expert == ExpertTile::kShared;
    const Products& products = is_shared ? shared_ : routed_;
    const NaiveProduct naive =
        MultiplyNaively((is_down ? products.down : products.both).stored,
                        is_shared ? 0 : static_cast<size_t>(tile.expert),
                        tile.rows, tile.first_column, out.cols);
    for (size_t i = 0; i < naive.values.size(); ++i) {
      out.Row(i / out.cols)[i % out.cols] = naive.values[i];
    }
  }
  if (is_down && preset_.form.has_expert_biases) {
    const float* const bias =
        &down_bias_[static_cast<size_t>(tile.expert) * hidden_size_ +
                    tile.first_column];
    for (size_t r = 0; r < out.rows; ++r) {
      for (size_t c = 0; c < out.cols; ++c) out.Row(r)[c] += bias[c];
    }
  }
  return Status();
}

Status ModelLayer::Run(const ModelCut& cut, size_t begin, size_t end,
                       Executor& executor, ModelResult* result) const {
  if (!made_.ok()) return made_;
  const size_t n = end - begin;
  result->ids.assign(n * top_k_, -7);
  result->weights.assign(n * top_k_, kNaN);
  result->out.assign(n * hidden_size_, kNaN);
  result->normed.assign(n * hidden_size_, kNaN);

  RouteInputs logits;
  logits.logits = {&logits_[begin * num_experts_], n, num_experts_};
  if (preset_.correction_bias) {
    logits.correction_bias = {correction_bias_.data(), 1, num_experts_};
  }
  const AnyMatrix ids(result->ids.data(), n, top_k_);
  const AnyMatrix topk_weights(result->weights.data(), n, top_k_);
  Status status =
      RouteTopK(logits, {ids, topk_weights}, preset_.route, executor);
  if (!status.ok()) return status;

  ExpertsPlanOptions shape;
  shape.num_experts = num_experts_;
  shape.hidden = hidden_size_;
  shape.intermediate = intermediate_;
  shape.shared_intermediate = shared_intermediate_;
  SetCosts(formats_.gate_up, &shape);
  shape.workers = cut.workers;
  shape.tile_columns = cut.tile_columns;
  shape.least_cost = 0;
  std::vector<int32_t> memory(ExpertsPlanSize(n, top_k_, shape));
  ExpertsPlan plan;
  status = PlanExperts({ids}, {memory, &plan}, shape, executor);
  if (!status.ok()) return status;

  ExpertsOptions options;
  options.activate = preset_.activate;
  if (IsSplit(cut)) options.activate.layout = GateUpLayout::kSplit;
  options.shared_activate = options.activate;
  options.combine = preset_.combine;
  options.operands = OperandsOf(formats_.gate_up);
  if (formats_.down != formats_.gate_up) {
    options.down_operands = OperandsOf(formats_.down);
  }
  std::vector<int32_t> scratch(
      ExpertsScratchSize(plan, options, executor.Concurrency()));
  ExpertsInputs in;
  in.plan = &plan;
  in.hidden =
      ConstAnyMatrix(static_cast<const void*>(&hidden_[begin * hidden_size_]),
                     Type::kBF16, n, hidden_size_, hidden_size_);
  if (preset_.form.has_expert_biases) {
    in.gate_bias = {gate_bias_.data(), num_experts_, 2 * intermediate_};
  }
  in.combine.topk_weights = topk_weights;
  in.combine.residual = {&residual_[begin * hidden_size_], n, hidden_size_};
  in.combine.norm_weight = {norm_.data(), 1, hidden_size_};
  in.combine.shared.kind = preset_.form.shared_gate;
  in.scratch = scratch;
  CombineOutputs out;
  out.out = {result->out.data(), n, hidden_size_};
  out.normed = AnyMatrix(result->normed.data(), n, hidden_size_);
  const LayerWeights weights = WeightsOf(cut);
  return RunExperts(
      in, out, options,
      [&](const ExpertTile& tile) { return Multiply(cut, weights, tile); },
      executor);
}

}  // namespace switchyard::testing_support
