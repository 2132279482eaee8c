// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "testing/layer_case.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "switchyard/bucket.h"
#include "switchyard/gather.h"
#include "switchyard/quantize.h"
#include "testing/inputs.h"

namespace switchyard::testing_support {
namespace {

// Returns a view of the rows' memory.
AnyRows ViewOf(const FormatRows& rows) {
  const auto memory = [](const std::vector<uint8_t>& bytes) {
    return const_cast<uint8_t*>(bytes.data());
  };
  AnyRows view(memory(rows.codes), rows.format.type, rows.rows, rows.cols,
               rows.cols);
  if (rows.format.group != 0) {
    const size_t scales = rows.format.NumScales(rows.cols);
    view.scales = AnyMatrix(memory(rows.scales), rows.format.scales, rows.rows,
                            scales, scales);
  }
  if (rows.format.sums) {
    view.sums = AnyMatrix(memory(rows.sums), Type::kI32, rows.rows, 1, 1);
  }
  return view;
}
std::vector<float> Uniforms(size_t count, uint32_t seed, float range) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = Uniform(seed, i, range);
  return values;
}
// Converts rows that this file has made. This cannot fail.
void Convert(const ConstAnyRows& from, const AnyRows& to) {
  const Status status = Quantize({from}, {to});
  if (!status.ok()) std::abort();
}
FormatRows RandomRows(const Format& format, size_t rows, size_t cols,
                      uint32_t seed) {
  FormatRows made(format, rows, cols);
  const std::vector<float> values = Uniforms(rows * cols, seed, 2.0f);
  Convert(ConstAnyMatrix(values.data(), rows, cols), ViewOf(made));
  return made;
}
Format FormatOf(Type type) { return kFormats[static_cast<size_t>(type)]; }
RowFormat RowFormatOf(const Format& f) {
  return {f.type, f.group == kWholeRow ? 0 : f.group, f.scales, f.sums};
}

bool IsOne(GateUpLayout layout) { return layout == GateUpLayout::kUngated; }

}  // namespace

ExpertsLayer::ExpertsLayer(const LayerCase& c)
    : case_(c),
      ids_(c.tokens * c.top_k),
      hidden_(RandomRows(c.hidden, c.tokens, c.plan.hidden, c.seed)),
      shared_hidden_(RandomRows(c.hidden, c.has_shared_hidden ? c.tokens : 0,
                                c.plan.hidden, c.seed + 1)),
      topk_weights_(
          RandomRows(FormatOf(c.weight_type), c.tokens, c.top_k, c.seed + 2)) {
  const auto& [experts, hidden, inter] =
      std::tie(c.plan.num_experts, c.plan.hidden, c.plan.intermediate);
  const size_t gate_up = inter * (IsOne(c.layout) ? 1 : 2);
  const size_t shared = c.plan.shared_intermediate;
  const size_t shared_gate_up = shared * (IsOne(c.layout) ? 1 : 2);
  for (size_t t = 0; t < c.tokens; ++t) {
    // The experts of a token are distinct. One expert is busier than the
    // others.
    const size_t step = Hash(c.seed + 3, t) % 3 == 0 ? 0 : Hash(c.seed + 4, t);
    for (size_t s = 0; s < c.top_k; ++s) {
      int32_t& id = ids_[t * c.top_k + s];
      id = static_cast<int32_t>((step + s) % experts);
      if (c.dropped != 0 &&
          Hash(c.seed + 5, t * c.top_k + s) % c.dropped == 0) {
        id = s % 2 == 0 ? -1 : static_cast<int32_t>(experts);
      }
    }
  }
  gate_up_ = Uniforms(experts * gate_up * hidden, c.seed + 6, 0.5f);
  down_ = Uniforms(experts * hidden * inter, c.seed + 7, 0.5f);
  shared_gate_up_ = Uniforms(shared_gate_up * hidden, c.seed + 8, 0.5f);
  shared_down_ = Uniforms(hidden * shared, c.seed + 9, 0.5f);
  if (c.has_biases) {
    const bool is_split = c.layout == GateUpLayout::kSplit;
    gate_bias_ =
        Uniforms(experts * (is_split ? inter : gate_up), c.seed + 10, 1);
    if (is_split) up_bias_ = Uniforms(experts * inter, c.seed + 11, 1);
  }
  if (c.has_residual) residual_ = Uniforms(c.tokens * hidden, c.seed + 12, 1);
  if (c.has_norm) norm_ = Uniforms(hidden, c.seed + 13, 1);
  if (shared != 0) shared_gate_ = Uniforms(c.tokens, c.seed + 14, 2);
}

ExpertsOptions ExpertsLayer::Options() const {
  ExpertsOptions options;
  options.activate.activation = case_.activation;
  options.activate.layout = case_.layout;
  options.shared_activate = options.activate;
  options.operands = RowFormatOf(case_.operands);
  if (case_.down_operands.has_value()) {
    options.down_operands = RowFormatOf(*case_.down_operands);
  }
  options.gate_up_type = case_.gate_up_type;
  options.down_type = case_.down_type;
  options.weights_on_input = case_.weights_on_input;
  return options;
}

ExpertsInputs ExpertsLayer::Inputs() const {
  const auto& [experts, hidden, inter] = std::tie(
      case_.plan.num_experts, case_.plan.hidden, case_.plan.intermediate);
  ExpertsInputs in;
  in.hidden = ViewOf(hidden_);
  if (case_.has_shared_hidden) in.shared_hidden = ViewOf(shared_hidden_);
  if (!gate_bias_.empty()) {
    in.gate_bias = {gate_bias_.data(), experts, gate_bias_.size() / experts};
  }
  if (!up_bias_.empty()) in.up_bias = {up_bias_.data(), experts, inter};
  in.combine.topk_weights = ViewOf(topk_weights_);
  if (!residual_.empty()) {
    in.combine.residual = {residual_.data(), case_.tokens, hidden};
  }
  if (!norm_.empty()) in.combine.norm_weight = {norm_.data(), 1, hidden};
  if (!shared_gate_.empty()) {
    in.combine.shared.gate = {shared_gate_.data(), case_.tokens, 1};
  }
  return in;
}

ConstAnyMatrix ExpertsLayer::ids() const {
  return {ids_.data(), case_.tokens, case_.top_k};
}

const float* ExpertsLayer::WeightsOf(ExpertProduct product,
                                     int32_t expert) const {
  const bool is_shared = expert == ExpertTile::kShared;
  const size_t e = is_shared ? 0 : static_cast<size_t>(expert);
  const size_t inter =
      is_shared ? case_.plan.shared_intermediate : case_.plan.intermediate;
  const size_t hidden = case_.plan.hidden;
  if (product == ExpertProduct::kDown) {
    return (is_shared ? shared_down_ : down_).data() + e * hidden * inter;
  }
  const size_t rows = inter * (IsOne(case_.layout) ? 1 : 2);
  return (is_shared ? shared_gate_up_ : gate_up_).data() + e * rows * hidden +
         (product == ExpertProduct::kUp ? inter * hidden : 0);
}

Status ExpertsLayer::Multiply(const ExpertTile& tile) const {
  const size_t rows = tile.rows.rows, in = tile.rows.cols, cols = tile.out.cols;
  std::vector<float> x(rows * in), y(rows * cols);
  const Status status = Quantize({tile.rows}, {AnyMatrix(x.data(), rows, in)});
  if (!status.ok()) return status;
  const float* const weights = WeightsOf(tile.product, tile.expert);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) {
      const float* const w = weights + (tile.first_column + c) * in;
      double sum = 0;
      for (size_t i = 0; i < in; ++i) sum += double{x[r * in + i]} * w[i];
      y[r * cols + c] = static_cast<float>(sum);
    }
  }
  return Quantize({ConstAnyMatrix(y.data(), rows, cols)}, {tile.out});
}

CombineOutputs ExpertsLayer::OutputsOf(LayerResult* result) const {
  const size_t count = case_.tokens * case_.plan.hidden;
  result->out.assign(count, kNaN);
  CombineOutputs outputs;
  outputs.out = {result->out.data(), case_.tokens, case_.plan.hidden};
  if (case_.has_norm) {
    result->normed.assign(count, kNaN);
    outputs.normed =
        AnyMatrix(result->normed.data(), case_.tokens, case_.plan.hidden);
  }
  return outputs;
}

Status ExpertsLayer::Run(Executor& executor, LayerResult* result,
                         size_t scratch_workers) const {
  return Run([this](const ExpertTile& tile) { return Multiply(tile); },
             executor, result, scratch_workers);
}

Status ExpertsLayer::Run(const ExpertGemm& gemm, Executor& executor,
                         LayerResult* result, size_t scratch_workers) const {
  const std::unique_ptr<int32_t[]> memory(
      new int32_t[ExpertsPlanSize(case_.tokens, case_.top_k, case_.plan)]);
  ExpertsPlan plan;
  Status status = PlanExperts(
      {ids()},
      {{memory.get(), ExpertsPlanSize(case_.tokens, case_.top_k, case_.plan)},
       &plan},
      case_.plan, executor);
  if (!status.ok()) return status;
  const ExpertsOptions options = Options();
  const size_t size = ExpertsScratchSize(
      plan, options,
      scratch_workers == 0 ? executor.Concurrency() : scratch_workers);
  const std::unique_ptr<int32_t[]> scratch(new int32_t[size]);
  std::fill_n(scratch.get(), size, -7);
  ExpertsInputs in = Inputs();
  in.plan = &plan;
  in.scratch = {scratch.get(), size};
  return RunExperts(in, OutputsOf(result), options, gemm, executor);
}

LayerResult ExpertsLayer::OneByOne() const {
  const ExpertsPlanOptions& plan = case_.plan;
  const ExpertsOptions options = Options();
  const ExpertsInputs in = Inputs();
  const size_t pairs = ids_.size(), tokens = case_.tokens;
  const auto check = [](const Status& status) {
    if (!status.ok()) {
      std::fprintf(stderr, "OneByOne: %s\n", status.message());
      std::abort();
    }
  };
  std::vector<int32_t> counts(plan.num_experts), offsets(plan.num_experts + 1),
      sorted(pairs), row_index(pairs);
  BucketOptions buckets;
  buckets.allow_dropped = true;
  const AnyMatrix index(row_index.data(), tokens, case_.top_k);
  check(BucketPacked({ids()}, {counts, offsets, sorted, index}, buckets));
  const auto rows = static_cast<size_t>(offsets.back());

  // Computes some rows of one expert, or of the shared expert: the products
  // of gate and up, the activation, and the down product.
  const auto run = [&](int32_t expert, const ConstAnyRows& x, size_t inter,
                       const ActivateInputs& more, ActivateOptions activate,
                       const AnyMatrix& out) {
    if (x.rows == 0) return;
    const size_t cols = inter * (IsOne(case_.layout) ? 1 : 2);
    const bool is_split = case_.layout == GateUpLayout::kSplit;
    const size_t product = is_split ? inter : cols;
    FormatRows gate(FormatOf(case_.gate_up_type), x.rows, product);
    FormatRows up(FormatOf(case_.gate_up_type), x.rows, product);
    check(Multiply({is_split ? ExpertProduct::kGate : ExpertProduct::kGateUp,
                    expert, 0, 0, x, ViewOf(gate)}));
    ActivateInputs inputs = more;
    inputs.gate = ViewOf(gate);
    if (is_split) {
      check(Multiply({ExpertProduct::kUp, expert, 0, 0, x, ViewOf(up)}));
      inputs.up = ViewOf(up);
    }
    FormatRows activated(down_operands(), x.rows, inter);
    check(Activate(inputs, {ViewOf(activated)}, activate));
    check(
        Multiply({ExpertProduct::kDown, expert, 0, 0, ViewOf(activated), out}));
  };
  const auto converted = [&](const ConstAnyRows& from) {
    FormatRows to(case_.operands, from.rows, from.cols);
    Convert(from, ViewOf(to));
    return to;
  };

  const FormatRows operands = converted(in.hidden);
  FormatRows gathered(case_.operands, rows, plan.hidden);
  const Format down = FormatOf(case_.down_type);
  FormatRows outputs(down, rows, plan.hidden);
  check(GatherRows({ViewOf(operands), {sorted.data(), rows}, ids()},
                   {ViewOf(gathered)}));
  std::vector<float> ones(pairs, 1.0f);
  for (size_t e = 0; e < plan.num_experts; ++e) {
    const auto begin = static_cast<size_t>(offsets[e]);
    const auto end = static_cast<size_t>(offsets[e + 1]);
    ActivateInputs more;
    if (!gate_bias_.empty()) more.gate_bias = in.gate_bias.RowRange(e, e + 1);
    if (!up_bias_.empty()) more.up_bias = in.up_bias.RowRange(e, e + 1);
    ActivateOptions activate = options.activate;
    FormatRows scales(FormatOf(case_.weight_type), end - begin, 1);
    if (case_.weights_on_input && begin != end) {
      const size_t size = SizeOf(case_.weight_type);
      for (size_t r = begin; r < end; ++r) {
        std::copy_n(&topk_weights_.codes[static_cast<size_t>(sorted[r]) * size],
                    size, &scales.codes[(r - begin) * size]);
      }
      more.row_scale = ViewOf(scales);
      activate.row_scale_place = ActivatePlace::kBefore;
    }
    run(static_cast<int32_t>(e), ViewOf(gathered).RowRange(begin, end),
        plan.intermediate, more, activate,
        ViewOf(outputs).RowRange(begin, end));
  }

  CombineInputs sums = in.combine;
  sums.rows = ViewOf(outputs);
  sums.row_index = RowIndex(ConstAnyMatrix(index));
  if (case_.weights_on_input) {
    sums.topk_weights = {ones.data(), tokens, case_.top_k};
  }
  FormatRows shared(down, plan.shared_intermediate != 0 ? tokens : 0,
                    plan.hidden);
  if (plan.shared_intermediate != 0) {
    const FormatRows x =
        converted(case_.has_shared_hidden ? in.shared_hidden : in.hidden);
    run(ExpertTile::kShared, ViewOf(x), plan.shared_intermediate, {},
        options.shared_activate, ViewOf(shared));
    sums.shared.rows = ViewOf(shared);
  }
  LayerResult result;
  check(Combine(sums, OutputsOf(&result), options.combine));
  return result;
}

}  // namespace switchyard::testing_support
