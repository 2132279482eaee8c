// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Enumerations, which the build script generates from the C headers, and the conversion
//! of values to and from C.

use crate::sys;

/// A value that converts to and from its C type.
pub(crate) trait Raw: Sized {
    type C;
    fn to_c(self) -> Self::C;
    /// Returns None if the value comes from a newer library.
    fn from_c(c: Self::C) -> Option<Self>;
}
macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Raw for $type {
            type C = $type;
            fn to_c(self) -> $type { self }
            fn from_c(c: $type) -> Option<$type> { Some(c) }
        }
    )*};
}
plain! { f32, u32, usize }
impl Raw for bool {
    type C = i32;
    fn to_c(self) -> i32 {
        self.into()
    }
    fn from_c(c: i32) -> Option<bool> {
        Some(c != 0)
    }
}

macro_rules! enumeration {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $member:ident = $c:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        pub enum $name { $($(#[$of])* $member = sys::$c),* }
        impl Raw for $name {
            type C = i32;
            fn to_c(self) -> i32 { self as i32 }
            fn from_c(c: i32) -> Option<$name> {
                match c { $(sys::$c => Some($name::$member),)* _ => None }
            }
        }
    };
}
include!(concat!(env!("OUT_DIR"), "/values.rs"));

/// A format of rows, for the rows that an expert's products read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowFormat {
    /// The type of the values, codes or blocks.
    pub r#type: Type,
    /// For codes: the number of columns that share a scale, 32, 64 or 128. 0 means that
    /// all columns of a row share one scale.
    pub scale_columns: usize,
    /// For codes: the type of the scales.
    pub scale_type: Type,
    /// True if rows of i8 or u8 have sums.
    pub has_sums: bool,
}
impl Default for RowFormat {
    fn default() -> Self {
        RowFormat { r#type: Type::F32, scale_columns: 0, scale_type: Type::F32, has_sums: false }
    }
}
impl RowFormat {
    pub(crate) fn to_c(self) -> sys::swy_row_format {
        sys::swy_row_format {
            r#type: self.r#type.to_c(),
            scale_type: self.scale_type.to_c(),
            scale_columns: self.scale_columns,
            has_sums: self.has_sums.to_c(),
        }
    }
    /// Returns None if a type comes from a newer library.
    pub(crate) fn from_c(c: sys::swy_row_format) -> Option<Self> {
        Some(RowFormat {
            r#type: Type::from_c(c.r#type)?,
            scale_columns: c.scale_columns,
            scale_type: Type::from_c(c.scale_type)?,
            has_sums: bool::from_c(c.has_sums)?,
        })
    }
}
