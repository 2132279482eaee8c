// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use super::structs::*;
use std::os::raw::c_char;

extern "C" {
    pub fn swy_size_of(r#type: i32) -> usize;
    pub fn swy_block_of(r#type: i32) -> usize;
    pub fn swy_bytes_of(r#type: i32, values: usize) -> usize;
    pub fn swy_row_range(m: swy_matrix, begin: usize, end: usize) -> swy_matrix;
    pub fn swy_col_range(m: swy_matrix, begin: usize, end: usize) -> swy_matrix;
    pub fn swy_tbb_executor_create(max_concurrency: i32) -> *const swy_executor;
    pub fn swy_tbb_executor_destroy(executor: *const swy_executor);
    pub fn swy_compiled_isa(index: usize) -> swy_isa;
    pub fn swy_runnable_isa(index: usize) -> swy_isa;
    pub fn swy_active_isa() -> swy_isa;
    pub fn swy_last_isa() -> swy_isa;
    pub fn swy_cap_isa(name: *const c_char) -> swy_status;
    pub fn swy_environment_isa() -> swy_status;
    pub fn swy_route_top_k(
        inputs: *const swy_route_inputs,
        outputs: *const swy_route_outputs,
        options: *const swy_route_options,
        executor: *const swy_executor,
    ) -> swy_status;
    pub fn swy_find_preset(
        family: *const c_char,
        preset: *mut swy_preset,
        options: *mut swy_route_options,
    ) -> swy_status;
    pub fn swy_set_number(
        key: *const c_char,
        value: f64,
        config: *mut swy_model_config,
    ) -> swy_status;
    pub fn swy_set_text(
        key: *const c_char,
        text: *const c_char,
        config: *mut swy_model_config,
    ) -> swy_status;
    pub fn swy_apply_config(
        config: *const swy_model_config,
        preset: *mut swy_preset,
        options: *mut swy_route_options,
    ) -> swy_status;
    pub fn swy_preset_family(index: usize) -> *const c_char;
    pub fn swy_bucket_packed(
        inputs: *const swy_bucket_inputs,
        outputs: *const swy_packed_buckets,
        options: *const swy_bucket_options,
        executor: *const swy_executor,
    ) -> swy_status;
    pub fn swy_bucket_strided(
        inputs: *const swy_bucket_inputs,
        outputs: *const swy_strided_buckets,
        options: *const swy_bucket_options,
        executor: *const swy_executor,
    ) -> swy_status;
    pub fn swy_bucket_packed_team(
        inputs: *const swy_bucket_inputs,
        outputs: *const swy_packed_buckets,
        options: *const swy_bucket_options,
        team: *const swy_team,
    ) -> swy_status;
    pub fn swy_bucket_strided_team(
        inputs: *const swy_bucket_inputs,
        outputs: *const swy_strided_buckets,
        options: *const swy_bucket_options,
        team: *const swy_team,
    ) -> swy_status;
    pub fn swy_bucket_scratch_size(
        num_pairs: usize,
        num_experts: usize,
        executor: *const swy_executor,
    ) -> usize;
    pub fn swy_bucket_scratch_size_team(
        num_pairs: usize,
        num_experts: usize,
        team: *const swy_team,
    ) -> usize;
    pub fn swy_bucket_aligned(
        inputs: *const swy_aligned_inputs,
        outputs: *const swy_aligned_buckets,
        options: *const swy_aligned_options,
        executor: *const swy_executor,
    ) -> swy_status;
    pub fn swy_bucket_aligned_team(
        inputs: *const swy_aligned_inputs,
        outputs: *const swy_aligned_buckets,
        options: *const swy_aligned_options,
        team: *const swy_team,
    ) -> swy_status;
    pub fn swy_bucket_aligned_size(
        num_pairs: usize,
        num_experts: usize,
        options: *const swy_aligned_options,
    ) -> usize;
    pub fn swy_make_dispatch_args(
        inputs: *const swy_dispatch_inputs,
        outputs: *const swy_dispatch_outputs,
        options: *const swy_dispatch_options,
    ) -> swy_status;
    pub fn swy_map_pairs(
        inputs: *const swy_map_inputs,
        outputs: *const swy_map_outputs,
        options: *const swy_map_options,
        executor: *const swy_executor,
    ) -> swy_status;
    pub fn swy_map_pairs_team(
        inputs: *const swy_map_inputs,
        outputs: *const swy_map_outputs,
        options: *const swy_map_options,
        team: *const swy_team,
    ) -> swy_status;
    pub fn swy_make_work_list(
        inputs: *const swy_work_list_inputs,
        outputs: *const swy_work_list_outputs,
        options: *const swy_work_list_options,
    ) -> swy_status;
    pub fn swy_work_list_size(
        num_rows: usize,
        num_experts: usize,
        options: *const swy_work_list_options,
    ) -> usize;
    pub fn swy_gather_rows(
        inputs: *const swy_gather_inputs,
        outputs: *const swy_gather_outputs,
        options: *const swy_gather_options,
        executor: *const swy_executor,
    ) -> swy_status;
    pub fn swy_scatter_rows(
        inputs: *const swy_scatter_inputs,
        outputs: *const swy_scatter_outputs,
        options: *const swy_scatter_options,
        executor: *const swy_executor,
    ) -> swy_status;
    pub fn swy_quantize(
        inputs: *const swy_quantize_inputs,
        outputs: *const swy_quantize_outputs,
        options: *const swy_quantize_options,
        executor: *const swy_executor,
    ) -> swy_status;
    pub fn swy_activate(
        inputs: *const swy_activate_inputs,
        outputs: *const swy_activate_outputs,
        options: *const swy_activate_options,
        executor: *const swy_executor,
    ) -> swy_status;
    pub fn swy_combine(
        inputs: *const swy_combine_inputs,
        outputs: *const swy_combine_outputs,
        options: *const swy_combine_options,
        executor: *const swy_executor,
    ) -> swy_status;
    pub fn swy_hyper_connect(
        inputs: *const swy_hyper_inputs,
        outputs: *const swy_hyper_outputs,
        options: *const swy_hyper_options,
        executor: *const swy_executor,
    ) -> swy_status;
}
