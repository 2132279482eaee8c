// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A .metallib file. It holds the two modules that a .metal file was compiled
// to: one for devices that check kernels, and one for devices that do not.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_ARCHIVE_H_
#define SWITCHYARD_DEVICE_SRC_METAL_ARCHIVE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/src/metal/allow_comments.h"
#include "device/src/metal/translate.h"

namespace switchyard::device::metal {

struct Archive {
  struct Part {
    std::string key;     // the module's key in the cache
    std::string module;  // the bytes of its shared object
  };
  // The hash of the shim that the modules were made with. Modules of another
  // shim do not run.
  std::string made_by;
  Part unchecked, checked;
  std::vector<Unsupported> unsupported;
  AllowComments comments;
};

bool IsArchive(std::string_view bytes);
std::string ToBytes(const Archive& archive);
// Reads *archive from the bytes. Throws std::runtime_error if bytes are
// missing or left over.
void FromBytes(std::string_view bytes, Archive* archive);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_ARCHIVE_H_
