// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compiles a .metal file to a shared object with Clang.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_COMPILE_H_
#define SWITCHYARD_DEVICE_SRC_METAL_COMPILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/src/metal/accesses.h"
#include "device/src/metal/allow_comments.h"
#include "device/src/metal/cache.h"
#include "device/src/metal/translate.h"

namespace switchyard::device::metal {

// A header for shaders. Its text is embedded in the library.
struct EmbeddedFile {
  const char* name;
  const char* text;
};
extern const EmbeddedFile kShim[];  // the last element has no name

struct CompileRequest {
  // Set either `source` or `path`.
  std::string source;
  std::string path;
  std::vector<std::string> arguments;  // the user's -D and -I arguments
  // Files that the compiler includes before the shader.
  std::vector<std::string> prepended;
  // Names of kernels to compile; empty for all.
  std::vector<std::string> kernels;
  bool checked = false;
  int language_version = 320;  // the value of __METAL_VERSION__
  std::string compiler;        // path of Clang; empty for the first in PATH
  std::string cache;           // folder of the cache; empty for the user's
  uint64_t cache_bytes = 0;    // the cache's largest size; 0 for no limit
  // The time limit of the preprocessor; 0 for no limit. The preprocessor
  // usually takes some 50 ms. It may wait forever if the shader includes,
  // through a macro, a file that is a device or a FIFO.
  unsigned preprocess_seconds = 60;
};

struct Compiled {
  std::shared_ptr<const CachedModule> module;
  std::string key;      // the module's key in the cache
  bool cached = false;  // true if the module came from the cache
  Translation translation;
  std::shared_ptr<const AllowComments> comments;
  // These are set only if the module was compiled now: `accesses` for a
  // checked module, `kernels_cut` for an unchecked one.
  Accesses accesses;
  size_t kernels_cut = 0;  // the number of kernels that were cut into regions
};

// Compiles a shader, or finds it in the cache. Throws std::runtime_error with
// Clang's messages, or with the reason why Clang could not be run.
Compiled Compile(const CompileRequest& request);

// Compiles the file at request.path twice, for devices without and with
// DeviceOptions::check_kernels, and writes both modules to `output`, a
// .metallib. Compile() can load that file without Clang. Returns the paths of
// the shader and of the files that it includes. Throws like Compile().
std::vector<std::string> CompileArchive(CompileRequest request,
                                        const std::string& output);

// Returns Clang's arguments for reading the translated text. They are the
// same for every kind of output.
std::vector<std::string> CodeArguments(bool checked);

// Returns the arguments with which Clang compiles the LLVM text. That text
// was made from the translated text and then changed: InstrumentRest() has
// added calls to a checked module, or CutIntoRegions() has cut the kernels of
// an unchecked one.
std::vector<std::string> LlvmArguments(bool checked);

// Returns the additional arguments for LLVM text with cut kernels.
std::vector<std::string> RegionArguments();

// Returns the path of Clang. `asked` is the compiler that the user asks for,
// or empty. Throws std::runtime_error if it finds no Clang.
std::string FindCompiler(const std::string& asked);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_COMPILE_H_
