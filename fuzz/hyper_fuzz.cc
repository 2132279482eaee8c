// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs HyperConnect on every ISA. On ISAs with FMA, the results have to have
// the reference's bits. Also checks that invalid calls are refused.

#include "fuzz/any_hyper.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  switchyard::fuzz::Bytes bytes(data, size);
  switchyard::fuzz::FuzzAny<switchyard::fuzz::AnyHyper>(bytes);
  return 0;
}
