// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A dispatch while it runs: its grid, its bindings and its error.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_RUNNING_DISPATCH_H_
#define SWITCHYARD_DEVICE_SRC_CORE_RUNNING_DISPATCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/src/core/checked_mode.h"
#include "device/src/core/commands.h"
#include "switchyard/executor.h"
#include "switchyard/status.h"

namespace switchyard::device {

// A kernel's requirements for the binding at an index.
struct BindingUse {
  size_t index = 0;
  size_t bytes = 0;  // minimum length
  size_t alignment = 1;
  bool writes = false;
  // For error messages; name is null if it is not known.
  const char* name = nullptr;
  bool has_shape = false;
  size_t rows = 0, cols = 0;
};

struct RunningDispatch {
  const Dispatch& dispatch;
  const Size threads;             // of the whole grid
  const Size threadgroups;        // of the whole grid
  const Binding* const bindings;  // [dispatch.num_bindings]
  Executor& executor;
  std::vector<int32_t>& scratch;       // the queue's
  CheckedMode* const checked;          // null: not in checked mode
  std::vector<std::string>& warnings;  // the command buffer's
  const EncodedPlace& place;
  std::string error = {};

  bool ok() const { return error.empty(); }
  // Keeps the first message and puts the kernel's name before it.
  void Fail(const std::string& what);
  // Fails with the message and the details of a call.
  void Fail(const Status& status) {
    std::string what = status.message();
    if (*status.details() != '\0') what.append(": ").append(status.details());
    Fail(what);
  }
  void Warn(const std::string& what);
  void GridOverflows();
  bool IsBound(size_t index) const {
    return index < dispatch.num_bindings && bindings[index].data != nullptr;
  }
  // Returns the binding, or null; then *why says why it is unusable.
  const Binding* Find(const BindingUse& use, std::string* why) const {
    if (use.index < dispatch.num_bindings) {
      const Binding& binding = bindings[use.index];
      if (binding.data != nullptr && binding.length >= use.bytes &&
          reinterpret_cast<uintptr_t>(binding.data) % use.alignment == 0 &&
          !(use.writes && binding.read_only)) {
        return &binding;
      }
    }
    *why = WhyNot(use);
    return nullptr;
  }
  // The label of the bound buffer; empty if it has none.
  std::string LabelOf(size_t index) const;

 private:
  std::string WhyNot(const BindingUse& use) const;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_RUNNING_DISPATCH_H_
