// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "run.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <numeric>
#include <vector>

#include "expert_gemm.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/quantize.h"

namespace switchyard_ggml {

// The memory that one thread needs for one expert's rows.
struct ThreadSpace {
  Scratch input, gate, up, activated, weights, pad;
};

class Workspace {
 public:
  std::vector<ThreadSpace> threads;
  std::vector<int32_t> counts, offsets, pairs, row_index, scratch;
  Scratch rows;  // outputs of all experts
};

namespace {

using switchyard::AnyMatrix;
using switchyard::ConstAnyMatrix;
using switchyard::Executor;
using switchyard::RowIndex;
using switchyard::Status;
using switchyard::StatusCode;
using switchyard::Type;

// More rows of one expert are several pieces of work.
constexpr size_t kMaxRows = 128;

size_t Size(int64_t n) { return static_cast<size_t>(n); }

float* Floats(const ggml_tensor* t) { return static_cast<float*>(t->data); }

AnyMatrix MatrixOf(const ggml_tensor* t, int64_t rows, int64_t cols) {
  return {Floats(t), rows, cols};
}

Status Combined(const CombineChain& chain, const ConstAnyMatrix& rows,
                const RowIndex& row_index, Executor& executor) {
  const int64_t hidden = chain.rows->ne[0];
  const int64_t tokens = chain.rows->ne[2];
  switchyard::CombineInputs inputs{
      rows, MatrixOf(chain.weights, tokens, chain.weights->ne[1]), row_index};
  switchyard::CombineOutputs outputs;
  switchyard::CombineOptions options;
  if (chain.out != nullptr) outputs.out = MatrixOf(chain.out, tokens, hidden);
  if (chain.residual != nullptr) {
    inputs.residual = MatrixOf(chain.residual, tokens, hidden);
  }
  if (chain.normed != nullptr) {
    inputs.norm_weight = MatrixOf(chain.norm_weight, 1, hidden);
    outputs.normed = MatrixOf(chain.normed, tokens, hidden);
    options.eps = chain.eps;
  }
  return Combine(inputs, outputs, options, executor);
}

struct Piece {
  size_t expert;
  size_t begin;  // of the packed rows
  size_t rows;
};

// Largest first, so that the last ones even out what threads have to do.
std::vector<Piece> Pieces(const std::vector<int32_t>& offsets) {
  std::vector<Piece> pieces;
  for (size_t e = 0; e + 1 < offsets.size(); ++e) {
    const auto end = static_cast<size_t>(offsets[e + 1]);
    for (auto at = static_cast<size_t>(offsets[e]); at < end;) {
      const size_t rows = std::min(kMaxRows, end - at);
      pieces.push_back({e, at, rows});
      at += rows;
    }
  }
  std::stable_sort(
      pieces.begin(), pieces.end(),
      [](const Piece& a, const Piece& b) { return a.rows > b.rows; });
  return pieces;
}

class Experts {
 public:
  Experts(const ExpertsChain& chain, Workspace& workspace)
      : chain_(chain),
        workspace_(workspace),
        stored_(chain.gate.weights->type == GGML_TYPE_BF16 ? Type::kBF16
                                                           : Type::kF16),
        operands_(OperandType(stored_)),
        hidden_(Size(chain.input->ne[0])),
        intermediate_(Size(chain.down.weights->ne[0])),
        tokens_(Size(chain.ids->ne[1])),
        top_k_(Size(chain.ids->ne[0])),
        num_experts_(Size(chain.gate.weights->ne[2])) {}

  Status Run(Executor& executor) {
    const Status sorted = Sort(executor);
    if (!sorted.ok()) return sorted;
    const std::vector<Piece> pieces = Pieces(workspace_.offsets);
    out_ = workspace_.rows.AtLeast<float>(tokens_ * top_k_ * OutSize());
    const auto threads = static_cast<int>(executor.Concurrency());
    workspace_.threads.resize(executor.Concurrency());
    std::atomic<bool> failed{false};
    const auto n = static_cast<int64_t>(pieces.size());
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t i = 0; i < n; ++i) {
      ThreadSpace& space = workspace_.threads[Size(omp_get_thread_num())];
      // No exception may leave the loop.
      try {
        if (!RunPiece(pieces[Size(i)], space)) failed = true;
      } catch (const std::exception&) {
        failed = true;
      }
    }
    if (failed) {
      return {StatusCode::kInternal,
              "experts: a GEMM or its neighbours failed"};
    }
    return Combined(
        chain_.combine, {out_, tokens_ * top_k_, OutSize()},
        ConstAnyMatrix(workspace_.row_index.data(), tokens_, top_k_), executor);
  }

 private:
  size_t OutSize() const { return Size(chain_.down.weights->ne[1]); }

  ConstAnyMatrix Ids() const {
    return ConstAnyMatrix(static_cast<const int32_t*>(chain_.ids->data),
                          tokens_, top_k_, chain_.ids->nb[1] / sizeof(int32_t));
  }

  Status Sort(Executor& executor) {
    const size_t pairs = tokens_ * top_k_;
    workspace_.counts.resize(num_experts_);
    workspace_.offsets.resize(num_experts_ + 1);
    workspace_.pairs.resize(pairs);
    workspace_.row_index.resize(pairs);
    workspace_.scratch.resize(
        switchyard::BucketScratchSize(pairs, num_experts_, executor));
    return BucketPacked({Ids(), workspace_.scratch},
                        {workspace_.counts,
                         workspace_.offsets,
                         workspace_.pairs,
                         {workspace_.row_index.data(), tokens_, top_k_}},
                        {}, executor);
  }

  void Multiply(const Linear& linear, const Piece& piece, const void* x,
                float* y, ThreadSpace& space) const {
    const size_t in = Size(linear.weights->ne[0]);
    const size_t out = Size(linear.weights->ne[1]);
    const void* weights = static_cast<const char*>(linear.weights->data) +
                          piece.expert * linear.weights->nb[2];
    if (stored_ != operands_) {
      auto* converted = space.weights.AtLeast<float>(in * out);
      const ConstAnyMatrix stored(weights, stored_, out, in, in);
      if (!switchyard::Quantize({stored}, {AnyMatrix(converted, out, in)})
               .ok()) {
        throw std::bad_alloc();
      }
      weights = converted;
    }
    const float* bias = linear.bias == nullptr
                            ? nullptr
                            : Floats(linear.bias) + piece.expert * out;
    RunGemm({piece.rows, in, out, operands_, bias != nullptr}, x, weights, bias,
            y, space.pad);
  }

  bool RunPiece(const Piece& piece, ThreadSpace& space) const {
    const bool fused = chain_.up.weights == nullptr;
    const size_t rows = piece.rows;
    const size_t gate_size = intermediate_ * (fused ? 2 : 1);
    // The larger of the two operand types.
    AnyMatrix x(space.input.AtLeast<float>(rows * hidden_), operands_, rows,
                hidden_, hidden_);
    AnyMatrix activated(space.activated.AtLeast<float>(rows * intermediate_),
                        operands_, rows, intermediate_, intermediate_);
    const AnyMatrix gate(space.gate.AtLeast<float>(rows * gate_size), rows,
                         gate_size);
    if (!switchyard::GatherRows(
             {MatrixOf(chain_.input, chain_.input->ne[2], chain_.input->ne[0]),
              {workspace_.pairs.data() + piece.begin, rows},
              Ids()},
             {x})
             .ok()) {
      return false;
    }
    Multiply(chain_.gate, piece, x.data, gate.Row<float>(0), space);
    switchyard::ActivateInputs inputs{gate};
    switchyard::ActivateOptions options = chain_.activation;
    if (fused) {
      options.layout = switchyard::GateUpLayout::kConcatenated;
    } else {
      inputs.up = AnyMatrix(space.up.AtLeast<float>(rows * intermediate_), rows,
                            intermediate_);
      Multiply(chain_.up, piece, x.data,
               space.up.AtLeast<float>(rows * intermediate_), space);
    }
    if (!Activate(inputs, {activated}, options).ok()) return false;
    Multiply(chain_.down, piece, activated.data, out_ + piece.begin * OutSize(),
             space);
    return true;
  }

  const ExpertsChain& chain_;
  Workspace& workspace_;
  const Type stored_;
  const Type operands_;
  const size_t hidden_;
  const size_t intermediate_;
  const size_t tokens_;
  const size_t top_k_;
  const size_t num_experts_;
  float* out_ = nullptr;
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
  return Combined(chain, MatrixOf(chain.rows, rows, chain.rows->ne[0]),
                  RowIndex::kTokenOrder, executor);
}

}  // namespace switchyard_ggml
