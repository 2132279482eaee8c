// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/inputs.h"
#include "bench/rivals.h"

namespace switchyard::bench::onednn {
namespace {

using dnnl::memory;

const dnnl::engine& Engine() {
  static const dnnl::engine engine = [] {
    omp_set_num_threads(1);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

const dnnl::stream& Stream() {
  static const dnnl::stream stream(Engine());
  return stream;
}

// Returns the descriptor of a dense array of f32 or bf16.
memory::desc Dense(Type type, const std::vector<size_t>& sizes) {
  memory::dims dims, strides(sizes.size());
  for (const size_t size : sizes) {
    dims.push_back(static_cast<memory::dim>(size));
  }
  memory::dim stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= dims[d]) {
    strides[d] = stride;
  }
  return memory::desc(
      dims,
      type == Type::kBF16 ? memory::data_type::bf16 : memory::data_type::f32,
      strides);
}

void Check(dnnl_status_t status) {
  if (status != dnnl_success) throw std::runtime_error("oneDNN failed");
}

// Returns the descriptor of a swish. oneDNN 3 has no separate descriptor of the
// operation, and needs descriptors of both the input and the output.
dnnl::eltwise_forward::primitive_desc Swish(const memory::desc& desc) {
  const auto inference = dnnl::prop_kind::forward_inference;
  const auto swish = dnnl::algorithm::eltwise_swish;
#if DNNL_VERSION_MAJOR < 3
  return {{inference, swish, desc, 1.0f}, Engine()};
#else
  return {Engine(), inference, swish, desc, desc, 1.0f};
#endif
}

dnnl::softmax_forward::primitive_desc SoftmaxOfRows(const memory::desc& desc) {
  const auto inference = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR < 3
  return {{inference, desc, 1}, Engine()};
#else
  return {Engine(), inference, dnnl::algorithm::softmax_accurate,
          desc,     desc,      1};
#endif
}

dnnl::binary::primitive_desc Multiply(const memory::desc& desc) {
  const auto multiply = dnnl::algorithm::binary_mul;
#if DNNL_VERSION_MAJOR < 3
  return {{multiply, desc, desc, desc}, Engine()};
#else
  return {Engine(), multiply, desc, desc, desc};
#endif
}

dnnl::matmul::primitive_desc Product(const memory::desc& left,
                                     const memory::desc& right,
                                     const memory::desc& result,
                                     const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR < 3
  return {{left, right, result}, attributes, Engine()};
#else
  return {Engine(), left, right, result, attributes};
#endif
}

// An argument of a primitive: its data in the first slot, and the distance to
// its data in the next slot.
struct Argument {
  int kind;
  memory::desc desc;
  const void* data;
  size_t step = 0;  // the distance from slot to slot in bytes
};

}  // namespace

std::string Version() {
  const dnnl_version_t* const v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
         std::to_string(v->patch);
}

bool SupportsBf16() {
  static const bool supports = [] {
    try {
      Swish(Dense(Type::kBF16, {1, 16}));
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return supports;
}

struct Operations::Step {
  dnnl::primitive primitive;
  std::vector<memory> memories = {};
  std::vector<std::vector<dnnl_exec_arg_t>> slots =
      {};  // for each slot, the arguments to pass

  Step(const dnnl::primitive& made, size_t num_slots,
       const std::vector<Argument>& arguments)
      : primitive(made), slots(num_slots) {
    for (size_t slot = 0; slot < num_slots; ++slot) {
      for (const Argument& a : arguments) {
        memories.emplace_back(
            a.desc, Engine(),
            static_cast<char*>(const_cast<void*>(a.data)) + slot * a.step);
        slots[slot].push_back({a.kind, memories.back().get()});
      }
    }
  }
};

Operations::Operations(std::vector<Step> steps)
    : steps_(std::make_shared<const std::vector<Step>>(std::move(steps))) {}

void Operations::operator()(size_t slot) const {
  for (const Step& step : *steps_) {
    const std::vector<dnnl_exec_arg_t>& arguments = step.slots[slot];
    Check(dnnl_primitive_execute(step.primitive.get(), Stream().get(),
                                 static_cast<int>(arguments.size()),
                                 arguments.data()));
  }
}

Operations Softmax(Type type, size_t rows, size_t cols, size_t slots,
                   const void* in, void* out) {
  const memory::desc desc = Dense(type, {rows, cols});
  return Operations({{dnnl::softmax_forward(SoftmaxOfRows(desc)),
                      slots,
                      {{DNNL_ARG_SRC, desc, in, desc.get_size()},
                       {DNNL_ARG_DST, desc, out}}}});
}

Operations SiluMul(Type type, size_t rows, size_t cols, const void* gate,
                   const void* up, void* out) {
  const memory::desc desc = Dense(type, {rows, cols});
  return Operations({{dnnl::eltwise_forward(Swish(desc)),
                      1,
                      {{DNNL_ARG_SRC, desc, gate}, {DNNL_ARG_DST, desc, out}}},
                     {dnnl::binary(Multiply(desc)),
                      1,
                      {{DNNL_ARG_SRC_0, desc, out},
                       {DNNL_ARG_SRC_1, desc, up},
                       {DNNL_ARG_DST, desc, out}}}});
}

Operations WeightedSum(Type type, size_t tokens, size_t top_k, size_t hidden,
                       size_t slots, const void* rows, const void* weights,
                       const void* residual, void* out) {
  const memory::desc left = Dense(type, {tokens, 1, top_k});
  const memory::desc right = Dense(type, {tokens, top_k, hidden});
  const memory::desc result = Dense(type, {tokens, 1, hidden});
  dnnl::post_ops add;
  add.append_binary(dnnl::algorithm::binary_add, result);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(add);
  return Operations({{dnnl::matmul(Product(left, right, result, attributes)),
                      slots,
                      {{DNNL_ARG_SRC, left, weights, left.get_size()},
                       {DNNL_ARG_WEIGHTS, right, rows, right.get_size()},
                       {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                        result, residual, result.get_size()},
                       {DNNL_ARG_DST, result, out}}}});
}

namespace {

// Stores the weights of all slots, [slots, out, in], to `to` in the form that
// oneDNN chose for `product`. Returns them as the product's argument.
Argument PackWeights(const dnnl::matmul::primitive_desc& product,
                     memory::data_type type, const void* weights, size_t slots,
                     HugePages* to) {
  const memory::desc packed = product.weights_desc();
  const memory::desc stored(packed.dims(), type, memory::format_tag::ba);
  const size_t step =
      (packed.get_size() + kAlignment - 1) / kAlignment * kAlignment;
  *to = HugePages(slots * step);
  for (size_t slot = 0; slot < slots; ++slot) {
    const char* const at =
        static_cast<const char*>(weights) + slot * stored.get_size();
    memory from(stored, Engine(), const_cast<char*>(at));
    memory into(packed, Engine(), to->data() + slot * step);
    dnnl::reorder(from, into)
        .execute(const_cast<dnnl::stream&>(Stream()), from, into);
  }
  return {DNNL_ARG_WEIGHTS, packed, to->data(), step};
}

memory::dim Dim(size_t size) { return static_cast<memory::dim>(size); }

}  // namespace

// Takes u8 rows, because oneDNN has no fast kernel for s8 rows on CPUs without
// VNNI. Applies the columns' scales and offsets by separate operations on the
// sums, because oneDNN's attribute for the rows' zero point would read all
// weights a second time.
Operations Multiply(const Int8Product& p, HugePages* memory_of_all) {
  const auto s8 = memory::data_type::s8;
  const memory::desc rows({Dim(p.num_rows), Dim(p.in)}, memory::data_type::u8,
                          memory::format_tag::ab);
  const memory::desc out = Dense(Type::kF32, {p.num_rows, p.num_out});
  const memory::desc columns = Dense(Type::kF32, {1, p.num_out});
  dnnl::post_ops ops;
  ops.append_binary(dnnl::algorithm::binary_mul, columns);
  ops.append_binary(dnnl::algorithm::binary_add, columns);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(ops);
  const dnnl::matmul::primitive_desc made =
      Product(rows, {{Dim(p.in), Dim(p.num_out)}, s8, memory::format_tag::any},
              out, attributes);
  const auto post_op = [](int index) {
    return DNNL_ARG_ATTR_MULTIPLE_POST_OP(index) | DNNL_ARG_SRC_1;
  };
  return Operations({{dnnl::matmul(made),
                      p.slots,
                      {{DNNL_ARG_SRC, rows, p.rows},
                       PackWeights(made, s8, p.weights, p.slots, memory_of_all),
                       {post_op(0), columns, p.scales, columns.get_size()},
                       {post_op(1), columns, p.offsets, columns.get_size()},
                       {DNNL_ARG_DST, out, p.out}}}});
}

Operations Multiply(const FloatProduct& p, HugePages* memory_of_all) {
  const memory::desc rows = Dense(p.type, {p.num_rows, p.in});
  const memory::data_type type = rows.data_type();
  const memory::desc out = Dense(Type::kF32, {p.num_rows, p.num_out});
  const dnnl::matmul::primitive_desc made = Product(
      rows, {{Dim(p.in), Dim(p.num_out)}, type, memory::format_tag::any}, out,
      {});
  return Operations(
      {{dnnl::matmul(made),
        p.slots,
        {{DNNL_ARG_SRC, rows, p.rows},
         PackWeights(made, type, p.weights, p.slots, memory_of_all),
         {DNNL_ARG_DST, out, p.out}}}});
}

}  // namespace switchyard::bench::onednn
