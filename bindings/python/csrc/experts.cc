// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "experts.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "gemm.h"
#include "packed.h"
#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/presets.h"
#include "switchyard/work_list.h"
#include "torch_executor.h"
#include "workspace.h"

namespace switchyard {
namespace python {
namespace {

constexpr char kOp[] = "experts";

ActivateOptions OptionsOf(const char* op, const std::string& activation,
                          const std::string& layout, double alpha, double beta,
                          double linear_beta, double limit, bool limit_after) {
  Preset preset;
  if (!SetOption("activation", activation.c_str(), &preset).ok()) {
    Fail(op, "activation", "unknown: '" + activation + "'");
  }
  if (!SetOption("layout", layout.c_str(), &preset).ok()) {
    Fail(op, "layout", "unknown: '" + layout + "'");
  }
  ActivateOptions options = preset.activate;
  options.alpha = static_cast<float>(alpha);
  options.beta = static_cast<float>(beta);
  options.linear_beta = static_cast<float>(linear_beta);
  options.limit = static_cast<float>(limit);
  options.limit_place =
      limit_after ? ActivatePlace::kAfter : ActivatePlace::kBefore;
  return options;
}

constexpr char kNoSuchExpert[] = "an id outside [0, experts)";

// To read an expert's weights, and to pack them for a product, takes the time
// of about 32 rows: few cuts are better than many. (bench/moe_block.py: 128
// rows 3.4 ms, 2 rows 0.7.)
constexpr WorkListOptions kWork = {/*workers=*/1, /*tile_rows=*/32,
                                   /*min_rows=*/0, /*tile_cost=*/32,
                                   /*row_cost=*/1};

// A layer's arguments.
struct Layer {
  ConstAnyMatrix hidden, ids, weights;
  const Projection* gate;  // with a split layout, else null
  const Projection& up;
  const Projection& down;
  ActivateOptions activate;

  size_t top_k() const { return ids.cols; }
};

void CheckLayer(const Layer& layer) {
  const Projection& up = layer.up;
  const Projection& down = layer.down;
  const bool both_in_up =
      layer.activate.layout == GateUpLayout::kConcatenated ||
      layer.activate.layout == GateUpLayout::kInterleaved;
  const int64_t halves = both_in_up ? 2 : 1;
  CheckFloat(kOp, "hidden", layer.hidden.type);
  Check(layer.ids.type == Type::kI64 || layer.ids.type == Type::kI32, kOp,
        "topk_ids", "not int64 or int32");
  Check(layer.ids.rows == layer.hidden.rows, kOp, "topk_ids",
        "not a row for each of hidden");
  CheckFloat(kOp, "topk_weights", layer.weights.type);
  Check(layer.weights.rows == layer.ids.rows &&
            layer.weights.cols == layer.ids.cols,
        kOp, "topk_weights", "not of the shape of topk_ids");
  Check(up.experts() > 0, kOp, "up", "no experts");
  Check(up.in() == static_cast<int64_t>(layer.hidden.cols), kOp, "up",
        "not [experts, columns, hidden], or with transposed [experts, hidden, "
        "columns]");
  Check(down.experts() == up.experts(), kOp, "down",
        "not as many experts as up");
  Check(down.type() == up.type(), kOp, "down", "not of the dtype of up");
  Check(down.in() * halves == up.out(), kOp, "down",
        both_in_up ? "not of half of the columns of up"
                   : "not of the columns of up, as this layout has them");
  Check(down.out() == up.in(), kOp, "down", "not of the columns of hidden");
  const bool is_split = layer.activate.layout == GateUpLayout::kSplit;
  Check((layer.gate != nullptr) == is_split, kOp, "gate",
        is_split ? "missing, and the layout is 'split'"
                 : "given, and the layout is not 'split'");
  if (!is_split) return;
  Check(layer.gate->experts() == up.experts() && layer.gate->in() == up.in() &&
            layer.gate->out() == up.out() && layer.gate->type() == up.type(),
        kOp, "gate", "not of the shape and dtype of up");
}

// The work as integers: which expert has which of the packed rows.
struct Plan {
  Workspace space{Workspace::kIntegers};
  Span<int32_t> tokens_per_expert, offsets, pairs, scratch;
  AnyMatrix row_index;
  Span<WorkTile> tiles;
  size_t num_tiles = 0;
  size_t max_rows = 0;  // of a tile
};

// One token: its experts in the order of its slots, nothing to sort.
void PlanToken(const Layer& layer, bool allow_dropped, Plan* plan) {
  int32_t* const row_index = plan->row_index.Row<int32_t>(0);
  for (size_t slot = 0; slot < layer.top_k(); ++slot) {
    const int64_t id = IdAt(layer.ids, 0, slot);
    const bool there = 0 <= id && id < layer.up.experts();
    Check(there || allow_dropped, kOp, "topk_ids", kNoSuchExpert);
    row_index[slot] = there ? static_cast<int32_t>(slot) : -1;
    if (!there) continue;
    plan->tiles.data[plan->num_tiles++] = {static_cast<int64_t>(slot), 1,
                                           static_cast<int32_t>(id)};
  }
  plan->max_rows = 1;
}

void PlanTokens(const Layer& layer, bool allow_dropped, TorchExecutor& pool,
                Plan* plan) {
  Report report;
  PackedBuckets buckets = {plan->tokens_per_expert, plan->offsets, plan->pairs,
                           plan->row_index};
  buckets.report = &report;
  BucketOptions options;
  options.allow_dropped = true;
  Check(kOp, BucketPacked({layer.ids, plan->scratch}, buckets, options, pool));
  Check(allow_dropped || report.dropped == 0, kOp, "topk_ids", kNoSuchExpert);
  WorkListOptions work = kWork;
  work.workers = pool.Concurrency();
  Check(kOp, MakeWorkList({plan->tokens_per_expert, plan->offsets},
                          {plan->tiles, &report}, work));
  plan->num_tiles = report.tiles;
  for (size_t i = 0; i < plan->num_tiles; ++i) {
    plan->max_rows =
        std::max(plan->max_rows, static_cast<size_t>(plan->tiles.data[i].rows));
  }
}

void MakePlan(const Layer& layer, bool allow_dropped, TorchExecutor& pool,
              Plan* plan) {
  const size_t pairs = layer.ids.rows * layer.top_k();
  const size_t experts = static_cast<size_t>(layer.up.experts());
  const bool one = layer.ids.rows == 1;
  const size_t tiles = one ? pairs : WorkListSize(pairs, experts, kWork);
  const size_t scratch = BucketScratchSize(pairs, experts, pool);
  for (bool there : {false, true}) {
    if (there) plan->space.Allocate();
    plan->row_index =
        plan->space.Rows(Type::kI32, layer.ids.rows, layer.top_k());
    plan->tiles = {
        static_cast<WorkTile*>(plan->space.Take(tiles * sizeof(WorkTile))),
        tiles};
    if (one) continue;
    plan->tokens_per_expert = plan->space.Ints(experts);
    plan->offsets = plan->space.Ints(experts + 1);
    plan->pairs = plan->space.Ints(pairs);
    plan->scratch = plan->space.Ints(scratch);
  }
  if (one) {
    PlanToken(layer, allow_dropped, plan);
  } else {
    PlanTokens(layer, allow_dropped, pool, plan);
  }
}

// A worker's memory between its products.
struct Buffers {
  AnyMatrix gathered, gate, up, activated;
};

// From token rows to the rows of one expert that are to be summed up.
void RunTile(const Layer& layer, const Plan& plan, const WorkTile& tile,
             const Buffers& buffers, const AnyMatrix& rows,
             Executor& executor) {
  const size_t first = static_cast<size_t>(tile.first_row);
  const size_t count = static_cast<size_t>(tile.rows);
  ConstAnyMatrix in = layer.hidden;
  if (layer.ids.rows > 1 || in.type != layer.up.type()) {
    const int32_t token = 0;
    const Span<const int32_t> pairs =
        layer.ids.rows == 1
            ? Span<const int32_t>(&token, 1)
            : Span<const int32_t>(plan.pairs.data + first, count);
    const AnyMatrix gathered = buffers.gathered.RowRange(0, count);
    Check(kOp, GatherRows({in, pairs, layer.ids}, {gathered}, {}, executor));
    in = gathered;
  }
  const AnyMatrix up = buffers.up.RowRange(0, count);
  const AnyMatrix activated = buffers.activated.RowRange(0, count);
  layer.up.Multiply(tile.expert, in, up, false);
  ActivateInputs activate = {up};
  if (layer.gate == nullptr) {
    activate.gate_bias = layer.up.BiasOf(tile.expert);
  } else {
    const AnyMatrix gate = buffers.gate.RowRange(0, count);
    layer.gate->Multiply(tile.expert, in, gate, false);
    activate = {gate, up};
    activate.up_bias = layer.up.BiasOf(tile.expert);
  }
  Check(kOp, Activate(activate, {activated}, layer.activate, executor));
  layer.down.Multiply(tile.expert, activated,
                      rows.RowRange(first, first + count), true);
}

// Whether oneDNN makes floats of bf16: it takes AVX-512 for enough to multiply
// bf16, which only later CPUs have instructions for. On AVX2 torch does not ask
// it.
bool OneDnnConvertsBF16() {
#if defined(__x86_64__)
  static const bool does = [] {
    if (__builtin_cpu_supports("avx512bf16")) return false;
    StableIValue result = 0;
    return torch_call_dispatcher("mkldnn::_is_mkldnn_bf16_supported", "",
                                 &result, TORCH_ABI_VERSION) == TORCH_SUCCESS &&
           torch::stable::detail::to<bool>(result);
  }();
  return does;
#else
  return false;
#endif
}

// How many products run at a time, a thread each; or one, with all threads.
size_t ProductsAtATime(const Layer& layer, const Plan& plan, size_t threads) {
  // Half a product's time may pass at the end with a thread idle.
  if (plan.num_tiles < 2 * threads) return 1;
  // oneDNN waits for memory then while rows are few: two at a time take 1.0 to
  // 1.4 of the time of one after the other on a Cascade Lake, where with AVX2
  // alone, in torch's own product, they take half of it.
  // (bench/moe_block.py --shape gpt_oss deepseek --tokens 2 4 8 16.)
  const size_t pairs = layer.ids.rows * layer.top_k();
  if (layer.up.type() == Type::kBF16 && OneDnnConvertsBF16() &&
      pairs < 3 * plan.num_tiles) {
    return 1;
  }
  return threads;
}

Tensor Run(const Layer& layer, bool allow_dropped) {
  TorchExecutor pool(TorchThreads());
  Plan plan;
  MakePlan(layer, allow_dropped, pool, &plan);
  const size_t workers = ProductsAtATime(layer, plan, pool.Concurrency());
  Workspace space{Workspace::kRows};
  AnyMatrix rows;
  const Type type = layer.up.type();
  const auto take = [&](size_t count) {
    return Buffers{
        space.Rows(type, count, layer.hidden.cols),
        space.Rows(type, layer.gate == nullptr ? 0 : count,
                   static_cast<size_t>(layer.up.out())),
        space.Rows(type, count, static_cast<size_t>(layer.up.out())),
        space.Rows(type, count, static_cast<size_t>(layer.down.in()))};
  };
  for (bool there : {false, true}) {
    if (there) space.Allocate();
    rows = space.Rows(type, layer.ids.rows * layer.top_k(),
                      static_cast<size_t>(layer.down.out()));
    if (there) break;
    for (size_t i = 0; i < workers; ++i) take(plan.max_rows);
  }
  std::vector<Buffers> buffers;
  for (size_t i = 0; i < workers; ++i) buffers.push_back(take(plan.max_rows));
  const auto run = [&](size_t tile, size_t worker, Executor& executor) {
    RunTile(layer, plan, plan.tiles.data[tile], buffers[worker], rows,
            executor);
  };
  if (workers == 1) {
    for (size_t i = 0; i < plan.num_tiles; ++i) run(i, 0, pool);
  } else {
    std::atomic<size_t> next{0};
    OnWorkers(workers, [&](size_t worker) {
      for (size_t i; (i = next.fetch_add(1)) < plan.num_tiles;) {
        run(i, worker, SerialExecutor());
      }
    });
  }
  const Tensor out = Empty(layer.hidden.type, layer.ids.rows, layer.down.out());
  const AnyMatrix sums(out.data_ptr(), layer.hidden.type, layer.ids.rows,
                       rows.cols, rows.cols);
  Check(kOp, Combine({rows, layer.weights, plan.row_index}, {sums}, {}, pool));
  return out;
}

}  // namespace

Tensor Experts(const Tensor& hidden, const Tensor& topk_ids,
               const Tensor& topk_weights, const Tensor& up, const Tensor& down,
               const OptionalTensor& up_bias, const OptionalTensor& down_bias,
               const std::string& activation, const std::string& layout,
               bool transposed, double alpha, double beta, double linear_beta,
               double limit, bool limit_after, bool allow_dropped,
               int64_t packed, const OptionalTensor& gate) {
  Tensor hidden_keeper = hidden, ids_keeper = hidden, weights_keeper = hidden;
  Projection ups(kOp, "up", up, up_bias, "up_bias", transposed);
  Projection downs(kOp, "down", down, down_bias, "down_bias", transposed);
  const std::shared_ptr<const Packed> kept = FindPacked(kOp, packed);
  if (kept != nullptr) {
    ups.UsePacked(kOp, kept->up);
    downs.UsePacked(kOp, kept->down);
  }
  std::optional<Projection> gates;
  if (gate.has_value()) {
    gates.emplace(kOp, "gate", *gate, OptionalTensor(), "", transposed);
  }
  Layer layer = {MatrixOf(kOp, "hidden", hidden, &hidden_keeper),
                 MatrixOf(kOp, "topk_ids", topk_ids, &ids_keeper),
                 MatrixOf(kOp, "topk_weights", topk_weights, &weights_keeper),
                 gates.has_value() ? &*gates : nullptr,
                 ups,
                 downs,
                 {}};
  layer.activate = OptionsOf(kOp, activation, layout, alpha, beta, linear_beta,
                             limit, limit_after);
  CheckLayer(layer);
  if (layer.ids.rows == 0 || layer.ids.cols == 0) {
    const Tensor out = Empty(layer.hidden.type, hidden.size(0), downs.out());
    std::memset(out.data_ptr(), 0,
                static_cast<size_t>(out.numel()) * SizeOf(layer.hidden.type));
    return out;
  }
  return Run(layer, allow_dropped);
}

Tensor ActivateRows(const Tensor& up, const std::string& activation,
                    const std::string& layout, double alpha, double beta,
                    double linear_beta, double limit, bool limit_after) {
  constexpr char kActivate[] = "activate";
  const ActivateOptions options =
      OptionsOf(kActivate, activation, layout, alpha, beta, linear_beta, limit,
                limit_after);
  Tensor keeper = up;
  const ConstAnyMatrix in = MatrixOf(kActivate, "up", up, &keeper);
  CheckFloat(kActivate, "up", in.type);
  Check(options.layout != GateUpLayout::kSplit, kActivate, "layout",
        "'split', and there is no second matrix here");
  const size_t halves = options.layout == GateUpLayout::kUngated ? 1 : 2;
  Check(in.cols % halves == 0, kActivate, "up", "an odd number of columns");
  const size_t cols = in.cols / halves;
  const Tensor out = Empty(in.type, in.rows, cols);
  TorchExecutor pool(TorchThreads());
  Check(kActivate,
        Activate({in}, {MatrixOf(kActivate, "out", out)}, options, pool));
  return out;
}

}  // namespace python
}  // namespace switchyard
