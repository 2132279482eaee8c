// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "device/src/builtin/built_in.h"
#include "switchyard/device/kernels.h"

namespace switchyard::device {
namespace {

using P = MoeComputeIdsTpeParams;

constexpr uint8_t kExperts = 0, kRowStride = 1, kPairs = 2, kGateUp = 3;

// The range of addresses that a matrix with 32-bit elements covers.
struct Addresses {
  uintptr_t begin, end;

  explicit Addresses(const AnyMatrix& m)
      : begin(reinterpret_cast<uintptr_t>(m.data)),
        end(begin + ((m.rows - 1) * m.stride + m.cols) * 4) {}
};

bool OverlapsAny(const AnyMatrix& args,
                 std::initializer_list<AnyMatrix> others) {
  const Addresses a(args);
  return std::any_of(others.begin(), others.end(), [&](const AnyMatrix& m) {
    if (m.rows == 0 || m.cols == 0) return false;
    const Addresses b(m);
    return a.begin < b.end && b.begin < a.end;
  });
}

Status ComputeIdsTpe(const Operands& o) {
  RunningDispatch& running = o.running;
  const size_t experts = o.factors[kExperts], pairs = o.factors[kPairs];
  const size_t row_stride = o.factors[kRowStride];
  if (OverlapsAny(o[3], {o[0], o[1], o[2], o[4]}) ||
      OverlapsAny(o[4], {o[0], o[1], o[2]})) {
    running.Fail("buffers 3 and 4 (args) overlap another buffer or each other");
    return Status();
  }
  if (row_stride == 0 && pairs != 0) {
    running.Fail("params: row_stride is 0");  // 0 would mean kTightStride
    return Status();
  }

  // The scratch has room for the sort, and for a copy of tpe (the tokens per
  // expert). If row_stride turns out to be too small, BucketStrided() has
  // already overwritten tpe, and the copy restores it.
  int32_t* const tpe = o[1].As<int32_t>().data;
  const size_t sort = BucketScratchSize(pairs, experts, running.executor);
  const bool may_fail = row_stride < pairs;
  std::vector<int32_t>& scratch = running.scratch;
  const size_t needed = sort + (may_fail ? experts : 0);
  if (scratch.size() < needed) scratch.resize(needed);
  int32_t* const saved = scratch.data() + sort;
  if (may_fail) std::copy_n(tpe, experts, saved);

  Report report;
  StridedBuckets out;
  out.tokens_per_expert = {tpe, experts};
  out.ids = {o[2].As<int32_t>().data, experts * row_stride};
  out.row_stride = row_stride;
  out.report = &report;
  BucketOptions options;
  options.allow_dropped = true;  // like the shader, which skips dropped rows
  Status status = BucketStrided({o[0], {scratch.data(), sort}}, out, options,
                                running.executor);
  if (status.code() == StatusCode::kFailedPrecondition) {
    std::copy_n(saved, experts, tpe);
    running.Fail(
        Format("params: row_stride is %zu, and an expert has %zu pairs",
               row_stride, report.max_rows));
  }
  for (size_t i = 0; i < 2 && status.ok(); ++i) {
    status =
        MakeDispatchArgs({report.max_rows, experts, o.factors[kGateUp + i]},
                         {{o[3 + i].As<uint32_t>().data, 3}});
  }
  return status;
}

constexpr BuiltIn kKernels[] = {
    // This kernel reads no rows of data, so one name with the suffix _f32
    // serves all row types, as on Metal.
    {{"moe_compute_ids_tpe", Type::kF32},
     ParamsAt<P>(5),
     {SWITCHYARD_DIMENSION(P, num_experts), SWITCHYARD_DIMENSION(P, row_stride),
      SWITCHYARD_DIMENSION(P, total_pairs), SWITCHYARD_DIMENSION(P, m_gate_up),
      SWITCHYARD_DIMENSION(P, m_down)},
     {// Binds selected_ids as one column. A pair (a token and one of its
      // selected experts) is then a row with one expert, and keeps its index.
      {0, "selected_ids", Type::kI32, kPairs, kOne},
      {1, "tpe", Type::kI32, kOne, kExperts, Usage::kWrite},
      {2, "ids", Type::kI32, kExperts, kRowStride, Usage::kWrite},
      {3, "gate_up_args", Type::kU32, kOne, kThree, Usage::kWrite},
      {4, "down_args", Type::kU32, kOne, kThree, Usage::kWrite}},
     {Grid::kRows, kOne},
     ComputeIdsTpe},
};

}  // namespace

BuiltInTable bucket_kernels() { return kKernels; }

}  // namespace switchyard::device
