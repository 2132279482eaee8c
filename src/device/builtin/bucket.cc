// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <algorithm>

#include "src/check.h"
#include "src/device/builtin/built_in.h"
#include "switchyard/device/kernels.h"

namespace switchyard {
namespace device {
namespace {

using internal::MayOverlapAny;
using P = MoeComputeIdsTpeParams;

enum : uint8_t { kExperts, kRowStride, kPairs, kGateUp, kDown };

Status ComputeIdsTpe(const Operands& o) {
  RunningDispatch& running = o.running;
  const auto selected = o.View<const int32_t>(0);
  const auto tpe = o.View<int32_t>(1), ids = o.View<int32_t>(2);
  const Matrix<uint32_t> args[2] = {o.View<uint32_t>(3), o.View<uint32_t>(4)};
  const size_t experts = o.factors[kExperts], pairs = o.factors[kPairs];
  const size_t row_stride = o.factors[kRowStride];
  if (MayOverlapAny(args[0], selected, tpe, ids, args[1]) ||
      MayOverlapAny(args[1], selected, tpe, ids)) {
    running.Fail("buffers 3 and 4 (args) overlap another buffer or each other");
    return Status();
  }
  if (row_stride == 0 && pairs != 0) {
    running.Fail("params: row_stride is 0");  // not kTightStride
    return Status();
  }

  // Scratch for the sort, and tpe as it was: BucketStrided writes it even when
  // row_stride turns out too small.
  const size_t sort = BucketScratchSize(pairs, experts, running.executor);
  const bool may_fail = row_stride < pairs;
  std::vector<int32_t>& scratch = running.scratch;
  const size_t needed = sort + (may_fail ? experts : 0);
  if (scratch.size() < needed) scratch.resize(needed);
  int32_t* const saved = scratch.data() + sort;
  if (may_fail) std::copy_n(tpe.data, experts, saved);

  BucketSummary summary;
  StridedBuckets out;
  out.tpe = {tpe.data, experts};
  out.ids = {ids.data, experts * row_stride};
  out.row_stride = row_stride;
  Status status =
      BucketStrided(selected, BucketOrder::kAscending, out,
                    {scratch.data(), sort}, &summary, running.executor);
  if (status.code() == StatusCode::kFailedPrecondition) {
    std::copy_n(saved, experts, tpe.data);
    running.Fail(Format("params: row_stride is %zu, and an expert has %d pairs",
                        row_stride, summary.max_tpe));
  }
  for (size_t i = 0; i < 2 && status.ok(); ++i) {
    status = MakeDispatchArgs(summary.max_tpe, experts, o.factors[kGateUp + i],
                              DispatchTile(), {args[i].data, 3});
  }
  return status;
}

constexpr BuiltIn kKernels[] = {
    {"moe_compute_ids_tpe_f32",
     5,
     sizeof(P),
     {SWITCHYARD_DIMENSION(P, num_experts), SWITCHYARD_DIMENSION(P, row_stride),
      SWITCHYARD_DIMENSION(P, total_pairs), SWITCHYARD_DIMENSION(P, m_gate_up),
      SWITCHYARD_DIMENSION(P, m_down)},
     {// A token of one slot each: the pair index is the same.
      {0, "selected_ids", kPairs, kOne, Access::kRead, Element::kI32},
      {1, "tpe", kOne, kExperts, Access::kWrite, Element::kI32},
      {2, "ids", kExperts, kRowStride, Access::kWrite, Element::kI32},
      {3, "gate_up_args", kOne, kThree, Access::kWrite, Element::kU32},
      {4, "down_args", kOne, kThree, Access::kWrite, Element::kU32}},
     {Grid::kRows, kOne},
     ComputeIdsTpe},
};

}  // namespace

BuiltInTable BucketKernels() { return kKernels; }

}  // namespace device
}  // namespace switchyard
