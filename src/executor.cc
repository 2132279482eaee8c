// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/executor.h"

#include <new>

namespace switchyard {
namespace {

class Serial final : public Executor {
 public:
  size_t Concurrency() const noexcept override { return 1; }
  Status ParallelFor(size_t count, size_t /*grain*/, Body body,
                     void* context) noexcept override {
    if (count != 0) body(context, 0, 0, count);
    return Status();
  }
};

}  // namespace

Executor& SerialExecutor() noexcept {
  // The object is never destroyed, so that destructors of other static objects
  // can use it.
  alignas(Serial) static unsigned char storage[sizeof(Serial)];
  static Executor* const serial = new (storage) Serial;
  return *serial;
}

}  // namespace switchyard
