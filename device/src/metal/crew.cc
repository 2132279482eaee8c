// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/crew.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "device/src/core/grid_runner.h"
#include "device/src/core/running_dispatch.h"
#include "switchyard/device/kernel.h"

namespace switchyard::device::metal {
namespace {

namespace abi = switchyard_metal;

// The size of a thread's stack: 2^kStackBlockBits bytes. The shim uses this
// size to recognise accesses to the thread's own stack.
constexpr size_t kStackSize = size_t{128} << 10;
constexpr size_t kNobody = SIZE_MAX;

// The Crew that runs a threadgroup on this OS thread. Its fibers never move
// to another OS thread.
thread_local Crew* t_crew = nullptr;

}  // namespace

thread_local const Crew::Listener* Crew::listener = nullptr;

Crew& Crew::Here() { return *t_crew; }

void Crew::Run(const abi::Kernel& kernel, const ThreadgroupContext& context) {
  kernel_ = &kernel;
  context_ = &context;
  failure_ = nullptr;
  variables_.clear();
  arrays_ = {};
  ranges_.clear();
  wait_ = {};
  waits_ = 0;
  checked_ =
      context.thread_ == nullptr ? nullptr : &CheckedFibers::From(context);
  Bind(context);
  SetThreads(context);
  if (checked_ != nullptr) checked_->Begin(count_, around_.places);
  try {
    RunThreads();
  } catch (...) {  // the checker has thrown an exception on the host's stack
    failure_ = std::current_exception();
  }
  t_crew = nullptr;
  if (failure_ != nullptr) {
    AbandonAll();
    std::rethrow_exception(failure_);
  }
}

void Crew::SetThreads(const ThreadgroupContext& context) {
  const Size& size = context.threads_per_threadgroup;
  count_ = size.width * size.height * size.depth;
  if (threads_.size() < count_) {
    threads_.resize(count_);
    progress_.resize(count_);
    stacks_.resize(count_);
    calls_.resize(count_);
  }
  uint32_t origin[3];
  for (size_t d = 0; d < 3; ++d) {
    origin[d] = group_.threadgroup_position_in_grid[d] *
                group_.dispatch_threads_per_threadgroup[d];
  }
  uint32_t i = 0;
  for (uint32_t z = 0; z < size.depth; ++z) {
    for (uint32_t y = 0; y < size.height; ++y) {
      for (uint32_t x = 0; x < size.width; ++x, ++i) {
        threads_[i] = {&group_,
                       {origin[0] + x, origin[1] + y, origin[2] + z},
                       {x, y, z},
                       i};
      }
    }
  }
  // In a cut kernel, thread 0 runs the regions for all threads, so the others
  // count as done.
  std::fill_n(progress_.begin(), count_,
              Progress{IsCut() ? State::kDone : State::kNew});
  progress_[0].state = State::kNew;
}

// In unchecked modules the order of simdgroups is reversed after each
// barrier. The simdgroups that ran last then run first, while their stacks
// are still in the L1 cache. This makes a reduction tree 12 % faster.
void Crew::RunThreads() {
  const size_t simdgroups = (count_ + abi::kSimdWidth - 1) / abi::kSimdWidth;
  bool back = false;
  for (bool waiting = true; waiting;) {
    if (checked_ != nullptr) TakeOrder();
    for (size_t s = 0; s < simdgroups; ++s) {
      const size_t begin = (!order_.empty() ? simdgroups_[s]
                            : back          ? simdgroups - 1 - s
                                            : s) *
                           abi::kSimdWidth;
      RunSimdgroup(begin, std::min<size_t>(count_, begin + abi::kSimdWidth));
      if (failure_ != nullptr) return;
    }
    State waits = State::kAtBarrier;
    if (waits_ != 0) {
      GiveWay();
      waits = State::kGivesWay;
    } else if (checked_ != nullptr) {
      MeetAtBarrier();
    } else {
      back = !back;
    }
    waiting = false;
    for (size_t i = 0; i < count_; ++i) {
      if (progress_[i].state != waits) continue;
      progress_[i].state = State::kReady;
      waiting = true;
    }
  }
}

bool Crew::IsCut() const {
  return kernel_->cuts != nullptr && count_ <= abi::kMostCutThreads;
}

// The regions of a cut kernel (see regions.h) run on a fiber, too, so that a
// thread with an error can end the threadgroup: it leaves the fiber for good.
void Crew::RunRegions() {
  const abi::Cuts& cuts = *kernel_->cuts;
  const size_t context_lines = cuts.context_bytes / sizeof(Line) + 1;
  const size_t lines = context_lines + 2 * cuts.shared_bytes / sizeof(Line) + 1;
  if (num_values_ < lines) {
    // Pages that are not touched take no memory.
    values_.reset(new Line[lines]);
    num_values_ = lines;
  }
  void* const context = values_.get();
  unsigned char* const shared = values_[context_lines].bytes;
  const uint32_t width =
      static_cast<uint32_t>(context_->threads_per_threadgroup.width);
  for (uint32_t region = 0; region != abi::kReturned;) {
    const auto run =
        reinterpret_cast<abi::Region>(const_cast<void*>(cuts.regions[region]));
    std::memcpy(shared, shared + cuts.shared_bytes, cuts.shared_bytes);
    for (size_t i = 0; i < count_; i += width) {
      region = run(&threads_[i], context, shared, i, width);
    }
    if (region == abi::kReturned || (region & abi::kLanesMeet) == 0) continue;
    region &= ~abi::kLanesMeet;
    MeetInRegion(static_cast<const abi::Meeting*>(context));
  }
}

void Crew::MeetInRegion(const abi::Meeting* meetings) {
  for (size_t begin = 0; begin < count_; begin += abi::kSimdWidth) {
    void* slots[abi::kSimdWidth] = {};
    const size_t count = std::min<size_t>(abi::kSimdWidth, count_ - begin);
    for (size_t i = 0; i < count; ++i) slots[i] = meetings[begin + i].slot;
    const abi::Meeting& first = meetings[begin];
    const uint32_t width = first.quad != 0 ? 4 : abi::kSimdWidth;
    for (uint32_t lane = 0; lane < abi::kSimdWidth; lane += width) {
      first.operation(slots + lane, width, first.arg);
    }
  }
}

void Crew::RunSimdgroup(size_t begin, size_t end) {
  end_ = order_.empty() ? end : 0;
  do {
    for (size_t i = begin; i < end; ++i) {
      const size_t thread = order_.empty() ? i : order_[i];
      const State state = progress_[thread].state;
      if (state == State::kNew || state == State::kReady) Go(thread);
      if (failure_ != nullptr) return;
    }
  } while (Meet(begin, end) && failure_ == nullptr);
}

// Lanes may wait in different calls. Then the lanes whose call comes first in
// the code go on, because they are inside of a branch or loop that the other
// lanes have left. All lanes meet again where the other lanes wait.
bool Crew::Meet(size_t begin, size_t end) {
  const auto waits = [&](size_t i) {
    return progress_[i].state == State::kInSimd ||
           progress_[i].state == State::kAtSimdgroupBarrier;
  };
  size_t first = kNobody;
  for (size_t i = begin; i < end; ++i) {
    if (progress_[i].state == State::kGivesWay) return false;
    if (waits(i) &&
        (first == kNobody || calls_[i].where < calls_[first].where)) {
      first = i;
    }
  }
  if (first == kNobody) return false;
  const State state = progress_[first].state;
  const Call call = calls_[first];
  void* slots[abi::kSimdWidth] = {};
  uint32_t lanes = 0;
  for (size_t i = begin; i < end; ++i) {
    if (!waits(i) || calls_[i].where != call.where) continue;
    slots[i - begin] = calls_[i].slot;
    lanes |= uint32_t{1} << (i - begin);
    progress_[i].state = State::kReady;
  }
  if (checked_ != nullptr) NoteMeeting(state, call, begin, end, lanes);
  if (state == State::kAtSimdgroupBarrier) return true;
  running_ = first;
  meeting_ = &call;
  const uint32_t width = call.quad ? 4 : abi::kSimdWidth;
  for (uint32_t lane = 0; lane < abi::kSimdWidth; lane += width) {
    call.operation(slots + lane, width, call.arg);
  }
  meeting_ = nullptr;
  return true;
}

Crew::Stack::Stack(Crew& of) : crew(of), fiber(kStackSize) { Start(); }

void Crew::Stack::Start() {
  top = fiber.Start(
      [](void* self) {
        Stack& stack = *static_cast<Stack*>(self);
        stack.crew.RunHere(stack);
      },
      this);
}

void Crew::Go(size_t thread) {
  t_crew = this;
  void* to = stacks_[thread];
  if (progress_[thread].state == State::kNew) {
    if (free_.empty()) {
      all_.push_back(std::make_unique<Stack>(*this));
      free_.reserve(all_.size());  // ensures that push_back() never allocates
      free_.push_back(all_.back().get());
    }
    to = free_.back()->top;
    free_.pop_back();
  }
  running_ = thread;
  if (checked_ != nullptr) return SwitchChecked(&host_, to);
  switchyard_fiber_switch(&host_, to);
}

// When a thread returns, the next thread starts on the same stack, unless it
// has already started. So without barriers one stack serves all threads.
void Crew::RunHere(Stack& stack) {
  for (;;) {
    if (IsCut()) {
      RunRegions();
    } else {
      kernel_->run(threads_[running_]);
    }
    progress_[running_].state = State::kDone;
    const size_t next = running_ + 1;
    if (next < end_ && progress_[next].state == State::kNew) {
      running_ = next;
      if (checked_ != nullptr) checked_->SwitchTo(next);
      continue;
    }
    free_.push_back(&stack);
    Leave(&stack.top);
  }
}

inline void Crew::Leave(void** from) {
  const size_t next = running_ + 1;
  void* to = host_;
  if (next < end_ && failure_ == nullptr) {
    if (progress_[next].state == State::kReady) {
      to = stacks_[next];
      running_ = next;
    } else if (progress_[next].state == State::kNew && !free_.empty()) {
      to = free_.back()->top;
      free_.pop_back();
      running_ = next;
    }
    if (checked_ != nullptr && running_ == next) return SwitchChecked(from, to);
  }
  switchyard_fiber_switch(from, to);
}

void Crew::SwitchChecked(void** from, void* to) {
  checked_->SwitchTo(running_);
  switchyard_fiber_switch(from, to);
}

inline void Crew::Wait(State state) {
  progress_[running_].state = state;
  Leave(&stacks_[running_]);
}

void Crew::ThreadgroupBarrier(uint32_t flags, const void* where) {
  if (checked_ != nullptr) {
    calls_[running_].flags = flags;
    calls_[running_].where = where;
  }
  Wait(State::kAtBarrier);
}
void Crew::LetOthersRun(const void* where) {
  calls_[running_].where = where;
  Wait(State::kGivesWay);
}
void Crew::SimdgroupBarrier(uint32_t flags, const void* where) {
  calls_[running_].flags = flags;
  calls_[running_].where = where;
  Wait(State::kAtSimdgroupBarrier);
}
void Crew::Simd(void* slot, abi::SimdOperation operation, const void* arg,
                const char* name, bool quad, const void* where) {
  calls_[running_] = {where, 0, quad, slot, operation, arg, name};
  Wait(State::kInSimd);
}

void* Crew::ThreadgroupVariable(const void* id, const char* name, size_t bytes,
                                size_t alignment) {
  for (const Variable& variable : variables_) {
    if (variable.id == id) return variable.memory;
  }
  try {
    if (alignment > kLocalAlignment) {
      throw std::invalid_argument("an alignment of " +
                                  std::to_string(alignment) + " bytes");
    }
    void* memory;
    if (checked_ == nullptr) {
      memory = context_->Array(bytes, &arrays_);
    } else {
      const kernel_internal::View& view =
          kernel_internal::ArrayView(*context_, bytes, &arrays_);
      memory = view.data;
      AddRange(view, name, 0);
    }
    variables_.push_back({id, memory});
    return memory;
  } catch (const std::exception& e) {
    failure_ = std::make_exception_ptr(std::runtime_error(
        std::string("threadgroup ") + name + ": " + e.what()));
  }
  End();
}

// Abandons the thread's stack without unwinding it. This is safe, because a
// shader has no destructors to run.
void Crew::End() {
  for (;;) Wait(State::kAtBarrier);
}

void Crew::Fail(const char* what, const void* where) {
  if (checked_ == nullptr) return;
  const Call* const met = meeting_;
  try {
    checked_->EndThreadgroup(FindingKind::kDivergentSimd, running_,
                             met == nullptr ? where : met->where, nullptr, what,
                             "");
  } catch (...) {
    if (failure_ == nullptr) failure_ = std::current_exception();
  }
  if (met == nullptr) End();
}

void Crew::AbandonAll() {
  free_.clear();
  for (const std::unique_ptr<Stack>& stack : all_) {
    stack->Start();
    free_.push_back(stack.get());
  }
}

std::unique_ptr<Crew> Crews::Take() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Crew> crew = std::move(free_.back());
      free_.pop_back();
      return crew;
    }
  }
  return std::make_unique<Crew>();
}

void Crews::Give(std::unique_ptr<Crew> crew) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(std::move(crew));
}

namespace {

// The return address of the call identifies the place where threads meet.
// These are functions and not lambdas, because a lambda's function pointer may
// lead to a function that only calls the lambda. The return address would then
// be wrong.
void CallThreadgroupBarrier(uint32_t flags) {
  Crew::Here().ThreadgroupBarrier(flags, __builtin_return_address(0));
}
void CallSimdgroupBarrier(uint32_t flags) {
  Crew::Here().SimdgroupBarrier(flags, __builtin_return_address(0));
}
void CallSimd(void* slot, abi::SimdOperation operation, const void* arg,
              const char* name, bool quad) {
  Crew::Here().Simd(slot, operation, arg, name, quad,
                    __builtin_return_address(0));
}
void* CallThreadgroupVariable(const void* id, const char* name, size_t bytes,
                              size_t alignment) {
  return Crew::Here().ThreadgroupVariable(id, name, bytes, alignment);
}
void CallAccess(const void* address, size_t bytes, uint32_t kind,
                const void* where) {
  if (t_crew != nullptr) {
    t_crew->Access(address, bytes, kind, where);
  } else if (Crew::listener != nullptr) {
    (*Crew::listener)(reinterpret_cast<uintptr_t>(address), bytes, kind);
  }
}
void CallFail(const char* what) {
  Crew::Here().Fail(what, __builtin_return_address(0));
}
void CallDivides(bool by_zero, const void* where) {
  if (t_crew != nullptr) t_crew->Divides(by_zero, where);
}
uint32_t CallLane() { return Crew::Here().lane(); }
void* CallNotBound(uint32_t index) { Crew::Here().NotBound(index); }

}  // namespace

const abi::Runtime kRuntime = {
    CallThreadgroupBarrier,
    CallSimdgroupBarrier,
    CallSimd,
    CallThreadgroupVariable,
    CallAccess,
    CallFail,
    CallLane,
    CallNotBound,
    CallDivides,
};

}  // namespace switchyard::device::metal
