// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Inputs and outputs of functions, which the build script writes from the C
//! headers.

use crate::values::SharedGate;
use crate::view::View;
use crate::{sys, Matrix, MatrixMut, Rows, RowsMut, Source};

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

/// Functions with a report, as they are in C.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $raw:ident($in:ty, $out:ty, $options:ty);)*) => {$(
        $(#[$doc])*
        pub fn $name(
            inputs: $in,
            outputs: $out,
            options: &$options,
            pool: Pool<'_>,
        ) -> Result<Report, Error> {
            with_report(|report| {
                let (inputs, outputs) = (inputs.view(), outputs.raw(report));
                // SAFETY: views of slices that are borrowed for as long.
                pool.with(|pool| unsafe { sys::$raw(&inputs, &outputs, &options.to_c(), pool) })
            })
        }
    )*};
}
pub(crate) use calls;
