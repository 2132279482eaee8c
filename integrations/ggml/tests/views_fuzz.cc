// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// views_fuzz SEED GRAPHS
//
// Makes random graphs of a Mixture-of-Experts layer, computes each by the CPU
// backend and by the plug-in, and compares the results. Nodes read the results
// of other nodes through views as llama.cpp makes them. Some graphs have
// artificial views: with other strides, offsets or shapes, with a slot twice,
// or in place. Prints a JSON object with the number of chains that the plug-in
// found, and the seeds of graphs with different results. Graph i of a run has
// the seed SEED + i.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "claims.h"
#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml-impl.h"
#include "patterns.h"

extern "C" ggml_backend_reg_t ggml_backend_init(void);

namespace switchyard_ggml {
namespace {

// The largest difference between the results of the CPU backend and the
// plug-in, as a share of the expected values' root mean square. ggml and the
// plug-in round operands to bf16 or f16 at different places, which makes a
// difference of up to 2 %. If the plug-in reads a wrong view, the difference
// exceeds the bound, because values are replaced by others.
constexpr double kBound = 0.1;
constexpr size_t kMaxNodes = 512;

// Returns the size in bytes of `count` floats or ids.
size_t Bytes(int64_t count) {
  return static_cast<size_t>(count) * sizeof(float);
}

class Graph {
 public:
  explicit Graph(uint64_t seed)
      : random_(seed),
        context_(ggml_init({kMaxNodes * ggml_tensor_overhead() +
                                ggml_graph_overhead_custom(kMaxNodes, false),
                            nullptr, true})),
        graph_(ggml_new_graph_custom(context_, kMaxNodes, false)) {
    Build();
  }
  ~Graph() {
    ggml_backend_buffer_free(buffer_);
    ggml_free(context_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const ggml_cgraph& nodes() const { return *graph_; }

  void Allocate(ggml_backend_t cpu) {
    buffer_ = ggml_backend_alloc_ctx_tensors(context_, cpu);
    if (buffer_ == nullptr) std::exit(1);
    for (ggml_tensor* leaf : leaves_) Fill(leaf);
  }

  // Returns the values of all compared tensors. Sets computed tensors to zero
  // at first, so that results are wrong if one is read before it is written.
  std::vector<std::vector<double>> Compute(ggml_backend_t backend) {
    for (int i = 0; i < graph_->n_nodes; ++i) {
      ggml_tensor* t = graph_->nodes[i];
      if (t->view_src == nullptr) std::memset(t->data, 0, ggml_nbytes(t));
    }
    if (ggml_backend_graph_compute(backend, graph_) != GGML_STATUS_SUCCESS) {
      std::exit(1);
    }
    std::vector<std::vector<double>> values;
    for (const ggml_tensor* t : compared_) {
      std::vector<double>& of = values.emplace_back();
      for (int64_t i = 0; i < ggml_nelements(t); ++i) {
        of.push_back(t->type == GGML_TYPE_I32
                         ? static_cast<const int32_t*>(t->data)[i] * 1.0
                         : static_cast<const float*>(t->data)[i] * 1.0);
      }
    }
    return values;
  }

 private:
  int64_t Number(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool Chance(double share) {
    return std::bernoulli_distribution(share)(random_);
  }
  bool IsOdd() { return Chance(0.06); }
  // True if the next operation should write its result over `t`. A view is
  // never overwritten, because its rows may overlap, or have gaps, which
  // operations on the result refuse.
  bool IsInPlace(const ggml_tensor* t) {
    return Chance(0.03) && t->op != GGML_OP_VIEW;
  }

  ggml_tensor* Leaf(ggml_type type, int64_t a, int64_t b = 1, int64_t c = 1) {
    leaves_.push_back(ggml_new_tensor_3d(context_, type, a, b, c));
    return leaves_.back();
  }
  ggml_tensor* Floats(int64_t a, int64_t b = 1, int64_t c = 1) {
    return Leaf(GGML_TYPE_F32, a, b, c);
  }

  void Fill(ggml_tensor* leaf) {
    // Keeps products small, because scores that saturate are tied.
    const float scale = 1.0f / std::sqrt(static_cast<float>(leaf->ne[0]));
    std::normal_distribution<float> normal(
        0.0f, leaf == router_ || leaf->ne[2] > 1 ? scale : 1.0f);
    std::vector<float> values(static_cast<size_t>(ggml_nelements(leaf)));
    for (float& value : values) value = normal(random_);
    const auto n = static_cast<int64_t>(values.size());
    if (leaf->type == GGML_TYPE_F32) {
      std::memcpy(leaf->data, values.data(), ggml_nbytes(leaf));
    } else {
      ggml_quantize_chunk(leaf->type, values.data(), leaf->data, 0,
                          n / leaf->ne[0], leaf->ne[0], nullptr);
    }
  }

  // Returns a random view of this shape. Elements of a row are adjacent. With
  // `has_even_rows`, all rows begin at equal distances, as some operations
  // need.
  ggml_tensor* OddView(ggml_tensor* t, int64_t a, int64_t b, int64_t c,
                       bool has_even_rows = false) {
    const auto size = static_cast<int64_t>(ggml_nbytes(t) / sizeof(float));
    for (int tries = 0; tries < 50; ++tries) {
      const int64_t strides[] = {a, a - 1, a + 1, 2 * a, 1, t->ne[0], c, b};
      const int64_t row = strides[Number(0, 7)];
      const int64_t planes[] = {row * b, a * b,       a * b - 1, a * b + 1,
                                a,       (a - 1) * b, 1,         2 * a * b};
      const int64_t plane = planes[has_even_rows ? 0 : Number(0, 7)];
      // ggml requires room for all elements, even if they overlap.
      const int64_t spare =
          size - std::max(a * b * c, a + (b - 1) * row + (c - 1) * plane);
      if (row < 1 || plane < 1 || spare < 0) continue;
      const int64_t offset = Chance(0.5) ? 0 : Number(0, spare);
      return ggml_view_3d(context_, t, a, b, c, Bytes(row), Bytes(plane),
                          Bytes(offset));
    }
    return ggml_view_3d(context_, t, a, b, c, Bytes(a), Bytes(a * b), 0);
  }
  // Returns the whole tensor, or sometimes an odd view of this shape.
  ggml_tensor* Read(ggml_tensor* t, int64_t a, int64_t b, int64_t c) {
    if (IsOdd()) return OddView(t, a, b, c);
    if (IsOdd()) t = ggml_reshape_1d(context_, t, ggml_nelements(t));
    return ggml_reshape_3d(context_, t, a, b, c);
  }

  void Compare(ggml_tensor* t) {
    if (!ggml_is_contiguous(t)) t = ggml_cont(context_, t);
    ggml_build_forward_expand(graph_, t);
    compared_.push_back(t);
  }
  // Sometimes adds another node that reads `t`.
  ggml_tensor* Watched(ggml_tensor* t) {
    if (Chance(0.02)) Compare(ggml_cont(context_, t));
    if (Chance(0.02) && ggml_is_contiguous(t) && t->ne[0] > 1) {
      Compare(ggml_cont(context_, OddView(t, t->ne[0] - 1, t->ne[1], 1)));
    }
    return t;
  }

  void Build() {
    // Usually makes more tokens than slots, because with equal numbers wrong
    // shapes might fit by chance.
    tokens_ = Chance(0.2) ? Number(10, 16) : Number(32, 40);
    num_experts_ = Number(4, 24);
    top_k_ = Number(1, std::min<int64_t>(6, num_experts_));
    if (Chance(0.05)) {  // as many slots as tokens, so wrong shapes may fit
      tokens_ = top_k_ = 32;
      num_experts_ = 40;
    }
    router_ = Floats(kHidden, num_experts_);
    ggml_tensor* logits =
        ggml_mul_mat(context_, router_, Floats(kHidden, tokens_));
    if (Chance(0.3)) logits = ggml_add(context_, logits, Floats(num_experts_));
    ggml_tensor* ids = nullptr;
    ggml_tensor* weights = Router(logits, &ids);
    ggml_build_forward_expand(graph_, weights);
    if (ggml_nelements(weights) != top_k_ * tokens_ || Chance(0.4)) {
      Compare(weights);
      Compare(ggml_cont(context_, ids));
      weights = Floats(1, top_k_, tokens_);
    }
    if (top_k_ > 1) Experts(ids, Read(weights, 1, top_k_, tokens_));
  }

  ggml_tensor* Router(ggml_tensor* logits, ggml_tensor** ids) {
    const bool in_place = IsInPlace(logits);
    const int64_t score = Number(0, 2);
    ggml_tensor* probs = logits;
    if (score == 0) {
      probs = in_place ? ggml_soft_max_inplace(context_, logits)
                       : ggml_soft_max(context_, logits);
    } else if (score == 1) {
      probs = in_place ? ggml_sigmoid_inplace(context_, logits)
                       : ggml_sigmoid(context_, logits);
    }
    Watched(probs);
    ggml_tensor* keys = probs;
    if (score < 2 && Chance(0.4)) {
      keys = ggml_add(context_, probs, Floats(num_experts_));
    }
    ggml_tensor* sorted =
        ggml_argsort(context_, Watched(keys), GGML_SORT_ORDER_DESC);
    *ids = TopK(sorted);
    ggml_tensor* weights =
        ggml_get_rows(context_, Read(probs, 1, num_experts_, tokens_), *ids);
    Watched(weights);
    int64_t tokens = tokens_;
    if (Chance(score == 2 ? 0.8 : 0.05)) {
      ggml_tensor* rows = ggml_reshape_2d(context_, weights, top_k_, tokens);
      if (IsOdd()) {  // a view without gaps, which soft_max requires
        tokens -= Number(1, 2);
        rows = ggml_view_2d(context_, weights, top_k_, tokens, Bytes(top_k_),
                            Bytes(top_k_));
      }
      weights = IsInPlace(rows) ? ggml_soft_max_inplace(context_, rows)
                                : ggml_soft_max(context_, rows);
      Watched(weights);
    }
    if (Chance(0.6)) weights = Normalised(weights, tokens);
    if (Chance(0.4)) {
      if (IsOdd()) {
        --tokens;
        weights = ggml_view_2d(context_, weights, top_k_, tokens, Bytes(top_k_),
                               Bytes(top_k_));
      }
      weights = IsInPlace(weights) ? ggml_scale_inplace(context_, weights, 2.5f)
                                   : ggml_scale(context_, weights, 2.5f);
    }
    return weights;
  }

  ggml_tensor* TopK(ggml_tensor* sorted) {
    const auto first = [&](ggml_tensor* t, int64_t columns, int64_t offset) {
      return Watched(
          ggml_view_2d(context_, t, columns, tokens_, t->nb[1], Bytes(offset)));
    };
    if (IsOdd()) return OddView(sorted, top_k_, tokens_, 1);
    if (IsOdd()) return first(sorted, top_k_, Number(0, num_experts_ - top_k_));
    if (IsOdd()) {  // a view of columns of a view of columns
      ggml_tensor* more = first(sorted, Number(top_k_, num_experts_), 0);
      if (Chance(0.5)) Compare(ggml_cont(context_, more));
      return first(more, top_k_, 0);
    }
    ggml_tensor* ids = first(sorted, top_k_, 0);
    if (IsOdd()) {  // another node reads columns beyond the view's
      ggml_tensor* all =
          ggml_view_1d(context_, ids, ggml_nbytes(ids) / sizeof(int32_t), 0);
      Compare(ggml_cont(context_, all));
    }
    return ids;
  }

  ggml_tensor* Normalised(ggml_tensor* weights, int64_t tokens) {
    ggml_tensor* sum =
        ggml_sum_rows(context_, Read(weights, top_k_, tokens, 1));
    if (Chance(0.7)) {
      sum = IsInPlace(sum) ? ggml_clamp_inplace(context_, sum, 0.25f, INFINITY)
                           : ggml_clamp(context_, sum, 0.25f, INFINITY);
    }
    Watched(sum);
    ggml_tensor* rows = Read(weights, top_k_, tokens, 1);
    if (tokens == top_k_ && Chance(0.5)) {
      rows = ggml_reshape_3d(context_, weights, 1, top_k_, tokens);
    }
    return Watched(IsInPlace(rows) ? ggml_div_inplace(context_, rows, sum)
                                   : ggml_div(context_, rows, sum));
  }

  // Adds a MUL_MAT_ID, and sometimes a bias.
  ggml_tensor* Linear(ggml_tensor* x, ggml_tensor* ids, int64_t out) {
    if (Chance(0.2)) type_ = AnyType();
    ggml_tensor* product = ggml_mul_mat_id(
        context_, Leaf(type_, x->ne[0], out, num_experts_), x, ids);
    if (WhyNot(product) == nullptr) NoteFewTokens(product);
    Watched(product);
    if (!has_bias_) return product;
    return Watched(
        ggml_add_id(context_, product, Floats(out, num_experts_), ids));
  }

  ggml_type AnyType() {
    constexpr ggml_type kTypes[] = {GGML_TYPE_BF16, GGML_TYPE_F16,
                                    GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                                    GGML_TYPE_MXFP4};
    return kTypes[Number(0, 4)];
  }

  ggml_tensor* OddHalf(ggml_tensor* rows) {
    return OddView(rows, kIntermediate, top_k_, tokens_, true);
  }

  void Experts(ggml_tensor* ids, ggml_tensor* weights) {
    type_ = AnyType();
    has_bias_ = Chance(0.3);
    ggml_tensor* x = Floats(kHidden, 1, tokens_);
    ggml_tensor* residual =
        ggml_add(context_, Floats(kHidden, tokens_), Floats(kHidden, tokens_));
    ggml_build_forward_expand(graph_, residual);
    ggml_tensor* gate = nullptr;
    ggml_tensor* up = nullptr;
    if (Chance(0.4)) {
      ggml_tensor* both = Linear(x, ids, 2 * kIntermediate);
      const auto half = [&](int64_t first) {
        if (IsOdd()) return OddHalf(both);
        if (IsOdd()) first = kIntermediate - first;
        return ggml_view_3d(context_, both, kIntermediate, top_k_, tokens_,
                            both->nb[1], both->nb[2], Bytes(first));
      };
      gate = half(0);
      up = half(kIntermediate);
    } else {
      up = Linear(x, ids, kIntermediate);
      gate = Linear(x, ids, kIntermediate);
      if (IsOdd()) gate = OddHalf(gate);
      if (IsOdd()) up = OddHalf(up);
    }
    ggml_tensor* activated =
        Chance(0.3) ? ggml_swiglu_oai(context_, gate, up, 1.7f, 7.0f)
                    : ggml_swiglu_split(context_, gate, up);
    ggml_tensor* rows = Linear(Watched(activated), ids, kHidden);
    ggml_tensor* weighted = IsInPlace(rows)
                                ? ggml_mul_inplace(context_, rows, weights)
                                : ggml_mul(context_, rows, weights);
    ggml_build_forward_expand(graph_, weighted);
    Sum(Watched(weighted), residual);
  }

  void Sum(ggml_tensor* weighted, ggml_tensor* residual) {
    std::vector<ggml_tensor*> slots, sums;
    for (int64_t slot = 0; slot < top_k_; ++slot) {
      const int64_t read = IsOdd() ? Number(0, top_k_ - 1) : slot;
      slots.push_back(
          IsOdd() ? OddView(weighted, kHidden, tokens_, 1)
                  : ggml_view_2d(context_, weighted, kHidden, tokens_,
                                 weighted->nb[2],
                                 static_cast<size_t>(read) * weighted->nb[1]));
    }
    sums.push_back(slots[0]);
    for (size_t slot = 1; slot < slots.size(); ++slot) {
      sums.push_back(
          Watched(IsInPlace(sums.back())
                      ? ggml_add_inplace(context_, sums.back(), slots[slot])
                      : ggml_add(context_, sums.back(), slots[slot])));
    }
    ggml_tensor* out = sums.back();
    ggml_build_forward_expand(graph_, out);
    if (Chance(0.7)) {
      if (IsOdd()) {  // adds a part of the sum once more
        residual = sums[static_cast<size_t>(
            Number(1, static_cast<int64_t>(sums.size()) - 1))];
      }
      out = Watched(ggml_add(context_, out, residual));
      if (Chance(0.7)) {
        ggml_tensor* of = IsOdd() ? OddView(out, kHidden, tokens_, 1) : out;
        out = Watched(IsInPlace(of) ? ggml_rms_norm_inplace(context_, of, 1e-5f)
                                    : ggml_rms_norm(context_, of, 1e-5f));
        out = ggml_mul(context_, out, Floats(kHidden));
      }
    }
    Compare(out);
  }

  static constexpr int64_t kHidden = 64;
  static constexpr int64_t kIntermediate = 32;

  std::mt19937_64 random_;
  ggml_context* context_;
  ggml_cgraph* graph_;
  ggml_backend_buffer_t buffer_ = nullptr;
  std::vector<ggml_tensor*> leaves_;
  ggml_tensor* router_ = nullptr;
  std::vector<ggml_tensor*> compared_;
  int64_t tokens_ = 0;
  int64_t num_experts_ = 0;
  int64_t top_k_ = 0;
  ggml_type type_ = GGML_TYPE_BF16;
  bool has_bias_ = false;
};

struct Taken {
  int routers = 0;
  int experts = 0;
  int sums = 0;

  void Add(const ggml_cgraph& graph) {
    for (int i = 0; i < graph.n_nodes;) {
      int end = i + 1;
      if (IsViewOp(graph.nodes[i])) {
        // A chain cannot begin with a view.
      } else if (const auto router = MatchRouter(graph, i)) {
        end = router->end;
        ++routers;
      } else if (const auto chain = MatchExperts(graph, i)) {
        end = chain->end;
        ++experts;
      } else if (const auto sum = MatchCombine(graph, i)) {
        end = sum->end;
        ++sums;
      }
      i = end;
    }
  }
};

bool Agree(const std::vector<double>& expected,
           const std::vector<double>& values) {
  double squares = 0.0;
  for (const double value : expected) squares += value * value;
  const double bound =
      kBound * std::sqrt(squares / static_cast<double>(expected.size())) + 1e-6;
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool is_same = values[i] == expected[i] ||
                         (std::isnan(values[i]) && std::isnan(expected[i]));
    if (!is_same && !(std::abs(values[i] - expected[i]) <= bound)) return false;
  }
  return true;
}

int Main(uint64_t seed, uint64_t graphs) {
  ggml_backend_t cpu =
      ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
  ggml_backend_t plugin = ggml_backend_dev_init(
      ggml_backend_reg_dev_get(ggml_backend_init(), 0), nullptr);
  // Uses one thread, because artificial in-place nodes may overlap their
  // inputs, and several threads have no fixed order.
  for (ggml_backend_t backend : {cpu, plugin}) {
    ggml_backend_reg_t reg =
        ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
    reinterpret_cast<ggml_backend_set_n_threads_t>(
        ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads"))(
        backend, 1);
  }
  Taken taken;
  std::vector<uint64_t> differing;
  for (uint64_t i = 0; i < graphs; ++i) {
    Graph graph(seed + i);
    graph.Allocate(cpu);
    taken.Add(graph.nodes());
    const auto expected = graph.Compute(cpu);
    const auto values = graph.Compute(plugin);
    for (size_t t = 0; t < expected.size(); ++t) {
      if (Agree(expected[t], values[t])) continue;
      differing.push_back(seed + i);
      break;
    }
  }
  std::printf(
      "{\"routers\": %d, \"experts\": %d, \"sums\": %d, \"differing\": [",
      taken.routers, taken.experts, taken.sums);
  for (size_t i = 0; i < differing.size(); ++i) {
    std::printf("%s%llu", i == 0 ? "" : ", ",
                static_cast<unsigned long long>(differing[i]));
  }
  std::printf("]}\n");
  ggml_backend_free(plugin);
  ggml_backend_free(cpu);
  return 0;
}

}  // namespace
}  // namespace switchyard_ggml

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "views_fuzz: wants SEED GRAPHS\n");
    return 2;
  }
  return switchyard_ggml::Main(std::strtoull(argv[1], nullptr, 10),
                               std::strtoull(argv[2], nullptr, 10));
}
