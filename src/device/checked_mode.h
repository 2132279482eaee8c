// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// What checked mode is to the rest of the device layer, which knows no more of
// it than this: src/device/checked stands on the core, and not the reverse.

#ifndef SWITCHYARD_SRC_DEVICE_CHECKED_MODE_H_
#define SWITCHYARD_SRC_DEVICE_CHECKED_MODE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "switchyard/device/kernel_memory.h"

namespace switchyard::device {

struct Commands;
class GridRunner;

// The rows of a buffer that a dispatch touches as a whole.
struct Rows {
  const void* data;
  size_t rows, row_bytes, stride_bytes;
};

// A queue's; called by the thread that runs its command buffers.
class CheckedMode {
 public:
  virtual ~CheckedMode() = default;

  // Around the dispatches of a command buffer.
  virtual void Begin(const Commands& commands) = 0;
  virtual void End() = 0;
  // Before dispatch `index` looks at anything.
  virtual void BeginDispatch(size_t index) = 0;

  // The dispatch reads or writes `rows`. Returns what is wrong with it or an
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

// Defined in src/device/checked. For schedule_seed see DeviceOptions.
std::unique_ptr<CheckedMode> MakeCheckedMode(uint64_t schedule_seed);

// What memory holds that nothing has written.
inline void FillNeverWritten(void* data, size_t length) {
  const uint32_t word = kernel_internal::kNeverWritten;
  for (size_t i = 0; i < length; i += sizeof(word)) {
    std::memcpy(static_cast<unsigned char*>(data) + i, &word,
                std::min(sizeof(word), length - i));
  }
}

}  // namespace switchyard::device

#endif  // SWITCHYARD_SRC_DEVICE_CHECKED_MODE_H_
