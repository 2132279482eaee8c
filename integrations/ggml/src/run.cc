// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "run.h"

#include <exception>
#include <vector>

#include "expert_gemm.h"
#include "switchyard/combine.h"
#include "switchyard/layer.h"
#include "switchyard/quantize.h"

namespace switchyard_ggml {

// The memory that one thread's products need.
struct ThreadSpace {
  Scratch weights, pad;
};

class Workspace {
 public:
  std::vector<ThreadSpace> threads;
  Scratch plan, scratch, out, normed;
};

namespace {

using switchyard::AnyMatrix;
using switchyard::ConstAnyMatrix;
using switchyard::Executor;
using switchyard::Status;
using switchyard::StatusCode;
using switchyard::Type;

// Work is cut for so many threads, whoever works: a product's bits may depend
// on how many rows it has.
constexpr size_t kWorkers = 16;

size_t Size(int64_t n) { return static_cast<size_t>(n); }

float* Floats(const ggml_tensor* t) { return static_cast<float*>(t->data); }

AnyMatrix MatrixOf(const ggml_tensor* t, int64_t rows, int64_t cols) {
  return {Floats(t), rows, cols};
}

// The sum's inputs besides rows, and the places where ggml wants its results.
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
        stored_(chain.gate.weights->type == GGML_TYPE_BF16 ? Type::kBF16
                                                           : Type::kF16),
        operands_(OperandType(stored_)) {}

  Status Run(Executor& executor) const {
    const int64_t tokens = chain_.ids->ne[1], top_k = chain_.ids->ne[0];
    switchyard::ExpertsPlanOptions shape;
    shape.num_experts = Size(chain_.gate.weights->ne[2]);
    shape.hidden = Size(chain_.input->ne[0]);
    shape.intermediate = Size(chain_.down.weights->ne[0]);
    shape.workers = kWorkers;
    // oneDNN's fast kernels write rows without gaps.
    shape.tile_columns = 0;
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
    options.operands.type = operands_;
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
    // Tokens are summed while others' experts are still at work, on what ggml
    // may keep in the outputs' place, and a product may fail.
    switchyard::CombineOutputs outputs;
    outputs.out = Instead(sum.outputs.out, workspace_.out);
    outputs.normed = Instead(sum.outputs.normed, workspace_.normed);
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
  static AnyMatrix Instead(const AnyMatrix& of, Scratch& place) {
    if (of.data == nullptr) return of;
    return {place.AtLeast<float>(of.rows * of.cols), of.rows, of.cols};
  }
  static Status Copy(const AnyMatrix& from, const AnyMatrix& to,
                     Executor& executor) {
    if (to.data == nullptr) return Status();
    return switchyard::Quantize({from}, {to}, {}, executor);
  }

  const Linear& LinearOf(switchyard::ExpertProduct product) const {
    using switchyard::ExpertProduct;
    return product == ExpertProduct::kDown ? chain_.down
           : product == ExpertProduct::kUp ? chain_.up
                                           : chain_.gate;
  }

  Status Multiply(const switchyard::ExpertTile& tile) const try {
    const Linear& linear = LinearOf(tile.product);
    const size_t in = tile.rows.cols, out = tile.out.cols;
    const auto expert = static_cast<size_t>(tile.expert);
    ThreadSpace& space = workspace_.threads[tile.worker];
    const void* weights = static_cast<const char*>(linear.weights->data) +
                          expert * linear.weights->nb[2];
    if (stored_ != operands_) {
      auto* converted = space.weights.AtLeast<float>(in * out);
      const ConstAnyMatrix stored(weights, stored_, out, in, in);
      const Status status =
          switchyard::Quantize({stored}, {AnyMatrix(converted, out, in)});
      if (!status.ok()) return status;
      weights = converted;
    }
    const float* bias =
        linear.bias == nullptr ? nullptr : Floats(linear.bias) + expert * out;
    RunGemm({tile.rows.rows, in, out, operands_, bias != nullptr},
            tile.rows.data, weights, bias, tile.out.Row<float>(0), space.pad);
    return Status();
  } catch (const std::exception&) {
    return {StatusCode::kInternal, "experts: a GEMM failed"};
  }

  const ExpertsChain& chain_;
  Workspace& workspace_;
  const Type stored_;
  const Type operands_;
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

Status Run(const CombineChain& chain, Executor& executor, Workspace&) {
  const int64_t rows = chain.rows->ne[1] * chain.rows->ne[2];
  Sum sum(chain);
  sum.inputs.rows = MatrixOf(chain.rows, rows, chain.rows->ne[0]);
  sum.inputs.row_index = switchyard::RowIndex::kTokenOrder;
  return Combine(sum.inputs, sum.outputs, sum.options, executor);
}

}  // namespace switchyard_ggml
