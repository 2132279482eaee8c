// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Computes one MoE layer for a decode token and for a prefill. The kernels
// are chained as in an engine for Apple Silicon (engine.cc), and the results
// are compared with the plain API. The exit code is 0 on success, 1 if the
// device fails or one of its buffers differs, and 2 for wrong input.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine.h"
#include "programs/arguments.h"
#include "programs/for_each.h"
#include "programs/hash_uniform.h"
#include "programs/program.h"
#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/executor.h"
#include "switchyard/isa.h"
#include "switchyard/route.h"

namespace metal_chain {
namespace {

using program::Check;
using program::UniformScale;
using switchyard::Executor;

// Shaders sum in another order, so their results may differ by up to this
// fraction of the largest number in the buffer.
constexpr float kShaderBound = 1e-5f;

struct Options : program::ThreadOptions {
  bool full = false;
  size_t tokens = 512;  // the number of tokens in the prefill
  std::vector<std::string> shaders;
};

std::vector<float> Values(size_t size, uint32_t stream, float center,
                          float spread) {
  std::vector<float> values(size);
  const uint32_t key = program::HashKey(stream);
  for (size_t i = 0; i < size; ++i) {
    values[i] =
        center + spread * program::HashUniform(key, static_cast<uint32_t>(i));
  }
  return values;
}

// Returns a layer with values about as large as in trained models: the logits
// are around 1.5, and all other results are around 1.
Layer MakeLayer(const Shape& shape) {
  const auto [hidden, experts, top_k, intermediate] = shape;
  const size_t size = experts * hidden * intermediate;
  return {shape,
          Values(experts * hidden, 1, 0, UniformScale(1.5, hidden)),
          Values(size, 2, 0, UniformScale(1, hidden)),
          Values(size, 3, 0, UniformScale(1, hidden)),
          Values(size, 4, 0, UniformScale(4, intermediate)),
          Values(hidden, 5, 1, 0.1f)};
}

// True if a buffer holds the expected values. With bound 0, the bits must be
// equal. Shaders have a bound, and their numbers may differ by up to `bound`
// times the largest number.
template <class T>
bool Equal(const char* name, const BufferPtr& buffer,
           const std::vector<T>& right, float bound) {
  const T* const found = static_cast<const T*>(buffer->contents());
  float largest = 0;
  for (const T value : right) {
    largest = std::max(largest, std::fabs(static_cast<float>(value)));
  }
  for (size_t i = 0; i < right.size(); ++i) {
    if (std::memcmp(&found[i], &right[i], sizeof(T)) == 0) continue;
    const auto difference = static_cast<float>(found[i] - right[i]);
    // This comparison also fails for NaN.
    if (bound != 0 && std::fabs(difference) <= bound * largest) continue;
    std::printf("differs: %s, element %zu: %.9g instead of %.9g\n", name, i,
                static_cast<double>(found[i]), static_cast<double>(right[i]));
    return false;
  }
  return true;
}

// Computes the layer with the plain API, without a device. Returns true if
// the device's buffers hold the same values.
bool EqualsPlainApi(const Layer& layer, const std::vector<float>& input,
                    std::vector<float> residual, const Buffers& b, float bound,
                    Executor& executor) {
  const size_t hidden = layer.shape.hidden, experts = layer.shape.experts,
               top_k = layer.shape.top_k,
               intermediate = layer.shape.intermediate;
  const size_t tokens = b.tokens, pairs = tokens * top_k;
  std::vector<float> logits(tokens * experts), weights(pairs),
      gate(pairs * intermediate), up(gate.size()), silu(gate.size()),
      down(pairs * hidden), normed(tokens * hidden);
  std::vector<int32_t> ids(pairs);
  // Computes row p of `out` as a matrix times a row of x. The matrix is the
  // one of expert ids[p] if by_expert is true, and otherwise the only matrix.
  const auto multiply = [&](const std::vector<float>& matrices, size_t rows,
                            bool by_expert, const std::vector<float>& x,
                            size_t pairs_per_x, std::vector<float>& out) {
    const size_t cols =
        rows == intermediate || !by_expert ? hidden : intermediate;
    program::ForEach(executor, out.size() / rows, 1, [&](size_t p) {
      const auto e = by_expert ? static_cast<size_t>(ids[p]) : 0;
      for (size_t r = 0; r < rows; ++r) {
        out[p * rows + r] = Dot(matrices.data() + (e * rows + r) * cols,
                                x.data() + p / pairs_per_x * cols, cols);
      }
    });
  };
  multiply(layer.router, experts, false, input, 1, logits);
  Check(switchyard::RouteTopK(
      {{logits.data(), tokens, experts}},
      {{ids.data(), tokens, top_k}, {weights.data(), tokens, top_k}}, {},
      executor));
  multiply(layer.gate, intermediate, true, input, top_k, gate);
  multiply(layer.up, intermediate, true, input, top_k, up);
  Check(switchyard::Activate(
      {{gate.data(), pairs, intermediate}, {up.data(), pairs, intermediate}},
      {{silu.data(), pairs, intermediate}}, {}, executor));
  multiply(layer.down, hidden, true, silu, 1, down);
  Check(switchyard::Combine(
      {{down.data(), pairs, hidden},
       {weights.data(), tokens, top_k},
       switchyard::RowIndex::kTokenOrder,
       {residual.data(), tokens, hidden},
       {layer.next_norm.data(), 1, hidden}},
      {{residual.data(), tokens, hidden}, {normed.data(), tokens, hidden}},
      {kNormEps}, executor));
  return Equal("logits", b.logits, logits, bound) &&
         Equal("ids", b.ids, ids, 0) &&
         Equal("weights", b.weights, weights, bound) &&
         Equal("gate", b.gate, gate, bound) && Equal("up", b.up, up, bound) &&
         Equal("silu", b.silu, silu, bound) &&
         Equal("down", b.down, down, bound) &&
         Equal("residual", b.residual, residual, bound) &&
         Equal("normed", b.normed, normed, bound);
}

// Runs the chain for `tokens` tokens, prints its times, and compares its
// results.
bool RunChain(const Layer& layer, const Engine& engine, size_t tokens,
              Executor& executor) {
  const size_t size = tokens * layer.shape.hidden;
  const auto input = Values(size, 6, 0, UniformScale(1, 1));
  const auto residual = Values(size, 7, 0, UniformScale(1, 1));
  const Buffers buffers = engine.NewBuffers(input);
  // The first run warms pages, caches and threads.
  (void)engine.Run(buffers, residual);
  const auto dispatches = engine.Run(buffers, residual);
  std::printf("\n%zu token%s: one command buffer, %zu dispatches\n", tokens,
              program::Plural(tokens), dispatches.size());
  for (const MTL::DispatchTime& d : dispatches) {
    const MTL::Size& grid = d.threadgroups;
    std::printf("%-8s %-38s %5zu x %3zu x %3zu %10.1f us\n", d.group.c_str(),
                d.kernel.c_str(), grid.width, grid.height, grid.depth,
                (d.end - d.start) * 1e6);
  }
  program::FlushOutput();
  const float bound = engine.shader_kernels().empty() ? 0 : kShaderBound;
  if (!EqualsPlainApi(layer, input, residual, buffers, bound, executor)) {
    return false;
  }
  std::printf("equal: 9 buffers have the plain API's %s\n",
              bound == 0 ? "bits" : "values to 1e-5");
  return true;
}

int Run(const Options& options) {
  const std::shared_ptr<Executor> executor = program::MakeExecutor(options);
  const Layer layer = MakeLayer(options.full ? Shape{2048, 128, 8, 768}
                                             : Shape{256, 16, 4, 128});
  const Engine engine(layer, executor, options.shaders);
  for (const std::string& kernel : engine.shader_kernels()) {
    std::printf("%s is a shader's\n", kernel.c_str());
  }
  const bool decode = RunChain(layer, engine, 1, *executor);
  const bool prefill = RunChain(layer, engine, options.tokens, *executor);
  const size_t threads = executor->Concurrency();
  std::printf("\nRan on %s with %zu thread%s.\n", switchyard::LastIsa()->name,
              threads, program::Plural(threads));
  if (decode && prefill) return 0;
  std::fflush(stdout);
  std::fprintf(stderr, "metal_chain: the device differs from the plain API\n");
  return 1;
}

}  // namespace
}  // namespace metal_chain

int main(int argc, char** argv) {
  return program::RunMain("metal_chain", 1, [=] {
    metal_chain::Options options;
    CLI::App app(
        "Runs one Mixture-of-Experts layer as an engine for Apple Silicon "
        "chains "
        "it:\na decode token and a prefill, each in one command buffer. "
        "Compares "
        "every buffer\nwith the plain API and shows how long each dispatch "
        "took.",
        "metal_chain");
    app.add_flag("--full", options.full,
                 "A layer of Qwen3-30B-A3B: 2.25 GiB of weights");
    app.add_option("--tokens", options.tokens, "Tokens of the prefill")
        ->capture_default_str()
        ->check(CLI::Range(2, 4096))
        ->type_name("N");
    program::AddThreadOptions(app, options);
    app.add_option("--shaders", options.shaders,
                   "Kernels of .metal files for those built in")
        ->check(CLI::ExistingFile.description(""))
        ->type_name("FILE");
    return program::Parse(app, argc, argv) ? metal_chain::Run(options) : 0;
  });
}
