// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Operators that compute the experts of a layer, from the router's ids and
// weights to the weighted sum of each token.

#include <torch/csrc/stable/library.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "gemm.h"
#include "options.h"
#include "packed.h"
#include "switchyard/activate.h"
#include "switchyard/layer.h"
#include "switchyard/presets.h"
#include "torch_executor.h"
#include "weights.h"
#include "workspace.h"

namespace switchyard {
namespace python {
namespace {

constexpr char kOp[] = "experts";

ActivateOptions OptionsOf(const char* op, const std::string& text) {
  Preset preset;
  preset.activate.layout = GateUpLayout::kConcatenated;
  SetOptions(op, "activate", text, &preset);
  return preset.activate;
}

// A layer's arguments, except the experts' weights.
struct Rows {
  ConstAnyMatrix hidden, ids, weights;
  ActivateOptions activate;
  bool allow_dropped;

  size_t top_k() const { return ids.cols; }
  bool is_split() const { return activate.layout == GateUpLayout::kSplit; }
  bool both_in_up() const {
    return activate.layout == GateUpLayout::kConcatenated ||
           activate.layout == GateUpLayout::kInterleaved;
  }
};
// Owns the copies of arguments that MatrixOf() makes if it cannot view the
// tensors themselves.
struct RowsKeepers {
  Tensor hidden, ids, weights;
};
Rows RowsOf(const char* op, const Tensor& hidden, const Tensor& topk_ids,
            const Tensor& topk_weights, const ActivateOptions& activate,
            bool allow_dropped, RowsKeepers* keepers) {
  Rows rows = {MatrixOf(op, "hidden", hidden, &keepers->hidden),
               MatrixOf(op, "topk_ids", topk_ids, &keepers->ids),
               MatrixOf(op, "topk_weights", topk_weights, &keepers->weights),
               activate, allow_dropped};
  CheckFloat(op, "hidden", rows.hidden.type);
  Check(rows.ids.type == Type::kI64 || rows.ids.type == Type::kI32, op,
        "topk_ids", "not int64 or int32");
  Check(rows.ids.rows == rows.hidden.rows, op, "topk_ids",
        "not a row for each of hidden");
  CheckFloat(op, "topk_weights", rows.weights.type);
  Check(
      rows.weights.rows == rows.ids.rows && rows.weights.cols == rows.ids.cols,
      op, "topk_weights", "not of the shape of topk_ids");
  return rows;
}
void CheckHasGate(const char* op, const Rows& rows, bool has_gate) {
  Check(has_gate == rows.is_split(), op, "gate",
        rows.is_split() ? "missing, and the layout is 'split'"
                        : "given, and the layout is not 'split'");
}

// The weights of a layer, if torch computes the layer's products.
struct Layer {
  const Projection* gate;  // null unless the layout is kSplit
  const Projection& up;
  const Projection& down;
};

void CheckLayer(const Rows& rows, const Layer& layer) {
  const Projection& up = layer.up;
  const Projection& down = layer.down;
  const int64_t halves = rows.both_in_up() ? 2 : 1;
  Check(up.experts() > 0, kOp, "up", "no experts");
  Check(up.in() == static_cast<int64_t>(rows.hidden.cols), kOp, "up",
        "not [experts, columns, hidden], or with transposed [experts, hidden, "
        "columns]");
  Check(down.experts() == up.experts(), kOp, "down",
        "not as many experts as up");
  Check(down.type() == up.type(), kOp, "down", "not of the dtype of up");
  Check(down.in() * halves == up.out(), kOp, "down",
        rows.both_in_up()
            ? "not of half of the columns of up"
            : "not of the columns of up, as this layout has them");
  Check(down.out() == up.in(), kOp, "down", "not of the columns of hidden");
  CheckHasGate(kOp, rows, layer.gate != nullptr);
  if (!rows.is_split()) return;
  Check(layer.gate->experts() == up.experts() && layer.gate->in() == up.in() &&
            layer.gate->out() == up.out() && layer.gate->type() == up.type(),
        kOp, "gate", "not of the shape and dtype of up");
}

// Multiplies tiles of the layer's products, each on the calling thread. If a
// product throws, the exception is kept for the thread that called the
// operator.
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
      // Adds only down's bias, because Activate adds the biases of gate and up.
      projection.Multiply(tile.expert, tile.rows, tile.first_column, tile.out,
                          /*add_bias=*/is_down);
      return Status();
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (thrown_ == nullptr) thrown_ = std::current_exception();
      return Status(StatusCode::kInternal, "a product failed");
    }
  }
  // Rethrows the exception of a product. Call it after all products have ended.
  void Rethrow() const {
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  }

 private:
  const Layer& layer_;
  mutable std::mutex mutex_;
  mutable std::exception_ptr thrown_;
};

template <class T>
void AddBias(const T* bias, const AnyMatrix& out) {
  for (size_t r = 0; r < out.rows; ++r) {
    float* const row = out.Row<float>(r);
    for (size_t c = 0; c < out.cols; ++c) row[c] += static_cast<float>(bias[c]);
  }
}

// Multiplies tiles with weights in a format of the library. The products are
// f32; down's bias may have any float type.
struct QuantizedProducts {
  LayerWeights weights;
  ConstAnyMatrix down_bias;

  Status operator()(const ExpertTile& tile) const noexcept {
    const Status status = weights(tile);
    if (!status.ok() || tile.product != ExpertProduct::kDown ||
        down_bias.data == nullptr) {
      return status;
    }
    const size_t first =
        static_cast<size_t>(tile.expert) * down_bias.stride + tile.first_column;
    switch (down_bias.type) {
      case Type::kBF16:
        AddBias(
            static_cast<const torch::headeronly::BFloat16*>(down_bias.data) +
                first,
            tile.out);
        break;
      case Type::kF16:
        AddBias(
            static_cast<const torch::headeronly::Half*>(down_bias.data) + first,
            tile.out);
        break;
      default:
        AddBias(static_cast<const float*>(down_bias.data) + first, tile.out);
    }
    return status;
  }
  void Rethrow() const {}  // products do not throw
};

// Plans and runs a layer. `products` multiplies the tiles. `shape` has the
// number, sizes and costs of experts, and `options` has the formats of rows.
template <class Gemm>
Tensor Run(const char* op, const Rows& rows, ExpertsPlanOptions shape,
           ExpertsOptions options, const ConstAnyMatrix& up_bias,
           const Gemm& products) {
  const size_t tokens = rows.ids.rows;
  const Tensor out = Empty(rows.hidden.type, tokens, rows.hidden.cols);
  if (tokens == 0 || rows.top_k() == 0) {
    std::memset(out.data_ptr(), 0,
                static_cast<size_t>(out.numel()) * SizeOf(rows.hidden.type));
    return out;
  }
  TorchExecutor pool(TorchThreads());
  shape.hidden = rows.hidden.cols;
  shape.workers = pool.Concurrency();
  shape.allow_dropped = true;
  // With few tokens, cuts a worker's share into only about two parts: a
  // product of one row takes longer if transposed weights are cut by columns,
  // 5.2 ms instead of 3.3 ms for bf16 of 2880 x 5760.
  shape.least_cost = shape.weight_cost *
                     std::min(tokens * rows.top_k(), shape.num_experts) /
                     (2 * shape.workers);
  const Workspace plan_memory(Workspace::kPlan,
                              ExpertsPlanSize(tokens, rows.top_k(), shape));
  ExpertsPlan plan;
  Report report;
  Check(op, PlanExperts({rows.ids}, {plan_memory.ints(), &plan, &report}, shape,
                        pool));
  Check(rows.allow_dropped || report.dropped == 0, op, "topk_ids",
        "an id outside [0, experts)");

  options.activate = rows.activate;
  const Workspace scratch(
      Workspace::kRows, ExpertsScratchSize(plan, options, pool.Concurrency()));
  ExpertsInputs in;
  in.plan = &plan;
  in.hidden = rows.hidden;
  (rows.is_split() ? in.up_bias : in.gate_bias) = up_bias;
  in.combine.topk_weights = rows.weights;
  in.scratch = scratch.ints();
  const Status status =
      RunExperts(in, {MatrixOf(op, "out", out)}, options, products, pool);
  products.Rethrow();
  Check(op, status);
  return out;
}

Tensor Experts(const Tensor& hidden, const Tensor& topk_ids,
               const Tensor& topk_weights, const Tensor& up, const Tensor& down,
               const OptionalTensor& up_bias, const OptionalTensor& down_bias,
               const OptionalTensor& gate, const std::string& options,
               bool transposed, bool allow_dropped, int64_t packed) {
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
  RowsKeepers keepers = {hidden, hidden, hidden};
  const Rows rows = RowsOf(kOp, hidden, topk_ids, topk_weights,
                           OptionsOf(kOp, options), allow_dropped, &keepers);
  const Layer layer = {gates.has_value() ? &*gates : nullptr, ups, downs};
  CheckLayer(rows, layer);
  ExpertsPlanOptions shape;
  shape.num_experts = static_cast<size_t>(ups.experts());
  shape.intermediate = static_cast<size_t>(downs.in());
  if (downs.is_packed()) shape.tile_columns = 0;
  if (ups.uses_tiles()) SetCosts(ups.format(), &shape);
  ExpertsOptions types;
  types.operands.type = types.gate_up_type = types.down_type = ups.type();
  return Run(kOp, rows, shape, types, ups.bias(), Products(layer));
}

// Returns a view of a bias [experts, columns], which may have any float type.
ConstAnyMatrix BiasOf(const char* op, const char* argument,
                      const OptionalTensor& bias, const ExpertWeights& weights,
                      Tensor* keeper) {
  if (!bias.has_value()) return {};
  const ConstAnyMatrix m = MatrixOf(op, argument, *bias, keeper);
  CheckFloat(op, argument, m.type);
  Check(m.rows == weights.data.rows && m.cols == weights.rows, op, argument,
        "not [experts, columns of the product]");
  return m;
}

Tensor QuantizedExperts(const Tensor& hidden, const Tensor& topk_ids,
                        const Tensor& topk_weights, const Tensor& up,
                        const Tensor& down, const std::string& up_format,
                        const std::string& down_format, int64_t intermediate,
                        const OptionalTensor& up_bias,
                        const OptionalTensor& down_bias,
                        const OptionalTensor& gate, const std::string& options,
                        bool allow_dropped) {
  constexpr char kQuantized[] = "quantized_experts";
  RowsKeepers keepers = {hidden, hidden, hidden};
  const Rows rows =
      RowsOf(kQuantized, hidden, topk_ids, topk_weights,
             OptionsOf(kQuantized, options), allow_dropped, &keepers);
  Check(intermediate > 0 && intermediate < PTRDIFF_MAX / 2, kQuantized,
        "intermediate", "not above zero");
  const auto width = static_cast<int64_t>(rows.hidden.cols);
  const WeightFormat ups = FormatOf(kQuantized, "up_format", up_format);
  const WeightFormat downs = FormatOf(kQuantized, "down_format", down_format);
  QuantizedProducts products;
  LayerWeights& weights = products.weights;
  ExpertWeights& up_weights = rows.is_split() ? weights.up : weights.gate_up;
  up_weights = WeightsOf(kQuantized, "up", up, ups,
                         intermediate * (rows.both_in_up() ? 2 : 1), width);
  weights.down =
      WeightsOf(kQuantized, "down", down, downs, width, intermediate);
  Check(weights.down.data.rows == up_weights.data.rows, kQuantized, "down",
        "not as many experts as up");
  CheckHasGate(kQuantized, rows, gate.has_value());
  if (gate.has_value()) {
    weights.gate =
        WeightsOf(kQuantized, "gate", *gate, ups, intermediate, width);
    Check(weights.gate.data.rows == up_weights.data.rows, kQuantized, "gate",
          "not as many experts as up");
  }
  Tensor up_bias_keeper = hidden, down_bias_keeper = hidden;
  const ConstAnyMatrix up_biases =
      BiasOf(kQuantized, "up_bias", up_bias, up_weights, &up_bias_keeper);
  products.down_bias = BiasOf(kQuantized, "down_bias", down_bias, weights.down,
                              &down_bias_keeper);
  ExpertsPlanOptions shape;
  SetCosts(ups, &shape);
  shape.num_experts = up_weights.data.rows;
  shape.intermediate = static_cast<size_t>(intermediate);
  ExpertsOptions types;  // by default, products are f32
  types.operands = OperandsOf(ups);
  types.down_operands = OperandsOf(downs);
  return Run(kQuantized, rows, shape, types, up_biases, products);
}

// Runs only the step between the experts' two products.
Tensor ActivateRows(const Tensor& up, const std::string& text) {
  constexpr char kActivate[] = "activate";
  const ActivateOptions options = OptionsOf(kActivate, text);
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
      "Tensor? gate=None, *, str options='', bool transposed=False, "
      "bool allow_dropped=False, int packed=0) -> Tensor");
  m.def(
      "quantized_experts(Tensor hidden, Tensor topk_ids, Tensor topk_weights, "
      "Tensor up, Tensor down, str up_format, str down_format, "
      "int intermediate, Tensor? up_bias=None, Tensor? down_bias=None, "
      "Tensor? gate=None, *, str options='', bool allow_dropped=False) "
      "-> Tensor");
  m.def("activate(Tensor up, str options='') -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(switchyard, CPU, m) {
  m.impl("experts", TORCH_BOX(&switchyard::python::Experts));
  m.impl("quantized_experts", TORCH_BOX(&switchyard::python::QuantizedExperts));
  m.impl("activate", TORCH_BOX(&switchyard::python::ActivateRows));
}
