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

// Metal's name for source text that does not come from a file.
constexpr char kSourceName[] = "program_source";

bool IsProgram(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

std::string FindInPath(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin" : path);
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    const std::string program = (folder.empty() ? "." : folder) + "/" + name;
    if (IsProgram(program)) return program;
  }
  return "";
}

// Reads a file that Switchyard or Clang has written.
std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error("can't read " + path);
  return text.str();
}

// Reads the shader's text, or the bytes of a .metallib.
std::string ReadShader(const CompileRequest& request) {
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
                             "file from which it was compiled");
  }
  return std::move(file.text);
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("can't write " + path);
}

// A temporary folder. The destructor deletes it with its contents.
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

void Append(const Arguments& more, Arguments& arguments) {
  arguments.insert(arguments.end(), more.begin(), more.end());
}

Arguments Join(const std::string& program, const Arguments& more) {
  Arguments arguments = {program};
  Append(more, arguments);
  return arguments;
}

Arguments FindIncludeFolders(const Arguments& arguments) {
  Arguments folders;
  for (const std::string& argument : arguments) {
    if (argument.compare(0, 2, "-I") == 0)
      folders.push_back(argument.substr(2));
  }
  return folders;
}

std::string HashShim() {
  std::string all;
  for (const EmbeddedFile* file = kShim; file->name != nullptr; ++file) {
    all += std::string(file->name) + '\n' + file->text;
  }
  return HashOf(all);
}

// Writes the shim's headers to a folder named by their hash, and returns it.
std::string WriteShim(const std::string& cache) {
  const std::string folder = cache + "/shim-" + HashShim();
  MakeFolder(folder);
  Touch(folder);
  for (const EmbeddedFile* file = kShim; file->name != nullptr; ++file) {
    const std::string path = folder + "/" + file->name;
    MakeFolder(path.substr(0, path.rfind('/')));
    std::ifstream there(path, std::ios::binary);
    std::ostringstream text;
    if (there) text << there.rdbuf();
    if (there && text.str() == file->text) continue;
    // Each file is renamed when it is complete, because another process may
    // read it at any time.
    const std::string temporary = path + "." + std::to_string(getpid());
    WriteFile(temporary, file->text);
    std::rename(temporary.c_str(), path.c_str());
  }
  return folder;
}

// Reads one of the shader's files. Returns an empty text if the file can't be
// read: a #line may name any file, and text that comes from a pipe has the
// name "/dev/stdin".
std::string ReadShaderFile(const std::string& file,
                           const CompileRequest& request) {
  if (request.path.empty() && file == kSourceName) return request.source;
  return ReadSource(file).text;
}

std::string DescribeStatus(const std::string& program,
                           const Finished& finished) {
  return program + ": ended with status " + std::to_string(finished.status);
}

void RunClang(const Arguments& arguments, const std::string& output) {
  const Finished finished = RunProcess(arguments, output);
  if (finished.status == 0) return;
  throw std::runtime_error(finished.errors.empty()
                               ? DescribeStatus(arguments[0], finished)
                               : finished.errors);
}

// Runs the preprocessor with a limit of time and memory. The limits are
// needed because an #include may name a device file through a macro, and only
// the preprocessor sees that name.
void RunPreprocessor(const Arguments& arguments, const std::string& output,
                     const std::string& name, unsigned seconds) {
  // The limit of the memory and of the output, because Translate() accepts no
  // text above 2 GiB.
  constexpr uint64_t kMaxBytes = uint64_t{2} << 30;
  const Finished finished = RunProcess(arguments, output, {seconds, kMaxBytes});
  if (finished.timed_out) {
    throw std::runtime_error(
        name + ": is not preprocessed within " + std::to_string(seconds) +
        " s: does a macro's #include name a device or a FIFO?");
  }
  // If Clang itself fails, its status is 1 and stderr has an explanation.
  if (finished.status == 1 && !finished.errors.empty()) {
    throw std::runtime_error(finished.errors);
  }
  // A signal ended the preprocessor, for example because memory ran out.
  if (finished.status > 128) {
    throw std::runtime_error(
        name + ": is not preprocessed with " + std::to_string(kMaxBytes >> 30) +
        " GiB of memory: " + DescribeStatus(arguments[0], finished));
  }
  if (finished.status != 0) {
    throw std::runtime_error(
        "metal_compiler: " + DescribeStatus(arguments[0], finished) +
        ": is it a Clang?");
  }
}

// Loads the checked or the unchecked module of a .metallib, depending on the
// request. Adds the module to the cache, because the loader needs a file.
Compiled LoadFromArchive(const std::string& bytes,
                         const CompileRequest& request, const Cache& cache) {
  Archive archive;
  try {
    FromBytes(bytes, &archive);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(request.path + ": " + error.what());
  }
  if (archive.made_by != HashShim()) {
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
  archive.made_by = HashShim();
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
  // The file is renamed when it is complete, so that readers never find half
  // a file.
  const std::string temporary = output + "." + std::to_string(getpid());
  WriteFile(temporary, ToBytes(archive));
  if (std::rename(temporary.c_str(), output.c_str()) != 0) {
    throw std::runtime_error("can't write " + output);
  }
  return files;
}

namespace {

// Returns those arguments of CodeArguments() that concern optimisations.
Arguments OptimisationArguments(bool checked) {
  if (checked) {
    // The shim defines the functions that the sanitizer calls. The option
    // read-before-write also reports a read that comes before a write to the
    // same address, which Clang otherwise leaves out. The option
    // distinguish-volatile reports volatile accesses as volatile.
    return {"-O1",    "-fsanitize=thread",
            "-mllvm", "-tsan-instrument-memintrinsics=0",
            "-mllvm", "-tsan-instrument-read-before-write",
            "-mllvm", "-tsan-distinguish-volatile"};
  }
  // Clang vectorises only after the kernels were cut into regions (see
  // regions.h), because a region is a loop, too. So Clang compiles the kernels
  // in two passes. Without source places, the two passes take less time than
  // one pass with source places.
  return {"-O2", "-fno-vectorize", "-fno-slp-vectorize"};
}

// Returns the arguments that optimise LLVM text. Clang has made this text with
// CodeArguments(), but has not optimised it.
Arguments OptimiseArguments(bool checked) {
  Arguments arguments = {"-x", "ir", "-fPIC", "-ffp-contract=off", "-w"};
  Append(OptimisationArguments(checked), arguments);
  return arguments;
}

}  // namespace

Arguments CodeArguments(bool checked) {
  Arguments arguments = {
      "-x", "c++", "-std=c++17", "-fPIC",
      // Clang must not contract a product and a sum to an fma. Switchyard's
      // own kernels are compiled by this rule, too.
      "-ffp-contract=off", "-fno-strict-aliasing", "-fno-math-errno",
      "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-w",
      // These are Metal's rules: 2.0 is a float, and char is signed.
      "-cl-single-precision-constant", "-fsigned-char",
      // When threads meet in a call, the place of the call identifies the
      // meeting. So Clang must not duplicate such a call, for example a call
      // between two ifs.
      "-Xclang", "-fconvergent-functions", "-fno-color-diagnostics",
      "-ferror-limit=20",
      // Source places name files exactly as the text does. They must not
      // depend on the folder where Clang runs.
      "-fdebug-compilation-dir=/",
      // Metal has no inline assembly, and an .incbin in it could read any
      // file.
      "-fno-gnu-inline-asm",
      // Digraphs are off, because the translation looks only for #.
      "-fno-digraphs"};
  Append(OptimisationArguments(checked), arguments);
  if (checked) {
    Append({"-g1", "-gdwarf-4"}, arguments);
  } else {
    // GPUs accept vectors that are aligned only like their elements. With an
    // alignment of 8, no instruction of this CPU faults on such vectors. In
    // checked modules accesses.cc lowers the alignments.
    arguments.push_back("-fmax-type-align=8");
  }
  return arguments;
}

// Returns those arguments of CodeArguments() that concern machine code.
Arguments LlvmArguments(bool checked) {
  Arguments arguments = {"-x", "ir", "-fPIC", "-ffp-contract=off", "-w", "-c"};
  if (checked) {
    Append({"-O1", "-Xclang", "-disable-llvm-passes"}, arguments);
  } else {
    arguments.push_back("-O2");
  }
  return arguments;
}

Arguments RegionArguments() {
  // "llvm.loop.parallel_accesses" says that no thread depends on another one.
  // Clang's vectoriser then assumes that the accesses of one thread do not
  // depend on each other, either. Where it joins accesses with a stride, it
  // moves loads in front of stores: in one kernel each of 64 threads missed
  // its own write. This option, which Clang 14 to 22 know, turns the joining
  // off. Without joining, a tiled product, a reduction tree, a softmax and
  // complex products of float2 take at most 1.04 times their time with
  // joining.
  return {"-mllvm", "-enable-interleaved-mem-accesses=false"};
}

std::string FindCompiler(const std::string& asked) {
  if (!asked.empty()) {
    const std::string program =
        asked.find('/') == std::string::npos ? FindInPath(asked) : asked;
    if (IsProgram(program)) return program;
    throw std::runtime_error("metal_compiler: no such program: " + asked);
  }
  std::string program = FindInPath("clang++");
  for (int version = 30; version >= 14 && program.empty(); --version) {
    program = FindInPath("clang++-" + std::to_string(version));
  }
  if (!program.empty()) return program;
  throw std::runtime_error(
      "no clang++ in PATH to compile .metal files: install clang (14 or "
      "later), or name it in DeviceOptions::metal_compiler");
}

namespace {

// Compiles one shader for one kind of device. The steps are Preprocess(),
// Translate(), MakeObject() and LinkModule(), in this order. Each step leaves
// files for the next one in a temporary folder.
class Compilation {
 public:
  Compilation(const CompileRequest& request, const Cache& cache)
      : request_(request),
        cache_(cache),
        compiler_(FindCompiler(request.compiler)),
        work_(cache.folder()),
        input_(request.path) {}

  Compiled Run(const std::string& shader) {
    const std::string metal = Preprocess(shader);
    Translate(metal);
    result_.key = MakeKey();
    result_.module = cache_.Find(result_.key);
    result_.cached = result_.module != nullptr;
    if (!result_.cached) {
      MakeObject();
      LinkModule();
    }
    return std::move(result_);
  }

 private:
  // Returns the preprocessed text of the shader and the files that it
  // includes.
  std::string Preprocess(const std::string& shader) {
    if (input_.empty()) {
      input_ = work_.File(kSourceName);
      WriteFile(input_, shader);
    }
    const std::string name = request_.path.empty() ? kSourceName : input_;
    RequireReadable(shader, name);
    shim_ = WriteShim(cache_.folder());
    const std::string preprocessed = work_.File("preprocessed");
    RunPreprocessor(PreprocessArguments(), preprocessed, name,
                    request_.preprocess_seconds);
    std::string metal = ReadFile(preprocessed);
    // The output is never empty after a success, because it contains at least
    // the shim.
    if (metal.empty()) {
      throw std::runtime_error("metal_compiler: " + compiler_ +
                               " is not Clang");
    }
    if (request_.path.empty()) {
      // The temporary folder's name is replaced, because it would become part
      // of the key: the cache would then never find the same shader again.
      const std::string quoted = '"' + input_ + '"';
      for (size_t at = 0; (at = metal.find(quoted, at)) != std::string::npos;) {
        metal.replace(at, quoted.size(), '"' + std::string(kSourceName) + '"');
      }
    }
    return metal;
  }

  void RequireReadable(const std::string& shader, const std::string& name) {
    const Arguments folders = FindIncludeFolders(request_.arguments);
    RequireReadableIncludes(shader, input_, name, folders);
    for (const std::string& path : request_.prepended) {
      const SourceFile file = ReadSource(path);
      if (file.state != SourceFile::State::kRead) {
        throw std::runtime_error(path + ": " + file.wrong);
      }
      RequireReadableIncludes(file.text, path, path, folders);
    }
  }

  Arguments PreprocessArguments() const {
    Arguments arguments = {
        compiler_, "-E", "-x", "c++", "-std=c++17", "-nostdinc", "-nostdinc++",
        "-isystem", shim_, "-include", "switchyard_module.h",
        // Metal's compiler includes metal_stdlib, too, so that shaders
        // compile without an #include.
        "-include", "metal_stdlib", "-D__METAL__=1", "-D__METAL_MACOS__=1",
        "-D__METAL_VERSION__=" + std::to_string(request_.language_version),
        // Warnings are off, because Clang would warn of many single bytes of a
        // binary file, which takes minutes.
        "-w", "-fno-color-diagnostics", "-fno-crash-diagnostics",
        "-fno-digraphs"};
    if (request_.checked) arguments.push_back("-DSWITCHYARD_METAL_CHECKED=1");
    Append(request_.arguments, arguments);
    for (const std::string& path : request_.prepended) {
      Append({"-include", path}, arguments);
    }
    arguments.push_back(input_);
    return arguments;
  }

  // Translates the preprocessed text to C++, and reads the allow() comments
  // for checked mode.
  void Translate(const std::string& metal) {
    result_.translation = metal::Translate(metal, request_.kernels);
    if (!result_.translation.error.empty()) {
      throw std::runtime_error(result_.translation.error);
    }
    auto comments = std::make_shared<AllowComments>();
    for (const std::string& file : result_.translation.files) {
      comments->Read(ReadShaderFile(file, request_), file);
    }
    result_.comments = std::move(comments);
  }

  // Returns the module's key: everything that the module depends on. The key
  // contains the compiler's size and date, so that a new compiler makes a new
  // module.
  std::string MakeKey() const {
    std::string key;
    const auto add = [&](const std::string& line) {
      key += "// " + line + '\n';
    };
    const auto add_all = [&](const Arguments& lines) {
      for (const std::string& line : lines) add(line);
    };
    add(compiler_);
    add_all(CodeArguments(request_.checked));
    add_all(OptimiseArguments(request_.checked));
    add_all(LlvmArguments(request_.checked));
    if (!request_.checked) add_all(RegionArguments());
    add(request_.checked ? kAccessesVersion : kRegionsVersion);
    add(kDivisionsVersion);
    struct stat status;
    if (stat(compiler_.c_str(), &status) == 0) {
      add(std::to_string(status.st_size) + " " +
          std::to_string(status.st_mtime));
    }
    return key + result_.translation.code;
  }

  // Compiles the C++ to LLVM text. Then adds the calls of checked mode, or
  // cuts the kernels of an unchecked module into regions. Then compiles the
  // LLVM text to an object.
  void MakeObject() {
    WriteFile(code_, result_.translation.code);
    std::string llvm = EmitLlvm();
    if (request_.checked) {
      result_.accesses = InstrumentRest(llvm);
      CompileLlvm(llvm, {});
      return;
    }
    const std::string uncut = llvm;
    result_.kernels_cut = CutIntoRegions(llvm);
    try {
      CompileLlvm(llvm,
                  result_.kernels_cut != 0 ? RegionArguments() : Arguments());
    } catch (const std::runtime_error&) {
      // If this Clang rejects the text of the regions, or the arguments for
      // it, the kernels are compiled uncut.
      llvm = uncut;
      result_.kernels_cut = CutIntoRegions(llvm, false);
      CompileLlvm(llvm, {});
    }
  }

  // Returns optimised LLVM text for the C++. Its integer divisions cannot
  // trap, because DefineDivisions() has changed them.
  std::string EmitLlvm() {
    Arguments arguments = Join(compiler_, CodeArguments(request_.checked));
    Append({"-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", code_, "-o",
            llvm_},
           arguments);
    const Finished finished = RunProcess(arguments, output_);
    if (finished.status != 0) {
      const TextOf text_of = [&](const std::string& file) {
        return ReadShaderFile(file, request_);
      };
      throw std::runtime_error(
          finished.errors.empty()
              ? DescribeStatus(compiler_, finished)
              : MakeReadable(finished.errors, shim_, text_of));
    }
    std::string llvm = ReadFile(llvm_);
    DefineDivisions(llvm, request_.checked);
    WriteFile(llvm_, llvm);
    const std::string optimised = work_.File("optimised");
    arguments = Join(compiler_, OptimiseArguments(request_.checked));
    Append({"-S", "-emit-llvm", llvm_, "-o", optimised}, arguments);
    RunClang(arguments, output_);
    return ReadFile(optimised);
  }

  void CompileLlvm(const std::string& llvm, const Arguments& more) {
    Arguments arguments = Join(compiler_, LlvmArguments(request_.checked));
    Append(more, arguments);
    Append({llvm_, "-o", object_}, arguments);
    WriteFile(llvm_, llvm);
    RunClang(arguments, output_);
  }

  // Links the object, and adds the module to the cache.
  void LinkModule() {
    const std::string module = work_.File("module");
    const Arguments arguments = {compiler_, "-shared", object_,      "-o",
                                 module,    "-lm",     "-Wl,-z,defs"};
    Finished finished = RunProcess(arguments, output_);
    if (finished.status != 0) {
      // The code is compiled again with source places, so that the linker's
      // messages name them.
      Arguments with_places = Join(compiler_, CodeArguments(request_.checked));
      Append({"-g1", "-gdwarf-4", "-c", code_, "-o", object_}, with_places);
      RunClang(with_places, output_);
      finished = RunProcess(arguments, output_);
    }
    if (finished.status != 0) {
      throw std::runtime_error(finished.errors.empty()
                                   ? DescribeStatus(compiler_, finished)
                                   : ReadableOfLinker(finished.errors));
    }
    const std::string key = work_.File("key");
    WriteFile(key, result_.key);
    result_.module = cache_.Add(result_.key, module, key);
  }

  const CompileRequest& request_;
  const Cache& cache_;
  const std::string compiler_;
  WorkFolder work_;
  std::string shim_;   // the folder with the shim's headers
  std::string input_;  // the file with the shader's text
  // The files between the steps. Clang's output goes to `output_`.
  const std::string code_ = work_.File("code");
  const std::string llvm_ = work_.File("llvm");
  const std::string object_ = work_.File("object");
  const std::string output_ = work_.File("output");
  Compiled result_;
};

}  // namespace

Compiled Compile(const CompileRequest& request) {
  const std::string shader = ReadShader(request);
  const Cache cache(request.cache, request.cache_bytes);
  if (!request.path.empty() && IsArchive(shader)) {
    return LoadFromArchive(shader, request, cache);
  }
  return Compilation(request, cache).Run(shader);
}

}  // namespace switchyard::device::metal
