// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SWITCHYARD_PROGRAMS_MOE_PLAIN_BLOCK_H_
#define SWITCHYARD_PROGRAMS_MOE_PLAIN_BLOCK_H_

#include <cstddef>
#include <vector>

#include "layer_weights.h"
#include "memory.h"
#include "moe_block.h"
#include "switchyard/executor.h"
#include "switchyard/views.h"

namespace moe_layer {

// Runs the generated layer for --compare, with the code that engines commonly
// have around the products: softmax and a full sort for each token, a list of
// pairs (a token and one of its experts) for each expert, and plain loops over
// floats. The products are the same as MoeBlock's. The executor's threads
// divide the experts and the tokens. Rows must be f32 or bf16.
class PlainBlock {
 public:
  // `weights` and `executor` must outlive the block.
  PlainBlock(const LayerWeights& weights, size_t tokens,
             switchyard::Executor& executor);

  // Runs the layer, like MoeBlock::Run(). Throws std::runtime_error if a GEMM
  // or the executor reports an error.
  void Run(const switchyard::ConstAnyMatrix& hidden,
           const switchyard::ConstAnyMatrix& normed);

  // True if the results differ from MoeBlock's only by rounding: the largest
  // difference must be a small part of the results' root mean square.
  bool AgreesWith(const BlockResults& results) const;

 private:
  struct Worker {
    GemmScratch scratch;
    Buffer rows, gate_up, activated;
  };

  template <class Row, class Operand>
  void RunAs(const switchyard::ConstAnyMatrix& hidden,
             const switchyard::ConstAnyMatrix& normed);
  template <class Operand>
  void Route(size_t token);
  template <class Operand>
  void RunExpert(size_t expert, Worker& worker);
  template <class Row, class Operand>
  void SumAndNorm(size_t token, const switchyard::ConstAnyMatrix& hidden);

  const LayerWeights& layer_;
  switchyard::Executor& executor_;
  const size_t tokens_;
  RowBuffer operands_, logits_, expert_rows_, out_, next_normed_;
  std::vector<float> weights_;              // [tokens, top_k]
  std::vector<size_t> ids_, row_of_pair_;   // [tokens, top_k]
  std::vector<std::vector<size_t>> pairs_;  // for each expert
  std::vector<size_t> first_row_;           // for each expert
  std::vector<Worker> workers_;
};

}  // namespace moe_layer

#endif  // SWITCHYARD_PROGRAMS_MOE_PLAIN_BLOCK_H_
