// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs a program in a shell.

#ifndef SWITCHYARD_TESTS_RUN_PROGRAM_H_
#define SWITCHYARD_TESTS_RUN_PROGRAM_H_

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "switchyard/isa.h"

namespace switchyard::testing_support {

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A temporary folder; the destructor deletes it.
class TempFolder {
 public:
  TempFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "switchyard_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct Outcome {
  int exit_code = -1;  // -1: a signal ended it
  std::string out;
  std::string err;

  bool Printed(const std::string& text) const {
    return out.find(text) != std::string::npos;
  }
};

// Expects one line on stderr, exit code 2 and nothing on stdout.
inline void ExpectRefused(const Outcome& outcome, const std::string& line) {
  EXPECT_EQ(outcome.exit_code, 2) << line;
  EXPECT_EQ(outcome.err, line + "\n");
  EXPECT_EQ(outcome.out, "") << line;
}

// Returns the list of ISAs that programs print after a wrong --isa.
inline std::string IsaChoices() {
  std::string choices;
  for (const Isa& isa : RunnableIsas()) {
    choices += (choices.empty() ? "" : ", ") + std::string(isa.name);
  }
  return choices;
}

// Runs a program in a shell. `before` has shell commands that run first, each
// followed by ";". `redirect` redirects the output, as in a shell.
inline Outcome RunProgram(const std::string& program,
                          const std::string& arguments,
                          const std::string& before = "",
                          const std::string& redirect = "") {
  const TempFolder folder;
  const std::string command = before + "exec '" + program + "' " + arguments +
                              " >'" + folder.File("out") + "' 2>'" +
                              folder.File("err") + "' " + redirect;
  const int status = std::system(command.c_str());
  Outcome outcome;
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  outcome.out = ReadFile(folder.File("out"));
  outcome.err = ReadFile(folder.File("err"));
  return outcome;
}

// Expects an error if output is lost: because the disk is full, because
// stdout is closed, or because the reader of a pipe has ended.
inline void ExpectToldThatOutputIsLost(const std::string& program,
                                       const std::string& arguments) {
  const TempFolder folder;
  const std::string pipe = "'" + folder.File("pipe") + "'";
  const struct {
    const char* redirect;
    std::string before;
    const char* why;
  } cases[] = {{">/dev/full", "", "No space left on device"},
               {">&-", "", "Bad file descriptor"},
               {">&4",
                "trap '' PIPE; mkfifo " + pipe + "; exec 3<>" + pipe + " 4>" +
                    pipe + " 3<&-;",
                "Broken pipe"}};
  const std::string name = program.substr(program.rfind('/') + 1);
  for (const auto& c : cases) {
    const Outcome outcome =
        RunProgram(program, arguments, c.before, c.redirect);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << " " << c.redirect;
    const std::string line =
        name + ": cannot write to standard output: " + c.why + "\n";
    // Progress may come before the error.
    EXPECT_EQ(outcome.err.substr(
                  std::min(outcome.err.size(), outcome.err.find(name + ": "))),
              line)
        << arguments << " " << c.redirect;
  }
}

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_RUN_PROGRAM_H_
