// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Switchyard for C, and for whatever calls C: each function and type of the
// plain C++ API, whose headers have the long contract of each. C99.
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
// Every kernel is called so: (inputs, outputs, options, executor). Options may
// be NULL, which is their defaults, and so may the executor: the calling
// thread.
//
// Structs whose first field is `size` grow at their end in later versions. Make
// them from their ..._INIT macro, which sets the size and the defaults. Of a
// shorter struct, of an older caller, what is missing has its default, and a
// size that no version had is refused: 5, or 8, the size of a pointer. A longer
// one, of a newer caller, is refused unless all that is not known here is zero,
// and above SWY_MAX_STRUCT_SIZE, 4096 bytes, in any case. Structs without a
// size never change, nor do enumerators. A flag is 0 or 1, and is refused with
// another value.
//
// Nothing is thrown, printed or allocated, and a call that fails says why.
// Functions may be called by any thread.

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
