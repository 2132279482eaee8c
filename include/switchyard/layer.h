// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The experts of a layer, from the router's ids to the residual stream.
// RunExperts() does every step in one parallel region, and calls the engine
// for the products.
//
//   ExpertsPlanOptions shape;
//   shape.num_experts = 128, shape.hidden = 2048, shape.intermediate = 768;
//   shape.workers = pool.Concurrency();
//   std::vector<int32_t> memory(ExpertsPlanSize(tokens, top_k, shape));
//   ExpertsPlan plan;
//   Status s = PlanExperts({ids}, {memory, &plan}, shape, pool);
//
//   ExpertsOptions options;  // the layer's activation, types, ...
//   std::vector<int32_t> scratch(
//       ExpertsScratchSize(plan, options, pool.Concurrency()));
//   ExpertsInputs in;
//   in.plan = &plan, in.hidden = hidden, in.scratch = scratch;
//   in.combine.topk_weights = weights, in.combine.residual = residual;
//   s = RunExperts(in, {residual}, options,
//                  [&](const ExpertTile& tile) { return Multiply(tile); },
//                  pool);

#ifndef SWITCHYARD_LAYER_H_
#define SWITCHYARD_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "switchyard/activate.h"
#include "switchyard/combine.h"
#include "switchyard/executor.h"
#include "switchyard/report.h"
#include "switchyard/status.h"
#include "switchyard/types.h"
#include "switchyard/views.h"

namespace switchyard {

// The products of an expert.
enum class ExpertProduct : uint8_t {
  // Gate and up in one matrix, laid out as GateUpLayout says; with kUngated it
  // is the only one.
  kGateUp,
  kGate,  // these two with GateUpLayout::kSplit
  kUp,
  kDown,
};

// A part of a product, computed by the thread that receives it:
//   out[r, c] = sum over i of rows[r, i] * weights[i, first_column + c]
// where the weights are those of `product` of `expert`.
struct ExpertTile {
  // The `expert` of the shared expert's tiles.
  static constexpr int32_t kShared = -1;

  ExpertProduct product;
  int32_t expert;
  size_t first_column;  // a multiple of tile_columns
  // Below the executor's Concurrency(). No two tiles have the same number at
  // the same time, so an engine can use it to index data that it keeps for
  // each thread.
  size_t worker;
  ConstAnyRows rows;  // [m, hidden], or [m, intermediate] for kDown
  // [m, columns], with a stride; without gaps if it has all columns of the
  // product.
  AnyMatrix out;
};

// Makes Clang warn if the object dies before the ExpertGemm that refers to
// it.
#if defined(__clang__)
#define SWITCHYARD_LIFETIME_BOUND [[clang::lifetimebound]]
#else
#define SWITCHYARD_LIFETIME_BOUND
#endif

// The engine's product of a tile, on the calling thread alone: a function, or
// an object such as a lambda. RunExperts() calls it with a tile, and it
// returns a Status. An ExpertGemm refers to an object without a copy, so the
// object has to live longer; several threads call it as const at the same
// time. RunExperts() refuses a null function, and an object with an operator
// bool that returns false, such as an empty std::function. The product writes
// all of tile.out, may add a bias, and does not throw. A Status that is not
// ok ends the call, and the call returns it.
//
// The layer's bits are those of one thread for any cut and executor if out[r,
// c] depends on rows[r] and column first_column + c alone, and not on the
// number of rows or columns of a tile. A GEMM that chooses its kernel by the
// number of rows gives the same bits for equal `workers`, on every executor.
class ExpertGemm {
 public:
  using Function = Status (*)(void* context, const ExpertTile& tile);

  constexpr ExpertGemm(Function function, void* context) noexcept
      : function_(function), context_(context) {}
  // A function, by its name or address.
  template <class Result, class... Tile>
  ExpertGemm(Result (*multiply)(Tile...)) noexcept  // NOLINT(runtime/explicit)
      : function_(nullptr), context_(reinterpret_cast<void*>(multiply)) {
    using Pointer = Result (*)(Tile...);
    CheckIsProduct<Pointer>();
    if constexpr (kIsProduct<Pointer>) {
      if (multiply == nullptr) return;
      function_ = [](void* context, const ExpertTile& tile) -> Status {
        return reinterpret_cast<Pointer>(context)(tile);
      };
    }
  }
  // An object.
  template <class F, class = std::enable_if_t<
                         !std::is_function_v<std::remove_pointer_t<F>>>>
  ExpertGemm(const F& multiply  // NOLINT(runtime/explicit)
                 SWITCHYARD_LIFETIME_BOUND) noexcept
      : function_(nullptr), context_(const_cast<F*>(&multiply)) {
    CheckIsProduct<F>();
    if constexpr (kIsProduct<F>) {
      if (IsEmpty(multiply, 0)) return;
      function_ = [](void* context, const ExpertTile& tile) -> Status {
        return (*static_cast<const F*>(context))(tile);
      };
    }
  }

  Status operator()(const ExpertTile& tile) const {
    return function_(context_, tile);
  }
  bool has_function() const { return function_ != nullptr; }

 private:
  template <class F>
  static constexpr bool kIsProduct =
      std::is_invocable_r_v<Status, const F&, const ExpertTile&>;
  template <class F>
  static auto IsEmpty(const F& multiply, int)
      -> decltype(multiply.operator bool()) {
    return !multiply.operator bool();
  }
  template <class F>
  static bool IsEmpty(const F&, long) {  // NOLINT(runtime/int)
    return false;
  }
  template <class F>
  static constexpr void CheckIsProduct() {
    static_assert(kIsProduct<F>,
                  "ExpertGemm takes a function that is called with a const "
                  "ExpertTile& and returns a switchyard::Status; an object's "
                  "operator() is const, because several threads call it at the "
                  "same time: no lambda that is mutable");
  }

  Function function_;
  void* context_;
};

// The format of rows that products read: a line of the table in quantize.h.
struct RowFormat {
  Type type = Type::kF32;
  // For codes, the columns that share a scale: 32, 64 or 128; 0: all of a row.
  size_t scale_columns = 0;
  Type scale_type = Type::kF32;
  bool has_sums = false;  // of i8 and u8
};

// Rows of one expert that go through its products together; an ExpertTile is
// all of their columns or a part.
struct ExpertBlock {
  int64_t first_row;  // of the packed rows; of the shared expert, a token
  int32_t rows;
  int32_t expert;  // or ExpertTile::kShared
  // The numbers of parts by columns into which the block's products are cut,
  // so that workers share them. A block of 0 parts is not cut: one worker
  // does all its steps, from gather to down.
  int32_t gate_up_parts;
  int32_t down_parts;
  int32_t cut_row;  // in a cut block: its first row, counted over all of these
};
// A piece of work that a worker claims.
struct ExpertTask {
  enum Kind : int32_t { kBlock, kGateUp, kDown };
  int32_t block;
  Kind kind;
  int32_t part;
};

// The work on a layer's experts: PlanExperts() makes it from ids, in memory
// that the caller provides, and RunExperts() reads it. Any number of calls
// may read it at the same time. Once another plan is made in its memory,
// RunExperts() refuses it. Do not change any field. Useful to a caller are
// tokens_per_expert, offsets, pairs and row_index, which are as
// BucketPacked() writes them, and the lists of blocks and tasks.
struct ExpertsPlan {
  Span<int32_t> memory;  // all of it
  size_t tokens = 0, top_k = 0, num_experts = 0;
  size_t hidden = 0, intermediate = 0, shared_intermediate = 0;
  size_t tile_columns = 0;
  size_t num_rows = 0;   // pairs with an id in [0, num_experts)
  size_t step_rows = 0;  // the most rows of a block
  size_t cut_rows = 0;   // rows of all blocks that are cut
  size_t tokens_without_rows = 0;
  size_t total_cost = 0, least_cost = 0;
  Span<int32_t> tokens_per_expert, offsets, pairs, rows_per_token;
  AnyMatrix row_index;
  // The blocks that are cut come last.
  Span<ExpertBlock> blocks;
  // In the order of claims: whole blocks, the largest first; then the parts
  // of gate and up; then the parts of down, which wait until gate and up of
  // their block are done.
  Span<ExpertTask> tasks;
  // Only PlanExperts() writes these: the number of its call in this process,
  // and last a mark, which it also puts in memory. RunExperts() refuses a
  // plan without a mark, or with another mark in memory.
  uint64_t generation = 0, mark = 0;
};

struct ExpertsPlanInputs {
  ConstAnyMatrix topk_ids;  // [tokens, top_k], as RouteTopK writes them
};
struct ExpertsPlanOutputs {
  Span<int32_t> memory;         // at least [ExpertsPlanSize]
  ExpertsPlan* plan = nullptr;  // points into memory
  Report* report = nullptr;     // optional: sets max_rows, dropped and tiles
};
struct ExpertsPlanOptions {
  size_t num_experts = 0;          // required, as the next two
  size_t hidden = 0;               // columns of a token
  size_t intermediate = 0;         // columns between an expert's products
  size_t shared_intermediate = 0;  // of a shared expert; 0: no shared expert
  // The work is cut for this number of workers. RunExperts() may run with
  // more or fewer.
  size_t workers = 1;
  // Tiles begin at multiples of min(tile_rows, max_rows) rows of their expert
  // and of tile_columns columns of their product: the GEMM's block. With
  // tile_columns 0 a tile has all columns, for weights that are packed as a
  // whole.
  size_t tile_rows = 16;
  size_t tile_columns = 16;
  // The most rows of a tile, because a worker keeps them in its cache from
  // one product to the next. Above tile_rows it is rounded down to a multiple
  // of tile_rows. (2048 x 768 in f32 on an AVX-512 core: 86 us a row at 64
  // rows, 70 at 128, 61 at 256.)
  size_t max_rows = 256;
  // The time of an expert's products of m rows is weight_cost + row_cost *
  // max(m, min_rows), in any unit: weight_cost stands for reading its weights.
  // By default they take as long as 32 rows.
  size_t weight_cost = 512;
  size_t row_cost = 16;
  size_t min_rows = 0;
  // The least work that is worth a separate tile or worker, in the same unit.
  // The default is half of a row's time: 10 us for 2048 x 768.
  size_t least_cost = 8;
  // Accept ids outside [0, num_experts): see BucketOptions.
  bool allow_dropped = false;
};

// The int32 elements of memory that a plan needs, for any ids. SIZE_MAX if
// the size overflows or PlanExperts() refuses an option.
size_t ExpertsPlanSize(size_t tokens, size_t top_k,
                       const ExpertsPlanOptions& options) noexcept;

// Sorts pairs to experts as BucketPacked() does, and cuts the experts'
// products into tiles, which `workers` workers claim. It cuts the rows of
// busy experts. Where that leaves a worker without work (one token has top_k
// tiles), it also cuts columns, into smaller parts towards the end.
//
// If each worker has the work of four tiles, the last one finishes within
// 1.05 of the mean time of all. For a single token the factor is 1.15 on 2,
// 4, 8, ... 128 workers, with a shared expert or without, and 1.23 on any
// other number below 128, if products have as many column tiles as 2048 x 768
// has (1.54 for 4 experts of 2048 x 1408 on 122 workers). `swy plan`
// simulates it; docs/speed.md has a table.
//
// The sort runs on the executor, and the rest on the calling thread: about 25
// ns a block, and up to 6 us more for a few tokens on more than 60 workers.
// Bits: the plan depends on ids and options, not on the executor.
// Errors: kInvalidArgument for null data, sizes, types, an overlap or an
// option out of range, with nothing written. kFailedPrecondition for pairs
// that need allow_dropped, with all outputs written, and for costs beyond 63
// bits.
Status PlanExperts(const ExpertsPlanInputs& inputs,
                   const ExpertsPlanOutputs& outputs,
                   const ExpertsPlanOptions& options,
                   Executor& executor = SerialExecutor()) noexcept;

struct ExpertsInputs {
  const ExpertsPlan* plan = nullptr;
  ConstAnyRows hidden;  // [tokens, hidden]: input of the experts
  // Optional: input of the shared expert, if it differs from hidden.
  ConstAnyRows shared_hidden = {};
  // Optional [num_experts, columns of the product], see ActivateInputs. The
  // engine adds the biases of the down product.
  ConstAnyMatrix gate_bias = {};
  ConstAnyMatrix up_bias = {};  // with GateUpLayout::kSplit only
  // The arguments of Combine(): topk_weights, residual, norm_weight, shared
  // and so on. Leave out `rows` and `row_index`, and shared.rows too if the
  // plan has a shared expert. Set shared.gate and shared.kind then:
  // SharedGate::kNone if the model has no gate (DeepSeek).
  CombineInputs combine = {{}, {}, ConstAnyMatrix()};
  // At least [ExpertsScratchSize], of any contents.
  Span<int32_t> scratch;
};
struct ExpertsOptions {
  ActivateOptions activate;
  CombineOptions combine;
  // The format of rows that the products of gate and up read. If hidden has
  // another format, each token is converted once. If the type has blocks, the
  // plan's hidden is a multiple of the block.
  RowFormat operands;
  // The format of rows that the down product reads and the activation writes;
  // if not set, `operands`. Set it where the weights of the down product need
  // another format than gate and up. An example is a down product of 1408
  // columns of q8_0 where the gate reads q8_k, because blocks of q8_k have
  // 256 columns. If the type has blocks, the plan's intermediate and
  // shared_intermediate are multiples of the block.
  std::optional<RowFormat> down_operands;
  // The types that products are written in: f32, bf16 or f16.
  Type gate_up_type = Type::kF32;
  Type down_type = Type::kF32;
  // topk_weights scale an expert's input instead of its output, before the
  // activation: Llama 4.
  bool weights_on_input = false;
  ActivateOptions shared_activate = {Activation::kSilu,
                                     GateUpLayout::kConcatenated};
};

// The int32 elements of scratch for `workers` workers. A call with less
// scratch runs fewer workers, and needs enough for one. 0 if the call does
// nothing. SIZE_MAX if the size overflows, or RunExperts() refuses the plan
// or a type or format of the options.
size_t ExpertsScratchSize(const ExpertsPlan& plan,
                          const ExpertsOptions& options,
                          size_t workers) noexcept;
// Enough for every plan of `tokens` tokens, for engines that allocate memory
// before the ids are known. SIZE_MAX also where ExpertsPlanSize() is
// SIZE_MAX.
size_t ExpertsScratchSize(size_t tokens, size_t top_k,
                          const ExpertsPlanOptions& shape,
                          const ExpertsOptions& options,
                          size_t workers) noexcept;

// Per token t, slot s and its expert e:
//   row(t, s) = down_e(activation(gate_e(hidden[t]), up_e(hidden[t])))
//   outputs = Combine(rows, topk_weights, ...)
// This is GatherRows, the products, Activate, the down products and Combine,
// with the contract of each, in one region of the executor: at most
// Concurrency() ranges of one index each, and in each range a worker claims
// tiles. It needs no barrier, because an expert's down product begins when
// its activation is done, and a token is summed when its rows are done. A
// worker that has to wait for another spins and then yields. The ranges may
// also run one after the other.
//
// Overlap: no output and no part of scratch may overlap hidden; outputs and
// inputs.combine are as in Combine.
//
// Bits: as described at ExpertGemm; the same as those of the five calls one
// after the other.
//
// Errors: kInvalidArgument names the argument (with "Activate: ..." and
// "Combine: ..." for options.activate, inputs.combine, ...), and only scratch
// may have been written. If a product or the executor fails, the call returns
// the first such error; workers then stop at their next tile or block, and
// outputs are unspecified.
Status RunExperts(const ExpertsInputs& inputs, const CombineOutputs& outputs,
                  const ExpertsOptions& options, const ExpertGemm& gemm,
                  Executor& executor = SerialExecutor()) noexcept;

// The rows that a call with these arguments wrote for its down products, so
// that a GEMM can be checked. They are parts of inputs.scratch, and share its
// lifetime. Empty if RunExperts() refuses the plan or scratch.
struct ExpertsRows {
  AnyMatrix routed;  // [plan->num_rows, hidden], sorted as plan->pairs is
  AnyMatrix shared;  // [tokens, hidden] with a shared expert
};
ExpertsRows RowsOfExperts(const ExpertsInputs& inputs,
                          const ExpertsOptions& options) noexcept;

}  // namespace switchyard

#undef SWITCHYARD_LIFETIME_BOUND

#endif  // SWITCHYARD_LAYER_H_
