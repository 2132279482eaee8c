// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The table of Quantize. See call.h.

#ifndef SWITCHYARD_SRC_CALLS_QUANTIZE_H_
#define SWITCHYARD_SRC_CALLS_QUANTIZE_H_

#include "src/base/view_checks.h"
#include "src/calls/call.h"
#include "switchyard/quantize.h"

namespace switchyard::calls {

struct QuantizeSizes {
  size_t rows, cols;
};
struct QuantizeCall : CallBase<QuantizeInputs, QuantizeOutputs, QuantizeOptions,
                               QuantizeSizes, swy_quantize_inputs,
                               swy_quantize_outputs, swy_quantize_options> {
  static constexpr const char* kName = "Quantize";
  static constexpr Size<Sizes> kSizes[] = {{"from.rows", &Sizes::rows},
                                           {"from.cols", &Sizes::cols}};
  static Sizes Measure(const Inputs& in, const Outputs&, const Options&) {
    return {in.from.rows, in.from.cols};
  }
  static constexpr Argument kInputs[] = {
      {INPUT(from),
       kAnyRows,
       {{"[from.rows, from.cols]", {}, "is not [rows, cols]"}}}};
  static constexpr Argument kOutputs[] = {
      {OUTPUT(rows), kAnyRows, {{"[from.rows, from.cols]"}}},
      {OUTPUT(report), {}, {}, kOptional}};
  static constexpr Option kOptions[] = {
      {OPTION(clamp_overflow), kAnyValue, true}};
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) {
         return internal::SameFormat(c.in.from, c.out.rows) ||
                internal::IsReadable(c.in.from);
       },
       "from: no kernel converts from its format"}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_QUANTIZE_H_
