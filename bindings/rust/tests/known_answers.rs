// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Runs the test cases of the Metal kernels that the library follows, and cases with
//! answers that were worked out by hand, on every ISA of this machine.

use std::sync::Mutex;
use switchyard::*;

/// A lock that each test holds: a cap of the ISA applies to the whole process, so the
/// tests must not run at the same time.
static ISA: Mutex<()> = Mutex::new(());

fn on_every_isa(test: impl Fn()) {
    let _one_at_a_time = ISA.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    assert!(!runnable_isas().is_empty() && compiled_isas().len() >= runnable_isas().len());
    for isa in runnable_isas() {
        cap_isa(Some(isa.name)).unwrap();
        assert_eq!(active_isa(), Some(isa));
        test();
        assert_eq!(last_isa(), Some(isa));
    }
    cap_isa(None).unwrap();
    environment_isa().unwrap();
}

fn close(found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len());
    let largest = wanted.iter().fold(0.0f32, |a, b| a.max(b.abs()));
    for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() <= 3e-6 * largest, "[{}]: {} {}", i, found, wanted);
    }
}

#[test]
fn router_is_softmax_top_k() {
    let logits = [1.0f32, 3.0, 2.0, 2.0, 4.0, 1.0, 2.0, 1.0].map(f32::ln);
    on_every_isa(|| {
        let (mut ids, mut weights) = ([0u32; 4], [0.0f32; 4]);
        let inputs =
            RouteInputs { logits: Matrix::new(&logits, 2, 4).unwrap(), ..Default::default() };
        let outputs = RouteOutputs {
            topk_ids: MatrixMut::new(&mut ids, 2, 2).unwrap(),
            topk_weights: MatrixMut::new(&mut weights, 2, 2).unwrap(),
            ..Default::default()
        };
        let options = RouteOptions { renormalize: true, ..Default::default() };
        route_top_k(&inputs, outputs, &options, Pool::Serial).unwrap();
        assert_eq!(ids, [1, 2, 0, 2]);
        close(&weights, &[3.0 / 5.0, 2.0 / 5.0, 4.0 / 6.0, 2.0 / 6.0]);
    });
}

#[test]
fn a_record_is_replayed() {
    let logits = [1.0f32, 3.0, 2.0, 2.0, 4.0, 1.0, 2.0, 1.0].map(f32::ln);
    let options = RouteOptions::default();
    on_every_isa(|| {
        let (mut ids, mut weights, mut record) = ([0i32; 4], [0.0f32; 4], [0u8; 4]);
        let inputs =
            || RouteInputs { logits: Matrix::new(&logits, 2, 4).unwrap(), ..Default::default() };
        let outputs = RouteOutputs {
            topk_ids: MatrixMut::new(&mut ids, 2, 2).unwrap(),
            topk_weights: MatrixMut::new(&mut weights, 2, 2).unwrap(),
            record: MatrixMut::new(&mut record, 2, 2).unwrap(),
            ..Default::default()
        };
        let mask = [1u8, 0];
        let padded = RouteInputs { token_mask: Matrix::new(&mask, 2, 1).unwrap(), ..inputs() };
        route_top_k(&padded, outputs, &options, Pool::Serial).unwrap();
        assert_eq!((ids, record), ([1, 2, -1, -1], [1, 2, 255, 255]));

        let (mut again, mut weights_again) = ([0i32; 4], [0.0f32; 4]);
        let outputs = RouteOutputs {
            topk_ids: MatrixMut::new(&mut again, 2, 2).unwrap(),
            topk_weights: MatrixMut::new(&mut weights_again, 2, 2).unwrap(),
            ..Default::default()
        };
        let replay = RouteInputs { given_ids: Matrix::new(&record, 2, 2).unwrap(), ..inputs() };
        let report = route_top_k(&replay, outputs, &options, Pool::Serial).unwrap();
        assert_eq!((again, report.invalid_ids), (ids, 0));
        assert_eq!(weights_again.map(f32::to_bits), weights.map(f32::to_bits));
    });
}

#[test]
fn buckets_and_dispatch_arguments() {
    // Four tokens have two slots each, and the layer has three experts.
    let ids = [2i32, 0, 0, 1, 2, 0, 0, 1];
    let topk_ids = Matrix::new(&ids, 4, 2).unwrap();
    let inputs = || BucketInputs { topk_ids, ..Default::default() };
    on_every_isa(|| {
        let (mut tpe, mut table) = ([0; 3], [-7; 12]);
        let strided = StridedBuckets {
            tokens_per_expert: &mut tpe,
            ids: &mut table,
            row_stride: 4,
            ..Default::default()
        };
        let report =
            bucket_strided(inputs(), strided, &BucketOptions::default(), Pool::Serial).unwrap();
        assert_eq!((tpe, report.max_rows), ([4, 2, 2], 4));
        assert_eq!(table, [1, 2, 5, 6, 3, 7, -7, -7, 0, 4, -7, -7]);
        for (features, tiles) in [(768, 12), (2048, 32)] {
            let args = make_dispatch_args(report.max_rows, 3, features, &Default::default());
            assert_eq!(args.unwrap(), [1, tiles, 3]);
        }

        let (mut offsets, mut pairs, mut index) = ([0; 4], [0; 8], [0; 8]);
        let packed = PackedBuckets {
            tokens_per_expert: &mut tpe,
            offsets: &mut offsets,
            pairs: &mut pairs,
            row_index: MatrixMut::new(&mut index, 4, 2).unwrap(),
        };
        bucket_packed(inputs(), packed, &BucketOptions::default(), Pool::Serial).unwrap();
        assert_eq!((tpe, offsets), ([4, 2, 2], [0, 4, 6, 8]));
        assert_eq!((pairs, index), ([1, 2, 5, 6, 3, 7, 0, 4], [6, 0, 1, 4, 7, 2, 3, 5]));

        // Expert 1 is on another node, and 8 is the sentinel.
        let options = AlignedOptions {
            block_size: 3,
            fill_unused: true,
            allow_dropped: true,
            ..Default::default()
        };
        let size = bucket_aligned_size(8, 2, &options);
        let (mut padded, mut blocks) = (vec![0; size], vec![0; size / 3]);
        let aligned = AlignedBuckets {
            tokens_per_expert: &mut tpe[..2],
            offsets: &mut offsets[..3],
            pairs: &mut padded,
            block_experts: &mut blocks,
            ..Default::default()
        };
        let inputs =
            AlignedInputs { topk_ids, expert_map: Some(&[0, -1, 1]), ..Default::default() };
        bucket_aligned(inputs, aligned, &options, Pool::Serial).unwrap();
        assert_eq!((&tpe[..2], &offsets[..3]), (&[4, 2][..], &[0, 6, 9][..]));
        assert_eq!(
            (&padded[..9], &blocks[..3]),
            (&[1, 2, 5, 6, 8, 8, 0, 4, 8][..], &[0, 0, 1][..])
        );
        assert!(padded[9..].iter().all(|&pair| pair == 8));

        let (mut counts, mut ends, mut rows) = ([0; 2], [0; 3], [0; 8]);
        let maps = MapOutputs {
            pairs: MapRows {
                counts: &mut counts,
                offsets: &mut ends,
                rows: &mut rows,
                ..Default::default()
            },
            ..Default::default()
        };
        let options = MapOptions { experts_per_destination: 2, ..Default::default() };
        map_pairs(MapInputs { topk_ids, ..Default::default() }, maps, &options, Pool::Serial)
            .unwrap();
        assert_eq!((counts, ends, rows), ([6, 2], [0, 6, 8], [1, 2, 3, 5, 6, 7, 0, 4]));
    });
}

#[test]
fn replicas_take_turns() {
    on_every_isa(|| {
        let ids = [0i32, 1, 0, 2, 0, 1];
        let replicas = [0i32, 3, 1, -1, 2, -1];
        let (mut physical, mut tokens) = ([0i32; 6], [0i32; 3]);
        let inputs = ReplicaInputs {
            topk_ids: Matrix::new(&ids, 3, 2).unwrap().into(),
            replicas: Matrix::new(&replicas, 3, 2).unwrap().into(),
            replica_counts: &[2, 1, 1],
            ..Default::default()
        };
        let outputs = ReplicaOutputs {
            physical_ids: MatrixMut::new(&mut physical, 3, 2).unwrap().into(),
            tokens_per_expert: &mut tokens,
        };
        let options = ReplicaOptions { first_replica: 1, ..Default::default() };
        let report = map_replicas(inputs, outputs, &options, Pool::Serial).unwrap();
        assert_eq!((physical, tokens), ([3, 1, 0, 2, 3, 1], [3, 2, 1]));
        assert_eq!((report.max_rows, report.dropped), (3, 0));
    });
}

#[test]
fn counts_of_all_ranks_give_the_exchange_of_one() {
    let counts = [1i32, 2, 3, 4];
    let (mut received, mut ends, mut puts) = ([0i64; 2], [0i64; 3], [0i64; 2]);
    let outputs = CountsOutputs {
        recv_counts: &mut received,
        recv_offsets: &mut ends,
        put_offsets: &mut puts,
        ..Default::default()
    };
    let inputs = CountsInputs { counts: Matrix::new(&counts, 2, 2).unwrap().into() };
    let options = CountsOptions { rank: 1, row_elements: 10, ..Default::default() };
    let report = map_counts(&inputs, outputs, &options).unwrap();
    assert_eq!((received, ends, puts), ([20, 40], [0, 20, 60], [10, 20]));
    assert_eq!(report.max_rows, 6);
}

/// If e^x is 3, silu(x) is 3/4 ln 3.
const LN3: f32 = 1.098_612_3;

#[test]
fn activations_also_in_place() {
    on_every_isa(|| {
        let (mut gate, up) = ([LN3, 0.0, -LN3, LN3], [2.0f32, 7.0, 1.0, 4.0]);
        let wanted = [1.5 * LN3, 0.0, -0.25 * LN3, 3.0 * LN3];
        let mut out = [0.0f32; 4];
        let up = Matrix::new(&up, 2, 2).unwrap();
        let inputs = ActivateInputs {
            gate: Matrix::new(&gate, 2, 2).unwrap().into(),
            up,
            ..Default::default()
        };
        let rows = MatrixMut::new(&mut out, 2, 2).unwrap().into();
        activate(&inputs, rows, &ActivateOptions::default(), Pool::Serial).unwrap();
        close(&out, &wanted);
        let inputs = ActivateInputs { gate: Source::InPlace, up, ..Default::default() };
        let rows = MatrixMut::new(&mut gate, 2, 2).unwrap().into();
        activate(&inputs, rows, &ActivateOptions::default(), Pool::Serial).unwrap();
        assert_eq!(gate, out);
    });
}

#[test]
fn lists_say_which_rows_are_computed() {
    let ones = [1.0f32; 4];
    let matrix = Matrix::new(&ones, 4, 1).unwrap();
    on_every_isa(|| {
        let run = |offsets, tokens_per_expert| {
            let mut out = [9.0f32; 4];
            let inputs = ActivateInputs {
                gate: matrix.into(),
                up: matrix,
                offsets,
                tokens_per_expert,
                ..Default::default()
            };
            let options = ActivateOptions { activation: Activation::Relu, ..Default::default() };
            let rows = MatrixMut::new(&mut out, 4, 1).unwrap().into();
            activate(&inputs, rows, &options, Pool::Serial).unwrap();
            out
        };
        assert_eq!(run(None, None), [1.0; 4]);
        assert_eq!(run(Some(&[0, 2, 3]), None), [1.0, 1.0, 1.0, 9.0]);
        assert_eq!(run(None, Some(&[1, 0])), [1.0, 9.0, 9.0, 9.0]);
    });
}

#[test]
fn sums_with_shared_expert_residual_and_norm() {
    let rows = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let (weights, index) = ([0.5f32, 0.25, 2.0, 9.0], [2i32, 0, 1, -1]);
    let (shared, gate) = ([4.0f32, 8.0, 12.0, 16.0], [0.0f32, LN3]);
    let norm_weight = [1.0f32, 2.0];
    let wanted = [14.75f32, 27.5, 45.0, 60.0];
    on_every_isa(|| {
        let mut residual = [10.0f32, 20.0, 30.0, 40.0];
        let mut normed = [0.0f32; 4];
        let inputs = CombineInputs {
            residual: Source::InPlace,
            norm_weight: Matrix::new(&norm_weight, 1, 2).unwrap(),
            shared: SharedExpert {
                rows: Matrix::new(&shared, 2, 2).unwrap(),
                gate: Matrix::new(&gate, 2, 1).unwrap(),
                ..Default::default()
            },
            ..CombineInputs::new(
                Matrix::new(&rows, 3, 2).unwrap().into(),
                Matrix::new(&weights, 2, 2).unwrap(),
                RowIndex::Rows(Matrix::new(&index, 2, 2).unwrap()),
            )
        };
        let outputs = CombineOutputs {
            out: MatrixMut::new(&mut residual, 2, 2).unwrap(),
            normed: MatrixMut::new(&mut normed, 2, 2).unwrap().into(),
        };
        let options = CombineOptions { eps: 0.0, ..Default::default() };
        combine(&inputs, outputs, &options, Pool::Serial).unwrap();
        close(&residual, &wanted);
        for t in 0..2 {
            let (a, b) = (wanted[2 * t], wanted[2 * t + 1]);
            let scale = 1.0 / ((a * a + b * b) / 2.0).sqrt();
            close(&normed[2 * t..][..2], &[a * scale, b * scale * 2.0]);
        }

        // The rows are in the order of tokens, with two rows for each token. Each result
        // is the sum of two rows.
        let (ones, mut sums) = ([1.0f32; 2], [0.0f32; 2]);
        let inputs = CombineInputs::new(
            Matrix::new(&rows, 2, 2).unwrap().into(),
            Matrix::new(&ones, 1, 2).unwrap(),
            RowIndex::TokenOrder,
        );
        let out = MatrixMut::new(&mut sums, 1, 2).unwrap();
        let outputs = CombineOutputs { out, ..Default::default() };
        combine(&inputs, outputs, &CombineOptions::default(), Pool::Serial).unwrap();
        assert_eq!(sums, [4.0, 6.0]);
    });
}

#[test]
fn residuals_in_place_of_the_only_output() {
    let rows = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let (weights, residual) = ([1.0f32, 0.5, 2.0, -1.0], [9.0f32, -8.0, 7.0, 6.0]);
    let norm_weight = [1.0f32, 2.0];
    let inputs = |residual| CombineInputs {
        residual,
        norm_weight: Matrix::new(&norm_weight, 1, 2).unwrap(),
        ..CombineInputs::new(
            Matrix::new(&rows, 4, 2).unwrap().into(),
            Matrix::new(&weights, 2, 2).unwrap(),
            RowIndex::TokenOrder,
        )
    };
    let options = CombineOptions::default();
    on_every_isa(|| {
        let (mut apart, mut in_place) = ([0.0f32; 4], residual);
        let from = Matrix::new(&residual, 2, 2).unwrap().into();
        let normed = MatrixMut::new(&mut apart, 2, 2).unwrap().into();
        let outputs = CombineOutputs { normed, ..Default::default() };
        combine(&inputs(from), outputs, &options, Pool::Serial).unwrap();
        // `normed` holds the residual before the call.
        let normed = MatrixMut::new(&mut in_place, 2, 2).unwrap().into();
        let outputs = CombineOutputs { normed, ..Default::default() };
        combine(&inputs(Source::InPlace), outputs, &options, Pool::Serial).unwrap();
        assert_eq!(in_place, apart);
    });
}

#[test]
fn rows_quantised_and_scattered() {
    let from = [0.0f32, 1.0, -2.0, 4.0];
    on_every_isa(|| {
        let (mut codes, mut scales, mut sums) = ([0i8; 4], [0.0f32], [0i32]);
        let rows = RowsMut {
            values: MatrixMut::new(&mut codes, 1, 4).unwrap(),
            scales: MatrixMut::new(&mut scales, 1, 1).unwrap(),
            sums: MatrixMut::new(&mut sums, 1, 1).unwrap(),
        };
        let matrix = Matrix::new(&from, 1, 4).unwrap();
        quantize(&matrix.into(), rows, &QuantizeOptions::default(), Pool::Serial).unwrap();
        assert_eq!((codes, scales, sums), ([0, 32, -64, 127], [4.0 / 127.0], [95]));

        let mut halves = [F16(0); 4];
        let rows = MatrixMut::new(&mut halves, 1, 4).unwrap().into();
        quantize(&matrix.into(), rows, &QuantizeOptions::default(), Pool::Serial).unwrap();
        assert_eq!(halves, [F16(0), F16(0x3C00), F16(0xC000), F16(0x4400)]);

        let (index, mut back) = ([1i32, -1, 0], [9.0f32; 6]);
        let packed = Matrix::new(&from, 2, 2).unwrap();
        let rows = MatrixMut::new(&mut back, 3, 2).unwrap().into();
        let index = Matrix::new(&index, 3, 1).unwrap();
        scatter_rows(&packed.into(), index, rows, &Default::default(), Pool::Serial).unwrap();
        assert_eq!(back, [-2.0, 4.0, 0.0, 0.0, 0.0, 1.0]);
    });
}

#[test]
fn streams_mix_in_place() {
    on_every_isa(|| {
        let mut streams = [1.0f32, 2.0, 3.0, 4.0];
        let (block, post) = ([10.0f32, 20.0], [1.0f32, 0.5]);
        let (comb, pre) = ([1.0f32, 0.0, 0.5, 2.0], [1.0f32, 2.0]);
        let mut out = [0.0f32; 2];
        let inputs = HyperInputs {
            streams: Source::InPlace,
            block: Matrix::new(&block, 1, 2).unwrap(),
            post: Matrix::new(&post, 1, 2).unwrap(),
            comb: Matrix::new(&comb, 1, 4).unwrap(),
            pre: Matrix::new(&pre, 1, 2).unwrap(),
            ..Default::default()
        };
        let outputs = HyperOutputs {
            streams: MatrixMut::new(&mut streams, 2, 2).unwrap(),
            out: MatrixMut::new(&mut out, 1, 2).unwrap(),
            ..Default::default()
        };
        let options = HyperOptions { num_streams: 2, ..Default::default() };
        hyper_connect(&inputs, outputs, &options, Pool::Serial).unwrap();
        close(&streams, &[12.5, 24.0, 11.0, 18.0]);
        close(&out, &[34.5, 60.0]);
    });
}

#[test]
fn unknown_isas_are_errors() {
    assert_eq!(cap_isa(Some("none")).unwrap_err().code, Code::InvalidArgument);
}
