// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The check for C++17. Every header except those of the C ABI includes this
// one before it declares anything, so that the message below comes first.
// Otherwise route.h, compiled with an older standard, gives 89 errors.

#ifndef SWITCHYARD_LANGUAGE_H_
#define SWITCHYARD_LANGUAGE_H_

#if __cplusplus < 201703L
#error "Switchyard's headers need C++17 or later: compile with -std=c++17"
#endif

#endif  // SWITCHYARD_LANGUAGE_H_
