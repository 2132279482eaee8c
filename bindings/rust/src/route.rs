// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::check;
use crate::values::Raw;
use crate::{sys, Error, Matrix, MatrixMut, Pool, Report, RouteOptions};
use std::ffi::{CStr, CString};

/// Inputs of `route_top_k`.
#[derive(Clone, Copy, Default)]
pub struct RouteInputs<'a> {
    /// `[tokens, num_experts]`; f32, bf16, f16.
    pub logits: Matrix<'a>,
    /// Optional `[num_biases, num_experts]`, mostly one row.
    pub correction_bias: Matrix<'a>,
    /// Optional `[tokens, 1]`: each token's row of it.
    pub bias_index: Matrix<'a>,
    /// Optional `[1, num_experts]`: multiplies weights last.
    pub expert_scale: Matrix<'a>,
    /// Optional `[tokens, 1]` of u8: 0 is padding.
    pub token_mask: Matrix<'a>,
    /// Optional `[tokens, top_k]`: the experts are these.
    pub given_ids: Matrix<'a>,
    /// Optional i32 `[1, num_experts]`: what the ids become; -1: elsewhere.
    pub expert_map: Matrix<'a>,
}
/// Outputs of `route_top_k`.
#[derive(Default)]
pub struct RouteOutputs<'a> {
    /// `[tokens, top_k + num_shared_experts]`; i32, u32, i64.
    pub topk_ids: MatrixMut<'a>,
    /// The same; f32, bf16, f16.
    pub topk_weights: MatrixMut<'a>,
    /// Optional `[tokens, 1]`.
    pub identity_weights: MatrixMut<'a>,
}

/// For each token the top_k experts with the largest keys, best first, and their
/// weights. The smaller index wins ties; NaN ranks below all, and a row that has
/// one gets weights NaN.
pub fn route_top_k(
    inputs: &RouteInputs<'_>,
    outputs: RouteOutputs<'_>,
    options: &RouteOptions,
    pool: Pool<'_>,
) -> Result<Report, Error> {
    let mut report = Report::raw();
    let raw_in = sys::swy_route_inputs {
        size: sys::size_of::<sys::swy_route_inputs>(),
        logits: inputs.logits.raw,
        correction_bias: inputs.correction_bias.raw,
        bias_index: inputs.bias_index.raw,
        expert_scale: inputs.expert_scale.raw,
        token_mask: inputs.token_mask.raw,
        given_ids: inputs.given_ids.raw,
        expert_map: inputs.expert_map.raw,
    };
    let raw_out = sys::swy_route_outputs {
        size: sys::size_of::<sys::swy_route_outputs>(),
        topk_ids: outputs.topk_ids.raw,
        topk_weights: outputs.topk_weights.raw,
        identity_weights: outputs.identity_weights.raw,
        report: &mut report,
    };
    // SAFETY: views of slices that are borrowed for as long.
    let status =
        pool.with(|pool| unsafe { sys::swy_route_top_k(&raw_in, &raw_out, &options.to_c(), pool) });
    check(status, Report::from_raw(&report))
}

/// How a model family routes, in its default configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// model_type of config.json.
    pub family: &'static str,
    /// The family that this is an exact copy of.
    pub same_as: Option<&'static str>,
    /// The code that it follows, in transformers or in words.
    pub source: &'static str,
    /// For `route_top_k`.
    pub route: RouteOptions,
    /// It has a correction bias.
    pub correction_bias: bool,
    /// It has expert scales.
    pub expert_scale: bool,
    /// Its configurations have norm_topk_prob, which is `route.renormalize`.
    pub norm_topk_prob: bool,
    /// `route.round_to` may be the model's type.
    pub in_model_type: bool,
    /// 0 where a configuration has to say.
    pub num_experts: usize,
    /// 0 where a configuration has to say.
    pub top_k: usize,
}

fn text(raw: *const std::os::raw::c_char) -> Option<&'static str> {
    if raw.is_null() {
        return None;
    }
    // SAFETY: a literal of the library's.
    let text: &'static CStr = unsafe { CStr::from_ptr(raw) };
    text.to_str().ok()
}

impl Preset {
    /// The preset of a family.
    pub fn find(family: &str) -> Result<Preset, Error> {
        let unknown = Error::invalid("FindPreset: family: has a zero byte");
        let name = CString::new(family).map_err(|_| unknown)?;
        let mut preset = sys::swy_preset {
            size: sys::size_of::<sys::swy_preset>(),
            correction_bias: 0,
            expert_scale: 0,
            norm_topk_prob: 0,
            in_model_type: 0,
            family: std::ptr::null(),
            same_as: std::ptr::null(),
            source: std::ptr::null(),
            num_experts: 0,
            top_k: 0,
        };
        let mut options = RouteOptions::default().to_c();
        // SAFETY: a string and two structs that say their size.
        let status = unsafe { sys::swy_find_preset(name.as_ptr(), &mut preset, &mut options) };
        check(status, Report::default())?;
        let newer = Error::invalid("FindPreset: options: this crate does not know them");
        Ok(Preset {
            family: text(preset.family).unwrap_or(""),
            same_as: text(preset.same_as),
            source: text(preset.source).unwrap_or(""),
            route: RouteOptions::from_c(options).ok_or(newer)?,
            correction_bias: preset.correction_bias != 0,
            expert_scale: preset.expert_scale != 0,
            norm_topk_prob: preset.norm_topk_prob != 0,
            in_model_type: preset.in_model_type != 0,
            num_experts: preset.num_experts,
            top_k: preset.top_k,
        })
    }
    /// The names of all families, in alphabetical order.
    pub fn families() -> impl Iterator<Item = &'static str> {
        // SAFETY: any index will do.
        (0..).map_while(|i| text(unsafe { sys::swy_preset_family(i) }))
    }
}
