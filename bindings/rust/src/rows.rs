// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::check;
use crate::values::Raw;
use crate::view::{ints, optional_ints};
use crate::{sys, Error, Matrix, Pool, Report, Rows, RowsMut, Source};
use crate::{ActivateOptions, GatherOptions, ScatterOptions};

/// Inputs of `gather_rows`.
#[derive(Clone, Copy, Default)]
pub struct GatherInputs<'a> {
    /// `[num_tokens, hidden]`.
    pub tokens: Rows<'a>,
    /// Pairs in the order that `bucket_packed` writes.
    pub pairs: &'a [i32],
    /// `[num_tokens, top_k]`, of which only the shape is looked at.
    pub topk_ids: Matrix<'a>,
    /// Optional: each token is converted once.
    pub row_index: Matrix<'a>,
}

/// `rows[r] = tokens[pairs[r] / top_k]`.
pub fn gather_rows(
    inputs: &GatherInputs<'_>,
    rows: RowsMut<'_>,
    options: &GatherOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    let mut report = Report::raw();
    let raw_in = sys::swy_gather_inputs {
        size: sys::size_of::<sys::swy_gather_inputs>(),
        tokens: inputs.tokens.raw(),
        pairs: ints(inputs.pairs),
        topk_ids: inputs.topk_ids.raw,
        row_index: inputs.row_index.raw,
    };
    let raw_out = sys::swy_gather_outputs {
        size: sys::size_of::<sys::swy_gather_outputs>(),
        rows: rows.raw(),
        report: &mut report,
    };
    // SAFETY: views of slices that are borrowed for as long.
    let status =
        pool.with(|pool| unsafe { sys::swy_gather_rows(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::from_raw(&report))
}

/// The inverse: `rows[token * top_k + slot] = packed[row_index[token, slot]]`.
pub fn scatter_rows(
    packed: &Rows<'_>,
    row_index: Matrix<'_>,
    rows: RowsMut<'_>,
    options: &ScatterOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    let mut report = Report::raw();
    let raw_in = sys::swy_scatter_inputs {
        size: sys::size_of::<sys::swy_scatter_inputs>(),
        packed: packed.raw(),
        row_index: row_index.raw,
    };
    let raw_out = sys::swy_scatter_outputs {
        size: sys::size_of::<sys::swy_scatter_outputs>(),
        rows: rows.raw(),
        report: &mut report,
    };
    // SAFETY: views of slices that are borrowed for as long.
    let status = pool
        .with(|pool| unsafe { sys::swy_scatter_rows(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::from_raw(&report))
}

/// `rows = from`, in the type and format of rows.
pub fn quantize(from: &Rows<'_>, rows: RowsMut<'_>, pool: Pool<'_>) -> Result<(), Error> {
    let raw_in = sys::swy_quantize_inputs {
        size: sys::size_of::<sys::swy_quantize_inputs>(),
        from: from.raw(),
    };
    let raw_out = sys::swy_quantize_outputs {
        size: sys::size_of::<sys::swy_quantize_outputs>(),
        rows: rows.raw(),
    };
    // SAFETY: views of slices that are borrowed for as long.
    let status =
        pool.with(|pool| unsafe { sys::swy_quantize(&raw_in, &raw_out, std::ptr::null(), pool) });
    check(status, Report::default()).map(drop)
}

/// Inputs of `activate`.
#[derive(Clone, Copy, Default)]
pub struct ActivateInputs<'a> {
    /// `[rows, cols]`, or both `[rows, 2 * cols]`; f32, bf16, f16. In place: what
    /// the output holds, with a layout of one or two matrices.
    pub gate: Source<'a>,
    /// `[rows, cols]` with `GateUpLayout::Split`.
    pub up: Matrix<'a>,
    /// Optional `[num_experts, gate.cols]`.
    pub gate_bias: Matrix<'a>,
    /// Optional `[num_experts, cols]`.
    pub up_bias: Matrix<'a>,
    /// Optional `[rows, 1]`.
    pub row_scale: Matrix<'a>,
    /// Optional `[num_experts + 1]`, as `bucket_packed` writes it.
    pub offsets: Option<&'a [i32]>,
    /// Optional `[num_experts]`, as `bucket_strided` writes it.
    pub tokens_per_expert: Option<&'a [i32]>,
}

/// `out[r, i] = activation(gate[r, i], up[r, i])`.
pub fn activate(
    inputs: &ActivateInputs<'_>,
    out: RowsMut<'_>,
    options: &ActivateOptions,
    pool: Pool<'_>,
) -> Result<(), Error> {
    let raw_in = sys::swy_activate_inputs {
        size: sys::size_of::<sys::swy_activate_inputs>(),
        gate: inputs.gate.raw(out.values.raw, "Activate: gate: in place, without out")?,
        up: inputs.up.raw,
        gate_bias: inputs.gate_bias.raw,
        up_bias: inputs.up_bias.raw,
        row_scale: inputs.row_scale.raw,
        offsets: optional_ints(inputs.offsets, "Activate: offsets: is empty")?,
        tokens_per_expert: optional_ints(
            inputs.tokens_per_expert,
            "Activate: tokens_per_expert: is empty",
        )?,
    };
    let raw_out = sys::swy_activate_outputs {
        size: sys::size_of::<sys::swy_activate_outputs>(),
        out: out.raw(),
    };
    // SAFETY: views of slices that are borrowed for as long.
    let status =
        pool.with(|pool| unsafe { sys::swy_activate(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::default()).map(drop)
}
