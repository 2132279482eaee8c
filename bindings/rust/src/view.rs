// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::sys;
use crate::values::Type;
use crate::Error;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::ptr::null_mut;

/// An element of a matrix.
///
/// # Safety
/// `TYPE` has the size and alignment of `Self`, and every bit pattern of it is a
/// `Self`.
pub unsafe trait Element: Copy {
    /// Its name at run time.
    const TYPE: Type;
    /// Values in it: more than 1 in GGML's blocks.
    const VALUES: usize = 1;
}
macro_rules! elements {
    ($($(#[$doc:meta])* $name:ident($bits:ty) = $type:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub $bits);
        // SAFETY: bits, whatever they are.
        unsafe impl Element for $name { const TYPE: Type = Type::$type; }
    )*};
}
elements! {
    /// A bfloat16, by its bits.
    Bf16(u16) = Bf16;
    /// An IEEE half, by its bits.
    F16(u16) = F16;
    /// An fp8 with 4 bits of exponent, by its bits.
    F8E4M3(u8) = F8E4M3;
    /// An fp8 with 5 bits of exponent, by its bits.
    F8E5M2(u8) = F8E5M2;
    /// A power of two, by its bits.
    E8M0(u8) = E8M0;
}
macro_rules! numbers {
    ($($number:ty = $type:ident),*) => {$(
        // SAFETY: a number, of which every bit pattern is one.
        unsafe impl Element for $number { const TYPE: Type = Type::$type; }
    )*};
}
numbers! { f32 = F32, i32 = I32, u32 = U32, i64 = I64, i8 = I8, u8 = U8 }
macro_rules! blocks {
    ($($(#[$doc:meta])* $name:ident = $raw:ident, $type:ident, $values:expr;)*) => {$(
        $(#[$doc])*
        pub type $name = sys::$raw;
        // SAFETY: of numbers alone, laid out as in C.
        unsafe impl Element for $name {
            const TYPE: Type = Type::$type;
            const VALUES: usize = $values;
        }
    )*};
}
blocks! {
    /// GGML's block of 32 values.
    BlockQ8_0 = swy_block_q8_0, Q8_0, 32;
    /// GGML's block of 32 values with their sum.
    BlockQ8_1 = swy_block_q8_1, Q8_1, 32;
    /// GGML's block of 256 values.
    BlockQ8K = swy_block_q8_k, Q8K, 256;
}

/// No matrix, for what is optional.
pub(crate) const NONE: sys::swy_matrix =
    sys::swy_matrix { data: null_mut(), rows: 0, cols: 0, stride: 0, r#type: 0 };

/// The view of `rows` rows of `cols` values, which begin `stride` values apart,
/// if `len` elements hold them.
fn view<T: Element>(
    data: *mut c_void,
    len: usize,
    rows: usize,
    cols: usize,
    stride: usize,
) -> Result<sys::swy_matrix, Error> {
    if stride < cols {
        return Err(Error::invalid("Matrix: stride is smaller than cols"));
    }
    if cols % T::VALUES != 0 || (stride % T::VALUES != 0 && rows > 1) {
        return Err(Error::invalid("Matrix: cols or stride is no multiple of a block's values"));
    }
    let values = match rows {
        0 => Some(0),
        _ => (rows - 1).checked_mul(stride).and_then(|n| n.checked_add(cols)),
    };
    if values.map_or(true, |n| n / T::VALUES > len) {
        return Err(Error::invalid("Matrix: the slice is shorter than rows * stride"));
    }
    Ok(sys::swy_matrix { data, rows, cols, stride, r#type: T::TYPE as i32 })
}

/// Where row `r` begins, and its length.
fn row<T: Element>(raw: &sys::swy_matrix, r: usize) -> (*mut T, usize) {
    assert!(r < raw.rows, "Matrix: row {} of {}", r, raw.rows);
    assert!(raw.r#type == T::TYPE as i32, "Matrix: it is not of {:?}", T::TYPE);
    // SAFETY: within the slice, which `view` or the library has checked.
    let data = unsafe { (raw.data as *mut T).add(r * raw.stride / T::VALUES) };
    (data, raw.cols / T::VALUES)
}

/// A matrix that is read: rows of a slice. The default is none, for what is
/// optional.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    pub(crate) raw: sys::swy_matrix,
    slice: PhantomData<&'a [u8]>,
}
/// A matrix that is written. The default is none, for what is optional.
pub struct MatrixMut<'a> {
    pub(crate) raw: sys::swy_matrix,
    slice: PhantomData<&'a mut [u8]>,
}
// SAFETY: as the slices that they are of; elements are plain numbers.
unsafe impl Send for Matrix<'_> {}
// SAFETY: the same.
unsafe impl Sync for Matrix<'_> {}
// SAFETY: the same.
unsafe impl Send for MatrixMut<'_> {}

impl<'a> Matrix<'a> {
    /// Rows without gaps. In blocks, too, `cols` counts values.
    pub fn new<T: Element>(slice: &'a [T], rows: usize, cols: usize) -> Result<Self, Error> {
        Matrix::strided(slice, rows, cols, cols)
    }
    /// Rows that begin `stride` values apart.
    pub fn strided<T: Element>(
        slice: &'a [T],
        rows: usize,
        cols: usize,
        stride: usize,
    ) -> Result<Self, Error> {
        let raw = view::<T>(slice.as_ptr() as *mut c_void, slice.len(), rows, cols, stride)?;
        Ok(Matrix { raw, slice: PhantomData })
    }
    /// # Safety
    /// What it says may be read for `'a`.
    pub(crate) unsafe fn from_raw(raw: sys::swy_matrix) -> Self {
        Matrix { raw, slice: PhantomData }
    }
    /// Row `r`, of elements or blocks.
    ///
    /// # Panics
    /// If there is no such row, or `T` is not what the matrix is made of.
    pub fn row<T: Element>(&self, r: usize) -> &'a [T] {
        let (data, len) = row::<T>(&self.raw, r);
        // SAFETY: a part of the slice.
        unsafe { std::slice::from_raw_parts(data, len) }
    }
}
impl<'a> MatrixMut<'a> {
    /// Rows without gaps. In blocks, too, `cols` counts values.
    pub fn new<T: Element>(slice: &'a mut [T], rows: usize, cols: usize) -> Result<Self, Error> {
        MatrixMut::strided(slice, rows, cols, cols)
    }
    /// Rows that begin `stride` values apart.
    pub fn strided<T: Element>(
        slice: &'a mut [T],
        rows: usize,
        cols: usize,
        stride: usize,
    ) -> Result<Self, Error> {
        let raw = view::<T>(slice.as_mut_ptr() as *mut c_void, slice.len(), rows, cols, stride)?;
        Ok(MatrixMut { raw, slice: PhantomData })
    }
    /// # Safety
    /// What it says is nobody else's for `'a`.
    pub(crate) unsafe fn from_raw(raw: sys::swy_matrix) -> Self {
        MatrixMut { raw, slice: PhantomData }
    }
    /// Row `r`, of elements or blocks. What lies between rows may be another view's.
    ///
    /// # Panics
    /// If there is no such row, or `T` is not what the matrix is made of.
    pub fn row_mut<T: Element>(&mut self, r: usize) -> &mut [T] {
        let (data, len) = row::<T>(&self.raw, r);
        // SAFETY: a part of the slice, or of a tile's own.
        unsafe { std::slice::from_raw_parts_mut(data, len) }
    }
    /// The first element, for a GEMM that takes pointers.
    pub fn as_mut_ptr(&mut self) -> *mut c_void {
        self.raw.data
    }
}
macro_rules! shapes {
    ($($view:ident),*) => {$(
        impl $view<'_> {
            /// How many rows it has.
            pub fn rows(&self) -> usize {
                self.raw.rows
            }
            /// Values of a row.
            pub fn cols(&self) -> usize {
                self.raw.cols
            }
            /// Values from one row to the next.
            pub fn stride(&self) -> usize {
                self.raw.stride
            }
            /// The first element, for a GEMM that takes pointers.
            pub fn as_ptr(&self) -> *const c_void {
                self.raw.data
            }
        }
    )*};
}
shapes! { Matrix, MatrixMut }
impl Default for Matrix<'_> {
    fn default() -> Self {
        Matrix { raw: NONE, slice: PhantomData }
    }
}
impl Default for MatrixMut<'_> {
    fn default() -> Self {
        MatrixMut { raw: NONE, slice: PhantomData }
    }
}

/// Rows that are read, which may be quantised: codes, and what goes with them.
#[derive(Clone, Copy, Default)]
pub struct Rows<'a> {
    /// Values, codes or blocks.
    pub values: Matrix<'a>,
    /// `[rows, 1]` or `[rows, groups of columns]`.
    pub scales: Matrix<'a>,
    /// `[rows, 1]`, int32.
    pub sums: Matrix<'a>,
}
/// Rows that are written.
#[derive(Default)]
pub struct RowsMut<'a> {
    /// Values, codes or blocks.
    pub values: MatrixMut<'a>,
    /// `[rows, 1]` or `[rows, groups of columns]`.
    pub scales: MatrixMut<'a>,
    /// `[rows, 1]`, int32.
    pub sums: MatrixMut<'a>,
}
impl<'a> From<Matrix<'a>> for Rows<'a> {
    fn from(values: Matrix<'a>) -> Self {
        Rows { values, ..Rows::default() }
    }
}
impl<'a> From<MatrixMut<'a>> for RowsMut<'a> {
    fn from(values: MatrixMut<'a>) -> Self {
        RowsMut { values, ..RowsMut::default() }
    }
}
impl Rows<'_> {
    pub(crate) fn raw(&self) -> sys::swy_rows {
        sys::swy_rows { values: self.values.raw, scales: self.scales.raw, sums: self.sums.raw }
    }
}
impl RowsMut<'_> {
    pub(crate) fn raw(&self) -> sys::swy_rows {
        sys::swy_rows { values: self.values.raw, scales: self.scales.raw, sums: self.sums.raw }
    }
}

/// An input that may be what its output held before.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A matrix of its own.
    From(Matrix<'a>),
    /// The output is read, and then written. An error where there is none.
    InPlace,
}
impl Source<'_> {
    /// In place of no output it would be no matrix, which the library takes for an
    /// argument that is left out: that is the error `missing`.
    pub(crate) fn raw(
        &self,
        output: sys::swy_matrix,
        missing: &'static str,
    ) -> Result<sys::swy_matrix, Error> {
        match self {
            Source::From(matrix) => Ok(matrix.raw),
            Source::InPlace if output.data.is_null() => Err(Error::invalid(missing)),
            Source::InPlace => Ok(output),
        }
    }
}
impl<'a> From<Matrix<'a>> for Source<'a> {
    fn from(matrix: Matrix<'a>) -> Self {
        Source::From(matrix)
    }
}
impl Default for Source<'_> {
    fn default() -> Self {
        Source::From(Matrix::default())
    }
}

/// A list that may be left out. An empty one would be left out, too, and that is the
/// error `empty`.
pub(crate) fn optional_ints(
    slice: Option<&[i32]>,
    empty: &'static str,
) -> Result<sys::swy_i32_span, Error> {
    match slice {
        Some([]) => Err(Error::invalid(empty)),
        slice => Ok(ints(slice.unwrap_or(&[]))),
    }
}

// A span's data is null where it is not given.
macro_rules! spans {
    ($($read:ident, $write:ident = $raw:ident of $element:ty;)*) => {$(
        #[allow(dead_code)]
        pub(crate) fn $read(slice: &[$element]) -> sys::$raw {
            let data = if slice.is_empty() { null_mut() } else { slice.as_ptr() as *mut _ };
            sys::$raw { data, size: slice.len() }
        }
        #[allow(dead_code)]
        pub(crate) fn $write(slice: &mut [$element]) -> sys::$raw {
            let data = if slice.is_empty() { null_mut() } else { slice.as_mut_ptr() };
            sys::$raw { data, size: slice.len() }
        }
    )*};
}
spans! {
    ints, ints_mut = swy_i32_span of i32;
    uints, uints_mut = swy_u32_span of u32;
    longs, longs_mut = swy_i64_span of i64;
    tiles, tiles_mut = swy_work_tile_span of sys::swy_work_tile;
}
