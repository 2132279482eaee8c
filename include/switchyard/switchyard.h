// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Switchyard's API for C99, and for every language that calls C. It has each
// function and type of the C++ API. The C++ headers have the full contracts.
//
//   swy_route_inputs in = SWY_ROUTE_INPUTS_INIT;
//   swy_route_outputs out = SWY_ROUTE_OUTPUTS_INIT;
//   swy_route_options options = SWY_ROUTE_OPTIONS_INIT;
//   in.logits = swy_dense(logits, SWY_F32, tokens, 128);
//   out.topk_ids = swy_dense(ids, SWY_I32, tokens, 8);
//   out.topk_weights = swy_dense(weights, SWY_F32, tokens, 8);
//   options.score = SWY_SCORE_SIGMOID;
//   swy_status s = swy_route_top_k(&in, &out, &options, NULL);
//   if (s.code != SWY_OK) fprintf(stderr, "%s\n", s.message);
//
// Every kernel takes (inputs, outputs, options, executor). Options may be
// NULL, which means the defaults. The executor may be NULL too, which means
// the calling thread.
//
// Structs with `size` as their first field get new fields at their end in
// later versions. Initialise them with their ..._INIT macro, which sets the
// size and the defaults.
// * If an older caller passes a shorter struct, the missing fields have their
//   defaults. Calls refuse a size that no version of the struct had, such as
//   5 or 8 (the size of a pointer).
// * If a newer caller passes a longer struct, it is refused unless all bytes
//   that this version does not know are zero. A struct of more than
//   SWY_MAX_STRUCT_SIZE, 4096 bytes, is always refused.
//
// Structs without `size` never change, and the values of enumerators never
// change. A flag is 0 or 1; any other value is refused.
//
// Functions do not throw, print or allocate. A failed call returns the
// reason. Any thread may call any function.

#ifndef SWITCHYARD_SWITCHYARD_H_
#define SWITCHYARD_SWITCHYARD_H_

#include "switchyard/c/bucket.h"
#include "switchyard/c/combine.h"
#include "switchyard/c/expert_weights.h"
#include "switchyard/c/layer.h"
#include "switchyard/c/presets.h"
#include "switchyard/c/route.h"
#include "switchyard/c/rows.h"
#include "switchyard/c/types.h"

#endif  // SWITCHYARD_SWITCHYARD_H_
