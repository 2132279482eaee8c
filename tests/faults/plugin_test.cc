// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Loads, uses and closes a shared object that contains the library, many
// times, in a program that links neither the library nor TBB. The program
// keeps libtbb loaded, as executor.h requires, because TBB's workers outlive
// executors. If GCC built the shared object, dlclose() does not unload it.
// The reason is that the object defines symbols marked as unique in the
// process, and glibc never unloads such an object.

#include <dlfcn.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/faults/process.h"

#ifdef SWITCHYARD_SANITIZED
// Turns the leak check off. Clang 14's LeakSanitizer reads the thread-local
// storage of objects that were unloaded while TBB's workers still ran, and
// crashes in one run of ten. All other tests check the same library for leaks.
extern "C" int __lsan_is_turned_off() { return 1; }
#endif

namespace switchyard::testing_support {
namespace {

// Returns the mapped files that have `part` in their path.
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
  // The number of malloc's arenas varies. If a copy of the plug-in leaked, it
  // would add 8 mappings each time.
  EXPECT_LT(Mappings(), mappings + 20);
  EXPECT_LT(after.rss_kib, before.rss_kib + 4096);
#endif
}

}  // namespace
}  // namespace switchyard::testing_support
