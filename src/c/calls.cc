// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Defines the functions of SWITCHYARD_C_CALLS (fields.h), except for
// functions with the mark BY_HAND, which other files define.

#include "src/c/call.h"

using namespace switchyard::c;

#define SWITCHYARD_C_PARAMETERS(Call)               \
  const switchyard::calls::Call::CInputs *inputs,   \
      const switchyard::calls::Call::COutputs *out, \
      const switchyard::calls::Call::COptions *options

#define SWITCHYARD_C_EXECUTOR(Call_, Function, name)                   \
  swy_status name(SWITCHYARD_C_PARAMETERS(Call_),                      \
                  const swy_executor* executor) noexcept {             \
    constexpr Texts texts = SWITCHYARD_C_TEXTS(#Function, "executor"); \
    return Call(texts, inputs, out, options,                           \
                [&](const auto& i, const auto& o, const auto& opt) {   \
                  return WithExecutor(                                 \
                      texts, executor, [&](switchyard::Executor& e) {  \
                        return switchyard::Function(i, o, opt, e);     \
                      });                                              \
                });                                                    \
  }
#define SWITCHYARD_C_ALONE(Call_, Function, name)                        \
  swy_status name(SWITCHYARD_C_PARAMETERS(Call_)) noexcept {             \
    return Call(SWITCHYARD_C_TEXTS(#Function, ""), inputs, out, options, \
                [](const auto& i, const auto& o, const auto& opt) {      \
                  return switchyard::Function(i, o, opt);                \
                });                                                      \
  }
#define SWITCHYARD_C_BY_HAND(...)
#define SWITCHYARD_C_DEFINE(Call_, Function, name, way) \
  SWITCHYARD_C_##way(Call_, Function, name)
SWITCHYARD_C_CALLS(SWITCHYARD_C_DEFINE)
