// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "layer_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "programs/program.h"

namespace moe_layer {
namespace {

using program::InputError;
using switchyard::Type;
using Shape = std::vector<uint64_t>;

void Replace(std::string* text, const std::string& what,
             const std::string& with) {
  const size_t at = text->find(what);
  if (at != std::string::npos) text->replace(at, what.size(), with);
}

WeightTensor FindTensor(Checkpoint& checkpoint, const std::string& name,
                        const Shape& shape) {
  static constexpr std::pair<const char*, Type> kTypes[] = {
      {"BF16", Type::kBF16}, {"F16", Type::kF16}, {"F32", Type::kF32}};
  const auto [tensor, file] = checkpoint.Find(name, shape);
  const std::string where = file + ": tensor '" + name + "'";
  for (const auto& [dtype, type] : kTypes) {
    if (tensor->dtype == dtype) return {shape, tensor->data, type, where};
  }
  throw InputError(where + ": dtype " + tensor->dtype +
                   " is not supported; there are BF16, F16, F32");
}

// Finds the tensors of a layer by the names that its model family uses.
class Finder {
 public:
  Finder(Checkpoint& checkpoint, const FamilyLayer& names, size_t layer)
      : checkpoint_(checkpoint), names_(names), layer_(layer) {
    for (const char* const root : names.roots) {
      if (root == nullptr) break;
      root_ = root;
      if (checkpoint.Has(Name(names.vectors[kNorm]))) return;
    }
    root_ = names.roots.front();  // error messages name the first root
  }

  std::string Name(const std::string& in_layer, size_t expert = 0,
                   size_t layers_on = 0) const {
    return Whole(names_.prefix + in_layer, expert, layers_on);
  }
  std::string Whole(std::string pattern, size_t expert = 0,
                    size_t layers_on = 0) const {
    Replace(&pattern, "{root}", root_);
    Replace(&pattern, "{layer}", std::to_string(layer_ + layers_on));
    Replace(&pattern, "{expert}", std::to_string(expert));
    return pattern;
  }
  WeightTensor Find(const std::string& pattern, const Shape& shape,
                    size_t expert = 0) {
    return FindTensor(checkpoint_, Name(pattern, expert), shape);
  }

  WeightTensor FindVector(Vector which, const Shape& shape, bool last_layer) {
    if (names_.vectors[which] == nullptr) return {};
    std::string name = Name(names_.vectors[which]);
    if (which == kNextNorm) {
      name = last_layer ? Whole(names_.last_norm)
                        : Name(names_.vectors[which], 0, 1);
    }
    // A checkpoint may store a vector as a matrix of one row.
    Shape row = shape;
    if (shape.size() == 1) row.insert(row.begin(), 1);
    const bool is_row = checkpoint_.HasShape(name, row);
    return FindTensor(checkpoint_, name, is_row ? row : shape);
  }

  std::vector<LayerPlan::Expert> FindExperts(const MoeShape& shape,
                                             bool* interleaved);
  LayerPlan::Expert FindShared(const MoeShape& shape) {
    const uint64_t hidden = shape.hidden;
    const uint64_t inter = shape.shared_intermediate;
    const auto& [module, names] = names_.shared;
    if (names.gate_up == nullptr) {
      return Separate(names_.shared, 0, hidden, inter);
    }
    const WeightTensor both =
        Find(std::string(module) + names.gate_up, {2 * inter, hidden});
    return {both.Part("gate", 0, inter, hidden, hidden),
            both.Part("up", inter * hidden, inter, hidden, hidden),
            Find(std::string(module) + names.down, {hidden, inter})};
  }

 private:
  // Finds an expert that has three separate tensors.
  LayerPlan::Expert Separate(const ExpertTensors& tensors, size_t expert,
                             uint64_t hidden, uint64_t intermediate) {
    const std::string module = tensors.module;
    return {Find(module + tensors.names.gate, {intermediate, hidden}, expert),
            Find(module + tensors.names.up, {intermediate, hidden}, expert),
            Find(module + tensors.names.down, {hidden, intermediate}, expert)};
  }

  Checkpoint& checkpoint_;
  const FamilyLayer& names_;
  const size_t layer_;
  std::string root_;
};

std::vector<LayerPlan::Expert> Finder::FindExperts(const MoeShape& shape,
                                                   bool* interleaved) {
  const uint64_t count = shape.num_experts;
  const uint64_t hidden = shape.hidden;
  const uint64_t inter = shape.intermediate;
  // A family may name its tensors in several ways. Uses the first way in
  // which the checkpoint names the tensor of gate. If no way fits, error
  // messages name the tensors of the first way.
  const auto is_there = [&](const ExpertTensors& tensors) {
    const auto& [module, names] = tensors;
    return module != nullptr &&
           checkpoint_.Has(
               Name(std::string(module) +
                    (names.gate_up == nullptr ? names.gate : names.gate_up)));
  };
  const auto& ways = names_.experts;
  const auto* found = std::find_if(ways.begin(), ways.end(), is_there);
  if (found == ways.end()) found = ways.begin();
  const std::string module = found->module;
  const ExpertNames* const way = &found->names;
  *interleaved = way->interleaved;
  std::vector<LayerPlan::Expert> experts;
  if (way->gate_up == nullptr) {
    for (size_t e = 0; e < count; ++e) {
      experts.push_back(Separate(*found, e, hidden, inter));
    }
    return experts;
  }
  const bool turned = way->transposed;
  const WeightTensor gate_up =
      Find(module + way->gate_up, turned ? Shape{count, hidden, 2 * inter}
                                         : Shape{count, 2 * inter, hidden});
  const WeightTensor down =
      Find(module + way->down,
           turned ? Shape{count, inter, hidden} : Shape{count, hidden, inter});
  // Returns `rows` rows of expert e's matrix [out, in]. The first of these rows
  // is row `skipped`. If `turned`, the tensor stores each matrix as [in, out].
  const auto part = [&](const WeightTensor& of, const std::string& what,
                        size_t e, size_t skipped, size_t rows, size_t out,
                        size_t in) {
    return of.Part(what + " of expert " + std::to_string(e),
                   e * out * in + skipped * (turned ? 1 : in), rows, in,
                   turned ? 1 : in, turned ? out : 1);
  };
  for (size_t e = 0; e < count; ++e) {
    LayerPlan::Expert expert;
    if (way->interleaved) {
      expert.gate =
          part(gate_up, "gate and up", e, 0, 2 * inter, 2 * inter, hidden);
    } else {
      expert.gate = part(gate_up, "gate", e, 0, inter, 2 * inter, hidden);
      expert.up = part(gate_up, "up", e, inter, inter, 2 * inter, hidden);
    }
    expert.down = part(down, "down", e, 0, hidden, hidden, inter);
    experts.push_back(std::move(expert));
  }
  return experts;
}

}  // namespace

LayerPlan PlanLayer(std::shared_ptr<Checkpoint> checkpoint,
                    const ModelConfig& config, size_t layer) {
  const FamilyLayer& names = config.layer();
  LayerPlan plan;
  plan.action = "loading layer " + std::to_string(layer);
  plan.title = std::string(config.family()) + ", layer " +
               std::to_string(layer) + " of " +
               std::to_string(config.num_layers());
  plan.source = checkpoint->ConfigPath();
  plan.shape = config.shape();
  plan.checkpoint = std::move(checkpoint);
  MoeShape& shape = plan.shape;
  const uint64_t hidden = shape.hidden;
  const uint64_t num_experts = shape.num_experts;
  const uint64_t num_logits = shape.NumLogits();
  const bool last = layer + 1 == config.num_layers();

  Finder finder(*plan.checkpoint, names, layer);
  // Finds the small tensors before the experts, so that errors name a wrong
  // small tensor first.
  const auto find_vector = [&](Vector which, const Shape& dims) {
    plan.vectors[which] = finder.FindVector(which, dims, last);
  };
  for (const Vector norm : {kNorm, kNextNorm, kRouterNorm, kSharedNorm,
                            kRoutedOutNorm, kSharedOutNorm, kBlockOutNorm}) {
    find_vector(norm, {hidden});
  }
  plan.router = finder.Find(names.router, {num_logits, hidden});
  find_vector(kCorrectionBias, {num_logits});
  find_vector(kExpertScale, {num_experts});
  find_vector(kGateUpBias, {num_experts, 2 * uint64_t{shape.intermediate}});
  find_vector(kDownBias, {num_experts, hidden});
  find_vector(kLayerScalar, {1});
  if (names.router_norm_by_root) {
    plan.vectors[kRouterNorm].factor =
        1 / std::sqrt(static_cast<float>(shape.hidden));
  }

  bool interleaved = false;
  plan.experts = finder.FindExperts(shape, &interleaved);
  if (interleaved) {
    shape.activate.layout = switchyard::GateUpLayout::kInterleaved;
  }
  if (shape.shared_intermediate != 0) {
    plan.shared = finder.FindShared(shape);
    if (shape.HasSharedLogit()) {
      plan.shared_logit = finder.Find(names.shared_logit, {1, hidden});
    }
  }
  return plan;
}

}  // namespace moe_layer
