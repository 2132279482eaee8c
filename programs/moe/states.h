// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_STATES_H_
#define SWITCHYARD_PROGRAMS_MOE_STATES_H_

#include <cstddef>
#include <string>

#include "memory.h"
#include "switchyard/executor.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace moe_layer {

// Converts rows to a type. Throws std::bad_alloc.
RowBuffer ConvertRows(const switchyard::ConstAnyRows& rows,
                      switchyard::Type type, switchyard::Executor& executor);

// Hidden states [tokens, hidden] from an integer hash: the same on every
// machine. They share a direction, as in real models, which makes some experts
// busier than others.
RowBuffer GenerateHidden(size_t tokens, size_t hidden, switchyard::Type type,
                         switchyard::Executor& executor);

// The number of rows of that width in the file, which must have only
// little-endian f32. Throws InputError.
size_t CountStates(const std::string& path, size_t hidden);
// Reads these rows and converts them to a type. Throws InputError, also if a
// value is not finite.
RowBuffer ReadStates(const std::string& path, size_t hidden,
                     switchyard::Type type, switchyard::Executor& executor);
// The bytes of such a file.
std::string StatesBytes(const switchyard::ConstAnyMatrix& states,
                        switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_STATES_H_
