// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// `main local|global FIRST SECOND` loads two shared objects that each contain
// the library, and caps the ISA of each. With `global`, each can see the
// other's symbols.

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace {

int failures = 0;

struct Copy {
  const char* (*isa)(size_t);
  bool (*cap)(const char*);
  const char* (*run)();

  // RTLD_NOW, as in engines, reports missing symbols at once.
  bool Load(const char* path, int mode) {
    void* const library = dlopen(path, RTLD_NOW | mode);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return false;
    }
    isa = reinterpret_cast<decltype(isa)>(dlsym(library, "CopyIsa"));
    cap = reinterpret_cast<decltype(cap)>(dlsym(library, "CopyCap"));
    run = reinterpret_cast<decltype(run)>(dlsym(library, "CopyRun"));
    return isa != nullptr && cap != nullptr && run != nullptr;
  }
};

void Expect(const char* what, const char* isa, const char* expected) {
  if (isa != nullptr && std::strcmp(isa, expected) == 0) return;
  std::fprintf(stderr, "FAILED: %s runs %s, not %s\n", what,
               isa != nullptr ? isa : "nothing", expected);
  ++failures;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int mode =
      std::strcmp(argv[1], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
  Copy first = {}, second = {};
  if (!first.Load(argv[2], mode) || !second.Load(argv[3], mode)) return 1;
  const char* const best = first.isa(0);
  const char* worst = best;
  for (size_t i = 0; first.isa(i) != nullptr; ++i) worst = first.isa(i);
  if (worst == best) std::printf("only %s: nothing to tell apart\n", best);

  Copy* const copies[] = {&first, &second};
  for (Copy* const capped : copies) {
    Copy* const other = capped == &first ? &second : &first;
    if (!capped->cap(worst)) ++failures;
    Expect("the capped copy", capped->run(), worst);
    Expect("the other copy", other->run(), best);
    if (!capped->cap(nullptr)) ++failures;
    Expect("the copy without its cap", capped->run(), best);
  }
  std::printf("%s and %s, each by itself\n", best, worst);
  return failures == 0 ? 0 : 1;
}
