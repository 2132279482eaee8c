// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A shared object with the library in it is loaded, used and closed over and
// over, in a program that has neither the library nor TBB itself. It keeps
// libtbb loaded, as executor.h asks: TBB's workers outlive executors. (Built by
// GCC, the shared object stays, too: variables that C++ wants to be one in the
// process are marked as unique, and what has such is never unloaded.)

#include <dlfcn.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/faults/process.h"

#ifdef SWITCHYARD_SANITIZED
// Clang 14's LeakSanitizer follows the thread-local storage of objects that
// were unloaded while TBB's workers lived on, and crashes in one run of ten.
// All other tests look for the same library's leaks.
extern "C" int __lsan_is_turned_off() { return 1; }
#endif

namespace switchyard::testing_support {
namespace {

// The files that are mapped, of whose path this is a part.
std::set<std::string> Mapped(const std::string& part) {
  std::set<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path != std::string::npos && line.find(part) != std::string::npos) {
      files.insert(line.substr(path));
    }
  }
  return files;
}
size_t Mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

TEST(Plugin, LoadedAndClosedOverAndOver) {
#ifdef SWITCHYARD_TBB_LIBRARY
  ASSERT_NE(dlopen(SWITCHYARD_TBB_LIBRARY, RTLD_NOW | RTLD_LOCAL), nullptr);
#endif
  constexpr int kTimes = 20, kWarmUp = 5;
  size_t mappings = 0;
  ProcessState before = {};
  for (int i = 0; i < kTimes; ++i) {
    void* const library = dlopen(SWITCHYARD_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto use =
        reinterpret_cast<const char* (*)()>(dlsym(library, "UseSwitchyard"));
    ASSERT_NE(use, nullptr) << dlerror();
    const char* const problem = use();
    ASSERT_EQ(problem, nullptr) << problem;
    ASSERT_EQ(dlclose(library), 0) << dlerror();
    if (i == kWarmUp) {
      before = ReadProcessState();
      mappings = Mappings();
    }
  }
  const ProcessState after = ReadProcessState();
  std::printf("heap %zu -> %zu KiB, RSS %zu -> %zu KiB, %zu -> %zu mappings\n",
              before.heap_kib, after.heap_kib, before.rss_kib, after.rss_kib,
              mappings, Mappings());
  std::printf("still mapped:");
  for (const char* part : {"tbb", "faults_plugin.so"}) {
    for (const std::string& file : Mapped(part)) {
      std::printf(" %s", file.substr(file.rfind('/') + 1).c_str());
    }
  }
  std::printf("\n");
  EXPECT_LE(after.threads, before.threads);
  EXPECT_LE(after.fds, before.fds);
#ifndef SWITCHYARD_SANITIZED
  // The heap's arenas come and go; a copy of the plugin is 8 mappings.
  EXPECT_LT(Mappings(), mappings + 20);
  EXPECT_LT(after.rss_kib, before.rss_kib + 4096);
#endif
}

}  // namespace
}  // namespace switchyard::testing_support
