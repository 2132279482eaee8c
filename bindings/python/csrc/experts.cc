// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The experts of a layer: from routed tokens to their weighted sum.

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "gemm.h"
#include "packed.h"
#include "switchyard/activate.h"
#include "switchyard/layer.h"
#include "switchyard/presets.h"
#include "torch_executor.h"
#include "workspace.h"

namespace switchyard {
namespace python {
namespace {

constexpr char kOp[] = "experts";

ActivateOptions OptionsOf(const char* op, const std::string& activation,
                          const std::string& layout, double alpha, double beta,
                          double linear_beta, double limit, bool limit_after) {
  Preset preset;
  if (!SetOption("activation", activation.c_str(), &preset).ok()) {
    Fail(op, "activation", "unknown: '" + activation + "'");
  }
  if (!SetOption("layout", layout.c_str(), &preset).ok()) {
    Fail(op, "layout", "unknown: '" + layout + "'");
  }
  ActivateOptions options = preset.activate;
  options.alpha = static_cast<float>(alpha);
  options.beta = static_cast<float>(beta);
  options.linear_beta = static_cast<float>(linear_beta);
  options.limit = static_cast<float>(limit);
  options.limit_place =
      limit_after ? ActivatePlace::kAfter : ActivatePlace::kBefore;
  return options;
}

// A layer's arguments.
struct Layer {
  ConstAnyMatrix hidden, ids, weights;
  const Projection* gate;  // with a split layout, else null
  const Projection& up;
  const Projection& down;
  ActivateOptions activate;

  size_t top_k() const { return ids.cols; }
};

void CheckLayer(const Layer& layer) {
  const Projection& up = layer.up;
  const Projection& down = layer.down;
  const bool both_in_up =
      layer.activate.layout == GateUpLayout::kConcatenated ||
      layer.activate.layout == GateUpLayout::kInterleaved;
  const int64_t halves = both_in_up ? 2 : 1;
  CheckFloat(kOp, "hidden", layer.hidden.type);
  Check(layer.ids.type == Type::kI64 || layer.ids.type == Type::kI32, kOp,
        "topk_ids", "not int64 or int32");
  Check(layer.ids.rows == layer.hidden.rows, kOp, "topk_ids",
        "not a row for each of hidden");
  CheckFloat(kOp, "topk_weights", layer.weights.type);
  Check(layer.weights.rows == layer.ids.rows &&
            layer.weights.cols == layer.ids.cols,
        kOp, "topk_weights", "not of the shape of topk_ids");
  Check(up.experts() > 0, kOp, "up", "no experts");
  Check(up.in() == static_cast<int64_t>(layer.hidden.cols), kOp, "up",
        "not [experts, columns, hidden], or with transposed [experts, hidden, "
        "columns]");
  Check(down.experts() == up.experts(), kOp, "down",
        "not as many experts as up");
  Check(down.type() == up.type(), kOp, "down", "not of the dtype of up");
  Check(down.in() * halves == up.out(), kOp, "down",
        both_in_up ? "not of half of the columns of up"
                   : "not of the columns of up, as this layout has them");
  Check(down.out() == up.in(), kOp, "down", "not of the columns of hidden");
  const bool is_split = layer.activate.layout == GateUpLayout::kSplit;
  Check((layer.gate != nullptr) == is_split, kOp, "gate",
        is_split ? "missing, and the layout is 'split'"
                 : "given, and the layout is not 'split'");
  if (!is_split) return;
  Check(layer.gate->experts() == up.experts() && layer.gate->in() == up.in() &&
            layer.gate->out() == up.out() && layer.gate->type() == up.type(),
        kOp, "gate", "not of the shape and dtype of up");
}

// The layer's products, a tile on the thread that calls. An exception is kept
// for the thread that called the operator.
class Products {
 public:
  explicit Products(const Layer& layer) : layer_(layer) {}

  Status operator()(const ExpertTile& tile) const noexcept {
    try {
      const bool is_down = tile.product == ExpertProduct::kDown;
      const Projection& projection = is_down ? layer_.down
                                     : tile.product == ExpertProduct::kGate
                                         ? *layer_.gate
                                         : layer_.up;
      // Activate adds the other biases.
      projection.Multiply(tile.expert, tile.rows, tile.first_column, tile.out,
                          /*add_bias=*/is_down);
      return Status();
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (thrown_ == nullptr) thrown_ = std::current_exception();
      return Status(StatusCode::kInternal, "a product failed");
    }
  }
  // Throws what a product has thrown, after all have ended.
  void Rethrow() const {
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  }

 private:
  const Layer& layer_;
  mutable std::mutex mutex_;
  mutable std::exception_ptr thrown_;
};

Tensor Run(const Layer& layer, bool allow_dropped) {
  TorchExecutor pool(TorchThreads());
  const size_t tokens = layer.ids.rows;
  ExpertsPlanOptions shape;
  shape.num_experts = static_cast<size_t>(layer.up.experts());
  shape.hidden = layer.hidden.cols;
  shape.intermediate = static_cast<size_t>(layer.down.in());
  shape.workers = pool.Concurrency();
  if (layer.down.is_packed()) shape.tile_columns = 0;
  shape.allow_dropped = true;
  // A worker's share of few tokens is cut to some two parts. A single row takes
  // longer by parts of the columns of transposed weights: 5.2 ms instead of 3.3
  // for bf16 of 2880 x 5760.
  shape.least_cost = shape.weight_cost *
                     std::min(tokens * layer.top_k(), shape.num_experts) /
                     (2 * shape.workers);
  const Workspace plan_memory(Workspace::kPlan,
                              ExpertsPlanSize(tokens, layer.top_k(), shape));
  ExpertsPlan plan;
  Report report;
  Check(kOp, PlanExperts({layer.ids}, {plan_memory.ints(), &plan, &report},
                         shape, pool));
  Check(allow_dropped || report.dropped == 0, kOp, "topk_ids",
        "an id outside [0, experts)");

  ExpertsOptions options;
  options.activate = layer.activate;
  options.operands.type = options.gate_up_type = options.down_type =
      layer.up.type();
  const Workspace scratch(
      Workspace::kRows, ExpertsScratchSize(plan, options, pool.Concurrency()));
  ExpertsInputs in;
  in.plan = &plan;
  in.hidden = layer.hidden;
  (layer.gate == nullptr ? in.gate_bias : in.up_bias) = layer.up.bias();
  in.combine.topk_weights = layer.weights;
  in.scratch = scratch.ints();
  const Tensor out = Empty(layer.hidden.type, tokens, layer.down.out());
  const Products products(layer);
  const Status status =
      RunExperts(in, {MatrixOf(kOp, "out", out)}, options, products, pool);
  products.Rethrow();
  Check(kOp, status);
  return out;
}

Tensor Experts(const Tensor& hidden, const Tensor& topk_ids,
               const Tensor& topk_weights, const Tensor& up, const Tensor& down,
               const OptionalTensor& up_bias, const OptionalTensor& down_bias,
               const std::string& activation, const std::string& layout,
               bool transposed, double alpha, double beta, double linear_beta,
               double limit, bool limit_after, bool allow_dropped,
               int64_t packed, const OptionalTensor& gate) {
  Tensor hidden_keeper = hidden, ids_keeper = hidden, weights_keeper = hidden;
  Projection ups(kOp, "up", up, up_bias, "up_bias", transposed);
  Projection downs(kOp, "down", down, down_bias, "down_bias", transposed);
  const std::shared_ptr<const Packed> kept = FindPacked(kOp, packed);
  if (kept != nullptr) {
    ups.UsePacked(kOp, kept->up);
    downs.UsePacked(kOp, kept->down);
  }
  std::optional<Projection> gates;
  if (gate.has_value()) {
    gates.emplace(kOp, "gate", *gate, OptionalTensor(), "", transposed);
  }
  Layer layer = {MatrixOf(kOp, "hidden", hidden, &hidden_keeper),
                 MatrixOf(kOp, "topk_ids", topk_ids, &ids_keeper),
                 MatrixOf(kOp, "topk_weights", topk_weights, &weights_keeper),
                 gates.has_value() ? &*gates : nullptr,
                 ups,
                 downs,
                 {}};
  layer.activate = OptionsOf(kOp, activation, layout, alpha, beta, linear_beta,
                             limit, limit_after);
  CheckLayer(layer);
  if (layer.ids.rows == 0 || layer.ids.cols == 0) {
    const Tensor out = Empty(layer.hidden.type, hidden.size(0), downs.out());
    std::memset(out.data_ptr(), 0,
                static_cast<size_t>(out.numel()) * SizeOf(layer.hidden.type));
    return out;
  }
  return Run(layer, allow_dropped);
}

// The step between the experts' two products, alone.
Tensor ActivateRows(const Tensor& up, const std::string& activation,
                    const std::string& layout, double alpha, double beta,
                    double linear_beta, double limit, bool limit_after) {
  constexpr char kActivate[] = "activate";
  const ActivateOptions options =
      OptionsOf(kActivate, activation, layout, alpha, beta, linear_beta, limit,
                limit_after);
  Tensor keeper = up;
  const ConstAnyMatrix in = MatrixOf(kActivate, "up", up, &keeper);
  CheckFloat(kActivate, "up", in.type);
  Check(options.layout != GateUpLayout::kSplit, kActivate, "layout",
        "'split', and there is no second matrix here");
  const size_t halves = options.layout == GateUpLayout::kUngated ? 1 : 2;
  Check(in.cols % halves == 0, kActivate, "up", "an odd number of columns");
  const size_t cols = in.cols / halves;
  const Tensor out = Empty(in.type, in.rows, cols);
  TorchExecutor pool(TorchThreads());
  Check(kActivate,
        Activate({in}, {MatrixOf(kActivate, "out", out)}, options, pool));
  return out;
}

}  // namespace
}  // namespace python
}  // namespace switchyard

STABLE_TORCH_LIBRARY_FRAGMENT(switchyard, m) {
  m.def(
      "experts(Tensor hidden, Tensor topk_ids, Tensor topk_weights, Tensor up, "
      "Tensor down, Tensor? up_bias=None, Tensor? down_bias=None, "
      "str activation='silu', str layout='concatenated', "
      "bool transposed=False, float alpha=1.702, float beta=4.0, "
      "float linear_beta=25.0, float limit=0.0, bool limit_after=False, "
      "bool allow_dropped=False, int packed=0, Tensor? gate=None) -> Tensor");
  m.def(
      "activate(Tensor up, str activation='silu', "
      "str layout='concatenated', float alpha=1.702, float beta=4.0, "
      "float linear_beta=25.0, float limit=0.0, bool limit_after=False) "
      "-> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(switchyard, CPU, m) {
  m.impl("experts", TORCH_BOX(&switchyard::python::Experts));
  m.impl("activate", TORCH_BOX(&switchyard::python::ActivateRows));
}
