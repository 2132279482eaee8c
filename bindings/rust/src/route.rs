// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::check;
use crate::values::Raw;
use crate::{sys, Error, Matrix, MatrixMut, Pool, Report, RouteOptions};

/// Inputs of `route_top_k`.
#[derive(Clone, Copy, Default)]
pub struct RouteInputs<'a> {
    /// `[tokens, num_experts]`; f32, bf16, f16.
    pub logits: Matrix<'a>,
    /// Optional `[num_biases, num_experts]`, mostly one row.
    pub correction_bias: Matrix<'a>,
    /// Optional `[tokens, 1]`: each token's row of it.
    pub bias_index: Matrix<'a>,
    /// Optional `[1, num_experts]`: multiplies weights last.
    pub expert_scale: Matrix<'a>,
    /// Optional `[tokens, 1]` of u8: 0 is padding.
    pub token_mask: Matrix<'a>,
    /// Optional `[tokens, top_k]`: the experts are these.
    pub given_ids: Matrix<'a>,
    /// Optional i32 `[1, num_experts]`: what the ids become; -1: elsewhere.
    pub expert_map: Matrix<'a>,
}
/// Outputs of `route_top_k`.
#[derive(Default)]
pub struct RouteOutputs<'a> {
    /// `[tokens, top_k + num_shared_experts]`; i32, u32, i64.
    pub topk_ids: MatrixMut<'a>,
    /// The same; f32, bf16, f16.
    pub topk_weights: MatrixMut<'a>,
    /// Optional `[tokens, 1]`.
    pub identity_weights: MatrixMut<'a>,
}

/// For each token the top_k experts with the largest keys, best first, and their
/// weights. The smaller index wins ties; NaN ranks below all, and a row that has
/// one gets weights NaN.
pub fn route_top_k(
    inputs: &RouteInputs<'_>,
    outputs: RouteOutputs<'_>,
    options: &RouteOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    let mut report = Report::raw();
    let raw_in = sys::swy_route_inputs {
        size: sys::size_of::<sys::swy_route_inputs>(),
        logits: inputs.logits.raw,
        correction_bias: inputs.correction_bias.raw,
        bias_index: inputs.bias_index.raw,
        expert_scale: inputs.expert_scale.raw,
        token_mask: inputs.token_mask.raw,
        given_ids: inputs.given_ids.raw,
        expert_map: inputs.expert_map.raw,
    };
    let raw_out = sys::swy_route_outputs {
        size: sys::size_of::<sys::swy_route_outputs>(),
        topk_ids: outputs.topk_ids.raw,
        topk_weights: outputs.topk_weights.raw,
        identity_weights: outputs.identity_weights.raw,
        report: &mut report,
    };
    // SAFETY: views of slices that are borrowed for as long.
    let status =
        pool.with(|pool| unsafe { sys::swy_route_top_k(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::from_raw(&report))
}
