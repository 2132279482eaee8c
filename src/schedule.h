// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// From checked arguments to row ranges on an executor.

#ifndef SWITCHYARD_SRC_SCHEDULE_H_
#define SWITCHYARD_SRC_SCHEDULE_H_

#include <cstddef>

#include "src/fp_env.h"
#include "src/simd/row_function.h"
#include "src/simd/targets.h"
#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace switchyard::internal {

// Work below this stays on one thread: to wake a TBB worker for 25 us of it
// made a call 1.3 to 1.5 times as long. In picoseconds, as integers: what the
// caller's floating-point environment traps or rounds is not our business.
constexpr size_t kGrainPs = 30'000'000;

// Picoseconds to move a row: to copy it, which memory bounds, or to convert it.
inline size_t MoveRowPs(const AnyMatrix& to, bool copy) {
  return copy ? 40 * BytesOf(to.type, to.cols) : simd::ComputePs(400 * to.cols);
}

// The body that an executor runs. It is not a lambda because GCC 12 gives the
// function that a lambda turns into no hidden visibility.
template <class Args>
struct RowsOfArgs {
  simd::RowFunction<Args> rows;
  const Args& args;

  static void Run(void* context, size_t /*worker*/, size_t begin, size_t end) {
    const DefaultFpEnv fp_env;
    const RowsOfArgs& self = *static_cast<const RowsOfArgs*>(context);
    self.rows(self.args, begin, end);
  }
};

// Runs rows(args, begin, end) over [0, count) in the default floating-point
// environment. `row_ps` is what one row takes on the ISA in use, to within 2x.
template <class Args>
Status RunRows(Executor& executor, size_t count, size_t row_ps,
               simd::RowFunction<Args> rows, const Args& args) {
  if (count <= 1) {  // nothing to share out; 10 ns for a decode token's kernels
    if (count == 0) return Status();
    const DefaultFpEnv fp_env;
    rows(args, 0, 1);
    return Status();
  }
  RowsOfArgs<Args> context = {rows, args};
  const size_t grain = kGrainPs / (row_ps + 1);
  return executor.ParallelFor(count, grain == 0 ? 1 : grain,
                              RowsOfArgs<Args>::Run, &context);
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_SCHEDULE_H_
