// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Scratch of a call, kept by the thread for its next one up to a limit.

#ifndef SWITCHYARD_PYTHON_WORKSPACE_H_
#define SWITCHYARD_PYTHON_WORKSPACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "switchyard/types.h"
#include "switchyard/views.h"

namespace switchyard {
namespace python {

// Bytes of each kind that a thread keeps; what a call needs beyond is given
// back behind it.
size_t KeptBytes();
void SetKeptBytes(size_t bytes);

struct FreeBytes {
  void operator()(void* data) const;
};
using Bytes = std::unique_ptr<void, FreeBytes>;

// Asked twice for the same pieces in the same order: first it adds up, then,
// after Allocate(), it hands out.
class Workspace {
 public:
  // The kinds of memory that a call has at the same time.
  enum Kind { kIntegers, kRows };
  explicit Workspace(Kind kind) : kind_(kind) {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();

  void Allocate();  // throws std::bad_alloc

  void* Take(size_t bytes);
  Span<int32_t> Ints(size_t count) {
    return {static_cast<int32_t*>(Take(count * sizeof(int32_t))), count};
  }
  AnyMatrix Rows(Type type, size_t rows, size_t cols) {
    return AnyMatrix(Take(BytesOf(type, rows * cols)), type, rows, cols, cols);
  }

 private:
  Kind kind_;
  Bytes bytes_;
  size_t size_ = 0;
  size_t used_ = 0;
};

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_WORKSPACE_H_
