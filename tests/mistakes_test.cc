// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Mistakes of somebody who calls the C++ API for the first time: a table of
// deliberate ones, each with the argument that the message has to begin with.
// (tests/*_errors_test.cc have the rest of each message, and that nothing is
// written.)

#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/hyper.h"
#include "switchyard/isa.h"
#include "switchyard/map.h"
#include "switchyard/presets.h"
#include "switchyard/quantize.h"
#include "switchyard/route.h"
#include "switchyard/work_list.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {
namespace {

// Tokens, slots, pairs, experts, hidden size, intermediate size, streams.
constexpr size_t kT = 3, kK = 2, kP = kT * kK, kE = 4, kH = 5, kI = 8, kN = 2;

// Arguments of a valid call of each function.
struct Layer {
  std::vector<float> logits = std::vector<float>(kT * kE),
                     weights = std::vector<float>(kP),
                     tokens = std::vector<float>(kT * kH, 1.0f),
                     packed = std::vector<float>(kP * kH, 1.0f),
                     gate = std::vector<float>(kP * 2 * kI, 1.0f), up = gate,
                     bias = std::vector<float>(kE * kI), out = gate,
                     normed = std::vector<float>(64),
                     streams = std::vector<float>(kT * kN * kH, 1.0f),
                     post = std::vector<float>(kT * kN), scales = post,
                     vector = std::vector<float>(kH, 1.0f);
  std::vector<int32_t> ids = {0, 1, 2, 3, 0, 2}, index = {0, 2, 3, 5, 1, 4},
                       pairs = {0, 4, 1, 2, 5, 3}, offsets = {0, 2, 3, 5, 6},
                       counts = {2, 1, 2, 1}, numbers = counts,
                       places = offsets, sorted = pairs,
                       mapped = std::vector<int32_t>(64), index_out = ids;
  std::vector<uint32_t> triple = std::vector<uint32_t>(3);
  std::vector<WorkTile> tiles = std::vector<WorkTile>(16);

  template <class T>
  static Matrix<T> M(std::vector<T>& v, size_t rows, size_t cols) {
    return {v.data(), rows, cols};
  }

  struct {
    RouteInputs in;
    RouteOutputs out;
    RouteOptions options;
  } route = {{M(logits, kT, kE)}, {M(ids, kT, kK), M(weights, kT, kK)}, {}};
  struct {
    ActivateInputs in;
    ActivateOutputs out;
    ActivateOptions options;
  } act = {{M(gate, kP, kI), M(up, kP, kI)}, {M(out, kP, kI)}, {}};
  struct {
    CombineInputs in;
    CombineOutputs out;
    CombineOptions options;
  } comb = {{M(packed, kP, kH), M(weights, kT, kK), M(index, kT, kK)},
            {M(out, kT, kH)},
            {}};
  struct {
    GatherInputs in;
    GatherOutputs out;
  } gather = {{M(tokens, kT, kH), pairs, M(ids, kT, kK)}, {M(out, kP, kH)}};
  struct {
    ScatterInputs in;
    ScatterOutputs out;
  } scatter = {{M(packed, kP, kH), M(index, kT, kK)}, {M(out, kP, kH)}};
  struct {
    QuantizeInputs in;
    QuantizeOutputs out;
  } quant = {{M(tokens, kT, kH)}, {M(out, kT, kH)}};
  struct {
    HyperInputs in;
    HyperOutputs out;
    HyperOptions options;
  } hyper = {{M(streams, kT* kN, kH),
              M(tokens, kT, kH),
              M(post, kT, kN),
              {},
              M(post, kT, kN)},
             {M(out, kT* kN, kH), {}, M(normed, kT, kH)},
             {kN}};
  struct {
    BucketInputs in;
    PackedBuckets out;
    BucketOptions options;
  } bucket = {{M(ids, kT, kK)}, {numbers, places, sorted}, {}};
  StridedBuckets strided = {numbers, mapped, kP};
  struct {
    AlignedInputs in;
    AlignedBuckets out;
    AlignedOptions options;
  } aligned = {{M(ids, kT, kK)}, {numbers, places, mapped}, {4}};
  struct {
    MapInputs in;
    MapOutputs out;
    MapOptions options;
  } map = {{M(ids, kT, kK)},
           {{{numbers.data(), 2}, {places.data(), 3}, sorted}},
           {2}};
  struct {
    WorkListInputs in;
    WorkListOutputs out;
    WorkListOptions options;
  } work = {{counts, offsets}, {tiles}, {}};
  struct {
    DispatchInputs in = {2, kE, kI};
    DispatchOutputs out;
    DispatchOptions options;
  } dispatch = {{2, kE, kI}, {triple}, {}};

  Layer() = default;
  Layer(const Layer&) = delete;

  Status Route() const { return RouteTopK(route.in, route.out, route.options); }
  Status Act() const { return Activate(act.in, act.out, act.options); }
  Status Comb() const { return Combine(comb.in, comb.out, comb.options); }
  Status Gather() const { return GatherRows(gather.in, gather.out); }
  Status Scatter() const { return ScatterRows(scatter.in, scatter.out); }
  Status Quant() const { return Quantize(quant.in, quant.out); }
  Status Hyper() const {
    return HyperConnect(hyper.in, hyper.out, hyper.options);
  }
  Status Bucket() const {
    return BucketPacked(bucket.in, bucket.out, bucket.options);
  }
  Status Stride() const { return BucketStrided(bucket.in, strided); }
  Status Align() const {
    return BucketAligned(aligned.in, aligned.out, aligned.options);
  }
  Status Map() const { return MapPairs(map.in, map.out, map.options); }
  Status Work() const { return MakeWorkList(work.in, work.out, work.options); }
  Status Dispatch() const {
    return MakeDispatchArgs(dispatch.in, dispatch.out, dispatch.options);
  }

  void Shared() { comb.in.shared = {M(tokens, kT, kH), M(weights, kT, 1)}; }
  void Norm() {
    comb.in.norm_weight = vector;
    comb.out.normed = M(normed, kT, kH);
  }
};

// Rows and columns the wrong way round.
template <class View>
void Transpose(View& view) {
  std::swap(view.rows, view.cols);
  view.stride = view.cols;
}

struct Mistake {
  const char* made;
  const char* expected;  // the message begins so
  Status (*call)(Layer& l);
};
#define MISTAKE(made, expected, call, ...) \
  {                                        \
    made, expected, [](Layer& l) {         \
      __VA_ARGS__;                         \
      return l.call();                     \
    }                                      \
  }
// An argument left out.
#define FORGOTTEN(field, expected, call) \
  MISTAKE(#field " left out", expected ": not given", call, l.field = {})

const Mistake kMistakes[] = {
    // RouteTopK
    FORGOTTEN(route.in.logits, "RouteTopK: logits", Route),
    FORGOTTEN(route.out.topk_ids, "RouteTopK: topk_ids", Route),
    FORGOTTEN(route.out.topk_weights, "RouteTopK: topk_weights", Route),
    MISTAKE("logits by expert", "RouteTopK: logits: is not", Route,
            Transpose(l.route.in.logits)),
    MISTAKE("outputs for one token fewer", "RouteTopK: topk_ids: is not", Route,
            l.route.out.topk_ids.rows = l.route.out.topk_weights.rows = 2),
    MISTAKE("a slot too many in weights", "RouteTopK: topk_weights: is not",
            Route, l.route.out.topk_weights.cols = 1),
    MISTAKE("ids and weights the wrong way round",
            "RouteTopK: topk_ids: has to be", Route,
            std::swap(l.route.out.topk_ids, l.route.out.topk_weights)),
    MISTAKE("logits of integers", "RouteTopK: logits: has to be", Route,
            l.route.in.logits = Layer::M(l.ids, kT, kK)),
    MISTAKE("logits null", "RouteTopK: logits: data is null", Route,
            l.route.in.logits.data = nullptr),
    MISTAKE("stride in bytes of half the row", "RouteTopK: logits: stride",
            Route, l.route.in.logits.stride = 2),
    MISTAKE("weights in place of the logits",
            "RouteTopK: topk_weights: overlaps logits", Route,
            l.route.out.topk_weights = Layer::M(l.logits, kT, kK)),
    MISTAKE("more slots than experts", "RouteTopK: topk_ids: top_k", Route,
            l.route.in.logits = Layer::M(l.logits, kT, 1)),
    MISTAKE("a bias of another model", "RouteTopK: correction_bias: is not",
            Route, l.route.in.correction_bias = l.vector),
    MISTAKE("bias_index without biases", "RouteTopK: bias_index", Route,
            l.route.in.bias_index = Layer::M(l.ids, kT, 1)),
    MISTAKE("a mask of integers", "RouteTopK: token_mask: has to be", Route,
            l.route.in.token_mask = Layer::M(l.ids, kT, 1)),
    MISTAKE("a map of two experts", "RouteTopK: expert_map: is not", Route,
            l.route.in.expert_map = Layer::M(l.ids, 1, 2)),
    MISTAKE("identity_weights without zero experts",
            "RouteTopK: identity_weights", Route,
            l.route.out.identity_weights = Layer::M(l.scales, kT, 1)),
    MISTAKE("groups that do not divide the experts",
            "RouteTopK: options: num_expert_group", Route,
            l.route.options.num_expert_group = 3),
    // Activate
    FORGOTTEN(act.in.gate, "Activate: gate", Act),
    FORGOTTEN(act.in.up, "Activate: up", Act),
    FORGOTTEN(act.out.out, "Activate: out", Act),
    MISTAKE("out of a row fewer", "Activate: out: is not", Act,
            --l.act.out.out.rows),
    MISTAKE("out by column", "Activate: out: is not", Act,
            Transpose(l.act.out.out)),
    MISTAKE("up of half the columns", "Activate: up: is not", Act,
            l.act.in.up.cols /= 2),
    MISTAKE("both in gate without the layout", "Activate: up: not given", Act,
            l.act.in = {Layer::M(l.gate, kP, 2 * kI)}),
    MISTAKE("the layout without both in gate", "Activate: gate: is not", Act,
            l.act.in.up = {};
            l.act.options.layout = GateUpLayout::kConcatenated),
    MISTAKE("up beside both in gate", "Activate: up: given", Act,
            l.act.in.gate = Layer::M(l.gate, kP, 2 * kI);
            l.act.options.layout = GateUpLayout::kInterleaved),
    MISTAKE("out of both halves", "Activate: out: is not", Act,
            l.act.in = {Layer::M(l.gate, kP, 2 * kI)};
            l.act.out.out = Layer::M(l.out, kP, 2 * kI - 1);
            l.act.options.layout = GateUpLayout::kConcatenated),
    MISTAKE("biases of all experts without offsets",
            "Activate: offsets: not given", Act,
            l.act.in.gate_bias = Layer::M(l.bias, kE, kI)),
    MISTAKE("offsets without the last", "Activate: offsets: size", Act,
            l.act.in.gate_bias = Layer::M(l.bias, kE, kI);
            l.act.in.offsets = l.counts),
    MISTAKE("offsets and counts", "Activate: offsets: given beside", Act,
            l.act.in.offsets = l.offsets;
            l.act.in.tokens_per_expert = l.counts),
    MISTAKE("a bias of another width", "Activate: up_bias: is not", Act,
            l.act.in.up_bias = l.vector),
    MISTAKE("a scale in one row", "Activate: row_scale: is not", Act,
            l.act.in.row_scale = l.weights),
    MISTAKE("out over half of gate", "Activate: out: overlaps gate", Act,
            l.act.out.out = AnyMatrix(l.gate.data() + 4, kP, kI)),
    // Combine
    FORGOTTEN(comb.in.rows, "Combine: rows", Comb),
    FORGOTTEN(comb.in.topk_weights, "Combine: topk_weights", Comb),
#ifndef SWITCHYARD_BEFORE
    FORGOTTEN(comb.in.row_index, "Combine: row_index", Comb),
#endif
    FORGOTTEN(comb.out.out, "Combine: out", Comb),
    MISTAKE("out for one token fewer", "Combine: out: is not", Comb,
            --l.comb.out.out.rows),
    MISTAKE("out by column", "Combine: out: is not", Comb,
            Transpose(l.comb.out.out)),
    MISTAKE("out and normed of another hidden size", "Combine: out: is not",
            Comb, l.Norm(); --l.comb.out.out.cols;
            --l.comb.out.normed.cols),
    MISTAKE("weights by slot", "Combine: topk_weights: is not", Comb,
            Transpose(l.comb.in.topk_weights)),
    MISTAKE("packed rows in the order of tokens", "Combine: rows: is not", Comb,
            l.comb.in.rows.rows = 4;
            l.comb.in.row_index = RowIndex::kTokenOrder),
    MISTAKE("row_index of int64", "Combine: row_index: has to be int32", Comb,
            l.comb.in.row_index.type = Type::kI64),
    MISTAKE("normed without its weight", "Combine: norm_weight: not given",
            Comb, l.Norm();
            l.comb.in.norm_weight = {}),
    MISTAKE("a norm's weight without normed", "Combine: normed: not given",
            Comb, l.Norm();
            l.comb.out.normed = {}),
    MISTAKE("normed alone, of another hidden size", "Combine: normed: is not",
            Comb, l.Norm();
            l.comb.out.out = {}; --l.comb.out.normed.cols),
    MISTAKE("a shared expert without its gate",
            "Combine: shared.gate: not given", Comb, l.Shared();
            l.comb.in.shared.gate = {}),
    MISTAKE("a gate without its shared expert",
            "Combine: shared.rows: not given", Comb, l.Shared();
            l.comb.in.shared.rows = {}),
    MISTAKE("a residual of another token count", "Combine: residual: is not",
            Comb, l.comb.in.residual = Layer::M(l.packed, kP, kH)),
    MISTAKE("out over rows", "Combine: out: overlaps rows", Comb,
            l.comb.out.out = Layer::M(l.packed, kT, kH)),
    MISTAKE("a norm of shared experts without any", "Combine: norms.shared",
            Comb, l.comb.in.norms.shared = l.vector),
    MISTAKE("identity experts without weight",
            "Combine: identity.weight: not given", Comb,
            l.comb.in.identity.rows = Layer::M(l.tokens, kT, kH)),
    MISTAKE("no shared expert in num_shared", "Combine: shared.num_shared",
            Comb, l.Shared();
            l.comb.in.shared.num_shared = 0),
    MISTAKE("a negative eps", "Combine: options: eps", Comb,
            l.comb.options.eps = -1.0f),
    // GatherRows, ScatterRows, Quantize
    FORGOTTEN(gather.in.tokens, "GatherRows: tokens", Gather),
    FORGOTTEN(gather.in.pairs, "GatherRows: pairs", Gather),
    FORGOTTEN(gather.in.topk_ids, "GatherRows: topk_ids", Gather),
    FORGOTTEN(gather.out.rows, "GatherRows: rows", Gather),
    MISTAKE("tokens by column", "GatherRows: tokens: is not", Gather,
            Transpose(l.gather.in.tokens)),
    MISTAKE("rows for tokens, not for pairs", "GatherRows: rows: is not",
            Gather, l.gather.out.rows.rows = kT),
    MISTAKE("topk_ids by slot", "GatherRows: topk_ids: is not", Gather,
            Transpose(l.gather.in.topk_ids)),
    MISTAKE("row_index of pairs", "GatherRows: row_index: is not", Gather,
            l.gather.in.row_index = l.index),
    MISTAKE("codes without scales", "GatherRows: rows.scales: not given",
            Gather, l.gather.out.rows.type = Type::kI8),
    FORGOTTEN(scatter.in.packed, "ScatterRows: packed", Scatter),
    FORGOTTEN(scatter.in.row_index, "ScatterRows: row_index", Scatter),
    FORGOTTEN(scatter.out.rows, "ScatterRows: rows", Scatter),
    MISTAKE("rows for tokens, not for slots", "ScatterRows: rows: is not",
            Scatter, l.scatter.out.rows.rows = kT),
    FORGOTTEN(quant.in.from, "Quantize: from", Quant),
    FORGOTTEN(quant.out.rows, "Quantize: rows", Quant),
    MISTAKE("codes without scales", "Quantize: rows.scales: not given", Quant,
            l.quant.out.rows.type = Type::kI8),
    MISTAKE("blocks of 5 columns", "Quantize: rows: cols", Quant,
            l.quant.out.rows.type = Type::kQ8_0),
    MISTAKE("codes of f32", "Quantize: rows.scales: given", Quant,
            l.quant.out.rows.scales = Layer::M(l.normed, kT, 1)),
    // HyperConnect
    FORGOTTEN(hyper.in.streams, "HyperConnect: streams", Hyper),
    FORGOTTEN(hyper.in.block, "HyperConnect: block", Hyper),
    FORGOTTEN(hyper.in.post, "HyperConnect: post", Hyper),
    FORGOTTEN(hyper.in.pre, "HyperConnect: pre", Hyper),
    MISTAKE("streams by column", "HyperConnect: streams: ", Hyper,
            Transpose(l.hyper.in.streams)),
    MISTAKE("the number of streams left out",
            "HyperConnect: options: num_streams", Hyper,
            l.hyper.options.num_streams = 0),
    MISTAKE("out for one token fewer", "HyperConnect: out: is not", Hyper,
            --l.hyper.out.out.rows),
    MISTAKE("a norm's weight without normed", "HyperConnect: normed: not given",
            Hyper, l.hyper.in.norm_weight = l.vector),
    MISTAKE("no output", "HyperConnect: out: not given", Hyper,
            l.hyper.in.pre = {};
            l.hyper.out = {}),
    // Buckets
    FORGOTTEN(bucket.out.offsets, "BucketPacked: offsets", Bucket),
    FORGOTTEN(bucket.out.pairs, "BucketPacked: pairs", Bucket),
    MISTAKE("counts left out", "BucketPacked: tokens_per_expert", Bucket,
            l.bucket.out.tokens_per_expert = {}),
    MISTAKE("ids left out", "BucketPacked: topk_ids", Bucket,
            l.bucket.in.topk_ids = {}),
    MISTAKE("offsets without the last", "BucketPacked: offsets: size", Bucket,
            l.bucket.out.offsets.size = kE),
    MISTAKE("weights for ids", "BucketPacked: topk_ids: has to be", Bucket,
            l.bucket.in.topk_ids = Layer::M(l.weights, kT, kK)),
    MISTAKE("pairs for tokens", "BucketPacked: pairs: fewer", Bucket,
            l.bucket.out.pairs.size = kT),
    MISTAKE("pairs over the ids", "BucketPacked: pairs: overlaps topk_ids",
            Bucket, l.bucket.out.pairs = l.ids),
    MISTAKE("row_index of pairs", "BucketPacked: row_index: is not", Bucket,
            l.bucket.out.row_index = l.index_out),
    {"thread 4 of 4", "BucketPacked: team: thread",
     [](Layer& l) {
       return BucketPacked(l.bucket.in, l.bucket.out, {}, Team{4, 4});
     }},
    {"a team without a barrier", "BucketPacked: team: barrier",
     [](Layer& l) {
       return BucketPacked(l.bucket.in, l.bucket.out, {}, Team{0, 4});
     }},
    MISTAKE("a table of one row", "BucketStrided: ids: too small", Stride,
            l.strided.ids.size = kP),
    MISTAKE("a stride below the busiest expert", "BucketStrided: row_stride",
            Stride, l.strided.row_stride = 1),
    FORGOTTEN(aligned.out.offsets, "BucketAligned: offsets", Align),
    FORGOTTEN(aligned.out.pairs, "BucketAligned: pairs", Align),
    MISTAKE("pairs without room for padding", "BucketAligned: pairs: fewer",
            Align, l.aligned.out.pairs = l.sorted),
    MISTAKE("a block of 0", "BucketAligned: options: block_size", Align,
            l.aligned.options.block_size = 0),
    // MapPairs
    MISTAKE("neither a table nor experts_per_destination",
            "MapPairs: destinations", Map, l.map.options = {}),
    MISTAKE("counts left out", "MapPairs: pairs.counts", Map,
            l.map.out.pairs.counts = {}),
    FORGOTTEN(map.out.pairs.rows, "MapPairs: pairs.rows", Map),
    MISTAKE("offsets left out", "MapPairs: pairs.rows: given without offsets", Map,
            l.map.out.pairs.offsets = {}),
    MISTAKE("tokens without offsets", "MapPairs: tokens.offsets: not given",
            Map, l.map.out.tokens.counts = {l.mapped.data(), 2}),
    MISTAKE("an index without tokens", "MapPairs: return_index", Map,
            l.map.out.return_index = Layer::M(l.index_out, kT, kK)),
    // MakeWorkList, MakeDispatchArgs
    FORGOTTEN(work.in.tokens_per_expert, "MakeWorkList: tokens_per_expert",
              Work),
    FORGOTTEN(work.out.tiles, "MakeWorkList: tiles", Work),
    MISTAKE("offsets without the last", "MakeWorkList: offsets: size", Work,
            l.work.in.offsets.size = kE),
    MISTAKE("no workers", "MakeWorkList: options: workers", Work,
            l.work.options.workers = 0),
    FORGOTTEN(dispatch.out.args, "MakeDispatchArgs: args", Dispatch),
    MISTAKE("two arguments", "MakeDispatchArgs: args: size", Dispatch,
            l.dispatch.out.args.size = 2),
    MISTAKE("a tile of 0", "MakeDispatchArgs: options: tile_pairs", Dispatch,
            l.dispatch.options.tile_pairs = 0),
    // FindPreset, CapIsa
    {"a family with a hyphen",
     "FindPreset: family: is none of Presets(); did you mean qwen3_moe",
     [](Layer&) {
       Preset preset;
       return FindPreset("qwen3-moe", &preset);
     }},
    {"a family with a letter too few",
     "FindPreset: family: is none of Presets(); did you mean deepseek_v3",
     [](Layer&) {
       Preset preset;
       return FindPreset("DeepSekV3", &preset);
     }},
    {"a preset's place left out", "FindPreset: preset: is null",
     [](Layer&) { return FindPreset("mixtral", nullptr); }},
};

TEST(Mistakes, CallsAreValidWithoutThem) {
  Layer l;
  EXPECT_OK(l.Route());
  EXPECT_OK(l.Act());
  EXPECT_OK(l.Comb());
  EXPECT_OK(l.Gather());
  EXPECT_OK(l.Scatter());
  EXPECT_OK(l.Quant());
  EXPECT_OK(l.Hyper());
  EXPECT_OK(l.Bucket());
  EXPECT_OK(l.Stride());
  EXPECT_OK(l.Align());
  EXPECT_OK(l.Map());
  EXPECT_OK(l.Work());
  EXPECT_OK(l.Dispatch());
  l.Shared();
  l.Norm();
  EXPECT_OK(l.Comb());
}

TEST(Mistakes, AreNamedByTheirArgument) {
  EXPECT_GE(std::size(kMistakes), 43u);
  for (const Mistake& mistake : kMistakes) {
    Layer layer;
    const Status status = mistake.call(layer);
    EXPECT_FALSE(status.ok()) << mistake.made;
    const std::string message = status.message();
    EXPECT_EQ(message.substr(0, std::string(mistake.expected).size()),
              mistake.expected)
        << mistake.made << ": " << message;
  }
}

}  // namespace
}  // namespace switchyard::testing_support
