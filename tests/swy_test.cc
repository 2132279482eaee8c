// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs swy as users do. Also tests the corpus: the calls and the digests of
// their results that `swy verify` compares.

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "switchyard/isa.h"
#include "switchyard/presets.h"
#include "tests/run_program.h"
#include "tests/swy_program.h"
#include "tests/target_test.h"
#include "tools/corpus/corpus.h"

namespace switchyard::testing_support {
namespace {

// Computes the digests on several threads, which run the indices in a shuffled
// order. The digests have to be those in the repository. `swy verify` below
// computes the digests in order, on every ISA.
class CorpusTest : public IsaPoolTest {};

TEST_P(CorpusTest, GivesTheKeptDigests) {
  const bool fma = ActiveIsa().fma;
  for (const corpus::Case& c : corpus::Cases()) {
    corpus::Digests digests;
    c.run(executor(), digests);
    ASSERT_TRUE(digests.status.ok())
        << c.name << ": " << digests.status.message();
    const corpus::Expected* const expected = corpus::Find(c.name);
    ASSERT_NE(expected, nullptr) << c.name;
    EXPECT_EQ(digests.exact.value(), expected->exact) << c.name;
    if (fma) {
      EXPECT_EQ(digests.floats.value(), expected->floats) << c.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(IsaPool, CorpusTest,
                         testing::Values(IsaAndPool{RunnableIsaNames().front(),
                                                    Pool::kShuffle}),
                         testing::PrintToStringParamName());

TEST(Corpus, IsThatOfEachKernelAlone) {
  size_t cases = 0;
  for (const std::string& kernel : corpus::Kernels()) {
    cases += corpus::Cases({kernel}).size();
  }
  EXPECT_EQ(cases, corpus::Cases().size());
  EXPECT_EQ(corpus::Cases({"map", "hyper"}).size(),
            corpus::Cases({"map"}).size() + corpus::Cases({"hyper"}).size());
}

TEST(Corpus, HasNoTwoCasesOfOneName) {
  std::set<std::string> names;
  for (const corpus::Case& c : corpus::Cases()) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
  }
}

// A digest that never changed would match any result.
TEST(Corpus, ADigestSeesEveryBitOfAnElementAndTheShape) {
  std::vector<float> values = {1.0f, -0.0f, 3.0f, 4.0f};
  const auto digest = [&values](size_t rows, size_t cols) {
    corpus::Digest d;
    d.Add(Matrix<const float>(values.data(), rows, cols));
    return d.value();
  };
  std::set<uint64_t> seen = {digest(2, 2), digest(1, 4), digest(4, 1)};
  values[1] = 0.0f;
  seen.insert(digest(2, 2));
  values[3] = 0x1.000002p2f;
  seen.insert(digest(2, 2));
  EXPECT_EQ(seen.size(), 5u);
}

TEST(Corpus, ADigestTakesAllNaNForOne) {
  const uint32_t bits[] = {0x7FC00000u, 0xFFC00000u, 0x7F800001u, 0x7FFFFFFFu};
  std::set<uint64_t> seen;
  for (const uint32_t nan : bits) {
    const float value = FromBits(nan);
    corpus::Digest d;
    d.Add(Matrix<const float>(&value, 1, 1));
    seen.insert(d.value());
  }
  EXPECT_EQ(seen.size(), 1u);
}

TEST(Swy, IsaListsWhatTheLibraryHas) {
  const Outcome outcome = SwyOk("isa");
  for (const Isa& isa : CompiledIsas()) {
    EXPECT_TRUE(outcome.Printed(isa.name)) << outcome.out;
  }
  EXPECT_TRUE(outcome.Printed("runs, active")) << outcome.out;
}

// Runs a third of the cases. They take 9 s, a sixth of the time of all cases.
// CorpusTest runs all cases.
TEST(Swy, VerifyAgreesOnEveryIsaByDefault) {
  const Outcome outcome =
      SwyOk("verify --kernel activate bucket gather hyper map");
  for (const std::string& isa : RunnableIsaNames()) {
    EXPECT_TRUE(outcome.Printed("\n" + isa) ||
                outcome.out.compare(0, isa.size(), isa) == 0)
        << outcome.out;
  }
  EXPECT_FALSE(outcome.Printed("DIFFERENT")) << outcome.out;
}

TEST(Swy, VerifyTakesOneIsaAndKernels) {
  const std::string isa = RunnableIsaNames().back();
  const Outcome outcome = SwyOk("verify --kernel map hyper --isa " + isa);
  EXPECT_EQ(outcome.out.find(isa), 0u) << outcome.out;
  EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1) << outcome.out;
  const size_t cases = corpus::Cases({"hyper", "map"}).size();
  EXPECT_TRUE(outcome.Printed(" " + std::to_string(cases) + " cases, "))
      << outcome.out;
}

TEST(Swy, PrintedDigestsAreTheKeptOnes) {
  const std::string kept = ReadFile(SWY_DIGESTS);
  EXPECT_EQ(SwyOk("verify --print").out, kept);
  const std::string map = SwyOk("verify --print --kernel map").out;
  EXPECT_NE(kept.find(map), std::string::npos) << map;
  EXPECT_LT(map.size(), kept.size());
}

TEST(Swy, TheEnvironmentCapsTheIsa) {
  for (const std::string& isa : RunnableIsaNames()) {
    const Outcome outcome = SwyOk("isa", "SWITCHYARD_ISA=" + isa + " ");
    const size_t active = outcome.out.find("runs, active");
    ASSERT_NE(active, std::string::npos) << outcome.out;
    const size_t line = outcome.out.rfind('\n', active) + 1;
    EXPECT_EQ(outcome.out.compare(line, isa.size() + 1, isa + " "), 0)
        << outcome.out;
  }
  EXPECT_EQ(Swy("isa", "SWITCHYARD_ISA= ").out, Swy("isa").out);
}

TEST(Swy, AWrongEnvironmentIsAnErrorThatListsTheChoices) {
  for (const char* const command : {"isa", "verify"}) {
    const Outcome outcome = Swy(command, "SWITCHYARD_ISA=AVX99 ");
    ExpectError(outcome, "SWITCHYARD_ISA");
    EXPECT_EQ(outcome.err,
              "swy: SWITCHYARD_ISA AVX99: not available here; there are " +
                  IsaChoices() + "\n");
  }
}

TEST(Swy, HelpIsPrinted) {
  const Outcome help = SwyOk("--help");
  for (const char* const word :
       {"isa", "verify", "metal", "plan", "presets", "vectors", "grade", "help",
        "--version", "SWITCHYARD_ISA"}) {
    EXPECT_TRUE(help.Printed(word)) << help.out;
  }
  EXPECT_EQ(SwyOk("").out, help.out);
  EXPECT_EQ(SwyOk("help").out, help.out);
  const Outcome verify = SwyOk("verify --help");
  EXPECT_TRUE(verify.Printed("--threads")) << verify.out;
  EXPECT_EQ(SwyOk("help verify").out, verify.out);
}

TEST(Swy, HelpFitsATerminal) {
  for (const char* const command :
       {"", "isa", "verify", "metal", "plan", "presets", "vectors", "grade"}) {
    ExpectFitsATerminal(SwyOk(std::string("help ") + command).out);
  }
}

TEST(Swy, VersionIsTheProjects) {
  EXPECT_EQ(SwyOk("--version").out, "swy " SWY_VERSION "\n");
}

TEST(Swy, AnUnknownCommandIsNamed) {
  const std::string choices =
      "there are isa, verify, metal, plan, presets, vectors, grade, help";
  for (const char* const arguments :
       {"vrify", "vrify --isa AVX2", "help vrify"}) {
    ExpectRefused(Swy(arguments), "swy: 'vrify' is no command; " + choices);
  }
}

// The program prints a line for each number of workers. A single worker never
// waits.
TEST(Swy, PlanSimulatesSchedules) {
  const std::vector<std::string> lines =
      Lines(SwyOk("plan --tokens 3 --skew zipf --workers 1 16").out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0],
            "workers  tasks   ideal us    plan us  ratio   tiles us  ratio");
  for (const auto& [line, workers, most] :
       {std::tuple{1, 1.0, 1.01}, std::tuple{2, 16.0, 1.15}}) {
    double numbers[7];
    std::istringstream in(lines[static_cast<size_t>(line)]);
    for (double& number : numbers) in >> number;
    ASSERT_TRUE(in) << lines[static_cast<size_t>(line)];
    EXPECT_EQ(numbers[0], workers);
    EXPECT_GE(numbers[4], 1.0);
    EXPECT_LE(numbers[4], most);
    EXPECT_NEAR(numbers[3] / numbers[2], numbers[4], 0.01);
  }
  // Also simulates fewer experts than workers.
  EXPECT_EQ(Lines(SwyOk("plan --experts 8 --top-k 1").out).size(), 9u);
}

// Each of 2 tokens chooses both experts, which are on 2 nodes. So each node
// sends a row of 1000 bytes and receives one, which takes 1 us at 1 GB/s.
TEST(Swy, PlanSimulatesNodes) {
  const auto numbers_of = [](const std::string& line) {
    std::vector<double> numbers(9);
    std::istringstream in(line);
    for (double& number : numbers) in >> number;
    EXPECT_TRUE(in) << line;
    return numbers;
  };
  const std::string small =
      "plan --experts 2 --top-k 2 --tokens 2 --hidden 100 --row-bytes 1000 "
      "--back-bytes 3000 --latency-us 10 --gb-per-s 1 --node-workers 1 ";
  const std::vector<std::string> lines =
      Lines(SwyOk(small + "--nodes 1 2").out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0],
            "nodes rows/token   most MB dispatch us products us   back us    "
            "step us  halves us speedup");
  const std::vector<double> one = numbers_of(lines[1]);
  EXPECT_EQ(one[1], 0.0);
  EXPECT_EQ(one[3], 0.0);
  EXPECT_EQ(one[5], 0.0);
  EXPECT_EQ(one[6], one[4]);
  EXPECT_EQ(one[8], 1.0);
  const std::vector<double> two = numbers_of(lines[2]);
  EXPECT_EQ(two[0], 2.0);
  EXPECT_EQ(two[1], 1.0);
  EXPECT_EQ(two[2], 0.001);
  EXPECT_EQ(two[3], 21.0);
  EXPECT_EQ(two[5], 13.0);
  EXPECT_NEAR(two[4], one[4] / 2, one[4] / 100);
  EXPECT_NEAR(two[6], two[3] + two[4] + two[5], 0.11);
  // With --once, a token goes to every other node at most once. Without --once,
  // it goes there once for each of its experts on that node.
  const std::string large =
      "plan --experts 64 --tokens 512 --skew zipf --nodes 2 8 64 ";
  const auto each = Lines(SwyOk(large).out),
             once = Lines(SwyOk(large + "--once").out);
  for (size_t i = 1; i < 4; ++i) {
    const std::vector<double> pairs = numbers_of(each[i]);
    const std::vector<double> tokens = numbers_of(once[i]);
    EXPECT_LE(tokens[1], pairs[1]);
    EXPECT_LE(tokens[1], pairs[0] - 1);
    EXPECT_LE(pairs[1], 8.0);
    if (i == 3) {  // each node has one expert
      EXPECT_EQ(tokens[1], pairs[1]);
    }
  }
  // If each half of the batch is sent while the other half is multiplied, a
  // slow network costs less time.
  const std::vector<double> slow = numbers_of(
      Lines(SwyOk("plan --tokens 4096 --nodes 8 --latency-us 0 --gb-per-s 1")
                .out)[1]);
  EXPECT_LT(slow[7], 0.9 * slow[6]);
}

TEST(Swy, PresetsListsEachFamily) {
  const std::vector<std::string> lines = Lines(SwyOk("presets").out);
  ASSERT_EQ(lines.size(), Presets().size + 1);
  for (size_t i = 0; i < Presets().size; ++i) {
    const Preset& preset = Presets().data[i];
    std::istringstream in(lines[i]);
    std::string family, source;
    size_t num_experts = 0, top_k = 0;
    in >> family >> num_experts >> top_k >> std::ws;
    std::getline(in, source);
    EXPECT_EQ(family, preset.family);
    EXPECT_EQ(num_experts, preset.num_experts) << family;
    EXPECT_EQ(top_k, preset.top_k) << family;
    EXPECT_EQ(source, preset.source);
  }
}

// The last line has the numbers of families and of their names, and the pages
// have the same numbers.
TEST(Swy, PresetsCountsTheFamiliesAsThePagesDo) {
  const std::string last = Lines(SwyOk("presets").out).back();
  size_t families = 0, names = 0, compared = 0;
  ASSERT_EQ(std::sscanf(last.c_str(),
                        "%zu families under %zu names; the routers of %zu "
                        "families are those of transformers",
                        &families, &names, &compared),
            3)
      << last;
  EXPECT_EQ(names, Presets().size);
  size_t rows = 0;
  for (const Preset& preset : Presets()) rows += preset.same_as == nullptr;
  EXPECT_EQ(families, rows);
  EXPECT_GE(families, 90u);
  const auto text = [](size_t number) { return std::to_string(number); };
  // A page, its numbers, and the words before and after the numbers.
  const struct {
    const char* page;
    std::string before, numbers, after;
  } places[] = {
      {"README.md", "", "[" + text(families),
       " model families](docs/models.md)"},
      {"README.md", "routers of ", text(compared), " families were"},
      {"docs/models.md", "There are ",
       text(families) + " families under " + text(names),
       " names, as `swy presets` prints"},
      {"docs/conformance.md", "the router of ", text(compared),
       " model families"},
  };
  for (const auto& place : places) {
    // Compares words, so that line breaks do not matter.
    std::istringstream in(ReadFile(std::string(SWY_SOURCE) + "/" + place.page));
    std::string page;
    for (std::string word; in >> word;) page += word + " ";
    EXPECT_NE(page.find(place.before + place.numbers + place.after), page.npos)
        << place.page << " needs " << place.before << place.numbers
        << place.after;
  }
}

TEST(Swy, PresetsPrintsTheTablesOfTheDocumentation) {
  const std::string page = ReadFile(SWY_MODELS);
  const std::string printed = SwyOk("presets --markdown").out;
  for (size_t begin = 0; begin < printed.size();) {
    const size_t end =
        std::min(printed.find("\n\n", begin), printed.size() - 1);
    const std::string table = printed.substr(begin, end - begin);
    begin = end + 2;
    const size_t at = page.find(table.substr(0, table.find('\n') + 1));
    ASSERT_NE(at, std::string::npos) << table;
    EXPECT_EQ(page.substr(at, page.find("\n\n", at) - at), table)
        << "docs/models.md has what swy presets --markdown prints";
  }
  for (const Preset& preset : Presets()) {
    const std::string name = preset.family;
    EXPECT_TRUE(printed.find(" " + name) != printed.npos ||
                printed.find("**" + name + "**") != printed.npos)
        << name;
  }
}

TEST(Swy, LostOutputIsAnError) {
  for (const char* const arguments :
       {"isa", "presets", "grade --own", "verify --kernel map --print",
        "verify --kernel map --threads 1", "--help", "--version"}) {
    ExpectToldThatOutputIsLost(SWY_PROGRAM, arguments);
  }
}

TEST(Swy, WrongArgumentsAreErrors) {
  ExpectError(Swy("''"), "''");
  ExpectError(Swy("--"), "'--'");
  ExpectError(Swy("--frobnicate"), "--frobnicate");
  ExpectError(Swy("isa --isa AVX2"), "--isa");
  ExpectError(Swy("verify isa"), "isa");
  ExpectError(Swy("presets mixtral"), "mixtral");
  ExpectError(Swy("presets --markdown=3"), "--markdown: takes no value");
  ExpectError(Swy("plan --workers 0"), "--workers");
  ExpectError(Swy("plan --tokens 0"), "--tokens");
  ExpectError(Swy("plan --tokens 1000000 --top-k 100"), "--tokens");
  ExpectError(Swy("plan --experts 4"), "--top-k: more than --experts");
  ExpectError(Swy("plan --experts x"), "--experts");
  ExpectError(Swy("plan --top-k 0"), "--top-k");
  ExpectError(Swy("plan --hidden 0"), "--hidden");
  ExpectError(Swy("plan --intermediate 0"), "--intermediate");
  ExpectError(Swy("plan --shared-intermediate -1"), "--shared-intermediate");
  ExpectError(Swy("plan --skew even"), "--skew");
  ExpectError(Swy("plan --row-us -1"), "--row-us");
  ExpectError(Swy("plan --wake-us x"), "--wake-us");
  ExpectError(Swy("plan --tile-us -1"), "--tile-us");
  ExpectError(Swy("plan --claim-us -1"), "--claim-us");
  ExpectError(Swy("plan --nodes 0"), "--nodes");
  ExpectError(Swy("plan --nodes 2 --node-workers 0"), "--node-workers");
  ExpectError(Swy("plan --nodes 2 --latency-us -1"), "--latency-us");
  ExpectError(Swy("plan --nodes 2 --gb-per-s 0"), "--gb-per-s");
  ExpectError(Swy("plan --nodes 2 --row-bytes -1"), "--row-bytes");
  ExpectError(Swy("plan --nodes 2 --back-bytes x"), "--back-bytes");
  ExpectError(Swy("plan --nodes 2 --workers 3"), "--workers excludes --nodes");
  ExpectError(Swy("plan --once"), "--once requires --nodes");
  ExpectError(Swy("plan --gb-per-s 2"), "--gb-per-s requires --nodes");
  ExpectError(Swy("verify --isa ''"), "--isa");
  ExpectError(Swy("verify --kernel rout"), "--kernel: rout not in {activate,");
  ExpectError(Swy("verify --print=maybe"), "--print: takes no value");
  // CLI11 would accept a number for --print, and any value for --help.
  ExpectError(Swy("verify --print=3"), "--print: takes no value");
  ExpectError(Swy("--help=3"), "--help: takes no value");
  ExpectError(Swy("isa --help=no"), "--help: takes no value");
  ExpectError(Swy("help verify isa"), "help: takes one command");
  ExpectError(Swy("help --print"), "'--print' is no command");
  ExpectError(Swy("verify --print --isa AVX2"), "--print");
  ExpectError(Swy("verify --threads 1025"), "--threads");
  ExpectError(Swy("verify --threads 1 --threads 2"), "--threads");
  ExpectError(Swy("verify --isa AVX99"), "--isa AVX99");
  ExpectError(Swy("verify --isa"), "--isa");
  ExpectError(Swy("verify --threads -1"), "--threads");
  ExpectError(Swy("verify --threads two"), "--threads");
}

#ifndef SWITCHYARD_WITH_DEVICE
TEST(Swy, MetalIsRefusedWithoutTheDevice) {
  ExpectRefused(Swy("metal kernels.metal"),
                "swy: metal: this swy was built with SWITCHYARD_DEVICE=OFF");
}
#endif

// Every kernel refuses to run if the environment names an ISA that does not
// exist. The test needs its own process, because the library reads the
// variable only once.
TEST(EnvironmentIsaDeathTest, EveryKernelRefusesAWrongOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("SWITCHYARD_ISA", "AVX99", 1);
        // Runs one case of ten, because making the data takes longer than the
        // refusal.
        const std::vector<corpus::Case> cases = corpus::Cases();
        bool refused = !cases.empty();
        for (size_t i = 0; i < cases.size(); i += 10) {
          // Leaves out layers, because the Quantize of their inputs would
          // abort, and MapCounts, because it runs no kernel.
          if (cases[i].name.rfind("layer for ", 0) == 0 ||
              cases[i].name.rfind("map counts ", 0) == 0) {
            continue;
          }
          corpus::Digests digests;
          cases[i].run(SerialExecutor(), digests);
          const std::string why = digests.status.message();
          refused = refused && why.find("SWITCHYARD_ISA") == 0;
        }
        std::exit(refused ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace switchyard::testing_support
