// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Scratch memory of a call. The thread keeps the memory for its next call, up
// to a limit.

#ifndef SWITCHYARD_PYTHON_WORKSPACE_H_
#define SWITCHYARD_PYTHON_WORKSPACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "switchyard/views.h"

namespace switchyard {
namespace python {

// Return and set the limit, in bytes, of the memory that a thread keeps for
// each Workspace::Kind. When a call ends, larger memory is freed as a whole.
size_t KeptBytes();
void SetKeptBytes(size_t bytes);

struct FreeBytes {
  void operator()(void* data) const;
};
using Bytes = std::unique_ptr<void, FreeBytes>;

class Workspace {
 public:
  // The kinds of memory that one call uses at the same time.
  enum Kind { kPlan, kRows };

  Workspace(Kind kind, size_t count);  // throws std::bad_alloc
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();

  Span<int32_t> ints() const {
    return {static_cast<int32_t*>(bytes_.get()), count_};
  }

 private:
  const Kind kind_;
  const size_t count_;
  Bytes bytes_;
  size_t size_;
};

}  // namespace python
}  // namespace switchyard

#endif  // SWITCHYARD_PYTHON_WORKSPACE_H_
