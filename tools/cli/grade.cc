// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/grade.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "programs/conformance/cases.h"
#include "programs/conformance/grade.h"
#include "programs/conformance/text.h"
#include "programs/program.h"
#include "tools/cli/isas.h"

namespace swy {
namespace {

namespace conformance = switchyard::conformance;
using conformance::Answer;
using program::InputError;

// A temporary file without a name. Pipes would block the command and swy, if
// both write more than a pipe holds.
class UnnamedFile {
 public:
  UnnamedFile() : file_(std::tmpfile(), &std::fclose) {
    if (file_ == nullptr) Throw("no temporary file");
  }

  int descriptor() const { return fileno(file_.get()); }
  // Writes the content, and rewinds the file.
  void Fill(const std::string& content) {
    const size_t written =
        std::fwrite(content.data(), 1, content.size(), file_.get());
    if (written != content.size() || std::fflush(file_.get()) != 0) {
      Throw("cannot write a temporary file");
    }
    std::rewind(file_.get());
  }
  std::string Read() {
    std::rewind(file_.get());
    std::string content;
    std::array<char, 1 << 16> part;
    for (size_t read = part.size(); read == part.size();) {
      read = std::fread(part.data(), 1, part.size(), file_.get());
      content.append(part.data(), read);
    }
    return content;
  }

 private:
  [[noreturn]] static void Throw(const std::string& wrong) {
    throw InputError("grade: " + wrong + ": " + std::strerror(errno));
  }

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

// Runs a command, which reads `in` and writes `out`. Returns "" if it exits
// with 0, and otherwise how it ended.
std::string Run(const std::vector<std::string>& command, UnnamedFile& in,
                UnnamedFile& out) {
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  pid_t process = 0;
  const int error = posix_spawnp(&process, arguments[0], &actions, nullptr,
                                 arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw InputError("grade: cannot run " + command[0] + ": " +
                     std::strerror(error));
  }
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    return "was ended by signal " + std::to_string(WTERMSIG(status));
  }
  if (WEXITSTATUS(status) == 0) return "";
  return "exited with " + std::to_string(WEXITSTATUS(status));
}

std::vector<Answer> AnswersOf(const std::vector<std::string>& command,
                              const std::vector<conformance::Case>& cases,
                              std::string* ending) {
  UnnamedFile in, out;
  std::string text;
  for (const conformance::Case& c : cases) text += conformance::Write(c);
  in.Fill(text);
  *ending = Run(command, in, out);
  try {
    return conformance::ReadAnswers(out.Read());
  } catch (const InputError& error) {
    throw InputError("grade: " + command[0] +
                     (ending->empty() ? "" : " " + *ending) +
                     ": wrong answers: " + error.what());
  }
}

std::string JsonOf(const conformance::Grades& grades) {
  nlohmann::ordered_json all;
  for (const conformance::Verdict verdict :
       {conformance::Verdict::kPass, conformance::Verdict::kDiffers,
        conformance::Verdict::kUnsupported, conformance::Verdict::kMissing}) {
    all[conformance::NameOf(verdict)] = grades.Count(verdict);
  }
  all["cases"] = nlohmann::ordered_json::array();
  for (const conformance::CaseGrade& grade : grades.cases) {
    nlohmann::ordered_json c;
    c["name"] = grade.name;
    c["verdict"] = conformance::NameOf(grade.verdict);
    if (!grade.reason.empty()) c["reason"] = grade.reason;
    if (grade.verdict == conformance::Verdict::kDiffers) {
      c["rows"] = grade.tokens;
      c["wrong_rows"] = grade.wrong_tokens;
      c["first_wrong_rows"] = grade.rows;
      c["causes"] = nlohmann::ordered_json::array();
      for (const conformance::Finding& finding : grade.findings) {
        c["causes"].push_back(
            {{"name", finding.name}, {"sentence", "It " + finding.sentence}});
      }
      c["right_for"] = grade.families;
    }
    all["cases"].push_back(c);
  }
  // Texts of the command may have bytes that are not UTF-8.
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

int GradeOwn(conformance::Grader& grader) {
  bool is_good = true;
  for (const std::string& isa : RunnableIsaNames()) {
    program::UseIsa(isa);
    std::vector<Answer> answers;
    for (const conformance::Case& c : grader.cases()) {
      answers.push_back(conformance::RouteCase(c));
    }
    const conformance::Grades grades = grader.Grade(answers);
    std::printf("%-8s %s", isa.c_str(),
                conformance::DescribeGrades(grades).c_str());
    is_good &= grades.IsGood();
  }
  Check(switchyard::CapIsa(nullptr));
  return is_good ? 0 : 1;
}

}  // namespace

CLI::App* AddGrade(CLI::App& app, GradeOptions& options) {
  CLI::App* const grade = app.add_subcommand(
      "grade", "Grade a router, and find the cause of wrong rows");
  grade->footer(
      "swy grade [OPTIONS] COMMAND [ARGUMENTS] runs COMMAND, which reads cases "
      "on stdin\nand writes answers to stdout, in the format of "
      "conformance/README.md. The exit\ncode is 1 if a row differs or an "
      "answer is missing.");
  grade->prefix_command();
  grade
      ->add_option("--only", options.only,
                   "Only cases like this, such as 'ties*'")
      ->type_name("PATTERN");
  CLI::Option* const json =
      grade->add_option("--json", options.json, "Also write the grades here")
          ->type_name("FILE");
  grade
      ->add_flag("--own", options.grades_own,
                 "Grade Switchyard's own router, on every ISA")
      ->excludes(json);
  return grade;
}

int Grade(const GradeOptions& options,
          const std::vector<std::string>& command) {
  if (!command.empty() && command[0].rfind('-', 0) == 0) {
    throw InputError("grade: " + command[0] + ": is no option");
  }
  if (command.empty() != options.grades_own) {
    throw InputError(command.empty() ? "grade: needs COMMAND, or --own"
                                     : "grade: --own: takes no COMMAND");
  }
  if (!options.json.empty()) program::RequireWritable("--json", options.json);
  std::vector<conformance::Case> cases;
  try {
    cases = conformance::CasesLike(options.only, conformance::MakeCases());
  } catch (const InputError& error) {
    throw InputError(std::string("--only: ") + error.what());
  }
  conformance::Grader grader(std::move(cases));
  if (options.grades_own) return GradeOwn(grader);

  std::string ending;
  const std::vector<Answer> answers =
      AnswersOf(command, grader.cases(), &ending);
  conformance::Grades grades;
  try {
    grades = grader.Grade(answers);
  } catch (const InputError& error) {
    throw InputError("grade: " + command[0] + ": " + error.what());
  }
  if (!options.json.empty()) {
    program::WriteFile("--json", options.json, JsonOf(grades));
  }
  std::string report = conformance::DescribeGrades(grades);
  if (!ending.empty()) report = "The command " + ending + ".\n" + report;
  std::fputs(program::Printable(report, "\n").c_str(), stdout);
  return grades.IsGood() && ending.empty() ? 0 : 1;
}

}  // namespace swy
