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

// A header for shaders, embedded in the library.
struct EmbeddedFile {
  const char* name;
  const char* text;
};
extern const EmbeddedFile kShim[];  // the last has no name

struct CompileRequest {
  // Give one of these two.
  std::string source;
  std::string path;
  std::vector<std::string> arguments;  // the user's -D and -I
  std::vector<std::string> prepended;  // files to include first
  std::vector<std::string> kernels;    // to compile; empty: all
  bool checked = false;
  int language_version = 320;  // __METAL_VERSION__
  std::string compiler;        // empty: the first in PATH
  std::string cache;           // the folder; empty: the user's
  uint64_t cache_bytes = 0;    // limit of its size; 0: none
  // Time limit of the preprocessor, 0: none. It takes some 50 ms; one that
  // runs into the limit waits for a file that a macro's #include names.
  unsigned preprocess_seconds = 60;
};

struct Compiled {
  std::shared_ptr<const CachedModule> module;
  std::string key;      // in the cache
  bool cached = false;  // true if the cache had it
  Translation translation;
  std::shared_ptr<const AllowComments> comments;
  // Only set if the module was compiled now: `accesses` of a checked module,
  // `kernels_cut` of an unchecked one.
  Accesses accesses;
  size_t kernels_cut = 0;  // into regions
};

// Throws std::runtime_error with Clang's messages, or the reason why Clang
// could not be run.
Compiled Compile(const CompileRequest& request);

// Compiles the file at request.path for both kinds of devices into `output`,
// a .metallib. Compile() loads that file without a Clang. Returns the files
// that the shader includes, its own among them. Throws like Compile().
std::vector<std::string> CompileArchive(CompileRequest request,
                                        const std::string& output);

// Clang's arguments for the translated text, for any kind of output.
std::vector<std::string> CodeArguments(bool checked);

// Clang's arguments for the LLVM text made from it, once InstrumentRest() has
// added calls to a checked module, or CutIntoRegions() has cut the kernels of
// an unchecked one.
std::vector<std::string> LlvmArguments(bool checked);

// Further arguments for LLVM text with cut kernels.
std::vector<std::string> RegionArguments();

// Returns the path of Clang. Throws std::runtime_error if it finds no Clang.
std::string FindCompiler(const std::string& asked);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_COMPILE_H_
