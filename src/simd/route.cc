// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// For topk_one-inl.h. (See targets.h.)
#define HWY_WANT_AVX3_DL

#include "src/simd/route.h"

#include <cstddef>

#include "src/simd/storage_types.h"
#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/route.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/recipes-inl.h"
#include "src/simd/route-inl.h"
#include "src/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

// Rows are taken a vector of them at a time, a row per lane (topk_lanes-inl.h):
// lower bounds of the k-th largest, a filter, insertion of what passes; then
// exp, sum and division of the selected. Hard rows and the rest of a batch go
// one by one, or a few at a time (topk-inl.h). Bound by the two ports of the
// vector units: of 40 ns a row (E = 128, k = 8, 512 rows, AVX-512; 56 on AVX2)
// the filter, with a comparison and two compressions a vector on one of them,
// takes 35 %, the bounds 18 %, the insertion 16 %. An E-wide sum of exps adds 3
// ns a vector. A row alone is a chain of latencies: topk_one-inl.h.
// (Not inlined: its frame is forty times that of one row's, and rows that are
// converted come here, too.)
template <class Recipe>
HWY_NOINLINE void RouteMany(const RouteArgs& args, size_t begin, size_t end) {
  const Router<Recipe, float> router(args);
  if (router.k > kTopKMax) {
    for (size_t row = begin; row < end; ++row) {
      router.Large(row, args.outputs.topk_weights);
    }
  } else if (router.experts <= kTopKAll) {
    router.template Rows<true>(begin, end);
  } else {
    router.template Rows<false>(begin, end);
  }
}

#if SWITCHYARD_TOPK_ONE
template <class Recipe, bool kRaw>
HWY_NOINLINE void RouteOne(const RouteArgs& args, size_t row) {
  const Router<Recipe, float> router(args);
  if (router.k <= kTopKOneMax && router.template One<kRaw>(row)) return;
  RouteMany<Recipe>(args, row, row + 1);
}
#endif

template <class Recipe>
SWITCHYARD_PIECE void RouteFloats(const RouteArgs& args, size_t begin,
                                  size_t end) {
#if SWITCHYARD_TOPK_ONE
  if (end - begin == 1) {
    return args.options.score == Score::kRaw
               ? RouteOne<Recipe, true>(args, begin)
               : RouteOne<Recipe, false>(args, begin);
  }
#endif
  RouteMany<Recipe>(args, begin, end);
}

// Rows that are not all f32 are routed in batches that are converted on the
// stack: a row of more experts than kRouteTile, or of more slots than kTopKMax,
// is read as it lies, by what is slow and takes anything. A batch is wanted to
// be a vector of rows, and to stay in the L1 cache.
constexpr size_t kRouteTile = 16384;
constexpr size_t kRouteCached = 8192;
constexpr size_t kRouteBatch = 32;
constexpr size_t kRouteWanted = 16;

template <class Recipe, size_t kTile>
HWY_NOINLINE void RouteTiles(const RouteArgs& args, size_t begin, size_t end) {
  const ConstAnyMatrix& logits = args.inputs.logits;
  const AnyMatrix& ids = args.outputs.topk_ids;
  const AnyMatrix& weights = args.outputs.topk_weights;
  const size_t experts = logits.cols;
  HWY_ALIGN float logit_tile[kTile];
  HWY_ALIGN float weight_tile[kRouteBatch * kTopKMax];
  const size_t cached = HWY_MIN(kRouteBatch, kRouteCached / experts);
  const size_t most = HWY_MAX(size_t{1}, kTile / experts);
  const size_t batch = HWY_MIN(most, HWY_MAX(kRouteWanted, cached));
  for (size_t row = begin; row < end; row += batch) {
    const size_t n = HWY_MIN(batch, end - row);
    const bool widen = logits.type != Type::kF32;
    const bool narrow = weights.type != Type::kF32;
    if (widen) RowsToFloats(logits, row, n, logit_tile);
    const RouteInputs inputs = {widen ? ConstAnyMatrix(logit_tile, n, experts)
                                      : logits.RowRange(row, row + n)};
    const RouteOutputs outputs = {ids.RowRange(row, row + n),
                                  narrow
                                      ? AnyMatrix(weight_tile, n, weights.cols)
                                      : weights.RowRange(row, row + n)};
    RouteFloats<Recipe>({inputs, outputs, args.options}, 0, n);
    if (narrow) FloatsToRows(weight_tile, weights, row, n);
  }
}

template <class Recipe>
void RouteBy(const RouteArgs& args, size_t begin, size_t end) {
  const ConstAnyMatrix& logits = args.inputs.logits;
  const AnyMatrix& weights = args.outputs.topk_weights;
  const bool floats = logits.type == Type::kF32;
  if (HWY_LIKELY(floats && weights.type == Type::kF32)) {
    return RouteFloats<Recipe>(args, begin, end);
  }
  if (weights.cols <= kTopKMax && (floats || logits.cols <= kRouteTile)) {
    return logits.cols * kRouteWanted <= kRouteCached
               ? RouteTiles<Recipe, kRouteCached>(args, begin, end)
               : RouteTiles<Recipe, kRouteTile>(args, begin, end);
  }
  switch (logits.type) {
#define SWITCHYARD_CASE(T, ...)                    \
  case kType<T>:                                   \
    for (size_t row = begin; row < end; ++row) {   \
      Router<Recipe, T>(args).Large(row, weights); \
    }                                              \
    return;
    SWITCHYARD_FLOATS(SWITCHYARD_CASE, )
#undef SWITCHYARD_CASE
    default:
      return;
  }
}

void Route(const RouteArgs& args, size_t begin, size_t end) {
  RouteBy<Recipe<SoftmaxScore, LogitKeys, ShareOfSum>>(args, begin, end);
}

SWITCHYARD_ROW_FUNCTION(Route, RouteArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(RouteRows, Route, RouteArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
