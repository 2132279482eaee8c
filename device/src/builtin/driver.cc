// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs a built-in kernel by its table: reads the parameters, checks bindings
// and grid, reports the accesses to checked mode, and calls the plain API.

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "device/src/builtin/built_in.h"
#include "device/src/core/pipeline.h"

namespace switchyard::device {

#define X(stem) BuiltInTable stem##_kernels();
SWITCHYARD_BUILT_IN_STEMS
#undef X

namespace {

size_t Product(const Operands& o, const Extent& extent) {
  return o.factors[extent.factors[0]] * o.factors[extent.factors[1]];
}

bool LooksAt(const Operands& o, const Argument& a) {
  return o.factors[a.only_with] != 0;
}

// Calls function(argument, i) for each argument that the dispatch uses, until
// an error occurs.
template <class Function>
void ForEachArgument(const BuiltIn& kernel, const Operands& o,
                     const Function& function) {
  for (size_t i = 0; i < kMaxArguments; ++i) {
    const Argument& a = kernel.arguments[i];
    if (a.name == nullptr || !o.running.ok()) return;
    if (LooksAt(o, a)) function(a, i);
  }
}

const Binding* Find(RunningDispatch& running, const BindingUse& use) {
  std::string why;
  const Binding* const binding = running.Find(use, &why);
  if (binding == nullptr) running.Fail(why);
  return binding;
}

// Reports an access to checked mode. Call this before the access.
void Touch(RunningDispatch& running, size_t index, const char* name,
           const Rows& rows, bool write, CheckedMode::Fresh if_fresh) {
  if (running.checked == nullptr || !running.ok()) return;
  const bool fresh = running.bindings[index].fresh && !write;
  const std::string label = running.LabelOf(index);
  const std::string what = Format("buffer %zu (%s)", index, name) +
                           (label.empty() ? label : " \"" + label + "\"");
  const std::string error =
      running.checked->Touch(what.c_str(), rows, write,
                             fresh ? if_fresh : CheckedMode::Fresh::kIgnore);
  if (!error.empty()) running.Fail(error);
}

void ReadParams(const BuiltIn& kernel, Operands& o) {
  RunningDispatch& running = o.running;
  BindingUse use;
  use.index = kernel.params.index;
  use.bytes = use.cols = kernel.params.bytes;
  use.rows = 1;
  use.name = "params";
  use.has_shape = true;
  const Binding* const binding = Find(running, use);
  if (binding == nullptr) return;
  std::memcpy(o.params, binding->data, use.bytes);
  // Reports a parameter struct as never written only if none of its words was
  // written, because its padding is never written.
  Touch(running, use.index, use.name, {binding->data, 1, use.bytes, use.bytes},
        false, CheckedMode::Fresh::kAllWords);

  o.factors[kOne] = 1;
  o.factors[kThree] = 3;
  o.factors[kGridWidth] = running.threadgroups.width;
  o.factors[kUnlimited] = SIZE_MAX;
  for (size_t i = 0; i < kMaxDimensions; ++i) {
    const Dimension& d = kernel.dimensions[i];
    if (d.name == nullptr) return;
    uint32_t bits;
    std::memcpy(&bits, o.params + d.offset, sizeof(bits));
    o.factors[i] = d.kind == Dimension::kFlag ? bits != 0 : bits;
    if (bits <= INT32_MAX && !(bits == 0 && d.kind == Dimension::kPositive)) {
      continue;
    }
    if (d.kind == Dimension::kSigned) {
      running.Fail(Format("params: %s is negative (%d)", d.name,
                          static_cast<int32_t>(bits)));
    } else if (bits == 0) {
      running.Fail(Format("params: %s is 0", d.name));
    } else if (d.kind != Dimension::kFlag) {
      running.Fail(Format("params: %s is above 2^31 - 1 (%u)", d.name, bits));
    }
  }
}

// Binds the arguments with their whole shapes. CutToGrid() reduces them
// later.
void Bind(const BuiltIn& kernel, Operands& o) {
  ForEachArgument(kernel, o, [&o](const Argument& a, size_t i) {
    BindingUse use;
    use.index = a.index;
    use.name = a.name;
    use.alignment = SizeOf(a.type);
    use.writes = a.usage != Usage::kRead;
    use.has_shape = true;
    use.rows = Product(o, a.rows);
    use.cols = Product(o, a.cols);
    if (__builtin_mul_overflow(use.rows, use.cols, &use.bytes) ||
        __builtin_mul_overflow(use.bytes, use.alignment, &use.bytes)) {
      o.running.Fail(
          Format("buffer %zu (%s): [%zu, %zu] overflows the address space",
                 use.index, use.name, use.rows, use.cols));
      return;
    }
    const Binding* const binding = Find(o.running, use);
    if (binding == nullptr) return;
    o.views[i] = {binding->data, a.type, use.rows, use.cols, use.cols};
  });
}

void ExpectOne(RunningDispatch& running, const char* dimension, size_t count) {
  if (count != 1) {
    running.Fail(Format("grid: %s is %zu, has to be 1", dimension, count));
  }
}

void CheckGrid(const Grid& grid, const Operands& o) {
  RunningDispatch& running = o.running;
  const size_t threads =
      std::min<size_t>(grid.threads, o.factors[grid.threads_at_most]);
  const Size given = running.dispatch.ThreadsPerThreadgroup();
  if (given.width != threads || given.height != 1 || given.depth != 1) {
    running.Fail(
        Format("threadsPerThreadgroup: %zu x %zu x %zu, has to be %zu x 1 x 1",
               given.width, given.height, given.depth, threads));
  }
  const Size& groups = running.threadgroups;
  if (grid.kind == Grid::kRows || grid.rows == kOne) {
    ExpectOne(running, "height", groups.height);
  }
  ExpectOne(running, "depth", groups.depth);
  if (grid.kind == Grid::kTiles) return;
  if (running.threads.width % threads != 0) {
    running.Fail(Format("grid: %zu threads leave a threadgroup of %zu short",
                        running.threads.width, threads));
  }
  if (grid.rows == kOne) ExpectOne(running, "width", groups.width);
}

// Warns if the grid leaves out rows or columns, because the kernel does not
// compute them. Indirect grids get no warning, because an earlier dispatch
// has computed their size.
void WarnOfGrid(const BuiltIn& kernel, const Operands& o) {
  RunningDispatch& running = o.running;
  if (running.checked == nullptr || running.dispatch.indirect != nullptr) {
    return;
  }
  const bool tiles = kernel.grid.kind == Grid::kTiles;
  const size_t rows = o.factors[kernel.grid.rows];
  const size_t cols = tiles ? o.factors[kernel.grid.cols] : 0;
  const Size& groups = running.threadgroups;
  const size_t width = tiles ? running.threads.width : groups.width;
  const size_t height = tiles ? groups.height : 1;
  const size_t covered = tiles ? height : width;
  if (covered >= rows && width >= cols) return;
  std::string text =
      covered < rows
          ? Format("the grid covers %zu of %zu rows", covered, rows)
          : Format("the grid covers %zu of %zu columns", width, cols);
  // The caller may have confused width and height: x then counts threadgroups
  // for rows, and y for columns.
  const size_t threads = kernel.grid.threads;
  if (tiles && groups.width >= rows && height * threads >= cols) {
    text += ": its width and height are swapped";
  }
  running.Warn(text);
}

void CutToGrid(const BuiltIn& kernel, Operands& o) {
  const auto cut = [&o](uint8_t factor, size_t covered) {
    if (factor == kOne) return;
    o.factors[factor] = std::min(o.factors[factor], covered);
  };
  const Size& groups = o.running.threadgroups;
  const bool tiles = kernel.grid.kind == Grid::kTiles;
  cut(kernel.grid.rows, tiles ? groups.height : groups.width);
  cut(kernel.grid.cols, o.running.threads.width);
  ForEachArgument(kernel, o, [&o](const Argument& a, size_t i) {
    o.views[i].rows = Product(o, a.rows);
    o.views[i].cols = Product(o, a.cols);
  });
}

void TouchAll(const BuiltIn& kernel, const Operands& o) {
  for (const bool write : {false, true}) {
    const Usage other = write ? Usage::kRead : Usage::kWrite;
    ForEachArgument(kernel, o, [&](const Argument& a, size_t i) {
      if (a.usage == other) return;
      const AnyMatrix& v = o.views[i];
      const size_t size = SizeOf(a.type);
      Touch(o.running, a.index, a.name,
            {v.data, v.rows, v.cols * size, v.stride * size, size}, write,
            CheckedMode::Fresh::kAnyWord);
    });
  }
}

// Returns the edit distance: how many letters must be inserted, deleted or
// replaced.
size_t Edits(const std::string& from, const std::string& to) {
  std::vector<size_t> row(to.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j < row.size(); ++j) {
      const size_t replaced = diagonal + (from[i - 1] != to[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

Span<const BuiltInTable> BuiltInTables() {
#define X(stem) stem##_kernels(),
  static const BuiltInTable tables[] = {SWITCHYARD_BUILT_IN_STEMS};
#undef X
  return tables;
}

const BuiltIn* FindBuiltIn(const char* name) {
  for (const BuiltInTable& table : BuiltInTables()) {
    for (const BuiltIn& kernel : table) {
      if (std::strcmp(kernel.name, name) == 0) return &kernel;
    }
  }
  return nullptr;
}

std::vector<std::string> BuiltInNames(const std::string& name) {
  std::vector<std::pair<size_t, std::string>> names;
  for (const BuiltInTable& table : BuiltInTables()) {
    for (const BuiltIn& kernel : table) {
      std::string known = static_cast<const char*>(kernel.name);
      const size_t edits = Edits(name, known);
      names.emplace_back(edits, std::move(known));
    }
  }
  std::stable_sort(
      names.begin(), names.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> sorted;
  for (auto& name_at : names) sorted.push_back(std::move(name_at.second));
  return sorted;
}

void RunBuiltIn(const BuiltIn& kernel, RunningDispatch& running) {
  Operands o = {running, {}, {}, {}};
  ReadParams(kernel, o);
  if (running.ok()) Bind(kernel, o);
  if (running.ok()) CheckGrid(kernel.grid, o);
  if (!running.ok()) return;
  WarnOfGrid(kernel, o);
  CutToGrid(kernel, o);
  if (running.checked != nullptr) TouchAll(kernel, o);
  if (!running.ok()) return;
  const Status status = kernel.call(o);
  if (!status.ok()) running.Fail(status);
}

}  // namespace switchyard::device
