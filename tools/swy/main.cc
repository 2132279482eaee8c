// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "switchyard/isa.h"
#include "tools/swy/swy.h"

namespace swy {
namespace {

std::string Choices() {
  std::string choices;
  for (const std::string& name : RunnableIsaNames()) choices += " " + name;
  return choices;
}

int Fail(const std::string& message) {
  std::fprintf(stderr, "swy: %s\n", message.c_str());
  return 2;
}

int Main(int argc, char** argv) {
  CLI::App app("Switchyard on this machine.", "swy");
  app.require_subcommand(1);
  app.footer(
      "SWITCHYARD_ISA=NAME in the environment caps the ISA of any "
      "program that uses\nSwitchyard.");
  CLI::App* const isa = app.add_subcommand(
      "isa", "List the ISAs compiled in, those this CPU runs, the active one");
  CLI::App* const verify = app.add_subcommand(
      "verify", "Check that this machine computes the released bits");
  CLI::App* const bench =
      app.add_subcommand("bench", "Time the kernels on every ISA, shortly");
  std::vector<std::string> isas;
  for (CLI::App* const command : {verify, bench}) {
    command->add_option("--isa", isas, "Only this ISA; may be repeated");
  }
  bool print = false;
  CLI::Option* const print_option = verify->add_flag(
      "--print", print, "Print the active ISA's digests instead of comparing");
  int threads = 0;
  verify
      ->add_option("--threads", threads,
                   "Of the pool that is checked as well as one thread; 0: one "
                   "per core, 1: no pool")
      ->check(CLI::Range(0, 1024));
  print_option->excludes("--isa")->excludes("--threads");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& e) {
    return Fail(e.what());
  }

  const switchyard::Status environment = switchyard::EnvironmentIsa();
  if (!environment.ok()) {
    return Fail(std::string(environment.message()) + "; choose one of" +
                Choices());
  }
  for (const std::string& name : isas) {
    const switchyard::Status known = switchyard::CapIsa(name.c_str());
    (void)switchyard::CapIsa(nullptr);
    if (!known.ok()) {
      return Fail("--isa " + name + ": not an ISA that this CPU can run; " +
                  "choose one of" + Choices());
    }
  }
  if (print && !switchyard::ActiveIsa().fma) {
    return Fail("--print: the active ISA has no FMA, its bits are its own");
  }
  if (isas.empty()) isas = RunnableIsaNames();
  if (isa->parsed()) return PrintIsas();
  if (bench->parsed()) return Bench(isas);
  return print ? PrintDigests() : Verify(isas, threads);
}

}  // namespace
}  // namespace swy

int main(int argc, char** argv) {
  try {
    return swy::Main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "swy: %s\n", e.what());
    return 2;
  }
}
