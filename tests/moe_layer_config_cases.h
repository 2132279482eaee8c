// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Spoilt fields of config.json in moe_layer_errors_test, and the messages.

#ifndef SWITCHYARD_TESTS_MOE_LAYER_CONFIG_CASES_H_
#define SWITCHYARD_TESTS_MOE_LAYER_CONFIG_CASES_H_

#include <ostream>
#include <string>

#include "tests/moe_layer_files.h"
#include "tests/moe_layer_spoil.h"

namespace moe_layer::testing_support {

struct Case {
  const char* name;
  Spoil spoil;
  // The line without "moe_layer: ", and short for what Expand() has.
  std::string want;
  std::string options = "";
  const char* family = "qwen2_moe";
};
inline std::ostream& operator<<(std::ostream& os, const Case& c) {
  return os << c.name;
}

inline const Case kConfigCases[] = {
    {"ConfigMissing", Remove(kConfig),
     "CONFIG: cannot open: No such file or directory"},
    {"ConfigIsAFolder", MakeFolder(kConfig),
     "CONFIG: cannot open: not a regular file"},
    {"ConfigIsAPipe", MakePipe(kConfig),
     "CONFIG: cannot open: not a regular file"},
    {"ConfigDeepUnused", SetText(kConfig, "unused", Nested(150000)),
     "CONFIG: malformed JSON: DEEP"},
    {"ConfigDeepSize", SetText(kConfig, "hidden_size", Nested(150000)),
     "CONFIG: malformed JSON: DEEP"},
    {"ConfigDeepModelType", SetText(kConfig, "model_type", Nested(150000)),
     "CONFIG: malformed JSON: DEEP"},
    {"ConfigDeepUnclosed", Write(kConfig, std::string(150000, '[')),
     "CONFIG: malformed JSON: DEEP"},
    // Brackets in text are no depth, and \" does not end it.
    {"ConfigBracketsInText",
     SetText(kConfig, "model_type", "\"\\\"" + std::string(70, '{') + "\""),
     "CONFIG: model_type: \"\\\"" + std::string(70, '{') +
         "\" is not supported; there are FAMILIES"},
    {"ConfigDeepEnough", SetText(kConfig, "hidden_size", Nested(63)),
     "CONFIG: hidden_size: SIZE, found " + Nested(63)},
    {"ConfigDeepByOne", SetText(kConfig, "hidden_size", Nested(64)),
     "CONFIG: malformed JSON: DEEP"},
    {"ConfigEmpty", Write(kConfig, ""),
     "CONFIG: malformed JSON: PARSE line 1, column 1: syntax error while "
     "parsing value - unexpected end of input; expected '[', '{', or a "
     "literal"},
    {"ConfigMalformed", Write(kConfig, "{\"a\":\n\n]"),
     "CONFIG: malformed JSON: PARSE line 3, column 1: syntax error while "
     "parsing value - unexpected ']'; expected '[', '{', or a literal"},
    {"ConfigNoObject", Write(kConfig, "[1]"),
     "CONFIG: malformed JSON: not an object"},
    {"ModelTypeMissing", Erase("model_type"), "CONFIG: model_type: missing"},
    {"ModelTypeUnknown", Set("model_type", "new\nmodel"),
     "CONFIG: model_type: \"new\\nmodel\" is not supported; there are "
     "FAMILIES"},
    {"ModelTypeNoText", Set("model_type", 3),
     "CONFIG: model_type: 3 is not supported; there are FAMILIES"},
    {"SizeZero", Set("hidden_size", 0), "CONFIG: hidden_size: SIZE, found 0"},
    {"SizeNegative", Set("num_experts", -4),
     "CONFIG: num_experts: SIZE, found -4"},
    {"SizeHuge", Set("moe_intermediate_size", 3000000000),
     "CONFIG: moe_intermediate_size: SIZE, found 3000000000"},
    {"SizeFraction", Set("num_experts_per_tok", 2.5),
     "CONFIG: num_experts_per_tok: SIZE, found 2.5"},
    {"SizeText", Set("shared_expert_intermediate_size", "56"),
     "CONFIG: shared_expert_intermediate_size: SIZE, found \"56\""},
    {"EpsilonNegative", Set("rms_norm_eps", -1e-6),
     "CONFIG: rms_norm_eps: expected a number from 0 to 1, found -1e-06"},
    {"EpsilonText", Set("rms_norm_eps", "x"),
     "CONFIG: rms_norm_eps: expected a number from 0 to 1, found \"x\""},
    {"RenormalizeNumber", Set("norm_topk_prob", 2),
     "CONFIG: norm_topk_prob: cannot be 2"},
    {"RenormalizeMissing", Erase("norm_topk_prob"),
     "CONFIG: norm_topk_prob: is missing"},
    {"RenormalizeNull", Set("norm_topk_prob", nullptr),
     "CONFIG: norm_topk_prob: is missing"},
    {"OtherScore", Set("scoring_func", "softmax"),
     "CONFIG: scoring_func: \"softmax\" is not the score of this family", "",
     "deepseek_v3"},
    {"Activation", Set("hidden_act", "gelu"),
     "CONFIG: hidden_act: \"gelu\" is not supported; only \"silu\""},
    {"TopKAboveExperts", Set("num_experts_per_tok", 13),
     "CONFIG: num_experts_per_tok: 13, but num_experts is 12"},
    {"DenseLayersNoList", Set("mlp_only_layers", 1),
     "CONFIG: mlp_only_layers: expected a list of layers, found 1"},
    {"EveryLayerDense", Set("mlp_only_layers", {0, 1}),
     "CONFIG: every layer is dense, none has experts"},
    {"LayerOutOfRange", Set("x", 0), "--layer 2: CONFIG has layers 0 to 1",
     "--layer 2"},
    {"LayerListedDense", Set("x", 0),
     "--layer 0: CONFIG: layer 0 is dense (listed in mlp_only_layers)",
     "--layer 0", "qwen3_moe"},
    {"LayerStepDense", Set("decoder_sparse_step", 2),
     "--layer 0: CONFIG: layer 0 is dense (decoder_sparse_step is 2)",
     "--layer 0"},
    {"LayerBeforeTheFirst", Set("x", 0),
     "--layer 0: CONFIG: layer 0 is dense (first_k_dense_replace is 1)",
     "--layer 0", "deepseek_v3"},
    {"LayerOfAType", Set("mlp_layer_types", {"sparse", "dense"}),
     "--layer 1: CONFIG: layer 1 is dense (mlp_layer_types has \"dense\" for "
     "it)",
     "--layer 1", "deepseek_v3"},
    {"LayerWithoutAType", Set("mlp_layer_types", {"sparse"}),
     "--layer 1: CONFIG: layer 1 is dense (mlp_layer_types has nothing for it)",
     "--layer 1", "deepseek_v3"},
    {"LayerTypesNoWords", Set("mlp_layer_types", {0, 1}),
     "CONFIG: mlp_layer_types: expected a list of words, found [0,1]", "",
     "deepseek_v3"},
    {"LayerByToken", Set("x", 0),
     "--layer 0: CONFIG: layer 0 routes by token id (num_hash_layers is 1)",
     "--layer 0", "deepseek_v4"},
    {"LayerByTokenOfAType", Set("mlp_layer_types", {"hash_moe", "moe"}),
     "--layer 0: CONFIG: layer 0 routes by token id (mlp_layer_types has "
     "\"hash_moe\" for it)",
     "--layer 0", "deepseek_v4"},
    {"EveryLayerByToken", Set("num_hash_layers", 2147483647),
     "CONFIG: every layer is dense, none has experts", "", "deepseek_v4"},
    {"LayerNotListed",
     [](const TempFolder& folder) {
       folder.EditJson(kConfig, [](json& config) {
         config["text_config"]["moe_layers"] = {0};
       });
     },
     "--layer 1: CONFIG: layer 1 is dense (not listed in moe_layers)",
     "--layer 1", "llama4"},
    {"TextConfigSize",
     [](const TempFolder& folder) {
       folder.EditJson(kConfig, [](json& config) {
         config["text_config"]["hidden_size"] = 0;
       });
     },
     "CONFIG: hidden_size: SIZE, found 0", "", "llama4"},
    {"TextConfigNoObject", Set("text_config", 1),
     "CONFIG: model_type: \"llama4\" is not supported; there are FAMILIES", "",
     "llama4"},
    {"GroupsDoNotDivide", Set("n_group", 5),
     "CONFIG: n_group: 5 does not divide num_experts", "", "deepseek_v3"},
    {"GroupsTooSmall", Set("n_group", 12),
     "CONFIG: n_group: 12 leaves too few experts to a group", "",
     "deepseek_v3"},
    {"KeptAboveGroups", Set("topk_group", 5),
     "CONFIG: topk_group: 5 is 0 or above n_group", "", "deepseek_v3"},
    {"ScaleNegative", Set("routed_scaling_factor", -1),
     "CONFIG: routed_scaling_factor: -1 is negative", "", "deepseek_v3"},
    {"SharedTooWide", Set("n_shared_experts", 2147483647),
     "CONFIG: n_shared_experts: 2147483647 times moe_intermediate_size is more "
     "than 2147483647",
     "", "deepseek_v3"},
    {"TooManyZeroExperts", Set("zero_expert_num", 2147483647),
     "CONFIG: zero_expert_num: 2147483647 and num_experts are more than 2^31 - "
     "1",
     "", "longcat_flash"},
    {"NotEnabled", Set("enable_moe_block", false),
     "CONFIG: enable_moe_block: not true: no layer has experts", "", "gemma4"},
    {"OtherActivation", Set("hidden_activation", "silu"),
     "CONFIG: hidden_activation: \"silu\" is not supported; only "
     "\"gelu_pytorch_tanh\"",
     "", "gemma4"},
    {"StackedExperts", Set("num_local_experts", 11),
     "MODEL: tensor 'model.layers.1.mlp.router.weight': shape [12, 64], but "
     "CONFIG makes it [11, 64]",
     "--layer 1", "gpt_oss"},
    {"StackedIntermediate", Set("intermediate_size", 41),
     "MODEL: tensor 'model.layers.1.mlp.experts.gate_up_proj_bias': shape [12, "
     "80], but CONFIG makes it [12, 82]",
     "--layer 1", "gpt_oss"},
    {"NanInAStackedExpert",
     SetElement(kModel, "model.layers.1.mlp.experts.gate_up_proj",
                (3 * 64 + 5) * 80 + 7, {"\0\x7E", 2}),
     "MODEL: tensor 'model.layers.1.mlp.experts.gate_up_proj', gate and up of "
     "expert 3: nan at [7, 5], but weights have to be finite",
     "--layer 1", "gpt_oss"},
    {"NoRootKnown", Set("num_hidden_layers", 3),
     "MODEL: tensor 'model.layers.2.post_attention_layernorm.weight': missing",
     "--layer 2", "deepseek_v3"},
    {"TopKOption", Set("x", 0), "--top-k 13: the layer has 12 experts",
     "--top-k 13"},
};
}  // namespace moe_layer::testing_support

#endif  // SWITCHYARD_TESTS_MOE_LAYER_CONFIG_CASES_H_
