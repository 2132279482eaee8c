// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// How every program of this repository ends: its exit code, its one line on
// stderr, and its output, which has to have arrived.

#ifndef SWITCHYARD_PROGRAMS_PROGRAM_H_
#define SWITCHYARD_PROGRAMS_PROGRAM_H_

#include <functional>
#include <stdexcept>
#include <string>

namespace program {

// Something the user gave is wrong, a place to write to included. The message
// is one line that names the option, or the file and the tensor or key.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs run(), which returns the exit code, and sees to it that what it printed
// has arrived. What it throws becomes one line on stderr, "program: what went
// wrong", and exit code 2 for an InputError and for lack of memory, else
// `failed`.
int RunMain(const char* program, int failed, const std::function<int()>& run);

// Throws InputError if what has been printed cannot be written. RunMain asks at
// the end; ask before a long step, which nobody would see the results of.
void FlushOutput();

// Text that may come from a file for a terminal, which would obey its control
// characters: these, what is no UTF-8, and what turns the direction of a line
// around are written as \x1b or \u202e. Characters of `as_is` stay.
std::string Printable(const std::string& text, const std::string& as_is = "");

// "program: what" and a newline: one line that fits a terminal, whatever is in
// a name that the user gave.
std::string ErrorLine(const std::string& program, std::string what);

// The line of a compiler's messages that tells the first error.
std::string FirstError(const std::string& messages);

// Throws InputError if both paths name one file, of which the second to be
// written would be all that is left. "" and /dev/stdout name none.
void RequireTwoFiles(const std::string& option, const std::string& path,
                     const std::string& other_option,
                     const std::string& other_path);
// Throws InputError if the file `path`, which `option` names, could not be
// written now. Leaves no file.
void RequireWritable(const std::string& option, const std::string& path);
// Throws InputError, and leaves no part of a file.
void WriteFile(const std::string& option, const std::string& path,
               const std::string& content);

// "AVX3, AVX2, SSE4": what runs here, best first.
std::string IsaChoices(const std::string& separator = ", ");
// Throws InputError with the choices if SWITCHYARD_ISA names no ISA that runs
// here. Kernels would refuse to run: better said before any work.
void RequireEnvironmentIsa();
// Caps the library to that ISA, for --isa. Throws InputError with the choices.
void UseIsa(const std::string& name);

// "" or "s".
const char* Plural(size_t count);

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_PROGRAM_H_
