// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TESTS_C_INITIAL_H_
#define SWITCHYARD_TESTS_C_INITIAL_H_

#include "src/c/fields.h"

namespace switchyard::c {

// The value that the macro of each struct makes.
template <class C>
C Initial();
#define SWITCHYARD_INITIAL(Struct, macro) \
  template <>                             \
  inline Struct Initial<Struct>() {       \
    return macro;                         \
  }
SWITCHYARD_INITIAL(swy_report, SWY_REPORT_INIT)
SWITCHYARD_INITIAL(swy_team, SWY_TEAM_INIT)
SWITCHYARD_INITIAL(swy_route_inputs, SWY_ROUTE_INPUTS_INIT)
SWITCHYARD_INITIAL(swy_route_outputs, SWY_ROUTE_OUTPUTS_INIT)
SWITCHYARD_INITIAL(swy_route_options, SWY_ROUTE_OPTIONS_INIT)
SWITCHYARD_INITIAL(swy_preset, SWY_PRESET_INIT)
SWITCHYARD_INITIAL(swy_combine_form, SWY_COMBINE_FORM_INIT)
SWITCHYARD_INITIAL(swy_model_config, SWY_MODEL_CONFIG_INIT)
SWITCHYARD_INITIAL(swy_bucket_inputs, SWY_BUCKET_INPUTS_INIT)
SWITCHYARD_INITIAL(swy_bucket_options, SWY_BUCKET_OPTIONS_INIT)
SWITCHYARD_INITIAL(swy_packed_buckets, SWY_PACKED_BUCKETS_INIT)
SWITCHYARD_INITIAL(swy_strided_buckets, SWY_STRIDED_BUCKETS_INIT)
SWITCHYARD_INITIAL(swy_aligned_inputs, SWY_ALIGNED_INPUTS_INIT)
SWITCHYARD_INITIAL(swy_aligned_buckets, SWY_ALIGNED_BUCKETS_INIT)
SWITCHYARD_INITIAL(swy_aligned_options, SWY_ALIGNED_OPTIONS_INIT)
SWITCHYARD_INITIAL(swy_dispatch_inputs, SWY_DISPATCH_INPUTS_INIT)
SWITCHYARD_INITIAL(swy_dispatch_outputs, SWY_DISPATCH_OUTPUTS_INIT)
SWITCHYARD_INITIAL(swy_dispatch_options, SWY_DISPATCH_OPTIONS_INIT)
SWITCHYARD_INITIAL(swy_map_rows, SWY_NO_MAP_ROWS)
SWITCHYARD_INITIAL(swy_map_inputs, SWY_MAP_INPUTS_INIT)
SWITCHYARD_INITIAL(swy_map_outputs, SWY_MAP_OUTPUTS_INIT)
SWITCHYARD_INITIAL(swy_map_options, SWY_MAP_OPTIONS_INIT)
SWITCHYARD_INITIAL(swy_work_tile, {})
SWITCHYARD_INITIAL(swy_work_list_inputs, SWY_WORK_LIST_INPUTS_INIT)
SWITCHYARD_INITIAL(swy_work_list_outputs, SWY_WORK_LIST_OUTPUTS_INIT)
SWITCHYARD_INITIAL(swy_work_list_options, SWY_WORK_LIST_OPTIONS_INIT)
SWITCHYARD_INITIAL(swy_gather_inputs, SWY_GATHER_INPUTS_INIT)
SWITCHYARD_INITIAL(swy_gather_outputs, SWY_GATHER_OUTPUTS_INIT)
SWITCHYARD_INITIAL(swy_gather_options, SWY_GATHER_OPTIONS_INIT)
SWITCHYARD_INITIAL(swy_scatter_inputs, SWY_SCATTER_INPUTS_INIT)
SWITCHYARD_INITIAL(swy_scatter_outputs, SWY_SCATTER_OUTPUTS_INIT)
SWITCHYARD_INITIAL(swy_scatter_options, SWY_SCATTER_OPTIONS_INIT)
SWITCHYARD_INITIAL(swy_quantize_inputs, SWY_QUANTIZE_INPUTS_INIT)
SWITCHYARD_INITIAL(swy_quantize_outputs, SWY_QUANTIZE_OUTPUTS_INIT)
SWITCHYARD_INITIAL(swy_quantize_options, SWY_QUANTIZE_OPTIONS_INIT)
SWITCHYARD_INITIAL(swy_activate_inputs, SWY_ACTIVATE_INPUTS_INIT)
SWITCHYARD_INITIAL(swy_activate_outputs, SWY_ACTIVATE_OUTPUTS_INIT)
SWITCHYARD_INITIAL(swy_activate_options, SWY_ACTIVATE_OPTIONS_INIT)
SWITCHYARD_INITIAL(swy_shared_expert, SWY_NO_SHARED_EXPERT)
SWITCHYARD_INITIAL(swy_identity_experts, {})
SWITCHYARD_INITIAL(swy_block_norms, {})
SWITCHYARD_INITIAL(swy_combine_vectors, {})
SWITCHYARD_INITIAL(swy_combine_inputs, SWY_COMBINE_INPUTS_INIT)
SWITCHYARD_INITIAL(swy_combine_outputs, SWY_COMBINE_OUTPUTS_INIT)
SWITCHYARD_INITIAL(swy_combine_options, SWY_COMBINE_OPTIONS_INIT)
SWITCHYARD_INITIAL(swy_hyper_inputs, SWY_HYPER_INPUTS_INIT)
SWITCHYARD_INITIAL(swy_hyper_outputs, SWY_HYPER_OUTPUTS_INIT)
SWITCHYARD_INITIAL(swy_hyper_options, SWY_HYPER_OPTIONS_INIT)
#undef SWITCHYARD_INITIAL
template <>
inline swy_combine_scales Initial<swy_combine_scales>() {
  return Initial<swy_combine_options>().scales;
}

}  // namespace switchyard::c

#endif  // SWITCHYARD_TESTS_C_INITIAL_H_
