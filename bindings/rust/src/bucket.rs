// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::check;
use crate::values::Raw;
use crate::view::{ints, ints_mut, longs_mut, optional_ints, tiles_mut, uints_mut};
use crate::{sys, Error, Matrix, MatrixMut, Pool, Report};
use crate::{AlignedOptions, BucketOptions, DispatchOptions, MapOptions, WorkListOptions};

/// Inputs of the bucket functions. Pair p is token * top_k + slot.
#[derive(Default)]
pub struct BucketInputs<'a> {
    /// `[tokens, top_k]`; i32, u32, i64.
    pub topk_ids: Matrix<'a>,
    /// Optional: `bucket_scratch_size` elements let several threads work.
    pub scratch: &'a mut [i32],
}
/// Expert e owns `pairs[offsets[e]..offsets[e + 1]]`.
#[derive(Default)]
pub struct PackedBuckets<'a> {
    /// `[num_experts]`.
    pub tokens_per_expert: &'a mut [i32],
    /// `[num_experts + 1]`.
    pub offsets: &'a mut [i32],
    /// At least `[tokens * top_k]`.
    pub pairs: &'a mut [i32],
    /// Optional i32 `[tokens, top_k]`: where each pair is, or -1.
    pub row_index: MatrixMut<'a>,
}
/// Expert e owns `ids[e * row_stride + s]` for s below `tokens_per_expert[e]`.
#[derive(Default)]
pub struct StridedBuckets<'a> {
    /// `[num_experts]`.
    pub tokens_per_expert: &'a mut [i32],
    /// The table.
    pub ids: &'a mut [i32],
    /// Elements from one row to the next; 0 takes the busiest expert's count, which
    /// the report says.
    pub row_stride: usize,
    /// Write 0 behind each row's pairs.
    pub zero_padding: bool,
}

fn bucket_inputs(inputs: BucketInputs<'_>) -> sys::swy_bucket_inputs {
    sys::swy_bucket_inputs {
        size: sys::size_of::<sys::swy_bucket_inputs>(),
        topk_ids: inputs.topk_ids.raw,
        scratch: ints_mut(inputs.scratch),
    }
}

/// i32 elements of scratch; 0 when one thread is best.
pub fn bucket_scratch_size(num_pairs: usize, num_experts: usize, pool: Pool<'_>) -> usize {
    // SAFETY: numbers, and a pool that is borrowed for as long.
    pool.with(|pool| unsafe { sys::swy_bucket_scratch_size(num_pairs, num_experts, pool) })
}

/// Sorts pairs to their experts, one dense list of each behind the other.
pub fn bucket_packed(
    inputs: BucketInputs<'_>,
    outputs: PackedBuckets<'_>,
    options: &BucketOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    let mut report = Report::raw();
    let raw_in = bucket_inputs(inputs);
    let raw_out = sys::swy_packed_buckets {
        size: sys::size_of::<sys::swy_packed_buckets>(),
        tokens_per_expert: ints_mut(outputs.tokens_per_expert),
        offsets: ints_mut(outputs.offsets),
        pairs: ints_mut(outputs.pairs),
        row_index: outputs.row_index.raw,
        report: &mut report,
    };
    // SAFETY: views of slices that are borrowed for as long.
    let status = pool
        .with(|pool| unsafe { sys::swy_bucket_packed(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::from_raw(&report))
}

/// Sorts pairs to their experts, in rows of a table.
pub fn bucket_strided(
    inputs: BucketInputs<'_>,
    outputs: StridedBuckets<'_>,
    options: &BucketOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    let mut report = Report::raw();
    let raw_in = bucket_inputs(inputs);
    let raw_out = sys::swy_strided_buckets {
        size: sys::size_of::<sys::swy_strided_buckets>(),
        zero_padding: outputs.zero_padding.into(),
        tokens_per_expert: ints_mut(outputs.tokens_per_expert),
        ids: ints_mut(outputs.ids),
        row_stride: outputs.row_stride,
        report: &mut report,
    };
    // SAFETY: views of slices that are borrowed for as long.
    let status = pool
        .with(|pool| unsafe { sys::swy_bucket_strided(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::from_raw(&report))
}

/// Inputs of `bucket_aligned`.
#[derive(Default)]
pub struct AlignedInputs<'a> {
    /// `[tokens, top_k]`; i32, u32, i64.
    pub topk_ids: Matrix<'a>,
    /// Optional: the expert of each id, or -1.
    pub expert_map: Option<&'a [i32]>,
    /// Optional: the same as in `BucketInputs`.
    pub scratch: &'a mut [i32],
}
/// Packed buckets that begin at multiples of block_size; between them lies the
/// sentinel tokens * top_k.
#[derive(Default)]
pub struct AlignedBuckets<'a> {
    /// `[num_experts]`.
    pub tokens_per_expert: &'a mut [i32],
    /// `[num_experts + 1]`.
    pub offsets: &'a mut [i32],
    /// At least `[bucket_aligned_size]`.
    pub pairs: &'a mut [i32],
    /// Optional i32 `[tokens, top_k]`: where each pair is, or -1.
    pub row_index: MatrixMut<'a>,
    /// Optional: whose each block is.
    pub block_experts: &'a mut [i32],
    /// Optional: the token of each row.
    pub row_tokens: &'a mut [i32],
    /// Optional `[num_experts]`: those that have pairs.
    pub active_experts: &'a mut [i32],
}

/// The largest `offsets[num_experts]` that so many pairs can lead to; `usize::MAX`
/// where block_size is 0 or this overflows.
pub fn bucket_aligned_size(
    num_pairs: usize,
    num_experts: usize,
    options: &AlignedOptions,
) -> usize {
    // SAFETY: numbers.
    unsafe { sys::swy_bucket_aligned_size(num_pairs, num_experts, &options.to_c()) }
}

/// Packed buckets in blocks: vLLM's and SGLang's moe_align_block_size.
pub fn bucket_aligned(
    inputs: AlignedInputs<'_>,
    outputs: AlignedBuckets<'_>,
    options: &AlignedOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    let mut report = Report::raw();
    let raw_in = sys::swy_aligned_inputs {
        size: sys::size_of::<sys::swy_aligned_inputs>(),
        topk_ids: inputs.topk_ids.raw,
        expert_map: optional_ints(inputs.expert_map, "BucketAligned: expert_map: is empty")?,
        scratch: ints_mut(inputs.scratch),
    };
    let raw_out = sys::swy_aligned_buckets {
        size: sys::size_of::<sys::swy_aligned_buckets>(),
        tokens_per_expert: ints_mut(outputs.tokens_per_expert),
        offsets: ints_mut(outputs.offsets),
        pairs: ints_mut(outputs.pairs),
        row_index: outputs.row_index.raw,
        block_experts: ints_mut(outputs.block_experts),
        row_tokens: ints_mut(outputs.row_tokens),
        active_experts: ints_mut(outputs.active_experts),
        report: &mut report,
    };
    // SAFETY: views of slices that are borrowed for as long.
    let status = pool
        .with(|pool| unsafe { sys::swy_bucket_aligned(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::from_raw(&report))
}

/// Threadgroups of an indirect dispatch over (pair tiles, feature tiles, experts).
pub fn make_dispatch_args(
    max_rows: usize,
    num_experts: usize,
    features: usize,
    options: &DispatchOptions,
) -> Result<[u32; 3], Error> {
    let mut args = [0; 3];
    let raw_in = sys::swy_dispatch_inputs {
        size: sys::size_of::<sys::swy_dispatch_inputs>(),
        max_rows,
        num_experts,
        features,
    };
    let raw_out = sys::swy_dispatch_outputs {
        size: sys::size_of::<sys::swy_dispatch_outputs>(),
        args: uints_mut(&mut args),
    };
    // SAFETY: a view of the array.
    let status = unsafe { sys::swy_make_dispatch_args(&raw_in, &raw_out, &options.to_c()) };
    check(status, Report::default()).map(|_| args)
}

/// Inputs of `map_pairs`.
#[derive(Default)]
pub struct MapInputs<'a> {
    /// `[tokens, top_k]`; i32, u32, i64.
    pub topk_ids: Matrix<'a>,
    /// Each expert's destination, or -1; empty with experts_per_destination.
    pub destinations: &'a [i32],
    /// Optional: the same as in `BucketInputs`, with destinations for experts.
    pub scratch: &'a mut [i32],
}
/// Rows in the order of their destinations: d gets
/// `rows[offsets[d]..offsets[d + 1]]`.
#[derive(Default)]
pub struct MapRows<'a> {
    /// `[num_destinations]`.
    pub counts: &'a mut [i32],
    /// `[num_destinations + 1]`.
    pub offsets: &'a mut [i32],
    /// At least so many as there may be.
    pub rows: &'a mut [i32],
    /// Optional: counts times row_elements.
    pub element_counts: &'a mut [i64],
    /// Optional: offsets times row_elements.
    pub element_offsets: &'a mut [i64],
}
/// Outputs of `map_pairs`.
#[derive(Default)]
pub struct MapOutputs<'a> {
    /// Each pair once; counts is always there.
    pub pairs: MapRows<'a>,
    /// Optional i32 `[tokens, top_k]`: where each pair is, or -1.
    pub pair_index: MatrixMut<'a>,
    /// Optional: each token once per destination.
    pub tokens: MapRows<'a>,
    /// Optional: where the pair's copy of its token is, or -1.
    pub copy_index: MatrixMut<'a>,
    /// Optional: the same for the first pair of each copy.
    pub return_index: MatrixMut<'a>,
}
fn map_rows(rows: MapRows<'_>) -> sys::swy_map_rows {
    sys::swy_map_rows {
        counts: ints_mut(rows.counts),
        offsets: ints_mut(rows.offsets),
        rows: ints_mut(rows.rows),
        element_counts: longs_mut(rows.element_counts),
        element_offsets: longs_mut(rows.element_offsets),
    }
}

/// Maps pairs to the destinations of their experts, and tokens to those of their
/// pairs.
pub fn map_pairs(
    inputs: MapInputs<'_>,
    outputs: MapOutputs<'_>,
    options: &MapOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    let mut report = Report::raw();
    let raw_in = sys::swy_map_inputs {
        size: sys::size_of::<sys::swy_map_inputs>(),
        topk_ids: inputs.topk_ids.raw,
        destinations: ints(inputs.destinations),
        scratch: ints_mut(inputs.scratch),
    };
    let raw_out = sys::swy_map_outputs {
        size: sys::size_of::<sys::swy_map_outputs>(),
        pairs: map_rows(outputs.pairs),
        pair_index: outputs.pair_index.raw,
        tokens: map_rows(outputs.tokens),
        copy_index: outputs.copy_index.raw,
        return_index: outputs.return_index.raw,
        report: &mut report,
    };
    // SAFETY: views of slices that are borrowed for as long.
    let status =
        pool.with(|pool| unsafe { sys::swy_map_pairs(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::from_raw(&report))
}

/// Rows `[first_row, first_row + rows)` of packed ones, all of one `expert`.
pub type WorkTile = sys::swy_work_tile;

/// How many tiles there may be for so many rows; `usize::MAX` where tile_rows is 0
/// or this overflows.
pub fn work_list_size(num_rows: usize, num_experts: usize, options: &WorkListOptions) -> usize {
    // SAFETY: numbers.
    unsafe { sys::swy_work_list_size(num_rows, num_experts, &options.to_c()) }
}

/// Each expert's rows cut to tiles, the largest first, for threads that claim them
/// in order. The report says how many; `tiles` has at least `work_list_size`. Without
/// `offsets` each expert's rows begin where the last one's end.
pub fn make_work_list(
    tokens_per_expert: &[i32],
    offsets: Option<&[i32]>,
    tiles: &mut [WorkTile],
    options: &WorkListOptions,
) -> Result<Report, Error> {
    let mut report = Report::raw();
    let raw_in = sys::swy_work_list_inputs {
        size: sys::size_of::<sys::swy_work_list_inputs>(),
        tokens_per_expert: ints(tokens_per_expert),
        offsets: optional_ints(offsets, "MakeWorkList: offsets: is empty")?,
    };
    let raw_out = sys::swy_work_list_outputs {
        size: sys::size_of::<sys::swy_work_list_outputs>(),
        tiles: tiles_mut(tiles),
        report: &mut report,
    };
    // SAFETY: views of slices that are borrowed for as long.
    let status = unsafe { sys::swy_make_work_list(&raw_in, &raw_out, &options.to_c()) };
    check(status, Report::from_raw(&report))
}
