// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/module.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>

namespace switchyard::device::metal {
namespace {

// A temporary copy of a file. If dlopen() knows a file's name or inode, it
// returns the module that is already loaded. A copy has another name, and an
// inode that no other file gets while the copy is mapped. So dlopen() loads
// it as a new module.
class FileCopy {
 public:
  explicit FileCopy(const std::string& path) : path_(path + ".XXXXXX") {
    const int from = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const int to = mkostemp(path_.data(), O_CLOEXEC);
    struct stat status;
    bool copied = from >= 0 && to >= 0 && fstat(from, &status) == 0;
    for (off_t left = copied ? status.st_size : 0; left > 0 && copied;) {
      const ssize_t done =
          sendfile(to, from, nullptr, static_cast<size_t>(left));
      copied = done > 0;
      left -= done;
    }
    const int error = errno;
    if (from >= 0) close(from);
    if (to >= 0) close(to);
    if (copied) return;
    unlink(path_.c_str());
    throw std::runtime_error("can't copy " + path + ": " +
                             std::strerror(error));
  }
  ~FileCopy() { unlink(path_.c_str()); }
  FileCopy(const FileCopy&) = delete;
  FileCopy& operator=(const FileCopy&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

uintptr_t BaseOf(void* handle) {
  link_map* map = nullptr;
  dlinfo(handle, RTLD_DI_LINKMAP, &map);
  return map->l_addr;
}

// Returns the addresses to which the module is mapped.
Crew::Surroundings AddressesOf(void* handle) {
  Crew::Surroundings loaded;
  loaded.begin = BaseOf(handle);
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Crew::Surroundings& found = *static_cast<Crew::Surroundings*>(data);
        if (info->dlpi_addr != found.begin) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          found.end = std::max<uintptr_t>(
              found.end, found.begin + segment.p_vaddr + segment.p_memsz);
        }
        return 1;
      },
      &loaded);
  return loaded;
}

}  // namespace

Module::Module(std::shared_ptr<const CachedModule> compiled,
               std::shared_ptr<const AllowComments> comments, bool private_copy)
    : compiled_(std::move(compiled)) {
  const std::string& path = compiled_->path();
  std::unique_ptr<const FileCopy> copy;
  if (private_copy) copy = std::make_unique<FileCopy>(path);
  // Only one thread at a time may load a module: all threads that load the
  // same file get the same module, and each thread sets the module's runtime.
  static std::mutex loading;
  const std::lock_guard<std::mutex> lock(loading);
  handle_ = dlopen(private_copy ? copy->path().c_str() : path.c_str(),
                   RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* const error = dlerror();
    throw std::runtime_error(error == nullptr ? "can't load " + path : error);
  }
  table_ = static_cast<const switchyard_metal::Module*>(
      dlsym(handle_, "switchyard_metal_module"));
  if (table_ == nullptr) {
    dlclose(handle_);
    throw std::runtime_error(path + ": is not a compiled .metal file");
  }
  *table_->runtime = &kRuntime;
  around_ = AddressesOf(handle_);
  places_ = std::make_unique<ModulePlaces>(
      path, reinterpret_cast<const void*>(BaseOf(handle_)),
      std::move(comments));
  around_.places = places_.get();
}

Module::~Module() { dlclose(handle_); }

const switchyard_metal::Kernel* Module::Find(const std::string& name) const {
  for (uint32_t i = 0; i < table_->num_kernels; ++i) {
    if (name == table_->kernels[i].name) return &table_->kernels[i];
  }
  return nullptr;
}

std::string Module::Set(const std::vector<ConstantValue>& values) {
  for (const ConstantValue& value : values) {
    for (uint32_t i = 0; i < table_->num_constants; ++i) {
      const switchyard_metal::FunctionConstant& constant = table_->constants[i];
      if (value.by_name ? value.name != constant.name
                        : value.index != constant.index) {
        continue;
      }
      if (value.type != constant.type || value.bytes.size() != constant.bytes) {
        return std::string("function constant ") + constant.name + " (index " +
               std::to_string(constant.index) + ") is " + constant.type +
               ", the value given is " + value.type;
      }
      std::memcpy(constant.value, value.bytes.data(), constant.bytes);
      *constant.defined = true;
    }
  }
  for (uint32_t i = 0; i < table_->num_constants; ++i) {
    const switchyard_metal::FunctionConstant& constant = table_->constants[i];
    const uintptr_t at = reinterpret_cast<uintptr_t>(constant.value);
    if (*constant.defined) continue;
    unset_.push_back({at, at + constant.bytes, constant.name});
  }
  around_.unset = &unset_;
  if (table_->set_up == nullptr) return "";
  // A constant that is computed from an unset constant counts as unset, too.
  // set_up() reads the operands of a constant and then writes it. So when an
  // unset constant was read, the listener marks the constant that is written
  // next.
  const char* unset = nullptr;
  const Crew::Listener listener = [&](uintptr_t at, size_t bytes,
                                      uint32_t kind) {
    if ((kind & switchyard_metal::kWrites) != 0) {
      if (unset != nullptr) unset_.push_back({at, at + bytes, unset});
      unset = nullptr;
    }
    for (const Crew::Unset& each : unset_) {
      if ((kind & switchyard_metal::kWrites) == 0 && at < each.end &&
          at + bytes > each.begin) {
        unset = each.name;
      }
    }
  };
  Crew::listener = &listener;
  table_->set_up();
  Crew::listener = nullptr;
  return "";
}

}  // namespace switchyard::device::metal
