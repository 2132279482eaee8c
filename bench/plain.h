// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The kernels as one writes them in plain C++, single precision, at -O3 for the
// compiler's default CPU.

#ifndef SWITCHYARD_BENCH_PLAIN_H_
#define SWITCHYARD_BENCH_PLAIN_H_

#include <cstddef>
#include <cstdint>

#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/views.h"

namespace switchyard {
namespace bench {
namespace plain {

void Route(Matrix<const float> logits, bool renormalize, Matrix<int32_t> ids,
           Matrix<float> weights);
// Return the busiest expert's count.
int32_t BucketPacked(Matrix<const int32_t> selected, const PackedBuckets& out);
int32_t BucketStrided(Matrix<const int32_t> selected,
                      const StridedBuckets& out);
void Gather(Matrix<const float> tokens, Span<const int32_t> pairs, size_t top_k,
            Matrix<float> out);
void SiluMul(Matrix<const float> gate, Matrix<const float> up,
             Matrix<float> out);
// Rows, weights, row_index and residual only.
void WeightedSumRmsNorm(const CombineInputs& inputs, const float* norm_weight,
                        float eps, Matrix<float> out, Matrix<float> normed);

}  // namespace plain
}  // namespace bench
}  // namespace switchyard

#endif  // SWITCHYARD_BENCH_PLAIN_H_
