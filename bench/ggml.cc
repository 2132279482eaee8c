// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/ggml.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/weights.h"

namespace switchyard::bench::ggml {
namespace {

constexpr size_t kMaxNodes = 256;  // room for operations, views and inputs

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

// Returns the thread pools, one for each number of threads.
using Pool = std::unique_ptr<ggml_threadpool, Free<ggml_threadpool_free>>;
std::map<int, Pool>& Pools() {
  static std::map<int, Pool> pools;
  return pools;
}
ggml_threadpool* PoolOf(int threads) {
  Pool& pool = Pools()[threads];
  if (pool == nullptr) {
    ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    params.paused = true;  // the first call wakes the threads
    pool.reset(Made(ggml_threadpool_new(&params)));
  }
  return pool.get();
}

// A graph of operations, which run in the order of Add(). Inputs and outputs
// are the caller's memory. Intermediate results share memory as in llama.cpp,
// because the same allocator places them.
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

  // Adds an input. `sizes` start with the innermost dimension.
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

  // Plans the graph. Call this after all operations are added.
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
  // Marks a tensor that the allocator must not place. Each call of the graph
  // sets its address.
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

// Multiplies each token's rows [hidden, top_k, tokens] by their weights, and
// adds them up.
ggml_tensor* AddWeighted(Graph& graph, ggml_tensor* rows,
                         ggml_tensor* weights) {
  ggml_context* const c = graph.context();
  ggml_tensor* const weighted = graph.Add(ggml_mul(c, rows, weights));
  const int64_t top_k = rows->ne[1];
  std::vector<ggml_tensor*> slots;
  for (int64_t s = 0; s < top_k; ++s) {
    slots.push_back(graph.Add(
        ggml_view_2d(c, weighted, rows->ne[0], rows->ne[2], weighted->nb[2],
                     static_cast<size_t>(s) * weighted->nb[1])));
  }
  ggml_tensor* sum = slots[0];
  for (size_t s = 1; s < slots.size(); ++s) {
    sum = graph.Add(ggml_add(c, sum, slots[s]));
  }
  return top_k == 1 ? ggml_cont(c, sum) : sum;
}

constexpr std::pair<WeightFormat, ggml_type> kTypes[] = {
    {WeightFormat::kQ8_0, GGML_TYPE_Q8_0},
    {WeightFormat::kQ4_0, GGML_TYPE_Q4_0},
    {WeightFormat::kMXFP4, GGML_TYPE_MXFP4},
    {WeightFormat::kQ4_K, GGML_TYPE_Q4_K},
    {WeightFormat::kQ6_K, GGML_TYPE_Q6_K},
    {WeightFormat::kF32, GGML_TYPE_F32},
    {WeightFormat::kBF16, GGML_TYPE_BF16},
    {WeightFormat::kF16, GGML_TYPE_F16}};

ggml_type TypeOf(WeightFormat format) {
  for (const auto& [ours, type] : kTypes) {
    if (ours == format) return type;
  }
  throw std::runtime_error("ggml has no such format");
}

// Returns the CPU's buffer type for repacked weights, which llama.cpp tries
// before the plain buffer type. Returns null if ggml was built without it.
ggml_backend_buffer_type_t RepackType() {
  ggml_backend_reg_t const cpu = ggml_backend_cpu_reg();
  const auto extra = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
      ggml_backend_reg_get_proc_address(cpu,
                                        "ggml_backend_dev_get_extra_bufts"));
  if (extra == nullptr) return nullptr;
  ggml_backend_buffer_type_t* type = extra(ggml_backend_reg_dev_get(cpu, 0));
  for (; type != nullptr && *type != nullptr; ++type) {
    if (std::strcmp(ggml_backend_buft_name(*type), "CPU_REPACK") == 0) {
      return *type;
    }
  }
  return nullptr;
}

using Context = std::unique_ptr<ggml_context, Free<ggml_free>>;
Context NewContext(size_t tensors) {
  return Context(Made(ggml_init(
      {tensors * ggml_tensor_overhead(), nullptr, /*no_alloc=*/true})));
}

}  // namespace

// The weights [experts, rows, cols] in ggml's form.
class Loaded {
 public:
  Loaded(WeightFormat format, size_t experts, size_t rows, size_t cols)
      : context_(NewContext(1)),
        tensor_(ggml_new_tensor_3d(context_.get(), TypeOf(format), Int(cols),
                                   Int(rows), Int(experts))) {}

  void Use(const void* stored) { Set(tensor_, stored); }
  // Allocates the tensor in a ggml buffer for repacked weights. Returns false
  // if ggml does not repack such a tensor on this CPU.
  bool UseRepacked() {
    ggml_backend_buffer_type_t const type = RepackType();
    if (type == nullptr) return false;
    buffer_.reset(Made(ggml_backend_buft_alloc_buffer(
        type, ggml_backend_buft_get_alloc_size(type, tensor_))));
    void* const base = ggml_backend_buffer_get_base(buffer_.get());
    UseHugePages(base, ggml_backend_buffer_get_size(buffer_.get()));
    if (ggml_backend_tensor_alloc(buffer_.get(), tensor_, base) !=
        GGML_STATUS_SUCCESS) {
      throw std::runtime_error("ggml: out of memory");
    }
    return tensor_->extra != nullptr;
  }
  void Repack(const void* stored) {
    if (!UseRepacked()) throw std::runtime_error("ggml does not repack these");
    ggml_backend_tensor_set(tensor_, stored, 0, ggml_nbytes(tensor_));
  }

  ggml_tensor* tensor() const { return tensor_; }
  // Makes a tensor for one expert. Before each product, the caller sets the
  // tensor's `data` to DataOf() of an expert.
  ggml_tensor* NewExpert(ggml_context* context) const {
    ggml_tensor* const expert = ggml_new_tensor_2d(
        context, tensor_->type, tensor_->ne[0], tensor_->ne[1]);
    expert->buffer = tensor_->buffer;
    expert->extra = tensor_->extra;
    expert->data = tensor_->data;
    return expert;
  }
  void* DataOf(size_t expert) const {
    return static_cast<char*>(tensor_->data) + expert * tensor_->nb[2];
  }

 private:
  Context context_;
  ggml_tensor* tensor_;
  std::unique_ptr<std::remove_pointer_t<ggml_backend_buffer_t>,
                  Free<ggml_backend_buffer_free>>
      buffer_;
};

bool Available() {
  static const bool is_quiet = [] {
    // Silences ggml, which logs a line on stderr for each repacked tensor.
    ggml_log_set(
        [](ggml_log_level level, const char* text, void*) {
          if (level >= GGML_LOG_LEVEL_WARN) std::fputs(text, stderr);
        },
        nullptr);
    return true;
  }();
  return is_quiet;
}

void Rest() {
  // Pauses OpenMP's threads, too, because ggml may have been built with OpenMP.
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
  // Keeps the memory of the ids, because they are read after the call.
  ggml_set_output(ids->view_src);
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
  ggml_tensor* const sum = AddWeighted(*graph, rows, weights);
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

bool Has(WeightFormat format) {
  return std::any_of(std::begin(kTypes), std::end(kTypes),
                     [&](const auto& type) { return type.first == format; });
}

bool Repacks(WeightFormat format, size_t rows, size_t cols) {
  return Loaded(format, 1, rows, cols).UseRepacked();
}

std::shared_ptr<const Loaded> Load(const ExpertWeights& stored, bool repacked) {
  const auto loaded = std::make_shared<Loaded>(stored.format, stored.data.rows,
                                               stored.rows, stored.cols);
  if (repacked) {
    loaded->Repack(stored.data.data);
  } else {
    loaded->Use(stored.data.data);
  }
  return loaded;
}

std::function<void(size_t, const float*, float*)> Multiply(
    std::shared_ptr<const Loaded> weights, size_t rows, size_t threads) {
  const auto graph = std::make_shared<Graph>(threads);
  ggml_tensor* const expert = weights->NewExpert(graph->context());
  ggml_tensor* const in =
      graph->Input(GGML_TYPE_F32, {static_cast<size_t>(expert->ne[0]), rows});
  ggml_tensor* const out =
      graph->AddOutput(ggml_mul_mat(graph->context(), expert, in));
  graph->Plan();
  return [=](size_t which, const float* from, float* to) {
    expert->data = weights->DataOf(which);
    Set(in, from);
    Set(out, to);
    graph->Compute();
  };
}

std::function<void(const ExpertsArgs&)> Experts(const ExpertsWeights& experts,
                                                size_t tokens, size_t top_k,
                                                size_t threads) {
  const auto graph = std::make_shared<Graph>(threads);
  ggml_context* const c = graph->context();
  const auto width = static_cast<size_t>(experts.gate->tensor()->ne[0]);
  ggml_tensor* const hidden = graph->Input(GGML_TYPE_F32, {width, 1, tokens});
  ggml_tensor* const ids = graph->Input(GGML_TYPE_I32, {top_k, tokens});
  ggml_tensor* const weights = graph->Input(GGML_TYPE_F32, {1, top_k, tokens});
  ggml_tensor* const residual = graph->Input(GGML_TYPE_F32, {width, tokens});
  ggml_tensor* const up =
      graph->Add(ggml_mul_mat_id(c, experts.up->tensor(), hidden, ids));
  ggml_tensor* const gate =
      graph->Add(ggml_mul_mat_id(c, experts.gate->tensor(), hidden, ids));
  ggml_tensor* const rows = graph->Add(ggml_mul_mat_id(
      c, experts.down->tensor(), ggml_swiglu_split(c, gate, up), ids));
  ggml_tensor* const sum = AddWeighted(*graph, rows, weights);
  ggml_tensor* const out = graph->AddOutput(ggml_add(c, sum, residual));
  graph->Plan();
  return [=](const ExpertsArgs& args) {
    Set(hidden, args.hidden);
    Set(ids, args.ids);
    Set(weights, args.weights);
    Set(residual, args.residual);
    Set(out, args.out);
    // The lambda keeps the experts alive, because the graph refers to their
    // memory.
    static_cast<void>(experts);
    graph->Compute();
  };
}

}  // namespace switchyard::bench::ggml
