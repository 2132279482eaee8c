// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace switchyard::device::metal {
namespace {

constexpr time_t kDay = 24 * 60 * 60;

std::string FolderOf(const std::string& asked) {
  if (!asked.empty()) return asked;
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') {
    return std::string(cache) + "/switchyard";
  }
  const char* const home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') {
    return std::string(home) + "/.cache/switchyard";
  }
  return "/tmp/switchyard-" + std::to_string(getuid());
}

// A lock of the whole folder. It is shared to look up modules, and exclusive
// to change them.
class Lock {
 public:
  Lock(const std::string& folder, int operation)
      : file_(open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC,
                   0600)) {
    if (file_ < 0) return;
    while ((held_ = flock(file_, operation) == 0) == false && errno == EINTR) {
    }
  }
  ~Lock() {
    if (file_ >= 0) close(file_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  // False on file systems that have no locks. Add() then deletes no modules.
  bool held() const { return held_; }

 private:
  const int file_;
  bool held_ = false;
};

// Deletes a module and returns true. If a CachedModule in some process uses
// the module, keeps it and returns false.
bool RemoveUnused(const std::string& base) {
  const std::string module = base + ".so";
  const int file = open(module.c_str(), O_RDONLY | O_CLOEXEC);
  const bool unused =
      file < 0 ? errno == ENOENT : flock(file, LOCK_EX | LOCK_NB) == 0;
  if (unused) {
    unlink((base + ".cc").c_str());
    unlink(module.c_str());
  }
  if (file >= 0) close(file);
  return unused;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const all = opendir(folder.c_str());
  if (all == nullptr) return names;
  while (const dirent* const entry = readdir(all)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(all);
  return names;
}

struct Entry {
  std::string base;
  uint64_t bytes = 0;
  timespec used = {};
};

bool EarlierUsed(const Entry& a, const Entry& b) {
  return std::make_pair(a.used.tv_sec, a.used.tv_nsec) <
         std::make_pair(b.used.tv_sec, b.used.tv_nsec);
}

bool IsHash(const std::string& name) {
  return name.size() == 16 &&
         name.find_first_not_of("0123456789abcdef") == name.npos;
}

}  // namespace

std::string HashOf(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  char name[17];
  std::snprintf(name, sizeof(name), "%016" PRIx64, hash);
  return name;
}

void MakeFolder(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      throw std::runtime_error("can't make the folder " + part + ": " +
                               std::strerror(errno));
    }
    if (end == std::string::npos) return;
  }
}

void Touch(const std::string& path) {
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

CachedModule::~CachedModule() {
  if (file_ >= 0) close(file_);
}

Cache::Cache(const std::string& folder, uint64_t max_bytes)
    : folder_(FolderOf(folder)), max_bytes_(max_bytes) {
  MakeFolder(folder_);
}

std::string Cache::Base(const std::string& key) const {
  return folder_ + "/" + HashOf(key);
}

std::shared_ptr<const CachedModule> Cache::FindLocked(
    const std::string& key) const {
  const std::string base = Base(key);
  std::ifstream there(base + ".cc", std::ios::binary);
  if (!there) return nullptr;
  std::ostringstream text;
  text << there.rdbuf();
  if (text.str() != key) return nullptr;
  const std::string path = base + ".so";
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  flock(file, LOCK_SH);
  Touch(path);
  return std::make_shared<CachedModule>(path, file);
}

std::shared_ptr<const CachedModule> Cache::Find(const std::string& key) const {
  const Lock lock(folder_, LOCK_SH);
  return FindLocked(key);
}

std::shared_ptr<const CachedModule> Cache::Add(
    const std::string& key, const std::string& module,
    const std::string& key_file) const {
  const Lock lock(folder_, LOCK_EX);
  // If another process has added the same module, that process may already
  // use it, so this returns that module.
  std::shared_ptr<const CachedModule> added = FindLocked(key);
  if (added == nullptr) {
    const std::string base = Base(key);
    // The module is moved before its key, because a reader looks for the key
    // first and then needs the module.
    if (std::rename(module.c_str(), (base + ".so").c_str()) == 0 &&
        std::rename(key_file.c_str(), (base + ".cc").c_str()) == 0) {
      added = FindLocked(key);
    }
    if (added == nullptr) {
      throw std::runtime_error("can't write " + base + ".so");
    }
  }
  if (lock.held() && max_bytes_ != 0) Tidy();
  return added;
}

void Cache::Tidy() const {
  const time_t now = std::time(nullptr);
  std::map<std::string, Entry> modules;
  uint64_t bytes = 0;
  for (const std::string& name : NamesIn(folder_)) {
    const std::string path = folder_ + "/" + name;
    struct stat status;
    if (stat(path.c_str(), &status) != 0) continue;
    const auto starts = [&](const char* with) {
      return name.compare(0, std::strlen(with), with) == 0;
    };
    const time_t age = now - status.st_mtime;
    const std::string hash = name.substr(0, name.find('.'));
    const std::string ending = name.substr(hash.size());
    if (S_ISDIR(status.st_mode)) {
      // These folders belong to processes that were killed, or have headers
      // of other versions of the shim.
      const bool is_old = (starts("work-") && age > kDay) ||
                          (starts("shim-") && age > 30 * kDay);
      std::error_code ignored;
      if (is_old) std::filesystem::remove_all(path, ignored);
    } else if (IsHash(hash) && (ending == ".so" || ending == ".cc")) {
      Entry& entry = modules[hash];
      entry.base = folder_ + "/" + hash;
      entry.bytes += static_cast<uint64_t>(status.st_size);
      if (ending == ".so") entry.used = status.st_mtim;
      bytes += static_cast<uint64_t>(status.st_size);
    } else if (IsHash(hash) && ending.compare(0, 4, ".so.") == 0 &&
               age > kDay) {
      unlink(path.c_str());  // a FileCopy, left by a process that was killed
    }
  }
  std::vector<Entry> oldest;
  for (const auto& [hash, entry] : modules) oldest.push_back(entry);
  std::sort(oldest.begin(), oldest.end(), EarlierUsed);
  for (const Entry& entry : oldest) {
    if (bytes <= max_bytes_) break;
    if (RemoveUnused(entry.base)) bytes -= entry.bytes;
  }
}

}  // namespace switchyard::device::metal
