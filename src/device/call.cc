// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/device/call.h"

#include <algorithm>
#include <cstring>

namespace switchyard {
namespace device {

namespace {

constexpr size_t kTileColumns = 256;

}  // namespace

void Call::Fail(const std::string& what) {
  if (ok()) error_ = dispatch.pipeline->name + ": " + what;
}

void Call::GridOverflows() {
  Fail(Format("grid: %zu x %zu x %zu threadgroups overflow", threadgroups.width,
              threadgroups.height, threadgroups.depth));
}

size_t Call::Dim(const char* name, int64_t value) {
  if (value < 0) {
    Fail(Format("params: %s is negative (%lld)", name,
                static_cast<long long>(value)));
  } else if (value > INT32_MAX) {
    // On Metal these are unsigned, and products of them wrap.
    Fail(Format("params: %s is above 2^31 - 1 (%lld)", name,
                static_cast<long long>(value)));
  }
  return ok() ? static_cast<size_t>(value) : 0;
}

void Call::CopyParams(size_t index, size_t length, void* to) {
  const void* const from = Bound(index, "params", 1, length, 1, false);
  if (!ok()) return;
  std::memcpy(to, from, length);
  if (checker != nullptr) Touch(index, {from, 1, length, length}, false, true);
}

void Call::Touch(size_t index, const kernel_internal::Rows& rows, bool write,
                 bool params) {
  using Fresh = kernel_internal::Checker::Fresh;
  if (!ok()) return;
  Fresh fresh = Fresh::kIgnore;
  if (bindings[index].fresh && !write) {
    // Padding in a struct may never be written.
    fresh = params ? Fresh::kAllWords : Fresh::kAnyWord;
  }
  const std::string what = Format("buffer %zu (%s)", index, names_[index]);
  const std::string error = checker->Touch(what.c_str(), rows, write, fresh);
  if (!error.empty()) Fail(error);
}

void* Call::Bound(size_t index, const char* name, size_t rows, size_t cols,
                  size_t element, bool write) {
  if (!ok()) return nullptr;
  size_t needed = 0;
  if (__builtin_mul_overflow(rows, cols, &needed) ||
      __builtin_mul_overflow(needed, element, &needed)) {
    Fail(Format("buffer %zu (%s): [%zu, %zu] overflows the address space",
                index, name, rows, cols));
    return nullptr;
  }
  if (index >= dispatch.num_bindings || bindings[index].data == nullptr) {
    Fail(Format("buffer %zu (%s) is not bound", index, name));
    return nullptr;
  }
  const Binding& binding = bindings[index];
  if (binding.length < needed) {
    Fail(
        Format("buffer %zu (%s): [%zu, %zu] needs %zu bytes, %zu are bound: %zu"
               " too few",
               index, name, rows, cols, needed, binding.length,
               needed - binding.length));
  } else if (element > 1 &&
             reinterpret_cast<uintptr_t>(binding.data) % element != 0) {
    Fail(Format("buffer %zu (%s): its address is not a multiple of %zu", index,
                name, element));
  } else if (write && binding.read_only) {
    Fail(Format("buffer %zu (%s) is written, and is read-only", index, name));
  }
  names_[index] = name;
  return ok() ? binding.data : nullptr;
}

void Call::ThreadsPerThreadgroup(size_t width) {
  const Size given = dispatch.ThreadsPerThreadgroup();
  if (given.width != width || given.height != 1 || given.depth != 1) {
    Fail(Format("threadsPerThreadgroup: %zu x %zu x %zu, has to be %zu x 1 x 1",
                given.width, given.height, given.depth, width));
  }
}

void Call::OnlyOne(const char* dimension, size_t count) {
  if (count != 1) {
    Fail(Format("grid: %s is %zu, has to be 1", dimension, count));
  }
}

size_t Call::RowPerThreadgroup(size_t width, size_t rows) {
  ThreadsPerThreadgroup(width);
  OnlyOne("height", threadgroups.height);
  OnlyOne("depth", threadgroups.depth);
  if (threads.width % width != 0) {
    Fail(Format("grid: %zu threads leave a threadgroup of %zu short",
                threads.width, width));
  }
  return std::min(threadgroups.width, rows);
}

void Call::OneThreadgroup(size_t width) {
  RowPerThreadgroup(width, 1);
  OnlyOne("width", threadgroups.width);
}

Part Call::ColumnTiles(size_t rows, size_t cols) {
  ThreadsPerThreadgroup(kTileColumns);
  OnlyOne("depth", threadgroups.depth);
  return {std::min(threadgroups.height, rows), std::min(threads.width, cols)};
}

Part Call::ColumnTiles(size_t cols) {
  OnlyOne("height", threadgroups.height);
  return ColumnTiles(1, cols);
}

}  // namespace device
}  // namespace switchyard
