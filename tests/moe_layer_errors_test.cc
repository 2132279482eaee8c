// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Everything a user can get wrong: one line on stderr that names the file and
// the tensor, key or option, nothing on stdout, and exit code 2.

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/moe_layer_files.h"

namespace moe_layer {
namespace {

using nlohmann::json;
using testing_support::Outcome;
using testing_support::ReadFile;
using testing_support::RunProgram;
using testing_support::Safetensors;
using testing_support::TempFolder;
using testing_support::WriteFile;

constexpr char kConfig[] = "config.json";
constexpr char kModel[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr char kRouter[] = "model.layers.0.mlp.gate.weight";

void Replace(const std::string& what, const std::string& with,
             std::string* text) {
  for (size_t at; (at = text->find(what)) != std::string::npos;) {
    text->replace(at, what.size(), with);
  }
}

struct Case {
  const char* name;
  std::function<void(const TempFolder&)> spoil;
  // The line without "moe_layer: ". $ stands for the folder; #H and #D for the
  // bytes of header and data in the family's (first) tensor file, #E for #D
  // - 1.
  std::string want;
  std::string options = "";
  const char* family = "qwen2_moe";
};
std::ostream& operator<<(std::ostream& os, const Case& c) {
  return os << c.name;
}

class Errors : public testing::TestWithParam<Case> {};

TEST_P(Errors, OneLineAndExitCode2) {
  const TempFolder folder;
  folder.CopyFrom(GetParam().family);
  std::string want = GetParam().want;
  Replace("$", folder.path(), &want);
  const std::string file = GetParam().family == std::string("qwen2_moe")
                               ? kModel
                               : "model-00001-of-00002.safetensors";
  folder.EditTensors(file, [&](const json& header, const std::string& data) {
    Replace("#H", std::to_string(header.dump().size()), &want);
    Replace("#D", std::to_string(data.size()), &want);
    Replace("#E", std::to_string(data.size() - 1), &want);
  });

  GetParam().spoil(folder);
  const Outcome outcome =
      RunProgram("'" + folder.path() + "' " + GetParam().options);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "moe_layer: " + want + "\n");
  EXPECT_EQ(outcome.out, "");
}

std::function<void(const TempFolder&)> Remove(const std::string& file) {
  return [=](const TempFolder& folder) {
    std::filesystem::remove_all(folder.File(file));
  };
}
std::function<void(const TempFolder&)> Write(const std::string& file,
                                             const std::string& content) {
  return
      [=](const TempFolder& folder) { WriteFile(folder.File(file), content); };
}
std::function<void(const TempFolder&)> MakeFolder(const std::string& file) {
  return [=](const TempFolder& folder) {
    std::filesystem::remove_all(folder.File(file));
    std::filesystem::create_directory(folder.File(file));
  };
}
std::function<void(const TempFolder&)> Set(const std::string& key,
                                           const json& value) {
  return [=](const TempFolder& folder) {
    folder.EditJson(kConfig, [&](json& config) { config[key] = value; });
  };
}
std::function<void(const TempFolder&)> Erase(const std::string& key) {
  return [=](const TempFolder& folder) {
    folder.EditJson(kConfig, [&](json& config) { config.erase(key); });
  };
}
// Cuts a file to its first `size` bytes, or takes -`size` off its end.
std::function<void(const TempFolder&)> Cut(const std::string& file, long size) {
  return [=](const TempFolder& folder) {
    const std::string bytes = ReadFile(folder.File(file));
    const size_t keep = size >= 0 ? static_cast<size_t>(size)
                                  : bytes.size() - static_cast<size_t>(-size);
    WriteFile(folder.File(file), bytes.substr(0, keep));
  };
}
std::function<void(const TempFolder&)> EditHeader(
    const std::function<void(json&)>& change) {
  return [=](const TempFolder& folder) {
    folder.EditTensors(kModel,
                       [&](json& header, std::string&) { change(header); });
  };
}
std::function<void(const TempFolder&)> SetRouter(const std::string& member,
                                                 const json& value) {
  return EditHeader([=](json& header) { header[kRouter][member] = value; });
}
std::function<void(const TempFolder&)> EditIndex(
    const std::function<void(json&)>& change) {
  return [=](const TempFolder& folder) { folder.EditJson(kIndex, change); };
}

INSTANTIATE_TEST_SUITE_P(
    MoeLayerConfig, Errors,
    testing::Values(
        Case{"ConfigMissing", Remove(kConfig),
             "$/config.json: cannot open: No such file or directory"},
        Case{"ConfigIsAFolder", MakeFolder(kConfig),
             "$/config.json: cannot open: not a regular file"},
        Case{"ConfigEmpty", Write(kConfig, ""),
             "$/config.json: malformed JSON: "
             "[json.exception.parse_error.101] parse error at line 1, column "
             "1: syntax error while parsing value - unexpected end of input; "
             "expected '[', '{', or a literal"},
        Case{"ConfigMalformed", Write(kConfig, "{\"a\":\n\n]"),
             "$/config.json: malformed JSON: "
             "[json.exception.parse_error.101] parse error at line 3, column "
             "1: syntax error while parsing value - unexpected ']'; expected "
             "'[', '{', or a literal"},
        Case{"ConfigNoObject", Write(kConfig, "[1]"),
             "$/config.json: malformed JSON: not an object"},
        Case{"ModelTypeMissing", Erase("model_type"),
             "$/config.json: model_type: missing"},
        Case{"ModelTypeUnknown", Set("model_type", "new\nmodel"),
             "$/config.json: model_type: \"new\\nmodel\" is not supported; "
             "there are qwen2_moe, qwen3_moe"},
        Case{"ModelTypeNoText", Set("model_type", 3),
             "$/config.json: model_type: 3 is not supported; there are "
             "qwen2_moe, qwen3_moe"},
        Case{"SizeZero", Set("hidden_size", 0),
             "$/config.json: hidden_size: expected an integer from 1 to "
             "2147483647, found 0"},
        Case{"SizeNegative", Set("num_experts", -4),
             "$/config.json: num_experts: expected an integer from 1 to "
             "2147483647, found -4"},
        Case{"SizeHuge", Set("moe_intermediate_size", 3000000000),
             "$/config.json: moe_intermediate_size: expected an integer from "
             "1 to 2147483647, found 3000000000"},
        Case{"SizeFraction", Set("num_experts_per_tok", 2.5),
             "$/config.json: num_experts_per_tok: expected an integer from 1 "
             "to 2147483647, found 2.5"},
        Case{"SizeText", Set("shared_expert_intermediate_size", "56"),
             "$/config.json: shared_expert_intermediate_size: expected an "
             "integer from 1 to 2147483647, found \"56\""},
        Case{"EpsilonNegative", Set("rms_norm_eps", -1e-6),
             "$/config.json: rms_norm_eps: expected a number from 0 to 1, "
             "found -1e-06"},
        Case{"EpsilonText", Set("rms_norm_eps", "x"),
             "$/config.json: rms_norm_eps: expected a number from 0 to 1, "
             "found \"x\""},
        Case{"RenormalizeNumber", Set("norm_topk_prob", 1),
             "$/config.json: norm_topk_prob: expected true or false, found 1"},
        Case{"Activation", Set("hidden_act", "gelu"),
             "$/config.json: hidden_act: \"gelu\" is not supported; only "
             "\"silu\""},
        Case{"TopKAboveExperts", Set("num_experts_per_tok", 13),
             "$/config.json: num_experts_per_tok: 13, but num_experts is 12"},
        Case{"DenseLayersNoList", Set("mlp_only_layers", 1),
             "$/config.json: mlp_only_layers: expected a list of layers, "
             "found 1"},
        Case{"EveryLayerDense", Set("mlp_only_layers", {0, 1}),
             "$/config.json: every layer is dense, none has experts"},
        Case{"LayerOutOfRange", Set("x", 0),
             "--layer 2: $/config.json has layers 0 to 1", "--layer 2"},
        Case{"LayerListedDense", Set("x", 0),
             "--layer 0: $/config.json: layer 0 is dense (listed in "
             "mlp_only_layers)",
             "--layer 0", "qwen3_moe"},
        Case{"LayerStepDense", Set("decoder_sparse_step", 2),
             "--layer 0: $/config.json: layer 0 is dense "
             "(decoder_sparse_step is 2)",
             "--layer 0"},
        Case{"TopKOption", Set("x", 0), "--top-k 13: the layer has 12 experts",
             "--top-k 13"}),
    testing::PrintToStringParamName());

std::vector<Case> MissingKeys() {
  std::vector<Case> cases;
  static const char* const kKeys[] = {"num_hidden_layers",
                                      "hidden_size",
                                      "moe_intermediate_size",
                                      "num_experts",
                                      "num_experts_per_tok",
                                      "rms_norm_eps",
                                      "shared_expert_intermediate_size"};
  for (const char* key : kKeys) {
    cases.push_back(
        {key, Erase(key), std::string("$/config.json: ") + key + ": missing"});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(MoeLayerMissingKey, Errors,
                         testing::ValuesIn(MissingKeys()),
                         testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(
    MoeLayerTensors, Errors,
    testing::Values(
        Case{"NoTensorFile", Remove(kModel),
             "$: no *.safetensors file and no model.safetensors.index.json"},
        Case{"TensorFileIsAFolder", MakeFolder(kModel),
             "$/model.safetensors: cannot open: not a regular file"},
        Case{"Empty", Write(kModel, ""),
             "$/model.safetensors: truncated: 0 bytes, too short for a "
             "safetensors header"},
        Case{"SevenBytes", Write(kModel, "1234567"),
             "$/model.safetensors: truncated: 7 bytes, too short for a "
             "safetensors header"},
        Case{"TruncatedHeader", Write(kModel, Safetensors("{}", "", 3)),
             "$/model.safetensors: truncated: a header of 3 bytes, but only 2 "
             "are left in the file"},
        Case{"TruncatedInsideHeader", Cut(kModel, 1000),
             "$/model.safetensors: truncated: a header of #H bytes, but "
             "only 992 are left in the file"},
        Case{"HeaderTooLong", Write(kModel, Safetensors("{}", "", 100000001)),
             "$/model.safetensors: not a safetensors file: a header of "
             "100000001 bytes"},
        Case{"HeaderLength64Bits",
             Write(kModel, Safetensors("{}", "", ~uint64_t{0})),
             "$/model.safetensors: not a safetensors file: a header of "
             "18446744073709551615 bytes"},
        Case{"HeaderMalformed", Write(kModel, Safetensors("{\"a\"", "")),
             "$/model.safetensors: malformed header: "
             "[json.exception.parse_error.101] parse error at line 1, column "
             "5: syntax error while parsing object separator - unexpected end "
             "of input; expected ':'"},
        Case{"HeaderEmpty", Write(kModel, Safetensors("", "")),
             "$/model.safetensors: malformed header: "
             "[json.exception.parse_error.101] parse error at line 1, column "
             "1: syntax error while parsing value - unexpected end of input; "
             "expected '[', '{', or a literal"},
        Case{"HeaderNoObject", Write(kModel, Safetensors("[]", "")),
             "$/model.safetensors: malformed header: not a JSON object"},
        Case{"TruncatedData", Cut(kModel, -1),
             "$/model.safetensors: tensor "
             "'model.layers.1.mlp.shared_expert_gate.weight': truncated file: "
             "the tensor ends at byte #D of the data, which has #E"},
        Case{"EntryNoObject", EditHeader([](json& h) { h[kRouter] = 5; }),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "malformed header entry: needs dtype, shape and two "
             "data_offsets"},
        Case{"DtypeNoText", SetRouter("dtype", 32),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "malformed header entry: needs dtype, shape and two "
             "data_offsets"},
        Case{"ShapeMissing",
             EditHeader([](json& h) { h[kRouter].erase("shape"); }),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "malformed header entry: needs dtype, shape and two "
             "data_offsets"},
        Case{"ShapeNegative", SetRouter("shape", {-12, 72}),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "malformed header entry: needs dtype, shape and two "
             "data_offsets"},
        Case{"ThreeOffsets", SetRouter("data_offsets", {0, 1, 2}),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "malformed header entry: needs dtype, shape and two "
             "data_offsets"},
        Case{"OffsetsBackwards", SetRouter("data_offsets", {8, 4}),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "data_offsets [8, 4] run backwards"},
        Case{"OffsetsPast64Bits", SetRouter("data_offsets", {0, ~uint64_t{0}}),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "truncated file: the tensor ends at byte 18446744073709551615 of "
             "the data, which has #D"},
        Case{"ShapeLargerThanData", SetRouter("shape", {13, 72}),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "F32 [13, 72] does not fill its 3456 bytes"},
        // Times 4 bytes, modulo 2^64, it is the 3456 that the tensor has.
        Case{"ShapeOverflows", SetRouter("shape", {(uint64_t{1} << 62) + 864}),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "F32 [4611686018427388768] does not fill its 3456 bytes"},
        Case{"TensorsOverlap",
             EditHeader([](json& h) { h["again"] = h[kRouter]; }),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "starts at byte 0 of the data, but what precedes it ends at "
             "3456"},
        Case{"DataOfNoTensor",
             [](const TempFolder& folder) {
               folder.EditTensors(
                   kModel, [](json&, std::string& data) { data += "12345"; });
             },
             "$/model.safetensors: 5 bytes of data belong to no tensor"},
        Case{"TensorMissing", EditHeader([](json& h) {
               h["renamed"] = h[kRouter];
               h.erase(kRouter);
             }),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "missing"},
        Case{"ShapeTransposed", SetRouter("shape", {72, 12}),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "shape [72, 12], but $/config.json makes it [12, 72]"},
        Case{"ConfigHidden", Set("hidden_size", 73),
             "$/model.safetensors: tensor "
             "'model.layers.0.post_attention_layernorm.weight': shape [72], "
             "but $/config.json makes it [73]"},
        Case{"ConfigExperts", Set("num_experts", 2000000000),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "shape [12, 72], but $/config.json makes it [2000000000, 72]"},
        Case{"ConfigIntermediate", Set("moe_intermediate_size", 41),
             "$/model.safetensors: tensor "
             "'model.layers.0.mlp.experts.0.gate_proj.weight': shape [40, "
             "72], but $/config.json makes it [41, 72]"},
        Case{"ConfigShared", Set("shared_expert_intermediate_size", 57),
             "$/model.safetensors: tensor "
             "'model.layers.0.mlp.shared_expert.gate_proj.weight': shape [56, "
             "72], but $/config.json makes it [57, 72]"},
        Case{"DtypeInteger", SetRouter("dtype", "I32"),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "dtype I32 is not supported; there are BF16, F16, F32"},
        Case{"DtypeNew", SetRouter("dtype", "F6_E9"),
             "$/model.safetensors: tensor 'model.layers.0.mlp.gate.weight': "
             "dtype F6_E9 is not supported; there are BF16, F16, F32"}),
    testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(
    MoeLayerIndex, Errors,
    testing::Values(
        Case{"Malformed", Write(kIndex, "{"),
             "$/model.safetensors.index.json: malformed JSON: "
             "[json.exception.parse_error.101] parse error at line 1, column "
             "2: syntax error while parsing object key - unexpected end of "
             "input; expected string literal",
             "", "qwen3_moe"},
        Case{"NoWeightMap", EditIndex([](json& i) { i.erase("weight_map"); }),
             "$/model.safetensors.index.json: malformed index: no weight_map",
             "", "qwen3_moe"},
        Case{"NotAFileName", EditIndex([](json& i) {
               i["weight_map"] = {{"a", "../model.safetensors"}};
             }),
             "$/model.safetensors.index.json: tensor 'a': expected a file "
             "name, found \"../model.safetensors\"",
             "", "qwen3_moe"},
        Case{"NameWithNewline", EditIndex([](json& index) {
               index["weight_map"] = {{"a\nb", 1}};
             }),
             "$/model.safetensors.index.json: tensor 'a?b': expected a file "
             "name, found 1",
             "", "qwen3_moe"},
        Case{"NotText", EditIndex([](json& i) {
               i["weight_map"] = {{"a", 1}};
             }),
             "$/model.safetensors.index.json: tensor 'a': expected a file "
             "name, found 1",
             "", "qwen3_moe"},
        Case{"TensorMissing", EditIndex([](json& i) {
               i["weight_map"].erase("model.layers.1.mlp.gate.weight");
             }),
             "$/model.safetensors.index.json: tensor "
             "'model.layers.1.mlp.gate.weight': missing",
             "", "qwen3_moe"},
        Case{"TensorElsewhere", EditIndex([](json& i) {
               i["weight_map"]["model.layers.1.mlp.gate.weight"] =
                   "model-00002-of-00002.safetensors";
             }),
             "$/model-00002-of-00002.safetensors: tensor "
             "'model.layers.1.mlp.gate.weight': missing, though "
             "$/model.safetensors.index.json places it there",
             "", "qwen3_moe"},
        Case{"ShardMissing", Remove("model-00002-of-00002.safetensors"),
             "$/model-00002-of-00002.safetensors: cannot open: No such file "
             "or directory",
             "", "qwen3_moe"},
        Case{"ShardTruncated", Cut("model-00001-of-00002.safetensors", 100),
             "$/model-00001-of-00002.safetensors: truncated: a header of #H "
             "bytes, but only 92 are left in the file",
             "", "qwen3_moe"},
        Case{"TensorInTwoFiles",
             [](const TempFolder& folder) {
               std::filesystem::rename(folder.File(kModel),
                                       folder.File("a.safetensors"));
               WriteFile(folder.File("b.safetensors"),
                         Safetensors("{\"model.norm.weight\":{\"dtype\":"
                                     "\"F32\",\"shape\":[1],\"data_offsets\":"
                                     "[0,4]}}",
                                     "1234"));
             },
             "$/b.safetensors: tensor 'model.norm.weight': also in "
             "a.safetensors"}),
    testing::PrintToStringParamName());

TEST(MoeLayerErrors, LongTextIsCut) {
  const TempFolder folder;
  folder.CopyFrom("qwen2_moe");
  Set("model_type", std::string(100000, 'x'))(folder);
  const Outcome outcome = RunProgram(folder.path());
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_LT(outcome.err.size(), 700u);
  EXPECT_EQ(outcome.err.substr(outcome.err.size() - 6), "x ...\n");
}

}  // namespace
}  // namespace moe_layer
