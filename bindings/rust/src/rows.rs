// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::{check, with_report};
use crate::values::Raw;
use crate::view::{not_empty, View};
use crate::{sys, ActivateInputs, ActivateOptions, Error, GatherInputs, GatherOptions};
use crate::{Matrix, Pool, QuantizeOptions, Report, Rows, RowsMut, ScatterOptions};

/// Copies rows of tokens into the order of `pairs`: `rows[r] = tokens[pairs[r] / top_k]`.
pub fn gather_rows(
    inputs: &GatherInputs<'_>,
    rows: RowsMut<'_>,
    options: &GatherOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    with_report(|report| {
        let size = sys::size_of::<sys::swy_gather_outputs>();
        let raw_out = sys::swy_gather_outputs { size, rows: rows.view(), report };
        let (inputs, options) = (inputs.view(), options.to_c());
        // SAFETY: the views point into slices that are borrowed during the call.
        pool.with(|pool| unsafe { sys::swy_gather_rows(&inputs, &raw_out, &options, pool) })
    })
}

/// Copies rows that are sorted by expert back into the order of tokens: `rows[token *
/// top_k + slot] = packed[row_index[token, slot]]`.
pub fn scatter_rows(
    packed: &Rows<'_>,
    row_index: Matrix<'_>,
    rows: RowsMut<'_>,
    options: &ScatterOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    with_report(|report| {
        let raw_in = sys::swy_scatter_inputs {
            size: sys::size_of::<sys::swy_scatter_inputs>(),
            packed: packed.view(),
            row_index: row_index.raw,
        };
        let size = sys::size_of::<sys::swy_scatter_outputs>();
        let raw_out = sys::swy_scatter_outputs { size, rows: rows.view(), report };
        // SAFETY: the views point into slices that are borrowed during the call.
        pool.with(|pool| unsafe { sys::swy_scatter_rows(&raw_in, &raw_out, &options.to_c(), pool) })
    })
}

/// Copies `from` to `rows`, in the type and format of `rows`. The report gets
/// `overflowed_blocks`.
pub fn quantize(
    from: &Rows<'_>,
    rows: RowsMut<'_>,
    options: &QuantizeOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    let raw_in = sys::swy_quantize_inputs {
        size: sys::size_of::<sys::swy_quantize_inputs>(),
        from: from.view(),
    };
    with_report(|report| {
        let size = sys::size_of::<sys::swy_quantize_outputs>();
        let raw_out = sys::swy_quantize_outputs { size, rows: rows.view(), report };
        // SAFETY: the views point into slices that are borrowed during the call.
        pool.with(|pool| unsafe { sys::swy_quantize(&raw_in, &raw_out, &options.to_c(), pool) })
    })
}

/// Computes `out[r, i] = activation(gate[r, i], up[r, i])`.
pub fn activate(
    inputs: &ActivateInputs<'_>,
    out: RowsMut<'_>,
    options: &ActivateOptions,
    pool: Pool<'_>,
) -> Result<(), Error> {
    let gate = inputs.gate.raw(out.values.raw, "Activate: gate: in place, without out")?;
    not_empty(inputs.offsets, "Activate: offsets: is empty")?;
    not_empty(inputs.tokens_per_expert, "Activate: tokens_per_expert: is empty")?;
    let raw_in = sys::swy_activate_inputs { gate, ..inputs.view() };
    let raw_out = sys::swy_activate_outputs {
        size: sys::size_of::<sys::swy_activate_outputs>(),
        out: out.view(),
    };
    // SAFETY: the views point into slices that are borrowed during the call.
    let status =
        pool.with(|pool| unsafe { sys::swy_activate(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::default()).map(drop)
}
