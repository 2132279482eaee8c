// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Switchyard for C, and for every language that calls C. It has each function
// and type of the plain C++ API; the C++ headers hold the full contracts.
// C99.
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
// Structs with `size` as their first field grow at their end in later
// versions. Make them from their ..._INIT macro, which sets the size and the
// defaults.
// * In a shorter struct, from an older caller, the missing fields have their
//   defaults. A size that no version had is refused, such as 5, or 8, the
//   size of a pointer.
// * A longer struct, from a newer caller, is refused unless all bytes that
//   this version does not know are zero. Above SWY_MAX_STRUCT_SIZE, 4096
//   bytes, it is always refused.
//
// Structs without a size never change, nor do enumerators. A flag is 0 or 1;
// another value is refused.
//
// Functions do not throw, print or allocate, and a failed call returns the
// reason. Any thread may call them.

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
