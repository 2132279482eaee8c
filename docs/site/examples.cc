// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The examples of the reference: setup.sh docs shows each on its function's
// page, and a test runs them all.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/executor.h"
#include "switchyard/expert_weights.h"
#include "switchyard/gather.h"
#include "switchyard/hyper.h"
#include "switchyard/isa.h"
#include "switchyard/layer.h"
#include "switchyard/map.h"
#include "switchyard/presets.h"
#include "switchyard/quantize.h"
#include "switchyard/route.h"

using namespace switchyard;  // NOLINT(build/namespaces)

namespace {

// A layer of 4 tokens and 16 columns; each token takes 2 of 8 experts.
constexpr size_t kTokens = 4, kExperts = 8, kTopK = 2, kHidden = 16;
constexpr size_t kPairs = kTokens * kTopK;
std::vector<float> logits(kTokens*kExperts), weights(kPairs);
std::vector<int32_t> ids(kPairs), counts(kExperts), offsets(kExperts + 1);
std::vector<int32_t> pairs(kPairs), row_index(kPairs);
std::vector<float> hidden(kTokens*kHidden, 1.0f), rows(kPairs*kHidden);

void Require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message());
  std::exit(1);
}

void Route() {
  //! [RouteTopK]
  RouteOptions options;
  options.renormalize = true;  // norm_topk_prob
  Require(RouteTopK(
      {{logits.data(), kTokens, kExperts}},
      {{ids.data(), kTokens, kTopK}, {weights.data(), kTokens, kTopK}},
      options));
  // For reinforcement learning: records the experts, and replays them later.
  std::vector<uint16_t> record(kTokens * kTopK);
  RouteOutputs outputs = {{ids.data(), kTokens, kTopK},
                          {weights.data(), kTokens, kTopK}};
  outputs.record = {record.data(), kTokens, kTopK};
  Require(RouteTopK({{logits.data(), kTokens, kExperts}}, outputs, options));
  RouteInputs replay = {{logits.data(), kTokens, kExperts}};
  replay.given_ids = {record.data(), kTokens, kTopK};
  outputs.record = {};
  Require(RouteTopK(replay, outputs, options));
  //! [RouteTopK]
}

void Configure() {
  //! [FindPreset]
  Preset preset;
  Require(FindPreset("qwen3_moe", &preset));
  //! [FindPreset]
  ModelConfig config;
  //! [SetField]
  // For each key and value of config.json. Unknown keys are allowed:
  Require(SetField("num_experts", 128, &config));
  Require(SetField("hidden_act", "silu", &config));
  //! [SetField]
  //! [SetNull]
  // A null in config.json means the default of the family's configuration
  // class.
  Require(SetNull("routed_scaling_factor", &config));
  //! [SetNull]
  //! [ApplyConfig]
  config.num_experts = 128;
  config.num_experts_per_tok = 8;
  config.norm_topk_prob = true;
  config.rms_norm_eps = 1e-6f;
  Require(ApplyConfig(config, &preset));
  const RouteOptions& options = preset.route;  // and preset.activate, .combine
  //! [ApplyConfig]
  //! [SetOption]
  // Names and values as text, as a command line or a file has them:
  Require(SetOption("score", "sigmoid", &preset));
  Require(SetOption("combine.eps", 1e-5, &preset));
  //! [SetOption]
  if (!options.renormalize) std::exit(1);
}

void Buckets() {
  const ConstAnyMatrix topk_ids(ids.data(), kTokens, kTopK);
  //! [BucketPacked]
  PackedBuckets packed = {counts, offsets, pairs};
  packed.row_index = AnyMatrix(row_index.data(), kTokens, kTopK);
  Require(BucketPacked({topk_ids}, packed));
  // Expert e has the pairs [offsets[e], offsets[e + 1]).
  //! [BucketPacked]
  //! [BucketStrided]
  std::vector<int32_t> table(kExperts * kPairs);
  Report report;
  StridedBuckets strided = {counts, table};
  strided.row_stride = kPairs;  // room for all pairs in each row
  strided.report = &report;
  Require(BucketStrided({topk_ids}, strided));
  //! [BucketStrided]
  //! [MakeDispatchArgs]
  std::vector<uint32_t> grid(3);
  Require(MakeDispatchArgs({report.max_rows, kExperts, kHidden}, {grid}));
  //! [MakeDispatchArgs]
  //! [BucketAligned]
  AlignedOptions options;
  options.block_size = 4;
  const size_t size = BucketAlignedSize(kPairs, kExperts, options);
  std::vector<int32_t> aligned(size), block_experts(size / options.block_size);
  AlignedBuckets blocks;
  blocks.tokens_per_expert = counts;
  blocks.offsets = offsets;
  blocks.pairs = aligned;
  blocks.block_experts = block_experts;  // the expert of each block of 4 rows
  Require(BucketAligned({topk_ids}, blocks, options));
  //! [BucketAligned]
  Require(BucketPacked({topk_ids}, packed));
}

void Experts() {
  //! [PlanExperts]
  ExpertsPlanOptions shape;
  shape.num_experts = kExperts;
  shape.hidden = kHidden;
  shape.intermediate = 4;
  shape.workers = 1;  // pool.Concurrency()
  std::vector<int32_t> memory(ExpertsPlanSize(kTokens, kTopK, shape));
  ExpertsPlan plan;
  Require(PlanExperts({{ids.data(), kTokens, kTopK}}, {memory, &plan}, shape));
  //! [PlanExperts]
  std::vector<float> residual(kTokens * kHidden);
  //! [RunExperts]
  ExpertsOptions options;
  options.activate.layout = GateUpLayout::kConcatenated;
  std::vector<int32_t> scratch(ExpertsScratchSize(plan, options, 1));
  ExpertsInputs in;
  in.plan = &plan;
  in.hidden = {hidden.data(), kTokens, kHidden};
  in.combine.topk_weights = {weights.data(), kTokens, kTopK};
  in.combine.residual = {residual.data(), kTokens, kHidden};
  in.scratch = scratch;
  // In place of an engine's GEMM: all weights are 1, so each output is the sum
  // of a row.
  const auto multiply = [](const ExpertTile& tile) {
    for (size_t r = 0; r < tile.rows.rows; ++r) {
      const float* const x = tile.rows.Row<float>(r);
      float sum = 0;
      for (size_t i = 0; i < tile.rows.cols; ++i) sum += x[i];
      for (size_t c = 0; c < tile.out.cols; ++c)
        tile.out.Row<float>(r)[c] = sum;
    }
    return Status();
  };
  Require(
      RunExperts(in, {{residual.data(), kTokens, kHidden}}, options, multiply));
  //! [RunExperts]
}

// Runs experts with quantised weights, for which the engine needs no GEMM.
// Here PackWeights() quantises floats.
void QuantizedExperts() {
  constexpr size_t kInter = 32, kIn = 64;
  std::vector<float> up_floats(kExperts * kInter * kIn, 0.5f);
  std::vector<float> down_floats(kExperts * kIn * kInter, 0.5f);
  //! [PackWeights]
  PackWeightsInputs up, down;
  up.weights.format = down.weights.format = WeightFormat::kQ4_0;
  up.weights.rows = down.weights.cols = kInter;
  up.weights.cols = down.weights.rows = kIn;
  up.floats = {up_floats.data(), kExperts * kInter, kIn};
  down.floats = {down_floats.data(), kExperts * kIn, kInter};
  const size_t up_size = PackedWeightsSize(up.weights);
  const size_t down_size = PackedWeightsSize(down.weights);
  std::vector<uint8_t> memory(kExperts * (up_size + down_size));
  uint8_t* const down_memory = memory.data() + kExperts * up_size;
  LayerWeights layer;
  Require(PackWeights(up, {{memory.data(), kExperts, up_size}, &layer.gate}));
  layer.up = layer.gate;  // keeps the example short
  Require(PackWeights(down, {{down_memory, kExperts, down_size}, &layer.down}));
  //! [PackWeights]
  std::vector<float> x(kTokens * kIn, 1.0f), out(kTokens * kIn);
  //! [MultiplyTile]
  ExpertsPlanOptions shape;
  shape.num_experts = kExperts;
  shape.hidden = kIn;
  shape.intermediate = kInter;
  SetCosts(WeightFormat::kQ4_0, &shape);
  std::vector<int32_t> plan_memory(ExpertsPlanSize(kTokens, kTopK, shape));
  ExpertsPlan plan;
  Require(
      PlanExperts({{ids.data(), kTokens, kTopK}}, {plan_memory, &plan}, shape));
  ExpertsOptions options;
  options.operands = OperandsOf(WeightFormat::kQ4_0);
  options.activate.layout = GateUpLayout::kSplit;
  std::vector<int32_t> scratch(ExpertsScratchSize(plan, options, 1));
  ExpertsInputs in;
  in.plan = &plan;
  in.hidden = {x.data(), kTokens, kIn};
  in.combine.topk_weights = {weights.data(), kTokens, kTopK};
  in.scratch = scratch;
  // RunExperts() calls `layer` for each tile, like an engine's GEMM. `layer`
  // calls MultiplyTile().
  Require(RunExperts(in, {{out.data(), kTokens, kIn}}, options, layer));
  //! [MultiplyTile]
}

void Exchange() {
  //! [MapPairs]
  // Four experts live on each of two processes.
  std::vector<int32_t> send_counts(2), send_offsets(3), order(kPairs);
  MapOptions options;
  options.experts_per_destination = kExperts / 2;
  MapOutputs out;
  out.pairs.counts = send_counts;  // arguments of MPI_Alltoallv
  out.pairs.offsets = send_offsets;
  out.pairs.rows = order;
  Require(MapPairs({{ids.data(), kTokens, kTopK}}, out, options));
  //! [MapPairs]
}

void Replicas() {
  //! [MapReplicas]
  // Expert 0 is busy, and has a replica: physical expert 8.
  std::vector<int32_t> replicas(2 * kExperts, -1), num_replicas(kExperts, 1);
  for (size_t e = 0; e < kExperts; ++e) {
    replicas[2 * e] = static_cast<int32_t>(e);
  }
  replicas[1] = static_cast<int32_t>(kExperts);
  num_replicas[0] = 2;
  std::vector<int32_t> physical(kPairs), load(kExperts);
  Require(MapReplicas({{ids.data(), kTokens, kTopK},
                       {replicas.data(), kExperts, 2},
                       num_replicas},
                      {{physical.data(), kTokens, kTopK}, load}));
  // MapPairs then takes `physical`, with a table of nine experts.
  //! [MapReplicas]
}

void Counts() {
  //! [MapCounts]
  // Row s has the numbers of rows that rank s sends: MapPairs' counts of all
  // ranks, after MPI_Allgather.
  const std::vector<int32_t> matrix = {5, 3,   // from rank 0
                                       2, 6};  // from rank 1
  std::vector<int64_t> received(2), places(3);
  CountsOptions options;
  options.rank = 1;
  options.row_elements = kHidden;
  options.capacity = 16;  // rows of the receive buffer on each rank
  Require(MapCounts({{matrix.data(), 2, 2}}, {received, places}, options));
  // Rank 1 receives 3 rows from rank 0 and 6 rows from itself. The outputs
  // are recvcounts and rdispls of MPI_Alltoallv_c.
  //! [MapCounts]
}

void Rows() {
  //! [GatherRows]
  Require(GatherRows({ConstAnyMatrix(hidden.data(), kTokens, kHidden),
                      pairs,
                      {ids.data(), kTokens, kTopK}},
                     {AnyMatrix(rows.data(), kPairs, kHidden)}));
  //! [GatherRows]
  //! [Quantize]
  std::vector<int8_t> codes(kPairs * kHidden);
  std::vector<float> scales(kPairs);  // one for each row
  const AnyRows quantized = {AnyMatrix(codes.data(), kPairs, kHidden),
                             AnyMatrix(scales.data(), kPairs, 1)};
  Require(
      Quantize({ConstAnyMatrix(rows.data(), kPairs, kHidden)}, {quantized}));
  //! [Quantize]
  //! [ScatterRows]
  std::vector<float> by_pair(kPairs * kHidden);  // row token * top_k + slot
  Require(ScatterRows({ConstAnyMatrix(rows.data(), kPairs, kHidden),
                       {row_index.data(), kTokens, kTopK}},
                      {AnyMatrix(by_pair.data(), kPairs, kHidden)}));
  //! [ScatterRows]
}

void Layer() {
  //! [Activate]
  // A row of the fused product has gate, then up. The result replaces gate.
  std::vector<float> gate_up(kPairs * 2 * kHidden, 0.5f);
  const AnyMatrix both(gate_up.data(), kPairs, 2 * kHidden);
  ActivateOptions options;
  options.layout = GateUpLayout::kConcatenated;
  Require(Activate({both}, {both.ColRange(0, kHidden)}, options));
  //! [Activate]
  //! [Combine]
  std::vector<float> normed(kTokens * kHidden), norm_weight(kHidden, 1.0f);
  CombineInputs in = {ConstAnyMatrix(rows.data(), kPairs, kHidden),
                      {weights.data(), kTokens, kTopK},
                      ConstAnyMatrix(row_index.data(), kTokens, kTopK)};
  const AnyMatrix residual(hidden.data(), kTokens, kHidden);
  in.residual = residual;
  in.norm_weight = norm_weight;
  // Adds the weighted sum to the residual, and writes the next layer's norm.
  Require(Combine(in, {residual, AnyMatrix(normed.data(), kTokens, kHidden)}));
  //! [Combine]
  //! [HyperConnect]
  constexpr size_t kStreams = 2;
  std::vector<float> streams(kTokens * kStreams * kHidden, 1.0f);
  std::vector<float> post(kTokens * kStreams, 0.5f);
  HyperInputs hyper;
  const AnyMatrix all(streams.data(), kTokens * kStreams, kHidden);
  hyper.streams = all;
  hyper.block = residual;
  hyper.post = ConstAnyMatrix(post.data(), kTokens, kStreams);
  HyperOptions hyper_options;
  hyper_options.num_streams = kStreams;
  HyperOutputs out;
  out.streams = all;  // in place
  Require(HyperConnect(hyper, out, hyper_options));
  //! [HyperConnect]
}

void Machine() {
  //! [MakeTbbExecutor]
  // Null if the library was built without TBB.
  const std::unique_ptr<Executor> pool = MakeTbbExecutor();
  Executor& executor = pool ? *pool : SerialExecutor();
  //! [MakeTbbExecutor]
  if (executor.Concurrency() == 0) std::exit(1);
  //! [EnvironmentIsa]
  // The error that every kernel returns if SWITCHYARD_ISA names no ISA.
  Require(EnvironmentIsa());
  //! [EnvironmentIsa]
  //! [CapIsa]
  Require(CapIsa(RunnableIsas().data[0].name));  // no better ISA than this
  Require(CapIsa(nullptr));                      // the best of this CPU
  //! [CapIsa]
}

}  // namespace

int main() {
  Route();
  Configure();
  Buckets();
  Experts();
  QuantizedExperts();
  Exchange();
  Replicas();
  Counts();
  Rows();
  Layer();
  Machine();
  return 0;
}
