// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Functions, inputs and outputs that the build script generates from the C headers.
//! Functions that need more code than a call are in the other files.

use crate::error::with_report;
use crate::options::*;
use crate::values::{Raw, SharedGate};
use crate::view::View;
use crate::{sys, Matrix, MatrixMut, Report, Rows, RowsMut, Source};

macro_rules! views {
    ($(#[$doc:meta])* $name:ident = $raw:ident (report) [$($own:ident: $value:expr)?] {
        $($(#[$of:meta])* $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$doc])*
        pub struct $name<'a> { $($(#[$of])* pub $field: $type),* }
        impl $name<'_> {
            pub(crate) fn raw(self, report: *mut sys::swy_report) -> sys::$raw {
                sys::$raw { $($own: $value,)? $($field: self.$field.view(),)* report }
            }
        }
    };
    ($(#[$doc:meta])* $name:ident = $raw:ident [$($own:ident: $value:expr)?] {
        $($(#[$of:meta])* $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$doc])*
        pub struct $name<'a> { $($(#[$of])* pub $field: $type),* }
        impl View for $name<'_> {
            type C = sys::$raw;
            fn view(self) -> Self::C {
                sys::$raw { $($own: $value,)? $($field: self.$field.view()),* }
            }
        }
    };
}
include!(concat!(env!("OUT_DIR"), "/views.rs"));

impl Default for SharedExpert<'_> {
    fn default() -> Self {
        SharedExpert {
            rows: Matrix::default(),
            gate: Matrix::default(),
            num_shared: sys::SWY_NO_SHARED_EXPERT.num_shared,
            kind: SharedGate::Logit,
        }
    }
}

include!(concat!(env!("OUT_DIR"), "/functions.rs"));
