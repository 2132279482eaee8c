// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Compares Activate on every ISA with its formulas in double precision. The
// calls have any layout, with limits, biases, row scales and padding. The
// output is separate or in place. Also checks that invalid calls are refused.

#include "fuzz/any_activate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  switchyard::fuzz::Bytes bytes(data, size);
  switchyard::fuzz::FuzzAny<switchyard::fuzz::AnyActivate>(bytes);
  return 0;
}
