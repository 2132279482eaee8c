// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs the experts of a layer, from the router's ids to the residual stream.
// RunExperts() does all steps in one parallel region, and calls the engine
// for the matrix products.
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
  // Gate and up in one matrix, laid out as GateUpLayout says. With kUngated
  // it is the gate alone.
  kGateUp,
  kGate,  // the gate product, with GateUpLayout::kSplit only
  kUp,    // the up product, with GateUpLayout::kSplit only
  kDown,  // the down product
};

// A part of an expert's product, for one call of the engine's ExpertGemm. The
// engine computes
//   out[r, c] = sum over i of rows[r, i] * weights[i, first_column + c]
// `weights` are the expert's weights for `product`.
struct ExpertTile {
  // The value of `expert` in tiles of the shared expert.
  static constexpr int32_t kShared = -1;

  ExpertProduct product;  // the product that the tile is a part of
  int32_t expert;         // the expert's number, or kShared
  // The tile's first column in the output of the product, a multiple of
  // ExpertsPlanOptions::tile_columns.
  size_t first_column;
  // The number of the worker that computes the tile, below the executor's
  // Concurrency(). Tiles that are computed at the same time have different
  // numbers, so an engine can use the number as an index into per-thread
  // data.
  size_t worker;
  // Input of the product: [m, hidden], or [m, intermediate] for kDown.
  ConstAnyRows rows;
  // Output of the product: [m, columns], with a stride. If the tile has all
  // columns of the product, its rows have no gaps between them.
  AnyMatrix out;
};

// Makes Clang warn if an ExpertGemm outlives the object that it refers to.
#if defined(__clang__)
#define SWITCHYARD_LIFETIME_BOUND [[clang::lifetimebound]]
#else
#define SWITCHYARD_LIFETIME_BOUND
#endif

// The engine's matrix product: a function, or an object such as a lambda,
// that computes one tile on the calling thread and returns a Status.
// RunExperts() calls the function for each tile. The function writes all of
// tile.out, may add a bias, and does not throw. If it returns an error,
// RunExperts() ends and returns this error.
//
// An ExpertGemm does not copy the object, so the object must outlive the
// ExpertGemm. Several threads call the object as const at the same time.
// RunExperts() refuses a null function, and an object with an operator bool
// that returns false, such as an empty std::function.
//
// A layer's result has the same bits for every division into tiles and every
// executor if out[r, c] depends on rows[r] and column first_column + c alone,
// and not on the number of rows or columns of a tile. If a GEMM chooses its
// kernel by the number of rows, the bits depend on ExpertsPlanOptions::workers,
// but not on the executor.
class ExpertGemm {
 public:
  // A function that computes `tile`. `context` is the pointer that the engine
  // gave to the constructor.
  using Function = Status (*)(void* context, const ExpertTile& tile);

  // Makes an ExpertGemm that calls function(context, tile).
  constexpr ExpertGemm(Function function, void* context) noexcept
      : function_(function), context_(context) {}
  // Makes an ExpertGemm that calls a function, given by its name or address.
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
  // Makes an ExpertGemm that calls the operator() of an object. The object
  // must outlive the ExpertGemm.
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

  // Computes one tile. Call it only if has_function() is true.
  Status operator()(const ExpertTile& tile) const {
    return function_(context_, tile);
  }
  // False if the function is null or the object is an empty std::function.
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

// A format of rows: one of the lines of the table in quantize.h.
struct RowFormat {
  Type type = Type::kF32;  // the type of an element, a code or a block
  // For codes: the number of columns that share a scale, 32, 64 or 128. 0
  // means that all columns of a row share one scale.
  size_t scale_columns = 0;
  Type scale_type = Type::kF32;  // for codes: the type of the scales
  bool has_sums = false;         // for i8 and u8: rows have AnyRows::sums
};

// A block: rows of one expert that go through the expert's products together.
// An ExpertTile has the rows of a block, and all or some of a product's
// columns.
struct ExpertBlock {
  // The first row of the block: a packed row or, for the shared expert, a
  // token.
  int64_t first_row;
  int32_t rows;    // number of rows
  int32_t expert;  // the expert of all rows, or ExpertTile::kShared
  // The number of parts into which the columns of the gate and up products
  // are cut, so that several workers share the block. A block with 0 parts is
  // not cut: one worker does all its steps, from gather to down.
  int32_t gate_up_parts;
  // The number of parts into which the columns of the down product are cut,
  // or 0 in a block that is not cut.
  int32_t down_parts;
  int32_t cut_row;  // for a cut block: rows in all earlier cut blocks
};
// A piece of work that a worker claims.
struct ExpertTask {
  // The work of a task: all steps of a block that is not cut (kBlock), a part
  // of a cut block's gate and up products (kGateUp), or a part of a cut
  // block's down product (kDown).
  enum Kind : int32_t { kBlock, kGateUp, kDown };
  int32_t block;  // index into ExpertsPlan::blocks
  Kind kind;      // the work of the task
  int32_t part;   // the number of the part; not read for kBlock
};

// A plan of the work on a layer's experts. PlanExperts() makes it from ids,
// in memory that the caller provides, and RunExperts() reads it. Any number
// of calls may read a plan at the same time. Do not change its fields.
// RunExperts() refuses a plan if a later plan was made in the same memory.
//
// Callers may read tokens_per_expert, offsets, pairs and row_index, which
// have the values that BucketPacked() writes, and the lists `blocks` and
// `tasks`.
struct ExpertsPlan {
  Span<int32_t> memory;  // the memory of all lists of the plan
  // The sizes that PlanExperts() was called with.
  size_t tokens = 0, top_k = 0, num_experts = 0;
  // The columns that PlanExperts() was called with.
  size_t hidden = 0, intermediate = 0, shared_intermediate = 0;
  size_t tile_columns = 0;         // as in ExpertsPlanOptions
  size_t num_rows = 0;             // pairs with an id in [0, num_experts)
  size_t step_rows = 0;            // the largest number of rows in a block
  size_t cut_rows = 0;             // rows of all blocks that are cut
  size_t tokens_without_rows = 0;  // tokens that have no row to sum
  // The cost of all products, and the least cost that is worth a separate
  // task, in the unit of ExpertsPlanOptions::weight_cost.
  size_t total_cost = 0, least_cost = 0;
  // The lists of BucketPacked(). rows_per_token is the number of rows that
  // are summed for each token.
  Span<int32_t> tokens_per_expert, offsets, pairs, rows_per_token;
  AnyMatrix row_index;  // as BucketPacked() writes it
  // All blocks. Cut blocks come after the blocks that are not cut.
  Span<ExpertBlock> blocks;
  // All tasks, in the order that workers claim them: first the blocks that
  // are not cut, the largest first; then the parts of gate and up; then the
  // parts of down, which wait until gate and up of their block are done.
  Span<ExpertTask> tasks;
  // Only PlanExperts() writes generation and mark. generation counts the
  // plans that were made in this process. mark is computed from generation
  // and the address of `memory`. PlanExperts() writes mark to `memory` before
  // it writes the lists, and to the plan after them. RunExperts() refuses a
  // plan if the mark is missing or differs from the mark in `memory`.
  uint64_t generation = 0, mark = 0;
};

// Inputs of PlanExperts().
struct ExpertsPlanInputs {
  ConstAnyMatrix topk_ids;  // [tokens, top_k]: expert ids from RouteTopK
};
// Outputs of PlanExperts(). Keep memory unchanged as long as the plan is
// used.
struct ExpertsPlanOutputs {
  Span<int32_t> memory;         // at least [ExpertsPlanSize]
  ExpertsPlan* plan = nullptr;  // the plan, which points into memory
  // Optional. The call sets report->max_rows, report->dropped and
  // report->tiles.
  Report* report = nullptr;
};
// Options of PlanExperts(): the layer's sizes, which have no default, and how
// its work is cut.
struct ExpertsPlanOptions {
  size_t num_experts = 0;   // required: experts, without the shared expert
  size_t hidden = 0;        // required: columns of a token
  size_t intermediate = 0;  // required: columns of the down product's input
  // Columns of the shared expert; 0 means that the layer has none.
  size_t shared_intermediate = 0;
  // The number of workers that the plan is for. RunExperts() may run with
  // more or fewer.
  size_t workers = 1;
  // The number of rows that the GEMM multiplies at once. Tiles begin at
  // multiples of min(tile_rows, max_rows) rows, counted from the first row of
  // their expert.
  size_t tile_rows = 16;
  // The number of columns that the GEMM multiplies at once. Tiles begin at
  // multiples of tile_columns columns of their product. With 0 a tile has all
  // columns, for weights that are packed as a whole. LayerWeights with packed
  // weights needs a multiple of 16, which SetCosts() sets.
  size_t tile_columns = 16;
  // The largest number of rows in a tile. It is limited because a worker
  // keeps these rows in its cache from one product to the next. If it is
  // above tile_rows, it is rounded down to a multiple of tile_rows. (The
  // products of an expert of 2048 x 768 in f32, on an AVX-512 core, took 86 us
  // a row with 64 rows, 70 us with 128, and 61 us with 256.)
  size_t max_rows = 256;
  // The time to read an expert's weights, in any unit. The default is the
  // time of 32 rows. The plan assumes that an expert's products of m rows
  // take the time weight_cost + row_cost * max(m, min_rows).
  size_t weight_cost = 512;
  // The time to multiply a row with an expert's weights, in the unit of
  // weight_cost.
  size_t row_cost = 16;
  // The products of fewer than min_rows rows take as long as the products of
  // min_rows rows.
  size_t min_rows = 0;
  // The least work that is worth a separate tile or worker, in the unit of
  // weight_cost. The default is half of a row's time: 10 us for 2048 x 768.
  size_t least_cost = 8;
  // Accept ids outside [0, num_experts): see BucketOptions.
  bool allow_dropped = false;
};

// Returns the number of int32 elements of memory that a plan needs, for any
// ids. Returns SIZE_MAX if the size overflows or PlanExperts() refuses an
// option.
size_t ExpertsPlanSize(size_t tokens, size_t top_k,
                       const ExpertsPlanOptions& options) noexcept;

// Sorts pairs by expert as BucketPacked() does, and cuts the experts'
// products into tiles for options.workers workers. PlanExperts cuts the rows
// of experts that have many rows. If some workers would then have no work, as
// with a single token, which has only top_k tiles, PlanExperts also cuts
// columns: into equal parts, or into parts that get smaller towards the end.
//
// Balance: if each worker has the work of four tiles, the last worker
// finishes within 1.05 times the mean time of all. For a single token the
// factor is 1.15 on 2, 4, 8, ... 128 workers, with or without a shared
// expert. On any other number of workers below 128, the factor is 1.23 if
// products have as many column tiles as 2048 x 768 has. It is 1.54 for 4
// experts of 2048 x 1408 on 122 workers. `swy plan` simulates a plan;
// docs/speed.md has a table.
//
// Speed: the sort runs on the executor. The rest runs on the calling thread,
// and takes about 25 ns a block, and up to 6 us more for a few tokens on more
// than 60 workers.
// Bits: the plan depends on the ids and options, but not on the executor.
// Errors: kInvalidArgument for null data, wrong sizes or types, an overlap or
// an option out of range; nothing is written. kFailedPrecondition is returned
// for pairs that need allow_dropped, after all outputs are written. It is
// also returned for costs beyond 63 bits.
Status PlanExperts(const ExpertsPlanInputs& inputs,
                   const ExpertsPlanOutputs& outputs,
                   const ExpertsPlanOptions& options,
                   Executor& executor = SerialExecutor()) noexcept;

// Inputs of RunExperts(). plan, hidden, combine.topk_weights and scratch are
// required.
struct ExpertsInputs {
  // The plan of PlanExperts() for the ids of these tokens.
  const ExpertsPlan* plan = nullptr;
  ConstAnyRows hidden;  // [tokens, hidden]: input of the experts
  // Optional: input of the shared expert, if it differs from hidden.
  ConstAnyRows shared_hidden = {};
  // Optional [num_experts, columns of the product]: biases of the gate
  // product, laid out as ActivateInputs::gate_bias is. The engine itself adds
  // the biases of the down product.
  ConstAnyMatrix gate_bias = {};
  // Optional [num_experts, intermediate]: biases of the up product, with
  // GateUpLayout::kSplit only.
  ConstAnyMatrix up_bias = {};
  // The arguments of Combine(): topk_weights, residual, norm_weight, shared
  // and so on. Leave out `rows` and `row_index`. If the plan has a shared
  // expert, leave out shared.rows too, and set shared.gate and shared.kind;
  // kind is SharedGate::kNone if the model has no gate (DeepSeek).
  CombineInputs combine = {{}, {}, ConstAnyMatrix()};
  // Working memory, at least [ExpertsScratchSize]. Its contents before the
  // call do not matter.
  Span<int32_t> scratch;
};
// Options of RunExperts().
struct ExpertsOptions {
  // The activation of the routed experts, and the layout of their gate and up
  // products.
  ActivateOptions activate;
  CombineOptions combine;  // options of the sum over a token's experts
  // The format of the input rows of the gate and up products. If hidden has
  // another format, each token is converted once. If the type has blocks, the
  // plan's hidden must be a multiple of the block.
  RowFormat operands;
  // The format of rows that the activation writes and the down product reads.
  // If it is not set, the format is `operands`. Set it if the weights of the
  // down product need another format than the weights of gate and up. For
  // example, gate may read q8_k, while a down product with 1408 columns reads
  // q8_0, because 1408 is not a multiple of 256, which is the size of a q8_k
  // block. If the type has blocks, the plan's intermediate and
  // shared_intermediate must be multiples of the block.
  std::optional<RowFormat> down_operands;
  // The type of the gate and up products in memory: f32, bf16 or f16.
  Type gate_up_type = Type::kF32;
  // The type of the down product in memory: f32, bf16 or f16.
  Type down_type = Type::kF32;
  // If true, combine.topk_weights scale an expert's input, before the
  // activation, instead of its output: Llama 4.
  bool weights_on_input = false;
  // The activation of the shared expert, and the layout of its gate and up
  // products.
  ActivateOptions shared_activate = {Activation::kSilu,
                                     GateUpLayout::kConcatenated};
};

// Returns the number of int32 elements of scratch for `workers` workers, or 0
// if the call does nothing. With less scratch, RunExperts() runs fewer
// workers. The scratch must be enough for at least one worker. Returns
// SIZE_MAX if the size overflows, or if RunExperts() refuses the plan or a
// type or format of the options.
size_t ExpertsScratchSize(const ExpertsPlan& plan,
                          const ExpertsOptions& options,
                          size_t workers) noexcept;
// Returns a size of scratch that is enough for every plan of `tokens` tokens,
// for engines that allocate memory before they know the ids. Also returns
// SIZE_MAX if ExpertsPlanSize() returns SIZE_MAX.
size_t ExpertsScratchSize(size_t tokens, size_t top_k,
                          const ExpertsPlanOptions& shape,
                          const ExpertsOptions& options,
                          size_t workers) noexcept;

// Runs a layer's experts. For token t, slot s and the slot's expert e:
//   row(t, s) = down_e(activation(gate_e(hidden[t]), up_e(hidden[t])))
//   outputs = Combine(rows, topk_weights, ...)
// RunExperts does the work of GatherRows, the gate and up products, Activate,
// the down products and Combine. The contracts of these functions hold.
//
// The call makes one loop on the executor. Each index of the loop is a worker,
// and there are at most Concurrency() workers. A worker runs tasks of the plan
// until none is left. There is no barrier:
// an expert's down product begins when its activation is done, and a token is
// summed when its rows are done. A worker that has to wait for another one
// spins and then yields. An executor may also run the indices one after the
// other.
//
// Overlap: no output and no part of scratch may overlap hidden. Between
// outputs and inputs.combine, the rules of Combine hold.
//
// Bits: as described at ExpertGemm. If an engine calls the five steps one
// after the other, the results have the same bits.
//
// Errors: kInvalidArgument names the argument ("Activate: ..." for
// options.activate, "Combine: ..." for inputs.combine, and so on), and only
// scratch may have been written. If a product or the executor fails, the call
// returns the first error, which may be kInvalidArgument too. Workers then
// stop at their next tile or block. Outputs are unspecified, and a residual
// that is updated in place may be spoilt.
Status RunExperts(const ExpertsInputs& inputs, const CombineOutputs& outputs,
                  const ExpertsOptions& options, const ExpertGemm& gemm,
                  Executor& executor = SerialExecutor()) noexcept;

// The outputs of the down products of a finished call of RunExperts().
struct ExpertsRows {
  AnyMatrix routed;  // [plan->num_rows, hidden], in the order of plan->pairs
  AnyMatrix shared;  // [tokens, hidden]; empty without a shared expert
};
// Returns the outputs of the down products of a finished call of RunExperts()
// with these arguments, to check a GEMM. The outputs are parts of
// inputs.scratch and live as long as it does. They are empty if RunExperts()
// refuses the plan or scratch.
ExpertsRows RowsOfExperts(const ExpertsInputs& inputs,
                          const ExpertsOptions& options) noexcept;

}  // namespace switchyard

#undef SWITCHYARD_LIFETIME_BOUND

#endif  // SWITCHYARD_LAYER_H_
