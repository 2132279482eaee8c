// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Functions that the programs of this repository share: exit codes, errors in
// one line, checks of output files, and the choice of the ISA.

#ifndef SWITCHYARD_PROGRAMS_PROGRAM_H_
#define SWITCHYARD_PROGRAMS_PROGRAM_H_

#include <functional>
#include <stdexcept>
#include <string>

namespace program {

// An error in the user's input, or an output that cannot be written. The
// message is one line that names the wrong option, or the file and its wrong
// tensor or key.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Calls run(), checks that its output was written, and returns its exit code.
// If run() throws, prints the exception as one line on stderr, "program:
// error", and returns 2 for an InputError or lack of memory, `failed` for
// other exceptions.
int RunMain(const char* program, int failed, const std::function<int()>& run);

// Writes the buffered output. Throws InputError if stdout cannot be written.
// RunMain calls this function at the end. Call it before a long step, too: if
// the output cannot be written, the program then ends before the step, not
// after it.
void FlushOutput();

// Makes text from a file safe for a terminal. Replaces control characters,
// invalid UTF-8, and characters that reverse a line's direction by escapes such
// as \x1b or \u202e. Does not change the characters in `as_is`.
std::string Printable(const std::string& text, const std::string& as_is = "");

// Returns "program: what" and a newline. The line is safe for a terminal, even
// if `what` contains a name from the user.
std::string ErrorLine(const std::string& program, std::string what);

// Returns the line with the first error in a compiler's messages.
std::string FirstError(const std::string& messages);

// Throws InputError if both paths name the same file, because the second output
// would replace the first. Both paths may be "" or /dev/stdout, because these
// are not files.
void RequireTwoFiles(const std::string& option, const std::string& path,
                     const std::string& other_option,
                     const std::string& other_path);
// Throws InputError if the file `path`, the value of `option`, cannot be
// written. Deletes the file again if it did not exist before.
void RequireWritable(const std::string& option, const std::string& path);
// Writes `content` to the file `path`, the value of `option`. If this fails,
// throws InputError and leaves no part of the file.
void WriteFile(const std::string& option, const std::string& path,
               const std::string& content);

// Returns the ISAs that run on this machine, best first, such as "AVX3, AVX2,
// SSE4".
std::string IsaChoices(const std::string& separator = ", ");
// Throws InputError if SWITCHYARD_ISA names an ISA that does not run on this
// machine; the error lists the choices. Call it before any work, because
// kernels would refuse to run later.
void RequireEnvironmentIsa();
// Limits the library to the ISA `name`, the value of --isa. If the name is
// wrong, throws an InputError that lists the choices.
void UseIsa(const std::string& name);

// Returns "" if count is 1, otherwise "s".
const char* Plural(size_t count);

}  // namespace program

#endif  // SWITCHYARD_PROGRAMS_PROGRAM_H_
