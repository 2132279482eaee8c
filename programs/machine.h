// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Facts about the machine that a program runs on.

#ifndef SWITCHYARD_PROGRAMS_MACHINE_H_
#define SWITCHYARD_PROGRAMS_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace program {

// "AMD EPYC 9354", or "unknown".
std::string CpuModel();
// The clock of the first core; 0 if unknown.
double CpuMegahertz();

struct Cache {
  std::string type;  // "Data", "Instruction", "Unified"
  int level;
  size_t kib;
  size_t sharing;  // cores
};
// The caches of the first core.
std::vector<Cache> Caches();
// The caches that hold data: "L1 48K, L2 2048K, L3 32768K"; empty if unknown.
std::string DataCaches();

// The load average over 1, 5 and 15 minutes; empty if unknown.
std::vector<double> LoadAverage();

// The "context" in the JSON of every program: the keys of Google Benchmark
// (date, host_name, executable, num_cpus, mhz_per_cpu, cpu_scaling_enabled,
// caches, load_avg, library_build_type), and cpu_model, data_caches, isas,
// compiler, switchyard, highway and tbb (versions, or "none").
nlohmann::ordered_json Context(const std::string& executable);

// The most memory that this process has used at once, in bytes.
uint64_t PeakMemory();
// Throws InputError if `bytes` exceeds the machine's memory. Call it before
// large allocations, because Linux grants them anyway and kills the program
// later. A double, because a product of sizes may not fit 64 bits.
void RequireMemory(double bytes, const std::string& what);
// "2.25 GiB"
std::string BytesText(double bytes);

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_MACHINE_H_
