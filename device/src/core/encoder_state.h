// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The state shared by all kinds of encoders.

#ifndef SWITCHYARD_DEVICE_SRC_CORE_ENCODER_STATE_H_
#define SWITCHYARD_DEVICE_SRC_CORE_ENCODER_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/src/core/commands.h"
#include "device/src/core/queue.h"
#include "switchyard/device/command_encoder.h"

namespace switchyard::device {

struct CommandEncoder::State {
  // Null if the user has released the command buffer; then the encoder
  // encodes nothing.
  const std::shared_ptr<CommandBuffer> buffer;
  bool ended = false;
  std::string label;
  // The debug groups that are open in this encoder.
  std::vector<std::string> groups;
  std::string signpost;
  // The index in Commands::places for the next dispatch. It is valid only if
  // place_saved is true.
  bool place_saved = false;
  uint32_t place = 0;

  explicit State(std::shared_ptr<CommandBuffer> b) : buffer(std::move(b)) {}
  virtual ~State() = default;

  Commands& commands() { return buffer->state_->commands; }
  // A prefix for error messages: "kernel: " or an empty string.
  virtual std::string Kernel() const { return std::string(); }

  void Fail(const char* call, const std::string& what);
  void FailBuffer(const char* error) noexcept {
    buffer->state_->queue->Fail(*buffer->state_, error);
  }

  // Calls encode() unless the encoder has ended or the buffer is committed.
  template <class Encode>
  void IfOpen(const char* call, const Encode& encode) noexcept {
    if (buffer == nullptr) return;
    try {
      if (ended || buffer->state_->closed) {
        Fail(call, buffer->state_->closed ? "called after commit"
                                          : "called after endEncoding");
      } else {
        encode();
      }
    } catch (...) {
      FailBuffer("encoder: out of memory");
    }
  }

  // Keeps a buffer or pipeline alive until the command buffer has run. An
  // object is usually stored once per command buffer. It is stored again if
  // another command buffer has retained it since.
  template <class T>
  void Retain(const T& object) {
    const uint64_t id = buffer->state_->id;
    if (object.retained_by_.load(std::memory_order_relaxed) == id) return;
    commands().retained.push_back(object.shared_from_this());
    object.retained_by_.store(id, std::memory_order_relaxed);
  }

  // Makes memory reachable for the dispatches that follow in the command
  // buffer.
  void MakeResident(const void* data, size_t length) {
    commands().residents.push_back(
        {data, length, commands().dispatches.size()});
  }

  // Returns the current labels and debug groups.
  EncodedPlace CurrentPlace() const;
  uint32_t SavePlace();
  void Push(const char* name);
  void Pop();
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_ENCODER_STATE_H_
