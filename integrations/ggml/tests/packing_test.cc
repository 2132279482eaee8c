// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// packing_test SEED TENSORS
//
// Makes tensors of random shapes in the plug-in's buffers, which pack tensors
// of all types except F16. Sets the tensors to random bytes, as a whole or in
// random parts, and checks that the bytes read back are equal. Then compares a
// product of the plug-in with ggml's product, which may differ by the rounding
// of rows. A tensor of one expert is also multiplied as a matrix, by rows with
// and without gaps. Prints a JSON object with the number of tensors of each
// type, and the seeds of tensors that differ. Tensor i of a run has the seed
// SEED + i. Last, registers a GPU that would compute batches of at least 32
// tokens, and prints the products that the plug-in takes nevertheless.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "choice.h"
#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "weights.h"

extern "C" ggml_backend_reg_t ggml_backend_init(void);

namespace switchyard_ggml {
namespace {

// The largest difference between ggml's and the plug-in's product, as a share
// of the values' root mean square. The products differ, because ggml
// quantises rows with f16 scales, and the plug-in with f32 scales.
constexpr double kBound = 0.05;

struct Free {
  void operator()(ggml_context* context) const { ggml_free(context); }
  void operator()(ggml_backend_buffer_t buffer) const {
    ggml_backend_buffer_free(buffer);
  }
};
using Context = std::unique_ptr<ggml_context, Free>;
using Buffer = std::unique_ptr<ggml_backend_buffer, Free>;

class Case {
 public:
  Case(uint64_t seed, ggml_backend_dev_t device) : random_(seed) {
    constexpr ggml_type kTypes[] = {GGML_TYPE_Q8_0,  GGML_TYPE_Q4_0,
                                    GGML_TYPE_MXFP4, GGML_TYPE_Q4_K,
                                    GGML_TYPE_Q6_K,  GGML_TYPE_F16};
    type_ = kTypes[Number(0, 5)];
    const int64_t block = std::max<int64_t>(32, ggml_blck_size(type_));
    in_ = block * Number(1, 4), out_ = Number(1, 70);
    experts_ = Chance() ? 1 : Number(2, 6);
    context_ = NewContext();
    weights_ = ggml_new_tensor_3d(context_.get(), type_, in_, out_, experts_);
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(
        context_.get(), ggml_backend_dev_buffer_type(device)));
    if (buffer_ == nullptr) std::exit(1);
    ggml_backend_buffer_set_usage(buffer_.get(),
                                  GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    bytes_.resize(ggml_nbytes(weights_));
  }

  ggml_type type() const { return type_; }

  bool KeepsBytes() {
    if (IsPacked(weights_) != (type_ != GGML_TYPE_F16)) return false;
    for (uint8_t& byte : bytes_) byte = AnyByte();
    ggml_backend_tensor_set(weights_, bytes_.data(), 0, bytes_.size());
    if (!IsRead()) return false;
    for (int i = 0; i < 4; ++i) {
      const size_t begin = AnyOffset(), end = AnyOffset();
      const size_t first = std::min(begin, end);
      const size_t size = std::max(begin, end) - first;
      if (i % 2 == 0) {
        for (size_t at = 0; at < size; ++at) bytes_[first + at] = AnyByte();
        ggml_backend_tensor_set(weights_, bytes_.data() + first, first, size);
      } else {
        std::memset(bytes_.data() + first, 7, size);
        ggml_backend_tensor_memset(weights_, 7, first, size);
      }
      if (!IsRead()) return false;
    }
    // Reads one expert through a view.
    const size_t expert = static_cast<size_t>(Number(0, experts_ - 1));
    ggml_tensor* view = ggml_view_2d(context_.get(), weights_, in_, out_,
                                     weights_->nb[1], expert * weights_->nb[2]);
    ggml_backend_view_init(view);
    std::vector<uint8_t> read(ggml_nbytes(view));
    ggml_backend_tensor_get(view, read.data(), 0, read.size());
    return std::memcmp(read.data(), bytes_.data() + expert * weights_->nb[2],
                       read.size()) == 0;
  }

  // True if the CPU backend and the plug-in compute equal products within
  // kBound.
  bool Multiplies(ggml_backend_t cpu, ggml_backend_t plugin) {
    if (type_ == GGML_TYPE_F16) return true;
    return MultipliesExperts(cpu, plugin) &&
           (experts_ > 1 || MultipliesMatrix(cpu, plugin));
  }

 private:
  bool MultipliesExperts(ggml_backend_t cpu, ggml_backend_t plugin) {
    std::vector<float> values(static_cast<size_t>(in_ * out_ * experts_));
    Fill(&values);
    ggml_quantize_chunk(type_, values.data(), bytes_.data(), 0, out_ * experts_,
                        in_, nullptr);
    ggml_backend_tensor_set(weights_, bytes_.data(), 0, bytes_.size());
    const int64_t slots = Number(1, experts_), tokens = Number(1, 40);
    const int64_t rows = Chance() ? 1 : slots;
    std::vector<float> x(static_cast<size_t>(in_ * rows * tokens));
    Fill(&x);
    std::vector<int32_t> ids(static_cast<size_t>(slots * tokens));
    for (int32_t& id : ids) id = static_cast<int32_t>(Number(0, experts_ - 1));

    const Context context = NewContext();
    ggml_tensor* stored =
        ggml_new_tensor_3d(context.get(), type_, in_, out_, experts_);
    ggml_tensor* input =
        ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, in_, rows, tokens);
    ggml_tensor* chosen =
        ggml_new_tensor_2d(context.get(), GGML_TYPE_I32, slots, tokens);
    ggml_tensor* expected =
        ggml_mul_mat_id(context.get(), stored, input, chosen);
    ggml_tensor* ours = ggml_mul_mat_id(context.get(), weights_, input, chosen);
    const Buffer buffer(ggml_backend_alloc_ctx_tensors(context.get(), cpu));
    std::memcpy(stored->data, bytes_.data(), bytes_.size());
    std::memcpy(input->data, x.data(), x.size() * sizeof(float));
    std::memcpy(chosen->data, ids.data(), ids.size() * sizeof(int32_t));
    return AreEqual(context.get(), expected, cpu, ours, plugin);
  }

  // Multiplies the weights that MultipliesExperts() has set.
  bool MultipliesMatrix(ggml_backend_t cpu, ggml_backend_t plugin) {
    const Context context = NewContext();
    ggml_tensor* stored = ggml_new_tensor_2d(context.get(), type_, in_, out_);
    const int64_t rows = Number(1, 150);
    const int64_t matrices = Chance() ? 1 : Number(1, 3);
    const int64_t sets = Chance() ? 1 : Number(1, 2);
    ggml_tensor* values = ggml_new_tensor_4d(
        context.get(), GGML_TYPE_F32, in_ + (Chance() ? 0 : Number(1, 9)),
        rows + (Chance() ? 0 : Number(1, 3)), matrices, sets);
    ggml_tensor* input =
        ggml_view_4d(context.get(), values, in_, rows, matrices, sets,
                     values->nb[1], values->nb[2], values->nb[3], 0);
    if (Chance()) input = ggml_permute(context.get(), input, 0, 2, 1, 3);
    ggml_tensor* expected = ggml_mul_mat(context.get(), stored, input);
    ggml_tensor* ours = ggml_mul_mat(context.get(), weights_, input);
    const Buffer buffer(ggml_backend_alloc_ctx_tensors(context.get(), cpu));
    std::memcpy(stored->data, bytes_.data(), bytes_.size());
    std::vector<float> x(static_cast<size_t>(ggml_nelements(values)));
    Fill(&x);
    std::memcpy(values->data, x.data(), x.size() * sizeof(float));
    return AreEqual(context.get(), expected, cpu, ours, plugin);
  }

  static Context NewContext() {
    return Context(ggml_init(
        {16 * ggml_tensor_overhead() + 2 * ggml_graph_overhead_custom(8, false),
         nullptr, true}));
  }
  static void Compute(ggml_context* context, ggml_tensor* t,
                      ggml_backend_t backend) {
    ggml_cgraph* graph = ggml_new_graph_custom(context, 8, false);
    ggml_build_forward_expand(graph, t);
    if (ggml_backend_graph_compute(backend, graph) != GGML_STATUS_SUCCESS) {
      std::exit(1);
    }
  }
  // Computes both nodes, each on its backend. True if the plug-in supports its
  // node, and the results are equal within kBound.
  static bool AreEqual(ggml_context* context, ggml_tensor* expected,
                       ggml_backend_t cpu, ggml_tensor* ours,
                       ggml_backend_t plugin) {
    if (!ggml_backend_supports_op(plugin, ours)) return false;
    Compute(context, expected, cpu);
    Compute(context, ours, plugin);
    return Agree(static_cast<const float*>(expected->data),
                 static_cast<const float*>(ours->data),
                 static_cast<size_t>(ggml_nelements(ours)));
  }
  static bool Agree(const float* expected, const float* values, size_t size) {
    double squares = 0.0;
    for (size_t i = 0; i < size; ++i) squares += expected[i] * expected[i];
    const double bound =
        kBound * std::sqrt(squares / static_cast<double>(size)) + 1e-6;
    for (size_t i = 0; i < size; ++i) {
      if (!(std::abs(values[i] - expected[i]) <= bound)) return false;
    }
    return true;
  }

  int64_t Number(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool Chance() { return Number(0, 1) == 1; }
  uint8_t AnyByte() { return static_cast<uint8_t>(random_()); }
  size_t AnyOffset() {
    return static_cast<size_t>(Number(0, static_cast<int64_t>(bytes_.size())));
  }
  void Fill(std::vector<float>* values) {
    std::normal_distribution<float> normal;
    for (float& value : *values) value = normal(random_);
  }
  bool IsRead() {
    std::vector<uint8_t> read(bytes_.size());
    ggml_backend_tensor_get(weights_, read.data(), 0, read.size());
    const size_t begin = AnyOffset(), end = AnyOffset();
    const size_t first = std::min(begin, end);
    std::vector<uint8_t> part(std::max(begin, end) - first);
    ggml_backend_tensor_get(weights_, part.data(), first, part.size());
    return read == bytes_ &&
           std::equal(part.begin(), part.end(),
                      bytes_.begin() + static_cast<ptrdiff_t>(first));
  }

  std::mt19937_64 random_;
  ggml_type type_ = GGML_TYPE_COUNT;
  int64_t in_ = 0, out_ = 0, experts_ = 0;
  Context context_;
  ggml_tensor* weights_ = nullptr;
  Buffer buffer_;
  std::vector<uint8_t> bytes_;
};

// Registers a GPU for batches of at least 32 tokens, and prints the products
// that the plug-in's devices take: with weights as stored, and before loading,
// also if the product asks for another precision.
void PrintProductsWithGpu(ggml_backend_reg_t reg) {
  static ggml_backend_device gpu = {};
  gpu.iface.get_name = [](ggml_backend_dev_t) { return "GPU of a test"; };
  gpu.iface.get_description = gpu.iface.get_name;
  gpu.iface.get_type = [](ggml_backend_dev_t) {
    return GGML_BACKEND_DEVICE_TYPE_GPU;
  };
  gpu.iface.offload_op = [](ggml_backend_dev_t, const ggml_tensor* t) {
    return t->ne[t->op == GGML_OP_MUL_MAT ? 1 : 2] >= 32;
  };
  ggml_backend_device_register(&gpu);
  const char* comma = "";
  for (size_t i = 0; i < 2; ++i) {
    ggml_backend_dev_t device = ggml_backend_reg_dev_get(reg, i);
    Context context(ggml_init({size_t{1} << 20, nullptr, true}));
    Context weights(ggml_init({size_t{1} << 20, nullptr, true}));
    ggml_tensor* matrix =
        ggml_new_tensor_2d(weights.get(), GGML_TYPE_Q4_0, 64, 64);
    ggml_tensor* experts =
        ggml_new_tensor_3d(weights.get(), GGML_TYPE_Q4_0, 64, 64, 8);
    Buffer buffer(ggml_backend_alloc_ctx_tensors_from_buft(
        weights.get(), i == 0 ? ggml_backend_cpu_buffer_type()
                              : ggml_backend_dev_buffer_type(device)));
    ggml_backend_buffer_set_usage(buffer.get(),
                                  GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    for (const int tokens : {31, 64}) {
      ggml_tensor* rows =
          ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, 64, 1, tokens);
      ggml_tensor* ids =
          ggml_new_tensor_2d(context.get(), GGML_TYPE_I32, 4, tokens);
      ggml_tensor* products[] = {
          ggml_mul_mat(context.get(), matrix,
                       ggml_reshape_2d(context.get(), rows, 64, tokens)),
          // rows that overlap, which Switchyard does not read
          ggml_mul_mat(context.get(), matrix,
                       ggml_view_2d(context.get(), rows, 64, tokens,
                                    32 * sizeof(float), 0)),
          ggml_mul_mat_id(context.get(), experts, rows, ids)};
      for (ggml_tensor* product : products) {
        for (const int precision : {0, 1}) {
          product->op_params[3] = precision;
          if (!ggml_backend_dev_supports_op(device, product)) continue;
          std::printf("%s\"%s %s %d%s\"", comma, i == 0 ? "stored" : "packed",
                      ggml_op_name(product->op), tokens,
                      precision == 0 ? "" : " in another precision");
          comma = ", ";
        }
      }
    }
  }
}

int Main(uint64_t seed, uint64_t tensors) {
  ggml_backend_t cpu =
      ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
  ggml_backend_reg_t reg = ggml_backend_init();
  ggml_backend_dev_t packing = ggml_backend_reg_dev_get(reg, 1);
  ggml_backend_t plugin =
      ggml_backend_dev_init(ggml_backend_reg_dev_get(reg, 0), nullptr);
  std::map<std::string, int> types;
  std::vector<uint64_t> differing;
  for (uint64_t i = seed; i < seed + tensors; ++i) {
    Case one(i, packing);
    ++types[ggml_type_name(one.type())];
    if (!one.KeepsBytes() || !one.Multiplies(cpu, plugin)) {
      differing.push_back(i);
    }
  }
  std::printf("{\"types\": {");
  const char* comma = "";
  for (const auto& [type, count] : types) {
    std::printf("%s\"%s\": %d", comma, type.c_str(), count);
    comma = ", ";
  }
  std::printf("}, \"differing\": [");
  comma = "";
  for (const uint64_t i : differing) {
    std::printf("%s%llu", comma, static_cast<unsigned long long>(i));
    comma = ", ";
  }
  std::printf("], \"with_gpu\": [");
  PrintProductsWithGpu(reg);
  std::printf("]}\n");
  ggml_backend_free(plugin);
  ggml_backend_free(cpu);
  return 0;
}

}  // namespace
}  // namespace switchyard_ggml

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "packing_test: wants SEED TENSORS\n");
    return 2;
  }
  return switchyard_ggml::Main(std::strtoull(argv[1], nullptr, 10),
                               std::strtoull(argv[2], nullptr, 10));
}
