// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::values::Raw;
use crate::{sys, Report};
use std::ffi::CStr;
use std::fmt;

/// Kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// An argument, not the data, is wrong. Nothing is written.
    InvalidArgument,
    /// The executor could not allocate memory. Outputs are unspecified.
    OutOfMemory,
    /// The arguments do not fit the data. The function's contract lists the outputs that
    /// are written in this case.
    FailedPrecondition,
    /// The executor failed for another reason. Outputs are unspecified.
    Internal,
}

/// The numbers of an error as text, such as "got [15, 2], needs [16, 2]", or "" if it has
/// none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Details {
    text: [u8; MAX_DETAILS],
    size: u8,
}

/// The largest number of characters of Status::details() in the C++ API.
const MAX_DETAILS: usize = 127;

impl Details {
    const NONE: Details = Details { text: [0; MAX_DETAILS], size: 0 };

    fn new(text: &[u8]) -> Details {
        let size = text.len().min(MAX_DETAILS);
        let mut details = Details::NONE;
        details.text[..size].copy_from_slice(&text[..size]);
        details.size = size as u8;
        details
    }
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..self.size.into()]).unwrap_or("")
    }
}
impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// The error of a call: its kind, its text, and the call's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of error.
    pub code: Code,
    /// The text "Function: argument: problem".
    pub message: &'static str,
    /// The numbers of the error, if it has any.
    pub details: Details,
    /// The report of the failed call, for example with the stride that would be large
    /// enough.
    pub report: Report,
}

impl Error {
    /// Makes an error without details, and with an empty report.
    pub fn new(code: Code, message: &'static str) -> Error {
        Error { code, message, details: Details::NONE, report: Report::default() }
    }
    pub(crate) fn invalid(message: &'static str) -> Error {
        Error::new(Code::InvalidArgument, message)
    }
}
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)?;
        match self.details.as_str() {
            "" => Ok(()),
            details => write!(f, ": {}", details),
        }
    }
}
impl std::error::Error for Error {}

/// Converts the status of a call to its result.
pub(crate) fn check(status: sys::swy_status, report: Report) -> Result<Report, Error> {
    let code = match status.code {
        sys::SWY_OK => return Ok(report),
        sys::SWY_INVALID_ARGUMENT => Code::InvalidArgument,
        sys::SWY_OUT_OF_MEMORY => Code::OutOfMemory,
        sys::SWY_FAILED_PRECONDITION => Code::FailedPrecondition,
        _ => Code::Internal,
    };
    // SAFETY: the message is a string literal in the library, in pool.rs or in layer.rs.
    let message: &'static CStr = unsafe { CStr::from_ptr(status.message) };
    // SAFETY: the details belong to this thread, and live until the thread's next error.
    let details = unsafe { CStr::from_ptr(sys::swy_status_details(status)) };
    let details = Details::new(details.to_bytes());
    Err(Error { code, message: message.to_str().unwrap_or(""), details, report })
}
/// Runs `call`, which writes a report. Returns the report or the call's error.
pub(crate) fn with_report(
    call: impl FnOnce(*mut sys::swy_report) -> sys::swy_status,
) -> Result<Report, Error> {
    let mut report = sys::SWY_REPORT_INIT;
    let status = call(&mut report);
    check(status, Report::from_c(report).unwrap_or_default())
}
