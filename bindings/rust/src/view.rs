// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::sys;
use crate::values::{Raw, Type};
use crate::Error;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::ptr::null_mut;

/// A type that elements of a matrix may have.
///
/// # Safety
/// `TYPE` must have the size and alignment of `Self`, and each of its bit patterns
/// must be a valid `Self`.
pub unsafe trait Element: Copy {
    /// The element's type at run time.
    const TYPE: Type;
    /// The number of values in an element, which is more than 1 for GGML's blocks.
    const VALUES: usize = 1;
}
macro_rules! elements {
    ($($(#[$doc:meta])* $name:ident($bits:ty) = $type:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub $bits);
        // SAFETY: the type holds an integer, and all bits are valid.
        unsafe impl Element for $name { const TYPE: Type = Type::$type; }
    )*};
}
elements! {
    /// The bits of a bfloat16.
    Bf16(u16) = Bf16;
    /// The bits of an IEEE half.
    F16(u16) = F16;
    /// The bits of an fp8 with 4 bits of exponent.
    F8E4M3(u8) = F8E4M3;
    /// The bits of an fp8 with 5 bits of exponent.
    F8E5M2(u8) = F8E5M2;
    /// The bits of a scale that is a power of two.
    E8M0(u8) = E8M0;
}
macro_rules! numbers {
    ($($number:ty = $type:ident),*) => {$(
        // SAFETY: every bit pattern is a valid number.
        unsafe impl Element for $number { const TYPE: Type = Type::$type; }
    )*};
}
numbers! { f32 = F32, i32 = I32, u32 = U32, i64 = I64, i8 = I8, u8 = U8, u16 = U16 }
macro_rules! blocks {
    ($($(#[$doc:meta])* $name:ident = $raw:ident, $type:ident, $values:expr;)*) => {$(
        $(#[$doc])*
        pub type $name = sys::$raw;
        // SAFETY: the block holds only numbers, laid out as in C.
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

/// Makes a view of `rows` rows of `cols` values; rows begin `stride` values apart.
/// Returns an error if the rows need more than `len` elements.
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

/// Returns the start of row `r`, and the row's number of elements.
fn row<T: Element>(raw: &sys::swy_matrix, r: usize) -> (*mut T, usize) {
    assert!(r < raw.rows, "Matrix: row {} of {}", r, raw.rows);
    assert!(raw.r#type == T::TYPE as i32, "Matrix: it is not of {:?}", T::TYPE);
    // SAFETY: the row lies within the slice, as `view` or the library has checked.
    let data = unsafe { (raw.data as *mut T).add(r * raw.stride / T::VALUES) };
    (data, raw.cols / T::VALUES)
}

/// A matrix that functions read, as a view of a slice. The default stands for an optional
/// matrix that is left out.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    pub(crate) raw: sys::swy_matrix,
    slice: PhantomData<&'a [u8]>,
}
/// A matrix that functions write, as a view of a slice. The default stands for an
/// optional matrix that is left out.
pub struct MatrixMut<'a> {
    pub(crate) raw: sys::swy_matrix,
    slice: PhantomData<&'a mut [u8]>,
}
// SAFETY: a matrix is like the slice that it views, and its elements are plain
// numbers.
unsafe impl Send for Matrix<'_> {}
// SAFETY: a matrix is like the slice that it views, and is only read.
unsafe impl Sync for Matrix<'_> {}
// SAFETY: a matrix is like the slice that it views, which only this matrix writes.
unsafe impl Send for MatrixMut<'_> {}

impl<'a> Matrix<'a> {
    /// Makes a matrix of rows without gaps. `cols` counts values, not blocks.
    pub fn new<T: Element>(slice: &'a [T], rows: usize, cols: usize) -> Result<Self, Error> {
        Matrix::strided(slice, rows, cols, cols)
    }
    /// Makes a matrix of rows that begin `stride` values apart.
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
    /// The memory that `raw` describes must be readable, and not written, for `'a`.
    pub(crate) unsafe fn from_raw(raw: sys::swy_matrix) -> Self {
        Matrix { raw, slice: PhantomData }
    }
    /// Returns the elements or blocks of row `r`.
    ///
    /// # Panics
    /// If row `r` does not exist, or `T` is not the element type of the matrix.
    pub fn row<T: Element>(&self, r: usize) -> &'a [T] {
        let (data, len) = row::<T>(&self.raw, r);
        // SAFETY: the row is a part of the slice, which is borrowed for 'a.
        unsafe { std::slice::from_raw_parts(data, len) }
    }
}
impl<'a> MatrixMut<'a> {
    /// Makes a matrix of rows without gaps. `cols` counts values, not blocks.
    pub fn new<T: Element>(slice: &'a mut [T], rows: usize, cols: usize) -> Result<Self, Error> {
        MatrixMut::strided(slice, rows, cols, cols)
    }
    /// Makes a matrix of rows that begin `stride` values apart.
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
    /// The memory that `raw` describes must be exclusively borrowed for `'a`.
    pub(crate) unsafe fn from_raw(raw: sys::swy_matrix) -> Self {
        MatrixMut { raw, slice: PhantomData }
    }
    /// Returns the elements or blocks of row `r`. The gap between two rows is not
    /// returned, because it may belong to another view.
    ///
    /// # Panics
    /// If row `r` does not exist, or `T` is not the element type of the matrix.
    pub fn row_mut<T: Element>(&mut self, r: usize) -> &mut [T] {
        let (data, len) = row::<T>(&self.raw, r);
        // SAFETY: the row is a part of the slice, or of the tile's output, and `&mut
        // self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(data, len) }
    }
    /// Returns the first element, for a GEMM that takes pointers.
    pub fn as_mut_ptr(&mut self) -> *mut c_void {
        self.raw.data
    }
}
macro_rules! shapes {
    ($($view:ident),*) => {$(
        impl $view<'_> {
            /// Returns the number of rows.
            pub fn rows(&self) -> usize {
                self.raw.rows
            }
            /// Returns the number of values in a row.
            pub fn cols(&self) -> usize {
                self.raw.cols
            }
            /// Returns the number of values from the start of one row to the start of the
            /// next.
            pub fn stride(&self) -> usize {
                self.raw.stride
            }
            /// Returns the first element, for a GEMM that takes pointers.
            pub fn as_ptr(&self) -> *const c_void {
                self.raw.data
            }
        }
    )*};
}
shapes! { Matrix, MatrixMut }
impl Default for Matrix<'_> {
    fn default() -> Self {
        Matrix { raw: sys::SWY_NO_MATRIX, slice: PhantomData }
    }
}
impl Default for MatrixMut<'_> {
    fn default() -> Self {
        MatrixMut { raw: sys::SWY_NO_MATRIX, slice: PhantomData }
    }
}

/// Rows that functions read. They may be quantised: codes with their scales and sums.
#[derive(Clone, Copy, Default)]
pub struct Rows<'a> {
    /// Values, codes or blocks.
    pub values: Matrix<'a>,
    /// Scales of codes: `[rows, 1]` or `[rows, groups of columns]`.
    pub scales: Matrix<'a>,
    /// Optional, for i8 and u8: i32 `[rows, 1]`, sums of a row's codes.
    pub sums: Matrix<'a>,
}
/// Rows that functions write. They may be quantised: codes with their scales and sums.
#[derive(Default)]
pub struct RowsMut<'a> {
    /// Values, codes or blocks.
    pub values: MatrixMut<'a>,
    /// Scales of codes: `[rows, 1]` or `[rows, groups of columns]`.
    pub scales: MatrixMut<'a>,
    /// Optional, for i8 and u8: i32 `[rows, 1]`, sums of a row's codes.
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

/// An argument that converts to its C type.
pub(crate) trait View {
    type C;
    fn view(self) -> Self::C;
}
impl<T: Raw> View for T {
    type C = T::C;
    fn view(self) -> T::C {
        self.to_c()
    }
}
macro_rules! matrices {
    ($($matrix:ident, $rows:ident;)*) => {$(
        impl View for $matrix<'_> {
            type C = sys::swy_matrix;
            fn view(self) -> Self::C { self.raw }
        }
        impl View for $rows<'_> {
            type C = sys::swy_rows;
            fn view(self) -> Self::C {
                sys::swy_rows {
                    values: self.values.raw,
                    scales: self.scales.raw,
                    sums: self.sums.raw,
                }
            }
        }
    )*};
}
matrices! {
    Matrix, Rows;
    MatrixMut, RowsMut;
}

/// An input that may lie in place: in the memory of the output that replaces it.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A separate matrix.
    From(Matrix<'a>),
    /// The input is read from the output before the output is written. This is an error
    /// if the output is missing.
    InPlace,
}
impl Source<'_> {
    /// Returns the matrix in its C form. `InPlace` without an output is the error
    /// `missing`, because the library would get no matrix, and treat the argument as left
    /// out.
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

/// For `InPlace`, `view` returns an empty matrix, which the calling function replaces by
/// the output.
impl View for Source<'_> {
    type C = sys::swy_matrix;
    fn view(self) -> Self::C {
        match self {
            Source::From(matrix) => matrix.raw,
            Source::InPlace => sys::SWY_NO_MATRIX,
        }
    }
}

impl View for Option<&[i32]> {
    type C = sys::swy_i32_span;
    fn view(self) -> Self::C {
        self.unwrap_or(&[]).view()
    }
}
/// Returns the error `empty` for an empty list, because the library would treat the
/// argument as left out.
pub(crate) fn not_empty(slice: Option<&[i32]>, empty: &'static str) -> Result<(), Error> {
    match slice {
        Some([]) => Err(Error::invalid(empty)),
        _ => Ok(()),
    }
}

// An empty list becomes a span with null data, because null means that the argument is
// left out.
macro_rules! spans {
    ($($element:ty = $raw:ident;)*) => {$(
        impl View for &[$element] {
            type C = sys::$raw;
            fn view(self) -> Self::C {
                let data = if self.is_empty() { null_mut() } else { self.as_ptr() as *mut _ };
                sys::$raw { data, size: self.len() }
            }
        }
        impl View for &mut [$element] {
            type C = sys::$raw;
            fn view(self) -> Self::C {
                let data = if self.is_empty() { null_mut() } else { self.as_mut_ptr() };
                sys::$raw { data, size: self.len() }
            }
        }
    )*};
}
spans! {
    i32 = swy_i32_span;
    u32 = swy_u32_span;
    i64 = swy_i64_span;
}
