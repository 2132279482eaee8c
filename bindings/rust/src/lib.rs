// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! SIMD kernels for the steps around the expert GEMMs of a Mixture-of-Experts layer:
//! top-k routing, sorting tokens to experts, fused activations, weighted sums with shared
//! expert, residual and norm. [`run_experts`] does all of these steps except routing in
//! one call, and calls the engine's GEMM for the matrix products. [`LayerWeights`] is a GEMM
//! for quantised weights.
//!
//! Every function is called as `function(inputs, outputs, &options, pool)`. Matrices are
//! views of slices, and are checked when they are made. The library checks all other
//! arguments before it writes anything, and returns an [`Error`]. The C++ headers of the
//! library have the full contract of each function. [`sys`] is the C ABI, for calls that
//! the safe functions cannot express.
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

mod arguments;
mod bucket;
mod combine;
mod config;
mod error;
mod expert_weights;
mod isa;
mod json;
mod layer;
mod options;
mod pool;
mod presets;
mod rows;
pub mod sys;
mod values;
mod view;

pub use arguments::*;
pub use bucket::*;
pub use combine::*;
pub use config::ModelConfig;
pub use error::{Code, Details, Error};
pub use expert_weights::*;
pub use isa::*;
pub use layer::*;
pub use options::*;
pub use pool::*;
pub use presets::Preset;
pub use rows::*;
pub use values::{
    ActivatePlace, ActivateStores, Activation, BiasPlace, BucketOrder, Divisor, ExpertProduct,
    GateUpLayout, NormKind, RowFormat, Score, SharedGate, Type, WeightFormat, WeightLayout,
    WeightOf,
};
pub use view::*;

/// Makes the example in README.md a doctest, which compiles and runs it.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
