// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Error handling, and a reader of config.json. An engine in C already has both.

#ifndef SWITCHYARD_EXAMPLES_QUANTISED_ENGINE_CONFIG_H_
#define SWITCHYARD_EXAMPLES_QUANTISED_ENGINE_CONFIG_H_

#include <switchyard/switchyard.h>

// Prints the message on stderr and ends the program.
void Fail(const char* message);
// If `status` is an error, fails with its message and details.
void Check(swy_status status);

// The engine reads these sizes from config.json itself, because
// swy_model_config does not have them.
typedef struct Sizes {
  size_t hidden, intermediate, shared, layers;
} Sizes;
// Reads a JSON file that has a single object without inner objects. Returns the
// value of model_type, or NULL if the file does not have this key. The texts in
// `config` are in static memory.
const char* ReadConfig(const char* path, swy_model_config* config,
                       Sizes* sizes);

#endif  // SWITCHYARD_EXAMPLES_QUANTISED_ENGINE_CONFIG_H_
