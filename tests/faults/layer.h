// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs every kernel once, one after the other, in memory that the constructor
// allocates. Programs use this class if they only check whether the results
// are right. It does not use GoogleTest, because some of those programs are
// not tests.

#ifndef SWITCHYARD_TESTS_FAULTS_LAYER_H_
#define SWITCHYARD_TESTS_FAULTS_LAYER_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/layer.h"
#include "switchyard/route.h"
#include "testing/digest.h"
#include "testing/inputs.h"

namespace switchyard::testing_support {

struct Shape {
  size_t tokens = 512;
  size_t experts = 64;
  size_t top_k = 4;
  size_t hidden = 160;
};

class Layer {
 public:
  // Draws values and options from the seed.
  Layer(const Shape& shape, uint64_t seed);

  // The kernels in the order of their calls, so that each kernel finds its
  // inputs. The kernels neither throw nor allocate.
  using Step = Status (Layer::*)(Executor&);
  static constexpr size_t kSteps = 8;
  static const Step* Steps();

  // Runs all kernels, and returns the first error.
  Status Run(Executor& executor) {
    for (size_t i = 0; i < kSteps; ++i) {
      const Status status = (this->*Steps()[i])(executor);
      if (!status.ok()) return status;
    }
    return Status();
  }
  uint64_t Digest() const;
  // Clears all results.
  void Clear();
  // Runs the kernels on one thread and returns the digest of their results.
  uint64_t Expected() {
    Clear();
    return Run(SerialExecutor()).ok() ? Digest() : 0;
  }
  // True if Run() succeeds and its results have the digest `expected`.
  bool IsRight(Executor& executor, uint64_t expected) {
    Clear();
    return Run(executor).ok() && Digest() == expected;
  }

  Status Route(Executor& executor) {
    return RouteTopK(
        {{logits_.data(), tokens_, experts_}},
        {{ids_.data(), tokens_, top_k_}, {weights_.data(), tokens_, top_k_}},
        {renormalize_, clamp_}, executor);
  }
  // Routes with the options of the Metal kernel moe_router_topk_softmax_f32.
  Status RouteAsMetal() {
    renormalize_ = true;
    clamp_ = RouteOptions().clamp;
    return Route(SerialExecutor());
  }
  Status Pack(Executor& executor) {
    return BucketPacked(
        {TopkIds(), scratch_},
        {counts_, offsets_, pairs_, {index_.data(), tokens_, top_k_}, &report},
        {}, executor);
  }
  Status Stride(Executor& executor) {
    const size_t stride = tight_ ? StridedBuckets::kTightStride : index_.size();
    return BucketStrided({TopkIds(), scratch_},
                         {counts_, table_, stride, padding_, &report}, {},
                         executor);
  }
  Status Gather(Executor& executor) {
    return GatherRows({{states_.data(), tokens_, hidden_}, pairs_, TopkIds()},
                      {{rows_.data(), index_.size(), hidden_}, &report}, {},
                      executor);
  }
  // ActivateSplit() takes the gathered rows as the gate, and another matrix
  // as up. ActivateBoth() takes both gate and up from that other matrix.
  Status ActivateSplit(Executor& executor) {
    return Activate({{rows_.data(), index_.size(), hidden_},
                     {up_.data(), index_.size(), hidden_}},
                    {{acted_.data(), index_.size(), hidden_}},
                    {Activation::kSilu, GateUpLayout::kSplit, stores_},
                    executor);
  }
  Status ActivateBoth(Executor& executor) {
    return Activate({{up_.data(), index_.size(), hidden_}},
                    {{half_.data(), index_.size(), hidden_ / 2}},
                    {Activation::kSilu, layout_, stores_}, executor);
  }
  Status Sum(Executor& executor) {
    SharedExpert shared;
    if (shared_ != nullptr) {
      shared.kind = *shared_;
      shared.rows = {states_.data(), tokens_, hidden_};
      if (shared.kind != SharedGate::kNone)
        shared.gate = {gate_.data(), tokens_, 1};
    }
    return Combine({{acted_.data(), index_.size(), hidden_},
                    {weights_.data(), tokens_, top_k_},
                    {index_.data(), tokens_, top_k_},
                    {states_.data(), tokens_, hidden_},
                    norm_,
                    shared},
                   {{out_.data(), tokens_, hidden_},
                    {normed_.data(), tokens_, hidden_},
                    &report},
                   {}, executor);
  }
  // Computes all experts of a layer in one parallel region.
  Status Experts(Executor& executor);

  // Experts() fails at the product with this number, counted from 0.
  // `products` counts the products that Experts() has started.
  size_t failing_product = SIZE_MAX;
  std::atomic<size_t> products{0};
  bool yields = false;  // lets products yield, so that other workers overtake
  static constexpr const char kProductFails[] = "Layer: a product fails";

  Report report;

  const std::vector<float>& logits() const { return logits_; }
  const std::vector<int32_t>& ids() const { return ids_; }
  const std::vector<float>& weights() const { return weights_; }
  const std::vector<int32_t>& counts() const { return counts_; }

 private:
  ConstAnyMatrix TopkIds() const { return {ids_.data(), tokens_, top_k_}; }
  Status Multiply(const ExpertTile& tile);

  const size_t tokens_, experts_, top_k_, hidden_;
  bool renormalize_, tight_, padding_;
  float clamp_;
  ActivateStores stores_;
  GateUpLayout layout_;
  const SharedGate* shared_;  // null: no shared expert
  ExpertsPlanOptions plan_;
  ExpertsOptions options_;

  std::vector<float> logits_, states_, up_, norm_, gate_;
  std::vector<float> weights_, rows_, acted_, half_, out_, normed_, layer_out_;
  std::vector<int32_t> ids_, counts_, offsets_, pairs_, index_, table_,
      scratch_, plan_memory_, layer_scratch_;
};

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_FAULTS_LAYER_H_
