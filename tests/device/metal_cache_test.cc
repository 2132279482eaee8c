// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The cache of compiled .metal files: DeviceOptions::metal_cache_bytes.

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "src/device/metal/cache.h"
#include "switchyard/device/device.h"
#include "tests/device/device_test.h"
#include "tests/device/metal_text.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

using device::metal::Cache;

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const all = opendir(folder.c_str());
  while (const dirent* const entry = readdir(all)) {
    const std::string name = entry->d_name;
    if (name != "." && name != ".." && name != "lock") names.push_back(name);
  }
  closedir(all);
  std::sort(names.begin(), names.end());
  return names;
}
void SetAge(const std::string& path, time_t seconds) {
  const timespec then = {std::time(nullptr) - seconds, 0};
  const timespec times[] = {then, then};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
}

// The folder by itself: modules are files of 1000 bytes, keys of 10.
class MetalCache : public testing::Test {
 protected:
  static std::string Key(char letter) { return std::string(10, letter); }
  std::shared_ptr<const device::metal::CachedModule> Add(const Cache& cache,
                                                         char letter) {
    const std::string module = cache.folder() + "/work-module";
    const std::string key = cache.folder() + "/work-key";
    std::ofstream(module) << std::string(1000, letter);
    std::ofstream(key) << Key(letter);
    return cache.Add(Key(letter), module, key);
  }
  // Sets the age of a file's module.
  void SetAgeOf(char letter, time_t seconds) {
    const std::string name = device::metal::HashOf(Key(letter));
    SetAge(folder_.File((name + ".so").c_str()), seconds);
  }
  static bool Has(const Cache& cache, char letter) {
    return cache.Find(Key(letter)) != nullptr;
  }
  std::string Those(const Cache& cache) {
    std::string all;
    for (const char letter : {'a', 'b', 'c', 'd'}) {
      const std::string hash = device::metal::HashOf(Key(letter));
      struct stat status;
      if (stat((cache.folder() + "/" + hash + ".so").c_str(), &status) == 0) {
        all += letter;
      }
    }
    return all;
  }

  const TempFolder folder_;
};

TEST_F(MetalCache, WhatHasNotBeenUsedForLongestGoes) {
  const Cache cache(folder_.path(), 3030);
  Add(cache, 'a');
  Add(cache, 'b');
  Add(cache, 'c');
  EXPECT_EQ(Those(cache), "abc");
  SetAgeOf('a', 10);
  SetAgeOf('b', 20);
  SetAgeOf('c', 30);
  EXPECT_TRUE(Has(cache, 'c'));  // a use
  Add(cache, 'd');
  EXPECT_EQ(Those(cache), "acd");
  EXPECT_FALSE(Has(cache, 'b'));
  EXPECT_EQ(NamesIn(folder_.path()).size(), 6u);
  // To less than that, and without a bound.
  const Cache small(folder_.path(), 1);
  Add(small, 'b');
  EXPECT_EQ(Those(cache), "b");
  const Cache any(folder_.path(), 0);
  for (const char letter : {'a', 'c', 'd'}) Add(any, letter);
  EXPECT_EQ(Those(cache), "abcd");
}

TEST_F(MetalCache, WhatIsInUseStays) {
  const Cache cache(folder_.path(), 1);
  const auto a = Add(cache, 'a');
  SetAgeOf('a', 1000);
  Add(cache, 'b');
  EXPECT_EQ(Those(cache), "ab");
  const auto again = cache.Find(Key('a'));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->path(), a->path());
  Add(cache, 'c');
  EXPECT_EQ(Those(cache), "ac");
  // This one stands for another process's.
  const Cache same(folder_.path(), 1);
  auto d = Add(same, 'd');
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready) | pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto mine = cache.Find(Key('d'));
    char byte = mine != nullptr ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    close(done[1]);
    _exit(read(done[0], &byte, 1) == 0 ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  close(done[0]);
  d.reset();
  Add(cache, 'b');
  EXPECT_EQ(Those(cache), "abd");
  close(done[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  Add(cache, 'c');
  EXPECT_EQ(Those(cache), "ac");
  close(ready[0]);
  close(ready[1]);
}

TEST_F(MetalCache, AnotherKeyOfTheSameNameIsNone) {
  const Cache cache(folder_.path(), 0);
  Add(cache, 'a');
  const std::string hash = device::metal::HashOf(Key('a'));
  std::ofstream(folder_.File((hash + ".cc").c_str())) << "another";
  EXPECT_FALSE(Has(cache, 'a'));
  Add(cache, 'a');
  EXPECT_TRUE(Has(cache, 'a'));
  unlink(folder_.File((hash + ".so").c_str()).c_str());
  EXPECT_FALSE(Has(cache, 'a'));
}

// Processes that were killed leave their work behind, versions their headers.
TEST_F(MetalCache, OldWorkGoes) {
  const Cache cache(folder_.path(), 1 << 20);
  constexpr time_t kDay = 24 * 60 * 60;
  const std::string copy = "0123456789abcdef.so.AbCdEf";
  for (const char* const name : {"work-old", "work-new", "shim-0", "shim-1"}) {
    ASSERT_EQ(mkdir(folder_.File(name).c_str(), 0700), 0);
    std::ofstream(folder_.File(name) + "/file") << "text";
  }
  std::ofstream(folder_.File(copy.c_str())) << "text";
  std::ofstream(folder_.File("notes.txt")) << "text";
  SetAge(folder_.File("work-old"), 2 * kDay);
  SetAge(folder_.File("shim-0"), 31 * kDay);
  SetAge(folder_.File("shim-1"), 29 * kDay);
  SetAge(folder_.File(copy.c_str()), 2 * kDay);
  SetAge(folder_.File("notes.txt"), 1000 * kDay);
  Add(cache, 'a');
  std::vector<std::string> names = NamesIn(folder_.path());
  EXPECT_EQ(names.size(), 5u);
  for (const char* const name : {"work-new", "shim-1", "notes.txt"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
}

// Libraries of a device live on.
TEST_F(MetalCache, LibrariesKeepTheirModules) {
  SWITCHYARD_NEEDS_CLANG();
  DeviceOptions options;
  options.metal_cache = folder_.path();
  options.metal_cache_bytes = 1;
  const auto device = CreateDevice(options);
  const auto text = [](int n) {
    return "constant int n [[function_constant(0)]];\n"
           "kernel void k(device int* x) { *x = n + " +
           std::to_string(n) + "; }\n";
  };
  std::string error;
  const auto modules = [&] {
    size_t count = 0;
    for (const std::string& name : NamesIn(folder_.path())) {
      if (name.size() == 19 && name.substr(16) == ".so") ++count;
    }
    return count;
  };
  auto first = device->newLibrary(text(1), {}, &error);
  ASSERT_NE(first, nullptr) << error;
  auto function = first->newFunction("k", &error);
  for (int n = 2; n < 4; ++n) ASSERT_NE(device->newLibrary(text(n)), nullptr);
  EXPECT_EQ(modules(), 2u);
  EXPECT_TRUE(device->newLibrary(text(1))->cached());
  ASSERT_NE(first->newFunction("k", &error), nullptr) << error;
  // A function is a use of it as well.
  first.reset();
  ASSERT_NE(device->newLibrary(text(4)), nullptr);
  EXPECT_EQ(modules(), 2u);
  function.reset();
  ASSERT_NE(device->newLibrary(text(5)), nullptr);
  EXPECT_EQ(modules(), 1u);

  // At the same time, as processes would.
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int n = 0; n < 2; ++n) {
        std::string why;
        const auto library =
            CreateDevice(options)->newLibrary(text((t + n) % 2), {}, &why);
        ASSERT_NE(library, nullptr) << why;
        EXPECT_NE(library->newFunction("k", &why), nullptr) << why;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace switchyard::testing_support
