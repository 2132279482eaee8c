// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The kernels as one writes them in plain C++, single precision, at -O3 for the
// compiler's default CPU. Of the options, those that the benchmarks use.

#ifndef SWITCHYARD_BENCH_PLAIN_H_
#define SWITCHYARD_BENCH_PLAIN_H_

#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/route.h"

namespace switchyard {
namespace bench {
namespace plain {

void RouteTopK(const RouteInputs& inputs, const RouteOutputs& outputs,
               bool renormalize);
// Return the busiest expert's count.
size_t BucketPacked(const BucketInputs& inputs, const PackedBuckets& outputs);
size_t BucketStrided(const BucketInputs& inputs, const StridedBuckets& outputs);
void GatherRows(const GatherInputs& inputs, const GatherOutputs& outputs);
void Activate(const ActivateInputs& inputs, const ActivateOutputs& outputs);
// With residual and norm, without a shared expert.
void Combine(const CombineInputs& inputs, const CombineOutputs& outputs,
             float eps);

}  // namespace plain
}  // namespace bench
}  // namespace switchyard

#endif  // SWITCHYARD_BENCH_PLAIN_H_
