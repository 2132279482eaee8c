// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::check;
use crate::values::{Raw, RowFormat, WeightFormat, WeightLayout};
use crate::view::View;
use crate::{sys, Error, ExpertTile, ExpertsPlanOptions, Matrix, MatrixMut, PackWeightsOptions};
use crate::{Pool, Report};
use std::os::raw::c_void;

/// A view of all experts' weights for one product: `[num_experts, rows, cols]`. A row of
/// weights gives one column of the product's output, and has as many columns (`cols`) as
/// the product's input. The default has no data, and stands for a product that a layer
/// does not have.
#[derive(Clone, Copy)]
pub struct ExpertWeights<'a> {
    /// The format of the weights.
    pub format: WeightFormat,
    /// The order of the weights' bytes.
    pub layout: WeightLayout,
    /// Columns of the product's output.
    pub rows: usize,
    /// Columns of the product's input.
    pub cols: usize,
    /// u8 `[num_experts, expert_weights_size]`: each row has the bytes of one expert.
    /// Packed weights are faster if the address and the stride are multiples of 64.
    pub data: Matrix<'a>,
    /// f32 `[num_experts, rows]`, for `WeightFormat::Int8` in the stored layout only: a
    /// scale for each row.
    pub scales: Matrix<'a>,
}
impl Default for ExpertWeights<'_> {
    fn default() -> Self {
        // SAFETY: the weights have no data.
        unsafe { ExpertWeights::from_raw(sys::SWY_NO_EXPERT_WEIGHTS) }.expect("the same header's")
    }
}
impl<'a> ExpertWeights<'a> {
    /// Makes weights without data, to compute their sizes, or to quantise floats with
    /// `pack_weights`.
    pub fn new(format: WeightFormat, rows: usize, cols: usize) -> Self {
        ExpertWeights { format, rows, cols, ..Default::default() }
    }
    /// Makes a view of weights as a GGUF or a checkpoint stores them. The length of the
    /// slice gives the number of experts. It is an error if the slice ends within an
    /// expert.
    ///
    /// With `WeightFormat::Int8`, the caller sets the field `scales`, too.
    pub fn stored(
        format: WeightFormat,
        rows: usize,
        cols: usize,
        data: &'a [u8],
    ) -> Result<Self, Error> {
        let weights = ExpertWeights::new(format, rows, cols);
        let size = expert_weights_size(&weights);
        if size == 0 || size == usize::MAX {
            return Err(Error::invalid("ExpertWeights: rows or cols is out of range"));
        }
        if data.len() % size != 0 {
            return Err(Error::invalid("ExpertWeights: the slice has a part of an expert"));
        }
        Ok(ExpertWeights { data: Matrix::new(data, data.len() / size, size)?, ..weights })
    }
    fn to_c(self) -> sys::swy_expert_weights {
        sys::swy_expert_weights {
            format: self.format.to_c(),
            layout: self.layout.to_c(),
            rows: self.rows,
            cols: self.cols,
            data: self.data.raw,
            scales: self.scales.raw,
        }
    }
    /// Returns None if the format or the layout comes from a newer library.
    ///
    /// # Safety
    /// The memory that the matrices of `raw` describe must be readable, and not
    /// written, for `'a`.
    unsafe fn from_raw(raw: sys::swy_expert_weights) -> Option<Self> {
        Some(ExpertWeights {
            format: WeightFormat::from_c(raw.format)?,
            layout: WeightLayout::from_c(raw.layout)?,
            rows: raw.rows,
            cols: raw.cols,
            // SAFETY: the caller guarantees that the data are readable, and not
            // written, for 'a.
            data: unsafe { Matrix::from_raw(raw.data) },
            // SAFETY: the caller guarantees that the scales are readable, and not
            // written, for 'a.
            scales: unsafe { Matrix::from_raw(raw.scales) },
        })
    }
}

/// Returns the number of bytes of one expert, computed from format, layout, rows and cols alone.
/// Returns `usize::MAX` if the size overflows or the format does not take this number of
/// columns.
pub fn expert_weights_size(weights: &ExpertWeights<'_>) -> usize {
    // SAFETY: the call reads no data.
    unsafe { sys::swy_expert_weights_size(&weights.to_c()) }
}
/// Returns the number of bytes of one expert in the packed layout, for any `weights.layout`.
/// Returns `usize::MAX` if the size overflows or the format does not take this number of
/// columns.
pub fn packed_weights_size(weights: &ExpertWeights<'_>) -> usize {
    // SAFETY: the call reads no data.
    unsafe { sys::swy_packed_weights_size(&weights.to_c()) }
}

/// Inputs of `pack_weights`.
#[derive(Clone, Copy, Default)]
pub struct PackWeightsInputs<'a> {
    /// The weights to pack, in the stored layout.
    pub weights: ExpertWeights<'a>,
    /// Instead of `weights.data`: f32, bf16 or f16 `[num_experts * rows, cols]`, which
    /// `pack_weights` quantises. Then set only format, rows and cols of `weights`.
    pub floats: Matrix<'a>,
}

/// Packs weights, or quantises floats and packs them, and returns a view of `memory`,
/// which is u8 `[num_experts, packed_weights_size]`. To free the unpacked experts early,
/// call `pack_weights` for a few experts at a time.
pub fn pack_weights<'m>(
    inputs: &PackWeightsInputs<'_>,
    memory: MatrixMut<'m>,
    options: &PackWeightsOptions,
    pool: Pool<'_>,
) -> Result<ExpertWeights<'m>, Error> {
    let mut packed = sys::SWY_NO_EXPERT_WEIGHTS;
    let raw_in = sys::swy_pack_weights_inputs {
        size: sys::size_of::<sys::swy_pack_weights_inputs>(),
        weights: inputs.weights.to_c(),
        floats: inputs.floats.raw,
    };
    let raw_out = sys::swy_pack_weights_outputs {
        size: sys::size_of::<sys::swy_pack_weights_outputs>(),
        weights: &mut packed,
        memory: memory.view(),
    };
    // SAFETY: the views point into slices that are borrowed during the call.
    let status = pool
        .with(|pool| unsafe { sys::swy_pack_weights(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::default())?;
    // SAFETY: `packed` is a view of `memory`, which is exclusively borrowed for 'm.
    Ok(unsafe { ExpertWeights::from_raw(packed) }.expect("the format that was asked for"))
}

/// Returns the row format that products with weights of `format` read. It is the value
/// for `operands` and `down_operands` of `ExpertsOptions`.
pub fn operands_of(format: WeightFormat) -> RowFormat {
    // SAFETY: the call takes a number only.
    RowFormat::from_c(unsafe { sys::swy_operands_of(format.to_c()) }).expect("the same header's")
}

/// Sets `tile_columns` and the costs of `options` for weights of `format`.
pub fn set_costs(format: WeightFormat, options: &mut ExpertsPlanOptions) {
    let mut raw = options.to_c();
    // SAFETY: the call writes to `raw`, which is local.
    unsafe { sys::swy_set_costs(format.to_c(), &mut raw) };
    *options = ExpertsPlanOptions::from_c(raw).expect("the same header's");
}

/// Computes `tile.out = tile.rows * weights^T` for the tile's columns, on the calling
/// thread. `tile.product` is not read.
pub fn multiply_tile(weights: &ExpertWeights<'_>, tile: &mut ExpertTile<'_>) -> Result<(), Error> {
    // SAFETY: the views point into slices that are borrowed during the call. Only this
    // tile may write to `out`.
    let status = unsafe { sys::swy_multiply_tile(&weights.to_c(), &tile.to_raw()) };
    check(status, Report::default()).map(drop)
}

/// The weights of all products of a layer. Set `gate` and `up` for `GateUpLayout::Split`,
/// and `gate_up` for the other layouts. The `shared_` fields have one expert each; leave
/// them empty in a layer without a shared expert.
///
/// ```
/// use switchyard::*;
///
/// fn main() -> Result<(), Error> {
///     const EXPERTS: usize = 4;
///     const HIDDEN: usize = 64;
///     const INTERMEDIATE: usize = 32;
///     let pool = Pool::Serial;
///     // Floats become q4_0; the bytes of a GGUF would go to `ExpertWeights::stored`.
///     let floats = vec![0.5f32; EXPERTS * INTERMEDIATE * HIDDEN];
///     let up = ExpertWeights::new(WeightFormat::Q4_0, INTERMEDIATE, HIDDEN);
///     let down = ExpertWeights::new(WeightFormat::Q4_0, HIDDEN, INTERMEDIATE);
///     let (up_size, down_size) = (packed_weights_size(&up), packed_weights_size(&down));
///     let (mut up_memory, mut down_memory) =
///         (vec![0u8; EXPERTS * up_size], vec![0u8; EXPERTS * down_size]);
///     let up = pack_weights(
///         &PackWeightsInputs {
///             weights: up,
///             floats: Matrix::new(&floats, EXPERTS * INTERMEDIATE, HIDDEN)?,
///         },
///         MatrixMut::new(&mut up_memory, EXPERTS, up_size)?,
///         &PackWeightsOptions::default(),
///         pool,
///     )?;
///     let down = pack_weights(
///         &PackWeightsInputs {
///             weights: down,
///             floats: Matrix::new(&floats, EXPERTS * HIDDEN, INTERMEDIATE)?,
///         },
///         MatrixMut::new(&mut down_memory, EXPERTS, down_size)?,
///         &PackWeightsOptions::default(),
///         pool,
///     )?;
///     let layer = LayerWeights { gate: up, up, down, ..Default::default() };
///
///     let mut shape = ExpertsPlanOptions {
///         num_experts: EXPERTS,
///         hidden: HIDDEN,
///         intermediate: INTERMEDIATE,
///         ..Default::default()
///     };
///     set_costs(WeightFormat::Q4_0, &mut shape);
///     let options =
///         ExpertsOptions { operands: operands_of(WeightFormat::Q4_0), ..Default::default() };
///     let (ids, weights) = ([0, 3, 2, 1], [0.5f32; 4]); // two tokens of two slots
///     let mut memory = vec![0; experts_plan_size(2, 2, &shape)];
///     let plan = plan_experts(Matrix::new(&ids, 2, 2)?, &mut memory, &shape, pool)?;
///     let mut scratch = vec![0; experts_scratch_size(&plan, &options, pool.concurrency())];
///     let (hidden, mut out) = (vec![1f32; 2 * HIDDEN], vec![0f32; 2 * HIDDEN]);
///     run_experts(
///         ExpertsInputs::new(
///             &plan,
///             Matrix::new(&hidden, 2, HIDDEN)?.into(),
///             CombineInputs::of_experts(Matrix::new(&weights, 2, 2)?),
///             &mut scratch,
///         ),
///         CombineOutputs { out: MatrixMut::new(&mut out, 2, HIDDEN)?, ..Default::default() },
///         &options,
///         |mut tile| layer.multiply(&mut tile),
///         pool,
///     )?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Default)]
pub struct LayerWeights<'a> {
    /// The weights of gate and up in one matrix.
    pub gate_up: ExpertWeights<'a>,
    /// The weights of the gate alone, with `GateUpLayout::Split`.
    pub gate: ExpertWeights<'a>,
    /// The weights of up alone, with `GateUpLayout::Split`.
    pub up: ExpertWeights<'a>,
    /// The weights of the down product, from the intermediate columns back to the hidden
    /// columns.
    pub down: ExpertWeights<'a>,
    /// The shared expert's weights of gate and up in one matrix.
    pub shared_gate_up: ExpertWeights<'a>,
    /// The shared expert's weights of the gate alone, with `GateUpLayout::Split`.
    pub shared_gate: ExpertWeights<'a>,
    /// The shared expert's weights of up alone, with `GateUpLayout::Split`.
    pub shared_up: ExpertWeights<'a>,
    /// The shared expert's weights of the down product.
    pub shared_down: ExpertWeights<'a>,
}
impl LayerWeights<'_> {
    /// Computes a tile with the weights of `tile.product`. Pass this function to
    /// `run_experts` as its GEMM. An engine may change `tile.out` after this call, for
    /// instance to add a bias. An error names the weights that are missing:
    /// "LayerWeights: down: not given".
    pub fn multiply(&self, tile: &mut ExpertTile<'_>) -> Result<(), Error> {
        let raw = sys::swy_layer_weights {
            size: sys::size_of::<sys::swy_layer_weights>(),
            gate_up: self.gate_up.to_c(),
            gate: self.gate.to_c(),
            up: self.up.to_c(),
            down: self.down.to_c(),
            shared_gate_up: self.shared_gate_up.to_c(),
            shared_gate: self.shared_gate.to_c(),
            shared_up: self.shared_up.to_c(),
            shared_down: self.shared_down.to_c(),
        };
        let context = &raw as *const sys::swy_layer_weights as *mut c_void;
        // SAFETY: the call reads `raw`, whose views point into slices that are borrowed
        // during the call. Only this tile may write to `out`.
        let status = unsafe { sys::swy_multiply_layer(context, &tile.to_raw()) };
        check(status, Report::default()).map(drop)
    }
}
