// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_TESTING_UNWRITTEN_H_
#define SWITCHYARD_TESTING_UNWRITTEN_H_

#include <ostream>

#include "switchyard/report.h"

namespace switchyard {

inline bool operator==(const Report& a, const Report& b) {
  return a.invalid_ids == b.invalid_ids && a.elsewhere == b.elsewhere &&
         a.max_rows == b.max_rows && a.row_stride == b.row_stride &&
         a.dropped == b.dropped && a.invalid == b.invalid &&
         a.skipped == b.skipped && a.over_capacity == b.over_capacity &&
         a.active_experts == b.active_experts && a.tiles == b.tiles &&
         a.overflowed_blocks == b.overflowed_blocks;
}
inline std::ostream& operator<<(std::ostream& os, const Report& r) {
  return os << "{" << r.invalid_ids << ", " << r.elsewhere << ", " << r.max_rows
            << ", " << r.row_stride << ", " << r.dropped << ", " << r.invalid
            << ", " << r.skipped << ", " << r.over_capacity << ", "
            << r.active_experts << ", " << r.tiles << ", "
            << r.overflowed_blocks << "}";
}

namespace testing_support {

// All fields have distinct values, so that a test sees which ones a call
// wrote.
constexpr Report kUnwritten = {71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81};

}  // namespace testing_support
}  // namespace switchyard

#endif  // SWITCHYARD_TESTING_UNWRITTEN_H_
