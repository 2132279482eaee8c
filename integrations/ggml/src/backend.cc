// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The backend that ggml loads. It has the type ACCEL and uses the CPU's
// memory. It claims nodes of a graph that may belong to a Mixture-of-Experts
// layer (claims.h), and computes chains of them (patterns.h). It also claims
// products of matrices, such as attention's projections.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include "choice.h"
#include "claims.h"
#include "ggml-backend-impl.h"
#include "ggml-impl.h"
#include "patterns.h"
#include "report.h"
#include "run.h"
#include "switchyard/openmp_executor.h"
#include "weights.h"

#ifndef SWITCHYARD_GGML_API_VERSION  // a test may set another one
#define SWITCHYARD_GGML_API_VERSION GGML_BACKEND_API_VERSION
#endif

namespace switchyard_ggml {
namespace {

constexpr char kName[] = "Switchyard";
constexpr char kPackingName[] = "Switchyard packing";

// The state of a backend. `cpu` is ggml's CPU backend. It runs claimed nodes
// that are in no chain, unless their weights are packed.
struct Context {
  ggml_backend_t cpu = nullptr;
  int num_threads = 1;
  std::shared_ptr<Workspace> workspace = MakeWorkspace();

  ~Context() { ggml_backend_free(cpu); }
};

Context& ContextOf(ggml_backend_t backend) {
  return *static_cast<Context*>(backend->context);
}

double Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// Calls compute(executor). Turns an exception into the error "out of memory",
// because only a lack of memory throws.
template <class F>
switchyard::Status Try(const Context& context, const F& compute) {
  switchyard::OpenMpExecutor executor(static_cast<size_t>(context.num_threads));
  try {
    return compute(executor);
  } catch (const std::exception&) {
    return {switchyard::StatusCode::kOutOfMemory, "no memory"};
  }
}

// True for a product that the plug-in computes if it is in no chain: a product
// with packed weights, which the CPU backend cannot read, or of a matrix.
bool IsLoneProduct(const ggml_tensor* t) {
  return (t->op == GGML_OP_MUL_MAT_ID && IsPacked(t->src[0])) ||
         IsDenseProduct(t);
}

ggml_status RunLoneProduct(Context& context, const ggml_tensor* node) {
  const double start = Reporting() ? Now() : 0.0;
  const switchyard::Status done = Try(context, [&](auto& executor) {
    return RunProduct(node, executor, *context.workspace);
  });
  if (!done.ok()) {
    GGML_LOG_ERROR("switchyard: %s: %s\n", node->name, done.message());
    return GGML_STATUS_FAILED;
  }
  if (Reporting()) RecordProduct(node, Now() - start);
  return GGML_STATUS_SUCCESS;
}

// Runs nodes [begin, end), which are in no chain, on the CPU backend.
ggml_status RunRest(Context& context, const ggml_cgraph& graph, int begin,
                    int end) {
  const int computed = static_cast<int>(
      std::count_if(graph.nodes + begin, graph.nodes + end,
                    [](const ggml_tensor* t) { return !IsViewOp(t); }));
  if (computed == 0) return GGML_STATUS_SUCCESS;
  const double start = Reporting() ? Now() : 0.0;
  ggml_cgraph part = graph;
  part.nodes += begin;
  part.n_nodes = end - begin;
  part.uid = 0;
  const ggml_status status = ggml_backend_graph_compute(context.cpu, &part);
  if (Reporting()) RecordRest(computed, Now() - start);
  return status;
}

// Runs nodes [begin, end) one by one: lone products by the plug-in, and all
// other nodes by the CPU backend.
ggml_status RunNodes(Context& context, const ggml_cgraph& graph, int begin,
                     int end) {
  int first = begin;
  for (int i = begin; i < end; ++i) {
    if (!IsLoneProduct(graph.nodes[i])) continue;
    ggml_status status = RunRest(context, graph, first, i);
    if (status != GGML_STATUS_SUCCESS) return status;
    status = RunLoneProduct(context, graph.nodes[i]);
    if (status != GGML_STATUS_SUCCESS && !IsPacked(graph.nodes[i]->src[0])) {
      status = RunRest(context, graph, i, i + 1);
    }
    if (status != GGML_STATUS_SUCCESS) return status;
    first = i + 1;
  }
  return RunRest(context, graph, first, end);
}

// Runs the chain. If the chain fails, runs its nodes one by one.
template <class C>
ggml_status RunChain(Context& context, const ggml_cgraph& graph,
                     const C& chain) {
  const double start = Reporting() ? Now() : 0.0;
  const switchyard::Status done = Try(context, [&](auto& executor) {
    return Run(chain, executor, *context.workspace);
  });
  const ggml_status status =
      done.ok() ? GGML_STATUS_SUCCESS
                : RunNodes(context, graph, chain.begin, chain.end);
  if (Reporting()) Record(chain, done, Now() - start);
  return status;
}

// If a chain begins with node `begin`, calls what(chain) and returns true. If
// not, returns false.
template <class F>
bool WithChain(const ggml_cgraph& graph, int begin, const F& what) {
  if (const auto router = MatchRouter(graph, begin)) {
    what(*router);
  } else if (const auto experts = MatchExperts(graph, begin)) {
    what(*experts);
  } else if (const auto combine = MatchCombine(graph, begin)) {
    what(*combine);
  } else {
    return false;
  }
  return true;
}

ggml_status Compute(ggml_backend_t backend, ggml_cgraph* graph) {
  Context& context = ContextOf(backend);
  int rest = 0;  // the first node that is not yet run
  for (int i = 0; i < graph->n_nodes;) {
    int end = i + 1;
    ggml_status status = GGML_STATUS_SUCCESS;
    const bool found = !IsViewOp(graph->nodes[i]) &&
                       WithChain(*graph, i, [&](const auto& chain) {
                         status = RunNodes(context, *graph, rest, i);
                         if (status != GGML_STATUS_SUCCESS) return;
                         status = RunChain(context, *graph, chain);
                         end = chain.end;
                       });
    if (status != GGML_STATUS_SUCCESS) return status;
    if (found) rest = end;
    i = end;
  }
  return RunNodes(context, *graph, rest, graph->n_nodes);
}

void Optimize(ggml_backend_t, ggml_cgraph* graph,
              ggml_backend_graph_optimize_params* params) {
  if (params == nullptr || params->add_alloc_dep == nullptr) return;
  for (int i = 0; i < graph->n_nodes;) {
    int end = i + 1;
    if (!IsViewOp(graph->nodes[i])) {
      WithChain(*graph, i, [&](const auto& chain) {
        end = chain.end;
        for (const ggml_tensor* kept : chain.kept) {
          params->add_alloc_dep(params->user_data,
                                const_cast<ggml_tensor*>(kept),
                                graph->nodes[chain.end - 1]);
        }
      });
    }
    i = end;
  }
}

void SetThreads(ggml_backend_t backend, int num_threads) {
  Context& context = ContextOf(backend);
  context.num_threads = std::max(1, num_threads);
  ggml_backend_reg_t reg =
      ggml_backend_dev_backend_reg(ggml_backend_get_device(context.cpu));
  const auto set = reinterpret_cast<ggml_backend_set_n_threads_t>(
      ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads"));
  if (set != nullptr) set(context.cpu, context.num_threads);
}

ggml_guid_t Guid() {
  static ggml_guid guid = {0x73, 0x77, 0x69, 0x74, 0x63, 0x68, 0x79, 0x61,
                           0x72, 0x64, 0x2d, 0x67, 0x67, 0x6d, 0x6c, 0x31};
  return &guid;
}

ggml_backend_t InitBackend(ggml_backend_dev_t device, const char*) {
  auto context = std::make_unique<Context>();
  context->cpu =
      ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
  if (context->cpu == nullptr) return nullptr;
  ggml_backend_i calls = {};
  calls.get_name = [](ggml_backend_t) { return kName; };
  calls.free = [](ggml_backend_t backend) {
    delete &ContextOf(backend);
    delete backend;
  };
  calls.graph_compute = Compute;
  calls.graph_optimize = Optimize;
  return new ggml_backend{Guid(), calls, device, context.release()};
}

bool SupportsOp(ggml_backend_dev_t, const ggml_tensor* op) {
  if (IsProductOfNeighbor(op)) return true;
  if (op->op == GGML_OP_MUL_MAT_ID) {
    NoteLayer(op);
    const char* reason = WhyNot(op);
    if (reason == nullptr) {
      NoteFewTokens(op);
    } else if (Reporting()) {
      RecordDeclined(op, reason);
    }
    return reason == nullptr;
  }
  return IsViewOp(op) || IsClaimed(op);
}

ggml_backend_device_i DeviceCalls() {
  ggml_backend_device_i calls = {};
  calls.get_name = [](ggml_backend_dev_t) { return kName; };
  calls.get_description = [](ggml_backend_dev_t) {
    return "Mixture-of-Experts layers on the CPU";
  };
  calls.get_memory = [](ggml_backend_dev_t, size_t* free, size_t* total) {
    *free = *total = 0;  // the plug-in has no memory besides the CPU's
  };
  calls.get_type = [](ggml_backend_dev_t) {
    return GGML_BACKEND_DEVICE_TYPE_ACCEL;
  };
  calls.get_props = [](ggml_backend_dev_t device,
                       ggml_backend_dev_props* props) {
    *props = {};
    props->name = ggml_backend_dev_name(device);
    props->description = ggml_backend_dev_description(device);
    props->type = ggml_backend_dev_type(device);
    props->caps.buffer_from_host_ptr = true;
  };
  calls.init_backend = InitBackend;
  calls.get_buffer_type = [](ggml_backend_dev_t) {
    return ggml_backend_cpu_buffer_type();
  };
  calls.buffer_from_host_ptr = [](ggml_backend_dev_t, void* data, size_t size,
                                  size_t) {
    return ggml_backend_cpu_buffer_from_ptr(data, size);
  };
  calls.supports_op = SupportsOp;
  calls.supports_buft = [](ggml_backend_dev_t,
                           ggml_backend_buffer_type_t type) {
    return ggml_backend_buft_is_host(type) || IsPackedBufferType(type);
  };
  return calls;
}

// The device "Switchyard packing". llama.cpp tries its buffers for weights
// before the CPU's buffers. It is separate from the device that computes: ggml
// puts the results of a device into the device's buffers, so the computing
// device has the CPU's buffers. The packing device computes nothing, because
// ggml asks the computing device first.
ggml_backend_device_i PackingDeviceCalls() {
  ggml_backend_device_i calls = DeviceCalls();
  calls.get_name = [](ggml_backend_dev_t) { return kPackingName; };
  calls.get_description = [](ggml_backend_dev_t) {
    return "packed weights of Mixture-of-Experts layers";
  };
  calls.get_props = [](ggml_backend_dev_t device,
                       ggml_backend_dev_props* props) {
    *props = {};
    props->name = ggml_backend_dev_name(device);
    props->description = ggml_backend_dev_description(device);
    props->type = ggml_backend_dev_type(device);
    // A mapped file is copied, because packed bytes differ from the file's.
    props->caps.buffer_from_host_ptr = false;
  };
  calls.buffer_from_host_ptr = nullptr;
  calls.get_buffer_type = PackedBufferType;
  calls.supports_op = [](ggml_backend_dev_t device, const ggml_tensor* op) {
    const bool is_product = op->op == GGML_OP_MUL_MAT_ID ||
                            (op->op == GGML_OP_MUL_MAT && TakesMatrices());
    return is_product && IsPacked(op->src[0]) &&
           IsPackedWhenLoaded(op->src[0]->type) && SupportsOp(device, op);
  };
  return calls;
}

ggml_backend_reg_i RegCalls() {
  ggml_backend_reg_i calls = {};
  calls.get_name = [](ggml_backend_reg_t) { return kName; };
  calls.get_device_count = [](ggml_backend_reg_t) -> size_t {
    return IsPackingAsked() ? 2 : 1;
  };
  calls.get_device = [](ggml_backend_reg_t reg, size_t index) {
    static ggml_backend_device devices[] = {
        {DeviceCalls(), reg, nullptr}, {PackingDeviceCalls(), reg, nullptr}};
    return &devices[index];
  };
  calls.get_proc_address = [](ggml_backend_reg_t, const char* name) -> void* {
    if (std::strcmp(name, "ggml_backend_set_n_threads") != 0) return nullptr;
    return reinterpret_cast<void*>(&SetThreads);
  };
  return calls;
}

}  // namespace
}  // namespace switchyard_ggml

// Refuses to load if the plug-in was built for another version of ggml, because
// it reads the internals of graphs, which are not part of ggml's interface.
extern "C" __attribute__((visibility("default"))) ggml_backend_reg_t
ggml_backend_init(void) {
  if (std::strcmp(ggml_version(), SWITCHYARD_GGML_VERSION) != 0) {
    std::fprintf(stderr,
                 "libggml-switchyard.so: built for ggml %s, and this is ggml "
                 "%s: build it against the sources of this one\n",
                 SWITCHYARD_GGML_VERSION, ggml_version());
    return nullptr;
  }
  static ggml_backend_reg reg = {SWITCHYARD_GGML_API_VERSION,
                                 switchyard_ggml::RegCalls(), nullptr};
  return &reg;
}
