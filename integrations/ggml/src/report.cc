// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "report.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "claims.h"
#include "ggml-backend.h"
#include "weights.h"

namespace switchyard_ggml {
namespace {

struct Line {
  int64_t calls = 0;
  int64_t nodes = 0;
  int64_t tokens = 0;
  double seconds = 0.0;
  std::set<std::string> layers;  // for each layer, the name of one tensor
};

// The table. Its destructor prints it, because a library notices the end of
// the program only through destructors.
class Table {
 public:
  ~Table() {
    if (lines_.empty() && declined_.empty()) return;
    std::fprintf(stderr, "switchyard: %-66s %6s %8s %8s %9s %10s %9s\n", "what",
                 "layers", "calls", "nodes", "tokens", "ms", "us/call");
    for (const auto& [what, line] : lines_) {
      std::fprintf(
          stderr, "switchyard: %-66s %6zu %8lld %8lld %9lld %10.2f %9.1f\n",
          what.c_str(), line.layers.size(), static_cast<long long>(line.calls),
          static_cast<long long>(line.nodes),
          static_cast<long long>(line.tokens), line.seconds * 1e3,
          line.seconds * 1e6 / static_cast<double>(line.calls));
    }
    for (const auto& [what, weights] : declined_) {
      std::fprintf(stderr, "switchyard: left to ggml: %zu products of %s\n",
                   weights.size(), what.c_str());
    }
  }

  void Add(const std::string& what, const char* layer, int64_t nodes,
           int64_t tokens, double seconds) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Line& line = lines_[what];
    line.layers.insert(layer);
    line.calls += 1;
    line.nodes += nodes;
    line.tokens += tokens;
    line.seconds += seconds;
  }
  void Decline(const std::string& what, const char* weights) {
    const std::lock_guard<std::mutex> lock(mutex_);
    declined_[what].insert(weights);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Line> lines_;
  std::map<std::string, std::set<std::string>> declined_;
};

Table& TheTable() {
  static Table table;
  return table;
}

std::string Number(int64_t n) { return std::to_string(n); }

void Add(const std::string& what, const ggml_tensor* of,
         switchyard::Status done, const Chain& chain, int64_t tokens,
         double seconds) {
  TheTable().Add(
      done.ok() ? what : what + ", by the CPU backend: " + done.message(),
      of->name, chain.end - chain.begin, tokens, seconds);
}

std::string Format(const ggml_tensor* weights) {
  return ggml_type_name(weights->type) +
         std::string(IsPacked(weights) ? " packed" : "");
}

// Returns the formats of gate, up and down as text. Names a format once if
// two or three products in a row have it.
std::string Formats(const ExpertsChain& chain) {
  std::string formats = Format(chain.gate.weights);
  std::string last = formats;
  for (const Linear* linear : {&chain.up, &chain.down}) {
    if (linear->weights == nullptr) continue;
    const std::string format = Format(linear->weights);
    if (format == last) continue;
    formats += " and " + format;
    last = format;
  }
  return formats;
}

std::string Tail(const CombineChain& chain) {
  std::string tail = "sum of " + Number(chain.weights->ne[1]);
  if (chain.residual != nullptr) tail += " + residual";
  if (chain.normed != nullptr) tail += " + norm";
  return tail;
}

}  // namespace

bool Reporting() {
  static const bool reporting = [] {
    const char* value = std::getenv("SWITCHYARD_GGML_REPORT");
    return value != nullptr && *value != '\0' && std::string(value) != "0";
  }();
  return reporting;
}

void Record(const RouterChain& chain, switchyard::Status done, double seconds) {
  const char* score = chain.options.score == switchyard::Score::kSoftmax
                          ? "softmax"
                      : chain.options.score == switchyard::Score::kSigmoid
                          ? "sigmoid"
                          : "softmax of selected";
  Add(std::string("router ") + score +
          (chain.bias != nullptr ? " + bias, " : ", ") + Number(chain.top_k) +
          " of " + Number(chain.logits->ne[0]),
      chain.logits, done, chain, chain.logits->ne[1], seconds);
}

void Record(const ExpertsChain& chain, switchyard::Status done,
            double seconds) {
  const ggml_tensor* down = chain.down.weights;
  Add("experts " + Formats(chain) + " " + Number(down->ne[2]) + " x " +
          Number(down->ne[1]) + " x " + Number(down->ne[0]) +
          (chain.down.bias != nullptr ? " + bias, " : ", ") +
          Tail(chain.combine),
      down, done, chain, chain.ids->ne[1], seconds);
}

void Record(const CombineChain& chain, switchyard::Status done,
            double seconds) {
  Add("combine " + Tail(chain), Root(chain.weights), done, chain,
      chain.rows->ne[2], seconds);
}

void RecordProduct(const ggml_tensor* node, double seconds) {
  const ggml_tensor* weights = node->src[0];
  if (node->op == GGML_OP_MUL_MAT) {
    TheTable().Add("matrix " + Format(weights), weights->name, 1,
                   ggml_nrows(node), seconds);
  } else {
    TheTable().Add("one product of experts " + Format(weights), weights->name,
                   1, node->ne[2], seconds);
  }
}

void RecordRest(int nodes, double seconds) {
  TheTable().Add("of no chain, by the CPU backend", "", nodes, 0, seconds);
}

void RecordDeclined(const ggml_tensor* mul_mat_id, const char* reason) {
  const ggml_tensor* weights = mul_mat_id->src[0];
  TheTable().Decline(std::string(ggml_type_name(weights->type)) + " in " +
                         (weights->buffer == nullptr
                              ? "no buffer"
                              : ggml_backend_buffer_name(weights->buffer)) +
                         ": " + reason,
                     weights->name);
}

}  // namespace switchyard_ggml
