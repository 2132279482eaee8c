// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests the conformance vectors: this library gives the expected results on
// every ISA, the text form is exact, and the files in conformance/ are fresh.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "programs/conformance/cases.h"
#include "programs/conformance/layers.h"
#include "programs/conformance/reference.h"
#include "programs/conformance/text.h"
#include "programs/program.h"
#include "switchyard/expert_weights.h"
#include "switchyard/isa.h"
#include "switchyard/layer.h"
#include "switchyard/presets.h"
#include "switchyard/route.h"
#include "testing/formats.h"
#include "testing/inputs.h"
#include "testing/reference_multiply.h"
#include "tests/swy_program.h"
#include "tests/target_test.h"

namespace switchyard {
namespace {

namespace fs = std::filesystem;
using conformance::Answer;
using conformance::Case;
using conformance::Layer;
using testing_support::CanonicalBits;

const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>(conformance::MakeCases());
  return cases;
}

// Routes a case by RouteTopK().
Status Route(const Case& c, Answer* answer) {
  const RouteOptions options = c.Options();
  const size_t slots = c.Slots();
  answer->ids.assign(c.tokens * slots, -7);
  answer->weights.assign(c.tokens * slots, -7.0f);
  if (options.num_zero_experts != 0) {
    answer->identity_weights.assign(c.tokens, -7.0f);
  }
  RouteInputs in;
  in.logits = {c.logits.data(), c.tokens, c.Columns()};
  if (!c.correction_bias.empty()) {
    in.correction_bias = {c.correction_bias.data(),
                          c.correction_bias.size() / c.num_experts,
                          c.num_experts};
  }
  in.bias_index = c.bias_index;
  in.expert_scale = c.expert_scale;
  const std::vector<uint8_t> mask(c.token_mask.begin(), c.token_mask.end());
  in.token_mask = mask;
  RouteOutputs out = {{answer->ids.data(), c.tokens, slots},
                      {answer->weights.data(), c.tokens, slots}};
  out.identity_weights = answer->identity_weights;
  return RouteTopK(in, out, options);
}

class Vectors : public testing_support::IsaTest {};

TEST_P(Vectors, AreTheResultsOfRouteTopK) {
  for (const Case& c : Cases()) {
    Answer got;
    const Status status = Route(c, &got);
    ASSERT_TRUE(status.ok()) << c.name << ": " << status.message();
    ASSERT_EQ(got.ids, c.ids) << c.name;
    const auto compare = [&](const std::vector<float>& is,
                             const std::vector<float>& expected) {
      ASSERT_EQ(is.size(), expected.size()) << c.name;
      for (size_t i = 0; i < is.size(); ++i) {
        EXPECT_TRUE(conformance::IsRightWeight(is[i], expected[i], c.tolerance))
            << c.name << " " << i << ": " << is[i] << ", expected "
            << expected[i];
      }
    };
    compare(got.weights, c.weights);
    compare(got.identity_weights, c.identity_weights);
  }
}
SWITCHYARD_FOR_EVERY_ISA(Vectors);

TEST(VectorsText, ReadsBackExactly) {
  std::string all;
  std::set<std::string> names;
  for (const Case& c : Cases()) {
    const std::string text = conformance::Write(c);
    EXPECT_EQ(conformance::Write(conformance::Read(text)), text) << c.name;
    EXPECT_TRUE(names.insert(c.name).second) << c.name << ": twice";
    all += text;
  }
  EXPECT_EQ(conformance::ReadCases(all).size(), Cases().size());
}

TEST(VectorsText, ReadsEveryFloat) {
  for (const float value : {0.1f, -0.0f, 1e-41f, 3.4028235e38f, 0x1p-126f,
                            16777216.0f, -1.0f / 3.0f}) {
    Case c = Cases()[0];
    c.logits[0] = value;
    const Case read = conformance::Read(conformance::Write(c));
    EXPECT_EQ(testing_support::Bits(read.logits[0]),
              testing_support::Bits(value));
  }
  EXPECT_EQ(conformance::TextOf(-std::nanf("")), "nan");
  EXPECT_EQ(conformance::TextOf(-HUGE_VALF), "-inf");
}

TEST(VectorsText, NamesTheErrorAndItsLine) {
  const std::string good =
      "switchyard-router 1\ncase a\ntokens 1\nnum_experts 2\ntop_k 1\n"
      "tolerance 0.5\noption score sigmoid\nlogits 1 2\n0 1\nids 1 1\n1\n"
      "weights 1 1\n1\nend\n";
  EXPECT_EQ(conformance::Read(good).name, "a");
  struct Wrong {
    const char *from, *to, *error;
  };
  const Wrong wrongs[] = {
      {"router 1", "router 2", "line 1: is not \"switchyard-router 1\""},
      {"top_k 1", "top_k x", "line 5: top_k: \"x\" is not a number"},
      {"top_k 1", "topk 1", "line 5: topk: is not a key of a case"},
      {"top_k 1", "tokens 1", "line 5: tokens: comes twice"},
      {"tolerance 0.5", "", "tolerance: is not above 0"},
      {"score sigmoid", "score tanh", "case a: option score tanh"},
      {"score sigmoid", "limit 3", "option limit 3: is not an option"},
      {"0 1\n", "0 1 2\n", "line 9: logits: a row has 3 values, not 2"},
      {"0 1\n", "0 1e\n", "line 9: logits: \"1e\" is not a number"},
      {"logits 1 2", "logits 1", "line 8: logits: \"\" is not a number"},
      {"num_experts 2", "num_experts 3", "logits: is 1 by 2, not 1 by 3"},
      {"ids 1 1\n1\n", "", "ids: is missing"},
      {"1\nend\n", "1\n", "the text ends before \"end\""},
      {"1\nend\n", "", "the text ends before the last row of a block"},
      {"end\n", "end\nend\n", "line 15: is not \"switchyard-router 1\""}};
  for (const Wrong& wrong : wrongs) {
    std::string text = good;
    text.replace(text.find(wrong.from), std::string(wrong.from).size(),
                 wrong.to);
    try {
      conformance::Read(text);
      ADD_FAILURE() << "accepts " << text;
    } catch (const program::InputError& error) {
      EXPECT_NE(std::string(error.what()).find(wrong.error), std::string::npos)
          << error.what();
    }
  }
  EXPECT_THROW(conformance::Read(good + good), program::InputError);
  EXPECT_THROW(conformance::Read(""), program::InputError);
}

TEST(VectorsText, ReadsAnswers) {
  Answer answer;
  answer.name = "a";
  answer.ids = {3, 1, 0, 2};
  answer.weights = {0.5f, 0.25f, NAN, 1e-7f};
  answer.identity_weights = {0, 1};
  Answer none;
  none.name = "b";
  none.unsupported = "no groups";
  const std::string text =
      conformance::Write(answer, 2) + conformance::Write(none, 2);
  const std::vector<Answer> read = conformance::ReadAnswers(text);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].ids, answer.ids);
  EXPECT_EQ(conformance::Write(read[0], 2) + conformance::Write(read[1], 2),
            text);
  EXPECT_EQ(read[1].unsupported, "no groups");
  EXPECT_THROW(conformance::ReadAnswers("switchyard-router 1\nids 1 1\n1\nend"),
               program::InputError);
}

// Each family's routing is in exactly one case, with its own options.
TEST(VectorsFamilies, EachIsInOneCase) {
  std::multiset<std::string> families;
  for (const Case& c : Cases()) {
    families.insert(c.families.begin(), c.families.end());
  }
  EXPECT_EQ(families.size(), Presets().size);
  for (const Preset& preset : Presets()) {
    EXPECT_EQ(families.count(preset.family), 1u) << preset.family;
  }
}

// A router that has a known bug fails the bug's case.
TEST(VectorsKnownBugs, AreFound) {
  const auto case_of = [](const std::string& name) {
    const auto found =
        std::find_if(Cases().begin(), Cases().end(),
                     [&](const Case& c) { return c.name == name; });
    EXPECT_NE(found, Cases().end()) << name;
    return found == Cases().end() ? Cases()[0] : *found;
  };
  const auto ids_of = [](const Case& c, const RouteOptions& options,
                         const conformance::Steps& steps = {}) {
    return conformance::RouteExactly(c, options, steps).ids;
  };

  // Selects the largest key k times, and marks a selected expert by -inf.
  const Case infinite = case_of("bias_minus_infinity_vllm_omni_7175");
  std::vector<double> keys;
  conformance::Steps repeats;
  repeats.change_keys = [&](std::vector<double>& all) { keys = all; };
  repeats.change_results = [&](std::vector<int32_t>& ids,
                               std::vector<double>&) {
    for (int32_t& id : ids) {
      const auto largest = std::max_element(keys.begin(), keys.end());
      id = static_cast<int32_t>(largest - keys.begin());
      *largest = -HUGE_VAL;
    }
  };
  EXPECT_NE(ids_of(infinite, infinite.Options(), repeats), infinite.ids);

  const Case ties = case_of("near_ties_sglang_31768");
  conformance::Steps noise;
  noise.change_keys = [](std::vector<double>& all) {
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] -= 3e-7 * static_cast<double>(i);
    }
  };
  EXPECT_NE(ids_of(ties, ties.Options(), noise), ties.ids);

  const Case groups = case_of("groups_ik_llama_836");
  for (const size_t score_of : {size_t{1}, size_t{3}}) {
    RouteOptions options = groups.Options();
    options.group_score_of = score_of;
    EXPECT_NE(ids_of(groups, options), groups.ids) << score_of;
  }
  RouteOptions none = groups.Options();
  none.num_expert_group = 0;
  EXPECT_NE(ids_of(groups, none), groups.ids);

  const Case sigmoid = case_of("sigmoid_llama_cpp_18980");
  RouteOptions softmax = sigmoid.Options();
  softmax.score = Score::kSoftmax;
  EXPECT_NE(ids_of(sigmoid, softmax), sigmoid.ids);

  EXPECT_EQ(case_of("experts_144_vllm_51521").num_experts, 144u);
}

// In a family's case, the selected experts do not depend on rounding.
TEST(VectorsFamilies, SelectWithoutRounding) {
  for (const Case& c : Cases()) {
    if (c.families.empty()) continue;
    EXPECT_GE(conformance::RouteExactly(c, c.Options()).closest, 0x1p-10)
        << c.name;
  }
}

// Returns a view of codes with f32 scales.
ConstAnyRows CodesOf(const testing_support::FormatRows& rows) {
  ConstAnyRows view(
      ConstAnyMatrix(reinterpret_cast<const int8_t*>(rows.codes.data()),
                     rows.rows, rows.cols));
  view.scales =
      ConstAnyMatrix(reinterpret_cast<const float*>(rows.scales.data()),
                     rows.rows, rows.format.NumScales(rows.cols));
  return view;
}

// Expects the bits of the definition, which multiplies and adds one weight
// after the other.
void ExpectDefinition(const testing_support::WeightBytes& weights,
                      const testing_support::FormatRows& codes,
                      const Layer& layer, size_t pairs_per_row,
                      const std::vector<float>& product) {
  const size_t cols = product.size() / Layer::kPairs;
  for (size_t p = 0; p < Layer::kPairs; ++p) {
    const size_t row = p / pairs_per_row;
    const auto naive = testing_support::MultiplyNaively(
        weights.View(), static_cast<size_t>(layer.ids[p]),
        CodesOf(codes).RowRange(row, row + 1), 0, cols);
    const std::vector<float> is(&product[p * cols],
                                &product[0] + (p + 1) * cols);
    EXPECT_EQ(CanonicalBits(is), CanonicalBits(naive.values)) << p;
  }
}

// Runs the layer by RunExperts().
std::vector<float> RunLayer(const Layer& layer) {
  const WeightFormat format = layer.gate.format;
  ExpertsPlanOptions shape;
  shape.num_experts = Layer::kExperts;
  shape.hidden = Layer::kHidden;
  shape.intermediate = Layer::kIntermediate;
  SetCosts(format, &shape);
  std::vector<int32_t> ids = layer.ids;
  std::vector<int32_t> memory(
      ExpertsPlanSize(Layer::kTokens, Layer::kTopK, shape));
  ExpertsPlan plan;
  EXPECT_OK(
      PlanExperts({ConstAnyMatrix(ids.data(), Layer::kTokens, Layer::kTopK)},
                  {memory, &plan}, shape));
  ExpertsOptions options;
  options.activate.layout = GateUpLayout::kSplit;
  options.operands = OperandsOf(format);
  std::vector<int32_t> scratch(ExpertsScratchSize(plan, options, 1));
  ExpertsInputs in;
  in.plan = &plan;
  in.hidden =
      ConstAnyMatrix(layer.hidden.data(), Layer::kTokens, Layer::kHidden);
  in.combine.topk_weights = {layer.weights.data(), Layer::kTokens,
                             Layer::kTopK};
  in.scratch = scratch;
  LayerWeights weights;
  weights.gate = layer.gate.View();
  weights.up = layer.up.View();
  weights.down = layer.down.View();
  std::vector<float> out(Layer::kTokens * Layer::kHidden);
  EXPECT_OK(RunExperts(in,
                       {AnyMatrix(out.data(), Layer::kTokens, Layer::kHidden)},
                       options, weights));
  return out;
}

TEST(VectorsLayers, HaveTheBitsOfDefinitionAndRunExperts) {
  testing_support::ExpectFmaIsasAgree([] {
    std::string texts;
    for (const Layer& layer : conformance::MakeLayers()) {
      SCOPED_TRACE(layer.name);
      ExpectDefinition(layer.gate, layer.hidden_codes, layer, Layer::kTopK,
                       layer.gate_product);
      ExpectDefinition(layer.up, layer.hidden_codes, layer, Layer::kTopK,
                       layer.up_product);
      ExpectDefinition(layer.down, layer.activated_codes, layer, 1,
                       layer.down_product);
      EXPECT_EQ(CanonicalBits(RunLayer(layer)), CanonicalBits(layer.output));
      // Every expert has a token. The gate's values are moderate and of both
      // signs, so that the activations are not all saturated.
      EXPECT_EQ(std::set<int32_t>(layer.ids.begin(), layer.ids.end()).size(),
                Layer::kExperts);
      size_t negative = 0;
      for (const float gate : layer.gate_product) {
        EXPECT_LT(std::fabs(gate), 30.0f);
        negative += gate < 0;
      }
      EXPECT_GT(negative, layer.gate_product.size() / 4);
      EXPECT_LT(negative, layer.gate_product.size() * 3 / 4);
      texts += conformance::Write(layer);
    }
    return texts;
  });
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The folder conformance/ has the files that `swy vectors` writes.
TEST(VectorsFiles, AreFresh) {
  if (!ActiveIsa().fma) GTEST_SKIP() << "layers need fused multiply-add";
  const fs::path fresh = fs::path(testing::TempDir()) / "swy_vectors_fresh";
  fs::remove_all(fresh);
  testing_support::SwyOk("vectors " + fresh.string());
  size_t bytes = 0, files = 0;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(fresh)) {
    if (!entry.is_regular_file()) continue;
    const fs::path name = fs::relative(entry.path(), fresh);
    EXPECT_EQ(ReadFile(entry.path()),
              ReadFile(fs::path(SWY_CONFORMANCE) / name))
        << name << ": run `swy vectors conformance`";
    bytes += fs::file_size(entry.path());
    ++files;
  }
  EXPECT_EQ(files, Cases().size() + 3);  // three layers
  EXPECT_LT(bytes, 4u << 20);
  // `swy vectors` writes over its own files, and refuses a folder with
  // another file.
  testing_support::SwyOk("vectors " + fresh.string());
  std::ofstream(fresh / "routing" / "mine.txt") << "mine";
  fs::remove(fresh / "routing" / "ties.txt");
  testing_support::ExpectError(
      testing_support::Swy("vectors " + fresh.string()),
      "mine.txt is not a file of the vectors");
  EXPECT_FALSE(fs::exists(fresh / "routing" / "ties.txt"));
  fs::remove_all(fresh);
  testing_support::ExpectError(testing_support::Swy("vectors"), "DIR");
  testing_support::ExpectError(testing_support::Swy("vectors /dev/null/x"),
                               "DIR: ");
}

}  // namespace
}  // namespace switchyard
