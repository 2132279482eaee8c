// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Splits the rows of a checked call into ranges, which an executor runs.

#ifndef SWITCHYARD_SRC_SCHEDULE_H_
#define SWITCHYARD_SRC_SCHEDULE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/base/fp_env.h"
#include "src/parallel_for.h"
#include "src/simd/row_function.h"
#include "src/simd/targets.h"
#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace switchyard::internal {

// The least work to share among threads, in picoseconds: twice the work that
// is worth a fork on the executor with the cheapest fork. For less work, the
// executor is not asked for the cost of a fork, because that may read the
// clock, which takes 25 ns. Times are integers, because floating-point
// operations may trap, or round in another way, in the caller's environment.
constexpr size_t kLeastPs = 6'000'000;

// Returns the number of rows that are worth a fork, which is ParallelFor's
// `grain`. Each of `count` rows takes `row_ps`.
inline size_t Grain(const Executor& executor, size_t count, size_t row_ps) {
  const size_t least = kLeastPs / (row_ps + 1);
  if (count <= least) return least;
  const size_t fork_ns = std::min<size_t>(executor.ForkNs(), SIZE_MAX / 1000);
  return std::max<size_t>(1, fork_ns * 1000 / (row_ps + 1));
}

// Returns the time to move a row, in picoseconds. Memory bounds this time if
// rows are copied.
inline size_t MoveRowPs(const AnyMatrix& to, bool copy) {
  return copy ? 40 * BytesOf(to.type, to.cols) : simd::ComputePs(400 * to.cols);
}

// The body that an executor runs. It is not a lambda, because GCC 12 exports
// the function to which a lambda converts.
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
// environment. `row_ps` is the time of a row on the ISA in use, within 2x.
template <class Args>
Status RunRows(Executor& executor, size_t count, size_t row_ps,
               simd::RowFunction<Args> rows, const Args& args) {
  if (count <= 1) {  // saves 10 ns of a decode token's kernels
    if (count == 0) return Status();
    const DefaultFpEnv fp_env;
    rows(args, 0, 1);
    return Status();
  }
  RowsOfArgs<Args> context = {rows, args};
  return ParallelFor(executor, count, Grain(executor, count, row_ps),
                     RowsOfArgs<Args>::Run, &context);
}

}  // namespace switchyard::internal

#endif  // SWITCHYARD_SRC_SCHEDULE_H_
