// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::{check, with_report};
use crate::values::Raw;
use crate::view::View;
use crate::{sys, BlockNorms, CombineOptions, CombineOutputs, CombineVectors, Error};
use crate::{HyperInputs, HyperOptions, HyperOutputs, IdentityExperts, Matrix, Pool};
use crate::{Report, Rows, SharedExpert, Source};

/// Tells `combine` which row belongs to each (token, slot).
#[derive(Clone, Copy)]
pub enum RowIndex<'a> {
    /// The pair (token, slot) has row token * top_k + slot.
    TokenOrder,
    /// i32 `[tokens, top_k]`: the row of each (token, slot); -1 skips the slot.
    Rows(Matrix<'a>),
}
/// Inputs of `combine`.
#[derive(Clone, Copy)]
pub struct CombineInputs<'a> {
    /// `[num_rows, hidden]`: the outputs of the down product.
    pub rows: Rows<'a>,
    /// `[tokens, top_k]`: the weights of the rows, as `route_top_k` writes them.
    pub topk_weights: Matrix<'a>,
    /// Tells which of `rows` belongs to each (token, slot).
    pub row_index: RowIndex<'a>,
    /// Optional `[tokens, hidden]`. With `Source::InPlace`, the residual is read from the
    /// output `out` or, without `out`, from `normed`.
    pub residual: Source<'a>,
    /// `[1, hidden]`: the weight of the norm that is written to the output `normed`. Give
    /// this weight and that output, or neither.
    pub norm_weight: Matrix<'a>,
    /// Optional: the shared experts.
    pub shared: SharedExpert<'a>,
    /// Optional: the zero experts.
    pub identity: IdentityExperts<'a>,
    /// Optional: norms before the residual.
    pub norms: BlockNorms<'a>,
    /// Optional: learned biases and factors.
    pub vectors: CombineVectors<'a>,
}
impl<'a> CombineInputs<'a> {
    /// Makes inputs for `run_experts`, which itself provides rows and row_index.
    pub fn of_experts(topk_weights: Matrix<'a>) -> Self {
        CombineInputs::new(Rows::default(), topk_weights, RowIndex::Rows(Matrix::default()))
    }
    /// Makes inputs for the weighted sum of rows, without the optional inputs.
    pub fn new(rows: Rows<'a>, topk_weights: Matrix<'a>, row_index: RowIndex<'a>) -> Self {
        CombineInputs {
            rows,
            topk_weights,
            row_index,
            residual: Source::default(),
            norm_weight: Matrix::default(),
            shared: SharedExpert::default(),
            identity: IdentityExperts::default(),
            norms: BlockNorms::default(),
            vectors: CombineVectors::default(),
        }
    }
}
pub(crate) fn raw_inputs(
    inputs: &CombineInputs<'_>,
    outputs: &CombineOutputs<'_>,
) -> Result<sys::swy_combine_inputs, Error> {
    let (token_order, row_index) = match inputs.row_index {
        RowIndex::TokenOrder => (1, sys::SWY_NO_MATRIX),
        RowIndex::Rows(matrix) => (0, matrix.raw),
    };
    // Without the output `out`, the library accepts a residual that lies in `normed`.
    let written =
        if outputs.out.raw.data.is_null() { outputs.normed.values.raw } else { outputs.out.raw };
    let residual =
        inputs.residual.raw(written, "Combine: residual: in place, without out or normed")?;
    Ok(sys::swy_combine_inputs {
        token_order,
        rows: inputs.rows.view(),
        topk_weights: inputs.topk_weights.raw,
        row_index,
        residual,
        norm_weight: inputs.norm_weight.raw,
        shared: inputs.shared.view(),
        identity: inputs.identity.view(),
        norms: inputs.norms.view(),
        vectors: inputs.vectors.view(),
        ..sys::SWY_COMBINE_INPUTS_INIT
    })
}

/// Computes `out[t] = residual[t] + sum of topk_weights[t, s] * row(t, s) + gate *
/// shared[t]`, and `normed[t] = RMSNorm(out[t]) * norm_weight` in the same pass.
pub fn combine(
    inputs: &CombineInputs<'_>,
    outputs: CombineOutputs<'_>,
    options: &CombineOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    let raw_in = raw_inputs(inputs, &outputs)?;
    with_report(|report| {
        let raw_out = outputs.raw(report);
        // SAFETY: the views point into slices that are borrowed during the call.
        pool.with(|pool| unsafe { sys::swy_combine(&raw_in, &raw_out, &options.to_c(), pool) })
    })
}

/// Mixes the residual streams of each token, sums them to one row, and computes the
/// RMSNorm of that row.
pub fn hyper_connect(
    inputs: &HyperInputs<'_>,
    outputs: HyperOutputs<'_>,
    options: &HyperOptions,
    pool: Pool<'_>,
) -> Result<(), Error> {
    let missing = "HyperConnect: streams: in place, without outputs.streams";
    let streams = inputs.streams.raw(outputs.streams.raw, missing)?;
    let raw_in = sys::swy_hyper_inputs { streams, ..inputs.view() };
    let raw_out = outputs.view();
    // SAFETY: the views point into slices that are borrowed during the call.
    let status = pool
        .with(|pool| unsafe { sys::swy_hyper_connect(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::default()).map(drop)
}
