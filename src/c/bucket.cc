// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/bucket.h"

#include <cstdint>

#include "src/c/call.h"
#include "switchyard/map.h"
#include "switchyard/work_list.h"

using namespace switchyard::c;

swy_status swy_bucket_packed(const swy_bucket_inputs* inputs,
                             const swy_packed_buckets* outputs,
                             const swy_bucket_options* options,
                             const swy_executor* executor) noexcept {
  return SWITCHYARD_C_CALL(BucketPacked, inputs, outputs, options, executor);
}
swy_status swy_bucket_packed_team(const swy_bucket_inputs* inputs,
                                  const swy_packed_buckets* outputs,
                                  const swy_bucket_options* options,
                                  const swy_team* team) noexcept {
  return SWITCHYARD_C_TEAM_CALL(BucketPacked, inputs, outputs, options, team);
}
swy_status swy_bucket_strided(const swy_bucket_inputs* inputs,
                              const swy_strided_buckets* outputs,
                              const swy_bucket_options* options,
                              const swy_executor* executor) noexcept {
  return SWITCHYARD_C_CALL(BucketStrided, inputs, outputs, options, executor);
}
swy_status swy_bucket_strided_team(const swy_bucket_inputs* inputs,
                                   const swy_strided_buckets* outputs,
                                   const swy_bucket_options* options,
                                   const swy_team* team) noexcept {
  return SWITCHYARD_C_TEAM_CALL(BucketStrided, inputs, outputs, options, team);
}
swy_status swy_bucket_aligned(const swy_aligned_inputs* inputs,
                              const swy_aligned_buckets* outputs,
                              const swy_aligned_options* options,
                              const swy_executor* executor) noexcept {
  return SWITCHYARD_C_CALL(BucketAligned, inputs, outputs, options, executor);
}
swy_status swy_bucket_aligned_team(const swy_aligned_inputs* inputs,
                                   const swy_aligned_buckets* outputs,
                                   const swy_aligned_options* options,
                                   const swy_team* team) noexcept {
  return SWITCHYARD_C_TEAM_CALL(BucketAligned, inputs, outputs, options, team);
}

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
size_t swy_bucket_scratch_size_team(size_t num_pairs, size_t num_experts,
                                    const swy_team* team) noexcept {
  const Argument<swy_team> who(team, ArgumentTexts());
  if (!who.status.ok()) return 0;
  return switchyard::BucketScratchSize(num_pairs, num_experts, who.value);
}
size_t swy_bucket_aligned_size(size_t num_pairs, size_t num_experts,
                               const swy_aligned_options* options) noexcept {
  const auto opt =
      Argument<swy_aligned_options>::OrDefault(options, ArgumentTexts());
  if (!opt.status.ok()) return SIZE_MAX;
  return switchyard::BucketAlignedSize(num_pairs, num_experts, opt.value);
}

swy_status swy_make_dispatch_args(
    const swy_dispatch_inputs* inputs, const swy_dispatch_outputs* outputs,
    const swy_dispatch_options* options) noexcept {
  return SWITCHYARD_C_LONE_CALL(MakeDispatchArgs, inputs, outputs, options);
}

swy_status swy_map_pairs(const swy_map_inputs* inputs,
                         const swy_map_outputs* outputs,
                         const swy_map_options* options,
                         const swy_executor* executor) noexcept {
  return SWITCHYARD_C_CALL(MapPairs, inputs, outputs, options, executor);
}
swy_status swy_map_pairs_team(const swy_map_inputs* inputs,
                              const swy_map_outputs* outputs,
                              const swy_map_options* options,
                              const swy_team* team) noexcept {
  return SWITCHYARD_C_TEAM_CALL(MapPairs, inputs, outputs, options, team);
}

swy_status swy_make_work_list(const swy_work_list_inputs* inputs,
                              const swy_work_list_outputs* outputs,
                              const swy_work_list_options* options) noexcept {
  return SWITCHYARD_C_LONE_CALL(MakeWorkList, inputs, outputs, options);
}
size_t swy_work_list_size(size_t num_rows, size_t num_experts,
                          const swy_work_list_options* options) noexcept {
  const auto opt =
      Argument<swy_work_list_options>::OrDefault(options, ArgumentTexts());
  if (!opt.status.ok()) return SIZE_MAX;
  return switchyard::WorkListSize(num_rows, num_experts, opt.value);
}
