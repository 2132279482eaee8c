// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/src/metal/compile.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "device/src/metal/archive.h"
#include "device/src/metal/cache.h"
#include "device/src/metal/divisions.h"
#include "device/src/metal/messages.h"
#include "device/src/metal/process.h"
#include "device/src/metal/regions.h"
#include "device/src/metal/source_files.h"

namespace switchyard::device::metal {
namespace {

using Arguments = std::vector<std::string>;

// Metal's name for a text.
constexpr char kSourceName[] = "program_source";

bool IsProgram(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

std::string InPath(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin" : path);
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    const std::string program = (folder.empty() ? "." : folder) + "/" + name;
    if (IsProgram(program)) return program;
  }
  return "";
}

// A file of our own.
std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error("can't read " + path);
  return text.str();
}

// The shader as it was given.
std::string ShaderText(const CompileRequest& request) {
  if (request.path.empty()) {
    if (request.source.size() <= kMaxSourceBytes) return request.source;
    throw std::runtime_error("source: has more than " +
                             std::to_string(kMaxSourceBytes >> 20) + " MiB");
  }
  SourceFile file = ReadSource(request.path);
  if (file.state != SourceFile::State::kRead) {
    throw std::runtime_error(request.path + ": " + file.wrong);
  }
  if (file.text.compare(0, 4, "MTLB") == 0) {
    throw std::runtime_error(request.path +
                             ": is compiled for Apple's GPUs; give the .metal "
                             "file that it was made of");
  }
  return std::move(file.text);
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("can't write " + path);
}

// A folder that goes with what is in it.
class WorkFolder {
 public:
  explicit WorkFolder(const std::string& in) : path_(in + "/work-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error("can't make a folder in " + in + ": " +
                               std::strerror(errno));
    }
  }
  ~WorkFolder() {
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(path_.c_str());
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  std::string File(const char* name) {
    files_.push_back(path_ + "/" + name);
    return files_.back();
  }

 private:
  std::string path_;
  Arguments files_;
};

// The folders that -I names.
Arguments FoldersOf(const Arguments& arguments) {
  Arguments folders;
  for (const std::string& argument : arguments) {
    if (argument.compare(0, 2, "-I") == 0)
      folders.push_back(argument.substr(2));
  }
  return folders;
}

std::string ShimVersion() {
  std::string all;
  for (const EmbeddedFile* file = kShim; file->name != nullptr; ++file) {
    all += std::string(file->name) + '\n' + file->text;
  }
  return HashOf(all);
}

// The shim's headers in a folder of their contents' name.
std::string ShimFolder(const std::string& cache) {
  const std::string folder = cache + "/shim-" + ShimVersion();
  MakeFolder(folder);
  Touch(folder);
  for (const EmbeddedFile* file = kShim; file->name != nullptr; ++file) {
    const std::string path = folder + "/" + file->name;
    MakeFolder(path.substr(0, path.rfind('/')));
    std::ifstream there(path, std::ios::binary);
    std::ostringstream text;
    if (there) text << there.rdbuf();
    if (there && text.str() == file->text) continue;
    // Another process may be reading: whole files only.
    const std::string temporary = path + "." + std::to_string(getpid());
    WriteFile(temporary, file->text);
    std::rename(temporary.c_str(), path.c_str());
  }
  return folder;
}

// One of the shader's files: its text, or what there is on disk. A #line may
// name what is not there, and "/dev/stdin" where the text came from a pipe.
std::string TextOfFile(const std::string& file, const CompileRequest& request) {
  if (request.path.empty() && file == kSourceName) return request.source;
  return ReadSource(file).text;
}

std::string StatusOf(const std::string& program, const Finished& finished) {
  return program + ": ended with status " + std::to_string(finished.status);
}

void Run(const Arguments& arguments, const std::string& output) {
  const Finished finished = RunProcess(arguments, output);
  if (finished.status == 0) return;
  throw std::runtime_error(finished.errors.empty()
                               ? StatusOf(arguments[0], finished)
                               : finished.errors);
}

// Includes have been looked at, but for those that only the preprocessor finds:
// a macro's. So it may take no more time and memory than a text can need.
void Preprocess(const Arguments& arguments, const std::string& output,
                const std::string& name, unsigned seconds) {
  constexpr uint64_t kMaxBytes = uint64_t{2} << 30;  // what is translated, too
  const Finished finished = RunProcess(arguments, output, {seconds, kMaxBytes});
  if (finished.timed_out) {
    throw std::runtime_error(
        name + ": is not preprocessed within " + std::to_string(seconds) +
        " s: does a macro's #include name a device or a FIFO?");
  }
  // Clang's own failure is 1, and it says why.
  if (finished.status == 1 && !finished.errors.empty()) {
    throw std::runtime_error(finished.errors);
  }
  if (finished.status > 128) {  // ended by a signal, out of memory for one
    throw std::runtime_error(
        name + ": is not preprocessed with " + std::to_string(kMaxBytes >> 30) +
        " GiB of memory: " + StatusOf(arguments[0], finished));
  }
  if (finished.status != 0) {
    throw std::runtime_error(
        "metal_compiler: " + StatusOf(arguments[0], finished) +
        ": is it a Clang?");
  }
}

// The part of a .metallib that is for this device, by way of the cache: the
// loader wants a file.
Compiled FromArchive(const std::string& bytes, const CompileRequest& request,
                     const Cache& cache) {
  Archive archive;
  try {
    FromBytes(bytes, &archive);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(request.path + ": " + error.what());
  }
  if (archive.made_by != ShimVersion()) {
    throw std::runtime_error(request.path +
                             ": was compiled by another version of Switchyard");
  }
  Archive::Part& part = request.checked ? archive.checked : archive.unchecked;
  Compiled result;
  result.translation.unsupported = std::move(archive.unsupported);
  auto comments = std::make_shared<AllowComments>();
  for (const AllowComment& each : archive.comments.list()) comments->Add(each);
  result.comments = std::move(comments);
  result.cached = true;
  result.module = cache.Find(part.key);
  if (result.module == nullptr) {
    WorkFolder work(cache.folder());
    const std::string module = work.File("module"), key = work.File("key");
    WriteFile(module, part.module);
    WriteFile(key, part.key);
    result.module = cache.Add(part.key, module, key);
  }
  return result;
}

}  // namespace

std::vector<std::string> CompileArchive(CompileRequest request,
                                        const std::string& output) {
  Archive archive;
  archive.made_by = ShimVersion();
  std::vector<std::string> files;
  for (const bool checked : {false, true}) {
    request.checked = checked;
    const Compiled compiled = Compile(request);
    Archive::Part& part = checked ? archive.checked : archive.unchecked;
    part.key = compiled.key;
    part.module = ReadFile(compiled.module->path());
    if (checked) continue;
    archive.unsupported = compiled.translation.unsupported;
    for (const AllowComment& each : compiled.comments->list()) {
      archive.comments.Add(each);
    }
    files = compiled.translation.files;
  }
  // Nobody finds half a file.
  const std::string temporary = output + "." + std::to_string(getpid());
  WriteFile(temporary, ToBytes(archive));
  if (std::rename(temporary.c_str(), output.c_str()) != 0) {
    throw std::runtime_error("can't write " + output);
  }
  return files;
}

namespace {

// The arguments of CodeArguments() that are about optimisations.
Arguments Optimisations(bool checked) {
  if (checked) {
    // Only what it inserts: its functions are the shim's.
    // A read is told even where a write to the same place follows, and a
    // volatile one as such.
    return {"-O1",    "-fsanitize=thread",
            "-mllvm", "-tsan-instrument-memintrinsics=0",
            "-mllvm", "-tsan-instrument-read-before-write",
            "-mllvm", "-tsan-distinguish-volatile"};
  }
  // Loops stay as they are until regions are loops, too; without places, which
  // nobody asks for here, both passes take less time than one took with them.
  return {"-O2", "-fno-vectorize", "-fno-slp-vectorize"};
}

// From the text that CodeArguments() makes without optimisations to the one
// with them.
Arguments OptimiseArguments(bool checked) {
  Arguments arguments = {"-x", "ir", "-fPIC", "-ffp-contract=off", "-w"};
  const Arguments more = Optimisations(checked);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

Arguments CodeArguments(bool checked) {
  Arguments arguments = {
      "-x", "c++", "-std=c++17", "-fPIC",
      // The kernel's own order of operations, as in the library.
      "-ffp-contract=off", "-fno-strict-aliasing", "-fno-math-errno",
      "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-w",
      // Metal's rules: 2.0 is a float, and char has a sign.
      "-cl-single-precision-constant", "-fsigned-char",
      // A call where threads meet is one place: it must not be doubled, as
      // Clang otherwise does between two ifs.
      "-Xclang", "-fconvergent-functions", "-fno-color-diagnostics",
      "-ferror-limit=20",
      // Lines name files as the text does, not below the folder where it runs.
      "-fdebug-compilation-dir=/",
      // Metal has none; an assembler's .incbin reads any file.
      "-fno-gnu-inline-asm",
      // No second way to write a #, which the translation looks for.
      "-fno-digraphs"};
  const Arguments more = Optimisations(checked);
  arguments.insert(arguments.end(), more.begin(), more.end());
  if (checked) {
    arguments.insert(arguments.end(), {"-g1", "-gdwarf-4"});
  } else {
    // No instruction here faults at eight, and GPUs don't at an element's. In
    // checked modules accesses.cc sees to it.
    arguments.push_back("-fmax-type-align=8");
  }
  return arguments;
}

// The arguments of CodeArguments() that are about machine code.
Arguments LlvmArguments(bool checked) {
  Arguments arguments = {"-x", "ir", "-fPIC", "-ffp-contract=off", "-w", "-c"};
  if (checked) {
    arguments.insert(arguments.end(),
                     {"-O1", "-Xclang", "-disable-llvm-passes"});
  } else {
    arguments.push_back("-O2");
  }
  return arguments;
}

Arguments RegionArguments() {
  // "llvm.loop.parallel_accesses" says that no thread depends on another one.
  // Clang's vectoriser then assumes that accesses of the same thread do not
  // depend on each other either, and moves loads in front of stores where it
  // joins accesses with a stride: in all of 64 threads a thread did not see
  // its own write. Clang 14 to 22 know the option. A tiled product, a reduction
  // tree, a softmax and complex products of float2 take at most 1.04 times as
  // long with it.
  return {"-mllvm", "-enable-interleaved-mem-accesses=false"};
}

std::string FindCompiler(const std::string& asked) {
  if (!asked.empty()) {
    const std::string program =
        asked.find('/') == std::string::npos ? InPath(asked) : asked;
    if (IsProgram(program)) return program;
    throw std::runtime_error("metal_compiler: no such program: " + asked);
  }
  std::string program = InPath("clang++");
  for (int version = 30; version >= 14 && program.empty(); --version) {
    program = InPath("clang++-" + std::to_string(version));
  }
  if (!program.empty()) return program;
  throw std::runtime_error(
      "no Clang in PATH, which compiles .metal files: install clang (14 or "
      "later), or name it in DeviceOptions::metal_compiler");
}

Compiled Compile(const CompileRequest& request) {
  const std::string text = ShaderText(request);
  const Cache cache(request.cache, request.cache_bytes);
  if (!request.path.empty() && IsArchive(text)) {
    return FromArchive(text, request, cache);
  }
  const std::string compiler = FindCompiler(request.compiler);
  WorkFolder work(cache.folder());

  std::string input = request.path;
  if (input.empty()) {
    input = work.File(kSourceName);
    WriteFile(input, text);
  }
  const std::string name = request.path.empty() ? kSourceName : input;
  const Arguments folders = FoldersOf(request.arguments);
  RequireReadableIncludes(text, input, name, folders);
  for (const std::string& path : request.prepended) {
    const SourceFile file = ReadSource(path);
    if (file.state != SourceFile::State::kRead) {
      throw std::runtime_error(path + ": " + file.wrong);
    }
    RequireReadableIncludes(file.text, path, path, folders);
  }
  const std::string shim = ShimFolder(cache.folder());
  Arguments preprocess = {
      compiler, "-E", "-x", "c++", "-std=c++17", "-nostdinc", "-nostdinc++",
      "-isystem", shim, "-include", "switchyard_module.h",
      // Metal's compiler includes it, too: texts without any #include compile.
      "-include", "metal_stdlib", "-D__METAL__=1", "-D__METAL_MACOS__=1",
      "-D__METAL_VERSION__=" + std::to_string(request.language_version),
      // A line for each of many bytes that are no text would take minutes.
      "-w", "-fno-color-diagnostics", "-fno-crash-diagnostics",
      "-fno-digraphs"};
  if (request.checked) preprocess.push_back("-DSWITCHYARD_METAL_CHECKED=1");
  preprocess.insert(preprocess.end(), request.arguments.begin(),
                    request.arguments.end());
  for (const std::string& path : request.prepended) {
    preprocess.insert(preprocess.end(), {"-include", path});
  }
  preprocess.push_back(input);
  const std::string preprocessed = work.File("preprocessed");
  Preprocess(preprocess, preprocessed, name, request.preprocess_seconds);

  Compiled result;
  std::string metal = ReadFile(preprocessed);
  // The shim at least is in it.
  if (metal.empty()) {
    throw std::runtime_error("metal_compiler: " + compiler + " is no Clang");
  }
  if (request.path.empty()) {
    // The same whatever folder it was in.
    const std::string quoted = '"' + input + '"';
    for (size_t at = 0; (at = metal.find(quoted, at)) != std::string::npos;) {
      metal.replace(at, quoted.size(), '"' + std::string(kSourceName) + '"');
    }
  }
  result.translation = Translate(metal, request.kernels);
  if (!result.translation.error.empty()) {
    throw std::runtime_error(result.translation.error);
  }
  auto comments = std::make_shared<AllowComments>();
  for (const std::string& file : result.translation.files) {
    comments->Read(TextOfFile(file, request), file);
  }
  result.comments = std::move(comments);
  Arguments compile = {compiler};
  for (const std::string& argument : CodeArguments(request.checked)) {
    compile.push_back(argument);
  }
  // Everything that the object depends on; a new compiler makes a new object.
  std::string key;
  for (const std::string& argument : compile) key += "// " + argument + '\n';
  for (const Arguments& more :
       {OptimiseArguments(request.checked), LlvmArguments(request.checked)}) {
    for (const std::string& argument : more) key += "// " + argument + '\n';
  }
  if (!request.checked) {
    for (const std::string& argument : RegionArguments()) {
      key += "// " + argument + '\n';
    }
  }
  key += std::string("// ") +
         (request.checked ? kAccessesVersion : kRegionsVersion) + "\n// " +
         kDivisionsVersion + '\n';
  struct stat status;
  if (stat(compiler.c_str(), &status) == 0) {
    key += "// " + std::to_string(status.st_size) + " " +
           std::to_string(status.st_mtime) + '\n';
  }
  key += result.translation.code;
  result.key = key;
  result.module = cache.Find(key);
  result.cached = result.module != nullptr;
  if (result.cached) return result;

  const std::string code = work.File("code");
  const std::string llvm = work.File("llvm");
  const std::string object = work.File("object");
  const std::string module = work.File("module");
  const std::string nothing = work.File("output");
  WriteFile(code, result.translation.code);
  Arguments to_llvm = compile;
  to_llvm.insert(to_llvm.end(), {"-Xclang", "-disable-llvm-passes", "-S",
                                 "-emit-llvm", code, "-o", llvm});
  const TextOf text_of = [&](const std::string& file) {
    return TextOfFile(file, request);
  };
  const Finished compiled = RunProcess(to_llvm, nothing);
  if (compiled.status != 0) {
    throw std::runtime_error(compiled.errors.empty()
                                 ? StatusOf(compiler, compiled)
                                 : Readable(compiled.errors, shim, text_of));
  }
  std::string read = ReadFile(llvm);
  DefineDivisions(read, request.checked);
  WriteFile(llvm, read);
  const std::string optimised = work.File("optimised");
  Arguments optimise = OptimiseArguments(request.checked);
  optimise.insert(optimise.begin(), compiler);
  optimise.insert(optimise.end(), {"-S", "-emit-llvm", llvm, "-o", optimised});
  Run(optimise, nothing);
  read = ReadFile(optimised);
  const auto to_object = [&](const std::string& module_text,
                             const Arguments& more = {}) {
    Arguments arguments = LlvmArguments(request.checked);
    arguments.insert(arguments.begin(), compiler);
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {llvm, "-o", object});
    WriteFile(llvm, module_text);
    Run(arguments, nothing);
  };
  std::string changed = read;
  if (request.checked) {
    result.accesses = InstrumentRest(changed);
    to_object(changed);
  } else {
    result.kernels_cut = CutIntoRegions(changed);
    try {
      to_object(changed,
                result.kernels_cut != 0 ? RegionArguments() : Arguments());
    } catch (const std::runtime_error&) {
      // Kernels run uncut if this Clang does not take the regions' text or
      // arguments.
      changed = read;
      result.kernels_cut = CutIntoRegions(changed, false);
      to_object(changed);
    }
  }
  const auto link = [&] {
    return RunProcess(
        {compiler, "-shared", object, "-o", module, "-lm", "-Wl,-z,defs"},
        nothing);
  };
  Finished linked = link();
  if (linked.status != 0) {
    // Once more with places, for what the linker says.
    compile.insert(compile.end(),
                   {"-g1", "-gdwarf-4", "-c", code, "-o", object});
    Run(compile, nothing);
    linked = link();
  }
  if (linked.status != 0) {
    throw std::runtime_error(linked.errors.empty()
                                 ? StatusOf(compiler, linked)
                                 : ReadableOfLinker(linked.errors));
  }
  const std::string key_file = work.File("key");
  WriteFile(key_file, key);
  result.module = cache.Add(key, module, key_file);
  return result;
}

}  // namespace switchyard::device::metal
