// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The calls that an engine needs around its exchange of rows between processes.

#ifndef SWITCHYARD_PYTHON_EXCHANGE_H_
#define SWITCHYARD_PYTHON_EXCHANGE_H_

#include <cstdint>
#include <optional>
#include <tuple>

#include "tensors.h"

namespace switchyard {
namespace python {

// MapPairs: counts, offsets, rows and pair_index of pairs, all int32. Expert e
// lives at destination e / experts_per_destination; in `experts`, int32 of
// [pairs, 1], each row gets the remainder.
std::tuple<Tensor, Tensor, Tensor, Tensor> MapToDestinations(
    const Tensor& topk_ids, int64_t num_destinations,
    int64_t experts_per_destination, const OptionalTensor& experts);

// GatherRows, into memory that is there: rows[r] = tokens[pairs[r] / top_k], in
// the dtype of rows. float8 and int8 have scales, [rows, 1] of float32.
void GatherInto(const Tensor& tokens, const Tensor& pairs, const Tensor& rows,
                int64_t top_k, const OptionalTensor& token_scales,
                const OptionalTensor& row_scales,
                const OptionalTensor& row_index);

// Combine: the weighted sum of each token's rows, in `dtype` or that of rows.
Tensor CombineRows(const Tensor& rows, const Tensor& topk_weights,
                   const Tensor& row_index, const OptionalTensor& row_scales,
                   std::optional<ScalarType> dtype);

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_EXCHANGE_H_
