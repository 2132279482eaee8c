// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The part of Crew that binds the resources of a dispatch to the kernel's
// arguments.

#include <exception>
#include <stdexcept>
#include <string>

#include "device/src/core/grid_runner.h"
#include "device/src/core/running_dispatch.h"
#include "device/src/metal/crew.h"
#include "switchyard/device/kernel.h"

namespace switchyard::device::metal {
namespace {

namespace abi = switchyard_metal;

bool IsArgument(const abi::Parameter& parameter) {
  return parameter.when == nullptr || *parameter.when;
}

uint32_t Narrow(size_t value) { return static_cast<uint32_t>(value); }
void Copy(const Size& from, uint32_t* to) {
  to[0] = Narrow(from.width);
  to[1] = Narrow(from.height);
  to[2] = Narrow(from.depth);
}

}  // namespace

alignas(64) unsigned char Crew::absent_[4096];

void* Crew::BufferAt(const abi::Parameter& parameter) {
  BindingUse use;
  use.index = parameter.index;
  use.name = parameter.name;
  use.bytes = parameter.reference ? parameter.bytes : 0;
  use.alignment = parameter.alignment;
  use.writes = !parameter.only_reads;
  std::string why;
  const RunningDispatch& running = context_->running_;
  const Binding* const binding = running.Find(use, &why);
  if (binding == nullptr) {
    // This is no error yet: a kernel that uses the buffer calls NotBound().
    if (!running.IsBound(use.index)) return nullptr;
    throw std::invalid_argument(why);
  }
  if (checked_ != nullptr) {
    AddRange(kernel_internal::BufferView(*context_, use.index, use.alignment,
                                         parameter.only_reads),
             parameter.name, parameter.bytes);
  }
  return binding->data;
}

void* Crew::MemoryAt(const abi::Parameter& parameter) {
  const ThreadgroupContext::Bytes bytes = context_->Local(parameter.index);
  if (bytes.length < (parameter.reference ? parameter.bytes : 0)) {
    throw std::invalid_argument(
        "threadgroup memory " + std::to_string(parameter.index) + " (" +
        parameter.name + ") has " + std::to_string(bytes.length) +
        " bytes, it needs " + std::to_string(parameter.bytes));
  }
  if (checked_ != nullptr) {
    AddRange(kernel_internal::MemoryView(*context_, parameter.index),
             parameter.name, parameter.bytes);
  }
  return bytes.data;
}

void Crew::Bind(const ThreadgroupContext& context) {
  group_ = {};
  for (uint32_t i = 0; i < kernel_->num_parameters; ++i) {
    const abi::Parameter& parameter = kernel_->parameters[i];
    // A function constant leaves this parameter out. A GPU's compiler then
    // removes the code that reads it. Here that code may run, so it gets
    // zeros to read; the result has no effect.
    if (!IsArgument(parameter) && parameter.input == abi::Input::kBuffer) {
      group_.buffers[parameter.index] = absent_;
    }
  }
  // Several parameters may have the same index. Function constants then
  // choose one of them.
  for (uint32_t i = 0; i < kernel_->num_parameters; ++i) {
    const abi::Parameter& parameter = kernel_->parameters[i];
    if (!IsArgument(parameter)) continue;
    if (parameter.input == abi::Input::kBuffer) {
      group_.buffers[parameter.index] = BufferAt(parameter);
    } else if (parameter.input == abi::Input::kThreadgroup) {
      group_.threadgroup_memory[parameter.index] = MemoryAt(parameter);
    }
  }
  Copy(context.threadgroup_position_in_grid,
       group_.threadgroup_position_in_grid);
  Copy(context.threadgroups_per_grid, group_.threadgroups_per_grid);
  Copy(context.threads_per_grid, group_.threads_per_grid);
  Copy(context.threads_per_threadgroup, group_.threads_per_threadgroup);
  Copy(context.dispatch_threads_per_threadgroup,
       group_.dispatch_threads_per_threadgroup);
}

void Crew::NotBound(uint32_t index) {
  {  // its destructors must run before End(), which abandons this stack
    BindingUse use;
    use.index = index;
    for (uint32_t i = 0; i < kernel_->num_parameters; ++i) {
      const abi::Parameter& parameter = kernel_->parameters[i];
      if (parameter.input == abi::Input::kBuffer && parameter.index == index &&
          IsArgument(parameter)) {
        use.name = parameter.name;
      }
    }
    std::string why;
    context_->running_.Find(use, &why);
    failure_ = std::make_exception_ptr(std::invalid_argument(why));
  }
  End();
}

}  // namespace switchyard::device::metal
