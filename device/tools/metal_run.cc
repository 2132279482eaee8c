// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/tools/metal_run.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "device/tools/metal_data.h"
#include "programs/arguments.h"
#include "programs/json.h"
#include "programs/program.h"
#include "switchyard/device/device.h"
#include "switchyard/device/library.h"

namespace swy {
namespace {

namespace MTL = switchyard::device;

using nlohmann::json;
using program::InputError;
using program::Plural;
using program::Printable;

// Splits the text of an option at the first '='. `form` is the option's form in
// its help, such as INDEX=VALUES.
std::pair<std::string, std::string> Assignment(const std::string& option,
                                               const std::string& form,
                                               const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw InputError(option + " " + text + ": takes " + form);
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

size_t ReadIndex(const std::string& where, const std::string& text,
                 size_t most) {
  const long double value = ReadNumber(where, *FindType("u64"), text);
  if (value > static_cast<long double>(most)) {
    throw InputError(where + ": " + text + " is above " + std::to_string(most));
  }
  return static_cast<size_t>(value);
}

// Reads a size: "256,2" is 256 x 2 x 1.
MTL::Size ReadSize(const std::string& where, const std::string& text) {
  MTL::Size size(1, 1, 1);
  size_t* const sizes[] = {&size.width, &size.height, &size.depth};
  size_t begin = 0;
  for (size_t d = 0; begin <= text.size(); ++d) {
    if (d == 3) throw InputError(where + ": more than three sizes");
    const size_t end = std::min(text.find(',', begin), text.size());
    *sizes[d] = ReadIndex(where, text.substr(begin, end - begin), UINT32_MAX);
    if (*sizes[d] == 0) throw InputError(where + ": a size of 0");
    begin = end + 1;
  }
  return size;
}

struct Dispatch {
  std::string where;  // "", or "file.json: dispatch 2: "
  bool is_barrier = false;
  std::string kernel;
  bool counts_threads = true;
  MTL::Size grid, threadgroup;
  struct Binding {
    std::string where;  // "-b 0"
    size_t index;
    std::string buffer;
    size_t offset;
  };
  std::vector<Binding> bindings;
  std::map<size_t, size_t> memory;
  // Names or indices of function constants, and their values.
  std::vector<std::pair<std::string, std::string>> constants;
};

struct Plan {
  bool is_concurrent = false;
  std::vector<Dispatch> dispatches;
  std::map<std::string, Data> buffers;
};

void SetMemory(const std::string& where, const std::string& index,
               const std::string& bytes, Dispatch& dispatch) {
  const size_t at =
      ReadIndex(where, index, MTL::kMaxThreadgroupMemoryBindings - 1);
  dispatch.memory[at] =
      ReadIndex(where, bytes, MTL::kMaxThreadgroupMemoryLength);
}

void SetGrid(const std::string& where, const std::string& grid,
             const std::string& groups, const std::string& threadgroup,
             Dispatch& dispatch) {
  const auto named = [&](const char* name) { return where + name; };
  if (!grid.empty() && !groups.empty()) {
    throw InputError(named("--groups") + ": not with --grid");
  }
  if (grid.empty() && groups.empty()) {
    throw InputError(named("--grid") +
                     ": is missing; give the grid in threads, or in "
                     "threadgroups by --groups");
  }
  dispatch.counts_threads = groups.empty();
  dispatch.grid = groups.empty() ? ReadSize(named("--grid"), grid)
                                 : ReadSize(named("--groups"), groups);
  if (threadgroup.empty()) {
    throw InputError(named("--threadgroup") + ": is missing");
  }
  MTL::Size& size = dispatch.threadgroup;
  size = ReadSize(named("--threadgroup"), threadgroup);
  if (size.width * size.height * size.depth > MTL::kMaxThreadsPerThreadgroup) {
    throw InputError(
        named("--threadgroup") + " " + threadgroup + ": has more than " +
        std::to_string(MTL::kMaxThreadsPerThreadgroup) + " threads");
  }
}

void AddBuffer(const std::string& where, const std::string& name,
               const std::string& spec, Plan& plan) {
  Data data = ReadData(where, spec, static_cast<uint32_t>(plan.buffers.size()));
  for (const Data::Piece& piece : data.pieces) {
    if (piece.type->metal != nullptr) continue;
    throw InputError(where + ": has " + piece.type->name +
                     " values, which Metal does not have");
  }
  if (!plan.buffers.emplace(name, std::move(data)).second) {
    throw InputError(where + ": given twice");
  }
}

Plan PlanOf(const MetalRunOptions& options) {
  Plan plan;
  Dispatch dispatch;
  if (options.kernel.empty()) throw InputError("--kernel: is missing");
  dispatch.kernel = options.kernel;
  SetGrid("", options.grid, options.groups, options.threadgroup, dispatch);
  for (const std::string& text : options.buffers) {
    const auto [name, spec] = Assignment("-b", "INDEX=VALUES", text);
    const std::string where = "-b " + name;
    const size_t index = ReadIndex(where, name, MTL::kMaxBufferBindings - 1);
    AddBuffer(where, name, spec, plan);
    dispatch.bindings.push_back({where, index, name, 0});
  }
  for (const std::string& text : options.memory) {
    const auto [index, bytes] = Assignment("-t", "INDEX=BYTES", text);
    SetMemory("-t " + index, index, bytes, dispatch);
  }
  for (const std::string& text : options.constants) {
    dispatch.constants.push_back(Assignment("-c", "NAME=VALUE", text));
  }
  plan.dispatches.push_back(std::move(dispatch));
  return plan;
}

// Throws InputError if the object has a member that is not in `names`.
void RequireMembers(const std::string& where, const json& object,
                    const std::vector<std::string>& names) {
  if (!object.is_object()) throw InputError(where + ": is not a JSON object");
  std::string known;
  for (const std::string& name : names) {
    known += (known.empty() ? "" : ", ") + name;
  }
  for (const auto& [key, value] : object.items()) {
    if (std::find(names.begin(), names.end(), key) == names.end()) {
      throw InputError(where + ": '" + key +
                       "' is not a member; the members are " + known);
    }
  }
}

// Formats numbers, strings and lists of numbers as they are written on the
// command line. Returns "" for a missing member.
std::string TextOf(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string text = value.dump();
  if (value.is_array()) text = text.substr(1, text.size() - 2);
  return text;
}
std::string Member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? "" : TextOf(*found);
}
const json& ObjectIn(const std::string& where, const json& object,
                     const char* name) {
  static const json none = json::object();
  const auto found = object.find(name);
  if (found == object.end()) return none;
  if (!found->is_object()) {
    throw InputError(where + name + ": is not a JSON object");
  }
  return *found;
}

Dispatch ReadDispatch(const std::string& where, const json& from, Plan& plan) {
  Dispatch dispatch;
  dispatch.where = where;
  dispatch.is_barrier = from == "barrier";
  if (dispatch.is_barrier) return dispatch;
  RequireMembers(where.substr(0, where.size() - 2), from,
                 {"kernel", "grid", "groups", "threadgroup", "bind", "memory",
                  "constants"});
  dispatch.kernel = Member(from, "kernel");
  if (dispatch.kernel.empty()) throw InputError(where + "kernel: is missing");
  SetGrid(where, Member(from, "grid"), Member(from, "groups"),
          Member(from, "threadgroup"), dispatch);
  for (const auto& [index, value] : ObjectIn(where, from, "bind").items()) {
    Dispatch::Binding binding = {where + "bind " + index, 0, "", 0};
    binding.index =
        ReadIndex(binding.where, index, MTL::kMaxBufferBindings - 1);
    binding.buffer = TextOf(value);
    if (value.is_object()) {
      RequireMembers(binding.where, value, {"buffer", "offset"});
      binding.buffer = Member(value, "buffer");
      const std::string offset = Member(value, "offset");
      if (!offset.empty()) {
        binding.offset =
            ReadIndex(binding.where + ": offset", offset, SIZE_MAX / 2);
      }
    }
    if (plan.buffers.count(binding.buffer) == 0) {
      if (binding.buffer.find_first_of(":.") == std::string::npos) {
        throw InputError(binding.where + ": no buffer is named '" +
                         binding.buffer + "'");
      }
      // The binding contains values, not the name of a buffer.
      AddBuffer(binding.where, binding.buffer, binding.buffer, plan);
    }
    const size_t length = plan.buffers[binding.buffer].bytes.size();
    if (binding.offset >= length) {
      throw InputError(
          binding.where + ": offset " + std::to_string(binding.offset) +
          " is past the end of its " + std::to_string(length) + " bytes");
    }
    dispatch.bindings.push_back(std::move(binding));
  }
  for (const auto& [index, bytes] : ObjectIn(where, from, "memory").items()) {
    SetMemory(where + "memory " + index, index, TextOf(bytes), dispatch);
  }
  for (const auto& [name, value] : ObjectIn(where, from, "constants").items()) {
    dispatch.constants.emplace_back(name, TextOf(value));
  }
  return dispatch;
}

Plan ReadPlan(const MetalRunOptions& options) {
  const std::string& path = options.dispatches;
  const std::vector<unsigned char> bytes = ReadBytes("--dispatches", path);
  const json file =
      program::ParseJson(bytes.data(), bytes.data() + bytes.size(), path);
  RequireMembers(path, file, {"buffers", "concurrent", "dispatches"});
  Plan plan;
  plan.is_concurrent = file.value("concurrent", json(true)) != json(false);
  std::map<std::string, std::pair<std::string, std::string>> specs;
  for (const auto& [name, spec] :
       ObjectIn(path + ": ", file, "buffers").items()) {
    specs[name] = {path + ": buffer " + name, TextOf(spec)};
  }
  for (const std::string& text : options.buffers) {
    const auto [name, spec] = Assignment("-b", "NAME=VALUES", text);
    specs[name] = {"-b " + name, spec};
  }
  for (const auto& [name, spec] : specs) {
    AddBuffer(spec.first, name, spec.second, plan);
  }
  const json dispatches = file.value("dispatches", json());
  if (!dispatches.is_array() || dispatches.empty()) {
    throw InputError(path + ": dispatches: is not a list");
  }
  for (size_t i = 0; i < dispatches.size(); ++i) {
    plan.dispatches.push_back(ReadDispatch(
        path + ": dispatch " + std::to_string(i) + ": ", dispatches[i], plan));
  }
  return plan;
}

void RequireBuffer(const Plan& plan, const std::string& option,
                   const std::string& name) {
  if (plan.buffers.count(name) != 0) return;
  throw InputError(option + " " + name + ": no such buffer");
}

// Returns the word for a buffer in an option's form: INDEX, or NAME if a
// --dispatches file names the buffers.
std::string BufferWord(const MetalRunOptions& options) {
  return options.dispatches.empty() ? "INDEX" : "NAME";
}

// A buffer that is compared with expected values, or printed.
struct Look {
  std::string buffer;
  Data expected;  // has no pieces if the buffer is to be printed
};

std::vector<Look> LooksOf(const MetalRunOptions& options, const Plan& plan) {
  std::vector<Look> looks;
  for (const std::string& text : options.expect) {
    const auto [name, spec] =
        Assignment("--expect", BufferWord(options) + "=VALUES", text);
    RequireBuffer(plan, "--expect", name);
    Look look = {name, ReadData("--expect " + name, spec, 0)};
    const size_t has = plan.buffers.at(name).count();
    if (look.expected.count() != has) {
      throw InputError("--expect " + name + ": has " +
                       std::to_string(look.expected.count()) +
                       " values, the buffer has " + std::to_string(has));
    }
    looks.push_back(std::move(look));
  }
  for (const std::string& name : options.print) {
    RequireBuffer(plan, "--print", name);
    looks.push_back({name, {}});
  }
  return looks;
}

// Returns the buffers that --write names, each with its file.
std::vector<std::pair<std::string, std::string>> WritesOf(
    const MetalRunOptions& options, const Plan& plan) {
  std::vector<std::pair<std::string, std::string>> writes;
  for (const std::string& text : options.write) {
    writes.push_back(
        Assignment("--write", BufferWord(options) + "=FILE", text));
    RequireBuffer(plan, "--write", writes.back().first);
    program::RequireWritable("--write", writes.back().second);
  }
  return writes;
}

void SetConstant(const std::string& where, const MTL::Library& library,
                 const std::string& name, const std::string& text,
                 MTL::FunctionConstantValues& values) {
  const std::string named = where + "-c " + name;
  std::string known;
  for (const MTL::FunctionConstant& constant : library.functionConstants()) {
    known += (known.empty() ? "" : ", ") + constant.name;
    if (name != constant.name && name != std::to_string(constant.index)) {
      continue;
    }
    const ScalarType* const type = FindMetalType(constant.type);
    if (type == nullptr) {
      throw InputError(named + ": is a " + constant.type + ", not a scalar");
    }
    unsigned char bytes[8] = {};
    type->write(ReadNumber(named, *type, text), bytes);
    values.setConstantValue(bytes, type->data_type, constant.index);
    return;
  }
  throw InputError(named + ": the file has no such function constant" +
                   (known.empty() ? "" : "; it has " + known));
}

void RequireArguments(const Dispatch& dispatch, const MTL::Function& function) {
  const auto require = [&](const std::string& where, bool is_buffer,
                           size_t index) {
    std::string known;
    for (const MTL::FunctionArgument& argument : function.arguments()) {
      if (is_buffer ? !argument.is_buffer : !argument.is_threadgroup_memory) {
        continue;
      }
      if (argument.index == index) return;
      known += (known.empty() ? "; it has " : ", ") +
               std::to_string(argument.index) + " (" + argument.name + ")";
    }
    throw InputError(where + ": '" + dispatch.kernel + "' has no " +
                     (is_buffer ? "buffer " : "threadgroup memory ") +
                     std::to_string(index) + known);
  };
  for (const Dispatch::Binding& binding : dispatch.bindings) {
    require(binding.where, true, binding.index);
  }
  for (const auto& [index, bytes] : dispatch.memory) {
    require(dispatch.where + "-t " + std::to_string(index), false, index);
  }
}

// The pipelines for Plan::dispatches, in the same order. A barrier's entry is
// null.
using Pipelines = std::vector<std::shared_ptr<MTL::ComputePipelineState>>;

Pipelines PipelinesOf(MTL::Device& device, MTL::Library& library,
                      const Plan& plan) {
  Pipelines pipelines;
  std::string error;
  for (const Dispatch& dispatch : plan.dispatches) {
    pipelines.emplace_back();
    if (dispatch.is_barrier) continue;
    const auto wrong = [&](const std::string& why) {
      return InputError(dispatch.where + "--kernel " + dispatch.kernel + ": " +
                        why);
    };
    std::string known;
    bool is_there = false;
    for (const std::string& name : library.functionNames()) {
      is_there = is_there || name == dispatch.kernel;
      known += (known.empty() ? "" : ", ") + name;
    }
    for (const MTL::UnsupportedFeature& u : library.unsupported()) {
      if (u.kernel != dispatch.kernel || is_there) continue;
      throw wrong(u.file + ":" + std::to_string(u.line) +
                  ": not supported: " + u.what);
    }
    if (!is_there) {
      throw wrong(known.empty() ? "the file has no kernel"
                                : "is not in the file; the file has " + known);
    }
    MTL::FunctionConstantValues values;
    for (const auto& [name, text] : dispatch.constants) {
      SetConstant(dispatch.where, library, name, text, values);
    }
    const std::shared_ptr<MTL::Function> function =
        library.newFunction(dispatch.kernel.c_str(), values, &error);
    if (function == nullptr) throw wrong(error);
    RequireArguments(dispatch, *function);
    pipelines.back() = device.newComputePipelineState(function, &error);
    if (pipelines.back() == nullptr) throw wrong(error);
  }
  return pipelines;
}

// Finds macros that are defined in the files of the findings, or in files that
// those files include. The place of a finding is the line that uses a macro,
// so the finding's help also says where the macro is defined.
class Macros {
 public:
  explicit Macros(const MetalOptions& options) : options_(options) {
    for (const std::string& file : options.prepended) Read(file);
  }

  // Returns an entry such as "SCALE is a macro, k.metal:3:9" for each macro
  // that begins at the place's column or before it in the place's line.
  std::vector<std::string> In(const MTL::Place& place) {
    Read(place.file);
    const std::vector<std::string>& lines = lines_[place.file];
    std::vector<std::string> said;
    if (place.line == 0 || place.line > lines.size()) return said;
    const std::string& line = lines[place.line - 1];
    for (size_t at = 0; at < line.size() && at < place.column;) {
      const size_t size = SizeOfName(line, at);
      const auto found = defined_.find(line.substr(at, size));
      if (found != defined_.end()) {
        said.push_back(found->first + " is a macro, " + found->second.text());
      }
      at += std::max<size_t>(size, 1);
    }
    return said;
  }

 private:
  // Returns the length of the identifier or number at `at`, or 0.
  static size_t SizeOfName(const std::string& line, size_t at) {
    size_t end = at;
    while (end < line.size() &&
           (std::isalnum(static_cast<unsigned char>(line[end])) != 0 ||
            line[end] == '_')) {
      ++end;
    }
    return end - at;
  }

  // Reads a file's macros. Skips files that are missing or not regular.
  void Read(const std::string& file) {
    namespace fs = std::filesystem;
    std::error_code error;
    if (lines_.count(file) != 0 || !fs::is_regular_file(file, error)) return;
    std::ifstream stream(file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    lines_[file] = lines;
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string& line = lines[i];
      const auto behind = [&](const char* word, size_t at) {
        const size_t begin = line.find_first_not_of(" \t", at);
        const size_t size = std::strlen(word);
        if (begin == line.npos || line.compare(begin, size, word) != 0) {
          return line.npos;
        }
        return line.find_first_not_of(" \t", begin + size);
      };
      const size_t directive = behind("#", 0);
      if (directive == line.npos) continue;
      const size_t name = behind("define", directive);
      if (name != line.npos) {
        defined_[line.substr(name, SizeOfName(line, name))] = {
            file, static_cast<uint32_t>(i + 1),
            static_cast<uint32_t>(name + 1)};
      }
      const size_t quote = behind("include", directive);
      if (quote == line.npos || line[quote] != '"') continue;
      const std::string included =
          line.substr(quote + 1, line.find('"', quote + 1) - quote - 1);
      Read((fs::path(file).parent_path() / included).string());
      for (const std::string& folder : options_.include_folders) {
        Read((fs::path(folder) / included).string());
      }
    }
  }

  const MetalOptions& options_;
  std::map<std::string, std::vector<std::string>> lines_;
  std::map<std::string, MTL::Place> defined_;
};

class Runner {
 public:
  Runner(const MetalRunOptions& options, Plan plan)
      : options_(options),
        plan_(std::move(plan)),
        looks_(LooksOf(options, plan_)),
        writes_(WritesOf(options, plan_)) {}

  int Run() {
    std::string error;
    MTL::CompileOptions compile = CompileOptionsOf(options_.compile);
    for (const Dispatch& dispatch : plan_.dispatches) {
      if (!dispatch.is_barrier) compile.kernels.push_back(dispatch.kernel);
    }
    library_ = NewDevice(0)->newLibraryFromFile(options_.compile.path.c_str(),
                                                compile, &error);
    if (library_ == nullptr) {
      throw InputError(program::FirstError(WithOptions(error)));
    }
    RunSchedules();
    NameMacros();
    std::fputs(Printable(MTL::FindingsToText(findings_), "\n").c_str(), stdout);
    if (!options_.json.empty()) {
      program::WriteFile("--json", options_.json,
                         MTL::FindingsToJson(findings_));
    }
    if (!options_.sarif.empty()) {
      program::WriteFile("--sarif", options_.sarif,
                         MTL::FindingsToSarif(findings_, "."));
    }
    if (options_.compile.checked) {
      std::printf("%zu finding%s in %zu schedule%s\n", findings_.size(),
                  Plural(findings_.size()), static_cast<size_t>(options_.seeds),
                  Plural(options_.seeds));
    }
    return findings_.empty() && !has_differences_ ? 0 : 1;
  }

 private:
  using Buffers = std::map<std::string, std::shared_ptr<MTL::Buffer>>;
  struct Ran {
    Buffers buffers;
    std::vector<MTL::Finding> findings;
    std::string error;
  };

  std::shared_ptr<MTL::Device> NewDevice(uint64_t seed) const {
    MTL::DeviceOptions options;
    options.check_kernels = options_.compile.checked;
    options.schedule_seed = seed;
    options.suppressions = options_.suppress;
    options.metal_compiler = options_.compile.compiler;
    std::shared_ptr<MTL::Device> device = MTL::CreateDevice(options);
    if (device == nullptr) throw std::bad_alloc();
    return device;
  }

  // Runs the schedules on all cores at the same time, because in checked mode
  // each schedule uses only one core. The results are reported in the order
  // of the schedules, so the output is the same as on one core. The first
  // error ends the run.
  void RunSchedules() {
    std::mutex mutex;
    std::condition_variable reported;
    uint64_t next = 0, turn = 0;
    std::exception_ptr error;
    const auto work = [&] {
      std::unique_lock<std::mutex> lock(mutex);
      while (next < options_.seeds && error == nullptr) {
        const uint64_t seed = next++;
        lock.unlock();
        Ran ran;
        std::exception_ptr own;
        try {
          ran = RunOne(seed);
        } catch (...) {
          own = std::current_exception();
        }
        lock.lock();
        reported.wait(lock, [&] { return turn == seed; });
        try {
          if (own != nullptr) std::rethrow_exception(own);
          if (error == nullptr) Report(seed, ran);
        } catch (...) {
          if (error == nullptr) error = std::current_exception();
        }
        ++turn;
        reported.notify_all();
      }
    };
    std::vector<std::thread> others;
    try {
      for (size_t n = Workers(); n > 1; --n) others.emplace_back(work);
    } catch (const std::system_error&) {  // fewer threads then do the work
    }
    work();
    for (std::thread& other : others) other.join();
    if (error != nullptr) std::rethrow_exception(error);
  }

  // Returns how many schedules run at the same time. The number is limited,
  // because each schedule has a copy of the buffers, and checked mode's
  // records take several times the memory of the copy.
  size_t Workers() const {
    constexpr size_t kMostBytes = size_t{256} << 20;
    size_t bytes = 1;
    for (const auto& [name, data] : plan_.buffers) bytes += data.bytes.size();
    return std::min<size_t>({static_cast<size_t>(options_.seeds),
                             std::thread::hardware_concurrency(),
                             kMostBytes / bytes});
  }

  // Runs one schedule. Any thread may call this.
  Ran RunOne(uint64_t seed) const {
    const std::shared_ptr<MTL::Device> device = NewDevice(seed);
    Ran ran;
    for (const auto& [name, data] : plan_.buffers) {
      std::shared_ptr<MTL::Buffer>& buffer = ran.buffers[name];
      buffer = data.is_written
                   ? device->newBuffer(data.bytes.data(), data.bytes.size())
                   : device->newBuffer(data.bytes.size());
      if (buffer == nullptr) throw std::bad_alloc();
    }
    const std::shared_ptr<MTL::CommandQueue> queue = device->newCommandQueue();
    if (queue == nullptr) throw std::bad_alloc();
    const std::shared_ptr<MTL::CommandBuffer> commands = queue->commandBuffer();
    Encode(*commands, ran.buffers, PipelinesOf(*device, *library_, plan_));
    commands->commit();
    commands->waitUntilCompleted();
    ran.findings = commands->findings();
    if (commands->status() == MTL::CommandBufferStatusError) {
      ran.error = commands->error();
    }
    return ran;
  }

  void Report(uint64_t seed, const Ran& ran) {
    AddNew(ran.findings);
    if (ran.findings.empty()) {
      if (!ran.error.empty()) throw InputError(WithOptions(ran.error));
      LookAt(ran.buffers, seed);
    }
    if (seed != 0) return;
    for (const auto& [name, file] : writes_) {
      const MTL::Buffer& buffer = *ran.buffers.at(name);
      program::WriteFile(
          "--write", file,
          {static_cast<const char*>(buffer.contents()), buffer.length()});
    }
  }

  void Encode(MTL::CommandBuffer& commands, const Buffers& buffers,
              const Pipelines& pipelines) const {
    const std::shared_ptr<MTL::ComputeCommandEncoder> encoder =
        commands.computeCommandEncoder(plan_.is_concurrent
                                           ? MTL::DispatchTypeConcurrent
                                           : MTL::DispatchTypeSerial);
    for (size_t d = 0; d < pipelines.size(); ++d) {
      const Dispatch& dispatch = plan_.dispatches[d];
      if (dispatch.is_barrier) {
        encoder->memoryBarrier(MTL::BarrierScopeBuffers);
        continue;
      }
      encoder->setComputePipelineState(pipelines[d]);
      // This unbinds the buffers that the previous dispatch has used.
      for (size_t i = 0; i < MTL::kMaxBufferBindings; ++i) {
        encoder->setBuffer(nullptr, 0, i);
      }
      for (const Dispatch::Binding& binding : dispatch.bindings) {
        encoder->setBuffer(buffers.at(binding.buffer), binding.offset,
                           binding.index);
      }
      for (size_t i = 0; i < MTL::kMaxThreadgroupMemoryBindings; ++i) {
        const auto found = dispatch.memory.find(i);
        encoder->setThreadgroupMemoryLength(
            found == dispatch.memory.end() ? 0 : found->second, i);
      }
      if (dispatch.counts_threads) {
        encoder->dispatchThreads(dispatch.grid, dispatch.threadgroup);
      } else {
        encoder->dispatchThreadgroups(dispatch.grid, dispatch.threadgroup);
      }
    }
    encoder->endEncoding();
  }

  // Adds the findings that no earlier schedule had. Findings are the same if
  // their keys are equal. Threads, elements and the order of a race's two
  // places change between schedules. So a key has no threads and no elements,
  // and sorts the two places.
  void AddNew(const std::vector<MTL::Finding>& found) {
    std::set<Key> now;
    for (const MTL::Finding& finding : found) {
      std::string where = finding.where.text(), other = finding.other.text();
      if (where.empty()) {
        where = finding.text.substr(0, finding.text.find(" (schedule_seed"));
        where.erase(std::remove_if(where.begin(), where.end(),
                                   [](char c) { return c >= '0' && c <= '9'; }),
                    where.end());
      }
      if (other < where && !other.empty()) std::swap(where, other);
      const Key key = {finding.kind, finding.kernel, where, other};
      if (seen_.count(key) == 0) {
        findings_.push_back(finding);
        keys_.push_back(key);
      } else if (finding.help.rfind("threadgroup_barrier", 0) == 0) {
        // This finding replaces an earlier one that asked only for a
        // simdgroup_barrier.
        for (size_t i = 0; i < keys_.size(); ++i) {
          if (keys_[i] == key &&
              findings_[i].help.rfind("simdgroup_barrier", 0) == 0) {
            findings_[i] = finding;
          }
        }
      }
      now.insert(key);
    }
    seen_.insert(now.begin(), now.end());
  }

  void NameMacros() {
    Macros macros(options_.compile);
    for (MTL::Finding& finding : findings_) {
      std::set<std::string> said;
      for (const MTL::Place& place : {finding.where, finding.other}) {
        if (!place.known()) continue;
        for (const std::string& text : macros.In(place)) said.insert(text);
      }
      for (const std::string& text : said) {
        finding.help += (finding.help.empty() ? "" : "; ") + text;
      }
    }
  }

  void LookAt(const Buffers& buffers, uint64_t seed) {
    for (size_t i = 0; i < looks_.size(); ++i) {
      const Look& look = looks_[i];
      const Data& data = plan_.buffers.at(look.buffer);
      const auto* const bytes = static_cast<const unsigned char*>(
          buffers.at(look.buffer)->contents());
      if (look.expected.pieces.empty()) {
        if (printed_.insert(i).second) Print(look.buffer, data, bytes);
      } else if (printed_.count(i) == 0 &&
                 !IsAsExpected(look, data, bytes, seed)) {
        printed_.insert(i);
        has_differences_ = true;
      }
    }
  }

  static void Print(const std::string& name, const Data& data,
                    const unsigned char* bytes) {
    constexpr size_t kInALine = 8;
    for (size_t i = 0; i < data.count(); ++i) {
      if (i % kInALine == 0) {
        std::printf("%s%s[%zu]", i == 0 ? "" : "\n", Printable(name).c_str(),
                    i);
      }
      std::printf(" %s", data.At(bytes, i).text().c_str());
    }
    std::printf("\n");
  }

  bool IsAsExpected(const Look& look, const Data& data,
                    const unsigned char* bytes, uint64_t seed) const {
    size_t different = 0, first = 0;
    for (size_t i = 0; i < data.count(); ++i) {
      const Data::Element is = data.At(bytes, i);
      const Data::Element expected =
          look.expected.At(look.expected.bytes.data(), i);
      if (IsClose(*is.type, is.value(), expected.value())) continue;
      if (different++ == 0) first = i;
    }
    if (different == 0) return true;
    std::printf(
        "buffer %s: %zu of %zu values differ, the first is [%zu]: %s, "
        "expected %s%s\n",
        Printable(look.buffer).c_str(), different, data.count(), first,
        data.At(bytes, first).text().c_str(),
        look.expected.At(look.expected.bytes.data(), first).text().c_str(),
        seed == 0 ? ""
                  : (" (schedule_seed " + std::to_string(seed) + ")").c_str());
    return false;
  }

  bool IsClose(const ScalarType& type, long double is,
               long double expected) const {
    if (is == expected || (std::isnan(is) && std::isnan(expected))) return true;
    constexpr double kAtol = 1e-5;  // for floats, as in torch
    const long double rtol = options_.rtol.value_or(type.rtol);
    const long double atol =
        options_.atol.value_or(type.is_integer ? 0.0 : kAtol);
    return std::isfinite(expected) &&
           std::fabs(is - expected) <= atol + rtol * std::fabs(expected);
  }

  using Key =
      std::tuple<MTL::FindingKind, std::string, std::string, std::string>;

  const MetalRunOptions& options_;
  Plan plan_;
  const std::vector<Look> looks_;
  const std::vector<std::pair<std::string, std::string>> writes_;
  std::vector<MTL::Finding> findings_;
  std::shared_ptr<MTL::Library> library_;
  std::set<Key> seen_;
  std::vector<Key> keys_;     // the keys of findings_
  std::set<size_t> printed_;  // indices of looks_ that were printed
  bool has_differences_ = false;
};

}  // namespace

CLI::App* AddMetalRun(CLI::App& metal, MetalRunOptions& options) {
  CLI::App* const run = metal.add_subcommand(
      "run", "Run a kernel over buffers that you describe");
  AddCompileOptions(*run, "The shader", options.compile);
  run->get_option("file")->type_name("FILE");
  run->get_option("--checked")
      ->description("Find races, wrong accesses and missing barriers");
  run->add_option("--kernel", options.kernel, "The kernel's name")
      ->type_name("NAME");
  run->add_option("--grid", options.grid, "The grid, in threads")
      ->type_name("X[,Y[,Z]]");
  run->add_option("--groups", options.groups,
                  "The grid, in threadgroups (instead of --grid)")
      ->type_name("X[,Y[,Z]]");
  run->add_option("--threadgroup", options.threadgroup,
                  "The size of a threadgroup, in threads")
      ->type_name("X[,Y[,Z]]");
  const auto add = [&](const char* name, std::vector<std::string>& values,
                       const char* what, const char* type) {
    run->add_option(name, values, what)
        ->allow_extra_args(false)
        ->type_name(type);
  };
  add("-b,--buffer", options.buffers, "The values of a buffer", "INDEX=VALUES");
  add("-t,--memory", options.memory, "The length of threadgroup memory",
      "INDEX=BYTES");
  add("-c,--constant", options.constants, "The value of a function constant",
      "NAME=VALUE");
  run->add_option("--dispatches", options.dispatches,
                  "Run the dispatches of a JSON file")
      ->type_name("FILE");
  add("--expect", options.expect,
      "The values that a buffer must have at the end", "INDEX=VALUES");
  run->add_option("--rtol", options.rtol,
                  "The relative difference that --expect allows")
      ->check(program::Within(0, 1000000))
      ->type_name("X");
  run->add_option("--atol", options.atol,
                  "The absolute difference that --expect allows")
      ->check(program::Within(0, 1000000))
      ->type_name("X");
  add("--print", options.print, "Print a buffer at the end", "INDEX");
  add("--write", options.write,
      "Write a buffer's bytes after the first schedule", "INDEX=FILE");
  run->add_option("--seeds", options.seeds,
                  "Number of schedules to run; the first is in order")
      ->check(program::Within(1, 10000))
      ->type_name("N");
  add("--suppress", options.suppress, "Ignore findings of this KIND:KERNEL",
      "TEXT");
  run->add_option("--json", options.json, "Write the findings as JSON")
      ->type_name("FILE");
  run->add_option("--sarif", options.sarif, "Write the findings as SARIF")
      ->type_name("FILE");
  run->footer(
      std::string(kDataHelp) +
      "\nFloats are compared as in torch.testing.assert_close.\n"
      "device/docs/metal.md describes the JSON of --dispatches.\n"
      "Exit codes: 0 success; 1 findings or differences; 2 wrong input.\n"
      "Examples:\n"
      "  swy metal run row_max.metal --kernel row_max --grid 256 "
      "--threadgroup 256 \\\n"
      "    -b 0=f32:random:256 -b 1=f32:empty:256 --checked --seeds 5 --sarif "
      "out.sarif\n"
      "  swy metal run scale.metal --kernel scale --groups 4,2 --threadgroup "
      "64 \\\n"
      "    -b 0=x.npy -b 1=f32:zeros:512 -b 2=u32:512+f32:0.5 --expect "
      "1=out.npy\n"
      "  swy metal run sums.metal --dispatches sums.json --checked --print "
      "total");
  return run;
}

int MetalRun(const MetalRunOptions& options) {
  if (options.compile.path.empty()) throw InputError("file is required");
  const auto require = [](bool given, const char* option, const char* why) {
    if (given) throw InputError(std::string(option) + ": " + why);
  };
  if (!options.dispatches.empty()) {
    const char* const why = "not with --dispatches, which has its own";
    require(!options.kernel.empty(), "--kernel", why);
    require(!options.grid.empty(), "--grid", why);
    require(!options.groups.empty(), "--groups", why);
    require(!options.threadgroup.empty(), "--threadgroup", why);
    require(!options.memory.empty(), "-t", why);
    require(!options.constants.empty(), "-c", why);
  }
  if (!options.compile.checked) {
    const char* const why = "needs --checked";
    require(options.seeds != 1, "--seeds", why);
    require(!options.suppress.empty(), "--suppress", why);
    require(!options.json.empty(), "--json", why);
    require(!options.sarif.empty(), "--sarif", why);
  }
  if (options.expect.empty()) {
    const char* const why = "needs --expect";
    require(options.rtol.has_value(), "--rtol", why);
    require(options.atol.has_value(), "--atol", why);
  }
  program::RequireTwoFiles("--sarif", options.sarif, "--json", options.json);
  if (!options.json.empty()) program::RequireWritable("--json", options.json);
  if (!options.sarif.empty()) {
    program::RequireWritable("--sarif", options.sarif);
  }
  Plan plan = options.dispatches.empty() ? PlanOf(options) : ReadPlan(options);
  return Runner(options, std::move(plan)).Run();
}

}  // namespace swy
