// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// With SWITCHYARD_GGML_REPORT=1, prints a table on stderr when the program
// ends. The table has a line for each kind of computed layer, with the number
// of such layers, their computations and their time. It also lists the
// products left to ggml, with their number and the reason.

#ifndef SWITCHYARD_GGML_REPORT_H_
#define SWITCHYARD_GGML_REPORT_H_

#include <cstdint>

#include "patterns.h"
#include "switchyard/status.h"

namespace switchyard_ggml {

bool Reporting();

// Records the time of a chain. If `done` is an error, the CPU backend ran the
// chain instead.
void Record(const RouterChain& chain, switchyard::Status done, double seconds);
void Record(const ExpertsChain& chain, switchyard::Status done, double seconds);
void Record(const CombineChain& chain, switchyard::Status done, double seconds);
// Records a product that is in no chain: a MUL_MAT_ID with packed weights, or a
// MUL_MAT.
void RecordProduct(const ggml_tensor* node, double seconds);
// Records claimed nodes that belong to no chain.
void RecordRest(int nodes, double seconds);
// Records a MUL_MAT_ID that was not claimed.
void RecordDeclined(const ggml_tensor* mul_mat_id, const char* reason);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_REPORT_H_
