// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the threads of a threadgroup, each on a fiber. They take turns on one
// thread of the host: each runs until its next barrier or SIMD-group
// function.

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

// The functions that modules call. They act on the crew that runs on this
// thread.
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

  // A function constant without a value, or a constant computed from one.
  struct Unset {
    uintptr_t begin, end;
    const char* name;
  };
  // Facts about the module, for checked mode. `places` must stay until the
  // command buffer has completed.
  struct Surroundings {
    const Places* places = nullptr;
    uintptr_t begin = 0, end = 0;  // readable: holds program-scope constants
    const std::vector<Unset>* unset = nullptr;
  };
  void SetSurroundings(const Surroundings& around) { around_ = around; }

  // Gets the accesses of a checked module on this thread while no crew runs:
  // those of the code that sets up its constants.
  using Listener =
      std::function<void(uintptr_t address, size_t bytes, uint32_t kind)>;
  static thread_local const Listener* listener;

  // The functions of Runtime, for the crew that runs on this thread.
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
  // Ends the threadgroup with an error: the kernel uses a buffer that is not
  // bound.
  [[noreturn]] void NotBound(uint32_t index);
  // Checked mode: ends the threadgroup with a finding about a SIMD-group
  // function. Returns if lanes meet, because the call is then on the host's
  // stack.
  void Fail(const char* what, const void* where);
  // Reports a division by zero, or one that overflows.
  void Divides(bool by_zero, const void* where);

 private:
  enum class State : uint8_t {
    kNew,
    kReady,
    kInSimd,
    kAtSimdgroupBarrier,
    kGivesWay,  // waits in a loop until the others have run as far as they can
    kAtBarrier,
    kDone,
  };
  // A class, because GCC exports the functions of a vector of a hidden
  // enumeration.
  struct Progress {
    State state;
  };
  // The call in which a thread waits: its place and its arguments.
  struct Call {
    const void* where;
    uint32_t flags;
    bool quad;
    void* slot;
    switchyard_metal::SimdOperation operation;
    const void* arg;
    const char* name;
  };
  // A fiber's stack. Threads use it one after the other.
  struct Stack {
    explicit Stack(Crew& of);
    void Start();  // abandons the thread on it, and starts again
    Crew& crew;
    Fiber fiber;
    void* top;  // valid while no thread uses it
  };
  struct Variable {
    const void* id;
    void* memory;
  };
  // Zeros, for arguments that a function constant leaves out.
  static unsigned char absent_[4096];
  // Memory that the kernel may access, in checked mode.
  struct Range {
    const kernel_internal::View* view;
    uintptr_t begin, end;
  };

  void* BufferAt(const switchyard_metal::Parameter& parameter);
  void* MemoryAt(const switchyard_metal::Parameter& parameter);
  void Bind(const ThreadgroupContext& context);
  void SetThreads(const ThreadgroupContext& context);
  void RunThreads();
  // True if the kernel is cut: its threads run as work-item loops, region by
  // region.
  bool IsCut() const;
  void RunRegions();
  void MeetInRegion(const switchyard_metal::Meeting* meetings);
  // Runs the simdgroup until all of its threads wait for others or have
  // returned.
  void RunSimdgroup(size_t begin, size_t end);
  // Lets waiting lanes meet. Returns true if some can go on. None can while
  // another lane waits in a loop, because that lane may still come.
  bool Meet(size_t begin, size_t end);
  void Go(size_t thread);
  [[noreturn]] void RunHere(Stack& stack);
  // Stores the stack's top in *from, and switches to the next thread if it
  // can run, or else to the host's stack.
  void Leave(void** from);
  [[gnu::noinline]] void SwitchChecked(void** from, void* to);
  void Wait(State state);
  void LetOthersRun(const void* where);
  // Goes back to the host's stack for good; failure_ then ends the
  // threadgroup.
  [[noreturn]] void End();

  // Additions of checked mode, in crew_checked.cc.
  void AddRange(const kernel_internal::View& view, const char* name,
                size_t element_bytes);
  // Returns the range nearest to an address outside of all ranges; null if
  // all are far away.
  const Range* NearestRange(uintptr_t address) const;
  // Lets the other threads run if this one waits in a loop for a value that
  // they write. Ends the threadgroup if no thread writes it.
  void NoteWait(const void* address, size_t bytes, const void* where);
  bool IsOthers(const void* address, size_t bytes, uint32_t kind) const;
  void NoteUnset(uintptr_t address, size_t bytes, const void* where);
  void GiveWay();
  void TakeOrder();
  void MeetAtBarrier();
  void NoteMeeting(State state, const Call& call, size_t begin, size_t end,
                   uint32_t lanes);
  // Makes the stacks of unfinished threads free again. Those threads never
  // continue.
  void AbandonAll();

  const switchyard_metal::Kernel* kernel_ = nullptr;
  const ThreadgroupContext* context_ = nullptr;
  switchyard_metal::Group group_;
  size_t count_ = 0;
  // A barrier touches only these members and nine bytes per thread besides
  // its stack. With a fiber and a call for each thread, a reduction tree took
  // 1.4 times as long.
  size_t running_ = 0;  // the thread's index
  size_t end_ = 0;      // below it, a thread hands over to the next index
  void* host_ = nullptr;
  std::vector<Progress> progress_;
  std::vector<void*> stacks_;  // tops of the stacks of waiting threads
  // The error that ended the threadgroup.
  std::exception_ptr failure_;
  CheckedFibers* checked_ = nullptr;  // null: unchecked
  Surroundings around_;
  std::vector<Range> ranges_;
  // The last atomic or volatile access, and how often a thread has repeated
  // it in a row and found the same value.
  struct {
    const void* address;
    uint64_t value;
    size_t thread, count;
  } wait_ = {};
  size_t waits_ = 0;  // accesses of threads in kGivesWay
  // Run order of simdgroups, and of the threads in each, up to the next
  // barrier. Empty: by index.
  std::vector<size_t> simdgroups_;
  std::vector<uint16_t> order_;
  const Call* meeting_ = nullptr;  // while lanes of a simdgroup meet
  std::vector<switchyard_metal::Thread> threads_;
  std::vector<Call> calls_;
  std::vector<Variable> variables_;
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  std::unique_ptr<Line[]> values_;  // live values between regions
  size_t num_values_ = 0;
  kernel_internal::DeclaredArrays arrays_;
  std::vector<std::unique_ptr<Stack>> all_;
  std::vector<Stack*> free_;
};

// Idle crews, for reuse: as many as threads that have run the kernel at the
// same time.
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
