// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs a piece of a test in a process of its own, where it may crash or hang.

#ifndef SWITCHYARD_TESTS_FAULTS_CHILD_H_
#define SWITCHYARD_TESTS_FAULTS_CHILD_H_

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

namespace switchyard::testing_support {

// A problem's exit code; that of none is 0.
constexpr int kProblem = 99;

// Says what is wrong, in a child; null: nothing.
inline int Tell(const char* problem) {
  if (problem == nullptr) return 0;
  std::fprintf(stderr, "in the child: %s\n", problem);
  return kProblem;
}

// The end of a child that runs `body`, which gives its exit code and may
// exit() itself: "" if it came to an exit code. The child ends without
// destructors, and by SIGALRM if it takes this many seconds.
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
