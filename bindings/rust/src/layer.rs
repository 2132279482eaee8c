// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::combine::raw_inputs;
use crate::error::{with_report, Code};
use crate::values::{ExpertProduct, Raw, RowFormat, Type};
use crate::view::View;
use crate::GateUpLayout;
use crate::{sys, Error, Matrix, MatrixMut, Pool, Report, Rows};
use crate::{ActivateOptions, CombineInputs, CombineOptions, CombineOutputs, ExpertsPlanOptions};
use std::marker::PhantomData;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null;
use std::sync::{Mutex, PoisonError};

/// A plan that cuts the work on a layer's experts into tiles. The plan lies in memory
/// that it borrows. Any number of calls may use a plan at the same time.
pub struct ExpertsPlan<'a> {
    raw: sys::swy_experts_plan,
    report: Report,
    memory: PhantomData<&'a mut [i32]>,
}
impl ExpertsPlan<'_> {
    /// Returns the report of `plan_experts`: max_rows, dropped and tiles.
    pub fn report(&self) -> Report {
        self.report
    }
}

/// Returns the number of i32 elements of memory that a plan needs, or `usize::MAX` if the
/// size overflows or `plan_experts` refuses an option.
pub fn experts_plan_size(tokens: usize, top_k: usize, options: &ExpertsPlanOptions) -> usize {
    // SAFETY: the call takes numbers only.
    unsafe { sys::swy_experts_plan_size(tokens, top_k, &options.to_c()) }
}

/// Sorts pairs by expert and cuts the experts' products into tiles. `topk_ids` is
/// `[tokens, top_k]`. `memory` needs at least `experts_plan_size` elements.
pub fn plan_experts<'a>(
    topk_ids: Matrix<'_>,
    memory: &'a mut [i32],
    options: &ExpertsPlanOptions,
    pool: Pool<'_>,
) -> Result<ExpertsPlan<'a>, Error> {
    let mut raw = sys::swy_experts_plan { opaque: [0; 48] };
    let raw_in = sys::swy_experts_plan_inputs {
        topk_ids: topk_ids.raw,
        ..sys::SWY_EXPERTS_PLAN_INPUTS_INIT
    };
    let report = with_report(|report| {
        let raw_out = sys::swy_experts_plan_outputs {
            memory: memory.view(),
            plan: &mut raw,
            report,
            ..sys::SWY_EXPERTS_PLAN_OUTPUTS_INIT
        };
        // SAFETY: the views point into slices that are borrowed during the call. `memory`
        // is borrowed for the plan's life.
        pool.with(|pool| unsafe { sys::swy_plan_experts(&raw_in, &raw_out, &options.to_c(), pool) })
    })?;
    Ok(ExpertsPlan { raw, report, memory: PhantomData })
}

/// Options of `run_experts`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertsOptions {
    /// Options of the routed experts' activation.
    pub activate: ActivateOptions,
    /// Options of the weighted sum over a token's experts.
    pub combine: CombineOptions,
    /// The format of rows that the products of gate and up read. Tokens in another
    /// format are converted once.
    pub operands: RowFormat,
    /// The format of rows that the activation writes and the down product reads.
    /// `None` means `operands`.
    pub down_operands: Option<RowFormat>,
    /// The type of the gate and up products' output: f32, bf16 or f16.
    pub gate_up_type: Type,
    /// The type of the down products' output: f32, bf16 or f16.
    pub down_type: Type,
    /// If true, topk_weights scale an expert's input instead of its output.
    pub weights_on_input: bool,
    /// Options of the shared expert's activation.
    pub shared_activate: ActivateOptions,
}
impl Default for ExpertsOptions {
    fn default() -> Self {
        ExpertsOptions {
            activate: ActivateOptions::default(),
            combine: CombineOptions::default(),
            operands: RowFormat::default(),
            down_operands: None,
            gate_up_type: Type::F32,
            down_type: Type::F32,
            weights_on_input: false,
            shared_activate: ActivateOptions {
                layout: GateUpLayout::Concatenated,
                ..Default::default()
            },
        }
    }
}
impl ExpertsOptions {
    /// Passes these options to `call` in their C form.
    fn with<R>(&self, call: impl FnOnce(&sys::swy_experts_options) -> R) -> R {
        let down_operands = self.down_operands.map(RowFormat::to_c);
        call(&sys::swy_experts_options {
            size: sys::size_of::<sys::swy_experts_options>(),
            weights_on_input: self.weights_on_input.to_c(),
            activate: &self.activate.to_c(),
            combine: &self.combine.to_c(),
            shared_activate: &self.shared_activate.to_c(),
            operands: self.operands.to_c(),
            gate_up_type: self.gate_up_type.to_c(),
            down_type: self.down_type.to_c(),
            down_operands: down_operands.as_ref().map_or(null(), |format| format),
        })
    }
}

/// Returns the number of i32 elements of scratch for `workers` workers. With less
/// scratch, `run_experts` runs fewer workers. The number of workers of a pool is
/// `Pool::concurrency`.
pub fn experts_scratch_size(
    plan: &ExpertsPlan<'_>,
    options: &ExpertsOptions,
    workers: usize,
) -> usize {
    // SAFETY: `plan_experts` made the plan, and its memory is borrowed.
    options.with(|options| unsafe { sys::swy_experts_scratch_size(&plan.raw, options, workers) })
}

/// Returns a size of scratch that is enough for every plan of `tokens` tokens.
pub fn experts_scratch_size_of_any(
    tokens: usize,
    top_k: usize,
    shape: &ExpertsPlanOptions,
    options: &ExpertsOptions,
    workers: usize,
) -> usize {
    // SAFETY: the call takes numbers only.
    options.with(|options| unsafe {
        sys::swy_experts_scratch_size_of_any(tokens, top_k, &shape.to_c(), options, workers)
    })
}

/// Inputs of `run_experts`.
pub struct ExpertsInputs<'a> {
    /// The plan of the layer's work.
    pub plan: &'a ExpertsPlan<'a>,
    /// `[tokens, hidden]`: input of the experts.
    pub hidden: Rows<'a>,
    /// Optional: input of the shared expert, if it differs from `hidden`.
    pub shared_hidden: Rows<'a>,
    /// Optional `[num_experts, columns of the product]`: biases of the gate product.
    pub gate_bias: Matrix<'a>,
    /// Optional `[num_experts, intermediate]`, with `GateUpLayout::Split` only: biases of
    /// the up product.
    pub up_bias: Matrix<'a>,
    /// The inputs of the weighted sum. Make them with `CombineInputs::of_experts`, and
    /// add the layer's residual, norm and shared expert.
    pub combine: CombineInputs<'a>,
    /// Working memory of at least `experts_scratch_size` elements.
    pub scratch: &'a mut [i32],
}
impl<'a> ExpertsInputs<'a> {
    /// Makes inputs without biases. A shared expert reads `hidden`, too.
    pub fn new(
        plan: &'a ExpertsPlan<'a>,
        hidden: Rows<'a>,
        combine: CombineInputs<'a>,
        scratch: &'a mut [i32],
    ) -> Self {
        ExpertsInputs {
            plan,
            hidden,
            shared_hidden: Rows::default(),
            gate_bias: Matrix::default(),
            up_bias: Matrix::default(),
            combine,
            scratch,
        }
    }
}

/// A part of an expert's product, for one call of the GEMM. The GEMM computes `out[r, c]
/// = sum over i of rows[r, i] * weights[i, first_column + c]`.
pub struct ExpertTile<'a> {
    /// The product that the tile is a part of.
    pub product: ExpertProduct,
    /// The expert's number; `None` means the shared expert.
    pub expert: Option<usize>,
    /// The tile's first column in the output of the product.
    pub first_column: usize,
    /// The number of the worker that computes the tile, below the pool's `concurrency`.
    /// No two tiles have the same number at the same time.
    pub worker: usize,
    /// The product's input: `[m, hidden]`, or `[m, intermediate]` for `ExpertProduct::Down`.
    pub rows: Rows<'a>,
    /// The product's output: `[m, columns]`. The GEMM must write all elements.
    pub out: MatrixMut<'a>,
}
impl<'a> ExpertTile<'a> {
    /// Returns None if `raw.product` comes from a newer library.
    ///
    /// # Safety
    /// `raw` must be a tile that the library passed to the GEMM, and the GEMM's call must
    /// last for all of `'a`.
    unsafe fn from_raw(raw: &'a sys::swy_expert_tile) -> Option<Self> {
        let rows = &raw.rows;
        Some(ExpertTile {
            product: ExpertProduct::from_c(raw.product)?,
            expert: usize::try_from(raw.expert).ok(),
            first_column: raw.first_column,
            worker: raw.worker,
            // SAFETY: nothing writes to the rows during the GEMM's call, and no other
            // tile has this part of the output.
            rows: unsafe {
                Rows {
                    values: Matrix::from_raw(rows.values),
                    scales: Matrix::from_raw(rows.scales),
                    sums: Matrix::from_raw(rows.sums),
                }
            },
            out: unsafe { MatrixMut::from_raw(raw.out) },
        })
    }
    /// Returns the tile in its C form, for the library's own GEMM. The shared expert
    /// becomes -1. An expert's number that does not fit in i32 becomes i32::MAX, which the
    /// library refuses, because no weights have so many experts.
    pub(crate) fn to_raw(&mut self) -> sys::swy_expert_tile {
        sys::swy_expert_tile {
            product: self.product.to_c(),
            expert: self.expert.map_or(-1, |e| i32::try_from(e).unwrap_or(i32::MAX)),
            first_column: self.first_column,
            worker: self.worker,
            rows: self.rows.view(),
            out: self.out.raw,
        }
    }
}

struct Product<'a, F> {
    gemm: &'a F,
    error: Mutex<Option<Error>>, // the first error of `gemm`
}
unsafe extern "C" fn multiply<F>(
    context: *mut c_void,
    tile: *const sys::swy_expert_tile,
) -> sys::swy_status
where
    F: Fn(ExpertTile<'_>) -> Result<(), Error> + Sync,
{
    // SAFETY: `run_experts` made the context, and returns only after `multiply` returns.
    let product = unsafe { &*(context as *const Product<'_, F>) };
    // SAFETY: the library passes a tile that is valid during this call.
    let tile = unsafe { ExpertTile::from_raw(&*tile) };
    let run = || {
        let unknown = Error::new(Code::Internal, "RunExperts: gemm: the product is unknown");
        (product.gemm)(tile.ok_or(unknown)?)
    };
    let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        std::mem::forget(payload); // dropping the payload might panic, too
        Err(Error::new(Code::Internal, "RunExperts: gemm: panicked"))
    });
    let code = match result {
        Ok(()) => sys::SWY_OK,
        Err(error) => {
            let mut first = product.error.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
            sys::SWY_INTERNAL
        }
    };
    sys::swy_status { code, message: b"\0".as_ptr() as *const c_char }
}

/// Runs a layer's experts in one loop on the pool: gathers rows, calls `gemm` to multiply
/// them, applies the activation, calls `gemm` again, and sums up each token's rows as
/// `combine` does.
///
/// `gemm` computes a tile; several threads call it at the same time. If it returns an
/// error, `run_experts` returns this error. If it panics, `run_experts` returns an error,
/// too. Outputs are then unspecified. The bits of the layer's result do not depend on the
/// number of threads if each element that `gemm` computes depends on its row and its
/// column alone, and not on the number of rows or columns of a tile.
pub fn run_experts<F>(
    inputs: ExpertsInputs<'_>,
    outputs: CombineOutputs<'_>,
    options: &ExpertsOptions,
    gemm: F,
    pool: Pool<'_>,
) -> Result<Report, Error>
where
    F: Fn(ExpertTile<'_>) -> Result<(), Error> + Sync,
{
    let combine = raw_inputs(&inputs.combine, &outputs)?;
    let raw_in = sys::swy_experts_inputs {
        size: sys::size_of::<sys::swy_experts_inputs>(),
        plan: &inputs.plan.raw,
        hidden: inputs.hidden.view(),
        shared_hidden: inputs.shared_hidden.view(),
        gate_bias: inputs.gate_bias.raw,
        up_bias: inputs.up_bias.raw,
        combine: &combine,
        scratch: inputs.scratch.view(),
    };
    let product = Product { gemm: &gemm, error: Mutex::new(None) };
    let raw_gemm = sys::swy_expert_gemm {
        size: sys::size_of::<sys::swy_expert_gemm>(),
        run: Some(multiply::<F>),
        context: &product as *const Product<'_, F> as *mut c_void,
    };
    let result = with_report(|report| {
        let raw_out = outputs.raw(report);
        // SAFETY: the views point into slices that are borrowed during the call. Any
        // thread may call `gemm`, which is `Sync`.
        options.with(|options| {
            pool.with(|pool| unsafe {
                sys::swy_run_experts(&raw_in, &raw_out, options, &raw_gemm, pool)
            })
        })
    });
    match product.error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => result,
    }
}
