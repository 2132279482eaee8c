// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Two parts that an engine in C already has: error handling, and a reader of
// config.json.

#ifndef SWITCHYARD_EXAMPLES_QUANTISED_ENGINE_CONFIG_H_
#define SWITCHYARD_EXAMPLES_QUANTISED_ENGINE_CONFIG_H_

#include <switchyard/switchyard.h>

// Prints the message on stderr and ends the program.
void Fail(const char* message);
// Fails with the status's message and details if it is an error.
void Check(swy_status status);

// The sizes that the engine reads itself.
typedef struct Sizes {
  size_t hidden, intermediate, shared, layers;
} Sizes;
// Reads the pairs of a file that has a single object without inner objects.
// Returns model_type, or NULL if the file has none. `config` then points to
// static texts.
const char* ReadConfig(const char* path, swy_model_config* config,
                       Sizes* sizes);

#endif  // SWITCHYARD_EXAMPLES_QUANTISED_ENGINE_CONFIG_H_
