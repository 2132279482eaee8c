// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/machine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>

#include "programs/json.h"
#include "programs/program.h"
#include "switchyard/isa.h"

namespace program {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the text that follows "key : " in /proc/cpuinfo, for the first core.
std::string CpuInfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t at = line.find(": ");
    if (at != std::string::npos) return line.substr(at + 2);
  }
  return "";
}

// Counts the bits of a text like "00000000,00000003".
size_t CountBits(const std::string& hex) {
  size_t count = 0;
  for (const char c : hex) {
    const std::string digits = "0123456789abcdef";
    size_t digit = digits.find(c);
    if (digit == std::string::npos) continue;
    for (; digit != 0; digit /= 2) count += digit % 2;
  }
  return count;
}

// Returns the date and time with the offset from UTC, as RFC 3339 writes it,
// because programs that read Google Benchmark's files expect this form.
std::string Date() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[40];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S%z", &local);
  std::string date = text;
  if (date.size() > 5) date.insert(date.size() - 2, ":");
  return date;
}

std::string HostName() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

std::string Version(const char* version) {
  return version[0] == '\0' ? "unknown" : version;
}

}  // namespace

std::string CpuModel() {
  const std::string model = CpuInfo("model name");
  return model.empty() ? "unknown" : model;
}

double CpuMegahertz() {
  return std::strtod(CpuInfo("cpu MHz").c_str(), nullptr);
}

std::vector<Cache> Caches() {
  std::vector<Cache> caches;
  for (int i = 0;; ++i) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string type = FirstLine(folder + "type");
    if (type.empty()) return caches;
    const std::string level = FirstLine(folder + "level");
    const std::string size = FirstLine(folder + "size");  // "48K"
    caches.push_back({type, std::atoi(level.c_str()),
                      std::strtoul(size.c_str(), nullptr, 10),
                      CountBits(FirstLine(folder + "shared_cpu_map"))});
  }
}

std::string DataCaches() {
  std::string text;
  for (const Cache& cache : Caches()) {
    if (cache.type == "Instruction") continue;
    text += (text.empty() ? "L" : ", L") + std::to_string(cache.level) + " " +
            std::to_string(cache.kib) + "K";
  }
  return text;
}

std::vector<double> LoadAverage() {
  double load[3];
  const int count = getloadavg(load, 3);
  return {load, load + (count > 0 ? count : 0)};
}

nlohmann::ordered_json Context(const std::string& executable) {
  using Json = nlohmann::ordered_json;
  Json caches = Json::array();
  for (const Cache& cache : Caches()) {
    caches.push_back({{"type", cache.type},
                      {"level", cache.level},
                      {"size", cache.kib * 1024},
                      {"num_sharing", cache.sharing}});
  }
  const std::string governor =
      FirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
#ifdef NDEBUG
  const char* const build_type = "release";
#else
  const char* const build_type = "debug";
#endif
  return {
      {"date", Date()},
      {"host_name", HostName()},
      {"executable", executable},
      {"num_cpus", std::thread::hardware_concurrency()},
      {"mhz_per_cpu", Count(CpuMegahertz())},
      {"cpu_scaling_enabled", !governor.empty() && governor != "performance"},
      {"caches", caches},
      {"load_avg", LoadAverage()},
      {"library_build_type", build_type},
      {"cpu_model", CpuModel()},
      {"data_caches", DataCaches()},
      {"isas", IsaChoices(" ")},
      {"compiler", PROGRAM_COMPILER},
      {"switchyard", SWITCHYARD_VERSION},
      {"highway", Version(PROGRAM_HIGHWAY)},
      {"tbb", PROGRAM_TBB}};
}

uint64_t PeakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

void RequireMemory(double bytes, const std::string& what) {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_size <= 0) return;  // the machine's memory is unknown
  const double memory =
      static_cast<double>(pages) * static_cast<double>(page_size);
  if (bytes > memory) {
    throw InputError(what + ": needs " + BytesText(bytes) +
                     " of memory, this machine has " + BytesText(memory));
  }
}

std::string BytesText(double bytes) {
  const double kib = bytes / 1024;
  char text[32];
  if (kib < 1024) {
    std::snprintf(text, sizeof(text), "%.1f KiB", kib);
  } else if (kib < 1024 * 1024) {
    std::snprintf(text, sizeof(text), "%.1f MiB", kib / 1024);
  } else {
    std::snprintf(text, sizeof(text), "%.2f GiB", kib / (1024 * 1024));
  }
  return text;
}

}  // namespace program
