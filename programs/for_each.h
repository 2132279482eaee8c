// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_FOR_EACH_H_
#define SWITCHYARD_PROGRAMS_FOR_EACH_H_

#include <atomic>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <type_traits>

#include "programs/status_text.h"
#include "switchyard/executor.h"
#include "switchyard/status.h"

namespace program {

inline void Check(const switchyard::Status& status) {
  if (!status.ok()) throw std::runtime_error(StatusText(status));
}

// Calls body(i), or body(worker, i), for each i below `count` on the
// executor's threads. A thread takes `grain` values of i at a time. Rethrows
// the first exception of a body after all bodies have ended.
template <class Body>
void ForEach(switchyard::Executor& executor, size_t count, size_t grain,
             const Body& body) {
  struct Context {
    const Body& body;
    std::atomic<bool> failed{false};
    std::exception_ptr error = nullptr;
  } context{body};
  const auto run = [](void* opaque, [[maybe_unused]] size_t worker,
                      size_t begin, size_t end) {
    Context& c = *static_cast<Context*>(opaque);
    try {
      for (size_t i = begin; i < end; ++i) {
        if constexpr (std::is_invocable_v<Body, size_t, size_t>) {
          c.body(worker, i);
        } else {
          c.body(i);
        }
      }
    } catch (...) {
      if (!c.failed.exchange(true)) c.error = std::current_exception();
    }
  };
  Check(executor.ParallelFor(count, grain, run, &context));
  if (context.error != nullptr) std::rethrow_exception(context.error);
}

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_FOR_EACH_H_
