// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A dispatch being executed, as its kernel sees it: bindings and the grid in,
// views and an error out.

#ifndef SWITCHYARD_SRC_DEVICE_CALL_H_
#define SWITCHYARD_SRC_DEVICE_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/device/checked/checker.h"
#include "src/device/commands.h"
#include "src/device/pipeline.h"
#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"

namespace switchyard {
namespace device {

// The rows and columns that a grid covers.
struct Part {
  size_t rows = 0;
  size_t cols = 0;

  template <class T>
  Matrix<T> operator()(const Matrix<T>& all) const {
    return all.RowRange(0, rows).ColRange(0, cols);
  }
};

// A kernel asks for all it needs, then looks at ok() once: after the first
// failure every accessor returns zeros and empty views.
class Call {
 public:
  Call(const Dispatch& d, Size all_threads, Size all_threadgroups,
       const Binding* bound, Executor& pool, std::vector<int32_t>& reused,
       kernel_internal::Checker* check)
      : threads(all_threads),
        threadgroups(all_threadgroups),
        dispatch(d),
        bindings(bound),
        executor(pool),
        scratch(reused),
        checker(check) {}

  const Size threads;       // of the whole grid
  const Size threadgroups;  // of the whole grid
  const Dispatch& dispatch;
  const Binding* const bindings;  // [dispatch.num_bindings]
  Executor& executor;
  std::vector<int32_t>& scratch;
  kernel_internal::Checker* const checker;  // null: not in checked mode

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  // Keeps the first text, after the kernel's name.
  void Fail(const std::string& what);
  // Of the plain API.
  void Finish(const Status& status) {
    if (!status.ok()) Fail(status.message());
  }

  template <class P>
  P Params(size_t index) {
    P params = {};
    CopyParams(index, sizeof(P), &params);
    return params;
  }
  void GridOverflows();
  // A dimension of the parameter struct.
  size_t Dim(const char* name, int64_t value);

  // [rows, cols] elements at the binding's offset.
  template <class T>
  Matrix<const T> In(size_t index, const char* name, size_t rows, size_t cols) {
    return {
        static_cast<const T*>(Bound(index, name, rows, cols, sizeof(T), false)),
        rows, cols};
  }
  template <class T>
  Matrix<T> Out(size_t index, const char* name, size_t rows, size_t cols) {
    return {static_cast<T*>(Bound(index, name, rows, cols, sizeof(T), true)),
            rows, cols};
  }

  // What of a buffer is read or written, to be told before it is; looked at in
  // checked mode only.
  template <class T>
  void Reads(size_t index, const Matrix<T>& m) {
    if (checker != nullptr) Touch(index, kernel_internal::Rows::Of(m), false);
  }
  template <class T>
  void Writes(size_t index, const Matrix<T>& m) {
    if (checker != nullptr) Touch(index, kernel_internal::Rows::Of(m), true);
  }

  // One threadgroup of `width` threads per row: how many of `rows` there are.
  size_t RowPerThreadgroup(size_t width, size_t rows);
  // The same, where more than one threadgroup would race on Metal.
  void OneThreadgroup(size_t width);
  // Threadgroups of 256 columns in x and one row in y.
  Part ColumnTiles(size_t rows, size_t cols);
  // The same for a kernel of one row, which would race with itself on Metal if
  // there were more threadgroups in y.
  Part ColumnTiles(size_t cols);

 private:
  void Touch(size_t index, const kernel_internal::Rows& rows, bool write,
             bool params = false);
  void CopyParams(size_t index, size_t length, void* to);
  void* Bound(size_t index, const char* name, size_t rows, size_t cols,
              size_t element, bool write);
  void ThreadsPerThreadgroup(size_t width);
  // Threadgroups in a dimension that the kernel does not look at.
  void OnlyOne(const char* dimension, size_t count);

  std::string error_;
  const char* names_[kMaxBufferBindings] = {};
};

}  // namespace device
}  // namespace switchyard

#endif  // SWITCHYARD_SRC_DEVICE_CALL_H_
