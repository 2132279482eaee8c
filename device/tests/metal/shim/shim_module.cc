// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/tests/metal/shim/shim_module.h"

#include <dlfcn.h>

#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "device/src/metal/compile.h"
#include "device/src/metal/regions.h"
#include "gtest/gtest.h"
#include "tests/run_program.h"

namespace switchyard::testing_support {
namespace {

using switchyard_metal::kSimdWidth;
using switchyard_metal::Runtime;
using switchyard_metal::SimdOperation;

// The data of a point where lanes wait for each other.
struct Meeting {
  uint32_t expected = 0;
  uint32_t arrived = 0;
  uint64_t generation = 0;
  void* slots[kSimdWidth] = {};
};

struct Simdgroup {
  std::mutex mutex;
  std::condition_variable changed;
  Meeting all;
  Meeting quads[kSimdWidth / 4];
  std::map<const void*, std::unique_ptr<char[]>> variables;
};

Simdgroup* simdgroup = nullptr;
thread_local uint32_t this_lane = 0;

std::mutex notes_mutex;
std::vector<Access> accesses;
std::vector<std::string> failures;

void Meet(Meeting& meeting, uint32_t index, uint32_t width, void* slot,
          SimdOperation operation, const void* arg) {
  std::unique_lock<std::mutex> lock(simdgroup->mutex);
  meeting.slots[index] = slot;
  if (++meeting.arrived == meeting.expected) {
    if (operation != nullptr) operation(meeting.slots, width, arg);
    for (void*& each : meeting.slots) each = nullptr;
    meeting.arrived = 0;
    ++meeting.generation;
    simdgroup->changed.notify_all();
    return;
  }
  const uint64_t before = meeting.generation;
  simdgroup->changed.wait(lock, [&] { return meeting.generation != before; });
}

void Barrier(uint32_t) {
  Meet(simdgroup->all, this_lane, kSimdWidth, nullptr, nullptr, nullptr);
}
void Simd(void* slot, SimdOperation operation, const void* arg, const char*,
          bool quad) {
  if (quad) {
    Meet(simdgroup->quads[this_lane / 4], this_lane % 4, 4, slot, operation,
         arg);
  } else {
    Meet(simdgroup->all, this_lane, kSimdWidth, slot, operation, arg);
  }
}
void* Variable(const void* id, const char*, switchyard_metal::size bytes,
               switchyard_metal::size alignment) {
  EXPECT_LE(alignment, 16u);
  const std::lock_guard<std::mutex> lock(simdgroup->mutex);
  auto& memory = simdgroup->variables[id];
  if (memory == nullptr) memory = std::make_unique<char[]>(bytes);
  return memory.get();
}
void NoteAccess(const void* address, switchyard_metal::size bytes,
                uint32_t kind, const void* where) {
  EXPECT_NE(where, nullptr);
  const std::lock_guard<std::mutex> lock(notes_mutex);
  accesses.push_back({address, bytes, kind, this_lane});
}
void Fail(const char* what) {
  const std::lock_guard<std::mutex> lock(notes_mutex);
  failures.push_back(what);
}
uint32_t Lane() { return this_lane; }

Runtime MakeRuntime() {
  Runtime runtime = {};
  runtime.threadgroup_barrier = &Barrier;
  runtime.simdgroup_barrier = &Barrier;
  runtime.simd = &Simd;
  runtime.threadgroup_variable = &Variable;
  runtime.access = &NoteAccess;
  runtime.fail = &Fail;
  runtime.lane = &Lane;
  return runtime;
}

// The functions of the library that loaded modules call.
Runtime runtime = MakeRuntime();

}  // namespace

ShimModule::ShimModule(const std::string& name, bool checked) {
  const TempFolder folder;
  const std::string source = SWITCHYARD_SHIM_TESTS;
  const std::string object = folder.File(name + ".so");
  const std::string messages = folder.File("messages");
  std::string arguments;
  for (const std::string& each : device::metal::CodeArguments(checked)) {
    arguments += " " + each;
  }
  const std::string llvm = object + ".ll", to = " >> " + messages + " 2>&1";
  const auto run = [&](const std::string& command) {
    const bool is_done = std::system((FindClang() + command + to).c_str()) == 0;
    if (!is_done) ADD_FAILURE() << ReadFile(messages);
    return is_done;
  };
  if (!run(" -nostdinc -nostdinc++ -isystem " SWITCHYARD_SHIM
           " -include switchyard_module.h -D__METAL__=1 "
           "-D__METAL_VERSION__=320" +
           std::string(checked ? " -DSWITCHYARD_METAL_CHECKED=1" : "") +
           arguments + " -fvisibility=default " + "-S -emit-llvm -o " + llvm +
           " " + source + "/" + name + "_shader.cc")) {
    return;
  }
  std::string text = ReadFile(llvm);
  if (checked) {
    device::metal::InstrumentRest(text);
  } else {
    device::metal::CutIntoRegions(text);
  }
  std::ofstream(llvm) << text;
  std::string rest;
  for (const std::string& each : device::metal::LlvmArguments(checked)) {
    rest += " " + each;
  }
  if (!run(rest + " " + llvm + " -o " + object + ".o")) return;
  if (!run(" -shared -o " + object + " " + object + ".o")) return;
  handle_ = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    ADD_FAILURE() << dlerror();
    return;
  }
  const auto set = Function<void(const Runtime*)>("set_runtime");
  if (set != nullptr) set(&runtime);
}

ShimModule::~ShimModule() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* ShimModule::Find(const char* function) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, function);
}

void ShimModule::RunLanes(uint32_t lanes,
                          const std::function<void(uint32_t lane)>& function) {
  Simdgroup group;
  group.all.expected = lanes;
  for (uint32_t q = 0; q < kSimdWidth / 4; ++q) {
    group.quads[q].expected = lanes <= 4 * q      ? 0
                              : lanes - 4 * q < 4 ? lanes - 4 * q
                                                  : 4;
  }
  simdgroup = &group;
  std::vector<std::thread> threads;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    threads.emplace_back([&function, lane] {
      this_lane = lane;
      function(lane);
    });
  }
  for (std::thread& thread : threads) thread.join();
  simdgroup = nullptr;
}

std::vector<Access> ShimModule::TakeAccesses() {
  const std::lock_guard<std::mutex> lock(notes_mutex);
  std::vector<Access> taken;
  taken.swap(accesses);
  return taken;
}

std::vector<std::string> ShimModule::TakeFailures() {
  const std::lock_guard<std::mutex> lock(notes_mutex);
  std::vector<std::string> taken;
  taken.swap(failures);
  return taken;
}

}  // namespace switchyard::testing_support
