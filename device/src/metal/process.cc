// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <stdexcept>

extern char** environ;

namespace switchyard::device::metal {
namespace {

// Sets the limit, unless a lower limit exists. The process may already have
// run some instructions. The limit applies to all later allocations and writes.
void LimitBytes(pid_t process, uint64_t bytes) {
  for (const auto resource : {RLIMIT_AS, RLIMIT_FSIZE}) {
    rlimit limit;
    if (prlimit(process, resource, nullptr, &limit) != 0) continue;
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, bytes);
    prlimit(process, resource, &limit, nullptr);
  }
}

class Deadline {
 public:
  explicit Deadline(unsigned seconds)
      : is_set_(seconds != 0),
        at_(std::chrono::steady_clock::now() + std::chrono::seconds(seconds)) {}

  // Waits until the file has data or has ended. Returns false at the
  // deadline.
  bool Await(int file) const {
    for (;;) {
      int timeout = -1;
      if (is_set_) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(
                              at_ - std::chrono::steady_clock::now())
                              .count();
        if (left <= 0) return false;
        timeout = static_cast<int>(std::min<decltype(left)>(left, INT_MAX));
      }
      pollfd ready = {file, POLLIN, 0};
      if (poll(&ready, 1, timeout) > 0) return true;
    }
  }

 private:
  const bool is_set_;
  const std::chrono::steady_clock::time_point at_;
};

}  // namespace

Finished RunProcess(const std::vector<std::string>& arguments,
                    const std::string& output, const Limits& limits) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 2);
  pid_t child;
  const int error =
      posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  if (error != 0) {
    close(pipe_ends[0]);
    throw std::runtime_error(arguments[0] + ": " + std::strerror(error));
  }
  if (limits.bytes != 0) LimitBytes(child, limits.bytes);
  const Deadline deadline(limits.seconds);
  Finished finished = {0, std::string(), false};
  char buffer[4096];
  for (;;) {
    if (!deadline.Await(pipe_ends[0])) {
      finished.timed_out = true;
      kill(child, SIGKILL);
      break;
    }
    const ssize_t got = read(pipe_ends[0], buffer, sizeof(buffer));
    if (got > 0) {
      finished.errors.append(buffer, static_cast<size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      break;
    }
  }
  close(pipe_ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  finished.status =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

}  // namespace switchyard::device::metal
