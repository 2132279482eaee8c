// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "run.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <optional>
#include <vector>

#include "choice.h"
#include "expert_gemm.h"
#include "switchyard/combine.h"
#include "switchyard/layer.h"
#include "switchyard/quantize.h"
#include "weights.h"

namespace switchyard_ggml {

// The memory for one thread's products.
struct ThreadSpace {
  Scratch weights, pad;
};

class Workspace {
 public:
  std::vector<ThreadSpace> threads;
  Scratch plan, scratch, out, normed;
  // For RunProduct(): the quantised rows, as given and sorted by expert.
  Scratch codes, scales, sorted_codes, sorted_scales, pairs;
};

namespace {

using switchyard::AnyMatrix;
using switchyard::AnyRows;
using switchyard::ConstAnyMatrix;
using switchyard::Executor;
using switchyard::Status;
using switchyard::StatusCode;
using switchyard::Type;

// If oneDNN multiplies, the plan cuts the work into tiles for this number of
// workers, even if fewer threads run. oneDNN's bits may depend on a tile's
// number of rows, so results would otherwise depend on the number of threads.
constexpr size_t kWorkers = 16;

size_t Size(int64_t n) { return static_cast<size_t>(n); }

float* Floats(const ggml_tensor* t) { return static_cast<float*>(t->data); }

AnyMatrix MatrixOf(const ggml_tensor* t, int64_t rows, int64_t cols) {
  return {Floats(t), rows, cols};
}

// The arguments of Combine for a chain, except the rows. The outputs are in the
// memory of ggml's tensors.
struct Sum {
  explicit Sum(const CombineChain& chain) {
    const int64_t hidden = chain.rows->ne[0];
    const int64_t tokens = chain.rows->ne[2];
    inputs.topk_weights = MatrixOf(chain.weights, tokens, chain.weights->ne[1]);
    if (chain.out != nullptr) outputs.out = MatrixOf(chain.out, tokens, hidden);
    if (chain.residual != nullptr) {
      inputs.residual = MatrixOf(chain.residual, tokens, hidden);
    }
    if (chain.normed != nullptr) {
      inputs.norm_weight = MatrixOf(chain.norm_weight, 1, hidden);
      outputs.normed = MatrixOf(chain.normed, tokens, hidden);
      options.eps = chain.eps;
    }
  }

  switchyard::CombineInputs inputs = {{}, {}, ConstAnyMatrix()};
  switchyard::CombineOutputs outputs;
  switchyard::CombineOptions options;
};

class Experts {
 public:
  Experts(const ExpertsChain& chain, Workspace& workspace)
      : chain_(chain),
        workspace_(workspace),
        gate_(chain.gate),
        up_(chain.up.weights != nullptr ? chain.up : chain.gate),
        down_(chain.down) {}

  Status Run(Executor& executor) const {
    const int64_t tokens = chain_.ids->ne[1], top_k = chain_.ids->ne[0];
    switchyard::ExpertsPlanOptions shape;
    shape.num_experts = Size(chain_.gate.weights->ne[2]);
    shape.hidden = Size(chain_.input->ne[0]);
    shape.intermediate = Size(chain_.down.weights->ne[0]);
    if (gate_.format && up_.format && down_.format) {
      shape.workers = executor.Concurrency();
      SetCosts(*gate_.format, &shape);
    } else {
      shape.workers = kWorkers;
      // oneDNN's fast kernels need output rows without gaps.
      shape.tile_columns = 0;
    }
    switchyard::ExpertsPlan plan;
    const size_t plan_size =
        switchyard::ExpertsPlanSize(Size(tokens), Size(top_k), shape);
    const Status planned = PlanExperts(
        {ConstAnyMatrix(static_cast<const int32_t*>(chain_.ids->data), tokens,
                        top_k, chain_.ids->nb[1] / sizeof(int32_t))},
        {{workspace_.plan.AtLeast<int32_t>(plan_size), plan_size}, &plan},
        shape, executor);
    if (!planned.ok()) return planned;

    const Sum sum(chain_.combine);
    switchyard::ExpertsOptions options;
    options.activate = chain_.activation;
    if (chain_.up.weights == nullptr) {
      options.activate.layout = switchyard::GateUpLayout::kConcatenated;
    }
    options.combine = sum.options;
    options.operands = OperandsOf(chain_.gate.weights->type);
    options.down_operands = OperandsOf(chain_.down.weights->type);
    const size_t scratch_size =
        ExpertsScratchSize(plan, options, executor.Concurrency());
    workspace_.threads.resize(executor.Concurrency());
    switchyard::ExpertsInputs inputs;
    inputs.plan = &plan;
    inputs.hidden =
        MatrixOf(chain_.input, chain_.input->ne[2], chain_.input->ne[0]);
    inputs.combine = sum.inputs;
    inputs.scratch = {workspace_.scratch.AtLeast<int32_t>(scratch_size),
                      scratch_size};
    // Writes results to the workspace first, because ggml may have placed
    // outputs in the memory of tensors that the chain still reads: tokens are
    // summed while experts of other tokens still run. Another reason is that
    // ggml's memory must be unchanged if a product fails.
    switchyard::CombineOutputs outputs;
    outputs.out = MakeScratchFor(sum.outputs.out, workspace_.out);
    outputs.normed = MakeScratchFor(sum.outputs.normed, workspace_.normed);
    const Status done = RunExperts(
        inputs, outputs, options,
        [this](const switchyard::ExpertTile& tile) { return Multiply(tile); },
        executor);
    if (!done.ok()) return done;
    const Status copied = Copy(outputs.out, sum.outputs.out, executor);
    return copied.ok() ? Copy(outputs.normed, sum.outputs.normed, executor)
                       : copied;
  }

 private:
  static AnyMatrix MakeScratchFor(const AnyMatrix& of, Scratch& place) {
    if (of.data == nullptr) return of;
    return {place.AtLeast<float>(of.rows * of.cols), of.rows, of.cols};
  }
  static Status Copy(const AnyMatrix& from, const AnyMatrix& to,
                     Executor& executor) {
    if (to.data == nullptr) return Status();
    return switchyard::Quantize({from}, {to}, {}, executor);
  }

  // The gate, up or down product of all experts.
  struct Product {
    explicit Product(const Linear& linear_in)
        : linear(linear_in),
          format(FindExpertType(linear.weights->type)->format) {
      if (format) weights = WeightsOf(linear.weights);
    }

    const Linear& linear;
    const std::optional<switchyard::WeightFormat> format;
    switchyard::ExpertWeights weights;  // only if Switchyard multiplies
  };

  const Product& ProductOf(switchyard::ExpertProduct product) const {
    using switchyard::ExpertProduct;
    return product == ExpertProduct::kDown ? down_
           : product == ExpertProduct::kUp ? up_
                                           : gate_;
  }

  Status Multiply(const switchyard::ExpertTile& tile) const try {
    const Product& product = ProductOf(tile.product);
    const float* bias = nullptr;
    if (product.linear.bias != nullptr) {
      bias = Floats(product.linear.bias) +
             tile.expert * product.linear.bias->ne[0];
    }
    if (!product.format) return MultiplyFloats(product, tile, bias);
    const Status multiplied = MultiplyTile(product.weights, tile);
    if (!multiplied.ok() || bias == nullptr) return multiplied;
    for (size_t r = 0; r < tile.out.rows; ++r) {
      float* row = tile.out.Row<float>(r);
      for (size_t c = 0; c < tile.out.cols; ++c) {
        row[c] += bias[tile.first_column + c];
      }
    }
    return Status();
  } catch (const std::exception&) {
    return {StatusCode::kInternal, "experts: a GEMM failed"};
  }

  Status MultiplyFloats(const Product& product,
                        const switchyard::ExpertTile& tile,
                        const float* bias) const {
    const ggml_tensor* stored = product.linear.weights;
    const size_t in = tile.rows.cols, out = tile.out.cols;
    ThreadSpace& space = workspace_.threads[tile.worker];
    const Type type = stored->type == GGML_TYPE_BF16 ? Type::kBF16 : Type::kF16;
    const void* weights = static_cast<const char*>(stored->data) +
                          static_cast<size_t>(tile.expert) * stored->nb[2];
    if (type != tile.rows.type) {
      auto* converted = space.weights.AtLeast<float>(in * out);
      const Status status =
          switchyard::Quantize({ConstAnyMatrix(weights, type, out, in, in)},
                               {AnyMatrix(converted, out, in)});
      if (!status.ok()) return status;
      weights = converted;
    }
    RunGemm({tile.rows.rows, in, out, tile.rows.type, bias != nullptr},
            tile.rows.data, weights, bias, tile.out.Row<float>(0), space.pad);
    return Status();
  }

  const ExpertsChain& chain_;
  Workspace& workspace_;
  const Product gate_, up_, down_;
};

// Calls body(worker, i) for i in [0, count), on several threads. Each thread
// gets at least `grain` calls at a time.
template <class F>
Status ForEach(Executor& executor, size_t count, size_t grain, const F& body) {
  return executor.ParallelFor(
      count, grain,
      [](void* context, size_t worker, size_t begin, size_t end) {
        for (; begin < end; ++begin) {
          (*static_cast<const F*>(context))(worker, begin);
        }
      },
      const_cast<F*>(&body));
}

// Returns memory for `count` quantised rows, as products with `weights` read
// them.
AnyRows QuantizedRows(const switchyard::ExpertWeights& weights, size_t count,
                      Scratch& codes, Scratch& scales) {
  const switchyard::RowFormat format = switchyard::OperandsOf(weights.format);
  const size_t cols = weights.cols;
  AnyRows rows = AnyMatrix(
      codes.AtLeast<char>(switchyard::BytesOf(format.type, count * cols)),
      format.type, count, cols, cols);
  if (format.scale_columns != 0) {
    const size_t groups = cols / format.scale_columns;
    rows.scales = {scales.AtLeast<float>(count * groups), count, groups};
  }
  return rows;
}

// Returns the number of columns of a tile, a multiple of 32. If each thread
// would get fewer than four of the `blocks` of rows, also cuts the `columns` of
// the product.
size_t ColumnsOfTile(size_t columns, size_t blocks, const Executor& executor) {
  constexpr size_t kColumns = 32;
  const size_t wanted = 4 * executor.Concurrency();
  const size_t step = (wanted + blocks - 1) / blocks * kColumns;
  return (columns + step - 1) / step * kColumns;
}

// Computes a MUL_MAT: multiplies all rows by one matrix of weights. Quantises
// each row once.
class DenseProduct {
 public:
  DenseProduct(const ggml_tensor* node, Workspace& workspace)
      : node_(node),
        x_(node->src[1]),
        workspace_(workspace),
        weights_(WeightsOf(node->src[0])) {}

  Status Run(Executor& executor) const {
    const size_t num_rows = Size(ggml_nrows(x_));
    if (num_rows == 0) return Status();
    const AnyRows rows =
        QuantizedRows(weights_, num_rows, workspace_.codes, workspace_.scales);
    const Status status = QuantizeRows(rows, executor);
    return status.ok() ? Multiply(rows, executor) : status;
  }

 private:
  // Quantises the matrices of x one by one if they have gaps between rows.
  Status QuantizeRows(const AnyRows& rows, Executor& executor) const {
    const bool is_plain = ggml_is_contiguous(x_);
    const size_t count = is_plain ? rows.rows : Size(x_->ne[1]);
    const size_t stride = is_plain ? weights_.cols : x_->nb[1] / sizeof(float);
    for (size_t i = 0; i * count < rows.rows; ++i) {
      const char* const data = static_cast<const char*>(x_->data) +
                               i % Size(x_->ne[2]) * x_->nb[2] +
                               i / Size(x_->ne[2]) * x_->nb[3];
      const ConstAnyMatrix from(reinterpret_cast<const float*>(data), count,
                                weights_.cols, stride);
      const Status status = Quantize(
          {from}, {rows.RowRange(i * count, (i + 1) * count)}, {}, executor);
      if (!status.ok()) return status;
    }
    return Status();
  }

  Status Multiply(const AnyRows& rows, Executor& executor) const {
    // Tiles of 32 to 256 rows take the same time (512 tokens, Zen 4).
    constexpr size_t kTileRows = 64;
    const size_t blocks = (rows.rows + kTileRows - 1) / kTileRows;
    const size_t out = weights_.rows;
    const size_t columns = ColumnsOfTile(out, blocks, executor);
    const size_t parts = (out + columns - 1) / columns;
    std::atomic<bool> failed{false};
    const Status status =
        ForEach(executor, blocks * parts, 1, [&](size_t worker, size_t i) {
          const size_t row = i % blocks * kTileRows;
          const size_t last = std::min(rows.rows, row + kTileRows);
          const size_t first = i / blocks * columns;
          const size_t count = std::min(columns, out - first);
          const Status done = MultiplyTile(
              weights_,
              {switchyard::ExpertProduct::kGateUp,
               0,
               first,
               worker,
               rows.RowRange(row, last),
               {Floats(node_) + row * out + first, last - row, count, out}});
          if (!done.ok()) failed = true;
        });
    if (failed) return {StatusCode::kInternal, "a product failed"};
    return status;
  }

  const ggml_tensor* node_;
  const ggml_tensor* x_;
  Workspace& workspace_;
  const switchyard::ExpertWeights weights_;
};

// Computes a single MUL_MAT_ID. Quantises each row once, and sorts rows by
// expert. Each thread multiplies into its own memory, and copies the
// resulting rows to ggml's tensor.
class ExpertsProduct {
 public:
  ExpertsProduct(const ggml_tensor* node, Workspace& workspace)
      : node_(node),
        x_(node->src[1]),
        ids_(node->src[2]),
        workspace_(workspace),
        weights_(WeightsOf(node->src[0])),
        slots_(Size(ids_->ne[0])),
        pairs_(slots_ * Size(ids_->ne[1])) {}

  Status Run(Executor& executor) {
    Status status = Sort();
    if (!status.ok() || pairs_ == 0) return status;
    const size_t num_rows = Size(x_->ne[1] * x_->ne[2]);
    const AnyRows rows =
        QuantizedRows(weights_, num_rows, workspace_.codes, workspace_.scales);
    status = Quantize({ConstAnyMatrix(Floats(x_), num_rows, weights_.cols)},
                      {rows}, {}, executor);
    if (!status.ok()) return status;
    const AnyRows sorted = QuantizedRows(
        weights_, pairs_, workspace_.sorted_codes, workspace_.sorted_scales);
    status = ForEach(executor, pairs_, 64, [&](size_t, size_t i) {
      CopyRow(rows, SourceOf(Size(order_[i])), sorted, i);
    });
    if (!status.ok()) return status;
    return Multiply(sorted, executor);
  }

 private:
  static constexpr size_t kTileRows = 256;

  struct Block {
    int32_t expert;
    size_t first, rows;  // the range of the sorted rows
  };

  // Sorts the pairs by expert.
  Status Sort() {
    const auto experts = node_->src[0]->ne[2];
    std::vector<size_t> ends(Size(experts) + 1, 0);
    for (size_t pair = 0; pair < pairs_; ++pair) {
      const int32_t id = ExpertOf(pair);
      if (id < 0 || id >= experts) {
        return {StatusCode::kInvalidArgument, "ids: not those of experts"};
      }
      ++ends[Size(id) + 1];
    }
    for (size_t e = 0; e + 1 < ends.size(); ++e) {
      for (size_t first = 0; first < ends[e + 1]; first += kTileRows) {
        blocks_.push_back({static_cast<int32_t>(e), ends[e] + first,
                           std::min(kTileRows, ends[e + 1] - first)});
      }
      ends[e + 1] += ends[e];
    }
    order_ = workspace_.pairs.AtLeast<int32_t>(pairs_);
    for (size_t pair = 0; pair < pairs_; ++pair) {
      order_[ends[Size(ExpertOf(pair))]++] = static_cast<int32_t>(pair);
    }
    return Status();
  }

  int32_t ExpertOf(size_t pair) const {
    const char* row =
        static_cast<const char*>(ids_->data) + pair / slots_ * ids_->nb[1];
    return reinterpret_cast<const int32_t*>(row)[pair % slots_];
  }
  // Returns the row of x that belongs to a pair. A token has one row for all
  // of its slots, or one row for each slot.
  size_t SourceOf(size_t pair) const {
    const size_t rows = Size(x_->ne[1]);
    return pair / slots_ * rows + pair % slots_ % rows;
  }

  static void CopyRow(const AnyRows& from, size_t i, const AnyRows& to,
                      size_t j) {
    const size_t bytes = switchyard::BytesOf(from.type, from.cols);
    std::memcpy(static_cast<char*>(to.data) + j * bytes,
                static_cast<const char*>(from.data) + i * bytes, bytes);
    if (from.scales.data != nullptr) {
      std::memcpy(to.scales.Row<float>(j), from.scales.Row<float>(i),
                  from.scales.cols * sizeof(float));
    }
  }

  Status Multiply(const AnyRows& rows, Executor& executor) const {
    const size_t out = weights_.rows;
    const size_t columns = ColumnsOfTile(out, blocks_.size(), executor);
    const size_t parts = (out + columns - 1) / columns;
    workspace_.threads.resize(
        std::max(workspace_.threads.size(), executor.Concurrency()));
    for (size_t i = 0; i < executor.Concurrency(); ++i) {
      workspace_.threads[i].weights.AtLeast<float>(kTileRows * columns);
    }
    std::atomic<bool> failed{false};
    const Status status = ForEach(
        executor, blocks_.size() * parts, 1, [&](size_t worker, size_t i) {
          const Block& block = blocks_[i / parts];
          const size_t first = i % parts * columns;
          const size_t count = std::min(columns, out - first);
          const AnyMatrix result(
              workspace_.threads[worker].weights.AtLeast<float>(1), block.rows,
              count);
          const Status done = MultiplyTile(
              weights_,
              {switchyard::ExpertProduct::kGateUp, block.expert, first, worker,
               rows.RowRange(block.first, block.first + block.rows), result});
          if (!done.ok()) failed = true;
          for (size_t r = 0; r < block.rows; ++r) {
            std::memcpy(PlaceOf(Size(order_[block.first + r])) + first,
                        result.Row<float>(r), count * sizeof(float));
          }
        });
    if (failed) return {StatusCode::kInternal, "a product failed"};
    return status;
  }
  float* PlaceOf(size_t pair) const {
    return Floats(node_) + pair * weights_.rows;  // without gaps
  }

  const ggml_tensor* node_;
  const ggml_tensor* x_;
  const ggml_tensor* ids_;
  Workspace& workspace_;
  const switchyard::ExpertWeights weights_;
  const size_t slots_, pairs_;
  std::vector<Block> blocks_;
  int32_t* order_ = nullptr;
};

}  // namespace

std::shared_ptr<Workspace> MakeWorkspace() {
  return std::make_shared<Workspace>();
}

Status Run(const RouterChain& chain, Executor& executor, Workspace&) {
  const int64_t experts = chain.logits->ne[0];
  const int64_t tokens = chain.logits->ne[1];
  switchyard::RouteInputs inputs{MatrixOf(chain.logits, tokens, experts)};
  if (chain.bias != nullptr) {
    inputs.correction_bias = MatrixOf(chain.bias, 1, experts);
  }
  return RouteTopK(inputs,
                   {{static_cast<int32_t*>(chain.ids->data), tokens,
                     chain.top_k, chain.ids->nb[1] / sizeof(int32_t)},
                    MatrixOf(chain.weights, tokens, chain.top_k)},
                   chain.options, executor);
}

Status Run(const ExpertsChain& chain, Executor& executor,
           Workspace& workspace) {
  return Experts(chain, workspace).Run(executor);
}

Status RunProduct(const ggml_tensor* node, Executor& executor,
                  Workspace& workspace) {
  return node->op == GGML_OP_MUL_MAT
             ? DenseProduct(node, workspace).Run(executor)
             : ExpertsProduct(node, workspace).Run(executor);
}

Status Run(const CombineChain& chain, Executor& executor, Workspace&) {
  const int64_t rows = chain.rows->ne[1] * chain.rows->ne[2];
  Sum sum(chain);
  sum.inputs.rows = MatrixOf(chain.rows, rows, chain.rows->ne[0]);
  sum.inputs.row_index = switchyard::RowIndex::kTokenOrder;
  return Combine(sum.inputs, sum.outputs, sum.options, executor);
}

}  // namespace switchyard_ggml
