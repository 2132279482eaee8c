// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "gemm.h"

#include <omp.h>

#include <algorithm>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "programs/for_each.h"
#include "programs/program.h"
#include "switchyard/combine.h"
#include "switchyard/quantize.h"

namespace moe_layer {
namespace {

using dnnl::memory;
using program::Check;
using switchyard::AnyMatrix;
using switchyard::ConstAnyMatrix;
using switchyard::ConstAnyRows;
using switchyard::Type;
using Arguments = std::unordered_map<int, memory>;
using DataType = memory::data_type;
using Tag = memory::format_tag;

memory::dim Dim(size_t size) { return static_cast<memory::dim>(size); }

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& Stream() {
  thread_local dnnl::stream stream(Engine());
  return stream;
}

// OpenMP counts for the calling thread only, so it has to be said on each,
// before a primitive is made and before it is run; a few ns.
void UseOneThread() { omp_set_num_threads(1); }

memory::desc Rows(size_t rows, size_t cols, DataType type) {
  return {{Dim(rows), Dim(cols)}, type, Tag::ab};
}

// oneDNN 3 has no descriptions of operations apart from the primitives'.
dnnl::matmul::primitive_desc Product(const memory::desc& x,
                                     const memory::desc& w,
                                     const memory::desc& y,
                                     const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR < 3
  return {{x, w, y}, attributes, Engine()};
#else
  return {Engine(), x, w, y, attributes};
#endif
}

memory View(const memory::desc& desc, const void* data) {
  return {desc, Engine(), const_cast<void*>(data)};
}

template <class F>
auto Told(const F& f) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    throw std::runtime_error(std::string("oneDNN: ") + e.what());
  }
}

// oneDNN's kernels without VNNI add products up in 16 bits, which saturate: 256
// products of 127 and 127 come out as 32640.
bool Int8IsExact() {
  constexpr size_t kIn = 256;
  UseOneThread();
  return Told([&] {
    const std::vector<int8_t> x(kIn, 127);
    const std::vector<int8_t> w(kIn * 16, 127);
    std::vector<float> y(16);
    const memory::desc plain({kIn, 16}, DataType::s8, Tag::ba);
    const dnnl::matmul::primitive_desc kernel =
        Product(Rows(1, kIn, DataType::s8), plain, Rows(1, 16, DataType::f32),
                dnnl::primitive_attr());
    dnnl::matmul(kernel).execute(
        Stream(), {{DNNL_ARG_SRC, View(kernel.src_desc(), x.data())},
                   {DNNL_ARG_WEIGHTS, View(plain, w.data())},
                   {DNNL_ARG_DST, View(kernel.dst_desc(), y.data())}});
    return y[0] == 127.0f * 127.0f * kIn;
  });
}

bool HasBf16() {
  const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (has & wanted) == wanted;
}

}  // namespace

Type OperandType(Type wanted) {
  if (wanted == Type::kBF16 && !HasBf16()) return Type::kF32;
  if (wanted == Type::kI8 && !Int8IsExact()) {
    throw program::InputError(
        "--dtype int8: oneDNN's int8 GEMMs are not exact on this CPU, which "
        "has no VNNI");
  }
  return wanted;
}

// Primitives are cached by the number of rows, as engines do: one for any
// number (DNNL_RUNTIME_DIM_VAL) has no kernel for packed weights (ref:any), nor
// have rows with a stride. Making one takes 0.15 ms, once. Packed weights are
// read at 38 GB/s by one row, those as stored at 18 (2048 x 1536, two Zen 5
// cores).
struct Gemm::Packed {
  struct Kernel {
    dnnl::matmul primitive;
    memory::desc x, y, pad;
    std::string name;
  };
  Packed(Type operands, size_t in, size_t out)
      : type(operands == Type::kI8 ? DataType::s8 : DataType::bf16),
        num_in(in),
        num_out(out),
        plain({Dim(in), Dim(out)}, type, Tag::ba),
        scales({1, Dim(out)}, DataType::f32, Tag::ab) {
    // The form is the same for any number of rows; the kernels of others are
    // made to read it.
    const memory::desc any({Dim(in), Dim(out)}, type, Tag::any);
    weights = Describe(any, 1).weights_desc();
  }

  dnnl::matmul::primitive_desc Describe(const memory::desc& w,
                                        size_t rows) const {
    dnnl::primitive_attr attributes;
    // The library's own belongs to the thread that made the primitive.
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (type == DataType::s8) {
      // Scales are an argument of an operation after the product; as output
      // scales they would be part of the primitive.
      dnnl::post_ops after;
      after.append_binary(dnnl::algorithm::binary_mul, scales);
      attributes.set_post_ops(after);
    }
    UseOneThread();
    return Product(
        Rows(rows, num_in, type), w,
        Rows(rows, num_out, type == DataType::s8 ? DataType::f32 : type),
        attributes);
  }

  const Kernel& KernelOf(size_t rows) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = kernels.find(rows);
    if (found != kernels.end()) return found->second;
    const auto made = Describe(weights, rows);
    return kernels
        .emplace(rows,
                 Kernel{dnnl::matmul(made), made.src_desc(), made.dst_desc(),
                        made.scratchpad_desc(), made.impl_info_str()})
        .first->second;
  }

  const DataType type;
  const size_t num_in, num_out;
  const memory::desc plain;
  const memory::desc scales;
  memory::desc weights;
  std::mutex mutex;
  std::map<size_t, Kernel> kernels;
};

Gemm::Gemm(Type operands, size_t in, std::vector<size_t> parts)
    : operands_(operands),
      in_(in),
      out_(std::accumulate(parts.begin(), parts.end(), size_t{0})),
      parts_(std::move(parts)) {
  if (TakesPlain()) return;
  Told([this] {
    packed_ = std::make_unique<Packed>(operands_, in_, out_);
    return 0;
  });
}

Gemm::~Gemm() = default;

size_t Gemm::WeightBytes() const {
  if (TakesPlain()) return sizeof(float) * out_ * in_;
  const size_t scales = operands_ == Type::kI8 ? sizeof(float) * out_ : 0;
  return CacheLines(packed_->weights.get_size()) + CacheLines(scales);
}

GemmWeights Gemm::Pack(const ConstAnyRows& plain, void* storage) const {
  GemmWeights packed;
  UseOneThread();
  Told([&] {
    memory from = View(packed_->plain, plain.data);
    memory to = View(packed_->weights, storage);
    dnnl::reorder(from, to).execute(Stream(), from, to);
    return 0;
  });
  packed.parts[0] = storage;
  if (operands_ == Type::kI8) {
    auto* scales = reinterpret_cast<float*>(
        static_cast<char*>(storage) + CacheLines(packed_->weights.get_size()));
    for (size_t o = 0; o < out_; ++o) scales[o] = *plain.scales.Row<float>(o);
    packed.scales = scales;
  }
  return packed;
}

void Gemm::Unpack(const GemmWeights& weights, float* plain) const {
  if (TakesPlain()) {
    for (size_t p = 0; p < parts_.size(); ++p) {
      const auto* part = static_cast<const float*>(weights.parts[p]);
      plain = std::copy_n(part, parts_[p] * in_, plain);
    }
    return;
  }
  UseOneThread();
  Buffer values(SizeOf(operands_) * out_ * in_);
  Told([&] {
    memory from = View(packed_->weights, weights.parts[0]);
    memory to = View(packed_->plain, values.data());
    dnnl::reorder(from, to).execute(Stream(), from, to);
    return 0;
  });
  ConstAnyMatrix scales;
  if (weights.scales != nullptr) scales = {weights.scales, out_, 1};
  Check(switchyard::Quantize(
      {{{values.data(), operands_, out_, in_, in_}, scales}},
      {AnyMatrix(plain, out_, in_)}));
}

void Gemm::Run(const ConstAnyRows& x, const GemmWeights& weights,
               const AnyMatrix& y, GemmScratch& scratch, size_t first) const {
  if (TakesPlain()) {
    UseOneThread();
    size_t part_begin = 0;
    for (size_t p = 0; p < parts_.size(); ++p) {
      const size_t part_end = part_begin + parts_[p];
      const size_t begin = std::max(first, part_begin);
      const size_t end = std::min(first + y.cols, part_end);
      if (begin < end) {
        const auto* const part = static_cast<const float*>(weights.parts[p]);
        const dnnl::status status = dnnl::sgemm(
            'N', 'T', Dim(x.rows), Dim(end - begin), Dim(in_), 1.0f,
            x.Row<float>(0), Dim(x.stride), part + (begin - part_begin) * in_,
            Dim(in_), 0.0f, y.Row<float>(0) + (begin - first), Dim(y.stride));
        if (status != dnnl::status::success) {
          throw std::runtime_error("oneDNN: GEMM failed");
        }
      }
      part_begin = part_end;
    }
    return;
  }
  const bool scaled = operands_ == Type::kI8;
  AnyMatrix product = y;
  if (scaled) {
    product = {scratch.sums.AtLeast<float>(x.rows * out_), x.rows, out_};
  }
  Told([&] {
    const Packed::Kernel& kernel = packed_->KernelOf(x.rows);
    Arguments arguments = {
        {DNNL_ARG_SRC, View(kernel.x, x.data)},
        {DNNL_ARG_WEIGHTS, View(packed_->weights, weights.parts[0])},
        {DNNL_ARG_DST, View(kernel.y, product.data)},
        {DNNL_ARG_SCRATCHPAD,
         View(kernel.pad, scratch.pad.AtLeast<char>(kernel.pad.get_size()))}};
    if (scaled) {
      arguments.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                        View(packed_->scales, weights.scales));
    }
    UseOneThread();
    kernel.primitive.execute(Stream(), arguments);
    return 0;
  });
  if (scaled) {  // each row by its own, rounded to y's type
    Check(switchyard::Combine(
        {product, x.scales, switchyard::RowIndex::kTokenOrder}, {y}));
  }
}

std::vector<std::string> Gemm::Kernels() const {
  if (TakesPlain()) return {"dnnl_sgemm"};
  const std::lock_guard<std::mutex> lock(packed_->mutex);
  std::set<std::string> names;
  for (const auto& [rows, kernel] : packed_->kernels) names.insert(kernel.name);
  return {names.begin(), names.end()};
}

}  // namespace moe_layer
