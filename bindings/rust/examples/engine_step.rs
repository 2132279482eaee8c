// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! One MoE block as an engine runs it: route, bucket, gather, GEMMs, activation,
//! GEMM, combine with residual and the next layer's norm. `MoeBlock` is what to
//! copy; `gemm` is where your own goes.
//!
//! `cargo run --release --example engine_step [tokens]`

use std::time::Instant;
use switchyard::*;

const HIDDEN: usize = 256;
const INTERMEDIATE: usize = 192;
const EXPERTS: usize = 32;
const TOP_K: usize = 4;

/// Weights of a layer, each expert's behind the other's.
struct Weights {
    router: Vec<f32>, // [HIDDEN, EXPERTS]
    gate: Vec<f32>,   // EXPERTS of [HIDDEN, INTERMEDIATE]
    up: Vec<f32>,     // the same
    down: Vec<f32>,   // EXPERTS of [INTERMEDIATE, HIDDEN]
    norm: Vec<f32>,   // [HIDDEN]
}

/// c = a * b, of [rows, inner] and [inner, cols].
fn gemm(a: &[f32], b: &[f32], c: &mut [f32], inner: usize, cols: usize) {
    for (a, c) in a.chunks_exact(inner).zip(c.chunks_exact_mut(cols)) {
        c.fill(0.0);
        for (a, b) in a.iter().zip(b.chunks_exact(cols)) {
            c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
        }
    }
}

/// Memory of a block, for up to `tokens`, which calls reuse.
struct MoeBlock {
    route: RouteOptions,
    logits: Vec<f32>,
    topk_ids: Vec<i32>,
    topk_weights: Vec<f32>,
    tokens_per_expert: Vec<i32>,
    offsets: Vec<i32>,
    pairs: Vec<i32>,
    row_index: Vec<i32>,
    rows: Vec<f32>, // in the order of experts
    gate: Vec<f32>,
    up: Vec<f32>,
    down: Vec<f32>,
}
impl MoeBlock {
    fn new(tokens: usize) -> Result<MoeBlock, Error> {
        let pairs = tokens * TOP_K;
        // An engine that has a checkpoint passes its config.json to Preset::from_json.
        let config = ModelConfig {
            num_experts: Some(EXPERTS as u32),
            num_experts_per_tok: Some(TOP_K as u32),
            norm_topk_prob: Some(true),
            rms_norm_eps: Some(1e-6),
            ..Default::default()
        };
        Ok(MoeBlock {
            route: Preset::configured("qwen3_moe", &config)?.route,
            logits: vec![0.0; tokens * EXPERTS],
            topk_ids: vec![0; pairs],
            topk_weights: vec![0.0; pairs],
            tokens_per_expert: vec![0; EXPERTS],
            offsets: vec![0; EXPERTS + 1],
            pairs: vec![0; pairs],
            row_index: vec![0; pairs],
            rows: vec![0.0; pairs * HIDDEN],
            gate: vec![0.0; pairs * INTERMEDIATE],
            up: vec![0.0; pairs * INTERMEDIATE],
            down: vec![0.0; pairs * HIDDEN],
        })
    }

    /// `residual += experts(hidden)`, and `normed` is what the next layer reads.
    fn run(
        &mut self,
        weights: &Weights,
        hidden: &[f32],
        residual: &mut [f32],
        normed: &mut [f32],
        pool: Pool<'_>,
    ) -> Result<(), Error> {
        let tokens = hidden.len() / HIDDEN;
        let num_rows = tokens * TOP_K;
        gemm(hidden, &weights.router, &mut self.logits[..tokens * EXPERTS], HIDDEN, EXPERTS);
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

        bucket_packed(
            BucketInputs {
                topk_ids: Matrix::new(&self.topk_ids, tokens, TOP_K)?,
                ..Default::default()
            },
            PackedBuckets {
                tokens_per_expert: &mut self.tokens_per_expert,
                offsets: &mut self.offsets,
                pairs: &mut self.pairs[..num_rows],
                row_index: MatrixMut::new(&mut self.row_index, tokens, TOP_K)?,
            },
            &BucketOptions::default(),
            pool,
        )?;
        gather_rows(
            &GatherInputs {
                tokens: Matrix::new(hidden, tokens, HIDDEN)?.into(),
                pairs: &self.pairs[..num_rows],
                topk_ids: Matrix::new(&self.topk_ids, tokens, TOP_K)?,
                ..Default::default()
            },
            MatrixMut::new(&mut self.rows, num_rows, HIDDEN)?.into(),
            &GatherOptions::default(),
            pool,
        )?;

        // Each expert's rows are one dense matrix.
        let of = |e: usize, offsets: &[i32]| offsets[e] as usize..offsets[e + 1] as usize;
        let part = |rows: &std::ops::Range<usize>, cols: usize| rows.start * cols..rows.end * cols;
        for e in 0..EXPERTS {
            let rows = of(e, &self.offsets);
            let (a, b) = (part(&rows, HIDDEN), part(&(e..e + 1), HIDDEN * INTERMEDIATE));
            let c = part(&rows, INTERMEDIATE);
            let a = &self.rows[a];
            gemm(a, &weights.gate[b.clone()], &mut self.gate[c.clone()], HIDDEN, INTERMEDIATE);
            gemm(a, &weights.up[b], &mut self.up[c], HIDDEN, INTERMEDIATE);
        }
        activate(
            &ActivateInputs {
                gate: Source::InPlace,
                up: Matrix::new(&self.up, num_rows, INTERMEDIATE)?,
                ..Default::default()
            },
            MatrixMut::new(&mut self.gate, num_rows, INTERMEDIATE)?.into(),
            &ActivateOptions { activation: Activation::Silu, ..Default::default() },
            pool,
        )?;
        for e in 0..EXPERTS {
            let rows = of(e, &self.offsets);
            let (a, b) = (part(&rows, INTERMEDIATE), part(&(e..e + 1), HIDDEN * INTERMEDIATE));
            let c = part(&rows, HIDDEN);
            gemm(&self.gate[a], &weights.down[b], &mut self.down[c], INTERMEDIATE, HIDDEN);
        }

        combine(
            &CombineInputs {
                residual: Source::InPlace,
                norm_weight: Matrix::new(&weights.norm, 1, HIDDEN)?,
                ..CombineInputs::new(
                    Matrix::new(&self.down, num_rows, HIDDEN)?.into(),
                    Matrix::new(&self.topk_weights, tokens, TOP_K)?,
                    RowIndex::Rows(Matrix::new(&self.row_index, tokens, TOP_K)?),
                )
            },
            CombineOutputs {
                out: MatrixMut::new(residual, tokens, HIDDEN)?,
                normed: MatrixMut::new(normed, tokens, HIDDEN)?.into(),
            },
            &CombineOptions::default(),
            pool,
        )?;
        Ok(())
    }
}

/// Numbers in [-1, 1) times `scale`.
fn random(count: usize, scale: f32, seed: &mut u64) -> Vec<f32> {
    let mut next = || {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((*seed >> 40) as f32 / (1 << 23) as f32 - 1.0) * scale
    };
    (0..count).map(|_| next()).collect()
}

/// A token's block in double precision, without the library: what is added to its
/// residual.
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
    let mut block = MoeBlock::new(tokens)?;
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
