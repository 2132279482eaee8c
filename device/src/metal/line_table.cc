// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/line_table.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace switchyard::device::metal {
namespace {

// Reads bytes from front to back. Reading beyond the end gives 0, and from
// then on ok() is false.
class ByteReader {
 public:
  ByteReader() = default;
  ByteReader(const unsigned char* begin, size_t size)
      : at_(begin), end_(begin + size) {}

  bool ok() const { return ok_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  // Returns a reader for the next `size` bytes, or for the remaining bytes if
  // there are fewer.
  ByteReader Take(uint64_t size) {
    if (size > left()) {
      ok_ = false;
      size = left();
    }
    const ByteReader part(at_, static_cast<size_t>(size));
    at_ += size;
    return part;
  }
  template <class T>
  T Get() {
    T value = T();
    if (sizeof(T) > left()) {
      ok_ = false;
      at_ = end_;
    } else {
      std::memcpy(&value, at_, sizeof(T));
      at_ += sizeof(T);
    }
    return value;
  }
  uint64_t Unsigned(size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value |= uint64_t{Get<uint8_t>()} << (8 * i % 64);
    }
    return value;
  }
  uint64_t Leb() { return Leb128(false); }
  // Returns a signed number in two's complement. The caller adds it with
  // wraparound.
  uint64_t SignedLeb() { return Leb128(true); }
  std::string Text() {
    const void* const nul = std::memchr(at_, 0, left());
    if (nul == nullptr) {
      ok_ = false;
      at_ = end_;
      return std::string();
    }
    const unsigned char* const begin = at_;
    at_ = static_cast<const unsigned char*>(nul) + 1;
    return std::string(reinterpret_cast<const char*>(begin),
                       static_cast<size_t>(at_ - begin - 1));
  }

 private:
  uint64_t Leb128(bool is_signed) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint64_t byte = Get<uint8_t>();
      if (shift < 64) value |= (byte & 0x7F) << shift;
      if ((byte & 0x80) != 0) continue;
      if (is_signed && (byte & 0x40) != 0 && shift + 7 < 64) {
        value |= ~uint64_t{0} << (shift + 7);
      }
      return value;
    }
  }

  const unsigned char* at_ = nullptr;
  const unsigned char* end_ = nullptr;
  bool ok_ = true;
};

struct Sections {
  ByteReader lines;
  // The begin and end addresses of the parts of the file that hold code.
  std::vector<std::pair<uint64_t, uint64_t>> code;
};

std::string FindSections(const unsigned char* bytes, size_t size,
                         Sections* found) {
  Elf64_Ehdr header;
  if (size < sizeof(header)) return "too short for an ELF file";
  std::memcpy(&header, bytes, sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_shentsize != sizeof(Elf64_Shdr)) {
    return "no 64-bit little-endian ELF file";
  }
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  const size_t length = sections.size() * sizeof(Elf64_Shdr);
  if (header.e_shoff > size || length > size - header.e_shoff ||
      header.e_shstrndx >= sections.size()) {
    return "its sections are not all there";
  }
  std::memcpy(sections.data(), bytes + header.e_shoff, length);
  const auto contents = [&](const Elf64_Shdr& s, ByteReader* reader) {
    if (s.sh_offset > size || s.sh_size > size - s.sh_offset) return false;
    *reader = ByteReader(bytes + s.sh_offset, static_cast<size_t>(s.sh_size));
    return true;
  };
  ByteReader names;
  if (!contents(sections[header.e_shstrndx], &names)) {
    return "its sections' names are not all there";
  }
  for (const Elf64_Shdr& section : sections) {
    if ((section.sh_flags & SHF_EXECINSTR) != 0 &&
        section.sh_addr + section.sh_size > section.sh_addr) {
      found->code.emplace_back(section.sh_addr,
                               section.sh_addr + section.sh_size);
    }
    ByteReader name = names;
    name.Take(section.sh_name);
    if (section.sh_type == SHT_NOBITS || name.Text() != ".debug_line") continue;
    if ((section.sh_flags & SHF_COMPRESSED) != 0) {
      return "its .debug_line is compressed";
    }
    if (!contents(section, &found->lines)) return "its .debug_line is cut off";
    return std::string();
  }
  return "it has no .debug_line";
}

}  // namespace

// Runs the line-number program of one compilation unit in .debug_line.
class LineProgram {
 public:
  LineProgram(const Sections& sections, LineTable* table)
      : sections_(sections), table_(table) {}

  std::string Run(ByteReader unit, size_t offset_bytes) {
    const uint16_t version = unit.Get<uint16_t>();
    if (version < 2 || version > 4) {
      return "its .debug_line has version " + std::to_string(version);
    }
    ByteReader header = unit.Take(unit.Unsigned(offset_bytes));
    min_length_ = header.Get<uint8_t>();
    // Skips maximum_operations_per_instruction.
    if (version >= 4) header.Get<uint8_t>();
    header.Get<uint8_t>();  // skips default_is_stmt
    line_base_ = header.Get<int8_t>();
    line_range_ = header.Get<uint8_t>();
    opcode_base_ = header.Get<uint8_t>();
    lengths_.clear();
    for (unsigned i = 1; i < opcode_base_; ++i) {
      lengths_.push_back(header.Get<uint8_t>());
    }
    // Folder 0 is the one where the compiler ran.
    folders_.assign(1, std::string());
    for (std::string s = header.Text(); !s.empty(); s = header.Text()) {
      folders_.push_back(s);
    }
    files_.assign(1, NewFile(std::string()));
    for (std::string s = header.Text(); !s.empty(); s = header.Text()) {
      AddFile(s, &header);
    }
    if (!header.ok() || !unit.ok() || line_range_ == 0 || opcode_base_ == 0) {
      return "the header of its .debug_line is broken";
    }
    Start();
    while (unit.left() != 0) Step(&unit);
    return unit.ok() ? std::string() : "its .debug_line is broken";
  }

 private:
  uint32_t NewFile(const std::string& name) {
    table_->files_.push_back(name);
    return static_cast<uint32_t>(table_->files_.size() - 1);
  }
  void AddFile(std::string name, ByteReader* reader) {
    const uint64_t folder = reader->Leb();
    reader->Leb();  // skips the time of the last change
    reader->Leb();  // skips the size
    if (name[0] != '/' && folder < folders_.size() &&
        !folders_[folder].empty()) {
      name = folders_[folder] + "/" + name;
    }
    files_.push_back(NewFile(name));
  }
  void Start() {
    address_ = 0;
    file_ = line_ = 1;
    column_ = 0;
    begin_ = table_->rows_.size();
  }
  void Emit(bool end) {
    const size_t file = file_ < files_.size() ? files_[file_] : files_[0];
    table_->rows_.push_back({address_, static_cast<uint32_t>(file),
                             static_cast<uint32_t>(line_),
                             static_cast<uint32_t>(column_), end});
  }
  void Advance(uint64_t operations) { address_ += operations * min_length_; }
  void Special(uint8_t opcode) {
    const unsigned adjusted = opcode - unsigned{opcode_base_};
    Advance(adjusted / line_range_);
    line_ += static_cast<uint64_t>(int64_t{line_base_} +
                                   int64_t{adjusted % line_range_});
    Emit(false);
  }
  // Ends a piece of code. If the linker has left the piece out, the piece's
  // address is outside of all sections with code. Its rows are then dropped.
  void EndPiece() {
    Emit(true);
    std::vector<LineTable::Row>& rows = table_->rows_;
    const uint64_t first = rows[begin_].address;
    const bool is_code = std::any_of(
        sections_.code.begin(), sections_.code.end(), [&](const auto& range) {
          return first >= range.first && first < range.second;
        });
    if (!is_code) rows.resize(begin_);
    Start();
  }
  void Extended(ByteReader* unit) {
    ByteReader operands = unit->Take(unit->Leb());
    const uint8_t opcode = operands.Get<uint8_t>();
    if (opcode == 1) {
      EndPiece();
    } else if (opcode == 2) {
      address_ = operands.Unsigned(std::min<size_t>(8, operands.left()));
    } else if (opcode == 3) {
      AddFile(operands.Text(), &operands);
    }
  }
  void Step(ByteReader* unit) {
    const uint8_t opcode = unit->Get<uint8_t>();
    if (opcode >= opcode_base_) return Special(opcode);
    switch (opcode) {
      case 0:
        return Extended(unit);
      case 1:
        return Emit(false);
      case 2:
        return Advance(unit->Leb());
      case 3:
        line_ += unit->SignedLeb();
        return;
      case 4:
        file_ = unit->Leb();
        return;
      case 5:
        column_ = unit->Leb();
        return;
      case 8:
        return Advance((255u - opcode_base_) / line_range_);
      case 9:
        address_ += unit->Get<uint16_t>();
        return;
      default:  // an unknown opcode, or one that is not needed here
        for (unsigned i = 0; i < lengths_[opcode - 1u]; ++i) unit->Leb();
    }
  }

  const Sections& sections_;
  LineTable* const table_;
  uint8_t min_length_ = 1, line_range_ = 1, opcode_base_ = 1;
  int8_t line_base_ = 0;
  // The number of operands of each standard opcode.
  std::vector<uint8_t> lengths_;
  std::vector<std::string> folders_;
  // For each file of the compilation unit, its index in the table's files_.
  std::vector<uint32_t> files_;
  // These are the registers of DWARF's line-number machine.
  uint64_t address_ = 0, file_ = 1, line_ = 1, column_ = 0;
  size_t begin_ = 0;  // the index in the table of the piece's first row
};

std::string LineTable::Read(const unsigned char* bytes, size_t size) {
  rows_.clear();
  files_.clear();
  Sections sections;
  std::string error = FindSections(bytes, size, &sections);
  ByteReader lines = sections.lines;
  while (error.empty() && lines.left() != 0) {
    uint64_t length = lines.Get<uint32_t>();
    const bool is_long = length == 0xFFFFFFFFu;
    if (is_long) length = lines.Get<uint64_t>();
    const ByteReader unit = lines.Take(length);
    error = lines.ok() ? LineProgram(sections, this).Run(unit, is_long ? 8 : 4)
                       : "its .debug_line is cut off";
  }
  if (!error.empty()) {
    rows_.clear();
    files_.clear();
    return error;
  }
  // At an address where one piece of code ends and another begins, the row
  // that ends a piece comes first.
  std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
    return a.address != b.address ? a.address < b.address : a.end && !b.end;
  });
  return error;
}

std::string LineTable::ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)),
                                std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) return "cannot be read";
  return Read(reinterpret_cast<const unsigned char*>(bytes.data()),
              bytes.size());
}

Place LineTable::Find(uint64_t address) const {
  auto row = std::upper_bound(
      rows_.begin(), rows_.end(), address,
      [](uint64_t value, const Row& r) { return value < r.address; });
  // Finds the last row in this piece of code that has a line.
  while (row != rows_.begin()) {
    --row;
    if (row->end) break;
    if (row->line != 0) return {files_[row->file], row->line, row->column};
  }
  return Place();
}

ModulePlaces::ModulePlaces(std::string path, const void* base,
                           std::shared_ptr<const AllowComments> comments)
    : path_(std::move(path)),
      base_(reinterpret_cast<uintptr_t>(base)),
      comments_(std::move(comments)) {}

Place ModulePlaces::PlaceOf(const void* where) const {
  std::call_once(read_, [this] { table_.ReadFile(path_); });
  const uintptr_t address = reinterpret_cast<uintptr_t>(where);
  return address <= base_ ? Place() : table_.Find(address - base_ - 1);
}

}  // namespace switchyard::device::metal
