// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Values for buffers of `swy metal run`, as its arguments spell them.

#ifndef SWITCHYARD_DEVICE_TOOLS_METAL_DATA_H_
#define SWITCHYARD_DEVICE_TOOLS_METAL_DATA_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "switchyard/device/library.h"

namespace swy {

// A type of elements. Values are long doubles, which hold all of them exactly.
struct ScalarType {
  const char* name;   // "f32"
  const char* metal;  // "float"; null: Metal has none
  const char* numpy;  // "f4"; null: NumPy has none
  switchyard::device::DataType data_type;
  size_t bytes;
  bool is_integer;
  long double lowest, highest;  // of integers
  double rtol;  // torch.testing.assert_close's; 0: has to be equal
  long double (*read)(const unsigned char* from);
  void (*write)(long double value, unsigned char* to);
};
// Null if there is none of that name.
const ScalarType* FindType(const std::string& name);
// MSL's name. Null as above.
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
  // A struct of several types has several, one behind the other.
  std::vector<Piece> pieces;
  std::vector<unsigned char> bytes;
  bool is_written = true;  // false: nothing has written it yet

  size_t count() const;
  // Element i of what such data became, which begins at `from`.
  Element At(const unsigned char* from, size_t i) const;
};

// Reads "FILE.npy" or "TYPE:...": --help explains it. `where` begins messages.
// Random values differ from `stream` to `stream`. Throws InputError.
Data ReadData(const std::string& where, const std::string& spec,
              uint32_t stream);
// The lines for --help.
extern const char kDataHelp[];

// Throws InputError unless all of the text is a value of that type.
long double ReadNumber(const std::string& where, const ScalarType& type,
                       const std::string& text);

// A regular file. Throws InputError.
std::vector<unsigned char> ReadBytes(const std::string& where,
                                     const std::string& path);

}  // namespace swy

#endif  // SWITCHYARD_DEVICE_TOOLS_METAL_DATA_H_
