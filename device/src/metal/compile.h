// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// From the text of a .metal file to a shared object, by Clang.

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

// A header that shaders include, as part of the library.
struct EmbeddedFile {
  const char* name;
  const char* text;
};
extern const EmbeddedFile kShim[];  // the last has no name

struct CompileRequest {
  // One of the two:
  std::string source;
  std::string path;
  std::vector<std::string> arguments;  // -D and -I of the user's
  std::vector<std::string> prepended;  // files whose texts come before
  std::vector<std::string> kernels;    // those asked for; empty: all
  bool checked = false;
  int language_version = 320;  // __METAL_VERSION__
  std::string compiler;        // empty: the first of PATH
  std::string cache;           // the folder; empty: the user's
  uint64_t cache_bytes = 0;    // to keep it to; 0: any number
  // The preprocessor takes some 50 ms: one that takes so long waits for a file
  // that a macro's #include names. 0: it may take any time.
  unsigned preprocess_seconds = 60;
};

struct Compiled {
  std::shared_ptr<const CachedModule> module;
  std::string key;      // in the cache
  bool cached = false;  // was there before
  Translation translation;
  std::shared_ptr<const AllowComments> comments;
  // These are counted where a module was not cached, one for each kind.
  Accesses accesses;
  size_t kernels_cut = 0;  // into regions
};

// Throws std::runtime_error: Clang's own messages, or why it could not be run.
Compiled Compile(const CompileRequest& request);

// Compiles the file at request.path for both kinds of devices, into `output`, a
// .metallib, which Compile() then takes in the file's place, without a Clang.
// Gives the files that it is made of. Throws as Compile().
std::vector<std::string> CompileArchive(CompileRequest request,
                                        const std::string& output);

// Clang's arguments for the translated text, whatever it is to make of it.
std::vector<std::string> CodeArguments(bool checked);

// The same for the LLVM text that this makes, once it is complete: the accesses
// of a checked module by InstrumentRest(), the kernels of an unchecked one by
// CutIntoRegions().
std::vector<std::string> LlvmArguments(bool checked);

// More arguments for that text where kernels are cut.
std::vector<std::string> RegionArguments();

// The Clang to be used. Throws std::runtime_error if there is none.
std::string FindCompiler(const std::string& asked);

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_COMPILE_H_
