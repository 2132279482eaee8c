// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Views: pointers to data that the caller owns, with the data's sizes. The
// library never reads or writes a byte outside a view and needs no alignment
// beyond the element type's. Sizes may have any integer type (ggml's are
// int64_t). A negative size becomes a huge one, which calls refuse.
//
// All structs of inputs, outputs and options are aggregates. Write their
// fields in braces in order, assign them one by one or, from C++20 on, use
// designated initialisers:
//
//   CombineInputs in;
//   in.rows = {down, num_rows, hidden};
//   Combine({.rows = {down, num_rows, hidden}, ...}, {.out = {...}});  // C++20

#ifndef SWITCHYARD_VIEWS_H_
#define SWITCHYARD_VIEWS_H_

#include <cstddef>
#include <type_traits>
#include <utility>

#include "switchyard/types.h"

namespace switchyard {

template <class... I>
inline constexpr bool kAreSizes = ((std::is_integral_v<I> ||
                                    std::is_enum_v<I>)&&...);
template <class... I>
using IfSizes = std::enable_if_t<kAreSizes<I...>>;

// The functions below give clearer compiler errors for wrong braces, because
// GCC 12 reports only "could not convert ... from <brace-enclosed initializer
// list>". BasicAnyMatrix has private constructors that accept wrong
// arguments, and name the right ones in a static_assert. These constructors
// are private so that std::is_convertible and similar traits stay false. Span
// has no such constructors, because functions overloaded for Spans of several
// types would become ambiguous.
namespace refused {

template <class T, class = void>
inline constexpr bool kHasType = false;
template <class T>
inline constexpr bool kHasType<T, std::void_t<decltype(TypeOf<T>::value)>> =
    true;

// True if a BasicAnyMatrix<Void> may have elements of T.
template <class Void, class T>
inline constexpr bool kTakes = kHasType<T> &&
                               (std::is_const_v<Void> || !std::is_const_v<T>);

template <class Void, class T>
constexpr void Const() noexcept {
  static_assert(std::is_const_v<Void> || !std::is_const_v<T>,
                "switchyard: data of an output is not const");
}
template <class Void, class T>
constexpr void Elements() noexcept {
  Const<Void, T>();
  static_assert(kHasType<T>,
                "switchyard: elements are float, BFloat16, Float16, int32_t, "
                "uint32_t, int64_t, int8_t, uint8_t, uint16_t, Float8E4M3, "
                "Float8E5M2 or Scale8E8M0; any other matrix is {pointer to "
                "void, Type, rows, cols, stride}");
}
template <class Void, class T, class... Sizes>
constexpr void Matrix() noexcept {
  if constexpr (sizeof...(Sizes) == 4) {  // the first one is the Type
    Const<Void, T>();
  } else {
    Elements<Void, T>();
    static_assert(sizeof...(Sizes) == 2 || sizeof...(Sizes) == 3,
                  "switchyard: a matrix is {data, rows, cols} or {data, rows, "
                  "cols, stride}, in braces of its own");
    static_assert(kAreSizes<Sizes...>,
                  "switchyard: rows, cols and stride are integers");
  }
}

}  // namespace refused

// The `size` elements that start at `data`. A vector, an array, a std::span
// or any other type with data() and size() converts to a Span.
template <class T>
struct Span {
  T* data = nullptr;  // the first element, or null in an empty Span
  size_t size = 0;    // number of elements

  constexpr Span() noexcept = default;
  template <class N, class = IfSizes<N>>
  constexpr Span(T* data_in, N size_in) noexcept
      : data(data_in), size(static_cast<size_t>(size_in)) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) noexcept  // NOLINT(runtime/explicit)
      : data(array), size(N) {}
  template <class C, class P = decltype(std::declval<C&>().data()),
            class = std::enable_if_t<
                std::is_convertible_v<std::remove_pointer_t<P> (*)[], T (*)[]>>,
            class = decltype(std::declval<C&>().size())>
  constexpr Span(C&& container) noexcept  // NOLINT(runtime/explicit)
      : data(container.data()), size(container.size()) {}
  // Span<float> converts to Span<const float>.
  template <class U,
            class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
  constexpr Span(Span<U> other) noexcept  // NOLINT(runtime/explicit)
      : data(other.data), size(other.size) {}

  constexpr T* begin() const noexcept { return data; }
  constexpr T* end() const noexcept { return data + size; }
};

// `rows` rows of `cols` elements; row r starts at data + r * stride. The
// stride counts elements too, and is at least cols. A default Matrix is empty
// (no data).
template <class T>
struct Matrix {
  T* data = nullptr;  // the first element of row 0
  size_t rows = 0;    // number of rows
  size_t cols = 0;    // number of columns
  size_t stride = 0;  // elements from the start of a row to the next

  constexpr Matrix() noexcept = default;
  template <class R, class C, class = IfSizes<R, C>>
  constexpr Matrix(T* data_in, R rows_in, C cols_in) noexcept
      : Matrix(data_in, rows_in, cols_in, cols_in) {}
  template <class R, class C, class S, class = IfSizes<R, C, S>>
  constexpr Matrix(T* data_in, R rows_in, C cols_in, S stride_in) noexcept
      : data(data_in),
        rows(static_cast<size_t>(rows_in)),
        cols(static_cast<size_t>(cols_in)),
        stride(static_cast<size_t>(stride_in)) {}
  // Matrix<float> converts to Matrix<const float>.
  template <class U,
            class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
  constexpr Matrix(const Matrix<U>& other) noexcept  // NOLINT
      : data(other.data),
        rows(other.rows),
        cols(other.cols),
        stride(other.stride) {}

  // Returns the first element of a row.
  constexpr T* Row(size_t row) const noexcept { return data + row * stride; }
  // Returns rows [begin, end) with all columns, for an engine that calls the
  // library from its own loop over threads.
  constexpr Matrix RowRange(size_t begin, size_t end) const noexcept {
    return Matrix(Row(begin), end - begin, cols, stride);
  }
  // Returns columns [begin, end) of all rows, such as one half of a fused
  // gate|up output.
  constexpr Matrix ColRange(size_t begin, size_t end) const noexcept {
    return Matrix(data + begin, rows, end - begin, stride);
  }
};

// A matrix with an element type that is known at run time, for functions that
// accept several types. Each function documents the types of its arguments,
// and returns kInvalidArgument for any other type. A Matrix converts to this
// type. The braces of a Matrix work here, too:
//
//   RouteTopK({{logits, tokens, 128}},
//             {{ids, tokens, 8}, {weights, tokens, 8}})
//
// A Span, or any type with data() and size(), converts to a matrix of one
// row, or to {} if it is empty. In types with blocks (Type::kQ8_0, ...),
// sizes count values, not blocks.
template <class Void>  // void or const void
struct BasicAnyMatrix {
  template <class T>
  using Element = std::conditional_t<std::is_const_v<Void>, const T,
                                     std::remove_const_t<T>>;
  template <class T>
  using IfElement = std::enable_if_t<refused::kTakes<Void, T>>;

  Void* data = nullptr;    // the first element of row 0
  size_t rows = 0;         // number of rows
  size_t cols = 0;         // number of columns
  size_t stride = 0;       // elements from the start of a row to the next
  Type type = Type::kF32;  // the type of an element

  constexpr BasicAnyMatrix() noexcept = default;
  template <class T, class R, class C, class = IfElement<T>,
            class = IfSizes<R, C>>
  constexpr BasicAnyMatrix(T* data_in, R rows_in, C cols_in) noexcept
      : BasicAnyMatrix(data_in, rows_in, cols_in, cols_in) {}
  template <class T, class R, class C, class S, class = IfElement<T>,
            class = IfSizes<R, C, S>>
  constexpr BasicAnyMatrix(T* data_in, R rows_in, C cols_in,
                           S stride_in) noexcept
      : data(data_in),
        rows(static_cast<size_t>(rows_in)),
        cols(static_cast<size_t>(cols_in)),
        stride(static_cast<size_t>(stride_in)),
        type(kType<T>) {}
  template <class T, class = IfElement<T>>
  constexpr BasicAnyMatrix(const Matrix<T>& m) noexcept  // NOLINT
      : BasicAnyMatrix(m.data, m.rows, m.cols, m.stride) {}
  template <class V, class = std::enable_if_t<std::is_convertible_v<V*, Void*>>>
  constexpr BasicAnyMatrix(const BasicAnyMatrix<V>& other) noexcept  // NOLINT
      : data(other.data),
        rows(other.rows),
        cols(other.cols),
        stride(other.stride),
        type(other.type) {}
  // Takes the element type as an argument, for types that are known at run
  // time only (torch, ggml).
  template <class R, class C, class S, class = IfSizes<R, C, S>>
  constexpr BasicAnyMatrix(Void* data_in, Type type_in, R rows_in, C cols_in,
                           S stride_in) noexcept
      : data(data_in),
        rows(static_cast<size_t>(rows_in)),
        cols(static_cast<size_t>(cols_in)),
        stride(static_cast<size_t>(stride_in)),
        type(type_in) {}
  // Makes a matrix of one row.
  template <class T, class = IfElement<T>>
  constexpr BasicAnyMatrix(Span<T> s) noexcept  // NOLINT(runtime/explicit)
      : BasicAnyMatrix(s.size == 0 ? nullptr : s.data, 1, s.size) {}
  template <
      class C,
      class T = std::remove_pointer_t<decltype(std::declval<C&>().data())>,
      class = IfElement<T>, class = decltype(std::declval<C&>().size())>
  constexpr BasicAnyMatrix(C&& container) noexcept  // NOLINT(runtime/explicit)
      : BasicAnyMatrix(Span<T>(container)) {}

  // Returns the same view as a Matrix<T>. T must be the C++ type of `type`,
  // or another type of its size.
  template <class T>
  Matrix<Element<T>> As() const noexcept {
    return {static_cast<Element<T>*>(data), rows, cols, stride};
  }
  // Returns the first element of a row. T follows the rules of As().
  template <class T>
  Element<T>* Row(size_t row) const noexcept {
    return static_cast<Element<T>*>(data) + row * stride;
  }
  // Returns rows [begin, end) with all columns.
  BasicAnyMatrix RowRange(size_t begin, size_t end) const noexcept {
    return Part(begin * stride, end - begin, cols);
  }
  // Returns columns [begin, end) of all rows.
  BasicAnyMatrix ColRange(size_t begin, size_t end) const noexcept {
    return Part(begin, rows, end - begin);
  }

 private:
  template <class T, class... Sizes,
            class = std::enable_if_t<
                sizeof...(Sizes) == 4
                    ? !std::is_convertible_v<T*, Void*>
                    : !(refused::kTakes<Void, T> && sizeof...(Sizes) >= 2 &&
                        sizeof...(Sizes) <= 3 && kAreSizes<Sizes...>)>>
  constexpr BasicAnyMatrix(T*, const Sizes&...) noexcept {
    refused::Matrix<Void, T, Sizes...>();
  }
  // The compiler chooses this constructor if a number stands in the place of
  // a matrix, because the braces around a matrix are missing.
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
  constexpr BasicAnyMatrix(N) noexcept {  // NOLINT(runtime/explicit)
    refused::Matrix<Void, float>();
  }
  template <class V>
  using IfRefused = std::enable_if_t<!refused::kTakes<Void, V>>;
  template <class T, class = IfRefused<T>>
  constexpr BasicAnyMatrix(const Matrix<T>&, T* = nullptr) noexcept {  // NOLINT
    refused::Elements<Void, T>();
  }
  template <class T, class = IfRefused<T>>
  constexpr BasicAnyMatrix(const Span<T>&) noexcept {  // NOLINT
    refused::Elements<Void, T>();
  }
  template <
      class C,
      class T = std::remove_pointer_t<decltype(std::declval<C&>().data())>,
      class = IfRefused<T>, class = decltype(std::declval<C&>().size())>
  constexpr BasicAnyMatrix(C&&, T* = nullptr) noexcept {  // NOLINT
    refused::Elements<Void, T>();
  }
  template <class V,
            class = std::enable_if_t<!std::is_convertible_v<V*, Void*>>>
  constexpr BasicAnyMatrix(const BasicAnyMatrix<V>&, V* = nullptr) noexcept {
    refused::Const<Void, V>();
  }

  BasicAnyMatrix Part(size_t first, size_t rows_in,
                      size_t cols_in) const noexcept {
    using Byte = Element<unsigned char>;
    BasicAnyMatrix part = *this;
    if (data != nullptr) {
      part.data = static_cast<Byte*>(data) + BytesOf(type, first);
    }
    part.rows = rows_in;
    part.cols = cols_in;
    return part;
  }
};
// A matrix that a function writes.
using AnyMatrix = BasicAnyMatrix<void>;
// A matrix that a function only reads.
using ConstAnyMatrix = BasicAnyMatrix<const void>;

// Rows that may be quantised: a matrix of codes, with its scales and sums.
// quantize.h has the formats. A matrix alone converts to rows, for formats
// without scales and sums:
//
//   GatherRows({tokens, pairs, ids}, {{codes, n, hidden}});  // or quantised:
//   GatherRows({tokens, pairs, ids}, {{{codes, n, hidden}, {scales, n, 1}}});
template <class Void>  // void or const void
struct BasicAnyRows : BasicAnyMatrix<Void> {
  using Base = BasicAnyMatrix<Void>;

  Base scales;  // the codes' scales: [rows, 1] or [rows, column groups]
  Base sums;    // optional, for i8 and u8: [rows, 1], sums of a row's codes

  using Base::Base;
  constexpr BasicAnyRows() noexcept = default;
  template <class V, class = std::enable_if_t<std::is_convertible_v<V*, Void*>>>
  constexpr BasicAnyRows(const BasicAnyMatrix<V>& values) noexcept  // NOLINT
      : Base(values) {}
  template <class V, class = std::enable_if_t<std::is_convertible_v<V*, Void*>>>
  constexpr BasicAnyRows(const BasicAnyRows<V>& other) noexcept  // NOLINT
      : Base(other), scales(other.scales), sums(other.sums) {}
  constexpr BasicAnyRows(const Base& values, const Base& scales_in,
                         const Base& sums_in = {}) noexcept
      : Base(values), scales(scales_in), sums(sums_in) {}

  // Returns rows [begin, end) with their scales and sums.
  BasicAnyRows RowRange(size_t begin, size_t end) const noexcept {
    return BasicAnyRows(Base::RowRange(begin, end), Slice(scales, begin, end),
                        Slice(sums, begin, end));
  }

 private:
  static Base Slice(const Base& m, size_t begin, size_t end) noexcept {
    return m.data == nullptr ? m : m.RowRange(begin, end);
  }
};
// Rows that a function writes.
using AnyRows = BasicAnyRows<void>;
// Rows that a function only reads.
using ConstAnyRows = BasicAnyRows<const void>;

}  // namespace switchyard

#endif  // SWITCHYARD_VIEWS_H_
