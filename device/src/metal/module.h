// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A compiled .metal file that is loaded into this process.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_MODULE_H_
#define SWITCHYARD_DEVICE_SRC_METAL_MODULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/src/metal/cache.h"
#include "device/src/metal/crew.h"
#include "device/src/metal/line_table.h"
#include "device/src/shim/switchyard_abi.h"

namespace switchyard::device::metal {

// The value of a function constant, which is named by index or by name.
struct ConstantValue {
  bool by_name;
  uint32_t index;
  std::string name;
  std::string type;  // Metal's name of the type
  std::vector<unsigned char> bytes;
};

class Module {
 public:
  // `comments` are the allow() comments of the shader's source. A
  // `private_copy` has its own variables, so that its function constants can
  // get their own values. Throws std::runtime_error.
  Module(std::shared_ptr<const CachedModule> compiled,
         std::shared_ptr<const AllowComments> comments, bool private_copy);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const switchyard_metal::Module& table() const { return *table_; }
  const switchyard_metal::Kernel* Find(const std::string& name) const;
  // Sets function constants. Call this once, before any kernel runs. Returns
  // an error if a value is wrong, or an empty text. Values of unknown
  // constants are ignored, as in Metal.
  std::string Set(const std::vector<ConstantValue>& values);

  Crews& crews() { return crews_; }
  const Crew::Surroundings& surroundings() const { return around_; }

 private:
  const std::shared_ptr<const CachedModule> compiled_;
  void* handle_ = nullptr;
  const switchyard_metal::Module* table_ = nullptr;
  std::unique_ptr<const ModulePlaces> places_;
  Crew::Surroundings around_;
  std::vector<Crew::Unset> unset_;
  Crews crews_;
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_MODULE_H_
