// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Options and reports. The build script generates their fields from the C headers, and
//! their defaults from the headers' macros.

use crate::sys;
use crate::values::*;

macro_rules! options {
    ($(#[$doc:meta])* $name:ident = $raw:ident $initial:ident [$($own:ident: $value:expr)?] {
        $($(#[$of:meta])* $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name { $($(#[$of])* pub $field: $type),* }
        impl Default for $name {
            fn default() -> Self { Self::from_c(sys::$initial).expect("the same header's") }
        }
        impl Raw for $name {
            type C = sys::$raw;
            fn to_c(self) -> Self::C {
                sys::$raw { $($own: $value,)? $($field: self.$field.to_c()),* }
            }
            #[allow(unused_variables)] // a struct without fields does not read `c`
            fn from_c(c: Self::C) -> Option<Self> {
                Some($name { $($field: Raw::from_c(c.$field)?),* })
            }
        }
    };
}
include!(concat!(env!("OUT_DIR"), "/options.rs"));
