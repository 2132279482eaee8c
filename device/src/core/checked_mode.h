// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The interface of checked mode. The rest of the device layer knows only this
// header: device/src/checked depends on the core, not the reverse.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_CHECKED_MODE_H_
#define SWITCHYARD_DEVICE_SRC_CORE_CHECKED_MODE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "switchyard/device/findings.h"
#include "switchyard/device/kernel_memory.h"

namespace switchyard::device {

struct Commands;
struct DeviceOptions;
class GridRunner;

namespace kernel_internal {

// Thrown to end a threadgroup after checked mode has recorded a finding.
struct EndsThreadgroup : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace kernel_internal

// Rows of a buffer. A dispatch reads or writes each row as a whole.
struct Rows {
  const void* data;
  size_t rows, row_bytes, stride_bytes;
  size_t element = 4;  // the element size in bytes; messages use it
};

// Each queue in checked mode has one object of this class. Only the thread
// that runs the queue's command buffers calls it.
class CheckedMode {
 public:
  virtual ~CheckedMode() = default;

  // Begin() and End() enclose the dispatches of a command buffer. Finish()
  // comes before End(), unless a dispatch has thrown.
  virtual void Begin(const Commands& commands) = 0;
  virtual void Finish() = 0;
  virtual void End() = 0;
  // Called before dispatch `index` reads any memory.
  virtual void BeginDispatch(size_t index) = 0;
  // Returns the reason why command buffers cannot be checked, or an empty
  // string.
  virtual const std::string& problem() const = 0;
  // Returns the findings since Begin().
  virtual const std::vector<Finding>& findings() const = 0;
  // True if no further dispatch of the command buffer may run.
  virtual bool stopped() const = 0;
  virtual std::vector<Finding> TakeFindings() = 0;
  virtual std::vector<NeverWritten> TakeNeverWritten() = 0;

  // Notes that the dispatch reads or writes `rows`; `what` names them.
  // Returns an error if the dispatch cannot continue, or an empty string.
  // `fresh` says whether a read of never written memory is an error: never
  // (kIgnore), if any word of `rows` was never written (kAnyWord), or only if
  // all words were never written (kAllWords).
  enum class Fresh { kIgnore, kAnyWord, kAllWords };
  virtual std::string Touch(const char* what, const Rows& rows, bool write,
                            Fresh fresh) = 0;

  // Calls runner.RunOne() for each of the dispatch's `count` threadgroups,
  // until one fails.
  virtual void RunThreadgroups(GridRunner& runner, size_t count) = 0;
  // Notes that a kernel without checked code has asked for a binding: the
  // whole binding counts as read or written. Throws if this conflicts with
  // another access.
  virtual void NoteBinding(kernel_internal::RunningThread& thread, size_t index,
                           bool only_reads, size_t length) = 0;
};

// Defined in device/src/checked.
std::unique_ptr<CheckedMode> MakeCheckedMode(const DeviceOptions& options);

// Fills memory with the pattern that marks it as never written.
inline void FillNeverWritten(void* data, size_t length) {
  const uint32_t word = kernel_internal::kNeverWritten;
  for (size_t i = 0; i < length; i += sizeof(word)) {
    std::memcpy(static_cast<unsigned char*>(data) + i, &word,
                std::min(sizeof(word), length - i));
  }
}

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_CHECKED_MODE_H_
