// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A table on stderr when the program ends, with SWITCHYARD_GGML_REPORT=1: a
// line per kind of layer that was computed, with the number of such layers, and
// the products that were left to ggml, with their number and the reason.

#ifndef SWITCHYARD_GGML_REPORT_H_
#define SWITCHYARD_GGML_REPORT_H_

#include <cstdint>

#include "patterns.h"
#include "switchyard/status.h"

namespace switchyard_ggml {

bool Reporting();

// A chain took this long; unless `done` is ok, it was left to the CPU backend.
void Record(const RouterChain& chain, switchyard::Status done, double seconds);
void Record(const ExpertsChain& chain, switchyard::Status done, double seconds);
void Record(const CombineChain& chain, switchyard::Status done, double seconds);
// A MUL_MAT_ID alone, with packed weights.
void RecordProduct(const ggml_tensor* mul_mat_id, double seconds);
// Nodes that were claimed one by one, and belong to no chain.
void RecordRest(int nodes, double seconds);
// A MUL_MAT_ID that was not claimed.
void RecordDeclined(const ggml_tensor* mul_mat_id, const char* reason);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_REPORT_H_
