// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "worker_pool.h"

#include <thread>

namespace moe_layer {

WorkerPool::WorkerPool(size_t num_workers, size_t gathered_floats,
                       size_t gate_up_floats)
    : workers_(num_workers) {
  for (Worker& worker : workers_) {
    worker.gathered = FloatBuffer(gathered_floats);
    worker.gate_up = FloatBuffer(gate_up_floats);
  }
}

Worker& WorkerPool::Acquire() noexcept {
  for (;;) {
    for (Worker& worker : workers_) {
      if (!worker.busy.exchange(true, std::memory_order_acquire)) {
        return worker;
      }
    }
    std::this_thread::yield();
  }
}

void WorkerPool::Release(Worker& worker) noexcept {
  worker.busy.store(false, std::memory_order_release);
}

void WorkerPool::ResetSeconds() noexcept {
  for (Worker& worker : workers_) worker.seconds.fill(0);
}

double WorkerPool::Seconds(Stage stage) const noexcept {
  double total = 0;
  for (const Worker& worker : workers_) {
    total += worker.seconds[static_cast<size_t>(stage)];
  }
  return total;
}

}  // namespace moe_layer
