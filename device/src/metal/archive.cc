// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/archive.h"

#include <cstring>
#include <stdexcept>
#include <utility>

namespace switchyard::device::metal {
namespace {

constexpr std::string_view kMagic = "SWYMTLB1";

// Writes a number as 8 bytes in this machine's order, and a text as its
// length and its bytes.
class Writer {
 public:
  void operator()(uint64_t number) {
    char raw[sizeof(number)];
    std::memcpy(raw, &number, sizeof(raw));
    bytes.append(raw, sizeof(raw));
  }
  void operator()(const std::string& text) {
    (*this)(uint64_t{text.size()});
    bytes += text;
  }
  std::string bytes{kMagic};
};

class ArchiveReader {
 public:
  explicit ArchiveReader(std::string_view bytes) : rest_(bytes) {
    Take(kMagic.size());
  }
  void operator()(uint32_t& number) {
    number = static_cast<uint32_t>(Number());
  }
  void operator()(std::string& text) { text = Take(Number()); }
  uint64_t Number() {
    uint64_t number;
    std::memcpy(&number, Take(sizeof(number)).data(), sizeof(number));
    return number;
  }
  void End() const {
    if (!rest_.empty()) throw std::runtime_error("has bytes after its end");
  }

 private:
  std::string_view Take(uint64_t count) {
    if (count > rest_.size()) throw std::runtime_error("is cut off");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::string_view rest_;
};

template <class Each, class A>
void Texts(Each& each, A& archive) {
  each(archive.made_by);
  each(archive.unchecked.key);
  each(archive.unchecked.module);
  each(archive.checked.key);
  each(archive.checked.module);
}
template <class Each, class U>
void Members(Each& each, U& unsupported) {
  each(unsupported.what);
  each(unsupported.file);
  each(unsupported.line);
  each(unsupported.column);
  each(unsupported.kernel);
}
template <class Each, class C>
void CommentMembers(Each& each, C& comment) {
  each(comment.kinds);
  each(comment.bits);
  each(comment.file);
  each(comment.line);
  each(comment.column);
  each(comment.code_line);
}

}  // namespace

bool IsArchive(std::string_view bytes) {
  return bytes.substr(0, kMagic.size()) == kMagic;
}

std::string ToBytes(const Archive& archive) {
  Writer write;
  Texts(write, archive);
  write(uint64_t{archive.unsupported.size()});
  for (const Unsupported& each : archive.unsupported) Members(write, each);
  write(uint64_t{archive.comments.list().size()});
  for (const AllowComment& each : archive.comments.list()) {
    CommentMembers(write, each);
  }
  return std::move(write.bytes);
}

void FromBytes(std::string_view bytes, Archive* archive) {
  ArchiveReader read(bytes);
  Texts(read, *archive);
  for (uint64_t left = read.Number(); left != 0; --left) {
    archive->unsupported.emplace_back();
    Members(read, archive->unsupported.back());
  }
  for (uint64_t left = read.Number(); left != 0; --left) {
    AllowComment comment;
    CommentMembers(read, comment);
    archive->comments.Add(comment);
  }
  read.End();
}

}  // namespace switchyard::device::metal
