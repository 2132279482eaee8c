// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs part of a test in a child process, where it may crash or hang.

#ifndef SWITCHYARD_TESTS_FAULTS_CHILD_H_
#define SWITCHYARD_TESTS_FAULTS_CHILD_H_

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

namespace switchyard::testing_support {

// The exit code for a problem; 0 means success.
constexpr int kProblem = 99;

// Prints the problem if it is not null, and returns the child's exit code.
inline int Tell(const char* problem) {
  if (problem == nullptr) return 0;
  std::fprintf(stderr, "in the child: %s\n", problem);
  return kProblem;
}

// Runs `body` in a child. `body` returns the exit code or calls exit().
// Returns "" if the child exits without a problem. If `body` returns, no
// destructors run. After `seconds`, SIGALRM ends the child.
template <class Body>
std::string InChild(const Body& body, int* code, unsigned seconds = 60) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return "no process";
  if (child == 0) {
    alarm(seconds);
    _exit(body());
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return "no child";
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGALRM
               ? "hangs"
               : "ends by signal " + std::to_string(WTERMSIG(status));
  }
  *code = WEXITSTATUS(status);
  return *code == kProblem ? "has a problem, see above" : "";
}
template <class Body>
std::string InChild(const Body& body) {
  int code = 0;
  const std::string ended = InChild(body, &code);
  if (!ended.empty() || code == 0) return ended;
  return "exits with " + std::to_string(code);
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_FAULTS_CHILD_H_
