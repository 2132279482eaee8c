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
#include "switchyard/quantize.h"
#include "testing/reference_multiply.h"

namespace moe_layer {
namespace {

using dnnl::memory;
using program::Check;
using switchyard::AnyMatrix;
using switchyard::ConstAnyMatrix;
using switchyard::ConstAnyRows;
using switchyard::Type;
using switchyard::WeightFormat;
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

// Makes oneDNN use only the calling thread. oneDNN reads OpenMP's number of
// threads when it makes a primitive, and again when it runs the primitive, so
// call this function before each of these steps. The call takes a few ns.
void UseOneThread() { omp_set_num_threads(1); }

memory::desc Rows(size_t rows, size_t cols) {
  return {{Dim(rows), Dim(cols)}, DataType::bf16, Tag::ab};
}

// Describes a matrix product. oneDNN 2 has a separate object for the operation;
// oneDNN 3 does not.
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
auto RethrowDnnlErrors(const F& f) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    throw std::runtime_error(std::string("oneDNN: ") + e.what());
  }
}

bool HasBf16() {
  const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (has & wanted) == wanted;
}

}  // namespace

Type OperandType(Type wanted) {
  if (wanted == Type::kBF16 && !HasBf16()) return Type::kF32;
  return wanted;
}

// Multiplies by packed bf16 weights. Caches a primitive for each number of
// rows, as engines do, because making a primitive takes 0.15 ms. oneDNN's fast
// kernels for packed weights need rows without gaps and a fixed number of rows;
// with DNNL_RUNTIME_DIM_VAL, oneDNN uses its slow kernel ref:any. A product of
// one row reads packed weights at 38 GB/s and plain weights at 18 GB/s (2048 x
// 1536, two Zen 5 cores).
struct Gemm::Packed {
  struct Kernel {
    dnnl::matmul primitive;
    memory::desc x, y, pad;
    std::string name;
  };
  Packed(size_t in, size_t out)
      : num_in(in),
        num_out(out),
        plain({Dim(in), Dim(out)}, DataType::bf16, Tag::ba) {
    // Packs the weights once, in the form that oneDNN chooses for one row,
    // because kernels for more rows read this form, too.
    const memory::desc any({Dim(in), Dim(out)}, DataType::bf16, Tag::any);
    weights = Describe(any, 1).weights_desc();
  }

  dnnl::matmul::primitive_desc Describe(const memory::desc& w,
                                        size_t rows) const {
    dnnl::primitive_attr attributes;
    // Each caller passes its own scratchpad, because oneDNN's default
    // scratchpad belongs to the thread that made the primitive.
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    UseOneThread();
    return Product(Rows(rows, num_in), w, Rows(rows, num_out), attributes);
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

  const size_t num_in, num_out;
  const memory::desc plain;
  memory::desc weights;
  std::mutex mutex;
  std::map<size_t, Kernel> kernels;
};

Gemm::Gemm(Type operands, size_t in, std::vector<size_t> parts,
           std::optional<WeightFormat> format)
    : operands_(operands),
      in_(in),
      out_(std::accumulate(parts.begin(), parts.end(), size_t{0})),
      parts_(std::move(parts)),
      format_(format) {
  if (format_.has_value()) {
    if (WeightBytes() == SIZE_MAX) {
      throw program::InputError("--dtype: experts' weights of " +
                                std::to_string(in) +
                                " columns, which are no multiple of its "
                                "blocks, or too many");
    }
  } else if (!TakesPlain()) {
    RethrowDnnlErrors([this] {
      packed_ = std::make_unique<Packed>(in_, out_);
      return 0;
    });
  }
}

Gemm::~Gemm() = default;

switchyard::RowFormat Gemm::row_format() const {
  if (format_.has_value()) return switchyard::OperandsOf(*format_);
  switchyard::RowFormat rows;
  rows.type = operands_;
  return rows;
}

switchyard::ExpertWeights Gemm::ViewOf(const void* data) const {
  switchyard::ExpertWeights view;
  view.format = *format_;
  view.layout = switchyard::WeightLayout::kPacked;
  view.rows = out_;
  view.cols = in_;
  view.data = {static_cast<const uint8_t*>(data), 1, ExpertWeightsSize(view)};
  return view;
}

size_t Gemm::WeightBytes() const {
  if (format_.has_value()) return ViewOf(nullptr).data.cols;
  if (TakesPlain()) return sizeof(float) * out_ * in_;
  return CacheLines(packed_->weights.get_size());
}

GemmWeights Gemm::Pack(const ConstAnyRows& plain, void* storage) const {
  GemmWeights packed;
  packed.parts[0] = storage;
  if (format_.has_value()) {
    switchyard::PackWeightsInputs inputs;
    inputs.weights.format = *format_;
    inputs.weights.rows = out_;
    inputs.weights.cols = in_;
    inputs.floats = plain;
    Check(switchyard::PackWeights(
        inputs, {{static_cast<uint8_t*>(storage), 1, WeightBytes()}}));
    return packed;
  }
  UseOneThread();
  RethrowDnnlErrors([&] {
    memory from = View(packed_->plain, plain.data);
    memory to = View(packed_->weights, storage);
    dnnl::reorder(from, to).execute(Stream(), from, to);
    return 0;
  });
  return packed;
}

void Gemm::Unpack(const GemmWeights& weights, float* plain) const {
  if (format_.has_value()) {
    const std::vector<float> values =
        switchyard::testing_support::DequantizePacked(ViewOf(weights.parts[0]),
                                                      0);
    std::copy(values.begin(), values.end(), plain);
    return;
  }
  if (TakesPlain()) {
    for (size_t p = 0; p < parts_.size(); ++p) {
      const auto* part = static_cast<const float*>(weights.parts[p]);
      plain = std::copy_n(part, parts_[p] * in_, plain);
    }
    return;
  }
  UseOneThread();
  Buffer values(SizeOf(operands_) * out_ * in_);
  RethrowDnnlErrors([&] {
    memory from = View(packed_->weights, weights.parts[0]);
    memory to = View(packed_->plain, values.data());
    dnnl::reorder(from, to).execute(Stream(), from, to);
    return 0;
  });
  Check(switchyard::Quantize(
      {ConstAnyMatrix(values.data(), operands_, out_, in_, in_)},
      {AnyMatrix(plain, out_, in_)}));
}

void Gemm::Run(const ConstAnyRows& x, const GemmWeights& weights,
               const AnyMatrix& y, GemmScratch& scratch, size_t first) const {
  if (format_.has_value()) {
    Check(switchyard::MultiplyTile(
        ViewOf(weights.parts[0]),
        {switchyard::ExpertProduct::kDown, 0, first, 0, x, y}));
    return;
  }
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
  RethrowDnnlErrors([&] {
    const Packed::Kernel& kernel = packed_->KernelOf(x.rows);
    const Arguments arguments = {
        {DNNL_ARG_SRC, View(kernel.x, x.data)},
        {DNNL_ARG_WEIGHTS, View(packed_->weights, weights.parts[0])},
        {DNNL_ARG_DST, View(kernel.y, y.data)},
        {DNNL_ARG_SCRATCHPAD,
         View(kernel.pad, scratch.pad.AtLeast<char>(kernel.pad.get_size()))}};
    UseOneThread();
    kernel.primitive.execute(Stream(), arguments);
    return 0;
  });
}

std::vector<std::string> Gemm::Kernels() const {
  if (format_.has_value()) return {"MultiplyTile"};
  if (TakesPlain()) return {"dnnl_sgemm"};
  const std::lock_guard<std::mutex> lock(packed_->mutex);
  std::set<std::string> names;
  for (const auto& [rows, kernel] : packed_->kernels) names.insert(kernel.name);
  return {names.begin(), names.end()};
}

}  // namespace moe_layer
