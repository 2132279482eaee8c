// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// swy shows the ISAs of this machine, the contents of .metal files, how
// workers share a layer, and the model families. It checks that the machine
// computes the released bits, writes the conformance vectors, and grades
// routers. Each command prints to stdout and returns the exit code.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "programs/arguments.h"
#include "programs/program.h"
#include "switchyard/isa.h"
#include "tools/cli/grade.h"
#include "tools/cli/isas.h"
#include "tools/cli/plan.h"
#include "tools/cli/presets.h"
#include "tools/cli/vectors.h"
#include "tools/cli/verify.h"
#include "tools/corpus/corpus.h"
#ifdef SWITCHYARD_WITH_DEVICE
#include "device/tools/metal.h"
#endif

namespace swy {
namespace {

using program::InputError;

// Prints the compiled ISAs, the best first, and marks the runnable ones and
// the active one.
int PrintIsas() {
  const std::vector<std::string> runnable = RunnableIsaNames();
  std::printf("%-10s %-4s %-9s\n", "compiled", "FMA", "this CPU");
  for (const switchyard::Isa& isa : switchyard::CompiledIsas()) {
    const bool runs =
        std::find(runnable.begin(), runnable.end(), isa.name) != runnable.end();
    const bool active = switchyard::ActiveIsa().name == std::string(isa.name);
    std::printf("%-10s %-4s %s%s\n", isa.name, isa.fma ? "yes" : "no",
                runs ? "runs" : "cannot", active ? ", active" : "");
  }
  return 0;
}

// Throws InputError if the command does not exist.
void RequireCommand(const CLI::App& app, const std::string& name) {
  std::string choices;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string& known = command->get_name();
    if (name == known) return;
    choices += (choices.empty() ? "" : ", ") + known;
  }
  throw InputError("'" + name + "' is no command; there are " + choices);
}

// Throws InputError if an ISA does not exist or does not run on this machine.
// If no ISA is given, the ISA of SWITCHYARD_ISA stays active.
void RequireIsas(const std::vector<std::string>& isas) {
  for (const std::string& name : isas) {
    program::UseIsa(name);
    Check(switchyard::CapIsa(nullptr));
  }
}

struct VerifyOptions {
  std::vector<std::string> kernels, isas;
  size_t threads = 0;
  bool print = false;
};

void AddVerify(CLI::App& app, VerifyOptions& options) {
  CLI::App* const verify = app.add_subcommand(
      "verify", "Check that this machine gives the release's bits");
  const std::vector<std::string> kernels = switchyard::corpus::Kernels();
  std::string choices;
  for (const std::string& kernel : kernels) {
    choices += (choices.empty() ? "" : ", ") + kernel;
  }
  verify->footer("Kernels:\n" + choices);
  verify->add_option("--kernel", options.kernels, "Only these (default: all)")
      ->check(CLI::IsMember(kernels).description(""))
      ->type_name("NAME");
  verify->add_option("--isa", options.isas, "Only these (default: all)")
      ->type_name("NAME");
  CLI::Option* const print = verify->add_flag(
      "--print", options.print, "Print the active ISA's digests, compare none");
  verify
      ->add_option("--threads", options.threads,
                   "Also a pool of N threads; 0: all cores, 1: none")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  print->excludes("--isa")->excludes("--threads");
}

int RunVerify(const VerifyOptions& options) {
  if (!options.print) {
    return Verify(options.kernels,
                  options.isas.empty() ? RunnableIsaNames() : options.isas,
                  options.threads);
  }
  if (!switchyard::ActiveIsa().fma) {
    throw InputError(
        "--print: the active ISA has no FMA, its bits are its own");
  }
  return PrintDigests(options.kernels);
}

#ifndef SWITCHYARD_WITH_DEVICE
std::function<int()> AddMetal(CLI::App& app) {
  app.add_subcommand("metal", "Not in this swy: .metal files")->allow_extras();
  return []() -> int {
    throw InputError("metal: this swy was built with SWITCHYARD_DEVICE=OFF");
  };
}
#endif

int Main(int argc, char** argv) {
  CLI::App app("Switchyard on this machine.", "swy");
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", "swy " SWITCHYARD_VERSION,
                       "Print the version and exit");
  app.footer(
      "SWITCHYARD_ISA=NAME in the environment caps the ISA of any "
      "program that uses\nSwitchyard.");
  CLI::App* const isa =
      app.add_subcommand("isa", "List the ISAs: compiled in, runnable, active");
  VerifyOptions verify_options;
  AddVerify(app, verify_options);
  const std::function<int()> run_metal = AddMetal(app);
  PlanOptions plan_options;
  CLI::App* const plan = AddPlan(app, plan_options);
  bool markdown = false;
  CLI::App* const presets = AddPresets(app, markdown);
  std::string folder;
  CLI::App* const vectors = AddVectors(app, folder);
  GradeOptions grade_options;
  CLI::App* const grade = AddGrade(app, grade_options);
  app.add_subcommand("help", "Explain swy, or the command that follows");

  // Turns "help verify" into "verify --help". Checks the command first,
  // because CLI11 would only report that a command is missing.
  std::vector<const char*> arguments(argv, argv + argc);
  if (argc == 1) arguments.push_back("--help");
  if (std::string("help") == arguments[1]) {
    if (argc > 3) throw InputError("help: takes one command");
    if (argc == 3) RequireCommand(app, arguments[2]);
    arguments.erase(arguments.begin() + 1);
    arguments.insert(arguments.begin() + std::min(argc - 1, 2), "--help");
  }
  if (arguments[1][0] != '-') RequireCommand(app, arguments[1]);
  if (!program::Parse(app, static_cast<int>(arguments.size()),
                      arguments.data())) {
    return 0;
  }
  if (app.get_subcommands().empty()) RequireCommand(app, arguments[1]);

  if (isa->parsed()) return PrintIsas();
  if (app.got_subcommand("metal")) return run_metal();
  if (plan->parsed()) return PrintPlan(plan_options);
  if (presets->parsed()) return PrintPresets(markdown);
  if (vectors->parsed()) return WriteVectors(folder);
  if (grade->parsed()) return Grade(grade_options, grade->remaining());
  RequireIsas(verify_options.isas);
  return RunVerify(verify_options);
}

}  // namespace
}  // namespace swy

int main(int argc, char** argv) {
  return program::RunMain("swy", 2, [=] { return swy::Main(argc, argv); });
}
