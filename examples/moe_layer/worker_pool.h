// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_MOE_LAYER_WORKER_POOL_H_
#define SWITCHYARD_EXAMPLES_MOE_LAYER_WORKER_POOL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

#include "float_buffer.h"
#include "stage_profile.h"

namespace moe_layer {

// What one thread of the expert section works in; on cache lines of its own.
struct alignas(64) Worker {
  FloatBuffer gathered;  // [tile rows, hidden]
  FloatBuffer gate_up;   // [tile rows, 2 * intermediate], fused
  std::array<double, kNumStages> seconds = {};
  std::atomic<bool> busy = false;
};

// As many workers as an executor has threads. An executor does not number its
// threads, so a body takes any worker that is free and gives it back.
class WorkerPool {
 public:
  WorkerPool(size_t num_workers, size_t gathered_floats, size_t gate_up_floats);

  // Never blocks while no more bodies run than there are workers.
  Worker& Acquire() noexcept;
  static void Release(Worker& worker) noexcept;

  void ResetSeconds() noexcept;
  // Summed over the workers; no body may be running.
  double Seconds(Stage stage) const noexcept;
  size_t size() const { return workers_.size(); }

 private:
  std::vector<Worker> workers_;
};

}  // namespace moe_layer

#endif  // SWITCHYARD_EXAMPLES_MOE_LAYER_WORKER_POOL_H_
