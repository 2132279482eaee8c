// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Tests that products with packed and with stored weights follow their formulas, and
//! that layers with quantised weights have the same bits on any pool.

use std::num::NonZeroUsize;
use switchyard::*;

const FORMATS: [WeightFormat; 9] = [
    WeightFormat::Int8,
    WeightFormat::Q8_0,
    WeightFormat::Q4_0,
    WeightFormat::Mxfp4,
    WeightFormat::Q4K,
    WeightFormat::Q6K,
    WeightFormat::F32,
    WeightFormat::Bf16,
    WeightFormat::F16,
];
const EXPERTS: usize = 3;

/// Returns numbers in [-1, 1).
fn random(count: usize, seed: usize) -> Vec<f32> {
    let value = |i: usize| ((i * 7919 + seed * 104729 + 17) % 2000) as f32 / 1000.0 - 1.0;
    (0..count).map(value).collect()
}
fn message<T>(result: Result<T, Error>) -> &'static str {
    let error = result.err().unwrap();
    assert_eq!(error.code, Code::InvalidArgument);
    error.message
}
fn pack<'m>(
    weights: &ExpertWeights<'_>,
    floats: Matrix<'_>,
    memory: &'m mut Vec<u8>,
) -> Result<ExpertWeights<'m>, Error> {
    let size = packed_weights_size(weights);
    memory.resize(EXPERTS * size, 0xCD);
    pack_weights(
        &PackWeightsInputs { weights: *weights, floats },
        MatrixMut::new(memory, EXPERTS, size)?,
        &PackWeightsOptions::default(),
        Pool::Serial,
    )
}

#[test]
fn sizes_are_those_of_blocks() {
    let stored = |format, cols| expert_weights_size(&ExpertWeights::new(format, 5, cols));
    assert_eq!(stored(WeightFormat::Int8, 33), 5 * 33);
    assert_eq!(stored(WeightFormat::Q8_0, 64), 5 * 2 * 34);
    assert_eq!(stored(WeightFormat::Q4_0, 64), 5 * 2 * 18);
    assert_eq!(stored(WeightFormat::Q4_0, 33), usize::MAX);
    for format in FORMATS {
        let weights = ExpertWeights::new(format, 5, 256);
        let size = packed_weights_size(&weights);
        assert!(size % 64 == 0 && size < usize::MAX);
        let packed = ExpertWeights { layout: WeightLayout::Packed, ..weights };
        assert_eq!(expert_weights_size(&packed), size);
        assert_eq!(packed_weights_size(&ExpertWeights::new(format, 5, 0)), usize::MAX);
    }
}

#[test]
fn products_are_their_formula_packed_and_as_stored() {
    // The experts have 20 output columns in q4_0. Column 17 has a scale of 2, the others
    // have 1. Codes have an offset of 8.
    const COLUMNS: usize = 20;
    let code = |e: usize, r: usize, i: usize| ((e * 5 + r * 3 + i * 7) % 16) as u8;
    let mut bytes = Vec::new();
    for (e, r) in (0..EXPERTS).flat_map(|e| (0..COLUMNS).map(move |r| (e, r))) {
        bytes.extend([0x00, if r == 17 { 0x40 } else { 0x3C }]); // the scale in f16
        bytes.extend((0..16).map(|i| code(e, r, i) | code(e, r, i + 16) << 4));
    }
    let stored = ExpertWeights::stored(WeightFormat::Q4_0, COLUMNS, 32, &bytes).unwrap();
    assert_eq!(stored.data.rows(), EXPERTS);
    let mut memory = Vec::new();
    let packed = pack(&stored, Matrix::default(), &mut memory).unwrap();
    assert_eq!((packed.format, packed.layout), (WeightFormat::Q4_0, WeightLayout::Packed));
    assert_eq!((packed.rows, packed.cols, packed.data.rows()), (COLUMNS, 32, EXPERTS));

    let q = |row: usize, i: usize| ((row * 13 + i * 5) % 100) as i8 - 50;
    let rows: Vec<i8> = (0..64).map(|i| q(i / 32, i % 32)).collect();
    let scales = [0.5f32, 0.25];
    let multiply = |weights: &ExpertWeights<'_>, expert, first_column| {
        let mut out = vec![f32::NAN; 6];
        let mut tile = ExpertTile {
            product: ExpertProduct::Down,
            expert: Some(expert),
            first_column,
            worker: 0,
            rows: Rows {
                values: Matrix::new(&rows, 2, 32).unwrap(),
                scales: Matrix::new(&scales, 2, 1).unwrap(),
                ..Default::default()
            },
            out: MatrixMut::new(&mut out, 2, 3).unwrap(),
        };
        multiply_tile(weights, &mut tile).map(|()| out)
    };
    for (weights, first) in [(stored, 0), (stored, 15), (packed, 0), (packed, 16)] {
        for expert in 0..EXPERTS {
            let dot = |row, column| -> i32 {
                let weight = |k| i32::from(code(expert, column, k)) - 8;
                (0..32).map(|k| i32::from(q(row, k)) * weight(k)).sum()
            };
            for (i, found) in multiply(&weights, expert, first).unwrap().into_iter().enumerate() {
                let (row, column) = (i / 3, first + i % 3);
                let scale = if column == 17 { 2.0 } else { 1.0 };
                assert_eq!(found, dot(row, column) as f32 * scale * scales[row]);
            }
        }
    }
    assert!(message(multiply(&packed, 0, 15)).starts_with("MultiplyTile: tile.first_column: "));
}

/// A layer's weights as floats. The tests quantise them to two formats.
struct Floats {
    gate: Vec<f32>,
    up: Vec<f32>,
    down: Vec<f32>,
}
const HIDDEN: usize = 64;
const INTERMEDIATE: usize = 45; // not a multiple of a block
const TOKENS: usize = 7;
const TOP_K: usize = 2;

fn run(layer: &LayerWeights<'_>, workers: usize, pool: Pool<'_>) -> Result<Vec<f32>, Error> {
    let mut shape = ExpertsPlanOptions {
        num_experts: EXPERTS,
        hidden: HIDDEN,
        intermediate: INTERMEDIATE,
        workers,
        ..Default::default()
    };
    set_costs(layer.gate.format, &mut shape);
    shape.least_cost = 0;
    let options = ExpertsOptions {
        operands: RowFormat { r#type: Type::Q8_0, ..Default::default() },
        down_operands: Some(operands_of(layer.down.format)),
        ..Default::default()
    };
    let ids: Vec<i32> = (0..TOKENS * TOP_K).map(|p| [0, 1, 2, 0, 0, 2][p % 6]).collect();
    let weights = random(TOKENS * TOP_K, 5);
    let (hidden, mut out) = (random(TOKENS * HIDDEN, 6), vec![0.0; TOKENS * HIDDEN]);
    let mut memory = vec![0; experts_plan_size(TOKENS, TOP_K, &shape)];
    let ids = Matrix::new(&ids, TOKENS, TOP_K)?;
    let plan = plan_experts(ids, &mut memory, &shape, pool)?;
    let mut scratch = vec![0; experts_scratch_size(&plan, &options, pool.concurrency())];
    run_experts(
        ExpertsInputs::new(
            &plan,
            Matrix::new(&hidden, TOKENS, HIDDEN)?.into(),
            CombineInputs::of_experts(Matrix::new(&weights, TOKENS, TOP_K)?),
            &mut scratch,
        ),
        CombineOutputs { out: MatrixMut::new(&mut out, TOKENS, HIDDEN)?, ..Default::default() },
        &options,
        |mut tile| layer.multiply(&mut tile),
        pool,
    )?;
    Ok(out)
}
/// Computes the layer in double precision, without quantisation.
fn by_hand(floats: &Floats) -> Vec<f64> {
    let weights = random(TOKENS * TOP_K, 5);
    let hidden = random(TOKENS * HIDDEN, 6);
    let product = |x: &[f64], w: &[f32]| -> Vec<f64> {
        let column = |w: &[f32]| x.iter().zip(w).map(|(x, &w)| x * f64::from(w)).sum();
        w.chunks(x.len()).map(column).collect()
    };
    let mut out = vec![0.0; TOKENS * HIDDEN];
    for p in 0..TOKENS * TOP_K {
        let (t, e) = (p / TOP_K, [0, 1, 2, 0, 0, 2][p % 6]);
        let x: Vec<f64> = hidden[t * HIDDEN..][..HIDDEN].iter().map(|&x| x.into()).collect();
        let size = HIDDEN * INTERMEDIATE;
        let gate = product(&x, &floats.gate[e * size..][..size]);
        let up = product(&x, &floats.up[e * size..][..size]);
        let active: Vec<f64> =
            gate.iter().zip(up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
        let row = product(&active, &floats.down[e * size..][..size]);
        let add = |(out, y): (&mut f64, f64)| *out += f64::from(weights[p]) * y;
        out[t * HIDDEN..][..HIDDEN].iter_mut().zip(row).for_each(add);
    }
    out
}

#[test]
fn layers_are_close_to_floats_with_the_bits_of_one_thread() {
    let size = EXPERTS * HIDDEN * INTERMEDIATE;
    let floats = Floats { gate: random(size, 1), up: random(size, 2), down: random(size, 3) };
    let (mut gate, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new());
    let matrix = |x, cols| Matrix::new(x, size / cols, cols).unwrap();
    let wide = ExpertWeights::new(WeightFormat::Q8_0, INTERMEDIATE, HIDDEN);
    let narrow = ExpertWeights::new(WeightFormat::Int8, HIDDEN, INTERMEDIATE);
    let layer = LayerWeights {
        gate: pack(&wide, matrix(&floats.gate, HIDDEN), &mut gate).unwrap(),
        up: pack(&wide, matrix(&floats.up, HIDDEN), &mut up).unwrap(),
        down: pack(&narrow, matrix(&floats.down, INTERMEDIATE), &mut down).unwrap(),
        ..Default::default()
    };
    let found = run(&layer, 1, Pool::Serial).unwrap();
    let wanted = by_hand(&floats);
    let largest = wanted.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    for (&found, wanted) in found.iter().zip(wanted) {
        assert!((f64::from(found) - wanted).abs() < 0.02 * largest, "{} {}", found, wanted);
    }
    let three = ScopedThreads(NonZeroUsize::new(3).unwrap());
    let tbb = Tbb::new(Some(2));
    let mut pools = vec![Pool::Serial, Pool::Own(&three)];
    pools.extend(tbb.as_ref().map(Pool::Tbb));
    for pool in pools {
        for workers in [1, 3, 8] {
            assert_eq!(run(&layer, workers, pool).unwrap(), found);
        }
    }

    // The call refuses a layer without weights of the down product, and weights of a wrong size.
    let without = LayerWeights { down: ExpertWeights::default(), ..layer };
    assert_eq!(message(run(&without, 1, Pool::Serial)), "LayerWeights: down: not given");
    let swapped = LayerWeights { up: layer.down, ..layer };
    assert!(message(run(&swapped, 1, Pool::Serial)).starts_with("MultiplyTile: "));
}

#[test]
fn costs_and_operands_are_those_of_the_format() {
    for format in FORMATS {
        let mut options =
            ExpertsPlanOptions { hidden: 77, allow_dropped: true, ..Default::default() };
        let before = options;
        set_costs(format, &mut options);
        assert!(options.weight_cost < before.weight_cost && options.tile_columns != 0);
        assert_eq!((options.hidden, options.allow_dropped), (77, true));
        let is_f32 = operands_of(format) == RowFormat::default();
        assert_eq!(is_f32, format == WeightFormat::F32);
    }
    let of_row = RowFormat { r#type: Type::I8, ..Default::default() };
    assert_eq!(operands_of(WeightFormat::Int8), of_row);
    let of_32 = RowFormat { scale_columns: 32, ..of_row };
    assert_eq!(operands_of(WeightFormat::Q4_0), of_32);
}

#[test]
fn weights_are_checked() {
    let bytes = vec![0u8; 3 * 18];
    let stored = |rows, cols, bytes| ExpertWeights::stored(WeightFormat::Q4_0, rows, cols, bytes);
    let range = "ExpertWeights: rows or cols is out of range";
    assert_eq!(message(stored(1, 33, &bytes)), range);
    assert_eq!(message(stored(0, 32, &bytes)), range);
    assert_eq!(message(stored(usize::MAX, 32, &bytes)), range);
    assert_eq!(message(stored(2, 32, &bytes)), "ExpertWeights: the slice has a part of an expert");
    assert_eq!(stored(1, 32, &bytes).unwrap().data.rows(), 3);

    // The call refuses memory of another shape, and weights that are given twice.
    let weights = stored(1, 32, &bytes).unwrap();
    let size = packed_weights_size(&weights);
    let mut memory = vec![7u8; 4 * size];
    let inputs = PackWeightsInputs { weights, ..Default::default() };
    let mut packed = |rows, cols| {
        let memory = MatrixMut::new(&mut memory, rows, cols).unwrap();
        let result = pack_weights(&inputs, memory, &PackWeightsOptions::default(), Pool::Serial);
        message(result.map(drop))
    };
    assert_eq!(packed(3, size - 1), "PackWeights: memory: is not [num_experts, PackedWeightsSize]");
    assert_eq!(packed(4, size), "PackWeights: memory: is not [num_experts, PackedWeightsSize]");
    assert!(memory.iter().all(|&x| x == 7));
    let result = pack(&weights, Matrix::new(&[1.0f32; 96], 3, 32).unwrap(), &mut memory);
    assert_eq!(message(result), "PackWeights: weights.data: give either weights.data or floats");

    // The library refuses experts, columns and rows outside the weights, and reads
    // none of them.
    let rows = [BlockQ8_0 { d: 0x3C00, qs: [1; 32] }; 2];
    let multiply = |weights: &ExpertWeights<'_>, expert, first_column, cols: usize| {
        let mut out = vec![7.0f32; cols];
        let mut tile = ExpertTile {
            product: ExpertProduct::Down,
            expert,
            first_column,
            worker: 0,
            rows: Matrix::new(&rows, 1, 32).unwrap().into(),
            out: MatrixMut::new(&mut out, 1, cols).unwrap(),
        };
        let result = multiply_tile(weights, &mut tile);
        assert!(result.is_ok() || out.iter().all(|&x| x == 7.0));
        result
    };
    multiply(&weights, Some(2), 0, 1).unwrap();
    for expert in [3, usize::MAX, i32::MAX as usize] {
        let result = multiply(&weights, Some(expert), 0, 1);
        assert_eq!(message(result), "MultiplyTile: tile.expert: is not one of weights");
    }
    let shared = multiply(&weights, None, 0, 1);
    assert!(message(shared).starts_with("MultiplyTile: weights.data: needs exactly one expert"));
    assert!(message(multiply(&weights, Some(0), 0, 2)).starts_with("MultiplyTile: tile"));
    assert!(message(multiply(&weights, Some(0), usize::MAX, 1)).starts_with("MultiplyTile: tile"));
    let long = ExpertWeights { cols: 64, ..weights };
    assert!(message(multiply(&long, Some(0), 0, 1)).starts_with("MultiplyTile: weights.data"));
    let floats = [1.0f32; 64];
    let data = Matrix::new(&floats, 3, 18).unwrap();
    let wrong = ExpertWeights { data, ..weights };
    assert!(message(multiply(&wrong, Some(0), 0, 1)).starts_with("MultiplyTile: weights.data"));
    message(multiply(&ExpertWeights::default(), Some(0), 0, 1));
}
