// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::error::check;
use crate::{sys, Error, Report};
use std::ffi::{CStr, CString};

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa {
    /// The ISA's name: "AVX3_DL", "AVX2", "NEON", ...
    pub name: &'static str,
    /// True if the ISA has a fused multiply-add. All ISAs that have it give the same
    /// bits.
    pub fma: bool,
}

fn isa(raw: sys::swy_isa) -> Option<Isa> {
    if raw.name.is_null() {
        return None;
    }
    // SAFETY: the name is a string literal of the library, which is never freed.
    let name: &'static CStr = unsafe { CStr::from_ptr(raw.name) };
    Some(Isa { name: name.to_str().unwrap_or(""), fma: raw.fma != 0 })
}

/// Returns the ISAs that the library was compiled for, the best one first.
pub fn compiled_isas() -> Vec<Isa> {
    // SAFETY: the function accepts any index.
    (0..).map_while(|i| isa(unsafe { sys::swy_compiled_isa(i) })).collect()
}
/// Returns the compiled ISAs that this CPU can run, the best one first.
pub fn runnable_isas() -> Vec<Isa> {
    // SAFETY: the function accepts any index.
    (0..).map_while(|i| isa(unsafe { sys::swy_runnable_isa(i) })).collect()
}
/// Returns the ISA that the next call will use.
pub fn active_isa() -> Option<Isa> {
    // SAFETY: the function takes no arguments.
    isa(unsafe { sys::swy_active_isa() })
}
/// Returns the ISA that the last call of the process ran on, or `None` before the first
/// call.
pub fn last_isa() -> Option<Isa> {
    // SAFETY: the function takes no arguments.
    isa(unsafe { sys::swy_last_isa() })
}
/// Caps the ISA: later calls use no ISA better than `name`. `None` removes the cap.
pub fn cap_isa(name: Option<&str>) -> Result<(), Error> {
    let name = name
        .map(CString::new)
        .transpose()
        .map_err(|_| Error::invalid("CapIsa: name: has a zero byte"))?;
    let name = name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
    // SAFETY: `name` is null or a string that outlives the call.
    check(unsafe { sys::swy_cap_isa(name) }, Report::default()).map(drop)
}
/// Returns an error if the environment variable SWITCHYARD_ISA names an ISA that cannot
/// run here. Every kernel then returns this error.
pub fn environment_isa() -> Result<(), Error> {
    // SAFETY: the function takes no arguments.
    check(unsafe { sys::swy_environment_isa() }, Report::default()).map(drop)
}
