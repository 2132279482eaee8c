// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
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

// Returns ": reason" for an errno, or an empty text for 0.
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

// If stdin or stderr is closed, opens /dev/null in its place. Otherwise the
// next file that the program opens would get the free number 0 or 2, and error
// messages could land in that file. Throws if stdout is closed.
void RequireStandardFiles() {
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0) ThrowNoOutput(errno);
  for (const int number : {STDIN_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) >= 0) continue;
    const int taken = open("/dev/null", O_RDWR);
    if (taken >= 0 && taken != number) close(taken);
  }
}

// Flushes stdout and closes a copy of it, because some file systems report a
// full disk only when a file is closed.
void FinishOutput() {
  FlushOutput();
  const int copy = dup(STDOUT_FILENO);
  if (copy >= 0 && close(copy) != 0) ThrowNoOutput(errno);
}

void PrintError(const char* program, const std::string& what) {
  std::fflush(stdout);
  std::fputs(ErrorLine(program, what).c_str(), stderr);
}

struct Character {
  uint32_t code;
  size_t bytes;  // length in UTF-8; 0 if the bytes are not valid UTF-8
};

Character CharacterAt(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const uint32_t first = byte(at);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first < 0xC0   ? 0
                       : first < 0xE0 ? 2
                       : first < 0xF0 ? 3
                       : first < 0xF8 ? 4
                                      : 0;
  if (bytes == 0) return {0, 0};
  uint32_t code = first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0u) != 0x80u) return {0, 0};
    code = code << 6 | (byte(at + i) & 0x3Fu);
  }
  // Refuses characters that are encoded in more bytes than necessary, because
  // such an encoding could hide a control character.
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_character = code >= kLeast[bytes] && code <= 0x10FFFF &&
                            (code < 0xD800 || code > 0xDFFF);
  return {code, is_character ? bytes : 0};
}

bool IsControl(uint32_t code) {
  const auto within = [code](uint32_t first, uint32_t last) {
    return code >= first && code <= last;
  };
  return code < 0x20 || within(0x7F, 0x9F) || within(0x200E, 0x200F) ||
         within(0x2028, 0x202E) || within(0x2066, 0x2069);
}

std::string Escape(const char* format, uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

[[noreturn]] void ThrowNoIsa(const std::string& asked,
                             const switchyard::Status& why) {
  const std::string message = why.message();
  const size_t nearest = message.find("; did you mean");
  throw InputError(asked + ": not available here; there are " + IsaChoices() +
                   (nearest != message.npos ? message.substr(nearest) : ""));
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
  // An earlier write failed. Writes one more line end to find the cause.
  errno = 0;
  const bool writes = write(STDOUT_FILENO, "\n", 1) == 1;
  ThrowNoOutput(writes ? 0 : errno);
}

std::string Printable(const std::string& text, const std::string& as_is) {
  std::string printable;
  for (size_t at = 0; at < text.size();) {
    const char byte = text[at];
    const Character character = CharacterAt(text, at);
    const size_t bytes = std::max<size_t>(character.bytes, 1);
    if (character.bytes == 0) {
      printable += Escape("\\x%02x", static_cast<unsigned char>(byte));
    } else if (as_is.find(byte) != std::string::npos ||
               !IsControl(character.code)) {
      printable.append(text, at, bytes);
    } else if (byte == '\n' || byte == '\t' || byte == '\r') {
      printable += byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : "\\r";
    } else {
      printable += Escape(bytes == 1 ? "\\x%02x" : "\\u%04x", character.code);
    }
    at += bytes;
  }
  return printable;
}

std::string ErrorLine(const std::string& program, std::string what) {
  constexpr size_t kLongest = 600;
  if (what.size() > kLongest) what = what.substr(0, kLongest) + " ...";
  return program + ": " + Printable(what) + "\n";
}

std::string FirstError(const std::string& messages) {
  const size_t error = messages.find("error: ");
  const size_t before = messages.rfind('\n', error);
  const size_t begin = error == std::string::npos || before == std::string::npos
                           ? 0
                           : before + 1;
  return messages.substr(begin, messages.find('\n', begin) - begin);
}

void RequireTwoFiles(const std::string& option, const std::string& path,
                     const std::string& other_option,
                     const std::string& other_path) {
  if (path.empty() || other_path.empty()) return;
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path file = fs::weakly_canonical(fs::absolute(path, none), none);
  const fs::path other =
      fs::weakly_canonical(fs::absolute(other_path, none), none);
  const fs::file_status status = fs::status(path, none);
  const bool can_be_replaced =
      !fs::exists(status) || fs::is_regular_file(status);
  if (!can_be_replaced ||
      (file != other && !fs::equivalent(path, other_path, none))) {
    return;
  }
  throw InputError(option + " " + path + ": is " + other_option + "'s file");
}

void RequireWritable(const std::string& option, const std::string& path) {
  std::error_code ignored;
  const bool existed =
      std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
  // Opens without blocking, because a FIFO without a reader would block.
  const int file = open(
      path.c_str(),
      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (file < 0) ThrowUnwritable(option, path, errno);
  // A FIFO stays open, because closing it would tell its reader that the output
  // has ended.
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
  const switchyard::Status status = switchyard::EnvironmentIsa();
  if (status.ok()) return;
  const char* const name = std::getenv("SWITCHYARD_ISA");
  ThrowNoIsa(std::string("SWITCHYARD_ISA ") + (name != nullptr ? name : ""),
             status);
}

void UseIsa(const std::string& name) {
  const switchyard::Status status = switchyard::CapIsa(name.c_str());
  if (!status.ok()) ThrowNoIsa("--isa " + name, status);
}

const char* Plural(size_t count) { return count == 1 ? "" : "s"; }

}  // namespace program
