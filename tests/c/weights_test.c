// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>
#include <string.h>

#include "tests/c/check.h"

enum { kExperts = 2, kRows = 20, kCols = 40, kTokens = 3 };

// The weights are int8. In row o, code k is k - 3 * o + expert. Each scale is
// 1 / 8.
static int8_t codes[kExperts * kRows * kCols];
static float scales[kExperts * kRows];
static int8_t row_codes[kTokens * kCols];
static float row_scales[kTokens];

static swy_expert_weights Stored(void) {
  swy_expert_weights weights =
      swy_stored_weights(SWY_WEIGHTS_INT8, codes, kExperts, kRows, kCols);
  size_t i;
  for (i = 0; i < kExperts * kRows * kCols; ++i) {
    const size_t row = i / kCols;
    codes[i] = (int8_t)((int)(i % kCols) - 3 * (int)(row % kRows) +
                        (int)(row / kRows));
  }
  for (i = 0; i < kExperts * kRows; ++i) scales[i] = 0.125f;
  weights.scales = swy_dense(scales, SWY_F32, kExperts, kRows);
  return weights;
}

static swy_expert_tile Tile(float* out) {
  swy_expert_tile tile;
  size_t i;
  memset(&tile, 0, sizeof tile);
  for (i = 0; i < kTokens * kCols; ++i) row_codes[i] = (int8_t)(i % 7);
  for (i = 0; i < kTokens; ++i) row_scales[i] = (float)(i + 1);
  tile.product = SWY_PRODUCT_DOWN;
  tile.expert = 1;
  tile.rows = swy_plain_rows(swy_dense(row_codes, SWY_I8, kTokens, kCols));
  tile.rows.scales = swy_dense(row_scales, SWY_F32, kTokens, 1);
  tile.out = swy_dense(out, SWY_F32, kTokens, kRows);
  return tile;
}

void TestExpertWeights(void) {
  swy_expert_weights stored = Stored(), packed = SWY_NO_EXPERT_WEIGHTS;
  swy_pack_weights_inputs in = SWY_PACK_WEIGHTS_INPUTS_INIT;
  swy_pack_weights_outputs out = SWY_PACK_WEIGHTS_OUTPUTS_INIT;
  swy_layer_weights layer = SWY_LAYER_WEIGHTS_INIT;
  swy_experts_plan_options shape = SWY_EXPERTS_PLAN_OPTIONS_INIT;
  float wanted[kTokens * kRows], found[kTokens * kRows];
  swy_expert_tile tile = Tile(found);
  size_t r, o, k;
  for (r = 0; r < kTokens; ++r) {
    for (o = 0; o < kRows; ++o) {
      int dot = 0;
      for (k = 0; k < kCols; ++k) {
        dot += codes[(kRows + o) * kCols + k] * row_codes[r * kCols + k];
      }
      wanted[r * kRows + o] = (float)dot * (0.125f * row_scales[r]);
    }
  }
  CHECK(swy_expert_weights_size(&stored) == kRows * kCols);
  CHECK_OK(swy_multiply_tile(&stored, &tile));
  CHECK_FLOATS(found, wanted, kTokens * kRows);

  // The 20 rows are packed in two groups of 16. Each group has two blocks of
  // 512 bytes, and 64 bytes of scales.
  CHECK(swy_packed_weights_size(&stored) == 2 * (2 * 512 + 64));
  in.weights = stored;
  out.memory = swy_dense(malloc(kExperts * 2176), SWY_U8, kExperts, 2176);
  out.weights = &packed;
  CHECK_OK(swy_pack_weights(&in, &out, NULL, &kThreads));
  CHECK(packed.layout == SWY_WEIGHTS_PACKED && packed.rows == kRows);
  memset(found, 0, sizeof found);
  layer.down = packed;
  CHECK_OK(swy_multiply_layer(&layer, &tile));
  CHECK_FLOATS(found, wanted, kTokens * kRows);

  CHECK(swy_operands_of(SWY_WEIGHTS_INT8).type == SWY_I8);
  CHECK(swy_operands_of(SWY_WEIGHTS_INT8).scale_columns == 0);
  CHECK(swy_operands_of(SWY_WEIGHTS_Q4_0).scale_columns == 32);
  swy_set_costs(SWY_WEIGHTS_Q4_0, &shape);
  CHECK(shape.tile_columns == 32 && shape.weight_cost == 3 * shape.row_cost);
  swy_set_costs(SWY_WEIGHTS_Q4_0, NULL);

  CHECK(swy_expert_weights_size(NULL) == SIZE_MAX);
  CHECK(swy_packed_weights_size(NULL) == SIZE_MAX);
  CHECK_INVALID(swy_multiply_tile(NULL, &tile),
                "MultiplyTile: weights: is null");
  CHECK_INVALID(swy_multiply_tile(&stored, NULL),
                "MultiplyTile: tile: is null");
  CHECK_INVALID(swy_multiply_layer(NULL, &tile),
                "MultiplyTile: layer_weights: is null");
  CHECK_INVALID(swy_multiply_layer(&layer, NULL),
                "MultiplyTile: tile: is null");
  layer.size = 0;
  CHECK_INVALID(swy_multiply_layer(&layer, &tile),
                "MultiplyTile: layer_weights: size is not set");
  layer.size = sizeof layer;
  tile.product = 256;
  CHECK_INVALID(swy_multiply_layer(&layer, &tile),
                "LayerWeights: tile.product: is not a known ExpertProduct");
  stored.format = -1;
  CHECK(swy_expert_weights_size(&stored) == SIZE_MAX);
  CHECK_INVALID(
      swy_multiply_tile(&stored, &tile),
      "MultiplyTile: weights: format, layout, rows or cols is out of range");
  stored.format = SWY_WEIGHTS_INT8 + 256;
  in.weights = stored;
  CHECK_INVALID(swy_pack_weights(&in, &out, NULL, NULL),
                "PackWeights: weights.format: is not a known WeightFormat");
  CHECK_INVALID(swy_pack_weights(NULL, &out, NULL, NULL),
                "PackWeights: inputs: is null");
  free(out.memory.data);
}
