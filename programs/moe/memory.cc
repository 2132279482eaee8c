// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

#include "programs/program.h"

namespace moe_layer {
namespace {

using program::InputError;
using switchyard::AnyMatrix;
using switchyard::Type;

// Closes a file descriptor on every path of the code. A mapping stays valid
// without its descriptor.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

// A mapping that the handler of SIGBUS knows. If another program truncates a
// mapped file, the next access to a missing page raises SIGBUS, on any thread.
// Reading the tensors into memory first would avoid the handler, but would
// double the memory.
struct GuardedMapping {
  std::atomic<uintptr_t> begin{0};  // 0 if no file is mapped
  std::atomic<size_t> size{0};
  std::string line;  // the handler's message, because it cannot allocate
  std::atomic<bool> taken{true};
  GuardedMapping* next = nullptr;
};

namespace {

static_assert(std::atomic<uintptr_t>::is_always_lock_free);
static_assert(std::atomic<GuardedMapping*>::is_always_lock_free);

// A list of entries that are reused but never freed, because another thread may
// be in the handler.
std::atomic<GuardedMapping*> g_mappings{nullptr};
std::atomic_flag g_told = ATOMIC_FLAG_INIT;

void OnBusError(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const GuardedMapping* m = g_mappings; m != nullptr; m = m->next) {
    const uintptr_t begin = m->begin;
    if (begin == 0 || at < begin || at - begin >= m->size) continue;
    while (g_told.test_and_set()) pause();  // another thread reports it
    // Ignores a failed write, because there is no other place for the message.
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, m->line.data(), m->line.size());
    _exit(2);
  }
  std::signal(SIGBUS, SIG_DFL);  // no mapped file caused the signal
  raise(SIGBUS);
}

GuardedMapping* Guard(const uint8_t* data, size_t size,
                      const std::string& path) {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = &OnBusError;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  (void)installed;
  GuardedMapping* guard = g_mappings;
  while (guard != nullptr && guard->taken.exchange(true)) guard = guard->next;
  if (guard == nullptr) {
    guard = new GuardedMapping;
    guard->next = g_mappings;
    while (!g_mappings.compare_exchange_weak(guard->next, guard)) {
    }
  }
  guard->line = program::ErrorLine(
      "moe_layer", path + ": cannot read: truncated since it was opened");
  guard->size = size;
  guard->begin = reinterpret_cast<uintptr_t>(data);
  return guard;
}

}  // namespace

Buffer::Buffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  constexpr size_t kHugePage = size_t{2} << 20;
  if (bytes > SIZE_MAX - kHugePage) throw std::bad_alloc();
  const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (data_ == nullptr) throw std::bad_alloc();
  // Asks for huge pages. They save page faults while the weights are written,
  // and TLB misses while the GEMMs read them. If the system refuses, nothing
  // changes.
  if (alignment == kHugePage) madvise(data_.get(), rounded, MADV_HUGEPAGE);
}

RowBuffer::RowBuffer(Type type, size_t rows, size_t cols)
    : buffer_(static_cast<size_t>(
          Bytes(type, static_cast<double>(rows), static_cast<double>(cols)))) {
  // Scales come first, because only the start of the buffer is aligned.
  std::byte* values = buffer_.data();
  AnyMatrix scales;
  if (type == Type::kI8) {
    scales = {reinterpret_cast<float*>(values), rows, 1};
    values += sizeof(float) * rows;
  }
  rows_ = {AnyMatrix(values, type, rows, cols, cols), scales};
}

double RowBuffer::Bytes(Type type, double rows, double cols) {
  const double scale = type == Type::kI8 ? sizeof(float) : 0;
  const auto block = static_cast<double>(BlockOf(type));
  return rows * (static_cast<double>(SizeOf(type)) * cols / block + scale);
}

MappedFile::MappedFile(const std::string& path) {
  // Opens without blocking, because a FIFO without a writer would block.
  const Descriptor file{
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0) {
    throw InputError(path + ": cannot open: " + std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    throw InputError(path + ": cannot open: not a regular file");
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) return;  // mmap refuses an empty range
  void* mapping = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (mapping == MAP_FAILED) {
    throw InputError(path + ": cannot map: " + std::strerror(errno));
  }
  data_ = static_cast<const uint8_t*>(mapping);
  guard_ = Guard(data_, size_, path);
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  guard_->begin = 0;
  munmap(const_cast<uint8_t*>(data_), size_);
  guard_->taken = false;
}

}  // namespace moe_layer
