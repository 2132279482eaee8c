// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>
#include <system_error>

#include "switchyard/isa.h"

namespace program {
namespace {

// " why", or nothing where the system did not say.
std::string Reason(int error) {
  return error == 0 ? "" : std::string(": ") + std::strerror(error);
}

[[noreturn]] void ThrowNoOutput(int error) {
  throw InputError("cannot write to standard output" + Reason(error));
}

[[noreturn]] void ThrowUnwritable(const std::string& option,
                                  const std::string& path, int error) {
  throw InputError(option + " " + path +
                   (error != 0 ? Reason(error) : ": not written"));
}

// The next file opened gets the number of a standard file that is closed, and
// with it what is printed there.
void RequireStandardFiles() {
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0) ThrowNoOutput(errno);
  for (const int number : {STDIN_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) >= 0) continue;
    const int taken = open("/dev/null", O_RDWR);
    if (taken >= 0 && taken != number) close(taken);
  }
}

// Some file systems say only when a file is closed that it did not fit.
void FinishOutput() {
  FlushOutput();
  const int copy = dup(STDOUT_FILENO);
  if (copy >= 0 && close(copy) != 0) ThrowNoOutput(errno);
}

void PrintError(const char* program, const std::string& what) {
  std::fflush(stdout);
  std::fputs(ErrorLine(program, what).c_str(), stderr);
}

[[noreturn]] void ThrowNoIsa(const std::string& asked) {
  throw InputError(asked + ": not available here; there are " + IsaChoices());
}

}  // namespace

int RunMain(const char* program, int failed, const std::function<int()>& run) {
  constexpr int kWrongInput = 2;
  int code = 0;
  try {
    RequireStandardFiles();
    code = run();
    FinishOutput();
    return code;
  } catch (const InputError& error) {
    PrintError(program, error.what());
  } catch (const std::bad_alloc&) {
    PrintError(program, "out of memory");
  } catch (const std::exception& error) {
    PrintError(program, error.what());
    return failed;
  }
  return code != 0 ? code : kWrongInput;
}

void FlushOutput() {
  errno = 0;
  if (std::fflush(stdout) != 0) ThrowNoOutput(errno);
  if (std::ferror(stdout) == 0) return;
  // It went wrong earlier, unobserved: one more line end tells why.
  errno = 0;
  const bool writes = write(STDOUT_FILENO, "\n", 1) == 1;
  ThrowNoOutput(writes ? 0 : errno);
}

std::string ErrorLine(const std::string& program, std::string what) {
  constexpr size_t kLongest = 600;
  if (what.size() > kLongest) what = what.substr(0, kLongest) + " ...";
  for (char& c : what) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return program + ": " + what + "\n";
}

void RequireWritable(const std::string& option, const std::string& path) {
  std::error_code ignored;
  const bool existed =
      std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
  // Not blocking: a FIFO without a reader would be waited for.
  const int file = open(
      path.c_str(),
      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (file < 0) ThrowUnwritable(option, path, errno);
  // One with a reader stays open, who would take this for the end.
  struct stat info;
  if (fstat(file, &info) != 0 || !S_ISFIFO(info.st_mode)) close(file);
  if (!existed) std::filesystem::remove(path, ignored);
}

void WriteFile(const std::string& option, const std::string& path,
               const std::string& content) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (!file) ThrowUnwritable(option, path, errno);
  file << content;
  file.close();
  if (file) return;
  const int why = errno;
  std::error_code ignored;
  const auto written = std::filesystem::canonical(path, ignored);
  if (std::filesystem::is_regular_file(written, ignored)) {
    std::filesystem::remove(written, ignored);
  }
  ThrowUnwritable(option, path, why);
}

std::string IsaChoices(const std::string& separator) {
  std::string choices;
  for (const switchyard::Isa& isa : switchyard::RunnableIsas()) {
    choices += (choices.empty() ? "" : separator) + std::string(isa.name);
  }
  return choices;
}

void RequireEnvironmentIsa() {
  if (switchyard::EnvironmentIsa().ok()) return;
  const char* const name = std::getenv("SWITCHYARD_ISA");
  ThrowNoIsa(std::string("SWITCHYARD_ISA ") + (name != nullptr ? name : ""));
}

void UseIsa(const std::string& name) {
  if (!switchyard::CapIsa(name.c_str()).ok()) ThrowNoIsa("--isa " + name);
}

const char* Plural(size_t count) { return count == 1 ? "" : "s"; }

}  // namespace program
