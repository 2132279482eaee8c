// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The folder of what has been compiled: HASH.so, and beside it HASH.cc with
// what it was made of. Any number of processes use it at a time.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_CACHE_H_
#define SWITCHYARD_DEVICE_SRC_METAL_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>

namespace switchyard::device::metal {

// A compiled module, which stays in the folder while this is there.
class CachedModule {
 public:
  CachedModule(std::string path, int file)
      : path_(std::move(path)), file_(file) {}
  ~CachedModule();
  CachedModule(const CachedModule&) = delete;
  CachedModule& operator=(const CachedModule&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  const int file_;  // with a lock that is shared
};

// Throws std::runtime_error where the folder can't be used.
class Cache {
 public:
  // Empty: the user's. It is kept to so many bytes; 0: any number.
  Cache(const std::string& folder, uint64_t max_bytes);

  const std::string& folder() const { return folder_; }
  // null if there is none of exactly this key.
  std::shared_ptr<const CachedModule> Find(const std::string& key) const;
  // Takes the files in, by their names, and lets go of those that have not been
  // used for longest.
  std::shared_ptr<const CachedModule> Add(const std::string& key,
                                          const std::string& module,
                                          const std::string& key_file) const;

 private:
  std::string Base(const std::string& key) const;
  std::shared_ptr<const CachedModule> FindLocked(const std::string& key) const;
  void Tidy() const;

  const std::string folder_;
  const uint64_t max_bytes_;
};

// FNV-1a. What has the same hash is told apart by its text.
std::string HashOf(const std::string& text);
void MakeFolder(const std::string& path);
// It is used now.
void Touch(const std::string& path);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_CACHE_H_
