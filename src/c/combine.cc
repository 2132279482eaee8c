// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/combine.h"

#include "src/base/view_checks.h"
#include "src/c/call.h"

using namespace switchyard::c;

swy_status swy_combine(const swy_combine_inputs* inputs,
                       const swy_combine_outputs* outputs,
                       const swy_combine_options* options,
                       const swy_executor* executor) noexcept {
  constexpr Texts texts = SWITCHYARD_C_TEXTS("Combine", "executor");
  return Call(
      texts, inputs, outputs, options,
      [&](auto& in, const auto& out, const auto& opt) {
        if (AloneIn(inputs, &swy_combine_inputs::token_order) != 0) {
          if (switchyard::internal::Given(in.row_index)) {
            return Invalid("Combine: row_index: given with token_order");
          }
          in.row_index = switchyard::RowIndex::kTokenOrder;
        }
        return WithExecutor(texts, executor, [&](switchyard::Executor& who) {
          return switchyard::Combine(in, out, opt, who);
        });
      });
}
