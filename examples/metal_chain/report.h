// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_REPORT_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_REPORT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "engine.h"
#include "host_chain.h"
#include "layer.h"

namespace metal_chain {

struct Chain {
  const char* name;
  size_t tokens;
  ChainRun run;
  Comparison comparison;
};

// A line per dispatch, and the total; fits 80 columns.
std::string TimelineText(const ChainRun& run);

// Trace-event JSON for ui.perfetto.dev and chrome://tracing, a thread per
// chain. Microseconds since the start of the first.
std::string TraceJson(const std::vector<Chain>& chains);

// The text of --json; the names in it are those that --help lists.
std::string ReportJson(const Layer& layer, size_t threads,
                       const std::vector<Chain>& chains);

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_REPORT_H_
