// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Finds the source line of an address in a shared object, with the object's
// .debug_line section (DWARF 2 to 4).

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
  // Reads the bytes of a 64-bit little-endian ELF file. Returns an empty
  // text, or a description of the error in the file; the table is then empty.
  // Throws only std::bad_alloc.
  std::string Read(const unsigned char* bytes, size_t size);
  std::string ReadFile(const std::string& path);

  // Returns the source place of an instruction. `address` is its address in
  // the file, without the base of the loaded module.
  Place Find(uint64_t address) const;
  bool empty() const { return rows_.empty(); }

 private:
  friend class LineProgram;
  struct Row {
    uint64_t address;
    uint32_t file;  // an index into files_
    uint32_t line;  // 0 for code that belongs to no line
    uint32_t column;
    bool end;  // true if the address is the first behind a piece of code
  };
  std::vector<Row> rows_;  // sorted by address
  std::vector<std::string> files_;
};

// Finds source places in a module that is loaded at `base`. The first call of
// PlaceOf() reads the module's file.
class ModulePlaces : public Places {
 public:
  ModulePlaces(std::string path, const void* base,
               std::shared_ptr<const AllowComments> comments);
  // Returns the place of a call. `where` is the call's return address.
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
