// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <cstdint>

#include "src/c/call.h"

using namespace switchyard::c;

size_t swy_bucket_scratch_size(size_t num_pairs, size_t num_experts,
                               const swy_executor* executor) noexcept {
  size_t size = 0;
  const auto status =
      WithExecutor(Texts(), executor, [&](const switchyard::Executor& who) {
        size = switchyard::BucketScratchSize(num_pairs, num_experts, who);
        return switchyard::Status();
      });
  return status.ok() ? size : 0;
}
size_t swy_bucket_aligned_size(size_t num_pairs, size_t num_experts,
                               const swy_aligned_options* options) noexcept {
  const auto opt =
      Argument<swy_aligned_options>::OrDefault(options, ArgumentTexts());
  if (!opt.status.ok()) return SIZE_MAX;
  return switchyard::BucketAlignedSize(num_pairs, num_experts, opt.value);
}
