// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include <omp.h>

#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

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

memory::desc Dense(const std::vector<size_t>& sizes) {
  memory::dims dims, strides(sizes.size());
  for (const size_t size : sizes) {
    dims.push_back(static_cast<memory::dim>(size));
  }
  memory::dim stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= dims[d]) {
    strides[d] = stride;
  }
  return memory::desc(dims, memory::data_type::f32, strides);
}

// A primitive with its arguments, which are told anew where their data is.
class Operation {
 public:
  Operation(const dnnl::primitive& primitive,
            const std::vector<std::pair<int, memory::desc>>& arguments)
      : primitive_(primitive) {
    for (const auto& argument : arguments) {
      memories_.push_back(memory(argument.second, Engine(), nullptr));
      arguments_.push_back({argument.first, memories_.back().get()});
    }
  }

  // `data` in the order of the arguments.
  void operator()(std::initializer_list<const float*> data) const {
    size_t i = 0;
    for (const float* pointer : data) {
      Check(dnnl_memory_set_data_handle_v2(
          arguments_[i++].memory, const_cast<float*>(pointer), Stream().get()));
    }
    Check(dnnl_primitive_execute(primitive_.get(), Stream().get(),
                                 static_cast<int>(arguments_.size()),
                                 arguments_.data()));
  }

 private:
  static void Check(dnnl_status_t status) {
    if (status != dnnl_success) throw std::runtime_error("oneDNN failed");
  }

  dnnl::primitive primitive_;
  std::vector<memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace

std::string Version() {
  const dnnl_version_t* const v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
         std::to_string(v->patch);
}

std::function<void(const float*, float*)> Softmax(size_t rows, size_t cols) {
  const memory::desc desc = Dense({rows, cols});
  const Operation softmax(
      dnnl::softmax_forward(dnnl::softmax_forward::primitive_desc(
          {dnnl::prop_kind::forward_inference, desc, 1}, Engine())),
      {{DNNL_ARG_SRC, desc}, {DNNL_ARG_DST, desc}});
  return [softmax](const float* in, float* out) { softmax({in, out}); };
}

std::function<void(const float*, const float*, float*)> SiluMul(size_t rows,
                                                                size_t cols) {
  const memory::desc desc = Dense({rows, cols});
  const Operation swish(
      dnnl::eltwise_forward(dnnl::eltwise_forward::primitive_desc(
          {dnnl::prop_kind::forward_inference, dnnl::algorithm::eltwise_swish,
           desc, 1.0f},
          Engine())),
      {{DNNL_ARG_SRC, desc}, {DNNL_ARG_DST, desc}});
  const Operation product(
      dnnl::binary(dnnl::binary::primitive_desc(
          {dnnl::algorithm::binary_mul, desc, desc, desc}, Engine())),
      {{DNNL_ARG_SRC_0, desc}, {DNNL_ARG_SRC_1, desc}, {DNNL_ARG_DST, desc}});
  return [swish, product](const float* gate, const float* up, float* out) {
    swish({gate, out});
    product({out, up, out});
  };
}

std::function<void(const float*, const float*, const float*, float*)>
WeightedSum(size_t tokens, size_t top_k, size_t hidden) {
  const memory::desc left = Dense({tokens, 1, top_k});
  const memory::desc right = Dense({tokens, top_k, hidden});
  const memory::desc result = Dense({tokens, 1, hidden});
  dnnl::post_ops add;
  add.append_binary(dnnl::algorithm::binary_add, result);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(add);
  const Operation product(
      dnnl::matmul(dnnl::matmul::primitive_desc({left, right, result},
                                                attributes, Engine())),
      {{DNNL_ARG_SRC, left},
       {DNNL_ARG_WEIGHTS, right},
       {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, result},
       {DNNL_ARG_DST, result}});
  return [product](const float* rows, const float* weights,
                   const float* residual, float* out) {
    product({weights, rows, residual, out});
  };
}

}  // namespace switchyard::bench::onednn
