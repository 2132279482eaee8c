// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Libraries: a library holds the kernels of a .metal file, which needs no
// changes. Device::newLibrary() compiles the file with Clang (14 or later) at
// run time; switchyard_add_shaders() of the CMake package compiles it at
// build time. Kernels run thread by thread as on a GPU. In checked mode every
// access is checked. device/docs/metal.md lists the supported features, and
// shows how to check shaders in CI.

#ifndef SWITCHYARD_DEVICE_LIBRARY_H_
#define SWITCHYARD_DEVICE_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "switchyard/device/findings.h"
#include "switchyard/device/foundation.h"

namespace switchyard::device {

class Device;
struct DeviceOptions;   // device.h
struct KernelFunction;  // threadgroup.h
namespace metal {
class AllowComments;  // device/src/metal
class CachedModule;   // device/src/metal
class Module;         // device/src/metal
struct Compiled;      // device/src/metal
}  // namespace metal

enum DataType : uint32_t {
  DataTypeBool,
  DataTypeChar,
  DataTypeUChar,
  DataTypeShort,
  DataTypeUShort,
  DataTypeInt,
  DataTypeUInt,
  DataTypeLong,
  DataTypeULong,
  DataTypeHalf,
  DataTypeBFloat,
  DataTypeFloat,
};

enum LanguageVersion : UInteger {
  LanguageVersion1_1 = 0x10001,
  LanguageVersion1_2 = 0x10002,
  LanguageVersion2_0 = 0x20000,
  LanguageVersion2_1 = 0x20001,
  LanguageVersion2_2 = 0x20002,
  LanguageVersion2_3 = 0x20003,
  LanguageVersion2_4 = 0x20004,
  LanguageVersion3_0 = 0x30000,
  LanguageVersion3_1 = 0x30001,
  LanguageVersion3_2 = 0x30002,
};
enum MathMode : Integer { MathModeSafe, MathModeRelaxed, MathModeFast };
enum MathFloatingPointFunctions : Integer {
  MathFloatingPointFunctionsFast,
  MathFloatingPointFunctionsPrecise,
};

// Options for compiling a .metal file. Declare a variable of this type, or call
// alloc() as in metal-cpp.
class CompileOptions : public Referencing<CompileOptions> {
 public:
  CompileOptions() = default;
  CompileOptions(const CompileOptions& other)
      : preprocessor_macros(other.preprocessor_macros),
        include_folders(other.include_folders),
        prepended_files(other.prepended_files),
        kernels(other.kernels),
        version_(other.version_) {}
  static Ref<CompileOptions> alloc() noexcept;
  Ref<CompileOptions> init() noexcept;

  // The names and values of macros, as in -DNAME=value.
  std::vector<std::pair<std::string, std::string>> preprocessor_macros;
  // Folders that #include "..." and <...> search after the folder of the
  // file.
  std::vector<std::string> include_folders;
  // Files to compile before the shader's text, for shaders that their hosts
  // concatenate from fragments.
  std::vector<std::string> prepended_files;
  // The names of the kernels to compile; empty means all. Naming fewer
  // kernels saves time, because templates are not instantiated for other
  // kernels, and instantiation may take most of the time.
  std::vector<std::string> kernels;

  // Sets __METAL_VERSION__ only; the language is always 3.2.
  void setLanguageVersion(LanguageVersion version) noexcept {
    version_ = version;
  }
  LanguageVersion languageVersion() const noexcept { return version_; }
  // These settings are accepted but ignored: arithmetic is done in the order
  // written.
  void setFastMathEnabled(bool) noexcept {}
  void setMathMode(MathMode) noexcept {}
  void setMathFloatingPointFunctions(MathFloatingPointFunctions) noexcept {}
  void setPreserveInvariance(bool) noexcept {}

 private:
  LanguageVersion version_ = LanguageVersion3_2;
};

// The values of a shader's constants `constant T x
// [[function_constant(i)]];`. A constant without a value is not defined:
// is_function_constant_defined() returns false for it. Declare a variable of
// this type, or call alloc() as in metal-cpp.
class FunctionConstantValues : public Referencing<FunctionConstantValues> {
 public:
  FunctionConstantValues() = default;
  FunctionConstantValues(const FunctionConstantValues& other)
      : values_(other.values_) {}
  static Ref<FunctionConstantValues> alloc() noexcept;
  Ref<FunctionConstantValues> init() noexcept;

  // Copies the value of the constant with this index or name. `value` must
  // not be null.
  void setConstantValue(const void* value, DataType type, size_t index);
  void setConstantValue(const void* value, DataType type,
                        const host_internal::Text& name);
  // Sets the constants with the indices of the range. `values` points to
  // their values, one after the other.
  void setConstantValues(const void* values, DataType type, Range range);
  void reset() { values_.clear(); }

 private:
  friend class Library;
  struct Value {
    std::string name;  // empty if the constant is given by its index
    size_t index = 0;
    DataType type = DataTypeBool;
    unsigned char bytes[8] = {};
  };
  std::vector<Value> values_;
};

// A parameter of a kernel, for programs that list kernels.
struct FunctionArgument {
  std::string name;        // the parameter's name
  std::string declared;    // "device const float* x [[buffer(0)]]"
  bool is_buffer = false;  // true if the parameter is a buffer
  // True if the parameter is threadgroup memory.
  bool is_threadgroup_memory = false;
  size_t index = 0;  // the index of the buffer or of the threadgroup memory
  size_t bytes = 0;  // size of the type that the parameter points to
  bool only_reads = false;  // true if the parameter points to const
};

// A kernel of a library, for newComputePipelineState().
class Function : public Referencing<Function> {
 public:
  ~Function();
  void setLabel(const host_internal::Text& label) noexcept {
    label_.Set(label);
  }
  std::string label() const { return label_.Get(); }
  const std::string& name() const noexcept { return name_; }
  // Returns where the kernel is defined: "file:line".
  const std::string& place() const noexcept { return place_; }
  const std::vector<FunctionArgument>& arguments() const noexcept {
    return arguments_;
  }

 private:
  friend class Device;
  friend class Library;
  Function(std::shared_ptr<metal::Module> module, const char* name);
  KernelFunction AsKernel() const;

  const std::shared_ptr<metal::Module> module_;
  const std::string name_;
  std::string place_;
  std::vector<FunctionArgument> arguments_;
  host_internal::Label label_;
};

// A feature of a shader that is not supported.
struct UnsupportedFeature {
  std::string what;   // a description of the feature
  std::string file;   // the file that uses the feature
  size_t line = 0;    // counted from 1
  size_t column = 0;  // counted from 1
  // The kernel that uses the feature, which the library leaves out. Empty if
  // the feature concerns the whole file.
  std::string kernel;
};

// A constant `constant T name [[function_constant(index)]];` of a shader.
struct FunctionConstant {
  std::string name;  // the constant's name
  size_t index = 0;  // the index in [[function_constant(index)]]
  std::string type;  // the type's name in MSL, such as "uint"
};

// A comment `// switchyard: allow(KIND, ...)` in a shader, for checked mode;
// see device/docs/metal.md.
struct AllowComment {
  std::string kinds;  // the text in the parentheses
  Place where;        // the place of the comment
  // The number of findings that this comment has suppressed so far, in all
  // kernels of the library.
  size_t suppressed = 0;
};

// A compiled .metal file. Any thread may use it.
class Library : public Referencing<Library> {
 public:
  ~Library();
  // Errors show the label.
  void setLabel(const host_internal::Text& label) noexcept {
    label_.Set(label);
  }
  std::string label() const { return label_.Get(); }
  // Returns the names of the kernels in the order of the file, and after them
  // the names of the kernels that were not compiled because
  // CompileOptions::kernels does not list them. Kernels that are not
  // supported are missing.
  std::vector<std::string> functionNames() const;
  // Returns a kernel. Returns nullptr if the kernel does not exist or is not
  // supported, or if a value has another type than its constant. *error then
  // has the reason, unless `error` is null.
  Ref<Function> newFunction(host_internal::Text name,
                            host_internal::ErrorOut error = nullptr) noexcept;
  Ref<Function> newFunction(
      host_internal::Text name,
      host_internal::Settings<FunctionConstantValues> constants,
      host_internal::ErrorOut error = nullptr) noexcept;
  std::vector<FunctionConstant> functionConstants() const;
  const std::vector<UnsupportedFeature>& unsupported() const noexcept {
    return unsupported_;
  }
  // Returns the allow() comments of all files of the library. A comment that
  // has suppressed nothing after all kernels have run in checked mode is not
  // needed, and can be deleted from the source.
  std::vector<AllowComment> allowComments() const;
  // True if the library was compiled before and read from the cache.
  bool cached() const noexcept { return cached_; }

 private:
  friend class Device;
  explicit Library(const metal::Compiled& compiled);
  // Compiles `source`, or the file at `path`; the other argument is null.
  static Ref<Library> Compile(
      const DeviceOptions& device,
      const host_internal::Settings<CompileOptions>& options,
      const char* source, const char* path,
      const host_internal::ErrorOut& error) noexcept;

  const std::shared_ptr<const metal::CachedModule> compiled_;
  const bool cached_;
  const std::shared_ptr<const metal::AllowComments> comments_;
  std::shared_ptr<metal::Module> module_;
  std::vector<UnsupportedFeature> unsupported_;
  // Kernels that CompileOptions::kernels does not list.
  const std::vector<std::string> left_out_;
  host_internal::Label label_;
};

// Compiles a .metal file into `output`, a .metallib. On a machine without
// Clang, newLibraryFromFile() accepts the .metallib instead of the .metal
// file. switchyard_add_shaders() of the CMake package calls this function at
// build time. Unless `files` is null, *files gets the names of all files that
// the shader consists of, for build systems. On failure the function returns
// false, with the reason in *error.
bool CompileMetallib(const DeviceOptions& device, host_internal::Text path,
                     host_internal::Settings<CompileOptions> options,
                     host_internal::Text output,
                     std::vector<std::string>* files,
                     host_internal::ErrorOut error = nullptr) noexcept;

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_LIBRARY_H_
