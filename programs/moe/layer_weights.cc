// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "layer_weights.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "programs/for_each.h"
#include "programs/machine.h"
#include "programs/program.h"

namespace moe_layer {
namespace {

using program::BytesText;
using switchyard::AnyMatrix;
using switchyard::Type;

// Converts the weights of one GEMM, which come from one or two tensors.
struct Job {
  const Gemm* gemm;
  std::array<const WeightTensor*, 2> tensors;
  GemmWeights* target;
  std::byte* storage = nullptr;

  bool IsUsedInPlace(size_t part) const {
    return gemm->TakesPlain() && tensors[part]->IsPlainF32();
  }
  // Returns the number of bytes that the weights need, without weights that
  // are used in place.
  size_t OwnedBytes() const {
    if (!gemm->TakesPlain()) return gemm->WeightBytes();
    size_t bytes = 0;
    for (size_t p = 0; p < gemm->parts().size(); ++p) {
      if (!IsUsedInPlace(p)) bytes += gemm->PartBytes(p);
    }
    return bytes;
  }
  void Run() const;
};

void Job::Run() const {
  const size_t parts = gemm->parts().size();
  if (gemm->TakesPlain()) {
    std::byte* next = storage;
    for (size_t p = 0; p < parts; ++p) {
      const WeightTensor& tensor = *tensors[p];
      // Also reads weights that are used in place, to check them and to load
      // them from the disk now, and not during the first run.
      void* out = const_cast<uint8_t*>(tensor.stored);
      if (!IsUsedInPlace(p))
        out = std::exchange(next, next + gemm->PartBytes(p));
      tensor.Read({AnyMatrix(out, Type::kF32, tensor.Rows(), tensor.Cols(),
                             tensor.Cols())});
      target->parts[p] = out;
    }
    return;
  }
  const RowBuffer plain(gemm->plain_type(), gemm->out(), gemm->in());
  size_t row = 0;
  for (size_t p = 0; p < parts; ++p) {
    const size_t end = row + gemm->parts()[p];
    tensors[p]->Read(plain.rows().RowRange(row, end));
    row = end;
  }
  *target = gemm->Pack(plain.rows(), storage);
}

ExpertGemms MakeGemms(const Dtype& dtype, size_t hidden, size_t intermediate,
                      bool interleaved) {
  const Type operands = OperandType(dtype.operands);
  std::vector<size_t> parts(2, intermediate);
  if (interleaved) parts = {2 * intermediate};
  return {std::make_unique<Gemm>(operands, hidden, parts, dtype.weights),
          std::make_unique<Gemm>(operands, intermediate,
                                 std::vector<size_t>{hidden}, dtype.weights)};
}

}  // namespace

double LayerWeights::Bytes() const {
  double bytes = 0;
  for (const auto& vector : vectors) {
    bytes += sizeof(float) * static_cast<double>(vector.rows * vector.cols);
  }
  for (const auto& matrix : matrices) bytes += static_cast<double>(matrix.size);
  return bytes;
}

LayerWeights LoadLayer(const LayerPlan& plan, const Dtype& dtype,
                       switchyard::Executor& executor) {
  const MoeShape& shape = plan.shape;
  const bool shared = shape.shared_intermediate != 0;
  LayerWeights weights;
  weights.title = plan.title;
  weights.shape = shape;
  weights.dtype = dtype;
  weights.checkpoint = plan.checkpoint;

  std::vector<size_t> router_parts = {shape.NumLogits()};
  if (shape.HasSharedLogit()) router_parts.push_back(1);
  weights.router_gemm = std::make_unique<Gemm>(OperandType(dtype.rows),
                                               shape.hidden, router_parts);
  const bool interleaved =
      shape.activate.layout == switchyard::GateUpLayout::kInterleaved;
  weights.expert_gemms =
      MakeGemms(dtype, shape.hidden, shape.intermediate, interleaved);
  weights.experts.resize(shape.num_experts);

  std::vector<Job> jobs;
  jobs.push_back({weights.router_gemm.get(),
                  {&plan.router, &plan.shared_logit},
                  &weights.router});
  const auto add_expert = [&](const ExpertGemms& gemms,
                              const LayerPlan::Expert& from,
                              ExpertWeights* to) {
    jobs.push_back({gemms.gate_up.get(), {&from.gate, &from.up}, &to->gate_up});
    jobs.push_back({gemms.down.get(), {&from.down, nullptr}, &to->down});
  };
  for (size_t e = 0; e < shape.num_experts; ++e) {
    add_expert(weights.expert_gemms, plan.experts[e], &weights.experts[e]);
  }
  if (shared) {
    weights.shared_gemms =
        MakeGemms(dtype, shape.hidden, shape.shared_intermediate, false);
    add_expert(weights.shared_gemms, plan.shared, &weights.shared);
  }

  const auto vector_bytes = [](const WeightTensor& tensor) {
    return CacheLines(sizeof(float) * tensor.Rows() * tensor.Cols());
  };
  size_t total = 0;
  for (const WeightTensor& tensor : plan.vectors) {
    if (tensor.IsThere()) total += vector_bytes(tensor);
  }
  for (const Job& job : jobs) total += job.OwnedBytes();
  program::RequireMemory(static_cast<double>(total), plan.source);
  weights.storage = Buffer(total);
  std::byte* next = weights.storage.data();
  for (size_t v = 0; v < kVectors; ++v) {
    const WeightTensor& tensor = plan.vectors[v];
    if (!tensor.IsThere()) continue;
    auto* data = reinterpret_cast<float*>(
        std::exchange(next, next + vector_bytes(tensor)));
    const AnyMatrix floats(data, tensor.Rows(), tensor.Cols());
    tensor.Read(floats);
    weights.vectors[v] = floats;
  }
  if (plan.vectors[kLayerScalar].IsThere()) {
    weights.shape.scales.out = *weights.vectors[kLayerScalar].Row<float>(0);
  }
  for (Job& job : jobs) {
    job.storage = std::exchange(next, next + job.OwnedBytes());
  }

  const auto start = std::chrono::steady_clock::now();
  program::ForEach(executor, jobs.size(), 1, [&](size_t i) { jobs[i].Run(); });
  const std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - start;
  for (const Job& job : jobs) {
    const Gemm& gemm = *job.gemm;
    const auto add = [&](size_t part, size_t bytes) {
      const void* data = job.target->parts[part];
      weights.matrices.push_back({static_cast<const std::byte*>(data), bytes});
    };
    if (!gemm.TakesPlain()) add(0, gemm.WeightBytes());
    for (size_t p = 0; gemm.TakesPlain() && p < gemm.parts().size(); ++p) {
      add(p, sizeof(float) * gemm.in() * gemm.parts()[p]);
    }
  }
  std::fprintf(stderr, "%s: %s in %.1f s\n", plan.action.c_str(),
               BytesText(weights.Bytes()).c_str(), passed.count());
  return weights;
}

}  // namespace moe_layer
