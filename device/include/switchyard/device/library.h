// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs .metal files unchanged. Device::newLibrary() compiles a file with
// Clang (14 or later) at run time, or CMake's switchyard_add_shaders() does
// so at build time, and its kernels run thread by thread as on a GPU. In
// checked mode every access is checked. device/docs/metal.md lists the
// supported features, and shows how to check shaders in CI.

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

// How a .metal file is compiled. Make it as a variable, or by alloc() as in
// metal-cpp.
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

  // NAME and value, as -DNAME=value.
  std::vector<std::pair<std::string, std::string>> preprocessor_macros;
  // Folders that #include "..." and <...> search after the folder of the
  // file.
  std::vector<std::string> include_folders;
  // Files to compile before the shader's text, for shaders that their hosts
  // concatenate from fragments.
  std::vector<std::string> prepended_files;
  // The kernels to compile, by their names; empty: all. Templates are not
  // instantiated for other kernels, which saves time: instantiation may take
  // most of it.
  std::vector<std::string> kernels;

  // Sets __METAL_VERSION__ only; the language is always 3.2.
  void setLanguageVersion(LanguageVersion version) noexcept {
    version_ = version;
  }
  LanguageVersion languageVersion() const noexcept { return version_; }
  // Accepted and ignored: arithmetic is done in the order written.
  void setFastMathEnabled(bool) noexcept {}
  void setMathMode(MathMode) noexcept {}
  void setMathFloatingPointFunctions(MathFloatingPointFunctions) noexcept {}
  void setPreserveInvariance(bool) noexcept {}

 private:
  LanguageVersion version_ = LanguageVersion3_2;
};

// Values of a shader's constants `constant T x [[function_constant(i)]];`. A
// constant without a value is not defined: is_function_constant_defined()
// returns false for it. Make it as a variable, or by alloc() as in metal-cpp.
class FunctionConstantValues : public Referencing<FunctionConstantValues> {
 public:
  FunctionConstantValues() = default;
  FunctionConstantValues(const FunctionConstantValues& other)
      : values_(other.values_) {}
  static Ref<FunctionConstantValues> alloc() noexcept;
  Ref<FunctionConstantValues> init() noexcept;

  // Copies the value. `value` must not be null.
  void setConstantValue(const void* value, DataType type, size_t index);
  void setConstantValue(const void* value, DataType type,
                        const host_internal::Text& name);
  // Sets the values for the indices of the range, from consecutive values.
  void setConstantValues(const void* values, DataType type, Range range);
  void reset() { values_.clear(); }

 private:
  friend class Library;
  struct Value {
    std::string name;  // empty: by index
    size_t index = 0;
    DataType type = DataTypeBool;
    unsigned char bytes[8] = {};
  };
  std::vector<Value> values_;
};

// A parameter of a kernel, for listings.
struct FunctionArgument {
  std::string name;
  std::string declared;  // "device const float* x [[buffer(0)]]"
  bool is_buffer = false;
  bool is_threadgroup_memory = false;
  size_t index = 0;
  size_t bytes = 0;  // of the type it points to
  bool only_reads = false;
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
  // The place of its definition: "file:line".
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
  std::string what;
  std::string file;
  size_t line = 0;
  size_t column = 0;
  std::string kernel;  // the kernel left out; empty: no kernel
};

// `constant T name [[function_constant(index)]];` of a shader.
struct FunctionConstant {
  std::string name;
  size_t index = 0;
  std::string type;  // MSL's: "uint"
};

// `// switchyard: allow(KIND, ...)` in a shader, for checked mode; see
// device/docs/metal.md.
struct AllowComment {
  std::string kinds;  // as written
  Place where;
  size_t suppressed = 0;  // findings so far, of the library's kernels
};

// A compiled .metal file. Any thread may use it.
class Library : public Referencing<Library> {
 public:
  ~Library();
  // Shown in errors.
  void setLabel(const host_internal::Text& label) noexcept {
    label_.Set(label);
  }
  std::string label() const { return label_.Get(); }
  // Names of kernels in the order of the file, then of the kernels left out
  // because CompileOptions::kernels does not list them. Kernels that are not
  // supported are missing.
  std::vector<std::string> functionNames() const;
  // nullptr if the kernel does not exist, if it is not supported, or if a
  // value is not of the constant's type, with the reason in *error unless
  // `error` is null.
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
  // The allow() comments of all its files. Delete a comment that has
  // suppressed nothing after all kernels have run checked.
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
  const std::vector<std::string> left_out_;  // by CompileOptions::kernels
  host_internal::Label label_;
};

// Compiles a .metal file into `output`, a .metallib. newLibraryFromFile()
// accepts it instead of the .metal file, on a machine without Clang.
// switchyard_add_shaders() of the CMake package calls this at build time.
// Unless `files` is null, *files gets the names of all files that the shader
// consists of, for build systems. On failure it returns false, with the
// reason in *error.
bool CompileMetallib(const DeviceOptions& device, host_internal::Text path,
                     host_internal::Settings<CompileOptions> options,
                     host_internal::Text output,
                     std::vector<std::string>* files,
                     host_internal::ErrorOut error = nullptr) noexcept;

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_LIBRARY_H_
