// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The call of Quantize: see call.h.

#ifndef SWITCHYARD_SRC_CALLS_QUANTIZE_H_
#define SWITCHYARD_SRC_CALLS_QUANTIZE_H_

#include "src/calls/call.h"
#include "src/view_checks.h"
#include "switchyard/quantize.h"

namespace switchyard::calls {

struct QuantizeSizes {
  size_t rows, cols;
};
struct QuantizeCall : CallBase<QuantizeInputs, QuantizeOutputs, QuantizeOptions,
                               QuantizeSizes> {
  static constexpr const char* kName = "Quantize";
  static constexpr Size<Sizes> kSizes[] = {{"from.rows", &Sizes::rows},
                                           {"from.cols", &Sizes::cols}};
  static Sizes Measure(const Inputs& in, const Outputs&, const Options&) {
    return {in.from.rows, in.from.cols};
  }
#define IN(f) SWITCHYARD_FIELD_OF(QuantizeInputs, swy_quantize_inputs, f)
#define OUT(f) SWITCHYARD_FIELD_OF(QuantizeOutputs, swy_quantize_outputs, f)
  static constexpr Argument kInputs[] = {
      {IN(from),
       kAnyRows,
       {{"[from.rows, from.cols]", {}, "is not [rows, cols]"}}}};
  static constexpr Argument kOutputs[] = {
      {OUT(rows), kAnyRows, {{"[from.rows, from.cols]"}}}};
#undef IN
#undef OUT
  static constexpr std::array<Option, 0> kOptions = {};
  static constexpr Rule<Args> kRules[] = {
      {[](const Args& c) {
         return internal::SameFormat(c.in.from, c.out.rows) ||
                internal::IsReadable(c.in.from);
       },
       "from: nothing converts from its format"}};
};

}  // namespace switchyard::calls

#endif  // SWITCHYARD_SRC_CALLS_QUANTIZE_H_
