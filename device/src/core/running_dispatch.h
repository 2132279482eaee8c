// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A dispatch while it runs: its grid and bindings, and the error it ends with.

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

// A kernel's demands on the binding at an index.
struct BindingUse {
  size_t index = 0;
  size_t bytes = 0;  // at least
  size_t alignment = 1;
  bool writes = false;
  // For the texts of errors, where they are known:
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
  // Keeps the first text, after the kernel's name.
  void Fail(const std::string& what);
  // The message of a call, with its numbers.
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
  // The binding, or null and in *why what keeps it from serving.
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
  // The label of the buffer that is bound, if it has one.
  std::string LabelOf(size_t index) const;

 private:
  std::string WhyNot(const BindingUse& use) const;
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_RUNNING_DISPATCH_H_
