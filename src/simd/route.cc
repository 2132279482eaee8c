// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/route.h"

#include <cstddef>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/route.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/recipes-inl.h"
#include "src/simd/route-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {

// Rows are taken a vector of them at a time, a row per lane (topk_lanes-inl.h):
// lower bounds of the k-th largest, a filter, insertion of what passes; then
// exp, sum and division of the selected. Hard rows and the rest of a batch go
// one by one, or a few at a time (topk-inl.h). Bound by the two ports of the
// vector units: of 40 ns a row (E = 128, k = 8, 512 rows, AVX-512; 56 on AVX2)
// the filter, with a comparison and two compressions a vector on one of them,
// takes 35 %, the bounds 18 %, the insertion 16 %. An E-wide sum of exps adds 3
// ns a vector. A row alone is a chain of latencies: topk_one-inl.h.
//
// Where one row has a function of its own, these two are apart: the frame of
// this one is forty times as large.
#undef SWITCHYARD_MANY
#if SWITCHYARD_TOPK_ONE
#define SWITCHYARD_MANY HWY_NOINLINE
#else
#define SWITCHYARD_MANY SWITCHYARD_PIECE
#endif
template <class Recipe, class In, class Out>
SWITCHYARD_MANY void RouteMany(const RouteArgs& args, size_t begin,
                               size_t end) {
  const Router<Recipe, In, Out> router(args);
  if (router.k > kTopKMax) {
    for (size_t row = begin; row < end; ++row) router.Large(row);
  } else if (router.experts <= kTopKAll) {
    router.template Rows<true>(begin, end);
  } else {
    router.template Rows<false>(begin, end);
  }
}

#if SWITCHYARD_TOPK_ONE
template <class Recipe, class In, class Out>
HWY_NOINLINE void RouteOne(const RouteArgs& args, size_t row) {
  const Router<Recipe, In, Out> router(args);
  if (router.k <= kTopKOneMax && router.One(row)) return;
  RouteMany<Recipe, In, Out>(args, row, row + 1);
}
#endif

template <class Recipe, class In, class Out>
SWITCHYARD_PIECE void RouteBy(const RouteArgs& args, size_t begin, size_t end) {
#if SWITCHYARD_TOPK_ONE
  if (end - begin == 1) return RouteOne<Recipe, In, Out>(args, begin);
#endif
  RouteMany<Recipe, In, Out>(args, begin, end);
}

template <class In, class Out>
void Route(const RouteArgs& args, size_t begin, size_t end) {
  switch (args.options.score) {
#define SWITCHYARD_CASE(name, ScoreT, KeysT, WeightsT) \
  case Score::name:                                    \
    return RouteBy<Recipe<ScoreT, KeysT, WeightsT>, In, Out>(args, begin, end);
    SWITCHYARD_RECIPES(SWITCHYARD_CASE)
#undef SWITCHYARD_CASE
  }
}

SWITCHYARD_ROW_FUNCTIONS(Route, RouteArgs, SWITCHYARD_F32);

}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT_TYPES(RouteRows, Route, RouteArgs, SWITCHYARD_F32);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
