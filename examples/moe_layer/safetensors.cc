// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "safetensors.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/program.h"

namespace moe_layer {
namespace {

using example::InputError;

using nlohmann::json;

constexpr size_t kLengthBytes = 8;
// The format's own limit, from its reference implementation.
constexpr uint64_t kMaxHeader = 100'000'000;

// Bytes of an element; 0 for dtypes this program has no use for, whose sizes
// are then not judged (the format keeps adding some).
uint64_t ElementBytes(const std::string& dtype) {
  static constexpr std::pair<const char*, uint64_t> kBytes[] = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
      {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U64", 8},  {"U32", 4},
      {"U16", 2}, {"U8", 1},  {"BOOL", 1}};
  for (const auto& [name, bytes] : kBytes) {
    if (dtype == name) return bytes;
  }
  return 0;
}

bool IsCount(const json& value) { return value.is_number_unsigned(); }

bool IsCountList(const json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), IsCount);
}

// Null if there is no such member, or the value is no object.
json Member(const json& value, const char* key) {
  const auto found = value.find(key);
  return found == value.end() ? json() : *found;
}

// Product of the dimensions times the element size; false if it does not fit.
bool StoredBytes(const StoredTensor& tensor, uint64_t element, uint64_t* out) {
  *out = element;
  for (const uint64_t dim : tensor.shape) {
    if (dim != 0 && *out > std::numeric_limits<uint64_t>::max() / dim) {
      return false;
    }
    *out *= dim;
  }
  return true;
}

}  // namespace

std::string ShapeText(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(path), file_(path) {
  if (file_.size() < kLengthBytes) {
    throw InputError(path_ + ": truncated: " + std::to_string(file_.size()) +
                     " bytes, too short for a safetensors header");
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t{file_.data()[i]} << (8 * i);
  }
  const uint64_t rest = file_.size() - kLengthBytes;
  if (length > kMaxHeader) {
    throw InputError(path_ + ": not a safetensors file: a header of " +
                     std::to_string(length) + " bytes");
  }
  if (length > rest) {
    throw InputError(path_ + ": truncated: a header of " +
                     std::to_string(length) + " bytes, but only " +
                     std::to_string(rest) + " are left in the file");
  }
  const char* header = reinterpret_cast<const char*>(file_.data()) + 8;
  data_ = file_.data() + kLengthBytes + length;
  const size_t data_size = static_cast<size_t>(rest - length);
  ReadHeader(header, header + length, data_size);
  RequireNoGaps(data_size);
}

void SafetensorsFile::ReadHeader(const char* begin, const char* end,
                                 size_t data_size) {
  json header;
  try {
    header = json::parse(begin, end);
  } catch (const json::exception& error) {
    throw InputError(path_ + ": malformed header: " + error.what());
  }
  if (!header.is_object()) {
    throw InputError(path_ + ": malformed header: not a JSON object");
  }
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      tensors_.emplace(name, ReadEntry(name, entry, data_size));
    }
  }
}

StoredTensor SafetensorsFile::ReadEntry(const std::string& name,
                                        const json& entry,
                                        size_t data_size) const {
  const std::string where = path_ + ": tensor '" + name + "': ";
  const json dtype = Member(entry, "dtype");
  const json shape = Member(entry, "shape");
  const json offsets = Member(entry, "data_offsets");
  if (!dtype.is_string() || !IsCountList(shape) || !IsCountList(offsets) ||
      offsets.size() != 2) {
    throw InputError(where +
                     "malformed header entry: needs dtype, shape "
                     "and two data_offsets");
  }
  StoredTensor tensor;
  tensor.dtype = dtype.get<std::string>();
  tensor.shape = shape.get<std::vector<uint64_t>>();
  const uint64_t first = offsets[0].get<uint64_t>();
  const uint64_t last = offsets[1].get<uint64_t>();
  if (first > last) {
    throw InputError(where + "data_offsets [" + std::to_string(first) + ", " +
                     std::to_string(last) + "] run backwards");
  }
  if (last > data_size) {
    throw InputError(where + "truncated file: the tensor ends at byte " +
                     std::to_string(last) + " of the data, which has " +
                     std::to_string(data_size));
  }
  const uint64_t element = ElementBytes(tensor.dtype);
  uint64_t bytes = 0;
  if (element != 0 &&
      (!StoredBytes(tensor, element, &bytes) || bytes != last - first)) {
    throw InputError(where + tensor.dtype + " " + ShapeText(tensor.shape) +
                     " does not fill its " + std::to_string(last - first) +
                     " bytes");
  }
  tensor.data = data_ + first;
  tensor.bytes = static_cast<size_t>(last - first);
  return tensor;
}

// The format promises that tensors tile the data; one that overlaps another
// would silently hold the other's values.
void SafetensorsFile::RequireNoGaps(size_t data_size) const {
  std::vector<std::pair<size_t, std::string>> order;
  for (const auto& [name, tensor] : tensors_) {
    if (tensor.bytes == 0) continue;
    order.emplace_back(static_cast<size_t>(tensor.data - data_), name);
  }
  std::sort(order.begin(), order.end());
  size_t end = 0;
  for (const auto& [begin, name] : order) {
    if (begin != end) {
      throw InputError(path_ + ": tensor '" + name + "': starts at byte " +
                       std::to_string(begin) +
                       " of the data, but what precedes it ends at " +
                       std::to_string(end));
    }
    end += tensors_.at(name).bytes;
  }
  if (end != data_size) {
    throw InputError(path_ + ": " + std::to_string(data_size - end) +
                     " bytes of data belong to no tensor");
  }
}

}  // namespace moe_layer
