// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "programs/arguments.h"

namespace program {
namespace {

// Throws if an option has an empty value, because no program accepts an empty
// value.
void RequireNoneEmpty(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty()) throw InputError(option->get_name() + ": empty");
    }
  }
  for (const CLI::App* command : app.get_subcommands()) {
    RequireNoneEmpty(*command);
  }
}

// Makes CLI11 refuse a value after a flag. By default, CLI11 accepts
// "--flag=3", "--flag=no", and any value after --help.
void RefuseValuesOfFlags(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() == 0) option->disable_flag_override();
  }
  for (CLI::App* command : app.get_subcommands({})) {
    RefuseValuesOfFlags(*command);
  }
}

}  // namespace

void AddThreadOptions(CLI::App& app, ThreadOptions& options) {
  app.add_option("--threads", options.threads, "Threads (default: all cores)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_option("--isa", options.isa, "Cap the instruction set at this one")
      ->type_name("NAME");
}

CLI::Validator Within(int low, int high) {
  const auto wrong = [low, high](const std::string& text) {
    double value = 0.0;
    if (CLI::detail::lexical_cast(text, value) && value >= low &&
        value <= high) {
      return std::string();
    }
    return "Value " + text + " not in range " + std::to_string(low) + " to " +
           std::to_string(high);
  };
  return CLI::Validator(wrong, "");
}

bool Parse(CLI::App& app, int argc, const char* const* argv) {
  RefuseValuesOfFlags(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked);
    return false;
  } catch (const CLI::ParseError& error) {
    // If an option is unknown, CLI11 may first report that its value is a
    // wrong positional argument, or that an argument is missing. The loop
    // reports the unknown option instead.
    for (const std::string& extra : app.remaining(true)) {
      if (extra.rfind('-', 0) == 0) {
        throw InputError("The following argument was not expected: " + extra);
      }
    }
    const std::string what = error.what();
    const size_t flag = what.find(" was given a disallowed flag override");
    if (flag == std::string::npos) throw InputError(what);
    throw InputError("--" + what.substr(0, flag) + ": takes no value");
  }
  RequireNoneEmpty(app);
  RequireEnvironmentIsa();
  return true;
}

std::shared_ptr<switchyard::Executor> MakePool(std::optional<size_t> threads) {
  std::shared_ptr<switchyard::Executor> pool = switchyard::MakeTbbExecutor(
      threads.has_value() ? static_cast<int>(*threads) : -1);
  if (pool == nullptr && threads.has_value()) {
    throw InputError("--threads " + std::to_string(*threads) +
                     ": no thread pool: out of memory, or built without TBB");
  }
  return pool;
}

std::shared_ptr<switchyard::Executor> MakeExecutor(
    const ThreadOptions& options) {
  if (!options.isa.empty()) UseIsa(options.isa);
  std::shared_ptr<switchyard::Executor> pool;
  if (options.threads != size_t{1}) pool = MakePool(options.threads);
  if (pool != nullptr) return pool;
  return {&switchyard::SerialExecutor(), [](switchyard::Executor*) {}};
}

}  // namespace program
