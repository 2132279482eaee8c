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
  size_t bytes = 0;  // the minimum length of the binding
  size_t alignment = 1;
  bool writes = false;
  // Error messages use this name. It is null if the name is not known.
  const char* name = nullptr;
  bool has_shape = false;
  size_t rows = 0, cols = 0;
};

struct RunningDispatch {
  const Dispatch& dispatch;
  const Size threads;             // size of the whole grid in threads
  const Size threadgroups;        // size of the whole grid in threadgroups
  const Binding* const bindings;  // an array of dispatch.num_bindings elements
  Executor& executor;
  std::vector<int32_t>& scratch;       // belongs to the queue
  CheckedMode* const checked;          // null if not in checked mode
  std::vector<std::string>& warnings;  // belongs to the command buffer
  const EncodedPlace& place;
  std::string error = {};

  bool ok() const { return error.empty(); }
  // Records an error, with the kernel's name before the message. Only the
  // first error is kept.
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
  // Returns the binding. If it is unusable, returns null and stores the
  // reason in *why.
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
  // Returns the label of the bound buffer, or an empty string if it has none.
  std::string LabelOf(size_t index) const;

 private:
  std::string WhyNot(const BindingUse& use) const;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_RUNNING_DISPATCH_H_
