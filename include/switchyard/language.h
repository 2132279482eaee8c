// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Every header but the C ABI's includes this one before it declares anything:
// an older standard makes 89 errors of route.h, of which this is the first.

#ifndef SWITCHYARD_LANGUAGE_H_
#define SWITCHYARD_LANGUAGE_H_

#if __cplusplus < 201703L
#error "Switchyard's headers need C++17 or later: compile with -std=c++17"
#endif

#endif  // SWITCHYARD_LANGUAGE_H_
