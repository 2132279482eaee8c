// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::sys;
use std::ffi::CStr;
use std::fmt;

/// Kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// An argument is wrong by itself. Nothing has been written.
    InvalidArgument,
    /// The executor could not get memory. Outputs are unspecified.
    OutOfMemory,
    /// The arguments do not fit the data. The function says what was written.
    FailedPrecondition,
    /// The executor failed for another reason. Outputs are unspecified.
    Internal,
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of error.
    pub code: Code,
    /// "Function: argument: what is wrong".
    pub message: &'static str,
    /// Counts that the call had found by then: the stride that it needs, for instance.
    pub report: Report,
}

impl Error {
    /// An error that has found nothing.
    pub fn new(code: Code, message: &'static str) -> Error {
        Error { code, message, report: Report::default() }
    }
    pub(crate) fn invalid(message: &'static str) -> Error {
        Error::new(Code::InvalidArgument, message)
    }
}
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)
    }
}
impl std::error::Error for Error {}

macro_rules! report {
    ($($(#[$doc:meta])* $field:ident),*) => {
        /// Counts that a call found in its data. Each function sets its own fields; the
        /// others are 0.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Report { $($(#[$doc])* pub $field: usize),* }
        impl Report {
            pub(crate) fn raw() -> sys::swy_report {
                sys::swy_report { size: sys::size_of::<sys::swy_report>(), $($field: 0),* }
            }
            pub(crate) fn from_raw(raw: &sys::swy_report) -> Report {
                Report { $($field: raw.$field),* }
            }
        }
    };
}
report! {
    /// Routing: ids of given_ids outside `[0, num_experts)`.
    invalid_ids,
    /// Routing: selected experts that expert_map has as -1.
    elsewhere,
    /// Buckets, plans and maps: pairs of the busiest expert, or destination.
    max_rows,
    /// Strided buckets: the stride used, or needed.
    row_stride,
    /// Buckets, plans and maps: pairs that went nowhere.
    dropped,
    /// Gathering: pairs that do not exist.
    invalid,
    /// Combining, scattering, layers: rows that do not exist.
    skipped,
    /// Aligned buckets: pairs beyond the capacity.
    over_capacity,
    /// Aligned buckets: experts that have pairs.
    active_experts,
    /// Work lists and plans: tiles that there are, or are needed.
    tiles
}

/// The result of a call with a status.
pub(crate) fn check(status: sys::swy_status, report: Report) -> Result<Report, Error> {
    let code = match status.code {
        sys::SWY_OK => return Ok(report),
        sys::SWY_INVALID_ARGUMENT => Code::InvalidArgument,
        sys::SWY_OUT_OF_MEMORY => Code::OutOfMemory,
        sys::SWY_FAILED_PRECONDITION => Code::FailedPrecondition,
        _ => Code::Internal,
    };
    // SAFETY: a literal of the library's, of pool.rs or of layer.rs.
    let message: &'static CStr = unsafe { CStr::from_ptr(status.message) };
    Err(Error { code, message: message.to_str().unwrap_or(""), report })
}
