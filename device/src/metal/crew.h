// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The threads of a threadgroup, each on a fiber, which take turns on one thread
// of the host: from one point where they meet to the next.

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

// The functions that modules call, of the crew that runs on this thread.
extern const switchyard_metal::Runtime kRuntime;

class Crew {
 public:
  Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Runs one threadgroup of the kernel. Throws std::runtime_error with what is
  // wrong: an argument, or what a thread has done.
  void Run(const switchyard_metal::Kernel& kernel,
           const ThreadgroupContext& context);

  // A function constant that has no value, or what is made of it.
  struct Unset {
    uintptr_t begin, end;
    const char* name;
  };
  // The module whose kernels it runs, in checked mode. Its places stay until
  // the command buffer has completed.
  struct Surroundings {
    const Places* places = nullptr;
    uintptr_t begin = 0, end = 0;  // what may be read: program-scope constants
    const std::vector<Unset>* unset = nullptr;
  };
  void SetSurroundings(const Surroundings& around) { around_ = around; }

  // Hears of the accesses of a checked module that no crew runs, on this
  // thread: those that set up its constants.
  using Listener =
      std::function<void(uintptr_t address, size_t bytes, uint32_t kind)>;
  static thread_local const Listener* listener;

  // The work of Runtime's functions, on the thread that runs.
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
  // Ends the thread, which needs that buffer.
  [[noreturn]] void NotBound(uint32_t index);
  // Ends the thread, or where lanes have met what they do.
  void Fail(const char* what, const void* where);
  // Reports a division by zero, or one that overflows.
  void Divides(bool by_zero, const void* where);

 private:
  enum class State : uint8_t {
    kNew,
    kReady,
    kInSimd,
    kAtSimdgroupBarrier,
    kGivesWay,  // goes on when all others have come as far as they can
    kAtBarrier,
    kDone,
  };
  // A class, as GCC exports the functions of a vector of a hidden enumeration.
  struct Progress {
    State state;
  };
  // This is the place at which a thread waits, and what it waits with.
  struct Call {
    const void* where;
    uint32_t flags;
    bool quad;
    void* slot;
    switchyard_metal::SimdOperation operation;
    const void* arg;
    const char* name;
  };
  // A stack for one thread after the other.
  struct Stack {
    explicit Stack(Crew& of);
    void Start();  // anew
    Crew& crew;
    Fiber fiber;
    void* top;  // while no thread has it
  };
  struct Variable {
    const void* id;
    void* memory;
  };
  // The place of arguments that a function constant leaves out: zeros.
  static unsigned char absent_[4096];
  // Memory that the kernel may touch, in checked mode.
  struct Range {
    const kernel_internal::View* view;
    uintptr_t begin, end;
  };

  void* BufferAt(const switchyard_metal::Parameter& parameter);
  void* MemoryAt(const switchyard_metal::Parameter& parameter);
  void Bind(const ThreadgroupContext& context);
  void SetThreads(const ThreadgroupContext& context);
  void RunThreads();
  // True if its threads take turns in loops, from region to region.
  bool IsCut() const;
  void RunRegions();
  void MeetInRegion(const switchyard_metal::Meeting* meetings);
  // Until all of the simdgroup's threads wait for others, or have returned.
  void RunSimdgroup(size_t begin, size_t end);
  // True if some have met, and can go on. None has while another waits in a
  // loop: it may be on its way.
  bool Meet(size_t begin, size_t end);
  void Go(size_t thread);
  [[noreturn]] void RunHere(Stack& stack);
  // Leaves a thread's stack, whose top goes to *from, for that of the thread
  // behind it, if it can go on, or for the host's.
  void Leave(void** from);
  [[gnu::noinline]] void SwitchChecked(void** from, void* to);
  void Wait(State state);
  void LetOthersRun(const void* where);
  // Goes back to the host's stack, where failure_ ends all, for good.
  [[noreturn]] void End();

  // Additions of checked mode, in crew_checked.cc.
  void AddRange(const kernel_internal::View& view, const char* name,
                size_t element_bytes);
  // The one next to an address that is in none; null if it is far from all.
  const Range* NearestRange(uintptr_t address) const;
  // Lets others run if a thread goes round in a loop until they write what it
  // accesses; ends it if they do not.
  void NoteWait(const void* address, size_t bytes, const void* where);
  bool IsOthers(const void* address, size_t bytes, uint32_t kind) const;
  void NoteUnset(uintptr_t address, size_t bytes, const void* where);
  void GiveWay();
  void TakeOrder();
  void MeetAtBarrier();
  void NoteMeeting(State state, const Call& call, size_t begin, size_t end,
                   uint32_t lanes);
  // Threads that have not returned never will.
  void AbandonAll();

  const switchyard_metal::Kernel* kernel_ = nullptr;
  const ThreadgroupContext* context_ = nullptr;
  switchyard_metal::Group group_;
  size_t count_ = 0;
  // A barrier touches these, and nine bytes of a thread besides its stack: with
  // a fiber and a call of each, a reduction tree took 1.4 times as long.
  size_t running_ = 0;  // the thread
  size_t end_ = 0;      // threads behind one another are numbered up to here
  void* host_ = nullptr;
  std::vector<Progress> progress_;
  std::vector<void*> stacks_;  // the tops, while threads wait
  // The exception that has ended the threadgroup.
  std::exception_ptr failure_;
  CheckedFibers* checked_ = nullptr;  // null: nothing is checked
  Surroundings around_;
  std::vector<Range> ranges_;
  // The last atomic access, and how often it came in a row and found the same.
  struct {
    const void* address;
    uint64_t value;
    size_t thread, count;
  } wait_ = {};
  size_t waits_ = 0;  // accesses of threads in kGivesWay
  // Simdgroups, and the threads of each, run in this order up to the next
  // barrier; empty: as they are numbered.
  std::vector<size_t> simdgroups_;
  std::vector<uint16_t> order_;
  const Call* meeting_ = nullptr;  // while lanes of a simdgroup meet
  std::vector<switchyard_metal::Thread> threads_;
  std::vector<Call> calls_;
  std::vector<Variable> variables_;
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  std::unique_ptr<Line[]> values_;  // of threads between regions
  size_t num_values_ = 0;
  kernel_internal::DeclaredArrays arrays_;
  std::vector<std::unique_ptr<Stack>> all_;
  std::vector<Stack*> free_;
};

// Crews that nobody uses now: as many as threads have run the kernel at a time.
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
