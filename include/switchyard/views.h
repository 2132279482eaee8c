// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Non-owning views. The library never reads or writes a byte outside them and
// asks for no alignment beyond that of the element type.

#ifndef SWITCHYARD_VIEWS_H_
#define SWITCHYARD_VIEWS_H_

#include <cstddef>
#include <type_traits>
#include <utility>

namespace switchyard {

// `size` elements from `data` on. Made from a vector, an array, a std::span or
// anything else that has data() and size().
template <class T>
struct Span {
  T* data = nullptr;
  size_t size = 0;

  constexpr Span() noexcept = default;
  constexpr Span(T* data_in, size_t size_in) noexcept
      : data(data_in), size(size_in) {}
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
};

// `rows` rows of `cols` elements; row r starts at data + r * stride. All in
// elements, stride >= cols. A default-made Matrix is empty (no data).
template <class T>
struct Matrix {
  T* data = nullptr;
  size_t rows = 0;
  size_t cols = 0;
  size_t stride = 0;

  constexpr Matrix() noexcept = default;
  constexpr Matrix(T* data_in, size_t rows_in, size_t cols_in) noexcept
      : data(data_in), rows(rows_in), cols(cols_in), stride(cols_in) {}
  constexpr Matrix(T* data_in, size_t rows_in, size_t cols_in,
                   size_t stride_in) noexcept
      : data(data_in), rows(rows_in), cols(cols_in), stride(stride_in) {}
  // Matrix<float> converts to Matrix<const float>.
  template <class U,
            class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
  constexpr Matrix(const Matrix<U>& other) noexcept  // NOLINT
      : data(other.data),
        rows(other.rows),
        cols(other.cols),
        stride(other.stride) {}

  constexpr T* Row(size_t row) const noexcept { return data + row * stride; }
  // Rows [begin, end), same columns: what an engine's own thread loop passes.
  constexpr Matrix RowRange(size_t begin, size_t end) const noexcept {
    return Matrix(Row(begin), end - begin, cols, stride);
  }
  // Columns [begin, end), same rows: e.g. the halves of a fused gate|up output.
  constexpr Matrix ColRange(size_t begin, size_t end) const noexcept {
    return Matrix(data + begin, rows, end - begin, stride);
  }
};

}  // namespace switchyard

#endif  // SWITCHYARD_VIEWS_H_
