// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the threads of a threadgroup, each on its own fiber. The fibers take
// turns on one thread of the host: each runs until its next barrier or
// SIMD-group function.

#ifndef SWITCHYARD_DEVICE_SRC_METAL_CREW_H_
#define SWITCHYARD_DEVICE_SRC_METAL_CREW_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/src/core/checked_fibers.h"
#include "device/src/core/fiber.h"
#include "device/src/shim/switchyard_abi.h"
#include "switchyard/device/device.h"
#include "switchyard/device/kernel_threads.h"

namespace switchyard::device::metal {

// The functions that modules call. They act on the Crew that runs on the
// calling thread.
extern const switchyard_metal::Runtime kRuntime;

class Crew {
 public:
  Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Runs one threadgroup of the kernel. Throws std::runtime_error for a wrong
  // argument, or for a mistake of a thread.
  void Run(const switchyard_metal::Kernel& kernel,
           const ThreadgroupContext& context);

  // Describes a function constant without a value, or a constant that was
  // computed from such a function constant.
  struct Unset {
    uintptr_t begin, end;
    const char* name;
  };
  // The facts about the module that checked mode needs. `places` must stay
  // valid until the command buffer has completed.
  struct Surroundings {
    const Places* places = nullptr;
    // The module's readable memory, which contains its program-scope
    // constants.
    uintptr_t begin = 0, end = 0;
    const std::vector<Unset>* unset = nullptr;
  };
  void SetSurroundings(const Surroundings& around) { around_ = around; }

  // Receives the accesses of a checked module on this thread while no Crew
  // runs: the accesses of the code that sets up the module's constants.
  using Listener =
      std::function<void(uintptr_t address, size_t bytes, uint32_t kind)>;
  static thread_local const Listener* listener;

  // Returns the Crew that runs on this thread. The functions of Runtime call
  // Here(), and then the functions below.
  static Crew& Here();
  void ThreadgroupBarrier(uint32_t flags, const void* where);
  void SimdgroupBarrier(uint32_t flags, const void* where);
  void Simd(void* slot, switchyard_metal::SimdOperation operation,
            const void* arg, const char* name, bool quad, const void* where);
  void* ThreadgroupVariable(const void* id, const char* name, size_t bytes,
                            size_t alignment);
  void Access(const void* address, size_t bytes, uint32_t kind,
              const void* where);
  uint32_t lane() const {
    return static_cast<uint32_t>(running_) % switchyard_metal::kSimdWidth;
  }
  // Ends the threadgroup with an error, because the kernel uses a buffer that
  // is not bound.
  [[noreturn]] void NotBound(uint32_t index);
  // In checked mode, ends the threadgroup with a finding about a SIMD-group
  // function. While lanes meet, this is called on the host's stack: then it
  // returns, and the threadgroup ends later. Without checked mode, does
  // nothing.
  void Fail(const char* what, const void* where);
  // Reports a division that divides by zero or overflows.
  void Divides(bool by_zero, const void* where);

 private:
  enum class State : uint8_t {
    kNew,
    kReady,
    kInSimd,
    kAtSimdgroupBarrier,
    kGivesWay,  // waits in a loop until the other threads can run no further
    kAtBarrier,
    kDone,
  };
  // A struct around the enumeration, because GCC exports the functions of
  // std::vector<State> although State is hidden.
  struct Progress {
    State state;
  };
  // Describes the call in which a thread waits: its place and its arguments.
  struct Call {
    const void* where;
    uint32_t flags;
    bool quad;
    void* slot;
    switchyard_metal::SimdOperation operation;
    const void* arg;
    const char* name;
  };
  // A fiber's stack. Several threads use it, one after the other.
  struct Stack {
    explicit Stack(Crew& of);
    // Abandons the thread on this stack, and starts the loop of RunHere()
    // again.
    void Start();
    Crew& crew;
    Fiber fiber;
    void* top;  // valid while no thread uses it
  };
  struct Variable {
    const void* id;
    void* memory;
  };
  // Zeros. The kernel gets a pointer to them for an argument that a function
  // constant leaves out.
  static unsigned char absent_[4096];
  // Memory that the kernel may access. It is used only in checked mode.
  struct Range {
    const kernel_internal::View* view;
    uintptr_t begin, end;
  };

  void* BufferAt(const switchyard_metal::Parameter& parameter);
  void* MemoryAt(const switchyard_metal::Parameter& parameter);
  void Bind(const ThreadgroupContext& context);
  void SetThreads(const ThreadgroupContext& context);
  void RunThreads();
  // True if the kernel was cut into regions. Its threads then run as
  // work-item loops, one region after the other.
  bool IsCut() const;
  void RunRegions();
  void MeetInRegion(const switchyard_metal::Meeting* meetings);
  // Runs the simdgroup until all of its threads wait for others or have
  // returned.
  void RunSimdgroup(size_t begin, size_t end);
  // Lets lanes that wait in the same call meet. Returns true if some lanes
  // can go on. While a lane waits in a loop, no lane can go on, because that
  // lane may still reach the call.
  bool Meet(size_t begin, size_t end);
  void Go(size_t thread);
  [[noreturn]] void RunHere(Stack& stack);
  // Suspends the current thread, and stores its stack's top in *from.
  // Switches to the next thread if that thread can run, otherwise to the
  // host's stack.
  void Leave(void** from);
  [[gnu::noinline]] void SwitchChecked(void** from, void* to);
  void Wait(State state);
  void LetOthersRun(const void* where);
  // Switches to the host's stack and never comes back. The error in failure_
  // then ends the threadgroup.
  [[noreturn]] void End();

  // The following functions are for checked mode. crew_checked.cc defines
  // them.
  void AddRange(const kernel_internal::View& view, const char* name,
                size_t element_bytes);
  // Returns the range nearest to an address that lies outside of all ranges,
  // or null if all ranges are far away.
  const Range* NearestRange(uintptr_t address) const;
  // If this thread waits in a loop for a value that other threads write, lets
  // the other threads run. Ends the threadgroup if no thread writes the
  // value.
  void NoteWait(const void* address, size_t bytes, const void* where);
  bool IsOthers(const void* address, size_t bytes, uint32_t kind) const;
  void NoteUnset(uintptr_t address, size_t bytes, const void* where);
  void GiveWay();
  void TakeOrder();
  void MeetAtBarrier();
  void NoteMeeting(State state, const Call& call, size_t begin, size_t end,
                   uint32_t lanes);
  // Marks the stacks of unfinished threads as free. Those threads never
  // continue.
  void AbandonAll();

  const switchyard_metal::Kernel* kernel_ = nullptr;
  const ThreadgroupContext* context_ = nullptr;
  switchyard_metal::Group group_;
  size_t count_ = 0;
  // A barrier reads and writes only the members from here to stacks_ (nine
  // bytes per thread) and the thread's stack. With a Fiber object and a call
  // for each thread, a reduction tree took 1.4 times as long as with these
  // members.
  size_t running_ = 0;  // the index of the running thread
  size_t end_ = 0;  // threads below this index switch directly to the next one
  void* host_ = nullptr;
  std::vector<Progress> progress_;
  std::vector<void*> stacks_;  // the tops of the stacks of waiting threads
  // The error that ended the threadgroup.
  std::exception_ptr failure_;
  CheckedFibers* checked_ = nullptr;  // null for an unchecked module
  Surroundings around_;
  std::vector<Range> ranges_;
  // The last atomic or volatile access. `count` is how many times in a row the
  // thread has made this access and found the same value.
  struct {
    const void* address;
    uint64_t value;
    size_t thread, count;
  } wait_ = {};
  size_t waits_ = 0;  // the number of accesses by threads in kGivesWay
  // The order in which simdgroups run, and the order of the threads, up to
  // the next barrier. Both are empty if all run in the order of their
  // indices.
  std::vector<size_t> simdgroups_;
  std::vector<uint16_t> order_;
  const Call* meeting_ = nullptr;  // set while lanes of a simdgroup meet
  std::vector<switchyard_metal::Thread> threads_;
  std::vector<Call> calls_;
  std::vector<Variable> variables_;
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  std::unique_ptr<Line[]> values_;  // values that are live between regions
  size_t num_values_ = 0;
  kernel_internal::DeclaredArrays arrays_;
  std::vector<std::unique_ptr<Stack>> all_;
  std::vector<Stack*> free_;
};

// Keeps idle Crews for reuse. There are as many Crews as threads that have
// run the kernel at the same time.
class Crews {
 public:
  class Borrowed {
   public:
    explicit Borrowed(Crews& crews) : crews_(crews), crew_(crews.Take()) {}
    ~Borrowed() { crews_.Give(std::move(crew_)); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    Crew* operator->() const { return crew_.get(); }

   private:
    Crews& crews_;
    std::unique_ptr<Crew> crew_;
  };

 private:
  std::unique_ptr<Crew> Take();
  void Give(std::unique_ptr<Crew> crew);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Crew>> free_;  // guarded by mutex_
};

}  // namespace switchyard::device::metal

#endif  // SWITCHYARD_DEVICE_SRC_METAL_CREW_H_
