// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Tests `run_experts`: layers follow their formulas and have the same bits on any pool.
//! If the GEMM fails or panics, the call ends with an error.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use switchyard::*;

const TOKENS: usize = 9;
const TOP_K: usize = 2;
const PAIRS: usize = TOKENS * TOP_K;
const EXPERTS: usize = 4;
const HIDDEN: usize = 40;
const INTERMEDIATE: usize = 24;

fn random(count: usize, seed: usize) -> Vec<f32> {
    let value = |i: usize| ((i * 7919 + seed * 104729 + 17) % 2000) as f32 / 1000.0 - 1.0;
    (0..count).map(value).collect()
}

struct Data {
    ids: Vec<i32>,
    hidden: Vec<f32>,
    weights: Vec<f32>,
    residual: Vec<f32>,
    norm: Vec<f32>,
    shared_gate: Vec<f32>,
}
impl Data {
    fn new() -> Data {
        Data {
            // The third expert has no tokens.
            ids: (0..PAIRS).map(|p| [0, 1, 3, 0, 0, 1, 1][p % 7]).collect(),
            hidden: random(TOKENS * HIDDEN, 1),
            weights: random(PAIRS, 2),
            residual: random(TOKENS * HIDDEN, 3),
            norm: random(HIDDEN, 4),
            shared_gate: random(TOKENS, 5),
        }
    }
    fn topk_ids(&self) -> Matrix<'_> {
        Matrix::new(&self.ids, TOKENS, TOP_K).unwrap()
    }
    fn hidden(&self) -> Rows<'_> {
        Matrix::new(&self.hidden, TOKENS, HIDDEN).unwrap().into()
    }
    /// Returns the inputs of `combine`, for every run of the layer.
    fn sums(&self) -> CombineInputs<'_> {
        CombineInputs {
            residual: Source::InPlace,
            norm_weight: Matrix::new(&self.norm, 1, HIDDEN).unwrap(),
            shared: SharedExpert {
                gate: Matrix::new(&self.shared_gate, TOKENS, 1).unwrap(),
                ..Default::default()
            },
            ..CombineInputs::of_experts(Matrix::new(&self.weights, TOKENS, TOP_K).unwrap())
        }
    }
}

fn seed_of(product: ExpertProduct, expert: Option<usize>) -> usize {
    expert.map_or(0, |e| e + 1) * 10 + product as usize
}
/// The engine's GEMM. It generates the weights for each tile instead of storing them.
fn multiply(mut tile: ExpertTile<'_>) -> Result<(), Error> {
    let seed = seed_of(tile.product, tile.expert);
    let inner = tile.rows.values.cols();
    let weights = random((tile.first_column + tile.out.cols()) * inner, seed);
    assert_eq!(tile.rows.values.rows(), tile.out.rows());
    for r in 0..tile.out.rows() {
        let x: &[f32] = tile.rows.values.row(r);
        for (c, out) in tile.out.row_mut::<f32>(r).iter_mut().enumerate() {
            let column = &weights[(tile.first_column + c) * inner..][..inner];
            *out = x.iter().zip(column).map(|(&x, &w)| f64::from(x) * f64::from(w)).sum::<f64>()
                as f32;
        }
    }
    Ok(())
}

fn shape(workers: usize) -> ExpertsPlanOptions {
    ExpertsPlanOptions {
        num_experts: EXPERTS,
        hidden: HIDDEN,
        intermediate: INTERMEDIATE,
        shared_intermediate: INTERMEDIATE,
        workers,
        tile_columns: 8,
        least_cost: 0,
        ..Default::default()
    }
}
type Results = (Vec<f32>, Vec<f32>);

fn run<F>(workers: usize, pool: Pool<'_>, gemm: F) -> Result<Results, Error>
where
    F: Fn(ExpertTile<'_>) -> Result<(), Error> + Sync,
{
    let data = Data::new();
    let shape = shape(workers);
    let options = ExpertsOptions::default();
    let mut memory = vec![0; experts_plan_size(TOKENS, TOP_K, &shape)];
    let plan = plan_experts(data.topk_ids(), &mut memory, &shape, pool)?;
    assert_eq!((plan.report().max_rows, plan.report().dropped), (8, 0));
    let mut scratch = vec![0; experts_scratch_size(&plan, &options, pool.concurrency())];
    let (mut out, mut normed) = (data.residual.clone(), vec![0.0; TOKENS * HIDDEN]);
    let outputs = CombineOutputs {
        out: MatrixMut::new(&mut out, TOKENS, HIDDEN)?,
        normed: MatrixMut::new(&mut normed, TOKENS, HIDDEN)?.into(),
    };
    let options = ExpertsOptions { shared_activate: options.activate, ..options };
    let inputs = ExpertsInputs::new(&plan, data.hidden(), data.sums(), &mut scratch);
    run_experts(inputs, outputs, &options, gemm, pool)?;
    Ok((out, normed))
}

/// Computes the layer by its formulas.
fn by_hand() -> Results {
    let data = Data::new();
    let product = |product: ExpertProduct, expert: Option<usize>, x: &[f64], cols: usize| {
        let weights = random(cols * x.len(), seed_of(product, expert));
        let column = |w: &[f32]| x.iter().zip(w).map(|(x, &w)| x * f64::from(w)).sum();
        weights.chunks(x.len()).map(column).collect::<Vec<f64>>()
    };
    let experts = |expert, x: &[f64]| {
        let up = product(ExpertProduct::Up, expert, x, INTERMEDIATE);
        let gate = product(ExpertProduct::Gate, expert, x, INTERMEDIATE);
        let silu_mul = |(g, u): (f64, f64)| g / (1.0 + (-g).exp()) * u;
        let active: Vec<f64> = gate.into_iter().zip(up).map(silu_mul).collect();
        product(ExpertProduct::Down, expert, &active, HIDDEN)
    };
    let (mut out, mut normed) = (Vec::new(), Vec::new());
    for t in 0..TOKENS {
        let row = |values: &[f32]| -> Vec<f64> {
            values[t * HIDDEN..][..HIDDEN].iter().map(|&x| x.into()).collect()
        };
        let (x, mut sum) = (row(&data.hidden), row(&data.residual));
        let mut add = |weight: f64, y: Vec<f64>| {
            sum.iter_mut().zip(y).for_each(|(sum, y)| *sum += weight * y)
        };
        for pair in t * TOP_K..(t + 1) * TOP_K {
            add(data.weights[pair].into(), experts(Some(data.ids[pair] as usize), &x));
        }
        add(1.0 / (1.0 + f64::from(-data.shared_gate[t]).exp()), experts(None, &x));
        let squares: f64 = sum.iter().map(|x| x * x).sum();
        let scale = 1.0 / (squares / HIDDEN as f64).sqrt();
        normed.extend(sum.iter().zip(&data.norm).map(|(x, &w)| (x * scale) as f32 * w));
        out.extend(sum.iter().map(|&x| x as f32));
    }
    (out, normed)
}

#[test]
fn layers_are_their_formulas_and_their_bits_those_of_one_thread() {
    let wanted = run(1, Pool::Serial, multiply).unwrap();
    let (out, normed) = by_hand();
    for (found, wanted) in wanted.0.iter().chain(&wanted.1).zip(out.iter().chain(&normed)) {
        assert!((found - wanted).abs() < 1e-4, "{} {}", found, wanted);
    }
    let three = ScopedThreads(NonZeroUsize::new(3).unwrap());
    let tbb = Tbb::new(Some(2));
    let mut pools = vec![Pool::Serial, Pool::Own(&three)];
    pools.extend(tbb.as_ref().map(Pool::Tbb));
    for pool in pools {
        for workers in [1, 2, 7] {
            let tiles = AtomicUsize::new(0);
            let found = run(workers, pool, |tile| {
                assert!(tile.worker < pool.concurrency());
                tiles.fetch_add(1, Ordering::Relaxed);
                multiply(tile)
            });
            assert_eq!(found.unwrap(), wanted);
            // If there are many workers, columns are cut, too.
            assert!(workers < 7 || tiles.load(Ordering::Relaxed) > 4 * 3);
        }
    }
    assert_eq!((Pool::Serial.concurrency(), Pool::Own(&three).concurrency()), (1, 3));
}

#[test]
fn errors_of_a_product_come_back() {
    let three = ScopedThreads(NonZeroUsize::new(3).unwrap());
    for pool in [Pool::Serial, Pool::Own(&three)] {
        for product in [ExpertProduct::Gate, ExpertProduct::Up, ExpertProduct::Down] {
            for expert in [Some(0), Some(3), None] {
                let report = Report { skipped: 5, ..Default::default() };
                let wanted = Error { report, ..Error::new(Code::OutOfMemory, "on purpose") };
                let error = run(3, pool, |tile| {
                    if tile.product == product && tile.expert == expert {
                        return Err(wanted);
                    }
                    multiply(tile)
                });
                assert_eq!(error.unwrap_err(), wanted);
            }
        }
    }
}

#[test]
fn panics_of_a_product_do_not_cross_the_library() {
    let three = ScopedThreads(NonZeroUsize::new(3).unwrap());
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let mut errors = Vec::new();
    for pool in [Pool::Serial, Pool::Own(&three)] {
        let fails = |wrong: fn(&mut ExpertTile<'_>)| {
            run(3, pool, |mut tile| {
                wrong(&mut tile);
                multiply(tile)
            })
            .unwrap_err()
        };
        errors.push(fails(|_| panic!("on purpose")));
        // A wrong row or a wrong element type of a tile's view panics.
        errors.push(fails(|tile| {
            let _ = tile.out.row_mut::<f32>(tile.out.rows());
        }));
        errors.push(fails(|tile| {
            let _ = tile.out.row_mut::<i32>(0);
        }));
        errors.push(fails(|tile| {
            let _ = tile.rows.values.row::<Bf16>(0);
        }));
        errors.push(fails(|tile| {
            let _ = tile.rows.scales.row::<f32>(0);
        }));
    }
    std::panic::set_hook(hook);
    for error in errors {
        assert_eq!((error.code, error.message), (Code::Internal, "RunExperts: gemm: panicked"));
    }
}

#[test]
fn arguments_are_checked() {
    let data = Data::new();
    let shape = shape(1);
    assert_eq!(experts_plan_size(TOKENS, TOP_K, &Default::default()), usize::MAX);
    let size = experts_plan_size(TOKENS, TOP_K, &shape);
    let mut memory = vec![7; size];
    let result = plan_experts(data.topk_ids(), &mut memory[1..], &shape, Pool::Serial);
    let error = result.err().unwrap();
    assert_eq!(error.message, "PlanExperts: memory: is fewer than ExpertsPlanSize elements");
    assert!(memory.iter().all(|&x| x == 7));

    // With three experts, the id 3 of three pairs is outside [0, num_experts).
    let few = ExpertsPlanOptions { num_experts: 3, ..shape };
    let result = plan_experts(data.topk_ids(), &mut memory, &few, Pool::Serial);
    let error = result.err().unwrap();
    assert_eq!((error.code, error.report.dropped), (Code::FailedPrecondition, 3));
    let few = ExpertsPlanOptions { allow_dropped: true, ..few };
    let plan = plan_experts(data.topk_ids(), &mut memory, &few, Pool::Serial).unwrap();
    assert_eq!(plan.report().dropped, 3);

    let options = ExpertsOptions::default();
    let size = experts_scratch_size(&plan, &options, 1);
    assert!(experts_scratch_size(&plan, &options, 2) > size);
    let of_any = |shape| experts_scratch_size_of_any(TOKENS, TOP_K, shape, &options, 1);
    assert!(of_any(&few) >= size && of_any(&few) < usize::MAX);
    assert_eq!(of_any(&Default::default()), usize::MAX);
    let q8_1 = RowFormat { r#type: Type::Q8_1, has_sums: true, ..Default::default() };
    let mut scratch = vec![0; size];
    let mut refused = |options: ExpertsOptions, combine, short: usize| {
        let mut out = vec![0.0; TOKENS * HIDDEN];
        let outputs = CombineOutputs {
            out: MatrixMut::new(&mut out, TOKENS, HIDDEN).unwrap(),
            ..Default::default()
        };
        let inputs = ExpertsInputs::new(&plan, data.hidden(), combine, &mut scratch[short..]);
        let called = AtomicUsize::new(0);
        let gemm = |tile: ExpertTile<'_>| {
            called.fetch_add(1, Ordering::Relaxed);
            multiply(tile)
        };
        let error = run_experts(inputs, outputs, &options, gemm, Pool::Serial).unwrap_err();
        assert_eq!((error.code, called.into_inner()), (Code::InvalidArgument, 0));
        error.message
    };
    let sums = CombineInputs { norm_weight: Matrix::default(), ..data.sums() };
    assert_eq!(
        refused(options, sums, 1),
        "RunExperts: scratch: is fewer than ExpertsScratchSize elements"
    );
    assert_eq!(
        refused(options, CombineInputs { row_index: RowIndex::TokenOrder, ..sums }, 0),
        "RunExperts: combine: rows or row_index given, but this call computes them"
    );
    assert_eq!(
        refused(ExpertsOptions { operands: q8_1, ..options }, sums, 0),
        "RunExperts: options: operands: is not a format of quantize.h"
    );
    assert_eq!(
        refused(ExpertsOptions { down_operands: Some(q8_1), ..options }, sums, 0),
        "RunExperts: options: down_operands: is not a format of quantize.h"
    );
    let i8 = RowFormat { r#type: Type::I8, ..Default::default() };
    let narrow = ExpertsOptions { down_operands: Some(i8), ..options };
    assert!(experts_scratch_size(&plan, &narrow, 1) < size);
}

#[test]
fn rows_are_those_of_the_slice() {
    let mut data: Vec<i32> = (0..11).collect();
    let matrix = Matrix::strided(&data, 3, 3, 4).unwrap();
    assert_eq!((matrix.rows(), matrix.cols(), matrix.stride()), (3, 3, 4));
    assert_eq!(matrix.row::<i32>(2), [8, 9, 10]);
    assert_eq!(matrix.as_ptr() as *const i32, data.as_ptr());
    let mut matrix = MatrixMut::strided(&mut data, 3, 3, 4).unwrap();
    matrix.row_mut::<i32>(1).fill(-1);
    assert_eq!(data, [0, 1, 2, 3, -1, -1, -1, 7, 8, 9, 10]);
    let blocks = [BlockQ8_0 { d: 0, qs: [0; 32] }; 4];
    assert_eq!(Matrix::new(&blocks, 2, 64).unwrap().row::<BlockQ8_0>(1).len(), 2);
    let none: [f32; 0] = [];
    assert!(Matrix::new(&none, 3, 0).unwrap().row::<f32>(2).is_empty());
}
