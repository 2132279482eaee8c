// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The folder of compiled modules. HASH.so is a module. HASH.cc is the
// module's key: the text that it was made from. Any number of processes may
// use the folder at the same time.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_CACHE_H_
#define SWITCHYARD_DEVICE_SRC_METAL_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>

namespace switchyard::device::metal {

// A compiled module. Its file stays in the folder for as long as this object
// exists.
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
  const int file_;  // has a shared lock, so that Tidy() keeps the file
};

// The constructor throws std::runtime_error if the folder can't be used.
class Cache {
 public:
  // If `folder` is empty, this uses the user's cache. The folder is kept
  // below `max_bytes`; 0 means no limit.
  Cache(const std::string& folder, uint64_t max_bytes);

  const std::string& folder() const { return folder_; }
  // Returns the module with exactly this key, or null.
  std::shared_ptr<const CachedModule> Find(const std::string& key) const;
  // Moves the two files into the folder. If the folder is then too large,
  // deletes the least recently used modules.
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

// Returns the FNV-1a hash of the text. The cache compares the text, too,
// because two keys may have the same hash.
std::string HashOf(const std::string& text);
void MakeFolder(const std::string& path);
// Sets the file's time of use to now.
void Touch(const std::string& path);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_CACHE_H_
