// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::check;
use crate::values::Raw;
use crate::{sys, ActivateOptions, CombineForm, CombineOptions, Error, Report, RouteOptions};
use std::ffi::{CStr, CString};
use std::os::raw::c_char;

/// The options of a model family's layer, in the family's default configuration or with
/// the values of a checkpoint's config.json.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// The family's name, which is model_type in config.json.
    pub family: &'static str,
    /// Another family with exactly the same layer, if the library has one.
    pub same_as: Option<&'static str>,
    /// The code that the preset follows: a file of transformers, or a description.
    pub source: &'static str,
    /// The options of `route_top_k`.
    pub route: RouteOptions,
    /// The options of `activate`, with the layout of transformers' fused gate_up product.
    pub activate: ActivateOptions,
    /// The options of `combine`.
    pub combine: CombineOptions,
    /// Tells which inputs `combine` needs.
    pub form: CombineForm,
    /// True if the layer has a correction bias.
    pub correction_bias: bool,
    /// True if the layer has expert scales.
    pub expert_scale: bool,
    /// True if the family's config.json has norm_topk_prob, which sets
    /// `route.renormalize`.
    pub norm_topk_prob: bool,
    /// True if the family computes scores and weights in the model's type. To round as the
    /// model does, set `route.round_to` to that type.
    pub in_model_type: bool,
    /// The number of columns of logits, or 0 if only a config.json has it.
    pub num_experts: usize,
    /// The number of experts of a token, or 0 if only a config.json has it.
    pub top_k: usize,
}

fn text(raw: *const c_char) -> Option<&'static str> {
    if raw.is_null() {
        return None;
    }
    // SAFETY: `raw` is a string literal of the library, which is never freed.
    let text: &'static CStr = unsafe { CStr::from_ptr(raw) };
    text.to_str().ok()
}

impl Preset {
    /// Returns the preset of a family in the family's default configuration.
    /// `route_top_k` refuses the options of such a preset: for a checkpoint, pass its
    /// config.json to [`Preset::from_json`].
    pub fn find(family: &str) -> Result<Preset, Error> {
        // SAFETY: the call gets a CString, and the `size` of each struct is set.
        Preset::get("FindPreset: family: has a zero byte", family, |name, preset, route| unsafe {
            sys::swy_find_preset(name, preset, route)
        })
    }
    /// Returns the preset that `call` writes. `call` gets the family's name, and fills a
    /// preset and the options of `route_top_k`. The preset already has the name.
    pub(crate) fn get(
        zero_byte: &'static str,
        family: &str,
        call: impl FnOnce(
            *const c_char,
            *mut sys::swy_preset,
            *mut sys::swy_route_options,
        ) -> sys::swy_status,
    ) -> Result<Preset, Error> {
        let name = CString::new(family).map_err(|_| Error::invalid(zero_byte))?;
        let mut route = RouteOptions::default().to_c();
        let mut activate = ActivateOptions::default().to_c();
        let mut combine = CombineOptions::default().to_c();
        let mut form = CombineForm::default().to_c();
        let mut preset = sys::swy_preset {
            family: name.as_ptr(),
            activate: &mut activate,
            combine: &mut combine,
            form: &mut form,
            ..sys::SWY_PRESET_INIT
        };
        check(call(name.as_ptr(), &mut preset, &mut route), Report::default())?;
        let newer = Error::invalid("FindPreset: options: this crate does not know them");
        Ok(Preset {
            // The call has replaced `name` by the library's string literal.
            family: text(preset.family).unwrap_or(""),
            same_as: text(preset.same_as),
            source: text(preset.source).unwrap_or(""),
            route: RouteOptions::from_c(route).ok_or(newer)?,
            activate: ActivateOptions::from_c(activate).ok_or(newer)?,
            combine: CombineOptions::from_c(combine).ok_or(newer)?,
            form: CombineForm::from_c(form).ok_or(newer)?,
            correction_bias: preset.correction_bias != 0,
            expert_scale: preset.expert_scale != 0,
            norm_topk_prob: preset.norm_topk_prob != 0,
            in_model_type: preset.in_model_type != 0,
            num_experts: preset.num_experts,
            top_k: preset.top_k,
        })
    }
    /// Returns the names of all families, in alphabetical order.
    pub fn families() -> impl Iterator<Item = &'static str> {
        // SAFETY: the function accepts any index.
        (0..).map_while(|i| text(unsafe { sys::swy_preset_family(i) }))
    }
}
