// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Functions that describe the machine on which a program runs.

#ifndef SWITCHYARD_PROGRAMS_MACHINE_H_
#define SWITCHYARD_PROGRAMS_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace program {

// Returns the CPU's name, such as "AMD EPYC 9354", or "unknown".
std::string CpuModel();
// Returns the clock rate of the first core in MHz, or 0 if it is unknown.
double CpuMegahertz();

struct Cache {
  std::string type;  // "Data", "Instruction", "Unified"
  int level;
  size_t kib;
  size_t sharing;  // the number of cores that share this cache
};
// Returns the caches of the first core.
std::vector<Cache> Caches();
// Returns a text about the caches that hold data, such as "L1 48K, L2 2048K,
// L3 32768K", or an empty text if they are unknown.
std::string DataCaches();

// Returns the load average over 1, 5 and 15 minutes, or nothing if it is
// unknown.
std::vector<double> LoadAverage();

// Returns the object "context", which every program writes to its JSON. It has
// the keys of Google Benchmark (date, host_name, executable, num_cpus,
// mhz_per_cpu, cpu_scaling_enabled, caches, load_avg, library_build_type), and
// also cpu_model, data_caches, isas, compiler, and the versions of switchyard,
// highway and tbb ("none" without TBB).
nlohmann::ordered_json Context(const std::string& executable);

// Returns the most memory that this process has used at once, in bytes.
uint64_t PeakMemory();
// Throws InputError, which starts with `what`, if `bytes` exceeds the machine's
// memory. Call it before large allocations, because Linux grants them anyway
// and kills the program later. `bytes` is a double, because a product of sizes
// may not fit 64 bits.
void RequireMemory(double bytes, const std::string& what);
// Returns the size as a text, such as "2.25 GiB".
std::string BytesText(double bytes);

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_MACHINE_H_
