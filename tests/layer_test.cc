// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/layer.h"

#include <atomic>
#include <cstdlib>
#include <functional>

#include "src/base/layer_plan.h"
#include "src/calls/layer.h"
#include "switchyard/expert_weights.h"
#include "switchyard/quantize.h"
#include "switchyard/team_executor.h"
#include "testing/crew.h"
#include "testing/guarded_buffer.h"
#include "testing/layer_case.h"
#include "testing/layer_schedule.h"
#include "tests/call_errors.h"

namespace switchyard::testing_support {
namespace {

std::vector<uint32_t> BitsOf(const LayerResult& result) {
  std::vector<uint32_t> bits = CanonicalBits(result.out);
  const std::vector<uint32_t> normed = CanonicalBits(result.normed);
  bits.insert(bits.end(), normed.begin(), normed.end());
  return bits;
}
std::vector<uint32_t> BitsOf(const ExpertsLayer& layer, Executor& executor,
                             size_t scratch_workers = 0) {
  LayerResult result;
  EXPECT_OK(layer.Run(executor, &result, scratch_workers));
  return BitsOf(result);
}

class LayerTest : public IsaPoolTest {};

// A layer has the same result as five calls one after the other, for any
// case, tiling and executor.
TEST_P(LayerTest, EqualsOneCallAfterTheOther) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    const ExpertsLayer layer(DrawAnyLayerCase(random));
    const std::vector<uint32_t> expected = BitsOf(layer.OneByOne());
    ASSERT_EQ(BitsOf(layer, executor()), expected);
    // The scratch for one worker is enough, although the executor may have
    // more threads.
    ASSERT_EQ(BitsOf(layer, executor(), 1), expected);
  }
}
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(LayerTest);

// The scratch has ExpertsScratchSize() elements and ends at a guard page.
TEST_P(LayerTest, WritesNothingOutsideOfScratch) {
  Random random(7);
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    LayerCase c = DrawLayerCase(random);
    c.down_operands = DrawLayerFormat(random);
    const ExpertsLayer layer(c);
    std::vector<int32_t> memory(ExpertsPlanSize(c.tokens, c.top_k, c.plan));
    ExpertsPlan plan;
    ASSERT_OK(PlanExperts({layer.ids()}, {memory, &plan}, c.plan));
    const ExpertsOptions options = layer.Options();
    for (const size_t workers : {size_t{1}, executor().Concurrency()}) {
      const Guarded<int32_t> scratch(
          1, ExpertsScratchSize(plan, options, workers));
      std::vector<float> out(c.tokens * c.plan.hidden);
      ExpertsInputs in = layer.Inputs();
      in.plan = &plan;
      in.combine.norm_weight = {};
      in.scratch = scratch.span();
      ASSERT_OK(RunExperts(
          in, {{out.data(), c.tokens, c.plan.hidden}}, options,
          [&](const ExpertTile& tile) { return layer.Multiply(tile); },
          executor()));
      scratch.ExpectIntact("scratch");
      if (c.tokens == 0) continue;
      in.scratch = {scratch.data(), ExpertsScratchSize(plan, options, 1) - 1};
      ExpectError(
          RunExperts(in, {{out.data(), c.tokens, c.plan.hidden}}, options,
                     [](const ExpertTile&) { return Status(); }),
          "RunExperts: scratch: is fewer than ExpertsScratchSize "
          "elements");
    }
  }
}

// Weights quantised from floats, with their memory.
struct QuantisedWeights {
  std::vector<uint8_t> memory;
  ExpertWeights view;

  QuantisedWeights(WeightFormat format, size_t experts, size_t rows,
                   size_t cols, uint32_t seed) {
    std::vector<float> floats(experts * rows * cols);
    for (size_t i = 0; i < floats.size(); ++i) {
      floats[i] = Uniform(seed, i, 0.5f);
    }
    PackWeightsInputs in;
    in.weights.format = format;
    in.weights.rows = rows;
    in.weights.cols = cols;
    in.floats = {floats.data(), experts * rows, cols};
    const size_t size = PackedWeightsSize(in.weights);
    memory.resize(experts * size);
    EXPECT_OK(PackWeights(in, {{memory.data(), experts, size}, &view}));
  }
};

// Gate and up read blocks of q8_0. The down product reads int8 with one scale
// per row, so `intermediate` need not be a multiple of a block. The layer has
// to give the same bits as calls that compute one token and one expert at a
// time.
TEST_P(LayerTest, DownReadsAnotherFormatThanGate) {
  constexpr size_t kTokens = 21, kTopK = 2, kExperts = 3;
  constexpr size_t kHidden = 64, kInter = 45, kShared = 70;
  constexpr auto kBlocks = WeightFormat::kQ8_0, kCodes = WeightFormat::kInt8;
  const QuantisedWeights gate(kBlocks, kExperts, kInter, kHidden, 1),
      up(kBlocks, kExperts, kInter, kHidden, 2),
      down(kCodes, kExperts, kHidden, kInter, 3),
      shared_gate(kBlocks, 1, kShared, kHidden, 4),
      shared_up(kBlocks, 1, kShared, kHidden, 5),
      shared_down(kCodes, 1, kHidden, kShared, 6);
  LayerWeights weights;
  weights.gate = gate.view, weights.up = up.view, weights.down = down.view;
  weights.shared_gate = shared_gate.view, weights.shared_up = shared_up.view;
  weights.shared_down = shared_down.view;

  std::vector<float> hidden(kTokens * kHidden), topk_weights(kTokens * kTopK);
  std::vector<int32_t> ids(kTokens * kTopK);
  for (size_t i = 0; i < hidden.size(); ++i) hidden[i] = Uniform(7, i, 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    topk_weights[i] = Uniform(8, i, 1);
    ids[i] = static_cast<int32_t>((i / 5 + i % kTopK) % kExperts);
  }
  ExpertsOptions options;
  options.operands.type = Type::kQ8_0;
  options.down_operands = OperandsOf(kCodes);
  options.activate.layout = GateUpLayout::kSplit;
  options.shared_activate = options.activate;
  CombineInputs combine = {{}, {}, ConstAnyMatrix()};
  combine.topk_weights = {topk_weights.data(), kTokens, kTopK};
  combine.shared.kind = SharedGate::kNone;

  // Computes the single steps.
  std::vector<float> rows(kTokens * kTopK * kHidden), shared(kTokens * kHidden);
  const auto run = [&](int32_t expert, size_t token, size_t inter, float* out) {
    BlockQ8_0 blocks[kHidden / 32];
    const AnyMatrix x(blocks, Type::kQ8_0, 1, kHidden, kHidden);
    EXPECT_OK(
        Quantize({ConstAnyMatrix(&hidden[token * kHidden], 1, kHidden)}, {x}));
    std::vector<float> gates(inter), ups(inter);
    std::vector<int8_t> codes(inter);
    float scale;
    const AnyMatrix g(gates.data(), 1, inter), u(ups.data(), 1, inter);
    EXPECT_OK(weights({ExpertProduct::kGate, expert, 0, 0, x, g}));
    EXPECT_OK(weights({ExpertProduct::kUp, expert, 0, 0, x, u}));
    AnyRows activated(codes.data(), 1, inter);
    activated.scales = {&scale, 1, 1};
    EXPECT_OK(Activate({g, u}, {activated}, options.activate));
    EXPECT_OK(weights({ExpertProduct::kDown, expert, 0, 0, activated,
                       AnyMatrix(out, 1, kHidden)}));
  };
  for (size_t t = 0; t < kTokens; ++t) {
    for (size_t p = t * kTopK; p < (t + 1) * kTopK; ++p) {
      run(ids[p], t, kInter, &rows[p * kHidden]);
    }
    run(ExpertTile::kShared, t, kShared, &shared[t * kHidden]);
  }
  std::vector<float> expected(kTokens * kHidden), out(kTokens * kHidden);
  CombineInputs sums = combine;
  sums.rows = ConstAnyMatrix(rows.data(), kTokens * kTopK, kHidden);
  sums.row_index = RowIndex::kTokenOrder;
  sums.shared.rows = {shared.data(), kTokens, kHidden};
  ASSERT_OK(Combine(sums, {{expected.data(), kTokens, kHidden}}));

  ExpertsPlanOptions shape;
  shape.num_experts = kExperts;
  shape.hidden = kHidden;
  shape.intermediate = kInter;
  shape.shared_intermediate = kShared;
  SetCosts(kBlocks, &shape);
  shape.least_cost = 0;
  for (const size_t workers : {1u, 3u, 16u}) {
    shape.workers = workers;
    std::vector<int32_t> memory(ExpertsPlanSize(kTokens, kTopK, shape));
    ExpertsPlan plan;
    ASSERT_OK(
        PlanExperts({{ids.data(), kTokens, kTopK}}, {memory, &plan}, shape));
    std::vector<int32_t> scratch(
        ExpertsScratchSize(plan, options, executor().Concurrency()));
    ExpertsInputs in;
    in.plan = &plan;
    in.hidden = {hidden.data(), kTokens, kHidden};
    in.combine = combine;
    in.scratch = scratch;
    ASSERT_OK(RunExperts(in, {{out.data(), kTokens, kHidden}}, options, weights,
                         executor()));
    EXPECT_EQ(CanonicalBits(out), CanonicalBits(expected))
        << workers << " workers";
  }
}

// The bits depend neither on the plan's number of workers nor on the ISA.
TEST(LayerBits, AreThoseOfAnyCut) {
  Random random(2);
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(i);
    LayerCase c = DrawAnyLayerCase(random);
    std::vector<uint32_t> expected;
    ExpectFmaIsasAgree([&] {
      expected = BitsOf(ExpertsLayer(c), SerialExecutor());
      return expected;
    });
    for (const size_t workers : {2u, 3u, 8u, 16u, 64u}) {
      c.plan.workers = workers;
      for (const size_t columns : {0u, 1u, 32u}) {
        c.plan.tile_columns = columns;
        ASSERT_EQ(BitsOf(ExpertsLayer(c), SerialExecutor()), expected)
            << workers << " workers, " << columns << " columns";
      }
    }
  }
}

// Runs teams of up to 64 threads on any number of cores.
TEST(LayerThreads, TeamsOfUpTo64) {
  Random random(3);
  for (const size_t threads : {2u, 5u, 64u}) {
    for (int i = 0; i < 20; ++i) {
      LayerCase c = DrawAnyLayerCase(random);
      c.plan.workers = threads;
      c.plan.least_cost = 0;
      const ExpertsLayer layer(c);
      const std::vector<uint32_t> expected = BitsOf(layer, SerialExecutor());
      EngineThreads crew(threads);
      const EngineThread member = crew.Member(0);
      TeamExecutor team(threads, member.barrier, member.context);
      std::vector<uint32_t> bits;
      crew.Run([&](const EngineThread& who) {
        team.Run(who.thread, [&] { bits = BitsOf(layer, team); });
      });
      ASSERT_EQ(bits, expected) << threads << " threads, case " << i;
    }
  }
}

// If any tile fails, the call returns the tile's status and no thread hangs.
TEST_P(LayerTest, ReturnsTheErrorOfAnyTile) {
  Random random(4);
  for (int i = 0; i < 12; ++i) {
    LayerCase c = DrawAnyLayerCase(random);
    c.plan.workers = 16;
    c.plan.least_cost = 0;
    const ExpertsLayer layer(c);
    std::atomic<int> tiles{0};
    LayerResult result;
    ASSERT_OK(layer.Run(
        [&](const ExpertTile& tile) {
          tiles.fetch_add(1);
          return layer.Multiply(tile);
        },
        executor(), &result));
    const int count = tiles.load();
    for (int fails = 0; fails < count; fails += 1 + count / 8) {
      std::atomic<int> next{0};
      const Status status = layer.Run(
          [&](const ExpertTile& tile) {
            if (next.fetch_add(1) == fails) {
              return Status(StatusCode::kInternal, "a tile");
            }
            return layer.Multiply(tile);
          },
          executor(), &result);
      ExpectError(status, "a tile", StatusCode::kInternal);
    }
  }
}

// Two tiles that run at the same time never have the same worker. Each tile
// has everything that layer.h promises to an engine.
TEST_P(LayerTest, TilesAreSound) {
  Random random(5);
  for (int i = 0; i < 60; ++i) {
    LayerCase c = DrawAnyLayerCase(random);
    c.plan.least_cost = 0;
    const ExpertsLayer layer(c);
    std::vector<std::atomic<int>> at_work(executor().Concurrency());
    std::atomic<bool> is_sound{true};
    std::atomic<size_t> elements{0};  // of the down products
    const auto expect = [&](bool condition) {
      if (!condition) is_sound = false;
    };
    LayerResult result;
    ASSERT_OK(layer.Run(
        [&](const ExpertTile& tile) {
          expect(tile.worker < at_work.size());
          expect(at_work[tile.worker].fetch_add(1) == 0);
          const bool is_shared = tile.expert == ExpertTile::kShared;
          const bool is_down = tile.product == ExpertProduct::kDown;
          const size_t inter =
              is_shared ? c.plan.shared_intermediate : c.plan.intermediate;
          const size_t cols =
              is_down ? c.plan.hidden
                      : inter * (tile.product == ExpertProduct::kGateUp &&
                                         c.layout != GateUpLayout::kUngated
                                     ? 2
                                     : 1);
          expect(is_shared ||
                 static_cast<size_t>(tile.expert) < c.plan.num_experts);
          expect(tile.rows.rows == tile.out.rows && tile.rows.rows > 0 &&
                 tile.rows.rows <= c.plan.max_rows);
          expect(tile.rows.cols == (is_down ? inter : c.plan.hidden));
          expect(tile.rows.type ==
                 (is_down ? layer.down_operands() : c.operands).type);
          expect(tile.out.cols > 0 &&
                 tile.first_column + tile.out.cols <= cols);
          expect(c.plan.tile_columns == 0
                     ? tile.out.cols == cols
                     : tile.first_column % c.plan.tile_columns == 0);
          expect(tile.out.type == (is_down ? c.down_type : c.gate_up_type));
          expect(tile.out.cols < cols || tile.out.stride == cols ||
                 tile.out.rows == 1);
          if (is_down) elements.fetch_add(tile.out.rows * tile.out.cols);
          const Status status = layer.Multiply(tile);
          at_work[tile.worker].fetch_sub(1);
          return status;
        },
        executor(), &result));
    ASSERT_TRUE(is_sound) << "case " << i;
    if (c.dropped == 0) {  // each element is written once
      const size_t rows =
          c.tokens * (c.top_k + (c.plan.shared_intermediate != 0 ? 1 : 0));
      ASSERT_EQ(elements, rows * c.plan.hidden) << "case " << i;
    }
  }
}

// Each row is in exactly one block, and the tasks of each block compute each
// part of its products exactly once.
TEST(Plan, HasEachRowOnce) {
  Random random(6);
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    const LayerCase c = DrawAnyLayerCase(random);
    const ExpertsLayer layer(c);
    std::vector<int32_t> memory(ExpertsPlanSize(c.tokens, c.top_k, c.plan));
    ExpertsPlan plan;
    Report report;
    ASSERT_OK(PlanExperts({layer.ids()}, {memory, &plan, &report}, c.plan));
    EXPECT_EQ(report.tiles, plan.tasks.size);
    const ExpertsOptions options = layer.Options();
    EXPECT_LE(ExpertsScratchSize(plan, options, 3),
              ExpertsScratchSize(c.tokens, c.top_k, c.plan, options, 3));
    EXPECT_EQ(report.dropped + plan.num_rows, c.tokens * c.top_k);
    std::vector<int> routed(plan.num_rows), shared(c.tokens);
    std::vector<std::vector<int>> tasks(plan.blocks.size);
    for (const ExpertBlock& block : plan.blocks) {
      const bool is_shared = block.expert == ExpertTile::kShared;
      ASSERT_GT(block.rows, 0);
      ASSERT_LE(static_cast<size_t>(block.rows), c.plan.max_rows);
      const int64_t first_of_expert =
          is_shared ? 0 : plan.offsets.data[block.expert];
      ASSERT_EQ(static_cast<size_t>(block.first_row - first_of_expert) %
                    std::min(c.plan.tile_rows, c.plan.max_rows),
                0u);
      for (int32_t r = 0; r < block.rows; ++r) {
        const auto row = static_cast<size_t>(block.first_row + r);
        ASSERT_LT(row, (is_shared ? shared : routed).size());
        ++(is_shared ? shared : routed)[row];
        if (!is_shared) {
          ASSERT_LT(block.first_row + r, plan.offsets.data[block.expert + 1]);
          ASSERT_GE(block.first_row, plan.offsets.data[block.expert]);
        }
      }
    }
    EXPECT_EQ(routed, std::vector<int>(plan.num_rows, 1));
    EXPECT_EQ(shared, std::vector<int>(
                          c.tokens, c.plan.shared_intermediate != 0 ? 1 : 0));
    for (const ExpertTask& task : plan.tasks) {
      tasks[static_cast<size_t>(task.block)].push_back(task.kind * 1000 +
                                                       task.part);
    }
    for (size_t b = 0; b < plan.blocks.size; ++b) {
      const ExpertBlock& block = plan.blocks.data[b];
      std::vector<int> expected;
      if (block.gate_up_parts == 0) {
        expected = {ExpertTask::kBlock * 1000};
      } else {
        for (int p = 0; p < block.gate_up_parts; ++p) {
          expected.push_back(ExpertTask::kGateUp * 1000 + p);
        }
        for (int p = 0; p < block.down_parts; ++p) {
          expected.push_back(ExpertTask::kDown * 1000 + p);
        }
      }
      ASSERT_EQ(tasks[b], expected);
    }
  }
}

// An expert with 300 rows exceeds max_rows. Its rows are cut at a multiple of
// tile_rows.
TEST(Plan, CutsRowsAtTiles) {
  ExpertsPlanOptions options;
  options.num_experts = 1;
  options.hidden = options.intermediate = options.shared_intermediate = 64;
  const std::vector<int32_t> ids(300, 0);
  std::vector<int32_t> memory(ExpertsPlanSize(300, 1, options));
  ExpertsPlan plan;
  ASSERT_OK(PlanExperts({{ids.data(), 300, 1}}, {memory, &plan}, options));
  ASSERT_GE(plan.blocks.size, 4u);
  for (const ExpertBlock& block : plan.blocks) {
    EXPECT_EQ(block.first_row % 16, 0) << "of expert " << block.expert;
  }
}

// The arguments of a PlanExperts() call.
struct PlanCase {
  size_t tokens, top_k;
  ExpertsPlanOptions options;
  std::vector<int32_t> ids;
};
// Shapes of gpt-oss-20b, gpt-oss-120b, DeepSeek-V3, Qwen3-30B-A3B,
// Qwen2-57B-A14B and Llama 4 Scout, in this order. Each row has num_experts,
// top_k, hidden, intermediate and shared_intermediate.
constexpr size_t kShapes[][5] = {
    {32, 4, 2880, 2880, 0},     {128, 4, 2880, 2880, 0},
    {256, 8, 7168, 2048, 2048}, {128, 8, 2048, 768, 0},
    {64, 8, 3584, 2560, 20480}, {16, 1, 5120, 8192, 8192},
};
PlanCase DrawPlanCase(Random& random) {
  const auto below = [&](size_t n) {
    return static_cast<size_t>(random.Below(n));
  };
  const auto is_one_of = [&](size_t n) { return below(n) == 0; };
  PlanCase c = {};
  ExpertsPlanOptions& o = c.options;
  const bool is_real = !is_one_of(3);
  if (is_real) {
    const auto& shape = kShapes[below(std::size(kShapes))];
    o.num_experts = shape[0], c.top_k = shape[1], o.hidden = shape[2];
    o.intermediate = shape[3], o.shared_intermediate = shape[4];
  } else {
    o.num_experts = 1 + below(is_one_of(4) ? 300 : 40);
    c.top_k = 1 + below(std::min<size_t>(o.num_experts, 10));
    o.hidden = 1 + below(4000);
    o.intermediate = 1 + below(4000);
    if (is_one_of(2)) o.shared_intermediate = 1 + below(8000);
  }
  c.tokens = is_one_of(8) ? below(300) : 1 + below(12);
  o.workers = 1 + below(is_one_of(20) ? 2000 : 300);
  o.allow_dropped = true;
  if (!is_one_of(3)) {
    const size_t kCosts[] = {0, 1, 8, 64, 100, 512, 4096};
    const auto cost = [&] { return kCosts[below(std::size(kCosts))]; };
    o.least_cost = cost();
    if (is_one_of(2)) o.weight_cost = cost();
    if (is_one_of(4)) o.row_cost = below(20);
    if (is_one_of(4)) o.min_rows = below(70);
    if (is_one_of(2)) o.tile_rows = 1 + below(70);
    if (is_one_of(2)) o.max_rows = 1 + below(90);
    if (is_one_of(2)) o.tile_columns = below(70);
  }
  // Ids that are spread evenly give the most blocks.
  const size_t kind = below(4), first = below(o.num_experts);
  for (size_t t = 0; t < c.tokens; ++t) {
    const size_t token = kind == 3 ? below(o.num_experts) : 0;
    for (size_t s = 0; s < c.top_k; ++s) {
      const size_t expert = kind <= 1   ? first + t * c.top_k + s
                            : kind == 2 ? s
                                        : token + s;
      c.ids.push_back(kind == 1 && is_one_of(10)
                          ? -1
                          : static_cast<int32_t>(expert % o.num_experts));
    }
  }
  return c;
}
// Makes a plan in memory that ends at a guard page, and checks its sizes.
void ExpectSizesHold(const PlanCase& c) {
  const size_t size = ExpertsPlanSize(c.tokens, c.top_k, c.options);
  ASSERT_LT(size, SIZE_MAX);
  const Guarded<int32_t> memory(1, size);
  ExpertsPlan plan;
  ASSERT_OK(PlanExperts({{c.ids.data(), c.tokens, c.top_k}},
                        {memory.span(), &plan}, c.options));
  memory.ExpectIntact("memory");
  // In this memory, the sort's scratch follows the tasks. So the guard page
  // alone would not detect one task too many.
  const size_t blocks =
      internal::MostBlocks(c.tokens, c.tokens * c.top_k, c.options);
  ASSERT_LE(plan.blocks.size, blocks);
  ASSERT_LE(plan.tasks.size, internal::MostTasks(blocks, c.options));
  ExpertsOptions other_down;
  other_down.down_operands = {Type::kI8, 32};
  for (const ExpertsOptions& options : {ExpertsOptions(), other_down}) {
    for (const size_t workers : {size_t{1}, c.options.workers}) {
      ASSERT_LE(
          ExpertsScratchSize(plan, options, workers),
          ExpertsScratchSize(c.tokens, c.top_k, c.options, options, workers));
    }
  }
}

// The test draws SWITCHYARD_PLANS plans from the seed SWITCHYARD_PLANS_SEED.
TEST(PlanSize, IsNeverExceeded) {
  const auto number = [](const char* name, size_t otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
  };
  const size_t seed = number("SWITCHYARD_PLANS_SEED", 45);
  const size_t plans = number("SWITCHYARD_PLANS", 4000);
  Random random(seed);
  for (size_t i = 0; i < plans; ++i) {
    ExpectSizesHold(DrawPlanCase(random));
    ASSERT_FALSE(HasFailure()) << "plan " << i << " of seed " << seed;
  }
}
// An earlier version of the library wrote these plans past their memory, or
// asked for too little scratch for them.
TEST(PlanSize, IsEnoughWhereItWasNot) {
  const auto expect = [](size_t tokens, size_t top_k, size_t experts,
                         size_t hidden, size_t intermediate, size_t workers,
                         const std::function<void(ExpertsPlanOptions&)>& set) {
    PlanCase c = {tokens, top_k, {}, {}};
    c.options.num_experts = experts;
    c.options.hidden = hidden;
    c.options.intermediate = intermediate;
    c.options.workers = workers;
    set(c.options);
    for (size_t i = 0; i < tokens * top_k; ++i) {
      c.ids.push_back(static_cast<int32_t>(i % experts));
    }
    SCOPED_TRACE(std::to_string(workers) + " workers");
    ExpectSizesHold(c);
  };
  using Options = ExpertsPlanOptions;
  expect(5, 4, 32, 2880, 2880, 99, [](Options&) {});
  expect(3, 8, 256, 7168, 2048, 239, [](Options&) {});
  expect(33, 1, 33, 288, 288, 32, [](Options& o) { o.weight_cost = 100; });
  expect(33, 1, 33, 288, 288, 1024, [](Options& o) { o.weight_cost = 100; });
  expect(4, 8, 128, 2048, 768, 23, [](Options& o) { o.least_cost = 64; });
  expect(64, 1, 1, 2048, 768, 2, [](Options& o) {
    o.shared_intermediate = 768;
    o.weight_cost = 0;
    o.tile_rows = 64;
    o.max_rows = 1;
  });
}
// If PlanExperts() refuses the options, the size functions return no size
// (SIZE_MAX).
TEST(PlanSize, IsNoneOfBadOptions) {
  ExpertsPlanOptions good;
  good.num_experts = 4;
  good.hidden = 5;
  good.intermediate = 3;
  ASSERT_LT(ExpertsPlanSize(3, 2, good), SIZE_MAX);
  const auto expect = [&](size_t ExpertsPlanOptions::*member, size_t value) {
    ExpertsPlanOptions bad = good;
    bad.*member = value;
    EXPECT_EQ(ExpertsPlanSize(3, 2, bad), SIZE_MAX) << value;
    EXPECT_EQ(ExpertsScratchSize(3, 2, bad, {}, 1), SIZE_MAX) << value;
  };
  for (const auto member :
       {&ExpertsPlanOptions::num_experts, &ExpertsPlanOptions::hidden,
        &ExpertsPlanOptions::intermediate, &ExpertsPlanOptions::tile_rows,
        &ExpertsPlanOptions::max_rows}) {
    expect(member, 0);
    expect(member, size_t{1} << 31);
  }
  expect(&ExpertsPlanOptions::shared_intermediate, size_t{1} << 31);
  expect(&ExpertsPlanOptions::workers, 0);
  expect(&ExpertsPlanOptions::workers, (1 << 16) + 1);
}

// A plan cuts some rows into parts. The number of these rows has a bound that
// does not grow with the number of tokens. So the scratch for any plan is
// bounded, too.
TEST(Plan, RowsInPartsAreBounded) {
  for (const Skew skew : {Skew::kUniform, Skew::kZipf, Skew::kHot}) {
    for (const size_t workers : {2u, 16u, 64u}) {
      ExpertsPlanOptions options;
      options.num_experts = 128;
      options.hidden = 64;
      options.intermediate = 32;
      options.shared_intermediate = workers == 16 ? 16 : 0;
      options.workers = workers;
      for (const size_t tokens : {64u, 4096u, 16384u}) {
        const std::vector<int32_t> ids = SkewedIds(tokens, 8, 128, skew, 9);
        std::vector<int32_t> memory(ExpertsPlanSize(tokens, 8, options));
        ExpertsPlan plan;
        ASSERT_OK(
            PlanExperts({{ids.data(), tokens, 8}}, {memory, &plan}, options));
        EXPECT_LE(plan.cut_rows, internal::MostCutRows(options))
            << tokens << " tokens, " << workers << " workers";
      }
    }
  }
}

// The ideal time is the time that workers take if they share all work evenly.
// With at least four tiles of work per worker, the last worker finishes within
// 1.05 times the ideal time. With less work, the limit is 1.15 times, because a
// tile is a part of an expert. With less work of two or more tokens on 128
// workers, the limit is 1.25 times: some experts have one row, some have two,
// and these do not divide evenly.
TEST(Plan, KeepsWorkersBusy) {
  const ScheduleCosts costs;
  for (const Skew skew : {Skew::kUniform, Skew::kZipf, Skew::kHot}) {
    for (const size_t tokens :
         {1u, 2u, 4u, 8u, 16u, 64u, 512u, 4096u, 16384u}) {
      const std::vector<int32_t> ids = SkewedIds(tokens, 8, 128, skew, 9);
      for (const size_t workers :
           {1u, 2u, 3u, 4u, 7u, 8u, 16u, 24u, 32u, 64u, 128u}) {
        ExpertsPlanOptions options;
        options.num_experts = 128;
        options.hidden = 2048;
        options.intermediate = 768;
        options.workers = workers;
        std::vector<int32_t> memory(ExpertsPlanSize(tokens, 8, options));
        ExpertsPlan plan;
        ASSERT_OK(
            PlanExperts({{ids.data(), tokens, 8}}, {memory, &plan}, options));
        const auto [ideal, makespan] = Simulate(plan, options, workers, costs);
        const double tiles =
            static_cast<double>(plan.total_cost) /
            static_cast<double>(options.weight_cost + options.row_cost) /
            static_cast<double>(workers);
        const double most = tiles >= 4                     ? 1.05
                            : tokens == 1 || workers <= 64 ? 1.15
                                                           : 1.25;
        EXPECT_LE(makespan, most * ideal)
            << tokens << " tokens, skew " << static_cast<int>(skew) << ", "
            << workers << " workers: " << makespan / ideal;
      }
    }
  }
}

// A shared expert of any width is cut by columns, like other experts. If the
// number of workers is not a power of two, the column tiles divide less
// evenly.
TEST(Plan, KeepsWorkersBusyWithASharedExpert) {
  const ScheduleCosts costs;
  for (const size_t shared : {0u, 384u, 768u, 1536u, 6144u}) {
    for (const size_t tokens : {1u, 2u, 8u, 64u}) {
      const std::vector<int32_t> ids =
          SkewedIds(tokens, 8, 128, Skew::kUniform, 9);
      for (size_t workers = 2; workers <= 128; ++workers) {
        const bool is_power = (workers & (workers - 1)) == 0;
        if (!is_power && tokens > 1) continue;
        ExpertsPlanOptions options;
        options.num_experts = 128;
        options.hidden = 2048;
        options.intermediate = 768;
        options.shared_intermediate = shared;
        options.workers = workers;
        std::vector<int32_t> memory(ExpertsPlanSize(tokens, 8, options));
        ExpertsPlan plan;
        ASSERT_OK(
            PlanExperts({{ids.data(), tokens, 8}}, {memory, &plan}, options));
        const auto [ideal, makespan] = Simulate(plan, options, workers, costs);
        EXPECT_LE(makespan, (is_power ? 1.15 : 1.23) * ideal)
            << tokens << " tokens, shared " << shared << ", " << workers
            << " workers: " << makespan / ideal;
      }
    }
  }
}

using PlanCallErrors =
    CallErrors<ExpertsPlanInputs, ExpertsPlanOutputs, ExpertsPlanOptions>;
class PlanErrors : public PlanCallErrors {
 protected:
  PlanErrors() : PlanCallErrors("PlanExperts", PlanExperts) {
    call_.options.num_experts = 4;
    call_.options.hidden = 5;
    call_.options.intermediate = 3;
    memory_.resize(ExpertsPlanSize(3, 2, call_.options), -7);
    call_.in.topk_ids = {ids_.data(), 3, 2};
    call_.out = {memory_, &plan_, &report_};
  }
  void ExpectUntouched() const override {
    EXPECT_EQ(memory_, std::vector<int32_t>(memory_.size(), -7));
    EXPECT_EQ(plan_.tokens, 0u);
  }
  std::vector<int32_t> ids_ = {0, 1, 2, 3, 1, 0}, memory_;
  ExpertsPlan plan_;
};
TEST_F(PlanErrors, SpoiltCalls) {
  ExpectSpoiltCallsAreRefused<calls::ExpertsPlanCall>();
  EXPECT_ERROR("plan: not given", c.out.plan = nullptr);
  EXPECT_ERROR("options: shared_intermediate is above 2^31 - 1",
               c.options.shared_intermediate = size_t{1} << 31);
}
TEST_F(PlanErrors, OfTheData) {
  ids_[3] = 4;
  ExpectError(Run(call_),
              "PlanExperts: topk_ids: outside [0, num_experts), and "
              "options.allow_dropped is not set",
              StatusCode::kFailedPrecondition);
  EXPECT_EQ(report_.dropped, 1u);
  call_.options.allow_dropped = true;
  EXPECT_OK(Run(call_));
  const char* const cost =
      "PlanExperts: options: the rows' cost exceeds 63 bits";
  call_.options.row_cost = SIZE_MAX;
  ExpectError(Run(call_), cost, StatusCode::kFailedPrecondition);
  // PlanExperts() has not finished the plan, so the plan has no scratch size.
  EXPECT_EQ(ExpertsScratchSize(plan_, {}, 1), SIZE_MAX);
  // No routed expert has rows; only the shared expert does.
  std::fill(ids_.begin(), ids_.end(), -1);
  call_.options.shared_intermediate = 1 << 30;
  memory_.resize(ExpertsPlanSize(3, 2, call_.options));
  call_.out.memory = memory_;
  ExpectError(Run(call_), cost, StatusCode::kFailedPrecondition);
  call_.options.row_cost = size_t{1} << 40;
  ExpectError(Run(call_), cost, StatusCode::kFailedPrecondition);
}

Status RunWith(const ExpertsInputs& in, const CombineOutputs& out,
               const ExpertsOptions& options, Executor& executor) {
  return RunExperts(
      in, out, options, [](const ExpertTile&) { return Status(); }, executor);
}
using RunCallErrors = CallErrors<ExpertsInputs, CombineOutputs, ExpertsOptions>;
class RunErrors : public RunCallErrors {
 protected:
  RunErrors() : RunCallErrors("RunExperts", RunWith) {
    shape_.num_experts = 4;
    shape_.hidden = 5;
    shape_.intermediate = 3;
    shape_.shared_intermediate = 2;
    memory_.resize(20000);  // more than the scratch of any of these tests
    EXPECT_OK(PlanExperts({{ids_.data(), 3, 2}}, {memory_, &plan_}, shape_));
    scratch_.resize(ExpertsScratchSize(plan_, {}, 1), -7);
    call_.in.plan = &plan_;
    call_.in.hidden = {hidden_.data(), 3, 5};
    call_.in.shared_hidden = {shared_.data(), 3, 5};
    call_.in.gate_bias = {gate_bias_.data(), 4, 6};
    call_.in.combine.topk_weights = {weights_.data(), 3, 2};
    call_.in.combine.shared.gate = {gate_.data(), 3, 1};
    call_.in.scratch = scratch_;
    call_.options.activate.layout = GateUpLayout::kConcatenated;
    call_.out.out = {out_.data(), 3, 5};
    call_.out.report = &report_;
    EXPECT_OK(Run(call_));
    report_ = kUnwritten;
    std::fill(out_.begin(), out_.end(), -7.0f);
  }
  void ExpectUntouched() const override {
    EXPECT_EQ(out_, std::vector<float>(out_.size(), -7.0f));
  }
  ExpertsPlanOptions shape_;
  std::vector<int32_t> ids_ = {0, 1, 2, 3, 1, 0}, memory_, scratch_;
  ExpertsPlan plan_;
  // The vectors are so large that scratch that begins in one vector does not
  // overlap another vector.
  std::vector<float> hidden_ = std::vector<float>(9999), shared_ = hidden_,
                     out_ = hidden_, weights_ = hidden_, gate_bias_ = hidden_,
                     gate_ = hidden_;
};
TEST_F(RunErrors, SpoiltCalls) {
  ExpectSpoiltCallsAreRefused<calls::ExpertsCall>();
}
TEST_F(RunErrors, OfTheirOwn) {
  scratch_.resize(10 * scratch_.size());
  call_.in.scratch = scratch_;
  EXPECT_ERROR("plan: not given", c.in.plan = nullptr);
  const char* const own =
      "combine: rows or row_index given, but this call computes them";
  EXPECT_ERROR(own, c.in.combine.rows = {hidden_.data(), 3, 5});
  EXPECT_ERROR(own, c.in.combine.row_index = RowIndex::kTokenOrder);
  const char* const shared =
      "combine: shared.rows or shared.num_shared given, but the plan has a "
      "shared expert";
  EXPECT_ERROR(shared, c.in.combine.shared.rows = {hidden_.data(), 3, 5});
  EXPECT_ERROR(shared, c.in.combine.shared.num_shared = 2);
  EXPECT_ERROR("options: operands: is not a format of quantize.h",
               c.options.operands.type = Type::kI32);
  EXPECT_ERROR("options: operands: is not a format of quantize.h",
               c.options.operands.scale_columns = 32);
  EXPECT_ERROR(
      "options: operands: the plan's hidden, intermediate or "
      "shared_intermediate is not a multiple of its block",
      c.options.operands.type = Type::kQ8_0);
  EXPECT_ERROR("options: down_operands: is not a format of quantize.h",
               c.options.down_operands = {Type::kI8, 48});
  EXPECT_ERROR(
      "options: operands: the plan's hidden is not a multiple of its "
      "block",
      (c.options.operands.type = Type::kQ8_0,
       c.options.down_operands = RowFormat()));
  EXPECT_ERROR(
      "options: down_operands: the plan's intermediate or shared_intermediate "
      "is not a multiple of its block",
      c.options.down_operands = {Type::kQ8_0});
  EXPECT_ERROR(
      "up_bias: given, and options.activate.layout is not "
      "GateUpLayout::kSplit",
      c.in.up_bias = ConstAnyMatrix(gate_bias_.data(), 4, 3));
  EXPECT_ERROR("scratch: overlaps an argument of combine",
               c.in.combine.residual = ConstAnyMatrix(
                   reinterpret_cast<const float*>(scratch_.data()), 3, 5));
  EXPECT_ERROR("scratch: overlaps the plan's memory", c.in.scratch = memory_);
  ExpertsPlan alone = plan_;
  alone.shared_intermediate = 0;
  EXPECT_ERROR("shared_hidden: given with a plan that has no shared expert",
               c.in.plan = &alone);
}
// The message names the argument that does not fit the plan.
TEST_F(RunErrors, OfAnotherShapeThanThePlan) {
  EXPECT_ERROR("hidden: is not the plan's [tokens, hidden]",
               c.in.hidden.rows = 2);
  EXPECT_ERROR("hidden: is not the plan's [tokens, hidden]",
               (c.in.hidden.cols = 6, c.in.hidden.stride = 6));
  EXPECT_ERROR("hidden: is not the plan's [tokens, hidden]",
               (c.in.hidden.rows = c.in.shared_hidden.rows = 2));
  EXPECT_ERROR("shared_hidden: is not the plan's [tokens, hidden]",
               c.in.shared_hidden.rows = 2);
  EXPECT_ERROR("out: is not the plan's [tokens, hidden]", c.out.out.rows = 2);
  const char* const weights =
      "combine: topk_weights: is not the plan's [tokens, top_k]";
  EXPECT_ERROR(weights, c.in.combine.topk_weights.rows = 2);
  EXPECT_ERROR(weights, (c.in.combine.topk_weights.cols =
                             c.in.combine.topk_weights.stride = 3));
}
TEST_F(RunErrors, HaveTheNumbersOfThePlan) {
  const auto details = [&](const auto& spoil) {
    Call c = call_;
    spoil(c);
    return std::string(Run(c).details());
  };
  EXPECT_EQ(details([](Call& c) { c.in.combine.topk_weights.rows = 2; }),
            "got [2, 2], needs [3, 2]");
  EXPECT_EQ(details([](Call& c) { c.options.operands.type = Type::kQ8_0; }),
            "got 5, 3 and 2, needs multiples of 32");
  EXPECT_EQ(details([](Call& c) {
              c.options.operands.type = Type::kI8;
              c.options.operands.scale_columns = 5;
            }),
            "got type i8, scale_type f32, scale_columns 5, without sums");
}
// RunExperts() refuses a plan that PlanExperts() has not made.
TEST_F(RunErrors, OfPlansThatWereNotMade) {
  const auto expect = [&](const ExpertsPlan& plan) {
    EXPECT_ERROR("plan: was not made by PlanExperts", c.in.plan = &plan);
    EXPECT_EQ(ExpertsScratchSize(plan, {}, 1), SIZE_MAX);
    ExpertsInputs in = call_.in;
    in.plan = &plan;
    EXPECT_EQ(RowsOfExperts(in, {}).routed.data, nullptr);
  };
  expect(ExpertsPlan());
  for (const int byte : {0x01, 0x55, 0xFF}) {
    ExpertsPlan plan;
    std::memset(static_cast<void*>(&plan), byte, sizeof plan);
    expect(plan);
  }
  // After PlanExperts() refuses a call, the plan is not valid. A copy of a
  // valid plan is valid.
  ExpertsPlan plan;
  ExpertsPlanOptions none = shape_;
  none.workers = 0;
  EXPECT_FALSE(PlanExperts({{ids_.data(), 3, 2}}, {memory_, &plan}, none).ok());
  expect(plan);
  plan = plan_;
  call_.in.plan = &plan;
  EXPECT_OK(Run(call_));
}
// RunExperts() refuses a plan after its memory has been written again.
// Otherwise it could read the blocks of a second plan with the sizes of the
// first, and write past the scratch.
TEST_F(RunErrors, OfPlansWhoseMemoryWasWritten) {
  const auto expect = [&](const ExpertsPlan& plan) {
    EXPECT_ERROR("plan: its memory has been written since PlanExperts made it",
                 c.in.plan = &plan);
    EXPECT_EQ(ExpertsScratchSize(plan, {}, 1), SIZE_MAX);
    ExpertsInputs in = call_.in;
    in.plan = &plan;
    EXPECT_EQ(RowsOfExperts(in, {}).routed.data, nullptr);
  };
  for (const size_t shift : {0u, 1u, 15u}) {
    const Span<int32_t> memory(memory_.data() + shift, memory_.size() - shift);
    // RunExperts() refuses the first plan even if the second has the same ids
    // and options.
    for (const int32_t id : {0, 1, 3}) {
      ExpertsPlan first, second;
      ids_[1] = id;
      ASSERT_OK(PlanExperts({{ids_.data(), 3, 2}}, {memory, &first}, shape_));
      const ExpertsPlan copy = first;
      call_.in.plan = &copy;
      ASSERT_OK(Run(call_));
      report_ = kUnwritten;
      std::fill(out_.begin(), out_.end(), -7.0f);
      ids_[1] = 1;
      ASSERT_OK(PlanExperts({{ids_.data(), 3, 2}}, {memory, &second}, shape_));
      expect(first);
      expect(copy);
      // A second call of PlanExperts() that fails has written the memory,
      // too.
      ExpertsPlanOptions dear = shape_;
      dear.row_cost = SIZE_MAX;
      EXPECT_FALSE(
          PlanExperts({{ids_.data(), 3, 2}}, {memory, &first}, dear).ok());
      expect(second);
    }
    for (const int32_t value : {0, -1}) {
      ExpertsPlan plan;
      ASSERT_OK(PlanExperts({{ids_.data(), 3, 2}}, {memory, &plan}, shape_));
      std::fill(memory.begin(), memory.end(), value);
      expect(plan);
    }
  }
}
// ExpertsScratchSize() returns no size (SIZE_MAX) for a format with a wrong
// type or block.
TEST_F(RunErrors, OfFormatsHaveNoSize) {
  ExpertsPlanOptions shape;
  shape.num_experts = 4;
  shape.hidden = shape.intermediate = 64;
  ExpertsPlan plan;
  ASSERT_OK(PlanExperts({{ids_.data(), 3, 2}}, {memory_, &plan}, shape));
  ExpertsOptions options;
  const auto expect = [&](bool has_size) {
    EXPECT_EQ(ExpertsScratchSize(plan, options, 1) != SIZE_MAX, has_size);
    EXPECT_EQ(ExpertsScratchSize(3, 2, shape, options, 1) != SIZE_MAX,
              has_size);
  };
  expect(true);
  options.operands.type = Type::kQ8_0;
  expect(true);
  options.operands.type = Type::kQ8_K;
  expect(false);
  options.operands.type = static_cast<Type>(32);
  expect(false);
  options.operands.type = Type::kI8;
  expect(true);
  options.operands.scale_columns = 48;
  expect(false);
  // Blocks of 256 columns do not fit into 64 columns, in any of the products.
  options.operands = {Type::kQ8_0};
  options.down_operands = {Type::kQ8_K};
  expect(false);
  options.down_operands = {Type::kI8, 48};
  expect(false);
  options.down_operands = {Type::kI8, 32};
  expect(true);
  options.operands = {Type::kQ8_K};
  expect(false);
  options.down_operands = {};
  options.operands = {};
  options.gate_up_type = Type::kI8;
  expect(false);
  options.gate_up_type = Type::kF32;
  options.down_type = Type::kQ8_0;
  expect(false);
  // hidden is in q8_0, and no kernel converts q8_0 to int8.
  call_.options.operands.type = Type::kI8;
  call_.in.shared_hidden = {};
  std::vector<BlockQ8_0> blocks(6);
  call_.in.plan = &plan;
  call_.in.hidden = ConstAnyMatrix(blocks.data(), Type::kQ8_0, 3, 64, 64);
  call_.in.combine.shared = {};
  call_.in.gate_bias = {};
  call_.out.out = {out_.data(), 3, 64};
  scratch_.resize(ExpertsScratchSize(plan, call_.options, 1));
  call_.in.scratch = scratch_;
  ExpectError(Run(call_),
              "RunExperts: options: operands: no kernel converts hidden to "
              "this format");
}
// A shared expert needs a gate unless shared.kind says that it has none.
TEST_F(RunErrors, OfASharedExpertWithoutAGate) {
  Call c = call_;
  c.in.combine.shared.gate = {};
  ExpectError(Run(c),
              "Combine: shared.gate: not given, but shared.kind needs it");
  c.in.combine.shared.kind = SharedGate::kNone;
  EXPECT_OK(Run(c));
}
TEST_F(RunErrors, OfPartsBearTheirNames) {
  const auto expect = [&](const char* message, const auto& spoil) {
    Call c = call_;
    spoil(c);
    ExpectError(Run(c), message);
    ExpectUntouched();
  };
  expect("Activate: options: limit is negative or NaN",
         [](Call& c) { c.options.activate.limit = -1; });
  expect("Combine: options: eps is negative or NaN",
         [](Call& c) { c.options.combine.eps = -1; });
  expect("Combine: residual: is not [tokens, hidden]", [this](Call& c) {
    c.in.combine.residual = ConstAnyMatrix(hidden_.data(), 2, 5);
  });
  ExpectError(RunExperts(call_.in, call_.out, call_.options,
                         ExpertGemm(nullptr, nullptr)),
              "RunExperts: gemm: is null");
  ExpectUntouched();
}
// A product that is a null function or an empty object is not valid.
TEST_F(RunErrors, OfProductsThatAreEmpty) {
  const auto expect = [&](const ExpertGemm& gemm) {
    EXPECT_FALSE(gemm.has_function());
    ExpectError(RunExperts(call_.in, call_.out, call_.options, gemm),
                "RunExperts: gemm: is null");
    ExpectUntouched();
  };
  expect(ExpertGemm(nullptr, nullptr));
  Status (*const function)(const ExpertTile&) = nullptr;
  expect(function);
  expect(std::function<Status(const ExpertTile&)>());
}
Status WriteSevens(const ExpertTile& tile) {
  for (size_t r = 0; r < tile.out.rows; ++r) {
    std::fill_n(tile.out.Row<float>(r), tile.out.cols, 7.0f);
  }
  return Status();
}
// A product may be a function by name or by address, or a named object.
TEST_F(RunErrors, NoneOfFunctionsAndObjects) {
  std::vector<float> expected;
  const auto expect = [&](const ExpertGemm& gemm) {
    std::fill(out_.begin(), out_.end(), -7.0f);
    EXPECT_OK(RunExperts(call_.in, call_.out, call_.options, gemm));
    if (expected.empty()) expected = out_;
    EXPECT_EQ(out_, expected);
    EXPECT_NE(out_[0], -7.0f);
  };
  expect(WriteSevens);
  expect(&WriteSevens);
  expect([](ExpertTile tile) noexcept { return WriteSevens(tile); });
  const std::function<Status(const ExpertTile&)> object = WriteSevens;
  expect(object);
  const ExpertGemm named = &WriteSevens, copy = named;
  expect(copy);
}
TEST_F(RunErrors, OfTheExecutorAreReported) {
  scratch_.resize(ExpertsScratchSize(plan_, call_.options, 4));
  call_.in.scratch = scratch_;
  BackwardsExecutor executor(0);
  ExpectError(Run(call_, executor), "no memory", StatusCode::kOutOfMemory);
}

}  // namespace
}  // namespace switchyard::testing_support
