// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The source lines of a shared object's code, from its .debug_line (DWARF 2 to
// 4).

#ifndef SWITCHYARD_DEVICE_SRC_METAL_LINE_TABLE_H_
#define SWITCHYARD_DEVICE_SRC_METAL_LINE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/src/core/checked_fibers.h"
#include "device/src/metal/allow_comments.h"

namespace switchyard::device::metal {

class LineTable {
 public:
  // Reads a 64-bit little-endian ELF file as it is on disk. Returns an empty
  // text, or the error in the file; then the table is empty. Throws
  // std::bad_alloc only.
  std::string Read(const unsigned char* bytes, size_t size);
  std::string ReadFile(const std::string& path);

  // The place of the instruction at an address, as the file counts them.
  Place Find(uint64_t address) const;
  bool empty() const { return rows_.empty(); }

 private:
  friend class LineProgram;
  struct Row {
    uint64_t address;
    uint32_t file;  // in files_
    uint32_t line;  // 0: no line is to be blamed
    uint32_t column;
    bool end;  // of a piece of code: the address is the first behind it
  };
  std::vector<Row> rows_;  // by address
  std::vector<std::string> files_;
};

// The places of a module that is loaded at `base`. The file is read when the
// first of them is asked for.
class ModulePlaces : public Places {
 public:
  ModulePlaces(std::string path, const void* base,
               std::shared_ptr<const AllowComments> comments);
  // `where` is where the code returns to from a call: the place of the call.
  Place PlaceOf(const void* where) const override;
  bool Allows(FindingKind kind, const Place& place) const override {
    return comments_->Allows(kind, place);
  }
  bool AllowSameValue() const override { return comments_->NameSameValue(); }

 private:
  const std::string path_;
  const uintptr_t base_;
  const std::shared_ptr<const AllowComments> comments_;
  mutable std::once_flag read_;
  mutable LineTable table_;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_LINE_TABLE_H_
