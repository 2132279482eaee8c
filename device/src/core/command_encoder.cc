// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The base class of encoders: how they begin and end, their labels and debug
// groups.

#include <utility>

#include "device/src/core/encoder_state.h"
#include "switchyard/device/device.h"

namespace switchyard::device {

void CommandEncoder::State::Fail(const char* call, const std::string& what) {
  std::string text = Kernel() + call + ": " + what;
  if (!buffer->state_->closed) text += CurrentPlace().Text();
  FailBuffer(text.c_str());
}

EncodedPlace CommandEncoder::State::CurrentPlace() const {
  EncodedPlace current;
  current.encoder = label;
  const auto add = [&current](const std::vector<std::string>& all) {
    for (const std::string& group : all) {
      current.group += (current.group.empty() ? "" : "/") + group;
    }
  };
  add(buffer->state_->groups);
  add(groups);
  current.signpost = signpost;
  return current;
}

uint32_t CommandEncoder::State::SavePlace() {
  if (!place_saved) {
    EncodedPlace current = CurrentPlace();
    std::vector<EncodedPlace>& places = commands().places;
    // Element 0 is the empty place, which dispatches without labels use.
    if (places.empty()) places.emplace_back();
    place = 0;
    if (!current.empty()) {
      place = static_cast<uint32_t>(places.size());
      places.push_back(std::move(current));
    }
    place_saved = true;
  }
  return place;
}

void CommandEncoder::State::Push(const char* name) {
  groups.emplace_back(name);
  signpost.clear();
  place_saved = false;
}

void CommandEncoder::State::Pop() {
  if (groups.empty()) {
    Fail("popDebugGroup", "no group is open: pushDebugGroup is missing");
    return;
  }
  groups.pop_back();
  signpost.clear();
  place_saved = false;
}

CommandEncoder::CommandEncoder(std::unique_ptr<State> state)
    : base_(std::move(state)) {}
CommandEncoder::~CommandEncoder() = default;

void CommandEncoder::setLabel(const host_internal::Text& label) noexcept {
  base_->IfOpen("setLabel", [&] {
    base_->label = label.c_str();
    base_->place_saved = false;
  });
}

std::string CommandEncoder::label() const { return base_->label; }

void CommandEncoder::pushDebugGroup(const host_internal::Text& name) noexcept {
  base_->IfOpen("pushDebugGroup", [&] { base_->Push(name.c_str()); });
}

void CommandEncoder::popDebugGroup() noexcept {
  base_->IfOpen("popDebugGroup", [&] { base_->Pop(); });
}

void CommandEncoder::insertDebugSignpost(
    const host_internal::Text& name) noexcept {
  base_->IfOpen("insertDebugSignpost", [&] {
    base_->signpost = name.c_str();
    base_->place_saved = false;
  });
}

void CommandEncoder::endEncoding() noexcept {
  base_->IfOpen("endEncoding", [&] {
    base_->ended = true;
    base_->buffer->state_->encoder_open = false;
    if (!base_->groups.empty()) {
      base_->Fail("endEncoding", "debug group \"" + base_->groups.back() +
                                     "\" is open: popDebugGroup is missing");
    }
  });
}

void CommandEncoder::UseFence(const char* call,
                              host_internal::Arg<Fence> fence) noexcept {
  base_->IfOpen(call, [&] {
    if (fence.get() == nullptr) base_->Fail(call, "fence is null");
  });
}

}  // namespace switchyard::device
