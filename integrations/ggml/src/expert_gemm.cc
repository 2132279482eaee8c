// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "expert_gemm.h"

#include <omp.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>
#include <unordered_map>

#include "choice.h"

namespace switchyard_ggml {
namespace {

using dnnl::memory;
using switchyard::Type;
using DataType = memory::data_type;
using Tag = memory::format_tag;

constexpr size_t kAlignment = 64;

// The engine is never destroyed, because other threads may still run at exit.
const dnnl::engine& Engine() {
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::stream& Stream() {
  thread_local dnnl::stream stream(Engine());
  return stream;
}

memory::dim Dim(size_t size) { return static_cast<memory::dim>(size); }

struct Kernel {
  dnnl::matmul primitive;
  memory::desc x, weights, y, bias, pad;
};

Kernel MakeKernel(const GemmShape& shape) {
  const DataType type =
      shape.operands == Type::kBF16 ? DataType::bf16 : DataType::f32;
  const memory::desc x({Dim(shape.rows), Dim(shape.in)}, type, Tag::ab);
  const memory::desc w({Dim(shape.in), Dim(shape.out)}, type, Tag::ba);
  const memory::desc y({Dim(shape.rows), Dim(shape.out)}, DataType::f32,
                       Tag::ab);
  const memory::desc bias({1, Dim(shape.out)}, DataType::f32, Tag::ab);
  dnnl::primitive_attr attributes;
  // The caller passes the scratchpad, because oneDNN's default scratchpad
  // belongs to the thread that made the primitive.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  // oneDNN 3 no longer has operation descriptors. An empty descriptor means
  // no bias.
  const memory::desc added = shape.has_bias ? bias : memory::desc();
#if DNNL_VERSION_MAJOR < 3
  const dnnl::matmul::primitive_desc made({x, w, added, y}, attributes,
                                          Engine());
#else
  const dnnl::matmul::primitive_desc made(Engine(), x, w, added, y, attributes);
#endif
  return {dnnl::matmul(made), x, w, y, bias, made.scratchpad_desc()};
}

// Returns the kernel for a shape, and makes it at the first call. Each number
// of rows has its own kernel, because oneDNN's kernels for any number of rows
// are slow. A program needs a few hundred kernels at most. The returned
// reference stays valid.
const Kernel& KernelOf(const GemmShape& shape) {
  static auto* mutex = new std::mutex;
  static auto* kernels = new std::map<GemmShape, Kernel>;
  const std::lock_guard<std::mutex> lock(*mutex);
  const auto found = kernels->find(shape);
  if (found != kernels->end()) return found->second;
  return kernels->emplace(shape, MakeKernel(shape)).first->second;
}

memory View(const memory::desc& desc, const void* data) {
  return {desc, Engine(), const_cast<void*>(data)};
}

// Makes oneDNN use one thread while an object of this class exists. oneDNN
// asks OpenMP for the number of threads, which the constructor sets to 1 for
// the calling thread. The destructor restores the number, because outside of
// a parallel region the setting would stay.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

}  // namespace

void Scratch::Free::operator()(void* data) const { std::free(data); }

void* Scratch::Bytes(size_t size) {
  if (size > size_ || data_ == nullptr) {
    const size_t rounded = (size / kAlignment + 1) * kAlignment;
    data_.reset();
    size_ = 0;
    data_.reset(std::aligned_alloc(kAlignment, rounded));
    if (data_ == nullptr) throw std::bad_alloc();
    size_ = rounded;
  }
  return data_.get();
}

bool GemmShape::operator<(const GemmShape& other) const {
  const auto key = [](const GemmShape& s) {
    return std::tie(s.rows, s.in, s.out, s.operands, s.has_bias);
  };
  return key(*this) < key(other);
}

void RunGemm(const GemmShape& shape, const void* x, const void* weights,
             const float* bias, float* y, Scratch& scratch) {
  const OneThread one_thread;
  const Kernel& kernel = KernelOf(shape);
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, View(kernel.x, x)},
      {DNNL_ARG_WEIGHTS, View(kernel.weights, weights)},
      {DNNL_ARG_DST, View(kernel.y, y)},
      {DNNL_ARG_SCRATCHPAD,
       View(kernel.pad, scratch.AtLeast<char>(kernel.pad.get_size()))}};
  if (shape.has_bias) arguments.emplace(DNNL_ARG_BIAS, View(kernel.bias, bias));
  kernel.primitive.execute(Stream(), arguments);
}

Type OperandType(Type type) {
  const bool is_bf16 = type == Type::kBF16 && ThisCpu() == Cpu::kAvx512Bf16;
  return is_bf16 ? Type::kBF16 : Type::kF32;
}

}  // namespace switchyard_ggml
