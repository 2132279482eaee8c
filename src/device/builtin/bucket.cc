// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <algorithm>

#include "src/check.h"
#include "src/device/call.h"
#include "switchyard/device/kernels.h"

namespace switchyard {
namespace device {
namespace {

using internal::MayOverlapAny;

void ComputeIdsTpe(Call& call) {
  const auto p = call.Params<MoeComputeIdsTpeParams>(5);
  const size_t experts = call.Dim("num_experts", p.num_experts);
  const size_t row_stride = call.Dim("row_stride", p.row_stride);
  const size_t pairs = call.Dim("total_pairs", p.total_pairs);
  const size_t features[2] = {call.Dim("m_gate_up", p.m_gate_up),
                              call.Dim("m_down", p.m_down)};
  // A token of one slot each: the pair index is the same.
  const auto selected = call.In<int32_t>(0, "selected_ids", pairs, 1);
  const auto tpe = call.Out<int32_t>(1, "tpe", 1, experts);
  const auto ids = call.Out<int32_t>(2, "ids", experts, row_stride);
  const Matrix<uint32_t> args[2] = {call.Out<uint32_t>(3, "gate_up_args", 1, 3),
                                    call.Out<uint32_t>(4, "down_args", 1, 3)};
  call.OneThreadgroup(256);
  if (call.ok() && (MayOverlapAny(args[0], selected, tpe, ids, args[1]) ||
                    MayOverlapAny(args[1], selected, tpe, ids))) {
    call.Fail("buffers 3 and 4 (args) overlap another buffer or each other");
  }
  if (call.ok() && row_stride == 0 && pairs != 0) {
    call.Fail("params: row_stride is 0");  // not StridedBuckets::kTightStride
  }
  call.Reads(0, selected);
  call.Writes(1, tpe);
  call.Writes(2, ids);
  call.Writes(3, args[0]);
  call.Writes(4, args[1]);
  if (!call.ok()) return;

  // Scratch for the sort, and tpe as it was: BucketStrided writes it even when
  // row_stride turns out too small.
  const size_t sort = BucketScratchSize(pairs, experts, call.executor);
  const bool may_fail = row_stride < pairs;
  if (call.scratch.size() < sort + (may_fail ? experts : 0)) {
    call.scratch.resize(sort + (may_fail ? experts : 0));
  }
  int32_t* const saved = call.scratch.data() + sort;
  if (may_fail) std::copy_n(tpe.data, experts, saved);

  BucketSummary summary;
  StridedBuckets out;
  out.tpe = {tpe.data, experts};
  out.ids = {ids.data, experts * row_stride};
  out.row_stride = row_stride;
  const Status status =
      BucketStrided(selected, BucketOrder::kAscending, out,
                    {call.scratch.data(), sort}, &summary, call.executor);
  if (status.code() == StatusCode::kFailedPrecondition) {
    std::copy_n(saved, experts, tpe.data);
    call.Fail(Format("params: row_stride is %zu, and an expert has %d pairs",
                     row_stride, summary.max_tpe));
  }
  call.Finish(status);
  for (int i = 0; i < 2 && call.ok(); ++i) {
    call.Finish(MakeDispatchArgs(summary.max_tpe, experts, features[i],
                                 DispatchTile(), {args[i].data, 3}));
  }
}

constexpr BuiltIn kKernels[] = {
    {"moe_compute_ids_tpe_f32", ComputeIdsTpe},
};

}  // namespace

Span<const BuiltIn> BucketKernels() { return kKernels; }

}  // namespace device
}  // namespace switchyard
