// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/layer.h"

#include <cstring>
#include <type_traits>

#include "src/c/call.h"

namespace switchyard::c {
namespace {

static_assert(SWY_SHARED_EXPERT == ExpertTile::kShared, "");
static_assert(sizeof(ExpertsPlan) <= sizeof(swy_experts_plan), "");
static_assert(std::is_trivially_copyable_v<ExpertsPlan>,
              "A plan is bytes to a caller of C");

ExpertsPlan ReadPlan(const swy_experts_plan& given) {
  ExpertsPlan plan;
  std::memcpy(&plan, given.opaque, sizeof plan);
  return plan;
}
void WritePlan(const ExpertsPlan& plan, swy_experts_plan* given) {
  std::memcpy(given->opaque, &plan, sizeof plan);
}

swy_expert_tile TileOf(const ExpertTile& tile) {
  swy_expert_tile c = {};
  c.product = static_cast<int32_t>(tile.product);
  c.expert = tile.expert;
  c.first_column = tile.first_column;
  c.worker = tile.worker;
  Convert(static_cast<const ConstAnyMatrix*>(&tile.rows), &c.rows.values);
  Convert(&tile.rows.scales, &c.rows.scales);
  Convert(&tile.rows.sums, &c.rows.sums);
  Convert(&tile.out, &c.out);
  return c;
}
Status Multiply(void* context, const ExpertTile& tile) {
  const auto& gemm = *static_cast<const swy_expert_gemm*>(context);
  const swy_expert_tile c = TileOf(tile);
  return StatusOf(gemm.run(gemm.context, &c),
                  "RunExperts: gemm: run failed without a message");
}

#define TEXTS(name) SWITCHYARD_C_ARGUMENT_TEXTS("RunExperts", name)

// Reads an optional struct of the caller. A null pointer leaves `to`
// unchanged.
template <class C>
Status ReadOptional(const C* given, const ArgumentTexts& texts, CppOf<C>* to) {
  if (given == nullptr) return Status();
  const Argument<C> argument(given, texts);
  if (argument.status.ok()) *to = argument.value;
  return argument.status;
}
// Reads the option structs to which `given` has pointers.
Status ReadParts(const swy_experts_options* given, ExpertsOptions* to) {
  if (given == nullptr) return Status();
  const swy_row_format* const down =
      AloneIn(given, &swy_experts_options::down_operands);
  if (down != nullptr) {
    RowFormat& format = to->down_operands.emplace();
    Convert(&down->type, &format.type);
    Convert(&down->scale_type, &format.scale_type);
    format.scale_columns = down->scale_columns;
    Convert(&down->has_sums, &format.has_sums);
  }
  Status status = ReadOptional(AloneIn(given, &swy_experts_options::activate),
                               TEXTS("options: activate"), &to->activate);
  if (!status.ok()) return status;
  status = ReadOptional(AloneIn(given, &swy_experts_options::combine),
                        TEXTS("options: combine"), &to->combine);
  if (!status.ok()) return status;
  return ReadOptional(AloneIn(given, &swy_experts_options::shared_activate),
                      TEXTS("options: shared_activate"), &to->shared_activate);
}
Status ReadCombine(const swy_combine_inputs* given, CombineInputs* to) {
  const Argument<swy_combine_inputs> combine(given, TEXTS("combine"));
  if (!combine.status.ok()) return combine.status;
  *to = combine.value;
  // token_order is passed on, so that RunExperts() refuses it.
  if (AloneIn(given, &swy_combine_inputs::token_order) != 0) {
    to->row_index = RowIndex::kTokenOrder;
  }
  return Status();
}

}  // namespace
}  // namespace switchyard::c

using namespace switchyard::c;

size_t swy_experts_plan_size(size_t tokens, size_t top_k,
                             const swy_experts_plan_options* options) noexcept {
  const auto opt =
      Argument<swy_experts_plan_options>::OrDefault(options, ArgumentTexts());
  if (!opt.status.ok()) return SIZE_MAX;
  return switchyard::ExpertsPlanSize(tokens, top_k, opt.value);
}

swy_status swy_plan_experts(const swy_experts_plan_inputs* inputs,
                            const swy_experts_plan_outputs* outputs,
                            const swy_experts_plan_options* options,
                            const swy_executor* executor) noexcept {
  constexpr Texts texts = SWITCHYARD_C_TEXTS("PlanExperts", "executor");
  return Call(texts, inputs, outputs, options,
              [&](const auto& in, auto& out, const auto& opt) {
                swy_experts_plan* const given =
                    AloneIn(outputs, &swy_experts_plan_outputs::plan);
                switchyard::ExpertsPlan plan;
                if (given != nullptr) out.plan = &plan;
                const switchyard::Status status = WithExecutor(
                    texts, executor, [&](switchyard::Executor& who) {
                      return switchyard::PlanExperts(in, out, opt, who);
                    });
                if (status.code() != switchyard::StatusCode::kInvalidArgument) {
                  WritePlan(plan, given);
                }
                return status;
              });
}

size_t swy_experts_scratch_size(const swy_experts_plan* plan,
                                const swy_experts_options* options,
                                size_t workers) noexcept {
  auto opt = Argument<swy_experts_options>::OrDefault(options, ArgumentTexts());
  if (plan == nullptr || !opt.status.ok() ||
      !ReadParts(options, &opt.value).ok()) {
    return SIZE_MAX;
  }
  return switchyard::ExpertsScratchSize(ReadPlan(*plan), opt.value, workers);
}

size_t swy_experts_scratch_size_of_any(size_t tokens, size_t top_k,
                                       const swy_experts_plan_options* shape,
                                       const swy_experts_options* options,
                                       size_t workers) noexcept {
  const auto plan =
      Argument<swy_experts_plan_options>::OrDefault(shape, ArgumentTexts());
  auto opt = Argument<swy_experts_options>::OrDefault(options, ArgumentTexts());
  if (!plan.status.ok() || !opt.status.ok() ||
      !ReadParts(options, &opt.value).ok()) {
    return SIZE_MAX;
  }
  return switchyard::ExpertsScratchSize(tokens, top_k, plan.value, opt.value,
                                        workers);
}

swy_status swy_run_experts(const swy_experts_inputs* inputs,
                           const swy_combine_outputs* outputs,
                           const swy_experts_options* options,
                           const swy_expert_gemm* gemm,
                           const swy_executor* executor) noexcept {
  using switchyard::Status;
  constexpr Texts texts = SWITCHYARD_C_TEXTS("RunExperts", "executor");
  return Call(
      texts, inputs, outputs, options,
      [&](auto& in, const auto& out, auto& opt) -> Status {
        Status status = ReadCombine(
            AloneIn(inputs, &swy_experts_inputs::combine), &in.combine);
        if (status.ok()) status = ReadParts(options, &opt);
        if (status.ok()) status = Check(gemm, TEXTS("gemm"));
        if (!status.ok()) return status;
        swy_expert_gemm product = {gemm->size,
                                   AloneIn(gemm, &swy_expert_gemm::run),
                                   AloneIn(gemm, &swy_expert_gemm::context)};
        if (product.run == nullptr) {
          return Invalid("RunExperts: gemm: run is null");
        }
        const swy_experts_plan* const given =
            AloneIn(inputs, &swy_experts_inputs::plan);
        switchyard::ExpertsPlan plan;
        if (given != nullptr) {
          plan = ReadPlan(*given);
          in.plan = &plan;
        }
        return WithExecutor(texts, executor, [&](switchyard::Executor& who) {
          return switchyard::RunExperts(in, out, opt, {Multiply, &product},
                                        who);
        });
      });
}
