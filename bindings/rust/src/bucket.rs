// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::{check, with_report};
use crate::values::Raw;
use crate::view::{not_empty, View};
use crate::{
    sys, AlignedBuckets, AlignedInputs, AlignedOptions, DispatchOptions, Error, Pool, Report,
};

/// Returns the number of i32 elements of scratch that `bucket_packed`, `bucket_strided`
/// and `bucket_aligned` need to use several threads, or 0 if one thread is best.
pub fn bucket_scratch_size(num_pairs: usize, num_experts: usize, pool: Pool<'_>) -> usize {
    // SAFETY: the call takes numbers, and a pool that is borrowed during the call.
    pool.with(|pool| unsafe { sys::swy_bucket_scratch_size(num_pairs, num_experts, pool) })
}

/// Returns the largest `offsets[num_experts]` that num_pairs pairs can give, or
/// `usize::MAX` if block_size is 0 or the result overflows.
pub fn bucket_aligned_size(
    num_pairs: usize,
    num_experts: usize,
    options: &AlignedOptions,
) -> usize {
    // SAFETY: the call takes numbers only.
    unsafe { sys::swy_bucket_aligned_size(num_pairs, num_experts, &options.to_c()) }
}

/// Sorts pairs by expert into dense lists that begin at multiples of block_size. vLLM and
/// SGLang call this step moe_align_block_size.
pub fn bucket_aligned(
    inputs: AlignedInputs<'_>,
    outputs: AlignedBuckets<'_>,
    options: &AlignedOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    not_empty(inputs.expert_map, "BucketAligned: expert_map: is empty")?;
    with_report(|report| {
        let (inputs, outputs) = (inputs.view(), outputs.raw(report));
        // SAFETY: the views point into slices that are borrowed during the call.
        pool.with(|pool| unsafe {
            sys::swy_bucket_aligned(&inputs, &outputs, &options.to_c(), pool)
        })
    })
}

/// Returns the numbers of threadgroups, in x, y and z, of an indirect dispatch over (pair
/// tiles, feature tiles, experts).
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
        args: args.as_mut_slice().view(),
    };
    // SAFETY: the view points to `args`, which outlives the call.
    let status = unsafe { sys::swy_make_dispatch_args(&raw_in, &raw_out, &options.to_c()) };
    check(status, Report::default()).map(|_| args)
}
