// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/onednn.h"

#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

namespace switchyard {
namespace bench {
namespace onednn {
namespace {

using dnnl::memory;

const dnnl::engine& Engine() {
  static const dnnl::engine engine = [] {
    omp_set_num_threads(1);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

dnnl::stream& Stream() {
  static dnnl::stream stream(Engine());
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

memory At(const memory::desc& desc, const float* data) {
  return memory(desc, Engine(), const_cast<float*>(data));
}

using Arguments = std::unordered_map<int, memory>;

}  // namespace

std::string Version() {
  const dnnl_version_t* const v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
         std::to_string(v->patch);
}

std::function<void()> Softmax(const float* in, float* out, size_t rows,
                              size_t cols) {
  const memory::desc desc = Dense({rows, cols});
  const dnnl::softmax_forward softmax(dnnl::softmax_forward::primitive_desc(
      {dnnl::prop_kind::forward_inference, desc, 1}, Engine()));
  const Arguments arguments = {{DNNL_ARG_SRC, At(desc, in)},
                               {DNNL_ARG_DST, At(desc, out)}};
  return [softmax, arguments] { softmax.execute(Stream(), arguments); };
}

std::function<void()> SiluMul(const float* gate, const float* up, float* out,
                              size_t rows, size_t cols) {
  const memory::desc desc = Dense({rows, cols});
  const dnnl::eltwise_forward swish(dnnl::eltwise_forward::primitive_desc(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::eltwise_swish, desc,
       1.0f},
      Engine()));
  const dnnl::binary product(dnnl::binary::primitive_desc(
      {dnnl::algorithm::binary_mul, desc, desc, desc}, Engine()));
  const Arguments swish_arguments = {{DNNL_ARG_SRC, At(desc, gate)},
                                     {DNNL_ARG_DST, At(desc, out)}};
  const Arguments product_arguments = {{DNNL_ARG_SRC_0, At(desc, out)},
                                       {DNNL_ARG_SRC_1, At(desc, up)},
                                       {DNNL_ARG_DST, At(desc, out)}};
  return [swish, product, swish_arguments, product_arguments] {
    swish.execute(Stream(), swish_arguments);
    product.execute(Stream(), product_arguments);
  };
}

std::function<void()> WeightedSum(const float* rows, const float* weights,
                                  const float* residual, float* out,
                                  size_t tokens, size_t top_k, size_t hidden) {
  const memory::desc left = Dense({tokens, 1, top_k});
  const memory::desc right = Dense({tokens, top_k, hidden});
  const memory::desc result = Dense({tokens, 1, hidden});
  dnnl::post_ops add;
  add.append_binary(dnnl::algorithm::binary_add, result);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(add);
  const dnnl::matmul product(dnnl::matmul::primitive_desc(
      {left, right, result}, attributes, Engine()));
  const Arguments arguments = {
      {DNNL_ARG_SRC, At(left, weights)},
      {DNNL_ARG_WEIGHTS, At(right, rows)},
      {DNNL_ARG_DST, At(result, out)},
      {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
       At(result, residual)}};
  return [product, arguments] { product.execute(Stream(), arguments); };
}

}  // namespace onednn
}  // namespace bench
}  // namespace switchyard
