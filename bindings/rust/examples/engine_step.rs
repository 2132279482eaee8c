// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Runs one MoE block as an engine does: it routes, plans, and runs the experts with
//! the residual and the next layer's norm. Copy `MoeBlock`, and put your GEMM into
//! `Weights::multiply`.
//!
//! `cargo run --release --example engine_step [tokens]`

use std::time::Instant;
use switchyard::*;

const HIDDEN: usize = 256;
const INTERMEDIATE: usize = 192;
const EXPERTS: usize = 32;
const TOP_K: usize = 4;

/// The weights of a layer. The vectors of gate, up and down have the experts' matrices
/// one after the other.
struct Weights {
    router: Vec<f32>, // [HIDDEN, EXPERTS]
    gate: Vec<f32>,   // EXPERTS of [HIDDEN, INTERMEDIATE]
    up: Vec<f32>,     // EXPERTS of [HIDDEN, INTERMEDIATE]
    down: Vec<f32>,   // EXPERTS of [INTERMEDIATE, HIDDEN]
    norm: Vec<f32>,   // [HIDDEN]
}

/// Computes out = x * weights, for columns [first, first + out.len()) of `weights`. A row
/// of the weights has `cols` columns.
fn multiply_row(x: &[f32], weights: &[f32], cols: usize, first: usize, out: &mut [f32]) {
    out.fill(0.0);
    for (x, row) in x.iter().zip(weights.chunks_exact(cols)) {
        out.iter_mut().zip(&row[first..]).for_each(|(out, w)| *out += x * w);
    }
}

impl Weights {
    fn multiply(&self, mut tile: ExpertTile<'_>) -> Result<(), Error> {
        let (weights, cols) = match tile.product {
            ExpertProduct::Gate => (&self.gate, INTERMEDIATE),
            ExpertProduct::Up => (&self.up, INTERMEDIATE),
            ExpertProduct::Down => (&self.down, HIDDEN),
            _ => return Err(Error::new(Code::Internal, "multiply: no such product")),
        };
        let expert = tile.expert.unwrap_or(0); // the layer has no shared expert
        let weights = &weights[expert * HIDDEN * INTERMEDIATE..][..HIDDEN * INTERMEDIATE];
        for r in 0..tile.out.rows() {
            let x = tile.rows.values.row(r);
            multiply_row(x, weights, cols, tile.first_column, tile.out.row_mut(r));
        }
        Ok(())
    }
}

/// The options of a block, and memory that all its calls use.
struct MoeBlock {
    route: RouteOptions,
    shape: ExpertsPlanOptions,
    experts: ExpertsOptions,
    logits: Vec<f32>,
    topk_ids: Vec<i32>,
    topk_weights: Vec<f32>,
    plan: Vec<i32>,
    scratch: Vec<i32>,
}
impl MoeBlock {
    fn new(pool: Pool<'_>) -> Result<MoeBlock, Error> {
        // If you have a checkpoint, pass its config.json to Preset::from_json
        // instead.
        let config = ModelConfig {
            num_experts: Some(EXPERTS as u32),
            num_experts_per_tok: Some(TOP_K as u32),
            norm_topk_prob: Some(true),
            rms_norm_eps: Some(1e-6),
            ..Default::default()
        };
        let preset = Preset::configured("qwen3_moe", &config)?;
        Ok(MoeBlock {
            route: preset.route,
            shape: ExpertsPlanOptions {
                num_experts: EXPERTS,
                hidden: HIDDEN,
                intermediate: INTERMEDIATE,
                workers: pool.concurrency(),
                ..Default::default()
            },
            experts: ExpertsOptions {
                // The preset has the layout of checkpoints, with gate and up in one
                // matrix. `Weights` has two matrices.
                activate: ActivateOptions { layout: GateUpLayout::Split, ..preset.activate },
                combine: preset.combine,
                ..Default::default()
            },
            logits: Vec::new(),
            topk_ids: Vec::new(),
            topk_weights: Vec::new(),
            plan: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// Computes `residual += experts(hidden)`, and `normed`, the norm of the new
    /// residual, which the next layer reads.
    fn run(
        &mut self,
        weights: &Weights,
        hidden: &[f32],
        residual: &mut [f32],
        normed: &mut [f32],
        pool: Pool<'_>,
    ) -> Result<(), Error> {
        let tokens = hidden.len() / HIDDEN;
        self.logits.resize(tokens * EXPERTS, 0.0);
        self.topk_ids.resize(tokens * TOP_K, 0);
        self.topk_weights.resize(tokens * TOP_K, 0.0);
        for (x, logits) in hidden.chunks(HIDDEN).zip(self.logits.chunks_mut(EXPERTS)) {
            multiply_row(x, &weights.router, EXPERTS, 0, logits);
        }
        route_top_k(
            &RouteInputs {
                logits: Matrix::new(&self.logits, tokens, EXPERTS)?,
                ..Default::default()
            },
            RouteOutputs {
                topk_ids: MatrixMut::new(&mut self.topk_ids, tokens, TOP_K)?,
                topk_weights: MatrixMut::new(&mut self.topk_weights, tokens, TOP_K)?,
                ..Default::default()
            },
            &self.route,
            pool,
        )?;

        self.plan.resize(experts_plan_size(tokens, TOP_K, &self.shape), 0);
        let topk_ids = Matrix::new(&self.topk_ids, tokens, TOP_K)?;
        let plan = plan_experts(topk_ids, &mut self.plan, &self.shape, pool)?;
        self.scratch.resize(experts_scratch_size(&plan, &self.experts, pool.concurrency()), 0);
        let combine = CombineInputs {
            residual: Source::InPlace,
            norm_weight: Matrix::new(&weights.norm, 1, HIDDEN)?,
            ..CombineInputs::of_experts(Matrix::new(&self.topk_weights, tokens, TOP_K)?)
        };
        let rows = Matrix::new(hidden, tokens, HIDDEN)?.into();
        run_experts(
            ExpertsInputs::new(&plan, rows, combine, &mut self.scratch),
            CombineOutputs {
                out: MatrixMut::new(residual, tokens, HIDDEN)?,
                normed: MatrixMut::new(normed, tokens, HIDDEN)?.into(),
            },
            &self.experts,
            |tile| weights.multiply(tile),
            pool,
        )?;
        Ok(())
    }
}

/// Returns numbers in [-1, 1), multiplied by `scale`.
fn random(count: usize, scale: f32, seed: &mut u64) -> Vec<f32> {
    let mut next = || {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((*seed >> 40) as f32 / (1 << 23) as f32 - 1.0) * scale
    };
    (0..count).map(|_| next()).collect()
}

/// Computes the block for one token in double precision, without the library. Returns
/// the values that the block adds to the residual.
fn naive(weights: &Weights, hidden: &[f32]) -> Vec<f64> {
    let product = |x: &[f64], w: &[f32], cols: usize| -> Vec<f64> {
        let term = |i: usize, j: usize| x[i] * f64::from(w[i * cols + j]);
        (0..cols).map(|j| (0..x.len()).map(|i| term(i, j)).sum()).collect()
    };
    let x: Vec<f64> = hidden.iter().map(|&x| x.into()).collect();
    let logits = product(&x, &weights.router, EXPERTS);
    let mut best: Vec<usize> = (0..EXPERTS).collect();
    best.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    let sum: f64 = best[..TOP_K].iter().map(|&e| logits[e].exp()).sum();
    let mut out = vec![0.0; HIDDEN];
    for &e in &best[..TOP_K] {
        let size = HIDDEN * INTERMEDIATE;
        let gate = product(&x, &weights.gate[e * size..][..size], INTERMEDIATE);
        let up = product(&x, &weights.up[e * size..][..size], INTERMEDIATE);
        let hot: Vec<f64> = gate.iter().zip(&up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
        let down = product(&hot, &weights.down[e * size..][..size], HIDDEN);
        let weight = logits[e].exp() / sum;
        out.iter_mut().zip(&down).for_each(|(out, down)| *out += weight * down);
    }
    out
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tokens: usize = std::env::args().nth(1).map_or(Ok(64), |tokens| tokens.parse())?;
    let mut seed = 1;
    let size = EXPERTS * HIDDEN * INTERMEDIATE;
    let weights = Weights {
        router: random(HIDDEN * EXPERTS, 0.2, &mut seed),
        gate: random(size, 0.1, &mut seed),
        up: random(size, 0.1, &mut seed),
        down: random(size, 0.1, &mut seed),
        norm: random(HIDDEN, 1.0, &mut seed),
    };
    let hidden = random(tokens * HIDDEN, 1.0, &mut seed);
    let mut residual = random(tokens * HIDDEN, 1.0, &mut seed);
    let before = residual.clone();
    let mut normed = vec![0.0; tokens * HIDDEN];

    let tbb = Tbb::new(None);
    let pool = tbb.as_ref().map_or(Pool::Serial, Pool::Tbb);
    let mut block = MoeBlock::new(pool)?;
    let started = Instant::now();
    block.run(&weights, &hidden, &mut residual, &mut normed, pool)?;
    let took = started.elapsed();

    let mut worst = 0.0f64;
    for t in 0..tokens {
        let range = t * HIDDEN..(t + 1) * HIDDEN;
        let sum = naive(&weights, &hidden[range.clone()]);
        for (i, sum) in range.zip(sum) {
            let off = (f64::from(residual[i]) - f64::from(before[i]) - sum).abs();
            if off.is_nan() || off > worst {
                worst = off;
            }
        }
    }
    if worst.is_nan() || worst >= 1e-5 {
        return Err(format!("off by {:e}", worst).into());
    }
    let isa = last_isa().map_or("none", |isa| isa.name);
    println!("{} tokens in {:?} on {}, within {:e} of double precision", tokens, took, isa, worst);
    Ok(())
}
