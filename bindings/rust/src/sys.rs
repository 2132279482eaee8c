// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! The C API of `switchyard.h`. The build script generates the structs, enumerators and
//! functions from the headers of the linked library. The comments in these headers
//! describe them.
#![allow(non_camel_case_types, missing_docs)]

use std::os::raw::{c_char, c_void};

/// A struct's name and size, and the name, offset and size of each field.
pub type Layout = (&'static str, usize, Vec<(&'static str, usize, usize)>);

macro_rules! structs {
    ($(struct $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $name { $(pub $field: $type),* }
        )*
        /// Returns the layout of each struct in Rust, for the test that compares it with
        /// C.
        pub fn layouts() -> Vec<Layout> {
            vec![$({
                let value = std::mem::MaybeUninit::<$name>::uninit();
                let start = value.as_ptr();
                (stringify!($name), std::mem::size_of::<$name>(), vec![$(
                    // SAFETY: the code takes addresses within `value`, and reads none
                    // of its bytes.
                    (stringify!($field),
                     unsafe { std::ptr::addr_of!((*start).$field) as usize } - start as usize,
                     std::mem::size_of::<$type>())
                ),*])
            }),*]
        }
    };
}

/// Returns the size of a struct, in the type of the struct's `size` field.
pub(crate) const fn size_of<T>() -> u32 {
    std::mem::size_of::<T>() as u32
}

macro_rules! enumerators {
    ($($name:ident = $value:expr),* $(,)?) => {
        $(pub const $name: i32 = $value;)*
    };
}

macro_rules! initial {
    ($($name:ident: $type:ident = $value:expr;)*) => {
        $(pub const $name: $type = $value;)*
        /// Returns a pointer to the bytes of each initial value, with the name of the
        /// value's struct.
        pub fn initial() -> Vec<(&'static str, *const u8)> {
            vec![$((stringify!($type), &$name as *const $type as *const u8)),*]
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/sys.rs"));
pub const SWY_NO_CAPACITY: usize = usize::MAX;
pub const SWY_TIGHT_STRIDE: usize = 0;
