// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/faults/layer.h"

#include <cstring>
#include <thread>

namespace switchyard::testing_support {
namespace {

constexpr size_t kMostWorkers = 64;

// Claims to have as many workers as any executor in these tests. So the
// scratch size for this executor is enough for every executor.
class ManyWorkers final : public Executor {
 public:
  size_t Concurrency() const noexcept override { return kMostWorkers; }
  Status ParallelFor(size_t, size_t, Body, void*) noexcept override {
    return Status(StatusCode::kInternal, "ManyWorkers: never runs");
  }
};

constexpr SharedGate kGates[] = {SharedGate::kLogit, SharedGate::kScalar,
                                 SharedGate::kNone};

}  // namespace

Layer::Layer(const Shape& shape, uint64_t seed)
    : tokens_(shape.tokens),
      experts_(shape.experts),
      top_k_(std::min(shape.top_k, shape.experts)),
      hidden_(shape.hidden / 2 * 2) {
  Random random(seed);
  renormalize_ = random.Below(2) == 0;
  tight_ = random.Below(2) == 0;
  padding_ = random.Below(2) == 0;
  clamp_ = random.Uniform(0.0f, 0.5f);
  stores_ = static_cast<ActivateStores>(random.Below(3));
  layout_ = random.Below(2) == 0 ? GateUpLayout::kConcatenated
                                 : GateUpLayout::kInterleaved;
  const size_t gate = random.Below(4);
  shared_ = gate == 3 ? nullptr : &kGates[gate];

  const size_t pairs = tokens_ * top_k_;
  logits_ = random.Uniforms(tokens_ * experts_, -4.0f, 4.0f);
  states_ = random.Uniforms(tokens_ * hidden_, -2.0f, 2.0f);
  up_ = random.Uniforms(pairs * hidden_, -2.0f, 2.0f);
  norm_ = random.Uniforms(hidden_, 0.5f, 1.5f);
  gate_ = random.Uniforms(tokens_, -2.0f, 2.0f);
  weights_.resize(pairs);
  rows_.resize(pairs * hidden_);
  acted_.resize(pairs * hidden_);
  half_.resize(pairs * hidden_ / 2);
  out_.resize(tokens_ * hidden_);
  normed_.resize(tokens_ * hidden_);
  ids_.resize(pairs);
  counts_.resize(experts_);
  offsets_.resize(experts_ + 1);
  pairs_.resize(pairs);
  index_.resize(pairs);
  table_.resize(experts_ * pairs);
  scratch_.resize(BucketScratchSize(pairs, experts_, ManyWorkers()));

  plan_.num_experts = experts_;
  plan_.hidden = hidden_;
  plan_.intermediate = 1 + random.Below(hidden_);
  if (random.Below(2) == 0) plan_.shared_intermediate = 1 + random.Below(40);
  plan_.workers = 1 + random.Below(kMostWorkers);
  plan_.tile_columns = random.Below(3) * 8;
  plan_.max_rows = 1 + random.Below(20);
  options_.activate.layout = layout_;
  options_.shared_activate.layout = layout_;
  options_.operands.type = random.Below(2) == 0 ? Type::kF32 : Type::kBF16;
  options_.gate_up_type = options_.down_type = options_.operands.type;
  layer_out_.resize(tokens_ * hidden_);
  plan_memory_.resize(ExpertsPlanSize(tokens_, top_k_, plan_));
  layer_scratch_.resize(
      ExpertsScratchSize(tokens_, top_k_, plan_, options_, kMostWorkers));
}

Status Layer::Experts(Executor& executor) {
  products = 0;
  ExpertsPlan plan;
  const Status planned =
      PlanExperts({TopkIds()}, {plan_memory_, &plan}, plan_, executor);
  if (!planned.ok()) return planned;
  ExpertsInputs inputs;
  inputs.plan = &plan;
  inputs.hidden = ConstAnyMatrix(states_.data(), tokens_, hidden_);
  inputs.combine.topk_weights = {weights_.data(), tokens_, top_k_};
  if (plan_.shared_intermediate != 0) {
    inputs.combine.shared.gate = {gate_.data(), tokens_, 1};
  }
  inputs.scratch = layer_scratch_;
  return RunExperts(
      inputs, {{layer_out_.data(), tokens_, hidden_}, {}, &report}, options_,
      [this](const ExpertTile& tile) { return Multiply(tile); }, executor);
}

// Multiplies by a matrix in which each column has one 1 and otherwise zeros.
// The product only copies elements, so no floating-point mode can change it.
Status Layer::Multiply(const ExpertTile& tile) {
  if (products++ == failing_product) {
    return Status(StatusCode::kInternal, kProductFails);
  }
  if (yields) std::this_thread::yield();
  const size_t size = SizeOf(tile.out.type);
  const auto shift = static_cast<size_t>(tile.expert + 1) * 7;
  for (size_t r = 0; r < tile.out.rows; ++r) {
    const auto* const x =
        static_cast<const char*>(tile.rows.data) + r * tile.rows.stride * size;
    auto* const y =
        static_cast<char*>(tile.out.data) + r * tile.out.stride * size;
    for (size_t c = 0; c < tile.out.cols; ++c) {
      const size_t one = (tile.first_column + c + shift) % tile.rows.cols;
      std::memcpy(y + c * size, x + one * size, size);
    }
  }
  return Status();
}

const Layer::Step* Layer::Steps() {
  static constexpr Step kAll[kSteps] = {
      &Layer::Route,  &Layer::Pack,          &Layer::Stride,
      &Layer::Gather, &Layer::ActivateSplit, &Layer::ActivateBoth,
      &Layer::Sum,    &Layer::Experts};
  return kAll;
}

uint64_t Layer::Digest() const {
  testing_support::Digest digest;
  for (const std::vector<int32_t>* v :
       {&ids_, &counts_, &offsets_, &pairs_, &index_, &table_}) {
    digest.Add(Span<const int32_t>(*v));
  }
  for (const std::vector<float>* v :
       {&weights_, &rows_, &acted_, &half_, &out_, &normed_, &layer_out_}) {
    digest.Add(Span<const float>(*v));
  }
  digest.Add(static_cast<uint32_t>(report.max_rows));
  digest.Add(static_cast<uint32_t>(report.row_stride));
  return digest.value();
}

void Layer::Clear() {
  report = Report();
  for (std::vector<int32_t>* v : {&ids_, &counts_, &offsets_, &pairs_, &index_,
                                  &table_, &layer_scratch_}) {
    std::fill(v->begin(), v->end(), -7);
  }
  for (std::vector<float>* v :
       {&weights_, &rows_, &acted_, &half_, &out_, &normed_, &layer_out_}) {
    std::fill(v->begin(), v->end(), kNaN);
  }
}

}  // namespace switchyard::testing_support
