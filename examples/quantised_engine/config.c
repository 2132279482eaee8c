// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void Fail(const char* message) {
  fprintf(stderr, "engine: %s\n", message);
  exit(1);
}
void Check(swy_status status) {
  if (status.code == SWY_OK) return;
  fprintf(stderr, "engine: %s %s\n", status.message,
          swy_status_details(status));
  exit(1);
}

const char* ReadConfig(const char* path, swy_model_config* config,
                       Sizes* sizes) {
  static char values[64][64];
  const char* family = NULL;
  char key[64], *x = values[0];
  FILE* const file = fopen(path, "r");
  if (file == NULL) Fail("config.json: cannot be read");
  while (x < values[63] &&
         fscanf(file, " %*[{,] \"%63[^\"]\" : %63[^,}\n]", key, x) == 2) {
    const size_t size = strtoul(x, NULL, 10);
    if (strcmp(key, "hidden_size") == 0) sizes->hidden = size;
    if (strcmp(key, "moe_intermediate_size") == 0) sizes->intermediate = size;
    if (strcmp(key, "num_hidden_layers") == 0) sizes->layers = size;
    if (strcmp(key, "shared_expert_intermediate_size") == 0)
      sizes->shared = size;
    if (x[0] == '"') {
      x[1 + strcspn(x + 1, "\"")] = '\0';
      if (strcmp(key, "model_type") == 0) family = x + 1;
      Check(swy_set_text(key, x + 1, config));
    } else if (strcmp(x, "null") == 0) {
      Check(swy_set_null(key, config));
    } else {
      const double number = strcmp(x, "true") == 0 ? 1 : strtod(x, NULL);
      Check(swy_set_number(key, number, config));
    }
    x += sizeof values[0];
  }
  fclose(file);
  return family;
}
