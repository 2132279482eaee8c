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

// Makes hidden states [tokens, hidden] from an integer hash, so that every
// machine has the same states. A part of each state is common to all tokens, as
// in real models. This part makes some experts busier than others.
RowBuffer GenerateHidden(size_t tokens, size_t hidden, switchyard::Type type,
                         switchyard::Executor& executor);

// Returns the number of rows of `hidden` values in a file of states. The file
// must have only little-endian f32 values. Throws InputError.
size_t CountStates(const std::string& path, size_t hidden);
// Reads all rows of a file of states and converts them to `type`. Throws
// InputError if it cannot read the file or a value is not finite.
RowBuffer ReadStates(const std::string& path, size_t hidden,
                     switchyard::Type type, switchyard::Executor& executor);
// Returns the content of a file with these states, in little-endian f32.
std::string StatesBytes(const switchyard::ConstAnyMatrix& states,
                        switchyard::Executor& executor);

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_STATES_H_
