// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/device/pipeline.h"

#include <utility>

#include "device/src/core/pipeline.h"

namespace switchyard::device {

ComputePipelineState::ComputePipelineState(
    std::unique_ptr<const Pipeline> pipeline)
    : pipeline_(std::move(pipeline)) {}
ComputePipelineState::~ComputePipelineState() = default;

const std::string& ComputePipelineState::label() const noexcept {
  return pipeline_->name;
}

}  // namespace switchyard::device
