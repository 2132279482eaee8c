// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Everything a user can get wrong: one line on stderr that names the file and
// the tensor, key or option, nothing on stdout, and exit code 2.

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "families.h"
#include "gtest/gtest.h"
#include "tests/moe_layer_config_cases.h"
#include "tests/moe_layer_files.h"
#include "tests/moe_layer_spoil.h"

namespace moe_layer::testing_support {
namespace {

// `text` with its short forms written out.
std::string Expand(std::string text, const TempFolder& folder) {
  const auto replace = [&](const std::string& what, const std::string& with) {
    for (size_t at; (at = text.find(what)) != std::string::npos;) {
      text.replace(at, what.size(), with);
    }
  };
  replace("CONFIG", "$/config.json");
  replace("INDEX", "$/model.safetensors.index.json");
  replace("ROUTER", "MODEL: tensor 'model.layers.0.mlp.gate.weight'");
  replace("MODEL", "$/model.safetensors");
  replace("SIZE", "expected an integer from 1 to 2147483647");
  std::string known;
  for (const Family& family : Families()) {
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  }
  replace("FAMILIES", known);
  replace("PARSE", "[json.exception.parse_error.101] parse error at");
  replace("DEEP", "nested more than 64 levels deep");
  replace("$", folder.path());
  // Bytes of header and data in the family's (first) tensor file.
  const char* const shard = "model-00001-of-00002.safetensors";
  const char* const file =
      std::filesystem::exists(folder.File(shard)) ? shard : kModel;
  folder.EditTensors(file, [&](const json& header, const std::string& data) {
    replace("#H", std::to_string(header.dump().size()));
    replace("#D", std::to_string(data.size()));
    replace("#E", std::to_string(data.size() - 1));
  });
  return text;
}

class Errors : public testing::TestWithParam<Case> {};

TEST_P(Errors, OneLineAndExitCode2) {
  const TempFolder folder;
  folder.CopyFrom(GetParam().family);
  const std::string want = Expand(GetParam().want, folder);
  GetParam().spoil(folder);
  ExpectRefused(RunProgram("'" + folder.path() + "' " + GetParam().options),
                "moe_layer: " + want);
}

INSTANTIATE_TEST_SUITE_P(MoeLayerConfig, Errors,
                         testing::ValuesIn(kConfigCases),
                         testing::PrintToStringParamName());

std::vector<Case> MissingKeys() {
  std::vector<Case> cases;
  for (const char* key :
       {"num_hidden_layers", "hidden_size", "moe_intermediate_size",
        "num_experts", "num_experts_per_tok", "rms_norm_eps",
        "shared_expert_intermediate_size"}) {
    cases.push_back(
        {key, Erase(key), std::string("CONFIG: ") + key + ": missing"});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(MoeLayerMissingKey, Errors,
                         testing::ValuesIn(MissingKeys()),
                         testing::PrintToStringParamName());

constexpr char kMalformedEntry[] =
    "ROUTER: malformed header entry: needs dtype, shape and two data_offsets";
const Case kTensorCases[] = {
    {"NoTensorFile", Remove(kModel),
     "$: no *.safetensors file and no model.safetensors.index.json"},
    {"TensorFileIsAFolder", MakeFolder(kModel),
     "MODEL: cannot open: not a regular file"},
    {"TensorFileIsAPipe", MakePipe(kModel),
     "MODEL: cannot open: not a regular file"},
    {"ShapeDeep", SetShapeText(Nested(150000)),
     "MODEL: malformed header: DEEP"},
    {"NanInF32", SetElement(kModel, kRouter, 73, {"\0\0\xC0\x7F", 4}),
     "ROUTER: nan at [1, 1], but weights have to be finite"},
    {"InfinityInF32",
     SetElement(kModel, "model.layers.0.post_attention_layernorm.weight", 71,
                {"\0\0\x80\xFF", 4}),
     "MODEL: tensor 'model.layers.0.post_attention_layernorm.weight': -inf at "
     "[71], but weights have to be finite"},
    {"NanInF16",
     SetElement(kModel, "model.layers.0.mlp.shared_expert.down_proj.weight", 0,
                {"\0\x7E", 2}),
     "MODEL: tensor 'model.layers.0.mlp.shared_expert.down_proj.weight': nan "
     "at [0, 0], but weights have to be finite"},
    {"Empty", Write(kModel, ""),
     "MODEL: truncated: 0 bytes, too short for a safetensors header"},
    {"SevenBytes", Write(kModel, "1234567"),
     "MODEL: truncated: 7 bytes, too short for a safetensors header"},
    {"TruncatedHeader", Write(kModel, Safetensors("{}", "", 3)),
     "MODEL: truncated: a header of 3 bytes, but only 2 are left in the file"},
    {"TruncatedInsideHeader", Cut(kModel, 1000),
     "MODEL: truncated: a header of #H bytes, but only 992 are left in the "
     "file"},
    {"HeaderTooLong", Write(kModel, Safetensors("{}", "", 100000001)),
     "MODEL: not a safetensors file: a header of 100000001 bytes"},
    {"HeaderLength64Bits", Write(kModel, Safetensors("{}", "", ~uint64_t{0})),
     "MODEL: not a safetensors file: a header of 18446744073709551615 bytes"},
    {"HeaderMalformed", Write(kModel, Safetensors("{\"a\"", "")),
     "MODEL: malformed header: PARSE line 1, column 5: syntax error while "
     "parsing object separator - unexpected end of input; expected ':'"},
    {"HeaderEmpty", Write(kModel, Safetensors("", "")),
     "MODEL: malformed header: PARSE line 1, column 1: syntax error while "
     "parsing value - unexpected end of input; expected '[', '{', or a "
     "literal"},
    {"HeaderNoObject", Write(kModel, Safetensors("[]", "")),
     "MODEL: malformed header: not a JSON object"},
    {"TruncatedData", Cut(kModel, -1),
     "MODEL: tensor 'model.layers.1.mlp.shared_expert_gate.weight': truncated "
     "file: the tensor ends at byte #D of the data, which has #E"},
    {"EntryNoObject", EditHeader([](json& h) { h[kRouter] = 5; }),
     kMalformedEntry},
    {"DtypeNoText", SetRouter("dtype", 32), kMalformedEntry},
    {"ShapeMissing", EditHeader([](json& h) { h[kRouter].erase("shape"); }),
     kMalformedEntry},
    {"ShapeNegative", SetRouter("shape", {-12, 72}), kMalformedEntry},
    {"ThreeOffsets", SetRouter("data_offsets", {0, 1, 2}), kMalformedEntry},
    {"OffsetsBackwards", SetRouter("data_offsets", {8, 4}),
     "ROUTER: data_offsets [8, 4] run backwards"},
    {"OffsetsPast64Bits", SetRouter("data_offsets", {0, ~uint64_t{0}}),
     "ROUTER: truncated file: the tensor ends at byte 18446744073709551615 of "
     "the data, which has #D"},
    {"ShapeLargerThanData", SetRouter("shape", {13, 72}),
     "ROUTER: F32 [13, 72] does not fill its 3456 bytes"},
    // Times 4 bytes, modulo 2^64, it is the 3456 that the tensor has.
    {"ShapeOverflows", SetRouter("shape", {(uint64_t{1} << 62) + 864}),
     "ROUTER: F32 [4611686018427388768] does not fill its 3456 bytes"},
    {"TensorsOverlap", EditHeader([](json& h) { h["again"] = h[kRouter]; }),
     "ROUTER: starts at byte 0 of the data, but what precedes it ends at 3456"},
    {"DataOfNoTensor",
     [](const TempFolder& folder) {
       folder.EditTensors(kModel,
                          [](json&, std::string& data) { data += "12345"; });
     },
     "MODEL: 5 bytes of data belong to no tensor"},
    {"TensorMissing", EditHeader([](json& h) {
       h["renamed"] = h[kRouter];
       h.erase(kRouter);
     }),
     "ROUTER: missing"},
    {"ShapeTransposed", SetRouter("shape", {72, 12}),
     "ROUTER: shape [72, 12], but CONFIG makes it [12, 72]"},
    {"ConfigHidden", Set("hidden_size", 73),
     "MODEL: tensor 'model.layers.0.post_attention_layernorm.weight': shape "
     "[72], but CONFIG makes it [73]"},
    {"ConfigExperts", Set("num_experts", 2000000000),
     "ROUTER: shape [12, 72], but CONFIG makes it [2000000000, 72]"},
    {"ConfigIntermediate", Set("moe_intermediate_size", 41),
     "MODEL: tensor 'model.layers.0.mlp.experts.0.gate_proj.weight': shape "
     "[40, 72], but CONFIG makes it [41, 72]"},
    {"ConfigShared", Set("shared_expert_intermediate_size", 57),
     "MODEL: tensor 'model.layers.0.mlp.shared_expert.gate_proj.weight': shape "
     "[56, 72], but CONFIG makes it [57, 72]"},
    {"DtypeInteger", SetRouter("dtype", "I32"),
     "ROUTER: dtype I32 is not supported; there are BF16, F16, F32"},
    {"DtypeNew", SetRouter("dtype", "F6_E9"),
     "ROUTER: dtype F6_E9 is not supported; there are BF16, F16, F32"},
    {"TensorInTwoFiles",
     [](const TempFolder& folder) {
       std::filesystem::rename(folder.File(kModel),
                               folder.File("a.safetensors"));
       WriteFile(folder.File("b.safetensors"),
                 Safetensors("{\"model.norm.weight\":{\"dtype\":\"F32\","
                             "\"shape\":[1],\"data_offsets\":[0,4]}}",
                             "1234"));
     },
     "$/b.safetensors: tensor 'model.norm.weight': also in a.safetensors"},
};
INSTANTIATE_TEST_SUITE_P(MoeLayerTensors, Errors,
                         testing::ValuesIn(kTensorCases),
                         testing::PrintToStringParamName());

std::vector<Case> IndexCases() {
  std::vector<Case> cases = {
      {"Malformed", Write(kIndex, "{"),
       "INDEX: malformed JSON: PARSE line 1, column 2: syntax error while "
       "parsing object key - unexpected end of input; expected string literal"},
      {"IsAPipe", MakePipe(kIndex), "INDEX: cannot open: not a regular file"},
      {"ShardIsAPipe", MakePipe("model-00002-of-00002.safetensors"),
       "$/model-00002-of-00002.safetensors: cannot open: not a regular file"},
      {"Deep", SetText(kIndex, "metadata", Nested(150000)),
       "INDEX: malformed JSON: DEEP"},
      {"InfinityInBf16",
       SetElement("model-00001-of-00002.safetensors",
                  "model.layers.1.mlp.experts.0.up_proj.weight", 40 * 72 - 1,
                  {"\x80\x7F", 2}),
       "$/model-00001-of-00002.safetensors: tensor "
       "'model.layers.1.mlp.experts.0.up_proj.weight': inf at [39, 71], but "
       "weights have to be finite"},
      {"NoWeightMap", EditIndex([](json& i) { i.erase("weight_map"); }),
       "INDEX: malformed index: no weight_map"},
      {"NotAFileName", EditIndex([](json& i) {
         i["weight_map"] = {{"a", "../model.safetensors"}};
       }),
       "INDEX: tensor 'a': expected a file name, found "
       "\"../model.safetensors\""},
      {"NameWithNewline", EditIndex([](json& index) {
         index["weight_map"] = {{"a\nb", 1}};
       }),
       "INDEX: tensor 'a\\nb': expected a file name, found 1"},
      {"NotText", EditIndex([](json& i) {
         i["weight_map"] = {{"a", 1}};
       }),
       "INDEX: tensor 'a': expected a file name, found 1"},
      {"TensorMissing", EditIndex([](json& i) {
         i["weight_map"].erase("model.layers.1.mlp.gate.weight");
       }),
       "INDEX: tensor 'model.layers.1.mlp.gate.weight': missing"},
      {"TensorElsewhere", EditIndex([](json& i) {
         i["weight_map"]["model.layers.1.mlp.gate.weight"] =
             "model-00002-of-00002.safetensors";
       }),
       "$/model-00002-of-00002.safetensors: tensor "
       "'model.layers.1.mlp.gate.weight': missing, though INDEX places it "
       "there"},
      {"ShardMissing", Remove("model-00002-of-00002.safetensors"),
       "$/model-00002-of-00002.safetensors: cannot open: No such file or "
       "directory"},
      {"ShardTruncated", Cut("model-00001-of-00002.safetensors", 100),
       "$/model-00001-of-00002.safetensors: truncated: a header of #H bytes, "
       "but only 92 are left in the file"},
  };
  for (Case& c : cases) c.family = "qwen3_moe";
  return cases;
}
INSTANTIATE_TEST_SUITE_P(MoeLayerIndex, Errors, testing::ValuesIn(IndexCases()),
                         testing::PrintToStringParamName());

// On a terminal they would be obeyed: U+009B begins a command, as ESC [ does.
TEST(MoeLayerErrors, RawBytesAreEscaped) {
  const TempFolder folder;
  folder.CopyFrom("qwen2_moe");
  const auto refused = [&](const std::string& part) {
    const Outcome outcome = RunProgram("'" + folder.path() + "'");
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    for (const char c : outcome.err.substr(0, outcome.err.size() - 1)) {
      EXPECT_TRUE(c >= ' ' && c < 0x7F) << outcome.err;
    }
  };
  Set("model_type", "\u009b31m\n")(folder);
  refused("model_type: \"\\u009b31m\\n\" is not supported");
  Set("model_type", "qwen2_moe")(folder);
  EditHeader([](json& header) { header["\u009b31m\x1b\u202e"] = 3; })(folder);
  refused("tensor '\\u009b31m\\x1b\\u202e': malformed header entry");
  Write(kConfig,
        "\x9b"
        "31m\x1b[31m")(folder);
  refused("last read: '\\x9b'");
}

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
}  // namespace moe_layer::testing_support
