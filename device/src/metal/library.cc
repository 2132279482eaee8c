// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/device/library.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "device/src/metal/compile.h"
#include "device/src/metal/module.h"
#include "switchyard/device/device.h"

namespace switchyard::device {
namespace {

using host_internal::ErrorOut;
using host_internal::Settings;
using host_internal::Text;

struct TypeName {
  const char* name;
  size_t bytes;
};
// The names of types, in the order of DataType.
constexpr TypeName kTypes[] = {
    {"bool", 1},   {"char", 1}, {"uchar", 1},  {"short", 2},
    {"ushort", 2}, {"int", 4},  {"uint", 4},   {"long", 8},
    {"ulong", 8},  {"half", 2}, {"bfloat", 2}, {"float", 4},
};

// Returns make(). If it throws, returns null and stores the reason in
// `error`.
template <class Make>
auto OrError(const ErrorOut& error, const Make& make) noexcept
    -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    error.Set("out of memory");
  } catch (const std::exception& e) {
    error.Set(e.what());
  }
  return nullptr;
}

// Returns a new T, or null if memory runs out.
template <class T>
std::shared_ptr<T> Made() noexcept {
  try {
    return std::make_shared<T>();
  } catch (...) {
    return nullptr;
  }
}

metal::CompileRequest RequestOf(const DeviceOptions& device,
                                const Settings<CompileOptions>& settings) {
  const CompileOptions none;
  const CompileOptions& options =
      settings.get() == nullptr ? none : *settings.get();
  metal::CompileRequest request;
  const UInteger version = options.languageVersion();
  request.language_version =
      static_cast<int>((version >> 16) * 100 + (version & 0xFFFF) * 10);
  request.checked = device.check_kernels;
  request.compiler = device.metal_compiler;
  request.cache = device.metal_cache;
  request.cache_bytes = device.metal_cache_bytes;
  for (const auto& [name, value] : options.preprocessor_macros) {
    request.arguments.push_back("-D" + name + "=" + value);
  }
  for (const std::string& folder : options.include_folders) {
    request.arguments.push_back("-I" + folder);
  }
  request.prepended = options.prepended_files;
  request.kernels = options.kernels;
  return request;
}

}  // namespace

void FunctionConstantValues::setConstantValue(const void* value, DataType type,
                                              size_t index) {
  Value added;
  added.index = index;
  added.type = type;
  std::memcpy(added.bytes, value, kTypes[type].bytes);
  values_.push_back(std::move(added));
}
void FunctionConstantValues::setConstantValue(const void* value, DataType type,
                                              const Text& name) {
  setConstantValue(value, type, size_t{0});
  values_.back().name = name.c_str();
}
void FunctionConstantValues::setConstantValues(const void* values,
                                               DataType type, Range range) {
  const unsigned char* const bytes = static_cast<const unsigned char*>(values);
  for (size_t i = 0; i < range.length; ++i) {
    setConstantValue(bytes + i * kTypes[type].bytes, type, range.location + i);
  }
}

Ref<CompileOptions> CompileOptions::alloc() noexcept {
  return Made<CompileOptions>();
}
Ref<CompileOptions> CompileOptions::init() noexcept {
  return std::static_pointer_cast<CompileOptions>(shared_from_this());
}
Ref<FunctionConstantValues> FunctionConstantValues::alloc() noexcept {
  return Made<FunctionConstantValues>();
}
Ref<FunctionConstantValues> FunctionConstantValues::init() noexcept {
  return std::static_pointer_cast<FunctionConstantValues>(shared_from_this());
}

Function::Function(std::shared_ptr<metal::Module> module, const char* name)
    : module_(std::move(module)), name_(name) {
  const switchyard_metal::Kernel& kernel = *module_->Find(name_);
  place_ = std::string(kernel.file) + ":" + std::to_string(kernel.line);
  for (uint32_t i = 0; i < kernel.num_parameters; ++i) {
    const switchyard_metal::Parameter& parameter = kernel.parameters[i];
    FunctionArgument argument;
    argument.name = parameter.name;
    argument.declared = parameter.text;
    argument.is_buffer = parameter.input == switchyard_metal::Input::kBuffer;
    argument.is_threadgroup_memory =
        parameter.input == switchyard_metal::Input::kThreadgroup;
    argument.index = parameter.index;
    argument.bytes = parameter.bytes;
    argument.only_reads = parameter.only_reads;
    arguments_.push_back(std::move(argument));
  }
}
Function::~Function() = default;

KernelFunction Function::AsKernel() const {
  KernelFunction kernel;
  kernel.name = name_;
  const switchyard_metal::Kernel* const run = module_->Find(name_);
  // The function holds the module, so the module stays loaded as long as the
  // pipeline exists.
  kernel.threadgroup = [module = module_,
                        run](const ThreadgroupContext& context) {
    metal::Crews::Borrowed crew(module->crews());
    crew->SetSurroundings(module->surroundings());
    crew->Run(*run, context);
  };
  kernel.checked = kernel.threadgroup;
  return kernel;
}

Library::Library(const metal::Compiled& compiled)
    : compiled_(compiled.module),
      cached_(compiled.cached),
      comments_(compiled.comments),
      module_(std::make_shared<metal::Module>(compiled_, comments_, false)),
      left_out_(compiled.translation.not_asked_for) {
  for (const metal::Unsupported& u : compiled.translation.unsupported) {
    unsupported_.push_back({u.what, u.file, u.line, u.column, u.kernel});
  }
}
Library::~Library() = default;

Ref<Library> Library::Compile(const DeviceOptions& device,
                              const Settings<CompileOptions>& options,
                              const char* source, const char* path,
                              const ErrorOut& error) noexcept {
  return OrError(error, [&] {
    metal::CompileRequest request = RequestOf(device, options);
    if (source != nullptr) request.source = source;
    if (path != nullptr) request.path = path;
    return std::shared_ptr<Library>(new Library(metal::Compile(request)));
  });
}

bool CompileMetallib(const DeviceOptions& device, Text path,
                     Settings<CompileOptions> options, Text output,
                     std::vector<std::string>* files, ErrorOut error) noexcept {
  try {
    metal::CompileRequest request = RequestOf(device, options);
    request.path = path.c_str();
    std::vector<std::string> made_of =
        metal::CompileArchive(std::move(request), output.c_str());
    if (files != nullptr) *files = std::move(made_of);
    return true;
  } catch (const std::bad_alloc&) {
    error.Set("out of memory");
  } catch (const std::exception& e) {
    error.Set(e.what());
  }
  return false;
}

std::vector<std::string> Library::functionNames() const {
  std::vector<std::string> names;
  const switchyard_metal::Module& table = module_->table();
  for (uint32_t i = 0; i < table.num_kernels; ++i) {
    names.push_back(table.kernels[i].name);
  }
  names.insert(names.end(), left_out_.begin(), left_out_.end());
  return names;
}

std::vector<FunctionConstant> Library::functionConstants() const {
  std::vector<FunctionConstant> constants;
  const switchyard_metal::Module& table = module_->table();
  for (uint32_t i = 0; i < table.num_constants; ++i) {
    const switchyard_metal::FunctionConstant& constant = table.constants[i];
    constants.push_back({constant.name, constant.index, constant.type});
  }
  return constants;
}

std::vector<AllowComment> Library::allowComments() const {
  std::vector<AllowComment> all;
  for (const metal::AllowComment& comment : comments_->list()) {
    all.push_back({comment.kinds,
                   {comment.file, comment.line, comment.column},
                   comment.suppressed});
  }
  return all;
}

Ref<Function> Library::newFunction(Text name, ErrorOut error) noexcept {
  return newFunction(name, Settings<FunctionConstantValues>(), error);
}

Ref<Function> Library::newFunction(Text text,
                                   Settings<FunctionConstantValues> constants,
                                   ErrorOut error) noexcept {
  if (text.is_null()) {
    error.Set("newFunction: name is null");
    return nullptr;
  }
  const char* const name = text.c_str();
  return OrError(error, [&]() -> std::shared_ptr<Function> {
    const std::string label = label_.Get();
    const std::string in =
        label.empty() ? label : " in library \"" + label + "\"";
    if (module_->Find(name) == nullptr) {
      for (const UnsupportedFeature& u : unsupported_) {
        if (u.kernel != name) continue;
        throw std::runtime_error(std::string("newFunction: ") + name +
                                 " is not supported" + in + ": " + u.file +
                                 ":" + std::to_string(u.line) + ": " + u.what);
      }
      const bool is_left_out = std::find(left_out_.begin(), left_out_.end(),
                                         name) != left_out_.end();
      throw std::runtime_error(
          is_left_out
              ? std::string("newFunction: ") + name +
                    " is not among CompileOptions::kernels" + in
              : std::string("newFunction: no kernel is named ") + name + in);
    }
    std::shared_ptr<metal::Module> module = module_;
    if (module_->table().num_constants != 0) {
      module = std::make_shared<metal::Module>(compiled_, comments_, true);
      std::vector<metal::ConstantValue> values;
      const FunctionConstantValues none;
      for (const FunctionConstantValues::Value& value :
           (constants.get() == nullptr ? none : *constants.get()).values_) {
        values.push_back(
            {!value.name.empty(),
             static_cast<uint32_t>(value.index),
             value.name,
             kTypes[value.type].name,
             {value.bytes, value.bytes + kTypes[value.type].bytes}});
      }
      const std::string wrong = module->Set(values);
      if (!wrong.empty()) throw std::runtime_error("newFunction: " + wrong);
    }
    return std::shared_ptr<Function>(new Function(std::move(module), name));
  });
}

}  // namespace switchyard::device
