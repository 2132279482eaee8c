// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/simd/quantize.h"

#include <cstddef>

#include "src/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/quantize.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include "src/simd/hwy_compat-inl.h"
#include "src/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace switchyard::simd::HWY_NAMESPACE {
namespace {

void Quantize(const QuantizeArgs& args, size_t begin, size_t end) {
  for (size_t row = begin; row < end; ++row) {
    if (args.copy) {
      CopyRow(args.from, row, args.to, row);
    } else {
      PutRow(StoredRow{args.from, row}.Source(), args.to, row);
    }
  }
}

SWITCHYARD_ROW_FUNCTION(Quantize, QuantizeArgs);

}  // namespace
}  // namespace switchyard::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace switchyard::simd {

SWITCHYARD_EXPORT(QuantizeRows, Quantize, QuantizeArgs);

}  // namespace switchyard::simd

#endif  // HWY_ONCE
