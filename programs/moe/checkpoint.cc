// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "programs/json.h"
#include "programs/program.h"

namespace moe_layer {
namespace {

using nlohmann::json;
using program::InputError;
using program::ParseJson;
using std::to_string;

namespace fs = std::filesystem;

constexpr size_t kLengthBytes = 8;
// The largest header that the reference implementation of safetensors accepts.
constexpr uint64_t kMaxHeader = 100'000'000;

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";

json ParseJsonFile(const std::string& path) {
  const MappedFile file(path);
  return ParseJson(file.data(), file.data() + file.size(),
                   path + ": malformed JSON");
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Returns the number of bytes of an element, or 0 for an unknown dtype. Tensors
// with an unknown dtype are accepted without a check of their size, because new
// versions of the format add dtypes.
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

bool IsCountList(const json& value) {
  return value.is_array() &&
         std::all_of(value.begin(), value.end(),
                     [](const json& v) { return v.is_number_unsigned(); });
}

// Returns a member of an object, or null if the member is missing or `value` is
// not an object.
json Member(const json& value, const char* key) {
  const auto found = value.find(key);
  return found == value.end() ? json() : *found;
}

// True if the tensor's elements fill its bytes exactly.
bool FillsItsBytes(const StoredTensor& tensor, uint64_t element) {
  uint64_t bytes = element;
  for (const uint64_t dim : tensor.shape) {
    if (dim != 0 && bytes > std::numeric_limits<uint64_t>::max() / dim) {
      return false;
    }
    bytes *= dim;
  }
  return bytes == tensor.bytes;
}

// Returns the shape as a text, such as "[128, 2048]".
std::string ShapeText(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace

void SafetensorsFile::Fail(const std::string& what) const {
  throw InputError(path_ + ": " + what);
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(path), file_(path) {
  if (file_.size() < kLengthBytes) {
    Fail("truncated: " + to_string(file_.size()) +
         " bytes, too short for a safetensors header");
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= uint64_t{file_.data()[i]} << (8 * i);
  }
  const uint64_t rest = file_.size() - kLengthBytes;
  if (length > kMaxHeader) {
    Fail("not a safetensors file: a header of " + to_string(length) + " bytes");
  }
  if (length > rest) {
    Fail("truncated: a header of " + to_string(length) + " bytes, but only " +
         to_string(rest) + " are left in the file");
  }
  const uint8_t* const begin = file_.data() + kLengthBytes;
  data_ = begin + length;
  data_size_ = static_cast<size_t>(rest - length);
  const json header = ParseJson(begin, data_, path_ + ": malformed header");
  if (!header.is_object()) Fail("malformed header: not a JSON object");
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") tensors_.emplace(name, ReadEntry(name, entry));
  }
  RequireNoGaps();
}

StoredTensor SafetensorsFile::ReadEntry(const std::string& name,
                                        const json& entry) const {
  const std::string where = "tensor '" + name + "': ";
  const json dtype = Member(entry, "dtype");
  const json shape = Member(entry, "shape");
  const json offsets = Member(entry, "data_offsets");
  if (!dtype.is_string() || !IsCountList(shape) || !IsCountList(offsets) ||
      offsets.size() != 2) {
    Fail(where +
         "malformed header entry: needs dtype, shape and two data_offsets");
  }
  const uint64_t first = offsets[0].get<uint64_t>();
  const uint64_t last = offsets[1].get<uint64_t>();
  if (first > last) {
    Fail(where + "data_offsets [" + to_string(first) + ", " + to_string(last) +
         "] run backwards");
  }
  if (last > data_size_) {
    Fail(where + "truncated file: the tensor ends at byte " + to_string(last) +
         " of the data, which has " + to_string(data_size_));
  }
  const StoredTensor tensor = {
      dtype.get<std::string>(), shape.get<std::vector<uint64_t>>(),
      data_ + first, static_cast<size_t>(last - first)};
  const uint64_t element = ElementBytes(tensor.dtype);
  if (element != 0 && !FillsItsBytes(tensor, element)) {
    Fail(where + tensor.dtype + " " + ShapeText(tensor.shape) +
         " does not fill its " + to_string(tensor.bytes) + " bytes");
  }
  return tensor;
}

// Throws unless the tensors cover the data without gaps and overlaps, as the
// format promises. Overlapping tensors would silently share values.
void SafetensorsFile::RequireNoGaps() const {
  std::vector<std::pair<size_t, std::string>> order;
  for (const auto& [name, tensor] : tensors_) {
    if (tensor.bytes == 0) continue;
    order.emplace_back(static_cast<size_t>(tensor.data - data_), name);
  }
  std::sort(order.begin(), order.end());
  size_t end = 0;
  for (const auto& [begin, name] : order) {
    if (begin != end) {
      Fail("tensor '" + name + "': starts at byte " + to_string(begin) +
           " of the data, but what precedes it ends at " + to_string(end));
    }
    end += tensors_.at(name).bytes;
  }
  if (end != data_size_) {
    Fail(to_string(data_size_ - end) + " bytes of data belong to no tensor");
  }
}

Checkpoint::Checkpoint(const std::string& folder) : folder_(folder) {
  while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
  std::error_code ignored;
  if (!Exists(folder_)) {
    throw InputError("--checkpoint " + folder_ + ": no such folder");
  }
  if (!fs::is_directory(folder_, ignored)) {
    throw InputError("--checkpoint " + folder_ + ": not a folder");
  }
  config_ = ParseJsonFile(ConfigPath());
  if (!config_.is_object()) {
    throw InputError(ConfigPath() + ": malformed JSON: not an object");
  }
  const std::string index = folder_ + "/" + kIndexFile;
  if (Exists(index)) {
    ReadIndex(index);
  } else {
    ListFiles();
  }
}

void Checkpoint::ReadIndex(const std::string& path) {
  index_path_ = path;
  const json index = ParseJsonFile(path);
  if (!index.contains("weight_map") || !index["weight_map"].is_object()) {
    throw InputError(path + ": malformed index: no weight_map");
  }
  for (const auto& [name, file] : index["weight_map"].items()) {
    // Refuses names with a folder, because an index must not make the program
    // read outside of the checkpoint's folder.
    if (!file.is_string() ||
        fs::path(file.get<std::string>()).filename() !=
            file.get<std::string>() ||
        file.get<std::string>().empty()) {
      throw InputError(path + ": tensor '" + name +
                       "': expected a file name, found " + file.dump());
    }
    file_of_tensor_[name] = file.get<std::string>();
  }
}

void Checkpoint::ListFiles() {
  std::vector<std::string> names;
  if (Exists(folder_ + "/" + kSingleFile)) {
    names.push_back(kSingleFile);
  } else {
    std::error_code error;
    for (fs::directory_iterator it(folder_, error), end; !error && it != end;
         it.increment(error)) {
      if (it->path().extension() == ".safetensors") {
        names.push_back(it->path().filename().string());
      }
    }
    if (error) {
      throw InputError(folder_ + ": cannot list: " + error.message());
    }
  }
  if (names.empty()) {
    throw InputError(folder_ + ": no *.safetensors file and no " + kIndexFile);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& file : names) {
    for (const auto& entry : Open(file).tensors()) {
      const auto [place, added] = file_of_tensor_.emplace(entry.first, file);
      if (!added) {
        throw InputError(folder_ + "/" + file + ": tensor '" + entry.first +
                         "': also in " + place->second);
      }
    }
  }
}

const SafetensorsFile& Checkpoint::Open(const std::string& file_name) {
  std::unique_ptr<SafetensorsFile>& file = open_files_[file_name];
  if (file == nullptr) {
    file = std::make_unique<SafetensorsFile>(folder_ + "/" + file_name);
  }
  return *file;
}

bool Checkpoint::HasShape(const std::string& name,
                          const std::vector<uint64_t>& shape) {
  const auto place = file_of_tensor_.find(name);
  if (place == file_of_tensor_.end()) return false;
  const auto& tensors = Open(place->second).tensors();
  const auto found = tensors.find(name);
  return found != tensors.end() && found->second.shape == shape;
}

Checkpoint::Found Checkpoint::Find(const std::string& name,
                                   const std::vector<uint64_t>& shape) {
  const auto place = file_of_tensor_.find(name);
  if (place == file_of_tensor_.end()) {
    const std::string where = !index_path_.empty() ? index_path_
                              : open_files_.size() == 1
                                  ? folder_ + "/" + open_files_.begin()->first
                                  : folder_ + "/*.safetensors";
    throw InputError(where + ": tensor '" + name + "': missing");
  }
  const SafetensorsFile& file = Open(place->second);
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end()) {
    throw InputError(file.path() + ": tensor '" + name + "': missing, though " +
                     index_path_ + " places it there");
  }
  const StoredTensor& tensor = found->second;
  if (tensor.shape != shape) {
    throw InputError(file.path() + ": tensor '" + name + "': shape " +
                     ShapeText(tensor.shape) + ", but " + ConfigPath() +
                     " makes it " + ShapeText(shape));
  }
  return {&tensor, file.path()};
}

}  // namespace moe_layer
