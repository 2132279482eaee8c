// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Reads the values of buffers from the arguments of `swy metal run`.

#ifndef SWITCHYARD_DEVICE_TOOLS_METAL_DATA_H_
#define SWITCHYARD_DEVICE_TOOLS_METAL_DATA_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "switchyard/device/library.h"

namespace swy {

// A type of elements. Values are long doubles, which hold the values of all
// types exactly.
struct ScalarType {
  const char* name;   // "f32"
  const char* metal;  // "float"; null if Metal does not have the type
  const char* numpy;  // "f4"; null if NumPy does not have the type
  switchyard::device::DataType data_type;
  size_t bytes;
  bool is_integer;
  long double lowest, highest;  // the range of an integer type
  double rtol;  // as in torch.testing.assert_close; 0 if values must be equal
  long double (*read)(const unsigned char* from);
  void (*write)(long double value, unsigned char* to);
};
// Returns the type with this name, or null.
const ScalarType* FindType(const std::string& name);
// Returns the type with this name in Metal, or null.
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
  // The parts of the data in their order. A struct with values of several
  // types has a piece for each type.
  std::vector<Piece> pieces;
  std::vector<unsigned char> bytes;
  bool is_written = true;  // false if the host leaves the buffer unwritten

  size_t count() const;
  // Returns element i of a buffer that begins at `from` and has these pieces.
  Element At(const unsigned char* from, size_t i) const;
};

// Reads data from "FILE.npy" or "TYPE:..."; --help explains the forms. Error
// messages begin with `where`. Each `stream` gives a different sequence of
// random values. Throws InputError.
Data ReadData(const std::string& where, const std::string& spec,
              uint32_t stream);
// The text for --help that explains the forms.
extern const char kDataHelp[];

// Returns the value in the text. Throws InputError unless the whole text is a
// value of this type.
long double ReadNumber(const std::string& where, const ScalarType& type,
                       const std::string& text);

// Returns the bytes of a regular file. Throws InputError if it can't be read.
std::vector<unsigned char> ReadBytes(const std::string& where,
                                     const std::string& path);

}  // namespace swy

#endif  // SWITCHYARD_DEVICE_TOOLS_METAL_DATA_H_
