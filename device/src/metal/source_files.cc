// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/source_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "device/src/metal/text.h"

namespace switchyard::device::metal {
namespace {

using State = SourceFile::State;

SourceFile Unread(State state, const std::string& wrong) {
  return {state, std::string(), wrong};
}

// Returns kRead if the file may be read, and otherwise the reason.
SourceFile Judge(const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return Unread(State::kFolder, "is a folder");
  if (!S_ISREG(status.st_mode)) {
    return Unread(State::kNoFile, "is not a regular file");
  }
  if (status.st_size > static_cast<off_t>(kMaxSourceBytes)) {
    return Unread(
        State::kTooLarge,
        "has more than " + std::to_string(kMaxSourceBytes >> 20) + " MiB");
  }
  return {State::kRead, std::string(), std::string()};
}

SourceFile ReadAll(int file) {
  struct stat status;
  if (fstat(file, &status) != 0) {
    return Unread(State::kAbsent, std::strerror(errno));
  }
  SourceFile result = Judge(status);
  if (result.state != State::kRead) return result;
  // The size that the system gives may be wrong: the file may have grown, and
  // files in /proc have size 0.
  while (result.text.size() <= kMaxSourceBytes) {
    char part[1 << 16];
    const ssize_t count = read(file, part, sizeof(part));
    if (count == 0) return result;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Unread(State::kAbsent, std::strerror(errno));
    result.text.append(part, static_cast<size_t>(count));
  }
  status.st_size = static_cast<off_t>(result.text.size());
  return Judge(status);
}

struct Include {
  std::string name;
  bool is_quoted;  // "name", not <name>
};

// Returns the files that a directive names. The names follow include,
// include_next, import, __has_include( and #pragma GCC dependency.
std::vector<Include> IncludesOf(std::string_view directive) {
  std::string text;
  for (size_t i = 0; i < directive.size(); ++i) {
    if (directive[i] == '\\' && directive.substr(i + 1, 1) == "\n") {
      ++i;  // the directive continues on the next line
    } else {
      text += directive[i];
    }
  }
  std::vector<Include> includes;
  for (const char* const word : {"include", "import", "dependency"}) {
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
      at += std::strlen(word);
      at = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at);
      for (;;) {
        at = text.find_first_not_of(" \t\r\v\f(", at);
        if (at == std::string::npos || text.compare(at, 2, "/*") != 0) break;
        const size_t end = text.find("*/", at + 2);
        at = end == std::string::npos ? end : end + 2;
      }
      if (at == std::string::npos) break;
      if (text[at] != '"' && text[at] != '<') continue;
      const bool is_quoted = text[at] == '"';
      const size_t end = text.find(is_quoted ? '"' : '>', at + 1);
      if (end == std::string::npos) continue;
      includes.push_back({text.substr(at + 1, end - at - 1), is_quoted});
      at = end;
    }
  }
  return includes;
}

std::string FolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

// Returns the same name for all spellings of a path. Otherwise a file that
// includes "./" and its own name would get a new name each time. A link in
// the last part of the path is not resolved, because the file's includes
// depend on the folder of the link.
std::string Canonical(const std::string& path) {
  const std::string folder = FolderOf(path);
  char* const full = realpath(folder.empty() ? "." : folder.c_str(), nullptr);
  if (full == nullptr) return path;
  const std::string name = full + ("/" + path.substr(folder.size()));
  std::free(full);
  return name;
}

class IncludeChecker {
 public:
  explicit IncludeChecker(const std::vector<std::string>& folders)
      : folders_(folders) {}

  void Run(const std::string& text, const std::string& path,
           const std::string& name) {
    CheckText(text, path, name);
    // This is a loop, because files may include each other so deeply that a
    // recursion would need too much stack.
    while (!pending_.empty()) {
      const auto [included, at] = std::move(pending_.back());
      pending_.pop_back();
      CheckText(included, at, at);
    }
  }

 private:
  void CheckText(const std::string& source, const std::string& path,
                 const std::string& name) {
    const Text text(source);
    for (const Pragma& directive : text.pragmas()) {
      const std::string& named = text.files()[directive.file];
      const std::string place = (named.empty() ? name : named) + ":" +
                                std::to_string(directive.line) + ": ";
      for (const Include& include : IncludesOf(text.source().substr(
               directive.begin, directive.end - directive.begin))) {
        if (include.name.empty()) continue;
        if (include.name[0] == '/') {
          Follow(include.name, place);
          continue;
        }
        if (include.is_quoted) Follow(FolderOf(path) + include.name, place);
        for (const std::string& folder : folders_) {
          Follow(folder + "/" + include.name, place);
        }
      }
    }
  }

  void Follow(const std::string& path, const std::string& place) {
    SourceFile file = ReadSource(path);
    if (file.state == State::kNoFile || file.state == State::kTooLarge) {
      throw std::runtime_error(place + "includes " + path + ", which " +
                               file.wrong);
    }
    // If the file cannot be read, Clang tries the next folder.
    if (file.state != State::kRead) return;
    if (!seen_.insert(Canonical(path)).second) return;
    pending_.emplace_back(std::move(file.text), path);
  }

  const std::vector<std::string>& folders_;
  std::set<std::string> seen_;
  // Texts that are still to be searched, each with its path.
  std::vector<std::pair<std::string, std::string>> pending_;
};

}  // namespace

SourceFile ReadSource(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    return Unread(State::kAbsent, std::strerror(errno));
  }
  // The file's type is checked before open(), because opening some devices
  // has an effect.
  SourceFile result = Judge(status);
  if (result.state != State::kRead) return result;
  // The file may have been replaced since the check. O_NONBLOCK is needed
  // because open() would wait for a FIFO.
  const int file =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return Unread(State::kAbsent, std::strerror(errno));
  result = ReadAll(file);
  close(file);
  return result;
}

void RequireReadableIncludes(const std::string& text, const std::string& path,
                             const std::string& name,
                             const std::vector<std::string>& folders) {
  IncludeChecker(folders).Run(text, path, name);
}

}  // namespace switchyard::device::metal
