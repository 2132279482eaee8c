// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Reads buffer values from the arguments of `swy metal run`.

#ifndef SWITCHYARD_DEVICE_TOOLS_METAL_DATA_H_
#define SWITCHYARD_DEVICE_TOOLS_METAL_DATA_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "switchyard/device/library.h"

namespace swy {

// An element type. Values are long doubles, which hold all of them exactly.
struct ScalarType {
  const char* name;   // "f32"
  const char* metal;  // "float"; null: not in Metal
  const char* numpy;  // "f4"; null: not in NumPy
  switchyard::device::DataType data_type;
  size_t bytes;
  bool is_integer;
  long double lowest, highest;  // for integers
  double rtol;  // like torch.testing.assert_close; 0: must be equal
  long double (*read)(const unsigned char* from);
  void (*write)(long double value, unsigned char* to);
};
// Returns null if no type has this name.
const ScalarType* FindType(const std::string& name);
// Finds a type by its Metal name. Returns null if no type has it.
const ScalarType* FindMetalType(const std::string& name);

struct Data {
  struct Piece {
    const ScalarType* type;
    size_t count;
  };
  struct Element {
    const ScalarType* type;
    const unsigned char* bytes;

    long double value() const { return type->read(bytes); }
    std::string text() const;
  };
  // A struct with several types has one piece for each, in order.
  std::vector<Piece> pieces;
  std::vector<unsigned char> bytes;
  bool is_written = true;  // false: the host has not written it

  size_t count() const;
  // Element i of a buffer with these pieces that begins at `from`.
  Element At(const unsigned char* from, size_t i) const;
};

// Reads "FILE.npy" or "TYPE:..."; --help explains the forms. Messages begin
// with `where`. Random values depend on `stream`. Throws InputError.
Data ReadData(const std::string& where, const std::string& spec,
              uint32_t stream);
// The description of the forms, for --help.
extern const char kDataHelp[];

// Throws InputError unless the whole text is a value of this type.
long double ReadNumber(const std::string& where, const ScalarType& type,
                       const std::string& text);

// Reads a regular file. Throws InputError.
std::vector<unsigned char> ReadBytes(const std::string& where,
                                     const std::string& path);

}  // namespace swy

#endif  // SWITCHYARD_DEVICE_TOOLS_METAL_DATA_H_
