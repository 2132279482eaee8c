// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/tools/metal_data.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <type_traits>

#include "programs/hash_uniform.h"
#include "programs/program.h"
#include "switchyard/device/kernel_types.h"

namespace swy {
namespace {

namespace fs = std::filesystem;
namespace MTL = switchyard::device;

using program::InputError;
using Bytes = std::vector<unsigned char>;

constexpr uint64_t kMaxBytes = uint64_t{1} << 32;

template <class T>
long double Read(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<long double>(value);
  } else {
    return static_cast<long double>(static_cast<float>(value));
  }
}

template <class T>
void Write(long double value, unsigned char* to) {
  const T written = [&] {
    if constexpr (std::is_arithmetic_v<T>)
      return static_cast<T>(value);
    else
      return T(static_cast<float>(value));
  }();
  std::memcpy(to, &written, sizeof(written));
}

template <class T>
constexpr ScalarType Type(const char* name, const char* metal,
                          const char* numpy, MTL::DataType data_type,
                          double rtol = 0.0) {
  using Limits = std::numeric_limits<T>;
  const bool is_integer = std::is_integral_v<T>;
  return {name,
          metal,
          numpy,
          data_type,
          sizeof(T),
          is_integer,
          is_integer ? static_cast<long double>(Limits::lowest()) : 0,
          is_integer ? static_cast<long double>(Limits::max()) : 0,
          rtol,
          Read<T>,
          Write<T>};
}

constexpr ScalarType kTypes[] = {
    Type<float>("f32", "float", "f4", MTL::DataTypeFloat, 1.3e-6),
    Type<MTL::half>("f16", "half", "f2", MTL::DataTypeHalf, 1e-3),
    Type<MTL::bfloat>("bf16", "bfloat", nullptr, MTL::DataTypeBFloat, 1.6e-2),
    Type<int8_t>("i8", "char", "i1", MTL::DataTypeChar),
    Type<uint8_t>("u8", "uchar", "u1", MTL::DataTypeUChar),
    Type<int16_t>("i16", "short", "i2", MTL::DataTypeShort),
    Type<uint16_t>("u16", "ushort", "u2", MTL::DataTypeUShort),
    Type<int32_t>("i32", "int", "i4", MTL::DataTypeInt),
    Type<uint32_t>("u32", "uint", "u4", MTL::DataTypeUInt),
    Type<int64_t>("i64", "long", "i8", MTL::DataTypeLong),
    Type<uint64_t>("u64", "ulong", "u8", MTL::DataTypeULong),
    Type<bool>("bool", "bool", "b1", MTL::DataTypeBool),
    // This type is only for expected values, which NumPy computes in double.
    Type<double>("f64", nullptr, "f8", MTL::DataTypeFloat),
};

const ScalarType* Find(const char* const ScalarType::*member,
                       const std::string& name) {
  for (const ScalarType& type : kTypes) {
    if (type.*member != nullptr && name == type.*member) return &type;
  }
  return nullptr;
}

std::string TypeNames() {
  std::string names;
  for (const ScalarType& type : kTypes) {
    if (type.metal == nullptr) continue;
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  }
  return names;
}

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(at, begin)) != std::string::npos;) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

size_t ReadCount(const std::string& where, const ScalarType& type,
                 const std::string& text) {
  const ScalarType& count = *FindType("u64");
  const long double value = ReadNumber(where, count, text);
  if (value < 1) throw InputError(where + ": a count of 0");
  if (value * type.bytes > kMaxBytes) {
    throw InputError(where + ": " + text + " values have more than 4 GiB");
  }
  return static_cast<size_t>(value);
}

// Reads an array in a file of NumPy. The file has a magic number, a version,
// the length of the header, the header (a Python dictionary), and the values.
Data ReadNumpy(const std::string& where, const std::string& path) {
  const Bytes file = ReadBytes(where, path);
  const auto wrong = [&](const std::string& what) {
    return InputError(where + ": " + path + ": " + what);
  };
  const auto is = [&](size_t at, const char* text) {
    return file.size() >= at + std::strlen(text) &&
           std::memcmp(file.data() + at, text, std::strlen(text)) == 0;
  };
  if (!is(0, "\x93NUMPY") || file.size() < 12) {
    throw wrong("is not a .npy file");
  }
  const size_t length_bytes = file[6] == 1 ? 2 : 4;
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    length |= size_t{file[8 + i]} << (8 * i);
  }
  const size_t begin = 8 + length_bytes;
  if (length > file.size() - begin) throw wrong("ends in its header");
  const std::string header(
      file.begin() + static_cast<ptrdiff_t>(begin),
      file.begin() + static_cast<ptrdiff_t>(begin + length));
  // Returns the text behind "'key':", without leading blanks.
  const auto value_of = [&](const char* key) {
    const size_t at = header.find("'" + std::string(key) + "':");
    if (at == std::string::npos)
      throw wrong("its header has no " + std::string(key));
    const size_t first =
        header.find_first_not_of(' ', at + std::strlen(key) + 3);
    return first == std::string::npos ? "" : header.substr(first);
  };
  const std::string quoted = value_of("descr");
  const std::string descr = quoted.substr(1, quoted.find('\'', 1) - 1);
  const ScalarType* const type =
      quoted[0] != '\'' || descr.size() < 2 || descr[0] == '>'
          ? nullptr
          : Find(&ScalarType::numpy, descr.substr(1));
  if (type == nullptr) {
    throw wrong("has values of type " + quoted.substr(0, quoted.find(", '")) +
                ", which Metal does not have: save it as one of " +
                TypeNames());
  }
  size_t count = 1, dimensions = 0;
  const std::string shape = value_of("shape");
  for (const std::string& size :
       Split(shape.substr(1, shape.find(')') - 1), ',')) {
    if (size.find_first_not_of(' ') == std::string::npos) continue;
    count *= std::strtoull(size.c_str(), nullptr, 10);
    ++dimensions;
  }
  if (dimensions > 1 && value_of("fortran_order")[0] == 'T') {
    throw wrong("is in Fortran order: save numpy.ascontiguousarray(array)");
  }
  const size_t rest = file.size() - begin - length;
  if (count == 0 || rest % type->bytes != 0 || rest / type->bytes != count) {
    throw wrong("has " + std::to_string(rest) + " bytes of values, its shape " +
                shape.substr(0, shape.find(')') + 1) + " asks for " +
                std::to_string(count) + " of " + std::to_string(type->bytes));
  }
  Data data;
  data.pieces = {{type, count}};
  data.bytes.assign(file.end() - static_cast<ptrdiff_t>(rest), file.end());
  return data;
}

// A way to describe values, such as "zeros" in "f32:zeros:256", and how many
// arguments it takes.
struct Form {
  const char* name;
  const char* arguments;
  size_t fewest, most;
};
constexpr Form kForms[] = {
    {"zeros", "COUNT", 1, 1},
    {"empty", "COUNT", 1, 1},
    {"fill", "COUNT:VALUE", 2, 2},
    {"range", "COUNT[:FIRST[:STEP]]", 1, 3},
    {"random", "COUNT[:LOW:HIGH[:SEED]]", 1, 4},
};

void Append(const ScalarType& type, long double value, Bytes& bytes) {
  bytes.resize(bytes.size() + type.bytes);
  type.write(value, bytes.data() + bytes.size() - type.bytes);
}

void AppendForm(const std::string& where, const ScalarType& type,
                const Form& form, const std::vector<std::string>& words,
                uint32_t stream, Data& data) {
  const std::string name = form.name;
  // `words` contains the form's name and then its arguments.
  if (words.size() - 1 < form.fewest || words.size() - 1 > form.most ||
      (name == "random" && words.size() == 3)) {
    throw InputError(where + ": " + name + " takes " + form.arguments);
  }
  const auto number = [&](size_t i, long double otherwise) {
    return i < words.size() ? ReadNumber(where, type, words[i]) : otherwise;
  };
  const size_t count = ReadCount(where, type, words[1]);
  data.pieces.push_back({&type, count});
  if (name == "empty" || name == "zeros") {
    data.is_written = name == "zeros";
    data.bytes.resize(data.bytes.size() + count * type.bytes);
    return;
  }
  const bool is_random = name == "random", is_range = name == "range";
  const bool is_hundred = type.is_integer && type.highest >= 99;
  const long double low = number(2, is_random && !type.is_integer ? -1 : 0);
  // For the form "range", `high` is the step.
  const long double high = number(3, is_random && is_hundred ? 99 : 1);
  if (is_random && low > high) throw InputError(where + ": LOW is above HIGH");
  const uint32_t key = program::HashKey(
      words.size() == 5
          ? static_cast<uint32_t>(ReadNumber(where, *FindType("u32"), words[4]))
          : stream);
  const long double last =
      is_range ? low + high * static_cast<long double>(count - 1) : low;
  if (type.is_integer && (last < type.lowest || last > type.highest)) {
    throw InputError(where + ": the range leaves " + type.name);
  }
  for (size_t i = 0; i < count; ++i) {
    long double value = low;
    if (is_range) value += high * static_cast<long double>(i);
    if (is_random) {
      const long double unit =
          (program::HashUniform(key, static_cast<uint32_t>(i)) + 1.0L) / 2;
      value += type.is_integer
                   ? std::min(std::floor(unit * (high - low + 1)), high - low)
                   : unit * (high - low);
    }
    Append(type, value, data.bytes);
  }
}

void AppendPiece(const std::string& where, const std::string& spec,
                 uint32_t stream, Data& data) {
  const size_t colon = spec.find(':');
  const ScalarType& type = *FindType(spec.substr(0, colon));
  const std::string rest = spec.substr(colon + 1);
  if (rest.compare(0, 5, "file:") == 0) {
    const Bytes file = ReadBytes(where, rest.substr(5));
    if (file.empty() || file.size() % type.bytes != 0) {
      throw InputError(where + ": " + rest.substr(5) + " has " +
                       std::to_string(file.size()) +
                       " bytes, not a whole number of " + type.name);
    }
    data.pieces.push_back({&type, file.size() / type.bytes});
    data.bytes.insert(data.bytes.end(), file.begin(), file.end());
    return;
  }
  const std::vector<std::string> words = Split(rest, ':');
  for (const Form& form : kForms) {
    if (words[0] != form.name) continue;
    return AppendForm(where, type, form, words, stream, data);
  }
  const std::vector<std::string> values = Split(rest, ',');
  for (const std::string& value : values) {
    Append(type, ReadNumber(where, type, value), data.bytes);
  }
  data.pieces.push_back({&type, values.size()});
}

}  // namespace

const char kDataHelp[] =
    "Values of a buffer are a NumPy array, FILE.npy, or\n"
    "  TYPE:random:COUNT[:LOW:HIGH[:SEED]]  floats from -1 to 1, integers 0 to "
    "99\n"
    "  TYPE:range:COUNT[:FIRST[:STEP]]      0, 1, 2, ...\n"
    "  TYPE:fill:COUNT:VALUE\n"
    "  TYPE:zeros:COUNT                     written by the host\n"
    "  TYPE:empty:COUNT                     not written: --checked reports "
    "reads\n"
    "  TYPE:file:PATH                       the file's bytes\n"
    "  TYPE:VALUE[,VALUE...]\n"
    "and a struct joins several of these: u32:700+f32:1e-6. TYPE is one of "
    "f32, "
    "f16,\nbf16, i8, u8, i16, u16, i32, u32, i64, u64, bool.\n";

const ScalarType* FindType(const std::string& name) {
  return Find(&ScalarType::name, name);
}
const ScalarType* FindMetalType(const std::string& name) {
  return Find(&ScalarType::metal, name);
}

std::string Data::Element::text() const {
  char text[64];
  const int digits = type->bytes > 2 ? 9 : type == FindType("f16") ? 5 : 4;
  std::snprintf(text, sizeof(text), type->is_integer ? "%.*Lf" : "%.*Lg",
                type->is_integer ? 0 : digits, value());
  return text;
}

size_t Data::count() const {
  size_t count = 0;
  for (const Piece& piece : pieces) count += piece.count;
  return count;
}

Data::Element Data::At(const unsigned char* from, size_t i) const {
  size_t p = 0;
  for (; i >= pieces[p].count; ++p) {
    from += pieces[p].count * pieces[p].type->bytes;
    i -= pieces[p].count;
  }
  return {pieces[p].type, from + i * pieces[p].type->bytes};
}

Data ReadData(const std::string& where, const std::string& spec,
              uint32_t stream) {
  const std::string first = spec.substr(0, spec.find(':'));
  if (first.size() == spec.size() || FindType(first) == nullptr) {
    std::error_code ignored;
    if (first.size() != spec.size() && !fs::exists(spec, ignored)) {
      throw InputError(where + ": '" + first +
                       "' is not a type; the types are " + TypeNames());
    }
    return ReadNumpy(where, spec);
  }
  Data data;
  for (size_t begin = 0; begin < spec.size();) {
    // A plus sign separates two pieces only if a type follows it. In 1e+5 no
    // type follows.
    size_t end = begin;
    do {
      end = spec.find('+', end + 1);
    } while (end != std::string::npos &&
             FindType(spec.substr(end + 1, spec.find(':', end) - end - 1)) ==
                 nullptr);
    end = std::min(end, spec.size());
    AppendPiece(where, spec.substr(begin, end - begin), stream, data);
    begin = end + 1;
  }
  if (!data.is_written && data.pieces.size() > 1) {
    throw InputError(where + ": empty cannot be a part of a struct");
  }
  return data;
}

long double ReadNumber(const std::string& where, const ScalarType& type,
                       const std::string& text) {
  if (type.data_type == MTL::DataTypeBool &&
      (text == "true" || text == "false")) {
    return text == "true" ? 1 : 0;
  }
  char* end = nullptr;
  const long double value = std::strtold(text.c_str(), &end);
  const bool is_blank = text.empty() || std::strchr(" \t\n\v\f\r", text[0]);
  if (is_blank || *end != '\0' ||
      (type.is_integer && (std::floor(value) != value || value < type.lowest ||
                           value > type.highest))) {
    throw InputError(where + ": '" + text + "' is no " + type.name);
  }
  return value;
}

Bytes ReadBytes(const std::string& where, const std::string& path) {
  std::error_code error;
  const bool is_file = fs::is_regular_file(path, error);
  const uintmax_t size = is_file ? fs::file_size(path, error) : 0;
  std::ifstream file;
  if (is_file && !error && size <= kMaxBytes) {
    file.open(path, std::ios::binary);
    if (!file) error.assign(errno, std::generic_category());
  }
  if (error) throw InputError(where + ": " + path + ": " + error.message());
  if (!is_file) throw InputError(where + ": " + path + ": not a regular file");
  if (size > kMaxBytes) throw InputError(where + ": " + path + ": above 4 GiB");
  Bytes bytes(size);
  file.read(reinterpret_cast<char*>(bytes.data()),
            static_cast<std::streamsize>(size));
  if (!file) throw InputError(where + ": " + path + ": cannot be read");
  return bytes;
}

}  // namespace swy
