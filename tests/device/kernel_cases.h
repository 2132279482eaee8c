// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A valid dispatch of each built-in kernel, to be spoilt.

#ifndef SWITCHYARD_TESTS_DEVICE_KERNEL_CASES_H_
#define SWITCHYARD_TESTS_DEVICE_KERNEL_CASES_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

#include "switchyard/device/device.h"

namespace switchyard {
namespace testing_support {

// What the kernel's threadgroups are: rows, one, tiles of the columns of rows,
// tiles of the columns of one row.
enum class Grid { kRows, kOne, kTilesOfRows, kTilesOfARow };

struct Arg {
  const char* name;
  size_t rows, cols;
  bool written = false;

  size_t Bytes() const { return 4 * rows * cols; }
};

// Parameters are 32 bits each.
struct KernelCase {
  const char* kernel;
  size_t params_index;
  std::vector<const char*> fields;  // the dimensions, which come first
  std::vector<int32_t> params;
  std::vector<Arg> args;  // by index, without params
  device::Size grid;
  size_t width;  // of a threadgroup
  Grid covers;

  size_t Index(size_t arg) const { return arg + (params_index == 0 ? 1 : 0); }
};
inline std::ostream& operator<<(std::ostream& os, const KernelCase& c) {
  return os << c.kernel;
}

constexpr bool kWritten = true;
constexpr int32_t kEps = 0x358637BD;  // 1e-6f

inline const std::vector<KernelCase>& KernelCases() {
  static const std::vector<KernelCase> cases = {
      {"moe_router_topk_softmax_f32",
       3,
       {"num_experts", "top_k"},
       {4, 2, 1},
       {{"logits", 3, 4}, {"ids", 3, 2, kWritten}, {"weights", 3, 2, kWritten}},
       device::Size(3, 1, 1),
       32,
       Grid::kRows},
      {"moe_compute_ids_tpe_f32",
       5,
       {"num_experts", "row_stride", "total_pairs", "m_gate_up", "m_down"},
       {3, 4, 4, 64, 64},
       {{"selected_ids", 4, 1},
        {"tpe", 1, 3, kWritten},
        {"ids", 3, 4, kWritten},
        {"gate_up_args", 1, 3, kWritten},
        {"down_args", 1, 3, kWritten}},
       device::Size(1, 1, 1),
       256,
       Grid::kOne},
      {"silu_mul_stacked_f32",
       3,
       {"ffn", "n_slots"},
       {5, 3},
       {{"gate", 3, 5}, {"up", 3, 5}, {"out", 3, 5, kWritten}},
       device::Size(1, 3, 1),
       256,
       Grid::kTilesOfRows},
      {"silu_mul_batched_f32",
       3,
       {"total_pairs", "ffn"},
       {3, 5},
       {{"gate", 3, 5}, {"up", 3, 5}, {"out", 3, 5, kWritten}},
       device::Size(1, 3, 1),
       256,
       Grid::kTilesOfRows},
      {"weighted_sum_stacked_f32",
       3,
       {"hidden", "n_slots"},
       {5, 3},
       {{"slots", 3, 5}, {"weights", 1, 3}, {"out", 1, 5, kWritten}},
       device::Size(1, 1, 1),
       256,
       Grid::kTilesOfARow},
      {"weighted_sum_residual_stacked_f32",
       3,
       {"hidden", "n_slots"},
       {5, 3},
       {{"slots", 3, 5}, {"weights", 1, 3}, {"residual", 1, 5, kWritten}},
       device::Size(1, 1, 1),
       256,
       Grid::kTilesOfARow},
      {"weighted_sum_batched_f32",
       3,
       {"batch", "top_k", "hidden"},
       {2, 3, 5},
       {{"slots", 6, 5}, {"weights", 2, 3}, {"out", 2, 5, kWritten}},
       device::Size(1, 2, 1),
       256,
       Grid::kTilesOfRows},
      {"weighted_sum_residual_norm_stacked_f32",
       5,
       {"hidden", "n_slots"},
       {5, 3, kEps},
       {{"slots", 3, 5},
        {"weights", 1, 3},
        {"residual", 1, 5, kWritten},
        {"next_norm_w", 1, 5},
        {"normed", 1, 5, kWritten}},
       device::Size(1, 1, 1),
       256,
       Grid::kOne},
      {"weighted_sum_residual_norm_batched_f32",
       5,
       {"batch", "top_k", "hidden"},
       {2, 3, 5, kEps},
       {{"slots", 6, 5},
        {"weights", 2, 3},
        {"residual", 2, 5, kWritten},
        {"next_norm_w", 1, 5},
        {"normed", 2, 5, kWritten}},
       device::Size(2, 1, 1),
       256,
       Grid::kRows},
      {"moe_softmax_topk_f32",
       0,
       {"n_tokens", "n_experts", "top_k"},
       {3, 4, 2, 0},
       {{"logits", 3, 4}, {"ids", 3, 2, kWritten}, {"weights", 3, 2, kWritten}},
       device::Size(3, 1, 1),
       4,
       Grid::kRows},
      {"moe_weighted_reduce_f32",
       0,
       {"n_tokens", "top_k", "h"},
       {2, 3, 5, 1},
       {{"expert_w", 2, 3},
        {"y_expert", 6, 5},
        {"sh_gate", 1, 2},
        {"y_shared", 2, 5},
        {"residual", 2, 5},
        {"output", 2, 5, kWritten}},
       device::Size(1, 2, 1),
       256,
       Grid::kTilesOfRows},
  };
  return cases;
}

}  // namespace testing_support
}  // namespace switchyard

#endif  // SWITCHYARD_TESTS_DEVICE_KERNEL_CASES_H_
