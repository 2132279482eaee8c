// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "moe_block.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "common/for_each.h"
#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/route.h"

namespace moe_layer {
namespace {

using example::Check;
using switchyard::Matrix;

constexpr size_t kSharedExpert = SIZE_MAX;

// How work is cut must not depend on the number of threads: a GEMM's bits may
// depend on how many rows it is given.
constexpr size_t kRouterRows = 64;
// A GEMM of 64 rows takes 86 us a row, of 128 rows 70, of 256 rows 61
// (2048 x 768, one AVX-512 core); of 512 tokens, no expert gets more than 149.
constexpr size_t kTileRows = 256;

size_t CeilDiv(size_t a, size_t b) { return (a + b - 1) / b; }

// Time since the last reading.
class Lap {
 public:
  double Seconds() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> lap = now - std::exchange(last_, now);
    return lap.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ =
      std::chrono::steady_clock::now();
};

// Number is size_t, or double where products might not fit.
template <class Number>
Number GateUpFloats(const MoeShape& shape) {
  return Number{kTileRows} * 2 *
         static_cast<Number>(
             std::max(shape.intermediate, shape.shared_intermediate));
}

template <class Number>
Number ResultFloats(const MoeShape& shape, size_t tokens) {
  const auto hidden = static_cast<Number>(shape.hidden);
  const auto top_k = static_cast<Number>(shape.top_k);
  const Number shared = shape.shared_intermediate != 0 ? hidden + 1 : 0;
  return static_cast<Number>(tokens) *
         (static_cast<Number>(shape.num_experts) + top_k + top_k * hidden +
          2 * hidden + shared);
}

size_t ResultInts(const MoeShape& shape, size_t tokens) {
  return 3 * tokens * shape.top_k + 2 * shape.num_experts + 1;
}

// y[r, o] = sum over i of x[r, i] * w[o, i], by oneDNN on the calling thread
// alone: the executor's threads already keep every core busy, and a second pool
// would fight them for the cores. `w` is [y.cols, x.cols], dense.
void Gemm(Matrix<const float> x, const float* w, Matrix<float> y) {
  // Of the calling thread only, so it has to be said on each; a few ns.
  omp_set_num_threads(1);
  const auto dim = [](size_t size) { return static_cast<dnnl_dim_t>(size); };
  const dnnl_status_t status =
      dnnl_sgemm('N', 'T', dim(x.rows), dim(y.cols), dim(x.cols), 1.0f, x.data,
                 dim(x.stride), w, dim(x.cols), 0.0f, y.data, dim(y.stride));
  if (status != dnnl_success) {
    throw std::runtime_error("oneDNN: GEMM failed");
  }
}

// Fills in bytes and flops. `tiles` and `shared_tiles` count how often the
// weights of an expert, and of the shared one, are read.
void AddWork(const MoeShape& shape, size_t tokens, size_t tiles,
             size_t shared_tiles, StageProfile* profile) {
  constexpr double kWord = 4;  // every float and every index
  const auto t = static_cast<double>(tokens);
  const auto pairs = t * static_cast<double>(shape.top_k);
  const auto h = static_cast<double>(shape.hidden);
  const auto f = static_cast<double>(shape.intermediate);
  const auto s = static_cast<double>(shape.shared_intermediate);
  const auto e = static_cast<double>(shape.num_experts);
  const double shared = s > 0 ? 1 : 0;
  const auto set = [&](Stage stage, double words, double flops) {
    (*profile)[stage].bytes = words * kWord;
    (*profile)[stage].flops = flops;
  };
  const auto weights = static_cast<double>(tiles) * f * h +
                       static_cast<double>(shared_tiles) * s * h;
  const double inner = pairs * f + shared * t * s;  // activations
  set(Stage::kRouterGemm, (e + shared) * h + t * h + t * (e + shared),
      2 * t * h * (e + shared));
  set(Stage::kRoute, t * e + 2 * pairs, 0);
  set(Stage::kBucket, 3 * pairs + 2 * e, 0);
  set(Stage::kGather, 2 * pairs * h, 0);
  set(Stage::kGateUpGemm, 2 * weights + (pairs + shared * t) * h + 2 * inner,
      4 * h * inner);
  set(Stage::kActivate, 3 * inner, 0);
  set(Stage::kDownGemm, weights + inner + (pairs + shared * t) * h,
      2 * h * inner);
  // Rows, weights, row_index and residual in; the sum and its norm out.
  set(Stage::kCombine, pairs * (h + 2) + t * h * (3 + shared) + shared * t + h,
      0);
}

}  // namespace

double StageProfile::TotalSeconds() const {
  double total = 0;
  for (const StageCost& cost : stages) total += cost.seconds;
  return total;
}

double StageProfile::BetweenGemmsSeconds() const {
  double total = 0;
  for (const Stage stage : {Stage::kRoute, Stage::kBucket, Stage::kGather,
                            Stage::kActivate, Stage::kCombine}) {
    total += (*this)[stage].seconds;
  }
  return total;
}

double MoeBlock::MemoryNeeded(const MoeShape& shape, size_t tokens,
                              size_t threads) {
  const double words =
      ResultFloats<double>(shape, tokens) +
      static_cast<double>(ResultInts(shape, tokens)) +
      static_cast<double>(threads) *
          (static_cast<double>(kTileRows) * static_cast<double>(shape.hidden) +
           GateUpFloats<double>(shape));
  return words * sizeof(float);
}

MoeBlock::MoeBlock(const LayerWeights& weights, size_t tokens,
                   switchyard::Executor& executor)
    : layer_(weights),
      executor_(executor),
      tokens_(tokens),
      floats_(ResultFloats<size_t>(weights.shape, tokens)),
      ints_(ResultInts(weights.shape, tokens)),
      bucket_scratch_(switchyard::BucketScratchSize(
          tokens * weights.shape.top_k, weights.shape.num_experts, executor)),
      workers_(executor.Concurrency()) {
  const MoeShape& shape = weights.shape;
  for (Worker& worker : workers_) {
    worker.gathered = FloatBuffer(kTileRows * shape.hidden);
    worker.gate_up = FloatBuffer(GateUpFloats<size_t>(shape));
  }
  const size_t pairs = tokens * shape.top_k;
  tiles_.reserve(shape.num_experts + pairs / kTileRows +
                 CeilDiv(tokens, kTileRows));

  float* next = floats_.data();
  const auto matrix = [&](size_t rows, size_t cols) {
    return Matrix<float>(std::exchange(next, next + rows * cols), rows, cols);
  };
  int32_t* next_int = ints_.data();
  const auto ints = [&](size_t count) {
    return std::exchange(next_int, next_int + count);
  };
  results_.logits = matrix(tokens, shape.num_experts);
  results_.ids = {ints(pairs), tokens, shape.top_k};
  results_.weights = matrix(tokens, shape.top_k);
  results_.row_index = {ints(pairs), tokens, shape.top_k};
  results_.buckets = {{ints(shape.num_experts), shape.num_experts},
                      {ints(shape.num_experts + 1), shape.num_experts + 1},
                      {ints(pairs), pairs},
                      results_.row_index};
  results_.expert_rows = matrix(pairs, shape.hidden);
  results_.out = matrix(tokens, shape.hidden);
  results_.next_normed = matrix(tokens, shape.hidden);
  if (shape.shared_intermediate != 0) {
    results_.shared_rows = matrix(tokens, shape.hidden);
    results_.shared_logits = matrix(tokens, 1);
  }
}

void MoeBlock::Run(Matrix<const float> hidden, Matrix<const float> normed) {
  normed_ = normed;
  Lap lap;
  RouterGemm();
  profile_[Stage::kRouterGemm].seconds = lap.Seconds();

  Check(switchyard::RouteTopK({results_.logits},
                              {results_.ids, results_.weights},
                              {layer_.shape.renormalize}, executor_));
  profile_[Stage::kRoute].seconds = lap.Seconds();

  Check(switchyard::BucketPacked({results_.ids, bucket_scratch_},
                                 results_.buckets, {}, executor_));
  CutTiles();
  profile_[Stage::kBucket].seconds = lap.Seconds();

  for (Worker& worker : workers_) worker.seconds.fill(0);
  example::ForEach(executor_, tiles_.size(), 1,
                   [this](size_t worker, size_t i) {
                     RunTile(tiles_[i], workers_[worker]);
                   });
  const double section = lap.Seconds();
  double busy = 0;
  for (const Stage stage : {Stage::kGather, Stage::kGateUpGemm,
                            Stage::kActivate, Stage::kDownGemm}) {
    double total = 0;
    for (const Worker& worker : workers_) {
      total += worker.seconds[static_cast<size_t>(stage)];
    }
    profile_[stage].seconds = total / static_cast<double>(workers_.size());
    busy += profile_[stage].seconds;
  }
  profile_[Stage::kWaiting].seconds = section - busy;

  Combine(hidden);
  profile_[Stage::kCombine].seconds = lap.Seconds();
  const auto shared_tiles = static_cast<size_t>(std::count_if(
      tiles_.begin(), tiles_.end(),
      [](const Tile& tile) { return tile.expert == kSharedExpert; }));
  AddWork(layer_.shape, tokens_, tiles_.size() - shared_tiles, shared_tiles,
          &profile_);
}

void MoeBlock::RouterGemm() {
  example::ForEach(
      executor_, CeilDiv(tokens_, kRouterRows), 1, [this](size_t i) {
        const size_t first = i * kRouterRows;
        const size_t last = std::min(tokens_, first + kRouterRows);
        const Matrix<const float> x = normed_.RowRange(first, last);
        Gemm(x, layer_.router, results_.logits.RowRange(first, last));
        if (results_.shared_logits.data == nullptr) return;
        Gemm(x, layer_.shared_logit,
             results_.shared_logits.RowRange(first, last));
      });
}

// Splits busy experts, so that no thread is left alone with one at the end, and
// evenly, since GEMMs of few rows are slow per row.
void MoeBlock::CutTiles() {
  tiles_.clear();
  const auto cut = [this](size_t expert, size_t first, size_t rows) {
    const size_t parts = CeilDiv(rows, kTileRows);
    for (size_t part = 0; part < parts; ++part) {
      const size_t begin = rows * part / parts;
      const size_t end = rows * (part + 1) / parts;
      tiles_.push_back({expert, first + begin, end - begin});
    }
  };
  if (layer_.shape.shared_intermediate != 0) cut(kSharedExpert, 0, tokens_);
  for (size_t e = 0; e < layer_.shape.num_experts; ++e) {
    cut(e, static_cast<size_t>(results_.buckets.offsets.data[e]),
        static_cast<size_t>(results_.buckets.tokens_per_expert.data[e]));
  }
}

// Runs on one thread, like the kernels it calls: their default executor is
// serial. The rows stay in this core's cache from one step to the next.
void MoeBlock::RunTile(const Tile& tile, Worker& worker) {
  const bool is_shared = tile.expert == kSharedExpert;
  const ExpertWeights& expert =
      is_shared ? layer_.shared : layer_.experts[tile.expert];
  const size_t inter =
      is_shared ? layer_.shape.shared_intermediate : layer_.shape.intermediate;
  const size_t end = tile.begin + tile.rows;
  Lap lap;
  const auto add_time = [&](Stage stage) {
    worker.seconds[static_cast<size_t>(stage)] += lap.Seconds();
  };
  Matrix<const float> x;
  if (is_shared) {
    x = normed_.RowRange(tile.begin, end);
  } else {
    x = {worker.gathered.data(), tile.rows, layer_.shape.hidden};
    Check(switchyard::GatherRows(
        {normed_,
         {results_.buckets.pairs.data + tile.begin, tile.rows},
         results_.ids},
        {{worker.gathered.data(), x.rows, x.cols}}));
  }
  add_time(Stage::kGather);

  const Matrix<float> gate_up(worker.gate_up.data(), tile.rows, 2 * inter);
  const Matrix<float> gate = gate_up.ColRange(0, inter);
  Gemm(x, expert.gate, gate);
  Gemm(x, expert.up, gate_up.ColRange(inter, 2 * inter));
  add_time(Stage::kGateUpGemm);

  Check(switchyard::Activate({gate_up}, {/*out=*/gate},
                             {switchyard::Activation::kSilu,
                              switchyard::GateUpLayout::kConcatenated}));
  add_time(Stage::kActivate);

  const Matrix<float>& rows =
      is_shared ? results_.shared_rows : results_.expert_rows;
  Gemm(gate, expert.down, rows.RowRange(tile.begin, end));
  add_time(Stage::kDownGemm);
}

void MoeBlock::Combine(Matrix<const float> hidden) {
  // Without a shared expert, its rows and logits are empty.
  Check(switchyard::Combine({results_.expert_rows,
                             results_.weights,
                             results_.row_index,
                             hidden,
                             {layer_.next_norm, 1, layer_.shape.hidden},
                             {results_.shared_rows, results_.shared_logits}},
                            {results_.out, results_.next_normed},
                            {layer_.shape.norm_eps}, executor_));
}

void InputNorm(const LayerWeights& layer, Matrix<const float> hidden,
               Matrix<float> normed, switchyard::Executor& executor) {
  const std::vector<float> ones(hidden.rows, 1.0f);
  FloatBuffer copy(hidden.rows * hidden.cols);
  Check(switchyard::Combine({hidden,
                             {ones.data(), hidden.rows, 1},
                             switchyard::RowIndex::kTokenOrder,
                             {},
                             {layer.norm, 1, hidden.cols}},
                            {{copy.data(), hidden.rows, hidden.cols}, normed},
                            {layer.shape.norm_eps}, executor));
}

}  // namespace moe_layer
