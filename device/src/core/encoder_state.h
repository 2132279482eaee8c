// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The state that all encoders have.

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
  // Null if its user had let go of it: then nothing can be encoded.
  const std::shared_ptr<CommandBuffer> buffer;
  bool ended = false;
  std::string label;
  std::vector<std::string> groups;  // that are open, the encoder's own
  std::string signpost;
  // In Commands::places, of what is encoded next, if it is known.
  bool place_saved = false;
  uint32_t place = 0;

  explicit State(std::shared_ptr<CommandBuffer> b) : buffer(std::move(b)) {}
  virtual ~State() = default;

  Commands& commands() { return buffer->state_->commands; }
  // In front of errors: "kernel: ", or nothing.
  virtual std::string Kernel() const { return std::string(); }

  void Fail(const char* call, const std::string& what);
  void FailBuffer(const char* error) noexcept {
    buffer->state_->queue->Fail(*buffer->state_, error);
  }

  // Runs encode() if encoding is still possible.
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

  // Keeps a buffer or pipeline until the command buffer has run, at the price
  // of one copy of a shared_ptr per command buffer. Another encoder that
  // retains it in between costs one more.
  template <class T>
  void Retain(const T& object) {
    const uint64_t id = buffer->state_->id;
    if (object.retained_by_.load(std::memory_order_relaxed) == id) return;
    commands().retained.push_back(object.shared_from_this());
    object.retained_by_.store(id, std::memory_order_relaxed);
  }

  // For the dispatches that follow in the command buffer.
  void MakeResident(const void* data, size_t length) {
    commands().residents.push_back(
        {data, length, commands().dispatches.size()});
  }

  // Labels and groups as they are now.
  EncodedPlace CurrentPlace() const;
  uint32_t SavePlace();
  void Push(const char* name);
  void Pop();
};

}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_SRC_CORE_ENCODER_STATE_H_
