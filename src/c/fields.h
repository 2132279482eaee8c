// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Says which struct of switchyard.h belongs to which struct of the C++ API,
// and which fields both have. The structs of calls are in the tables of
// src/calls, all other structs in the tables here. If a field is in no table,
// the library does not compile, unless Extra counts the field.

#ifndef SWITCHYARD_SRC_C_FIELDS_H_
#define SWITCHYARD_SRC_C_FIELDS_H_

#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include "src/calls/activate.h"
#include "src/calls/bucket.h"
#include "src/calls/combine.h"
#include "src/calls/expert_weights.h"
#include "src/calls/gather.h"
#include "src/calls/hyper.h"
#include "src/calls/layer.h"
#include "src/calls/map.h"
#include "src/calls/quantize.h"
#include "src/calls/route.h"
#include "src/preset_fields.h"
#include "switchyard/executor.h"
#include "switchyard/presets.h"
#include "switchyard/switchyard.h"

namespace switchyard::c {

using calls::Field;

// Every call: X(table in src/calls, function in C++, function in C, definition
// of the C function: see calls.cc).
#define SWITCHYARD_C_CALLS(X)                                      \
  X(RouteCall, RouteTopK, swy_route_top_k, EXECUTOR)               \
  X(PackedCall, BucketPacked, swy_bucket_packed, EXECUTOR)         \
  X(StridedCall, BucketStrided, swy_bucket_strided, EXECUTOR)      \
  X(AlignedCall, BucketAligned, swy_bucket_aligned, EXECUTOR)      \
  X(DispatchCall, MakeDispatchArgs, swy_make_dispatch_args, ALONE) \
  X(MapCall, MapPairs, swy_map_pairs, EXECUTOR)                    \
  X(ReplicaCall, MapReplicas, swy_map_replicas, EXECUTOR)          \
  X(CountsCall, MapCounts, swy_map_counts, ALONE)                  \
  X(GatherCall, GatherRows, swy_gather_rows, EXECUTOR)             \
  X(ScatterCall, ScatterRows, swy_scatter_rows, EXECUTOR)          \
  X(QuantizeCall, Quantize, swy_quantize, EXECUTOR)                \
  X(ActivateCall, Activate, swy_activate, EXECUTOR)                \
  X(CombineCall, Combine, swy_combine, BY_HAND)                    \
  X(HyperCall, HyperConnect, swy_hyper_connect, EXECUTOR)          \
  X(ExpertsPlanCall, PlanExperts, swy_plan_experts, BY_HAND)       \
  X(ExpertsCall, RunExperts, swy_run_experts, BY_HAND)             \
  X(PackWeightsCall, PackWeights, swy_pack_weights, BY_HAND)

template <class CppStruct, size_t kSize>
struct Table {
  using Cpp = CppStruct;
  std::array<Field, kSize> fields = {};
};

// Makes the table of a call's struct from a list of arguments or options.
template <class Cpp, const auto& kRows>
constexpr auto TableOf() {
  Table<Cpp, std::size(kRows)> table;
  for (size_t i = 0; i < table.fields.size(); ++i) {
    table.fields[i] = kRows[i].field;
  }
  return table;
}
template <class C>
constexpr std::nullptr_t FindTable() {
  return nullptr;
}
template <class C, class Call, class... Calls>
constexpr auto FindTable() {
  if constexpr (std::is_same_v<C, typename Call::CInputs>) {
    return TableOf<typename Call::Inputs, Call::kInputs>();
  } else if constexpr (std::is_same_v<C, typename Call::COutputs>) {
    return TableOf<typename Call::Outputs, Call::kOutputs>();
  } else if constexpr (std::is_same_v<C, typename Call::COptions>) {
    return TableOf<typename Call::Options, Call::kOptions>();
  } else {
    return FindTable<C, Calls...>();
  }
}
#define SWITCHYARD_C_TABLE(Call, ...) , calls::Call
template <class C>
inline constexpr auto kTable =
    FindTable<C SWITCHYARD_C_CALLS(SWITCHYARD_C_TABLE)>();
#undef SWITCHYARD_C_TABLE

#define FIELD(f) SWITCHYARD_FIELD_OF(Report, swy_report, f)
template <>
inline constexpr Table<Report, 11> kTable<swy_report> = {
    {FIELD(invalid_ids), FIELD(elsewhere), FIELD(max_rows), FIELD(row_stride),
     FIELD(dropped), FIELD(invalid), FIELD(skipped), FIELD(over_capacity),
     FIELD(active_experts), FIELD(tiles), FIELD(overflowed_blocks)}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(CombineForm, swy_combine_form, f)
template <>
inline constexpr Table<CombineForm, 10> kTable<swy_combine_form> = {
    {FIELD(has_residual), FIELD(num_shared_experts), FIELD(shared_gate),
     FIELD(has_identity_experts), FIELD(has_routed_norm),
     FIELD(has_shared_norm), FIELD(has_block_norm), FIELD(has_vectors),
     FIELD(has_expert_biases), FIELD(has_weights_on_input)}};
#undef FIELD
#define FIELD(f) SWITCHYARD_FIELD_OF(Preset, swy_preset, f)
template <>
inline constexpr Table<Preset, 9> kTable<swy_preset> = {
    {FIELD(correction_bias), FIELD(expert_scale), FIELD(norm_topk_prob),
     FIELD(in_model_type), FIELD(family), FIELD(same_as), FIELD(source),
     FIELD(num_experts), FIELD(top_k)}};
#undef FIELD
#define FIELD(f, ...) SWITCHYARD_FIELD_OF(ModelConfig, swy_model_config, f),
inline constexpr Field kConfigFields[] = {SWITCHYARD_CONFIG_FIELDS(FIELD)};
#undef FIELD
template <>
inline constexpr auto kTable<swy_model_config> = [] {
  Table<ModelConfig, std::size(kConfigFields)> table;
  for (size_t i = 0; i < table.fields.size(); ++i) {
    table.fields[i] = kConfigFields[i];
  }
  return table;
}();

// True for a struct that is part of another struct. The other struct's table
// has the part's fields, with a dot in each name.
template <class T>
inline constexpr bool kIsPart = false;
#define SWITCHYARD_PART(C, Cpp)            \
  template <>                              \
  inline constexpr bool kIsPart<C> = true; \
  template <>                              \
  inline constexpr bool kIsPart<Cpp> = true;
SWITCHYARD_PART(swy_map_rows, MapRows)
SWITCHYARD_PART(swy_shared_expert, SharedExpert)
SWITCHYARD_PART(swy_identity_experts, IdentityExperts)
SWITCHYARD_PART(swy_block_norms, BlockNorms)
SWITCHYARD_PART(swy_combine_vectors, CombineVectors)
SWITCHYARD_PART(swy_combine_scales, CombineScales)
SWITCHYARD_PART(swy_row_format, RowFormat)
SWITCHYARD_PART(swy_expert_weights, ExpertWeights)
#undef SWITCHYARD_PART

// NumFields() counts the fields of a struct, and the fields of its parts one by
// one: the largest number of values that can initialise the struct without
// braces for its parts. Clang would warn of missing braces.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-braces"
struct AnyField {
  template <class T, class = std::enable_if_t<!kIsPart<T>>>
  operator T() const;
};
// Initialises the fields of ModelConfig, which are all optional: AnyField would
// convert to an optional in two ways.
struct AnyOptional {
  template <class T>
  operator std::optional<T>() const;
  operator ConfigNames() const;
};
template <class T>
using FieldOf =
    std::conditional_t<std::is_same_v<T, ModelConfig>, AnyOptional, AnyField>;
template <class T, size_t... kI>
auto MadeOf(std::index_sequence<kI...>)
    -> decltype(T{(static_cast<void>(kI), FieldOf<T>{})...}, std::true_type{});
template <class T>
std::false_type MadeOf(...);
#pragma GCC diagnostic pop
template <class T, size_t kMost = 48>
constexpr size_t NumFields() {
  if constexpr (kMost == 0 ||
                decltype(MadeOf<T>(std::make_index_sequence<kMost>{}))::value) {
    return kMost;
  } else {
    return NumFields<T, kMost - 1>();
  }
}

// The C++ struct that belongs to the C struct C.
template <class C>
using CppOf = typename std::decay_t<decltype(kTable<C>)>::Cpp;

// The numbers of fields, in C and in C++, that are not in the struct's table:
// `size`; token_order, which is a part of RowIndex in C++; names, which
// SetAny() copies; and structs to which the C struct has pointers.
struct Extra {
  size_t c, cpp;
};
template <class C>
inline constexpr Extra kExtra = {1, 0};
template <>
inline constexpr Extra kExtra<swy_combine_inputs> = {2, 0};
template <>
inline constexpr Extra kExtra<swy_model_config> = {2, 1};
template <>
inline constexpr Extra kExtra<swy_preset> = {4, 4};
template <>
inline constexpr Extra kExtra<swy_experts_plan_outputs> = {2, 1};
template <>
inline constexpr Extra kExtra<swy_pack_weights_outputs> = {2, 1};
template <>
inline constexpr Extra kExtra<swy_experts_inputs> = {3, 2};
template <>
inline constexpr Extra kExtra<swy_experts_options> = {5, 4};

// The ends of fields that are not in the struct's table: extra fields, parts
// with padding at their end, and all fields of a struct without a table.
template <class C>
inline constexpr std::array<size_t, 0> kOtherEnds = {};
#define END(C, field) offsetof(C, field) + sizeof(C::field)
template <>
inline constexpr std::array<size_t, 2> kOtherEnds<swy_combine_inputs> = {
    END(swy_combine_inputs, token_order), END(swy_combine_inputs, shared)};
template <>
inline constexpr std::array<size_t, 1> kOtherEnds<swy_model_config> = {
    END(swy_model_config, names)};
template <>
inline constexpr std::array<size_t, 3> kOtherEnds<swy_preset> = {
    END(swy_preset, activate), END(swy_preset, combine), END(swy_preset, form)};
template <>
inline constexpr std::array<size_t, 1> kOtherEnds<swy_experts_plan_outputs> = {
    END(swy_experts_plan_outputs, plan)};
template <>
inline constexpr std::array<size_t, 1> kOtherEnds<swy_pack_weights_outputs> = {
    END(swy_pack_weights_outputs, weights)};
template <>
inline constexpr std::array<size_t, 2> kOtherEnds<swy_experts_inputs> = {
    END(swy_experts_inputs, plan), END(swy_experts_inputs, combine)};
template <>
inline constexpr std::array<size_t, 5> kOtherEnds<swy_experts_options> = {
    END(swy_experts_options, operands), END(swy_experts_options, activate),
    END(swy_experts_options, combine),
    END(swy_experts_options, shared_activate),
    END(swy_experts_options, down_operands)};
template <>
inline constexpr std::array<size_t, 4> kOtherEnds<swy_executor> = {
    END(swy_executor, context), END(swy_executor, concurrency),
    END(swy_executor, parallel_for), END(swy_executor, fork_ns)};
template <>
inline constexpr std::array<size_t, 2> kOtherEnds<swy_expert_gemm> = {
    END(swy_expert_gemm, run), END(swy_expert_gemm, context)};
template <>
inline constexpr std::array<size_t, 8> kOtherEnds<swy_layer_weights> = {
    END(swy_layer_weights, gate_up),
    END(swy_layer_weights, gate),
    END(swy_layer_weights, up),
    END(swy_layer_weights, down),
    END(swy_layer_weights, shared_gate_up),
    END(swy_layer_weights, shared_gate),
    END(swy_layer_weights, shared_up),
    END(swy_layer_weights, shared_down)};
#undef END

// The least size that a struct may state. Only the structs below had fewer
// than 12 bytes in their first version. All other structs refuse a size of 8,
// because this is the size of a pointer, which a caller may state by mistake.
template <class C>
inline constexpr size_t kLeastSize = 12;
template <>
inline constexpr size_t kLeastSize<swy_gather_options> = 8;
template <>
inline constexpr size_t kLeastSize<swy_scatter_options> = 8;
template <>
inline constexpr size_t kLeastSize<swy_quantize_options> = 4;
template <>
inline constexpr size_t kLeastSize<swy_pack_weights_options> = 4;

// Returns the table of C. Does not compile unless the table has all fields.
template <class C>
constexpr const auto& FieldsOf() {
  constexpr size_t kListed = kTable<C>.fields.size();
  static_assert(kOtherEnds<C>.size() + 1 >= kExtra<C>.c,
                "kOtherEnds lacks a field that only C has");
  static_assert(NumFields<C>() == kListed + kExtra<C>.c,
                "C has fields that its table does not have");
  static_assert(NumFields<CppOf<C>>() == kListed + kExtra<C>.cpp,
                "C++ has fields that the table of the C struct does not have");
  return kTable<C>.fields;
}

}  // namespace switchyard::c

#endif  // SWITCHYARD_SRC_C_FIELDS_H_
