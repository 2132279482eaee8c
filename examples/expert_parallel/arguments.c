// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <switchyard/switchyard.h>

const char kHelp[] =
    "Usage: mpiexec -n PROCESSES expert_parallel [OPTIONS]\n"
    "\n"
    "Runs one Mixture-of-Experts layer whose experts are spread over the\n"
    "processes. Prints a digest of the results, which is that of one process,\n"
    "and what a step's time went to.\n"
    "\n"
    "  --tokens N        of all processes together (256)\n"
    "  --experts N       of all processes together (16)\n"
    "  --top-k N         experts of a token (4)\n"
    "  --hidden N        a multiple of 4 (1024)\n"
    "  --intermediate N  of an expert (512)\n"
    "  --dispatch TYPE   rows to the experts: i8, f8e4m3, bf16 or f32 (i8)\n"
    "  --combine TYPE    rows back: bf16 or f32 (bf16)\n"
    "  --rounds N        timed, after one that is not (21)\n"
    "  --check           compare some tokens with a plain loop in double\n"
    "  --help            this text\n";

const char* NameOf(int32_t type) {
  return type == SWY_I8       ? "i8"
         : type == SWY_F8E4M3 ? "f8e4m3"
         : type == SWY_BF16   ? "bf16"
                              : "f32";
}

// 0 and a message in `error` if the value is no number from 1 to `high`.
static int ReadNumber(const char* option, const char* text, size_t high,
                      size_t* value, char error[kErrorBytes]) {
  char* end = NULL;
  unsigned long long number;
  errno = 0;
  number = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
      number < 1 || number > high) {
    snprintf(error, kErrorBytes,
             "%s: expected a number from 1 to %zu, not '%.100s'", option, high,
             text);
    return 0;
  }
  *value = (size_t)number;
  return 1;
}

static int ReadType(const char* option, const char* text, const int32_t* types,
                    size_t count, int32_t* type, char error[kErrorBytes]) {
  size_t i;
  for (i = 0; i < count; ++i) {
    if (strcmp(text, NameOf(types[i])) != 0) continue;
    *type = types[i];
    return 1;
  }
  snprintf(error, kErrorBytes, "%s: unknown type '%.100s'", option, text);
  return 0;
}

int ParseArguments(int argc, char** argv, Arguments* a,
                   char error[kErrorBytes]) {
  static const int32_t types[] = {SWY_BF16, SWY_F32, SWY_I8, SWY_F8E4M3};
  const struct {
    const char* name;
    size_t* value;
    size_t high;
  } numbers[] = {{"--tokens", &a->tokens, 65536},
                 {"--experts", &a->experts, 4096},
                 {"--top-k", &a->top_k, 64},
                 {"--hidden", &a->hidden, 65536},
                 {"--intermediate", &a->intermediate, 65536},
                 {"--rounds", &a->rounds, kMaxRounds}};
  int i;
  for (i = 1; i < argc; ++i) {
    const char* const name = argv[i];
    size_t n;
    int known = 0;
    if (strcmp(name, "--help") == 0) {
      a->help = 1;
      return 1;
    }
    if (strcmp(name, "--check") == 0) {
      a->check = 1;
      continue;
    }
    known = strcmp(name, "--dispatch") == 0 || strcmp(name, "--combine") == 0;
    for (n = 0; n < sizeof numbers / sizeof numbers[0]; ++n) {
      known = known || strcmp(name, numbers[n].name) == 0;
    }
    if (!known || i + 1 == argc) {
      snprintf(
          error, 256,
          known ? "%.100s: a value is missing" : "unknown argument: %.100s",
          name);
      return 0;
    }
    ++i;
    if (strcmp(name, "--dispatch") == 0) {
      if (!ReadType(name, argv[i], types, 4, &a->dispatch, error)) return 0;
    } else if (strcmp(name, "--combine") == 0) {
      if (!ReadType(name, argv[i], types, 2, &a->combine, error)) return 0;
    }
    for (n = 0; n < sizeof numbers / sizeof numbers[0]; ++n) {
      if (strcmp(name, numbers[n].name) == 0 &&
          !ReadNumber(name, argv[i], numbers[n].high, numbers[n].value,
                      error)) {
        return 0;
      }
    }
  }
  if (a->hidden % 4 != 0) {
    snprintf(error, kErrorBytes, "--hidden: not a multiple of 4: %zu",
             a->hidden);
    return 0;
  }
  if (a->top_k > a->experts) {
    snprintf(error, kErrorBytes, "--top-k: more than --experts: %zu", a->top_k);
    return 0;
  }
  if (swy_environment_isa().code != SWY_OK) {
    snprintf(error, kErrorBytes, "%.200s", swy_environment_isa().message);
    return 0;
  }
  return 1;
}
