// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use super::{Barrier, Layout, ParallelFor};
use std::os::raw::{c_char, c_void};

structs! {
    struct swy_status { code: i32, message: *const c_char }
    struct swy_block_q8_0 {
        d: u16,
        qs: [i8; 32],
    }
    struct swy_block_q8_1 {
        d: u16,
        s: u16,
        qs: [i8; 32],
    }
    struct swy_block_q8_k {
        d: f32,
        qs: [i8; 256],
        bsums: [i16; 16],
    }
    struct swy_matrix {
        data: *mut c_void,
        rows: usize,
        cols: usize,
        stride: usize,
        r#type: i32,
    }
    struct swy_rows {
        values: swy_matrix,
        scales: swy_matrix,
        sums: swy_matrix,
    }
    struct swy_i32_span { data: *mut i32, size: usize }
    struct swy_u32_span { data: *mut u32, size: usize }
    struct swy_i64_span { data: *mut i64, size: usize }
    struct swy_report {
        size: u32,
        invalid_ids: usize,
        elsewhere: usize,
        max_rows: usize,
        row_stride: usize,
        dropped: usize,
        invalid: usize,
        skipped: usize,
        over_capacity: usize,
        active_experts: usize,
        tiles: usize,
    }
    struct swy_executor {
        size: u32,
        context: *mut c_void,
        concurrency: usize,
        parallel_for: Option<ParallelFor>,
    }
    struct swy_team {
        size: u32,
        thread: usize,
        num_threads: usize,
        barrier: Option<Barrier>,
        context: *mut c_void,
    }
    struct swy_isa { name: *const c_char, fma: i32 }
    struct swy_route_inputs {
        size: u32,
        logits: swy_matrix,
        correction_bias: swy_matrix,
        bias_index: swy_matrix,
        expert_scale: swy_matrix,
        token_mask: swy_matrix,
        given_ids: swy_matrix,
        expert_map: swy_matrix,
    }
    struct swy_route_outputs {
        size: u32,
        topk_ids: swy_matrix,
        topk_weights: swy_matrix,
        identity_weights: swy_matrix,
        report: *mut swy_report,
    }
    struct swy_route_options {
        size: u32,
        renormalize: i32,
        clamp: f32,
        score: i32,
        divisor: i32,
        eps: f32,
        zero_sum_is_zero: i32,
        weight_of: i32,
        bias_place: i32,
        bias_in_weight: i32,
        select_on_rounded_score: i32,
        routed_scaling_factor: f32,
        logit_scale: f32,
        logit_softcap: f32,
        logit_clip: f32,
        num_expert_group: usize,
        topk_group: usize,
        group_score_of: usize,
        dropped_key_is_zero: i32,
        num_zero_experts: usize,
        num_shared_experts: usize,
        shared_weight: f32,
        shared_logits: i32,
        round_to: i32,
        jitter_eps: f32,
        needs_correction_bias: i32,
        needs_expert_scale: i32,
        needs_groups: i32,
        needs_config: i32,
    }
    struct swy_combine_form {
        size: u32,
        has_residual: i32,
        num_shared_experts: usize,
        shared_gate: i32,
        has_identity_experts: i32,
        has_routed_norm: i32,
        has_shared_norm: i32,
        has_block_norm: i32,
        has_vectors: i32,
        has_expert_biases: i32,
        has_weights_on_input: i32,
    }
    struct swy_optional_count { is_set: i32, value: u32 }
    struct swy_optional_flag { is_set: i32, value: i32 }
    struct swy_optional_number { is_set: i32, value: f32 }
    struct swy_model_config {
        size: u32,
        num_experts: swy_optional_count,
        num_experts_per_tok: swy_optional_count,
        norm_topk_prob: swy_optional_flag,
        routed_scaling_factor: swy_optional_number,
        n_group: swy_optional_count,
        topk_group: swy_optional_count,
        topk_method: *const c_char,
        scoring_func: *const c_char,
        expert_selection_fn: *const c_char,
        use_expert_bias: swy_optional_flag,
        moe_normalize_expert_weights: swy_optional_number,
        moe_norm_min: swy_optional_number,
        output_multiplier: swy_optional_number,
        moe_router_logit_softcapping: swy_optional_number,
        router_jitter_noise: swy_optional_number,
        zero_expert_num: swy_optional_count,
        n_shared_experts: swy_optional_count,
        shared_intermediate_size: swy_optional_count,
        shared_expert_combination_strategy: *const c_char,
        moe_apply_router_weight_on_input: swy_optional_flag,
        hidden_act: *const c_char,
        swiglu_limit: swy_optional_number,
        swiglu_alpha: swy_optional_number,
        mlp_gate_softcap: swy_optional_number,
        mlp_up_softcap: swy_optional_number,
        rms_norm_eps: swy_optional_number,
        post_norm_eps: swy_optional_number,
        residual_multiplier: swy_optional_number,
        mlp_alpha_factor: swy_optional_number,
        mlp_beta_factor: swy_optional_number,
    }
    struct swy_preset {
        size: u32,
        correction_bias: i32,
        expert_scale: i32,
        norm_topk_prob: i32,
        in_model_type: i32,
        family: *const c_char,
        same_as: *const c_char,
        source: *const c_char,
        num_experts: usize,
        top_k: usize,
        activate: *mut swy_activate_options,
        combine: *mut swy_combine_options,
        form: *mut swy_combine_form,
    }
    struct swy_bucket_inputs {
        size: u32,
        topk_ids: swy_matrix,
        scratch: swy_i32_span,
    }
    struct swy_bucket_options {
        size: u32,
        order: i32,
        allow_dropped: i32,
    }
    struct swy_packed_buckets {
        size: u32,
        tokens_per_expert: swy_i32_span,
        offsets: swy_i32_span,
        pairs: swy_i32_span,
        row_index: swy_matrix,
        report: *mut swy_report,
    }
    struct swy_strided_buckets {
        size: u32,
        zero_padding: i32,
        tokens_per_expert: swy_i32_span,
        ids: swy_i32_span,
        row_stride: usize,
        report: *mut swy_report,
    }
    struct swy_aligned_inputs {
        size: u32,
        topk_ids: swy_matrix,
        expert_map: swy_i32_span,
        scratch: swy_i32_span,
    }
    struct swy_aligned_buckets {
        size: u32,
        tokens_per_expert: swy_i32_span,
        offsets: swy_i32_span,
        pairs: swy_i32_span,
        row_index: swy_matrix,
        block_experts: swy_i32_span,
        row_tokens: swy_i32_span,
        active_experts: swy_i32_span,
        report: *mut swy_report,
    }
    struct swy_aligned_options {
        size: u32,
        block_size: usize,
        capacity: usize,
        fill_unused: i32,
        allow_dropped: i32,
    }
    struct swy_dispatch_inputs {
        size: u32,
        max_rows: usize,
        num_experts: usize,
        features: usize,
    }
    struct swy_dispatch_outputs {
        size: u32,
        args: swy_u32_span,
    }
    struct swy_dispatch_options {
        size: u32,
        tile_pairs: u32,
        tile_features: u32,
    }
    struct swy_map_rows {
        counts: swy_i32_span,
        offsets: swy_i32_span,
        rows: swy_i32_span,
        element_counts: swy_i64_span,
        element_offsets: swy_i64_span,
    }
    struct swy_map_inputs {
        size: u32,
        topk_ids: swy_matrix,
        destinations: swy_i32_span,
        scratch: swy_i32_span,
    }
    struct swy_map_outputs {
        size: u32,
        pairs: swy_map_rows,
        pair_index: swy_matrix,
        tokens: swy_map_rows,
        copy_index: swy_matrix,
        return_index: swy_matrix,
        report: *mut swy_report,
    }
    struct swy_map_options {
        size: u32,
        allow_dropped: i32,
        experts_per_destination: usize,
        row_elements: usize,
    }
    struct swy_work_tile {
        first_row: i64,
        rows: i32,
        expert: i32,
    }
    struct swy_work_tile_span { data: *mut swy_work_tile, size: usize }
    struct swy_work_list_inputs {
        size: u32,
        tokens_per_expert: swy_i32_span,
        offsets: swy_i32_span,
    }
    struct swy_work_list_outputs {
        size: u32,
        tiles: swy_work_tile_span,
        report: *mut swy_report,
    }
    struct swy_work_list_options {
        size: u32,
        workers: usize,
        tile_rows: usize,
        min_rows: usize,
        tile_cost: usize,
        row_cost: usize,
    }
    struct swy_gather_inputs {
        size: u32,
        tokens: swy_rows,
        pairs: swy_i32_span,
        topk_ids: swy_matrix,
        row_index: swy_matrix,
    }
    struct swy_gather_outputs {
        size: u32,
        rows: swy_rows,
        report: *mut swy_report,
    }
    struct swy_gather_options {
        size: u32,
        allow_invalid: i32,
    }
    struct swy_scatter_inputs {
        size: u32,
        packed: swy_rows,
        row_index: swy_matrix,
    }
    struct swy_scatter_outputs {
        size: u32,
        rows: swy_rows,
        report: *mut swy_report,
    }
    struct swy_scatter_options {
        size: u32,
        allow_skipped: i32,
    }
    struct swy_quantize_inputs {
        size: u32,
        from: swy_rows,
    }
    struct swy_quantize_outputs {
        size: u32,
        rows: swy_rows,
    }
    struct swy_quantize_options {
        size: u32,
    }
    struct swy_activate_inputs {
        size: u32,
        gate: swy_matrix,
        up: swy_matrix,
        gate_bias: swy_matrix,
        up_bias: swy_matrix,
        row_scale: swy_matrix,
        offsets: swy_i32_span,
        tokens_per_expert: swy_i32_span,
    }
    struct swy_activate_outputs {
        size: u32,
        out: swy_rows,
    }
    struct swy_activate_options {
        size: u32,
        activation: i32,
        layout: i32,
        stores: i32,
        alpha: f32,
        beta: f32,
        linear_beta: f32,
        limit: f32,
        limit_place: i32,
        row_scale_place: i32,
        round_like_unfused: i32,
    }
    struct swy_shared_expert {
        rows: swy_matrix,
        gate: swy_matrix,
        num_shared: usize,
        kind: i32,
    }
    struct swy_identity_experts {
        rows: swy_matrix,
        weight: swy_matrix,
    }
    struct swy_block_norms {
        routed: swy_matrix,
        shared: swy_matrix,
        block: swy_matrix,
    }
    struct swy_combine_vectors {
        block_bias: swy_matrix,
        block_scale: swy_matrix,
        residual_bias: swy_matrix,
        residual_scale: swy_matrix,
    }
    struct swy_combine_scales {
        routed: f32,
        block: f32,
        residual: f32,
        out: f32,
    }
    struct swy_combine_inputs {
        size: u32,
        token_order: i32,
        rows: swy_rows,
        topk_weights: swy_matrix,
        row_index: swy_matrix,
        residual: swy_matrix,
        norm_weight: swy_matrix,
        shared: swy_shared_expert,
        identity: swy_identity_experts,
        norms: swy_block_norms,
        vectors: swy_combine_vectors,
    }
    struct swy_combine_outputs {
        size: u32,
        out: swy_matrix,
        normed: swy_rows,
        report: *mut swy_report,
    }
    struct swy_combine_options {
        size: u32,
        eps: f32,
        allow_skipped: i32,
        round_like_unfused: i32,
        norm: i32,
        block_norm: i32,
        block_eps: f32,
        scales: swy_combine_scales,
    }
    struct swy_hyper_inputs {
        size: u32,
        streams: swy_matrix,
        block: swy_matrix,
        post: swy_matrix,
        comb: swy_matrix,
        pre: swy_matrix,
        norm_weight: swy_matrix,
    }
    struct swy_hyper_outputs {
        size: u32,
        streams: swy_matrix,
        scales: swy_matrix,
        out: swy_matrix,
        normed: swy_rows,
    }
    struct swy_hyper_options {
        size: u32,
        num_streams: usize,
        eps: f32,
        comb_by_row: i32,
        norm_plus_one: i32,
        round_like_unfused: i32,
    }
}
