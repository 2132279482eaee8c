// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! `switchyard.h`, whose comments say what each is. Tests hold these files to
//! `tests/c/layout.txt` and `tests/c/symbols.txt`, to which the header is held.
#![allow(non_camel_case_types, missing_docs)]

use std::os::raw::c_void;

/// A struct's name and size, and the name, offset and size of each field.
pub type Layout = (&'static str, usize, Vec<(&'static str, usize, usize)>);

macro_rules! structs {
    ($(struct $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $name { $(pub $field: $type),* }
        )*
        /// All structs, as this compiler lays them out.
        pub fn layouts() -> Vec<Layout> {
            vec![$({
                let value = std::mem::MaybeUninit::<$name>::uninit();
                let start = value.as_ptr();
                (stringify!($name), std::mem::size_of::<$name>(), vec![$(
                    // SAFETY: addresses within a value, of which nothing is read.
                    (stringify!($field),
                     unsafe { std::ptr::addr_of!((*start).$field) as usize } - start as usize,
                     std::mem::size_of::<$type>())
                ),*])
            }),*]
        }
    };
}

mod functions;
mod structs;
pub use functions::*;
pub use structs::*;

pub type Body = unsafe extern "C" fn(*mut c_void, usize, usize, usize);
pub type ParallelFor =
    unsafe extern "C" fn(*mut c_void, usize, usize, Body, *mut c_void) -> swy_status;
pub type Barrier = unsafe extern "C" fn(*mut c_void);

/// The size of a struct in the type of its `size` field.
pub(crate) const fn size_of<T>() -> u32 {
    std::mem::size_of::<T>() as u32
}

macro_rules! enumerators {
    ($($name:ident = $value:expr),* $(,)?) => {
        $(pub const $name: i32 = $value;)*
        /// All of them, by name.
        pub const ENUMERATORS: &[(&str, i32)] = &[$((stringify!($name), $value)),*];
    };
}

enumerators! {
    SWY_OK = 0,
    SWY_INVALID_ARGUMENT = 1,
    SWY_OUT_OF_MEMORY = 2,
    SWY_FAILED_PRECONDITION = 3,
    SWY_INTERNAL = 4,
    SWY_F32 = 0,
    SWY_BF16 = 1,
    SWY_F16 = 2,
    SWY_I32 = 3,
    SWY_U32 = 4,
    SWY_I64 = 5,
    SWY_I8 = 6,
    SWY_U8 = 7,
    SWY_F8E4M3 = 8,
    SWY_F8E5M2 = 9,
    SWY_E8M0 = 10,
    SWY_Q8_0 = 11,
    SWY_Q8_1 = 12,
    SWY_Q8_K = 13,
    SWY_SCORE_SOFTMAX = 0,
    SWY_SCORE_SIGMOID = 1,
    SWY_SCORE_SQRT_SOFTPLUS = 2,
    SWY_SCORE_RAW = 3,
    SWY_SCORE_SPARSEMIXER = 4,
    SWY_BIAS_ON_SCORE = 0,
    SWY_BIAS_ON_LOGIT = 1,
    SWY_WEIGHT_OF_SCORE = 0,
    SWY_WEIGHT_OF_SOFTMAX_OF_SELECTED = 1,
    SWY_WEIGHT_OF_SIGMOID_OF_SELECTED = 2,
    SWY_DIVISOR_MAX_OF_SUM_AND_SHARE = 0,
    SWY_DIVISOR_SUM = 1,
    SWY_DIVISOR_SUM_PLUS_EPS = 2,
    SWY_DIVISOR_MAX_OF_SUM_AND_EPS = 3,
    SWY_ORDER_ASCENDING = 0,
    SWY_ORDER_CLAIM = 1,
    SWY_SILU = 0,
    SWY_GELU = 1,
    SWY_GELU_TANH = 2,
    SWY_RELU = 3,
    SWY_RELU2 = 4,
    SWY_IDENTITY = 5,
    SWY_SWIGLU_OAI = 6,
    SWY_SITU = 7,
    SWY_SPLIT = 0,
    SWY_CONCATENATED = 1,
    SWY_INTERLEAVED = 2,
    SWY_UNGATED = 3,
    SWY_BEFORE = 0,
    SWY_AFTER = 1,
    SWY_STORES_AUTO = 0,
    SWY_STORES_CACHED = 1,
    SWY_STORES_STREAMING = 2,
    SWY_GATE_LOGIT = 0,
    SWY_GATE_SCALAR = 1,
    SWY_GATE_NONE = 2,
    SWY_NORM_WEIGHT = 0,
    SWY_NORM_WEIGHT_IN_F32 = 1,
    SWY_NORM_PLUS_ONE = 2,
    SWY_NORM_PLUS_ONE_FIRST = 3,
}
pub const SWY_NO_CAPACITY: usize = usize::MAX;
