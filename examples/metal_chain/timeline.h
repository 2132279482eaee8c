// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_EXAMPLES_METAL_CHAIN_TIMELINE_H_
#define SWITCHYARD_EXAMPLES_METAL_CHAIN_TIMELINE_H_

#include <string>
#include <vector>

#include "engine.h"

namespace metal_chain {

struct NamedRun {
  std::string name;
  ChainRun run;
};

// A line per dispatch, and the total; fits 100 columns.
std::string TimelineText(const ChainRun& run);

// Trace-event JSON for ui.perfetto.dev and chrome://tracing, a thread per run.
// Microseconds since the start of the first.
std::string TraceJson(const std::vector<NamedRun>& runs);

// Throws InputError if the file could not be written now. Leaves no file.
void RequireWritable(const std::string& path);
void WriteTrace(const std::string& path, const std::string& json);

}  // namespace metal_chain

#endif  // SWITCHYARD_EXAMPLES_METAL_CHAIN_TIMELINE_H_
