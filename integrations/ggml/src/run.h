// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes the chains of patterns.h. Only the last step of a chain writes to
// ggml's memory, and only if no step has failed. So after any error the CPU
// backend can still compute the same nodes.

#ifndef SWITCHYARD_GGML_RUN_H_
#define SWITCHYARD_GGML_RUN_H_

#include <memory>

#include "patterns.h"
#include "switchyard/executor.h"
#include "switchyard/status.h"

namespace switchyard_ggml {

class Workspace;  // memory of one backend, kept between calls

std::shared_ptr<Workspace> MakeWorkspace();

switchyard::Status Run(const RouterChain& chain, switchyard::Executor& executor,
                       Workspace& workspace);
switchyard::Status Run(const ExpertsChain& chain,
                       switchyard::Executor& executor, Workspace& workspace);
switchyard::Status Run(const CombineChain& chain,
                       switchyard::Executor& executor, Workspace& workspace);
// Computes a single MUL_MAT_ID, or a MUL_MAT for which IsDenseProduct() is
// true. The weights must have a WeightFormat. If it fails, the result is
// unspecified.
switchyard::Status RunProduct(const ggml_tensor* node,
                              switchyard::Executor& executor,
                              Workspace& workspace);

}  // namespace switchyard_ggml

#endif  // SWITCHYARD_GGML_RUN_H_
