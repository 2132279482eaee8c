// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Calls that compile. REFUSED=n adds the n-th call that does not.

#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/hyper.h"
#include "switchyard/layer.h"
#include "switchyard/map.h"
#include "switchyard/quantize.h"
#include "switchyard/route.h"

namespace {

using namespace switchyard;

// The inputs, outputs and options of a call can be filled field by field in
// C++17, in braces, or with C++20's designators.
template <class... Structs>
constexpr bool kAreAggregates = (std::is_aggregate_v<Structs> && ...) &&
                                (std::is_default_constructible_v<Structs> &&
                                 ...);
static_assert(kAreAggregates<
              RouteInputs, RouteOutputs, RouteOptions, ActivateInputs,
              ActivateOutputs, ActivateOptions, CombineInputs, CombineOutputs,
              CombineOptions, GatherInputs, GatherOutputs, GatherOptions,
              ScatterInputs, ScatterOutputs, ScatterOptions, QuantizeInputs,
              QuantizeOutputs, QuantizeOptions, HyperInputs, HyperOutputs,
              HyperOptions, BucketInputs, PackedBuckets, StridedBuckets,
              BucketOptions, AlignedInputs, AlignedBuckets, AlignedOptions,
              MapInputs, MapOutputs, MapOptions, ReplicaInputs, ReplicaOutputs,
              ReplicaOptions, CountsInputs, CountsOutputs, CountsOptions,
              DispatchInputs, DispatchOutputs, DispatchOptions>);
// The compiler refuses the arguments below with a message. Type traits also
// have to report that no conversion exists.
static_assert(!std::is_constructible_v<ConstAnyMatrix, double*, int, int>);
static_assert(!std::is_constructible_v<AnyRows, const float*, int, int>);
static_assert(!std::is_convertible_v<int, AnyMatrix>);
static_assert(!std::is_convertible_v<float*, ConstAnyMatrix>);
static_assert(!std::is_convertible_v<float*, Span<float>>);
static_assert(!std::is_convertible_v<ConstAnyMatrix, AnyRows>);
static_assert(!std::is_convertible_v<Span<int>, Span<const float>>);

// If a function is overloaded for Spans of several types, braces select one
// of them.
constexpr int TypesOf(Span<const float>) { return 1; }
constexpr int TypesOf(Span<const int32_t>) { return 2; }
static_assert(TypesOf({static_cast<const float*>(nullptr), 1}) == 1);

Status Multiply(const ExpertTile&) { return Status(); }
Status MultiplyCopy(ExpertTile) noexcept { return Status(); }
[[maybe_unused]] Status MultiplyIn(void*, const ExpertTile&) {
  return Status();
}
struct Product {
  Status operator()(const ExpertTile&) const { return Status(); }
};
Status Run(const ExpertGemm& gemm) { return gemm(ExpertTile()); }

}  // namespace

Status Call(float* f, const float* constant, double* d, int32_t* ids,
            uint64_t* longs, void* bytes, const void* read, int n,
            std::vector<double>& doubles, const std::vector<float>& constants) {
  CombineInputs in;
  in.rows = {f, n, 8};
  in.topk_weights = {f, n, 1};
  in.row_index = RowIndex::kTokenOrder;
  Status status = Combine(in, {{f, n, 8}});
  status =
      Quantize({{read, Type::kI8, n, 8, 8}}, {{bytes, Type::kF32, n, 8, 8}});
#if __cplusplus >= 202002L
  status = Combine({.rows = {f, n, 8},
                    .topk_weights = {f, n, 1},
                    .row_index = RowIndex::kTokenOrder},
                   {.out = {f, n, 8}}, {.eps = 1e-5f});
  status = RouteTopK({.logits = {f, n, 8}},
                     {.topk_ids = {ids, n, 2}, .topk_weights = {f, n, 2}});
#endif
  const Product product;
  const ExpertGemm of_function = &Multiply, of_object = product;
  const std::function<Status(const ExpertTile&)> function = product;
  for (const Status& s :
       {Run(Multiply), Run(&Multiply), Run(MultiplyCopy), Run(Product()),
        Run([](const ExpertTile&) { return Status(); }),
        Run([](const auto&) { return Status(); }), Run(function),
        Run(std::ref(product)), Run(of_function), Run(of_object)}) {
    if (!s.ok()) status = s;
  }
#if REFUSED == 1
  status = RouteTopK({{d, n, 8}}, {{ids, n, 2}, {f, n, 2}});
#elif REFUSED == 2
  status = RouteTopK({{longs, n, 8}}, {{ids, n, 2}, {f, n, 2}});
#elif REFUSED == 3
  status = RouteTopK({doubles}, {{ids, n, 2}, {f, n, 2}});
#elif REFUSED == 4
  status = RouteTopK({{bytes, n, 8}}, {{ids, n, 2}, {f, n, 2}});
#elif REFUSED == 5
  in.residual = {d, n, 8};
#elif REFUSED == 6
  status = RouteTopK({{f, n, 8}}, {{ids, n, 2}, {constant, n, 2}});
#elif REFUSED == 7
  status = Quantize({{f, n, 8}}, {{constant, n, 8}});
#elif REFUSED == 8
  status = Activate({{f, n, 8}, {f, n, 8}}, {constants});
#elif REFUSED == 9
  status = Activate({{f, n, 8}, {f, n, 8}}, {ConstAnyMatrix(f, n, 8)});
#elif REFUSED == 10
  status = Quantize({{f, n, 8}}, {{read, Type::kF32, n, 8, 8}});
#elif REFUSED == 11
  status = RouteTopK({f, n, 8}, {{ids, n, 2}, {f, n, 2}});
#elif REFUSED == 12
  status = Activate({f, f}, {{f, n, 8}});
#elif REFUSED == 13
  status = Combine({{f, n, 8}, {f, n}, RowIndex::kTokenOrder}, {{f, n, 8}});
#elif REFUSED == 14
  status = Activate({{f, n / 2.0, 8}, {f, n, 8}}, {{f, n, 8}});
#elif REFUSED == 15
  status = Run([n](const ExpertTile&) mutable { return ++n, Status(); });
#elif REFUSED == 16
  status = Run([](const ExpertTile&) { return true; });
#elif REFUSED == 17
  status = Run([](ExpertTile&) { return Status(); });
#elif REFUSED == 18
  status = Run(MultiplyIn);
#elif REFUSED == 19
  status = Run(nullptr);
#elif REFUSED == 20
  const ExpertGemm dangling = [n](const ExpertTile&) {
    return n == 0 ? Status() : Status(StatusCode::kInternal, "n");
  };
  status = Run(dangling);
#endif
  (void)ids, (void)d, (void)constant, (void)longs, (void)doubles;
  (void)constants;
  return status;
}
