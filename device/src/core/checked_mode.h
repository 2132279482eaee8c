// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The interface of checked mode, which is all that the rest of the device layer
// knows of it: device/src/checked stands on the core, and not the reverse.

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

// Ends a threadgroup for something that checked mode has found and noted.
struct EndsThreadgroup : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace kernel_internal

// The rows of a buffer that a dispatch touches as a whole.
struct Rows {
  const void* data;
  size_t rows, row_bytes, stride_bytes;
  size_t element = 4;  // bytes, for texts
};

// A queue's; called by the thread that runs its command buffers.
class CheckedMode {
 public:
  virtual ~CheckedMode() = default;

  // Around the dispatches of a command buffer; Finish() where nothing has
  // thrown.
  virtual void Begin(const Commands& commands) = 0;
  virtual void Finish() = 0;
  virtual void End() = 0;
  // Before dispatch `index` looks at anything.
  virtual void BeginDispatch(size_t index) = 0;
  // The reason why command buffers cannot be checked, or an empty text.
  virtual const std::string& problem() const = 0;
  // The findings since Begin(), and whether the dispatch that has run is the
  // last one to run.
  virtual const std::vector<Finding>& findings() const = 0;
  virtual bool stopped() const = 0;
  virtual std::vector<Finding> TakeFindings() = 0;
  virtual std::vector<NeverWritten> TakeNeverWritten() = 0;

  // The dispatch reads or writes `rows`. Returns why it cannot go on or an
  // empty text; `what` names the rows. It is an error to read a word that
  // nothing has written: any of them, only if all of them are such words, or
  // not at all.
  enum class Fresh { kIgnore, kAnyWord, kAllWords };
  virtual std::string Touch(const char* what, const Rows& rows, bool write,
                            Fresh fresh) = 0;

  // Calls runner.RunOne() for each of the dispatch's `count` threadgroups,
  // until one fails.
  virtual void RunThreadgroups(GridRunner& runner, size_t count) = 0;
  // A kernel that is not checked itself has asked for a binding: it reads or
  // writes all of it. Throws what is wrong with that.
  virtual void NoteBinding(kernel_internal::RunningThread& thread, size_t index,
                           bool only_reads, size_t length) = 0;
};

// Defined in device/src/checked.
std::unique_ptr<CheckedMode> MakeCheckedMode(const DeviceOptions& options);

// Fills memory with the pattern of memory that nothing has written.
inline void FillNeverWritten(void* data, size_t length) {
  const uint32_t word = kernel_internal::kNeverWritten;
  for (size_t i = 0; i < length; i += sizeof(word)) {
    std::memcpy(static_cast<unsigned char*>(data) + i, &word,
                std::min(sizeof(word), length - i));
  }
}

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_CHECKED_MODE_H_
