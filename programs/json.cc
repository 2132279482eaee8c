// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/json.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "programs/program.h"

namespace program {
namespace {

using nlohmann::json;

// A json is copied and printed by recursion, so a file of brackets would
// overflow the stack.
constexpr size_t kMaxDepth = 64;
// Some hundred times what a long run of benchmarks writes.
constexpr size_t kMaxBytes = size_t{256} << 20;

bool IsTooDeep(const uint8_t* begin, const uint8_t* end) {
  size_t depth = 0;
  bool in_string = false;
  for (const uint8_t* at = begin; at < end; ++at) {
    if (in_string) {
      in_string = *at != '"';
      // What is escaped ends no string.
      if (*at == '\\' && at + 1 < end) ++at;
    } else if (*at == '"') {
      in_string = true;
    } else if (*at == '[' || *at == '{') {
      if (++depth > kMaxDepth) return true;
    } else if ((*at == ']' || *at == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

// Outside of strings.
std::string WithNullForNonFinite(const std::string& text) {
  std::string out;
  out.reserve(text.size() + text.size() / 64);
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      in_string = c != '"';
      out += c;
      if (c == '\\' && at + 1 < text.size()) out += text[++at];
      continue;
    }
    in_string = c == '"';
    size_t length = 0;
    for (const char* word : {"NaN", "Infinity"}) {
      if (text.compare(at, std::strlen(word), word) == 0) {
        length = std::strlen(word);
      }
    }
    if (length == 0) {
      out += c;
      continue;
    }
    if (!out.empty() && out.back() == '-') out.pop_back();
    out += "null";
    at += length - 1;
  }
  return out;
}

class Descriptor {
 public:
  // Not blocking: a FIFO without a writer would be waited for.
  explicit Descriptor(const std::string& path)
      : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int fd;
};

std::string ReadRegularFile(const std::string& path) {
  const Descriptor file(path);
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0) {
    throw InputError(path + ": cannot open: " + std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    throw InputError(path + ": cannot open: not a regular file");
  }
  const InputError too_large(path + ": more than " +
                             std::to_string(kMaxBytes >> 20) + " MiB");
  if (info.st_size > static_cast<off_t>(kMaxBytes)) throw too_large;
  std::string text;
  // One that says it is empty, as those of /proc do, is read to its end.
  while (text.size() <= kMaxBytes) {
    char part[1 << 16];
    const ssize_t count = read(file.fd, part, sizeof(part));
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      throw InputError(path + ": cannot read: " + std::strerror(errno));
    }
    text.append(part, static_cast<size_t>(count));
  }
  throw too_large;
}

}  // namespace

json ParseJson(const uint8_t* begin, const uint8_t* end,
               const std::string& malformed) {
  if (IsTooDeep(begin, end)) {
    throw InputError(malformed + ": nested more than " +
                     std::to_string(kMaxDepth) + " levels deep");
  }
  try {
    return json::parse(begin, end);
  } catch (const json::exception& error) {
    throw InputError(malformed + ": " + error.what());
  }
}

uint64_t Count(double count) {
  return static_cast<uint64_t>(std::llround(count));
}

json ReadJsonFile(const std::string& path) {
  const std::string text = WithNullForNonFinite(ReadRegularFile(path));
  const auto* const begin = reinterpret_cast<const uint8_t*>(text.data());
  return ParseJson(begin, begin + text.size(), path + ": malformed JSON");
}

}  // namespace program
