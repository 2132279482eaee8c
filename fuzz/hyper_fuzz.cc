// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// HyperConnect to the bit of the reference where there are FMAs, the same on
// every ISA that has them; and refusals.

#include "fuzz/any_hyper.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  switchyard::fuzz::Bytes bytes(data, size);
  switchyard::fuzz::FuzzAny<switchyard::fuzz::AnyHyper>(bytes);
  return 0;
}
