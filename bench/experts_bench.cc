// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Times the experts of a layer of Qwen3-30B-A3B with quantised weights, from
// the router's ids to the residual stream. Compares PlanExperts and
// RunExperts with ggml's graph on the same ids, weights and f32 rows.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/ggml.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "bench/weights.h"
#include "src/base/weight_layout.h"
#include "switchyard/layer.h"

namespace switchyard::bench {
namespace {

constexpr size_t kExperts = 128, kTopK = 8, kHidden = 2048, kIntermediate = 768;
constexpr size_t kTokens[] = {1, 4, 32, 512};
constexpr size_t kDistinctExperts = 7;

// Returns the number of batches that calls rotate over. Calls with few tokens
// need several batches; otherwise the experts' weights could stay in a cache.
size_t SlotsOf(size_t tokens) {
  return std::max<size_t>(1, std::min<size_t>(32, 128 / tokens));
}

struct Products {
  Weights gate, up, down;
  explicit Products(WeightFormat format)
      : gate(format, kExperts, kIntermediate, kHidden, 1, kDistinctExperts),
        up(format, kExperts, kIntermediate, kHidden, 101, kDistinctExperts),
        down(format, kExperts, kHidden, kIntermediate, 201, kDistinctExperts) {}
  ggml::ExpertsWeights Load() const {
    const auto load = [](const Weights& weights) {
      const ExpertWeights& w = weights.stored();
      return ggml::Load(w, ggml::Repacks(w.format, w.rows, w.cols));
    };
    return {load(gate), load(up), load(down)};
  }
};

// The weights in one format, which the cases with 1 to 512 tokens share.
struct Layer {
  WeightFormat format;
  Products ours;
  std::unique_ptr<Products> q8_0;
  ggml::ExpertsWeights loaded;

  explicit Layer(WeightFormat format_in) : format(format_in), ours(format) {}

  // Returns the weights as ggml tensors, which the first call makes. ggml has
  // no int8 format, so it gets the same floats in q8_0.
  const ggml::ExpertsWeights& Loaded() {
    if (loaded.gate != nullptr) return loaded;
    if (!ggml::Has(format)) {
      q8_0 = std::make_unique<Products>(WeightFormat::kQ8_0);
    }
    return loaded = (q8_0 != nullptr ? *q8_0 : ours).Load();
  }
};

std::shared_ptr<Layer> LayerOf(WeightFormat format) {
  static std::shared_ptr<Layer> last;
  if (last == nullptr || last->format != format) {
    last = nullptr;
    last = std::make_shared<Layer>(format);
  }
  return last;
}

struct Data {
  size_t tokens, slots;
  std::shared_ptr<Layer> layer;
  Aligned<int32_t> ids;  // [slots, tokens, top_k]
  Aligned<float> topk_weights, hidden, residual, out;
  LayerWeights weights;
  ExpertsOptions options;
  std::vector<int32_t> plan_memory, scratch;

  Data(WeightFormat format, size_t tokens_in)
      : tokens(tokens_in),
        slots(SlotsOf(tokens)),
        layer(LayerOf(format)),
        ids(TopKIds(slots * tokens, kExperts, kTopK, Spread::kUniform)),
        topk_weights(Floats(tokens * kTopK, 21, 0.25f)),
        hidden(Floats(tokens * kHidden, 22, 1.0f)),
        residual(Floats(tokens * kHidden, 23, 1.0f)),
        out(tokens * kHidden) {
    weights.gate = layer->ours.gate.packed();
    weights.up = layer->ours.up.packed();
    weights.down = layer->ours.down.packed();
    options.activate.layout = GateUpLayout::kSplit;
    options.operands = OperandsOf(format);
  }

  const int32_t* Ids(size_t slot) const {
    return ids.data() + slot * tokens * kTopK;
  }
  Status Call(size_t slot, Executor& executor) {
    ExpertsPlanOptions shape;
    shape.num_experts = kExperts;
    shape.hidden = kHidden;
    shape.intermediate = kIntermediate;
    shape.workers = executor.Concurrency();
    SetCosts(layer->format, &shape);
    plan_memory.resize(ExpertsPlanSize(tokens, kTopK, shape));
    ExpertsPlan plan;
    Status status = PlanExperts(
        {ConstAnyMatrix(Ids(slot), tokens, kTopK)},
        {{plan_memory.data(), plan_memory.size()}, &plan}, shape, executor);
    if (!status.ok()) return status;
    const size_t size = ExpertsScratchSize(plan, options, shape.workers);
    if (scratch.size() < size) scratch.resize(size);
    ExpertsInputs in;
    in.plan = &plan;
    in.hidden = ConstAnyMatrix(hidden.data(), tokens, kHidden);
    in.scratch = {scratch.data(), scratch.size()};
    in.combine.topk_weights =
        ConstAnyMatrix(topk_weights.data(), tokens, kTopK);
    in.combine.residual = ConstAnyMatrix(residual.data(), tokens, kHidden);
    return RunExperts(in, {AnyMatrix(out.data(), tokens, kHidden)}, options,
                      weights, executor);
  }
  // Expects the library's results on one thread; multiply_bench checks the bits
  // of the products. ggml's results differ, because ggml rounds the rows in
  // another way. It also rounds the weights of int8 to q8_0.
  std::vector<Output> Wanted() {
    Output sums(out, ggml::Has(layer->format) ? 0.02 : 0.05);
    for (size_t slot = 0; slot < slots; ++slot) {
      Check(Call(slot, SerialExecutor()));
      const std::vector<float> values(out.data(), out.data() + out.size());
      sums.AddExact(values);
      Append(values, &sums.floats);
    }
    return {sums};
  }
};

void Add(WeightFormat format, const char* name, size_t tokens) {
  Facts facts = {
      "experts/" + std::string(name) + "/T=" + std::to_string(tokens),
      "Qwen3-30B-A3B", "token"};
  facts.units = static_cast<double>(tokens);
  facts.bytes =
      static_cast<double>(std::min(tokens * kTopK, kExperts) *
                          (2 * PackedBytes(format, kIntermediate, kHidden) +
                           PackedBytes(format, kHidden, kIntermediate)));
  facts.slots = SlotsOf(tokens);
  facts.large = true;
  Case<Data> contest(facts,
                     [=] { return std::make_unique<Data>(format, tokens); });
  for (const size_t threads : {size_t{1}, size_t{2}}) {
    contest.AddOurs(MainIsas(), {0}, threads);
    if (!ggml::Available()) continue;
    contest.Add(ggml::Named(threads, {0}), [threads](Data& d) {
      return [&d, run = ggml::Experts(d.layer->Loaded(), d.tokens, kTopK,
                                      threads)](size_t slot) {
        run({d.hidden.data(), d.Ids(slot), d.topk_weights.data(),
             d.residual.data(), d.out.data()});
      };
    });
  }
  // Adds a probe that only reads the weights of the token's experts.
  if (tokens != 1) return;
  contest.Add({"probe"}, [](Data& d) {
    return [&d](size_t slot) {
      for (size_t k = 0; k < kTopK; ++k) {
        const auto expert = static_cast<size_t>(d.Ids(slot)[k]);
        for (const ExpertWeights* const weights :
             {&d.weights.gate, &d.weights.up, &d.weights.down}) {
          BestProbes().move(weights->data.Row<uint8_t>(expert),
                            weights->data.cols / sizeof(float), nullptr, 0);
        }
      }
    };
  });
}

const Registration registration([] {
  const auto add = [](WeightFormat format, const char* name) {
    // Leaves out f32, because its weights would take 2.4 GB.
    if (format == WeightFormat::kF32) return;
    for (const size_t tokens : kTokens) {
      Add(format, name, tokens);
    }
  };
#define SWITCHYARD_ADD(format, name, ...) add(WeightFormat::format, name);
  SWITCHYARD_WEIGHT_FORMATS(SWITCHYARD_ADD)
#undef SWITCHYARD_ADD
});

}  // namespace
}  // namespace switchyard::bench
