// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_EXPERT_PARALLEL_ARGUMENTS_H_
#define SWITCHYARD_EXAMPLES_EXPERT_PARALLEL_ARGUMENTS_H_

#include <stddef.h>
#include <stdint.h>

enum { kMaxRounds = 10000, kErrorBytes = 256 };
typedef struct Arguments {
  size_t tokens, experts, top_k, hidden, intermediate, rounds;
  int32_t dispatch, combine;
  int check, help;
} Arguments;

extern const char kHelp[];

// Overwrites what the command line says. 0 and a line in `error` where it is
// wrong.
int ParseArguments(int argc, char** argv, Arguments* arguments,
                   char error[kErrorBytes]);

// The name of one of the types that arguments may have.
const char* NameOf(int32_t type);

#endif  // SWITCHYARD_EXAMPLES_EXPERT_PARALLEL_ARGUMENTS_H_
