// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::check;
use crate::values::Raw;
use crate::{sys, ActivateOptions, CombineForm, CombineOptions, Error, Report, RouteOptions};
use std::ffi::{CStr, CString};
use std::os::raw::c_char;

/// A model family's layer: in its default configuration, or as a checkpoint's
/// config.json has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// model_type of config.json.
    pub family: &'static str,
    /// The other family that this one copies exactly.
    pub same_as: Option<&'static str>,
    /// The source that it follows: a file of transformers, or a description.
    pub source: &'static str,
    /// For `route_top_k`.
    pub route: RouteOptions,
    /// For `activate`, with the layout of transformers' fused gate_up product.
    pub activate: ActivateOptions,
    /// For `combine`.
    pub combine: CombineOptions,
    /// The inputs of `combine`.
    pub form: CombineForm,
    /// True if it has a correction bias.
    pub correction_bias: bool,
    /// True if it has expert scales.
    pub expert_scale: bool,
    /// True if its configurations have norm_topk_prob, which is `route.renormalize`.
    pub norm_topk_prob: bool,
    /// True if `route.round_to` may be the model's type.
    pub in_model_type: bool,
    /// 0 where a configuration has to say.
    pub num_experts: usize,
    /// 0 where a configuration has to say.
    pub top_k: usize,
}

fn text(raw: *const c_char) -> Option<&'static str> {
    if raw.is_null() {
        return None;
    }
    // SAFETY: a string literal of the library, which is never freed.
    let text: &'static CStr = unsafe { CStr::from_ptr(raw) };
    text.to_str().ok()
}

impl Preset {
    /// The preset of a family in its default configuration. `route_top_k` refuses its
    /// options: use [`Preset::from_json`] with a checkpoint's config.json.
    pub fn find(family: &str) -> Result<Preset, Error> {
        // SAFETY: passes a string, and structs with their sizes.
        Preset::get("FindPreset: family: has a zero byte", family, |name, preset, route| unsafe {
            sys::swy_find_preset(name, preset, route)
        })
    }
    /// The preset that `call` writes. It gets the family, also in the preset that it
    /// fills.
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
            // This is the library's string literal, not `name`.
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
    /// The names of all families, in alphabetical order.
    pub fn families() -> impl Iterator<Item = &'static str> {
        // SAFETY: the function accepts any index.
        (0..).map_while(|i| text(unsafe { sys::swy_preset_family(i) }))
    }
}
