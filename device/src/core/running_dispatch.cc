// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/core/running_dispatch.h"

#include <algorithm>
#include <utility>

#include "device/src/core/pipeline.h"

namespace switchyard::device {

void RunningDispatch::Fail(const std::string& what) {
  if (ok()) error = dispatch.pipeline->name + ": " + what;
}

void RunningDispatch::Warn(const std::string& what) {
  std::string text = dispatch.pipeline->name + ": " + what + place.Text();
  if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) {
    warnings.push_back(std::move(text));
  }
}

void RunningDispatch::GridOverflows() {
  Fail(Format("grid: %zu x %zu x %zu threadgroups overflow", threadgroups.width,
              threadgroups.height, threadgroups.depth));
}

std::string RunningDispatch::LabelOf(size_t index) const {
  const Buffer* const buffer = bindings[index].buffer;
  return buffer == nullptr ? std::string() : buffer->label();
}

std::string RunningDispatch::WhyNot(const BindingUse& use) const {
  std::string what = Format("buffer %zu", use.index);
  if (use.name != nullptr) what += Format(" (%s)", use.name);
  if (!IsBound(use.index)) {
    return what + " is not bound";
  }
  const Binding& binding = bindings[use.index];
  const std::string label = LabelOf(use.index);
  if (!label.empty()) what += " \"" + label + "\"";
  if (binding.length < use.bytes) {
    if (use.has_shape) what += Format(": [%zu, %zu]", use.rows, use.cols);
    return what + Format(" needs %zu bytes, %zu are bound: %zu too few",
                         use.bytes, binding.length, use.bytes - binding.length);
  }
  if (reinterpret_cast<uintptr_t>(binding.data) % use.alignment != 0) {
    return what +
           Format(": its address is not a multiple of %zu", use.alignment);
  }
  return what + " is written, and is read-only";
}

}  // namespace switchyard::device
