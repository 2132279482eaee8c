// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/program.h"

#include <cstdio>
#include <exception>
#include <new>

#include "switchyard/isa.h"

namespace example {
namespace {

// What a user gave may hold anything; an error stays one line of it.
void PrintError(const char* program, std::string line) {
  constexpr size_t kLongest = 600;
  if (line.size() > kLongest) line = line.substr(0, kLongest) + " ...";
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program, line.c_str());
}

void UseIsa(const std::string& name) {
  if (name.empty() || switchyard::CapIsa(name.c_str()).ok()) return;
  std::string choices;
  for (const switchyard::Isa& isa : switchyard::RunnableIsas()) {
    choices += (choices.empty() ? "" : ", ") + std::string(isa.name);
  }
  throw InputError("--isa " + name + ": not available here; there are " +
                   choices);
}

}  // namespace

void AddThreadOptions(CLI::App& app, ThreadOptions& options) {
  app.add_option("--threads", options.threads, "Threads (default: all cores)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_option("--isa", options.isa,
                 "Use no better instruction set than this one")
      ->type_name("NAME");
}

bool Parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    return false;
  } catch (const CLI::ParseError& error) {
    throw InputError(error.what());
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() != 0 && option->results().front().empty()) {
      throw InputError(option->get_name() + ": empty");
    }
  }
  return true;
}

std::shared_ptr<switchyard::Executor> MakeExecutor(
    const ThreadOptions& options) {
  UseIsa(options.isa);
  std::shared_ptr<switchyard::Executor> pool;
  if (options.threads != size_t{1}) {
    pool = switchyard::MakeTbbExecutor(
        options.threads.has_value() ? static_cast<int>(*options.threads) : -1);
    if (pool == nullptr && options.threads.has_value()) {
      throw InputError("--threads " + std::to_string(*options.threads) +
                       ": no thread pool: out of memory, or built without TBB");
    }
  }
  if (pool != nullptr) return pool;
  return {&switchyard::SerialExecutor(), [](switchyard::Executor*) {}};
}

const char* Plural(size_t count) { return count == 1 ? "" : "s"; }

int RunMain(const char* program, int failed, const std::function<int()>& run) {
  constexpr int kWrongInput = 2;
  try {
    return run();
  } catch (const InputError& error) {
    PrintError(program, error.what());
  } catch (const std::bad_alloc&) {
    PrintError(program, "out of memory");
  } catch (const std::exception& error) {
    PrintError(program, error.what());
    return failed;
  }
  return kWrongInput;
}

}  // namespace example
