// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/ggml.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace switchyard::bench::ggml {
namespace {

constexpr size_t kMaxNodes = 256;  // operations, views, inputs

template <class T>
T* Made(T* object) {
  if (object == nullptr) throw std::runtime_error("ggml: out of memory");
  return object;
}

template <auto free>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};

// One for each number of threads.
using Pool = std::unique_ptr<ggml_threadpool, Free<ggml_threadpool_free>>;
std::map<int, Pool>& Pools() {
  static std::map<int, Pool> pools;
  return pools;
}
ggml_threadpool* PoolOf(int threads) {
  Pool& pool = Pools()[threads];
  if (pool == nullptr) {
    ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    params.paused = true;  // until the first call
    pool.reset(Made(ggml_threadpool_new(&params)));
  }
  return pool.get();
}

// Operations in the order in which they are added. Inputs and outputs are the
// caller's memory; what lies between them shares memory as in llama.cpp, by the
// same allocator.
class Graph {
 public:
  explicit Graph(size_t threads)
      : context_(
            Made(ggml_init({kMaxNodes * ggml_tensor_overhead() +
                                ggml_graph_overhead_custom(kMaxNodes, false),
                            nullptr, /*no_alloc=*/true}))),
        graph_(ggml_new_graph_custom(context_.get(), kMaxNodes, false)),
        threads_(static_cast<int>(threads)) {}

  ggml_context* context() const { return context_.get(); }

  // Sizes from the innermost on.
  ggml_tensor* Input(ggml_type type, std::initializer_list<size_t> sizes) {
    std::vector<int64_t> dims;
    for (const size_t size : sizes) dims.push_back(static_cast<int64_t>(size));
    return External(ggml_new_tensor(
        context(), type, static_cast<int>(dims.size()), dims.data()));
  }
  ggml_tensor* Add(ggml_tensor* node) {
    ggml_build_forward_expand(graph_, node);
    return node;
  }
  ggml_tensor* AddOutput(ggml_tensor* node) { return External(Add(node)); }

  // When all are added.
  void Plan() {
    allocator_.reset(Made(ggml_gallocr_new(ggml_backend_cpu_buffer_type())));
    if (!ggml_gallocr_alloc_graph(allocator_.get(), graph_)) {
      throw std::runtime_error("ggml: out of memory");
    }
    plan_ = ggml_graph_plan(graph_, threads_, PoolOf(threads_));
    work_.resize(plan_.work_size);
    plan_.work_data = work_.data();
  }

  void Compute() {
    if (ggml_graph_compute(graph_, &plan_) != GGML_STATUS_SUCCESS) {
      throw std::runtime_error("ggml failed");
    }
  }

 private:
  // Memory that the allocator leaves alone: each call says which.
  static ggml_tensor* External(ggml_tensor* tensor) {
    static char placeholder;
    tensor->data = &placeholder;
    return tensor;
  }

  std::unique_ptr<ggml_context, Free<ggml_free>> context_;
  ggml_cgraph* graph_;
  int threads_;
  std::unique_ptr<std::remove_pointer_t<ggml_gallocr_t>,
                  Free<ggml_gallocr_free>>
      allocator_;
  std::vector<uint8_t> work_;
  ggml_cplan plan_ = {};
};

void Set(ggml_tensor* tensor, const void* data) {
  tensor->data = const_cast<void*>(data);
}

int64_t Int(size_t size) { return static_cast<int64_t>(size); }

}  // namespace

bool Available() { return true; }

void Rest() {
  // This one is ggml's if the package was built with OpenMP.
  omp_pause_resource_all(omp_pause_soft);
  for (const auto& pool : Pools()) ggml_threadpool_pause(pool.second.get());
}

std::string Version() {
  return std::string(ggml_version()) + " " + ggml_commit() +
         (ggml_cpu_has_avx512() != 0 ? " AVX512" : "");
}

Router Route(size_t tokens, size_t experts, size_t top_k, bool renormalize,
             size_t threads) {
  const auto graph = std::make_shared<Graph>(threads);
  ggml_context* const c = graph->context();
  ggml_tensor* const logits = graph->Input(GGML_TYPE_F32, {experts, tokens});
  ggml_tensor* const probabilities = ggml_soft_max(c, logits);
  ggml_tensor* const ids =
      ggml_argsort_top_k(c, probabilities, static_cast<int>(top_k));
  ggml_tensor* weights = ggml_get_rows(
      c, ggml_reshape_3d(c, probabilities, 1, Int(experts), Int(tokens)), ids);
  if (renormalize) {
    weights = ggml_reshape_2d(c, weights, Int(top_k), Int(tokens));
    ggml_tensor* const sum =
        ggml_clamp(c, ggml_sum_rows(c, weights), 6.103515625e-5f, INFINITY);
    weights = ggml_div(c, weights, sum);
  }
  graph->AddOutput(weights);
  ggml_set_output(ids->view_src);  // read after the call
  graph->Plan();
  return {[=](const float* in, float* out) {
            Set(logits, in);
            Set(weights, out);
            graph->Compute();
          },
          [=](int32_t* to) {
            for (size_t t = 0; t < tokens; ++t) {
              std::memcpy(to + t * top_k,
                          static_cast<const char*>(ids->data) + t * ids->nb[1],
                          top_k * sizeof(int32_t));
            }
          }};
}

std::function<void(const float*, const int32_t*, float*)> GatherRows(
    size_t tokens, size_t rows, size_t hidden, size_t threads) {
  const auto graph = std::make_shared<Graph>(threads);
  ggml_tensor* const in = graph->Input(GGML_TYPE_F32, {hidden, tokens});
  ggml_tensor* const index = graph->Input(GGML_TYPE_I32, {rows});
  ggml_tensor* const out =
      graph->AddOutput(ggml_get_rows(graph->context(), in, index));
  graph->Plan();
  return [=](const float* from, const int32_t* which, float* to) {
    Set(in, from);
    Set(index, which);
    Set(out, to);
    graph->Compute();
  };
}

std::function<void(const void*, const void*, void*)> SiluMul(Type type,
                                                             size_t rows,
                                                             size_t cols,
                                                             size_t threads) {
  const auto graph = std::make_shared<Graph>(threads);
  const ggml_type t = type == Type::kF16 ? GGML_TYPE_F16 : GGML_TYPE_F32;
  ggml_tensor* const gate = graph->Input(t, {cols, rows});
  ggml_tensor* const up = graph->Input(t, {cols, rows});
  ggml_tensor* const out =
      graph->AddOutput(ggml_swiglu_split(graph->context(), gate, up));
  graph->Plan();
  return [=](const void* g, const void* u, void* o) {
    Set(gate, g);
    Set(up, u);
    Set(out, o);
    graph->Compute();
  };
}

std::function<void(const CombineArgs&)> Combine(size_t tokens, size_t top_k,
                                                size_t hidden, float eps,
                                                size_t threads) {
  const auto graph = std::make_shared<Graph>(threads);
  ggml_context* const c = graph->context();
  ggml_tensor* const rows =
      graph->Input(GGML_TYPE_F32, {hidden, top_k, tokens});
  ggml_tensor* const weights = graph->Input(GGML_TYPE_F32, {1, top_k, tokens});
  ggml_tensor* const residual = graph->Input(GGML_TYPE_F32, {hidden, tokens});
  ggml_tensor* const norm_weight = graph->Input(GGML_TYPE_F32, {hidden});
  ggml_tensor* const weighted = graph->Add(ggml_mul(c, rows, weights));
  std::vector<ggml_tensor*> slots;
  for (size_t s = 0; s < top_k; ++s) {
    slots.push_back(
        graph->Add(ggml_view_2d(c, weighted, Int(hidden), Int(tokens),
                                weighted->nb[2], s * weighted->nb[1])));
  }
  ggml_tensor* sum = slots[0];
  for (size_t s = 1; s < top_k; ++s) {
    sum = graph->Add(ggml_add(c, sum, slots[s]));
  }
  if (top_k == 1) sum = ggml_cont(c, sum);
  ggml_tensor* const out = graph->AddOutput(ggml_add(c, sum, residual));
  ggml_tensor* const normed =
      graph->AddOutput(ggml_mul(c, ggml_rms_norm(c, out, eps), norm_weight));
  graph->Plan();
  return [=](const CombineArgs& args) {
    Set(rows, args.rows);
    Set(weights, args.weights);
    Set(residual, args.residual);
    Set(norm_weight, args.norm_weight);
    Set(out, args.out);
    Set(normed, args.normed);
    graph->Compute();
  };
}

}  // namespace switchyard::bench::ggml
