// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::check;
use crate::values::Raw;
use crate::view::NONE;
use crate::{sys, CombineOptions, Error, HyperOptions, Matrix, MatrixMut, Pool, Report};
use crate::{Rows, RowsMut, SharedGate, Source};

/// Says which row belongs to each (token, slot).
#[derive(Clone, Copy)]
pub enum RowIndex<'a> {
    /// Row token * top_k + slot.
    TokenOrder,
    /// i32 `[tokens, top_k]`; -1 skips the slot.
    Rows(Matrix<'a>),
}
/// Experts that every token passes through.
#[derive(Clone, Copy)]
pub struct SharedExpert<'a> {
    /// `[tokens * num_shared, hidden]`, by token.
    pub rows: Matrix<'a>,
    /// `[tokens, num_shared]`; none with `SharedGate::None`.
    pub gate: Matrix<'a>,
    /// How they are weighted.
    pub kind: SharedGate,
    /// How many.
    pub num_shared: usize,
}
impl Default for SharedExpert<'_> {
    fn default() -> Self {
        SharedExpert {
            rows: Matrix::default(),
            gate: Matrix::default(),
            kind: SharedGate::Logit,
            num_shared: 1,
        }
    }
}
/// Zero experts, whose output is their input.
#[derive(Clone, Copy, Default)]
pub struct IdentityExperts<'a> {
    /// `[tokens, hidden]`.
    pub rows: Matrix<'a>,
    /// `[tokens, 1]`.
    pub weight: Matrix<'a>,
}
/// Weights of RMSNorms before the residual, `[1, hidden]`, each optional.
#[derive(Clone, Copy, Default)]
pub struct BlockNorms<'a> {
    /// Weight of the norm of the routed sum.
    pub routed: Matrix<'a>,
    /// Weight of the norm of the shared experts' sum.
    pub shared: Matrix<'a>,
    /// Weight of the norm of both together.
    pub block: Matrix<'a>,
}
/// Learned vectors, `[1, hidden]`, each optional.
#[derive(Clone, Copy, Default)]
pub struct CombineVectors<'a> {
    /// Added to all experts' sum.
    pub block_bias: Matrix<'a>,
    /// Multiplies that sum.
    pub block_scale: Matrix<'a>,
    /// Added to the residual.
    pub residual_bias: Matrix<'a>,
    /// Multiplies the residual.
    pub residual_scale: Matrix<'a>,
}
/// Inputs of `combine`.
#[derive(Clone, Copy)]
pub struct CombineInputs<'a> {
    /// `[num_rows, hidden]`: down-projection outputs.
    pub rows: Rows<'a>,
    /// `[tokens, top_k]`.
    pub topk_weights: Matrix<'a>,
    /// Says which row belongs to each (token, slot).
    pub row_index: RowIndex<'a>,
    /// Optional `[tokens, hidden]`; in place: what out holds or, where only normed
    /// is written, what normed does.
    pub residual: Source<'a>,
    /// `[1, hidden]`, for normed.
    pub norm_weight: Matrix<'a>,
    /// Optional.
    pub shared: SharedExpert<'a>,
    /// Optional.
    pub identity: IdentityExperts<'a>,
    /// Optional.
    pub norms: BlockNorms<'a>,
    /// Optional.
    pub vectors: CombineVectors<'a>,
}
impl<'a> CombineInputs<'a> {
    /// What `run_experts` takes: rows and row_index are its own.
    pub fn of_experts(topk_weights: Matrix<'a>) -> Self {
        CombineInputs::new(Rows::default(), topk_weights, RowIndex::Rows(Matrix::default()))
    }
    /// The weighted sum of rows alone.
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
/// Outputs of `combine`: at least one of the two.
#[derive(Default)]
pub struct CombineOutputs<'a> {
    /// `[tokens, hidden]`; f32, bf16, f16.
    pub out: MatrixMut<'a>,
    /// `[tokens, hidden]`: the RMSNorm of out.
    pub normed: RowsMut<'a>,
}

pub(crate) fn raw_inputs(
    inputs: &CombineInputs<'_>,
    outputs: &CombineOutputs<'_>,
) -> Result<sys::swy_combine_inputs, Error> {
    let (token_order, row_index) = match inputs.row_index {
        RowIndex::TokenOrder => (1, NONE),
        RowIndex::Rows(matrix) => (0, matrix.raw),
    };
    // The library lets normed lie where the residual does if there is no out.
    let written =
        if outputs.out.raw.data.is_null() { outputs.normed.values.raw } else { outputs.out.raw };
    let residual =
        inputs.residual.raw(written, "Combine: residual: in place, without out or normed")?;
    Ok(sys::swy_combine_inputs {
        size: sys::size_of::<sys::swy_combine_inputs>(),
        token_order,
        rows: inputs.rows.raw(),
        topk_weights: inputs.topk_weights.raw,
        row_index,
        residual,
        norm_weight: inputs.norm_weight.raw,
        shared: sys::swy_shared_expert {
            rows: inputs.shared.rows.raw,
            gate: inputs.shared.gate.raw,
            num_shared: inputs.shared.num_shared,
            kind: inputs.shared.kind.to_c(),
        },
        identity: sys::swy_identity_experts {
            rows: inputs.identity.rows.raw,
            weight: inputs.identity.weight.raw,
        },
        norms: sys::swy_block_norms {
            routed: inputs.norms.routed.raw,
            shared: inputs.norms.shared.raw,
            block: inputs.norms.block.raw,
        },
        vectors: sys::swy_combine_vectors {
            block_bias: inputs.vectors.block_bias.raw,
            block_scale: inputs.vectors.block_scale.raw,
            residual_bias: inputs.vectors.residual_bias.raw,
            residual_scale: inputs.vectors.residual_scale.raw,
        },
    })
}
pub(crate) fn raw_outputs(
    outputs: &CombineOutputs<'_>,
    report: &mut sys::swy_report,
) -> sys::swy_combine_outputs {
    sys::swy_combine_outputs {
        size: sys::size_of::<sys::swy_combine_outputs>(),
        out: outputs.out.raw,
        normed: outputs.normed.raw(),
        report,
    }
}

/// `out[t] = residual[t] + sum of topk_weights[t, s] * row(t, s) + gate *
/// shared[t]`, and `normed[t] = RMSNorm(out[t]) * norm_weight` in the same pass.
pub fn combine(
    inputs: &CombineInputs<'_>,
    outputs: CombineOutputs<'_>,
    options: &CombineOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    let raw_in = raw_inputs(inputs, &outputs)?;
    let mut report = Report::raw();
    let raw_out = raw_outputs(&outputs, &mut report);
    // SAFETY: views of slices that are borrowed for as long.
    let status =
        pool.with(|pool| unsafe { sys::swy_combine(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::from_raw(&report))
}

/// Inputs of `hyper_connect`: n residual streams of each token, one after the
/// other.
#[derive(Clone, Copy, Default)]
pub struct HyperInputs<'a> {
    /// `[tokens * n, hidden]`; in place: those of the outputs.
    pub streams: Source<'a>,
    /// `[tokens, hidden]`, with post.
    pub block: Matrix<'a>,
    /// `[tokens, n]`, with block.
    pub post: Matrix<'a>,
    /// Optional `[tokens, n * n]`.
    pub comb: Matrix<'a>,
    /// Optional `[tokens, n]` or `[tokens * n, hidden]`.
    pub pre: Matrix<'a>,
    /// `[1, hidden]`, for normed.
    pub norm_weight: Matrix<'a>,
}
/// Outputs of `hyper_connect`: at least one of them.
#[derive(Default)]
pub struct HyperOutputs<'a> {
    /// `[tokens * n, hidden]`.
    pub streams: MatrixMut<'a>,
    /// `[tokens, 1]`.
    pub scales: MatrixMut<'a>,
    /// `[tokens, hidden]`, with pre.
    pub out: MatrixMut<'a>,
    /// `[tokens, hidden]`, with pre and norm_weight.
    pub normed: RowsMut<'a>,
}

/// Mixes a token's residual streams, collapses them and takes an RMSNorm of that.
pub fn hyper_connect(
    inputs: &HyperInputs<'_>,
    outputs: HyperOutputs<'_>,
    options: &HyperOptions,
    pool: Pool<'_>,
) -> Result<(), Error> {
    let missing = "HyperConnect: streams: in place, without outputs.streams";
    let streams = inputs.streams.raw(outputs.streams.raw, missing)?;
    let raw_in = sys::swy_hyper_inputs {
        size: sys::size_of::<sys::swy_hyper_inputs>(),
        streams,
        block: inputs.block.raw,
        post: inputs.post.raw,
        comb: inputs.comb.raw,
        pre: inputs.pre.raw,
        norm_weight: inputs.norm_weight.raw,
    };
    let raw_out = sys::swy_hyper_outputs {
        size: sys::size_of::<sys::swy_hyper_outputs>(),
        streams: outputs.streams.raw,
        scales: outputs.scales.raw,
        out: outputs.out.raw,
        normed: outputs.normed.raw(),
    };
    // SAFETY: views of slices that are borrowed for as long.
    let status = pool
        .with(|pool| unsafe { sys::swy_hyper_connect(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::default()).map(drop)
}
