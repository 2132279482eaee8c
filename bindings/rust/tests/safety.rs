// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Tests that safe code cannot make the library read or write outside a slice.

use std::num::NonZeroUsize;
use std::ops::Range;
use switchyard::*;

fn message<T>(result: Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "",
        Err(error) => {
            assert_eq!(error.code, Code::InvalidArgument);
            assert!(error.to_string().starts_with(error.message));
            error.message
        }
    }
}

const SHORT: &str = "Matrix: the slice is shorter than rows * stride";
const STRIDE: &str = "Matrix: stride is smaller than cols";
const BLOCK: &str = "Matrix: cols or stride is no multiple of a block's values";

#[test]
fn views_do_not_exceed_their_slices() {
    let mut data = [0.0f32; 12];
    for (rows, cols, stride, wanted) in [
        (3, 4, 4, ""),
        (4, 3, 3, ""),
        (2, 4, 8, ""), // the slice ends with the last row's columns
        (2, 5, 8, SHORT),
        (3, 4, 5, SHORT),
        (4, 4, 4, SHORT),
        (1, 13, 13, SHORT),
        (0, 99, 99, ""),
        (usize::MAX, 0, 0, ""),
        (usize::MAX, 1, 1, SHORT),
        (2, 1, usize::MAX, SHORT),
        (3, 1, usize::MAX / 2 + 1, SHORT), // 2 * stride + 1 wraps around to 1
        (2, 4, 3, STRIDE),
    ] {
        assert_eq!(message(Matrix::strided(&data, rows, cols, stride)), wanted);
        assert_eq!(message(MatrixMut::strided(&mut data, rows, cols, stride)), wanted);
    }
    let blocks = [BlockQ8_0 { d: 0, qs: [0; 32] }; 4];
    assert_eq!(message(Matrix::new(&blocks, 2, 64)), "");
    assert_eq!(message(Matrix::new(&blocks, 2, 96)), SHORT);
    assert_eq!(message(Matrix::new(&blocks, 1, 33)), BLOCK);
    assert_eq!(message(Matrix::strided(&blocks, 2, 32, 33)), BLOCK);
    assert_eq!(message(Matrix::strided(&blocks, 1, 32, 33)), "");
}

#[test]
fn spans_are_checked_by_the_library() {
    let ids = [0i32, 1, 1, 0];
    let (mut tpe, mut offsets, mut pairs) = ([0; 2], [0; 3], [0; 3]);
    let inputs =
        || BucketInputs { topk_ids: Matrix::new(&ids, 2, 2).unwrap(), ..Default::default() };
    let too_few = PackedBuckets {
        tokens_per_expert: &mut tpe,
        offsets: &mut offsets,
        pairs: &mut pairs,
        ..Default::default()
    };
    let result = bucket_packed(inputs(), too_few, &BucketOptions::default(), Pool::Serial);
    let error = result.unwrap_err();
    assert_eq!(error.message, "BucketPacked: pairs: fewer than tokens * top_k elements");
    assert_eq!(error.details.as_str(), "got 3, needs at least 4");
    assert_eq!(error.to_string(), format!("{}: got 3, needs at least 4", error.message));
    assert_eq!((tpe, offsets), ([0; 2], [0; 3]));

    // The table's rows are too short for the busiest expert. The error has the stride
    // that is needed.
    let mut table = [77; 2];
    let strided = StridedBuckets {
        tokens_per_expert: &mut tpe,
        ids: &mut table,
        row_stride: 1,
        ..Default::default()
    };
    let result = bucket_strided(inputs(), strided, &BucketOptions::default(), Pool::Serial);
    let error = result.unwrap_err();
    assert_eq!(error.code, Code::FailedPrecondition);
    assert_eq!((error.report.row_stride, table), (2, [77; 2]));
}

#[test]
fn rows_that_do_not_exist_are_not_followed() {
    let (tokens, ids) = ([1.0f32, 2.0], [0i32, 0]);
    let mut rows = [7.0f32; 3];
    let inputs = GatherInputs {
        tokens: Matrix::new(&tokens, 2, 1).unwrap().into(),
        pairs: &[1, i32::MAX, -1],
        topk_ids: Matrix::new(&ids, 2, 1).unwrap(),
        ..Default::default()
    };
    let out = MatrixMut::new(&mut rows, 3, 1).unwrap().into();
    let error = gather_rows(&inputs, out, &GatherOptions::default(), Pool::Serial).unwrap_err();
    assert_eq!((error.code, error.report.invalid), (Code::FailedPrecondition, 2));
    assert_eq!(rows, [2.0, 0.0, 0.0]);
}

#[test]
fn nothing_is_in_place_of_no_output() {
    let ones = [1.0f32; 4];
    let matrix = Matrix::new(&ones, 2, 2).unwrap();
    let inputs = CombineInputs {
        residual: Source::InPlace,
        norm_weight: Matrix::new(&ones[..2], 1, 2).unwrap(),
        ..CombineInputs::new(Rows::default(), Matrix::default(), RowIndex::TokenOrder)
    };
    let run = |outputs| combine(&inputs, outputs, &CombineOptions::default(), Pool::Serial);
    assert_eq!(
        message(run(CombineOutputs::default())),
        "Combine: residual: in place, without out or normed"
    );
    // The call refuses an in-place residual in quantised rows.
    let (mut codes, mut scales) = ([3i8; 4], [3.0f32; 2]);
    let normed = RowsMut {
        values: MatrixMut::new(&mut codes, 2, 2).unwrap(),
        scales: MatrixMut::new(&mut scales, 2, 1).unwrap(),
        ..Default::default()
    };
    assert_eq!(
        message(run(CombineOutputs { normed, ..Default::default() })),
        "Combine: residual: has to be f32, bf16 or f16"
    );
    assert_eq!((codes, scales), ([3; 4], [3.0; 2]));

    let inputs = ActivateInputs { gate: Source::InPlace, up: matrix, ..Default::default() };
    let result = activate(&inputs, RowsMut::default(), &ActivateOptions::default(), Pool::Serial);
    assert_eq!(message(result), "Activate: gate: in place, without out");

    // Without outputs.streams, the call only reads the streams, so they cannot be in
    // place.
    let mut scales = [3.0f32; 2];
    let inputs = HyperInputs { streams: Source::InPlace, ..Default::default() };
    let outputs =
        HyperOutputs { scales: MatrixMut::new(&mut scales, 2, 1).unwrap(), ..Default::default() };
    let options = HyperOptions { num_streams: 1, ..Default::default() };
    let result = hyper_connect(&inputs, outputs, &options, Pool::Serial);
    assert_eq!(message(result), "HyperConnect: streams: in place, without outputs.streams");
    assert_eq!(scales, [3.0; 2]);
}

#[test]
fn empty_lists_are_not_left_out() {
    let none: Option<&[i32]> = Some(&[]);
    let matrix = Matrix::new(&[1.0f32; 4], 2, 2).unwrap();
    let mut out = [3.0f32; 4];
    let mut run = |offsets, tokens_per_expert| {
        let inputs = ActivateInputs {
            gate: matrix.into(),
            up: matrix,
            offsets,
            tokens_per_expert,
            ..Default::default()
        };
        let out = MatrixMut::new(&mut out, 2, 2).unwrap().into();
        message(activate(&inputs, out, &ActivateOptions::default(), Pool::Serial))
    };
    assert_eq!(run(none, None), "Activate: offsets: is empty");
    assert_eq!(run(None, none), "Activate: tokens_per_expert: is empty");
    assert_eq!(out, [3.0; 4]);

    let (mut tpe, mut offsets, mut pairs) = ([7; 2], [7; 3], [7; 4]);
    let inputs = AlignedInputs {
        topk_ids: Matrix::new(&[0i32, 1, 1, 0], 2, 2).unwrap(),
        expert_map: none,
        ..Default::default()
    };
    let buckets = AlignedBuckets {
        tokens_per_expert: &mut tpe,
        offsets: &mut offsets,
        pairs: &mut pairs,
        ..Default::default()
    };
    let result = bucket_aligned(inputs, buckets, &AlignedOptions::default(), Pool::Serial);
    assert_eq!(message(result), "BucketAligned: expert_map: is empty");
    assert_eq!((tpe, offsets, pairs), ([7; 2], [7; 3], [7; 4]));
}

/// An executor that panics in the middle of its work.
struct Panics;
// SAFETY: all bodies have ended when the panic unwinds.
unsafe impl Executor for Panics {
    fn concurrency(&self) -> usize {
        1
    }
    fn parallel_for(&self, _: usize, _: usize, body: Body<'_>) {
        body(0, 0..1);
        panic!("on purpose")
    }
}

fn route(pool: Pool<'_>, tokens: usize) -> Result<(Vec<i32>, Vec<f32>), Error> {
    let logits: Vec<f32> = (0..tokens * 16).map(|i| (i * 7 % 31) as f32).collect();
    let (mut ids, mut weights) = (vec![0; tokens * 2], vec![0.0; tokens * 2]);
    let inputs = RouteInputs { logits: Matrix::new(&logits, tokens, 16)?, ..Default::default() };
    let outputs = RouteOutputs {
        topk_ids: MatrixMut::new(&mut ids, tokens, 2)?,
        topk_weights: MatrixMut::new(&mut weights, tokens, 2)?,
        ..Default::default()
    };
    route_top_k(&inputs, outputs, &RouteOptions::default(), pool)?;
    Ok((ids, weights))
}

#[test]
fn panics_do_not_cross_the_library() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let error = route(Pool::Own(&Panics), 8).unwrap_err();
    std::panic::set_hook(hook);
    assert_eq!((error.code, error.message), (Code::Internal, "Executor: panicked"));
}

/// An executor that runs everything on the calling thread, and records the grain.
struct Forks {
    ns: Option<usize>,
    grain: std::sync::atomic::AtomicUsize,
}
// SAFETY: one thread runs all indices, as worker 0.
unsafe impl Executor for Forks {
    fn concurrency(&self) -> usize {
        2
    }
    fn parallel_for(&self, count: usize, grain: usize, body: Body<'_>) {
        self.grain.store(grain, std::sync::atomic::Ordering::Relaxed);
        body(0, 0..count);
    }
    fn fork_ns(&self) -> usize {
        self.ns.expect("on purpose")
    }
}

#[test]
fn the_grain_follows_from_the_cost_of_a_fork() {
    let grain = |ns| {
        let executor = Forks { ns, grain: Default::default() };
        route(Pool::Own(&executor), 5000).unwrap();
        executor.grain.into_inner()
    };
    let forty = grain(Some(40_000));
    assert_eq!(grain(Some(4_000)), forty / 10);
    // If fork_ns panics, the call does not fork.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let none = grain(None);
    std::panic::set_hook(hook);
    assert!(none > 1_000_000 * forty);
}

/// An executor that runs each index alone, the last first, on two threads.
struct Backwards;
// SAFETY: each thread takes the indices of one parity, so each index runs once. The
// scope waits for both threads.
unsafe impl Executor for Backwards {
    fn concurrency(&self) -> usize {
        2
    }
    fn parallel_for(&self, count: usize, grain: usize, body: Body<'_>) {
        assert!(grain > 0);
        let half = |worker: usize| {
            let indices: Range<usize> = 0..count;
            indices.rev().filter(|i| i % 2 == worker).for_each(|i| body(worker, i..i + 1))
        };
        std::thread::scope(|scope| {
            scope.spawn(|| half(1));
            half(0);
        });
    }
}

#[test]
fn pools_give_the_same() {
    let wanted = route(Pool::Serial, 5000).unwrap();
    assert_eq!(route(Pool::Own(&Backwards), 5000).unwrap(), wanted);
    for threads in 1..4 {
        let threads = ScopedThreads(NonZeroUsize::new(threads).unwrap());
        assert_eq!(route(Pool::Own(&threads), 5000).unwrap(), wanted);
    }
    // A build without TBB returns None.
    if let Some(tbb) = Tbb::new(Some(2)) {
        assert_eq!(route(Pool::Tbb(&tbb), 5000).unwrap(), wanted);
        assert!(Tbb::new(None).is_some());
    }
    assert!(Tbb::new(Some(0)).is_none());
    assert!(bucket_scratch_size(1 << 20, 8, Pool::Own(&Backwards)) > 0);
}

#[test]
fn scoped_threads_cover_each_index_once() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    for (threads, count, grain) in [(1, 7, 1), (3, 7, 1), (3, 7, 3), (4, 2, 1), (3, 0, 1)] {
        let seen: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
        let threads = ScopedThreads(NonZeroUsize::new(threads).unwrap());
        threads.parallel_for(count, grain, &|worker, range| {
            assert!(worker < threads.concurrency());
            for i in range {
                seen[i].fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(seen.iter().all(|times| times.load(Ordering::Relaxed) == 1));
    }
}
