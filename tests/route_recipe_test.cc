// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Tests RouteTopK() with any options and rows of every kind. The reference is
// route_case.h.

#include <cmath>

#include "src/calls/route.h"
#include "switchyard/route.h"
#include "testing/route_case.h"
#include "testing/route_scores.h"
#include "tests/call_errors.h"
#include "tests/route_rows.h"

namespace switchyard::testing_support {
namespace {

class RouteRecipeTest : public IsaTest {};
class RouteRecipePoolTest : public IsaPoolTest {};
SWITCHYARD_FOR_EVERY_ISA(RouteRecipeTest);
SWITCHYARD_FOR_EVERY_ISA_AND_POOL(RouteRecipePoolTest);

// Checks the case that `seed` draws. Returns the error, or "".
std::string WrongCase(uint64_t seed, size_t num_experts = 0) {
  Random random(seed);
  const RouteCase c = DrawRouteCase(random, num_experts);
  RouteResult result;
  const Status status = RunRouteCase(c, SerialExecutor(), &result);
  if (!status.ok()) return status.message();
  const std::string wrong = WrongRouteCase(c, result);
  if (!wrong.empty() || !CanReplay(c)) return wrong;
  return WrongReplay(c, result, SerialExecutor());
}

TEST_P(RouteRecipeTest, AnyOptions) {
  // Each ISA runs other cases: 20,000 in total on the six ISAs of x86.
  uint64_t first = 0;
  for (const char c : GetParam()) first = first * 31 + static_cast<uint8_t>(c);
  first *= 1000000;
  for (uint64_t seed = first; seed < first + 3400; ++seed) {
    const std::string wrong = WrongCase(seed);
    ASSERT_EQ(wrong, "") << "seed " << seed;
  }
}

// An executor may split the batch in any way. The bits and counts do not
// change.
TEST_P(RouteRecipePoolTest, SameAsSerial) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const RouteCase c = DrawRouteCase(random);
    RouteResult serial, pooled;
    ASSERT_OK(RunRouteCase(c, SerialExecutor(), &serial));
    ASSERT_OK(RunRouteCase(c, executor(), &pooled));
    ExpectSame({pooled.ids, pooled.weights}, {serial.ids, serial.weights});
    ASSERT_EQ(CanonicalBits(pooled.identity), CanonicalBits(serial.identity));
    ASSERT_EQ(pooled.record, serial.record);
    ASSERT_EQ(pooled.report, serial.report);
  }
}

// There are gaps between the rows of one output, or of both outputs.
TEST_P(RouteRecipeTest, OutputsWithGaps) {
  constexpr size_t kTokens = 20, kExperts = 16, kTopK = 3, kStride = 5;
  const std::vector<float> logits =
      Random(1).Uniforms(kTokens * kExperts, -4.0f, 4.0f);
  RouteOptions options;
  options.score = Score::kSigmoid;
  const auto run = [&](size_t id_stride, size_t weight_stride) {
    std::vector<int32_t> ids(kTokens * kStride, -7);
    std::vector<float> weights(kTokens * kStride, -7.0f);
    EXPECT_OK(RouteTopK({{logits.data(), kTokens, kExperts}},
                        {{ids.data(), kTokens, kTopK, id_stride},
                         {weights.data(), kTokens, kTopK, weight_stride}},
                        options));
    RouteResult result;
    for (size_t t = 0; t < kTokens; ++t) {
      for (size_t i = 0; i < kTopK; ++i) {
        result.ids.push_back(ids[t * id_stride + i]);
        result.weights.push_back(weights[t * weight_stride + i]);
      }
      for (size_t i = kTopK; i < id_stride; ++i) {
        EXPECT_EQ(ids[t * id_stride + i], -7) << t;
      }
      for (size_t i = kTopK; i < weight_stride; ++i) {
        EXPECT_EQ(weights[t * weight_stride + i], -7.0f) << t;
      }
    }
    return result;
  };
  const RouteResult want = run(kTopK, kTopK);
  for (const auto& [id_stride, weight_stride] :
       {std::pair{kStride, kTopK}, {kTopK, kStride}, {kStride, kStride}}) {
    const RouteResult got = run(id_stride, weight_stride);
    ExpectSame({got.ids, got.weights}, {want.ids, want.weights});
  }
}

// Records three layers in one array, between guard pages. Then replays each
// layer with the tokens in reverse order, one call for each token.
template <class Id>
void CheckRecordOfLayers(size_t slack) {
  constexpr size_t kTokens = 13, kLayers = 3, kExperts = 40, kTopK = 5,
                   kGap = 2, kStride = kLayers * kTopK + kGap, kMasked = 4;
  constexpr Id kNone = static_cast<Id>(-1);
  RouteOptions options;
  options.score = Score::kSigmoid;
  std::vector<uint8_t> mask(kTokens, 1);
  mask[kMasked] = 0;
  const Guarded<Id> record(kTokens, kLayers * kTopK, kStride, slack);
  const auto layer = [&](size_t i) {
    return AnyMatrix(record.data() + i * kTopK, kTokens, kTopK, kStride);
  };
  // Records the layers in this order. A layer has canaries until it is
  // recorded.
  for (const size_t l : {size_t{1}, size_t{0}, size_t{2}}) {
    const std::vector<float> logits =
        Random(l + 1).Uniforms(kTokens * kExperts, -4.0f, 4.0f);
    std::vector<int32_t> ids(kTokens * kTopK);
    std::vector<float> weights(kTokens * kTopK);
    RouteInputs in = {{logits.data(), kTokens, kExperts}};
    in.token_mask = mask;
    RouteOutputs out = {{ids.data(), kTokens, kTopK},
                        {weights.data(), kTokens, kTopK}};
    out.record = layer(l);
    const std::vector<Id> before = record.Values();
    ASSERT_OK(RouteTopK(in, out, options));
    record.ExpectIntact("record");
    const std::vector<Id> after = record.Values();
    for (size_t i = 0; i < after.size(); ++i) {
      const size_t t = i / (kLayers * kTopK), slot = i % (kLayers * kTopK);
      if (slot / kTopK != l) {
        ASSERT_EQ(after[i], before[i]) << "token " << t << " slot " << slot;
        continue;
      }
      const int32_t id = ids[t * kTopK + slot % kTopK];
      ASSERT_EQ(id == -1, t == kMasked);
      ASSERT_EQ(after[i], t == kMasked ? kNone : static_cast<Id>(id)) << i;
    }
    for (size_t t = kTokens; t-- > 0;) {
      int32_t again[kTopK];
      float weights_again[kTopK];
      RouteInputs replay = {{logits.data() + t * kExperts, 1, kExperts}};
      replay.given_ids = ConstAnyMatrix(layer(l)).RowRange(t, t + 1);
      Report report;
      ASSERT_OK(RouteTopK(
          replay, {{again, 1, kTopK}, {weights_again, 1, kTopK}, {}, &report},
          options));
      ExpectSame(
          {{again, again + kTopK}, {weights_again, weights_again + kTopK}},
          {RowOf(ids, t, kTopK), RowOf(weights, t, kTopK)});
      const bool is_counted = t == kMasked && sizeof(Id) > 2;
      ASSERT_EQ(report.invalid_ids, is_counted ? kTopK : 0);
    }
  }
}
TEST_P(RouteRecipeTest, RecordOfLayers) {
  for (size_t slack = 0; slack < 4; ++slack) {
    SCOPED_TRACE(slack);
    CheckRecordOfLayers<uint8_t>(slack);
    CheckRecordOfLayers<uint16_t>(slack);
    CheckRecordOfLayers<int32_t>(slack);
    CheckRecordOfLayers<uint32_t>(slack);
    CheckRecordOfLayers<int64_t>(slack);
  }
}

// A mark (-1, converted to the type of the given ids) and an invalid id both
// become -1 with weight 0, and both are recorded as marks. Only invalid ids
// are counted.
TEST_P(RouteRecipeTest, MarksOfGivenIds) {
  const std::vector<float> logits = {3, 2, 1, 0};
  const auto check = [&](auto mark) {
    using Id = decltype(mark);
    const std::vector<Id> given = {2, mark, 4, 1};
    std::vector<Id> record(4);
    std::vector<int32_t> ids(4);
    std::vector<float> weights(4);
    RouteOptions options;
    options.score = Score::kRaw;
    options.renormalize = false;
    RouteInputs in = {{logits.data(), 1, 4}};
    in.given_ids = {given.data(), 1, 4};
    Report report;
    RouteOutputs out = {{ids.data(), 1, 4}, {weights.data(), 1, 4}};
    out.report = &report;
    out.record = {record.data(), 1, 4};
    ASSERT_OK(RouteTopK(in, out, options));
    EXPECT_EQ(ids, (std::vector<int32_t>{2, -1, -1, 1}));
    EXPECT_EQ(weights, (std::vector<float>{1, 0, 0, 2}));
    EXPECT_EQ(record, (std::vector<Id>{2, mark, mark, 1}));
    EXPECT_EQ(report.invalid_ids, sizeof(Id) <= 2 ? 1u : 2u);
  };
  check(uint8_t{255});
  check(uint16_t{65535});
  check(int32_t{-1});
  check(UINT32_MAX);
  check(int64_t{-1});
}

// Some rows are too long for the kernel's buffer, and some are just short
// enough.
TEST_P(RouteRecipeTest, LongRows) {
  for (const size_t experts : {16384u, 16386u, 20000u}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const std::string wrong = WrongCase(seed, experts);
      ASSERT_EQ(wrong, "") << experts << " experts, seed " << seed;
    }
  }
}

// Returns a call with one row of logits. All other inputs have their
// defaults.
RouteCase OneRow(const std::vector<float>& logits, const RouteOptions& options,
                 size_t top_k) {
  RouteCase c;
  c.options = options;
  c.logits = logits;
  c.experts = c.columns = logits.size();
  c.top_k = top_k;
  return c;
}
RouteResult RunRow(const RouteCase& c) {
  RouteResult result;
  EXPECT_OK(RunRouteCase(c, SerialExecutor(), &result));
  EXPECT_EQ(WrongRouteCase(c, result), "");
  return result;
}

// The record has the experts' indices before expert_map changes them. It has
// the indices of zero experts, too.
TEST_P(RouteRecipeTest, RecordBeforeIdsChange) {
  RouteOptions options;
  options.num_zero_experts = 1;
  options.num_shared_experts = 2;
  RouteCase c = OneRow({1, 4, 2, 3}, options, 3);
  c.expert_map = {7, -1, 5, 6};
  c.records = true;
  for (const Type type : {Type::kU8, Type::kU16, Type::kI32}) {
    c.record_type = type;
    const RouteResult result = RunRow(c);
    EXPECT_EQ(result.ids, (std::vector<int32_t>{-1, -1, 5, 4, 5}));
    EXPECT_EQ(result.record, (std::vector<int32_t>{1, 3, 2}));
    EXPECT_EQ(result.report.elsewhere, 1u);
    EXPECT_EQ(WrongReplay(c, result, SerialExecutor()), "");
  }
}

// The kernel selects up to 32 slots at a time, and stores up to 1024 slots at a
// time. 255 and 65,535 experts are the most that the types of records can hold.
TEST_P(RouteRecipeTest, RecordOfTheMostExperts) {
  for (const Type type : {Type::kU8, Type::kU16}) {
    for (const size_t top_k : {1u, 8u, 33u, 255u, 1100u}) {
      const size_t experts = MostExperts(type);
      if (top_k > experts) break;
      RouteCase c =
          OneRow(Random(top_k).Uniforms(experts, -4.0f, 4.0f), {}, top_k);
      c.logits[experts - 1] = 5.0f;
      c.records = true;
      c.record_type = type;
      const RouteResult result = RunRow(c);
      EXPECT_EQ(result.record[0], static_cast<int32_t>(experts - 1));
      EXPECT_EQ(WrongReplay(c, result, SerialExecutor()), "");
    }
  }
}

// The kernel computes a row of more than 16,384 experts in pieces, unless the
// value x that route.h defines is the logit itself.
TEST_P(RouteRecipeTest, SparsemixerOfLongRows) {
  RouteOptions options;
  options.score = Score::kSparsemixer;
  options.renormalize = false;
  RouteOptions scaled = options, capped = options, clipped = options;
  scaled.logit_scale = 0.5f;
  capped.logit_softcap = 30.0f;
  clipped.logit_clip = 100.0f;
  for (const RouteOptions& o : {options, scaled, capped, clipped}) {
    for (const size_t experts : {16384u, 16385u, 40000u}) {
      std::vector<float> logits(experts, 0.0f);
      logits[1] = 10.0f;
      logits[experts - 1] = 9.0f;
      const RouteResult far = RunRow(OneRow(logits, o, 2));
      EXPECT_EQ(far.ids,
                (std::vector<int32_t>{1, static_cast<int32_t>(experts - 1)}));
      EXPECT_EQ(far.weights, (std::vector<float>{1.0f, 1.0f}));
      // Experts count in the divisors of both weights if their logits are
      // close to the largest logit. The first selected expert does not count
      // in the divisor of the second weight.
      RouteOptions near = o;
      near.jitter_eps = 0.2f;
      logits[500] = 8.0f;
      const std::vector<float> weights =
          RunRow(OneRow(logits, near, 2)).weights;
      EXPECT_LT(weights[0], weights[1]);
      // The rows have ties, negative logits, only -inf, or a NaN.
      for (const float most : {-3.0f, -kInf, kNaN}) {
        logits.assign(experts, -4.0f);
        if (most == -kInf) logits.assign(experts, -kInf);
        logits[7] = logits[experts - 2] = most;
        RunRow(OneRow(logits, near, 2));
      }
    }
  }
}
// Tests each option that matters for rows that are computed in pieces, one
// option at a time.
TEST_P(RouteRecipeTest, EveryRecipeOfLongRows) {
  Random random(5);
  constexpr size_t kExperts = 16400;
  const std::vector<float> logits = random.Uniforms(kExperts, -5.0f, 5.0f);
  const std::vector<float> bias = random.Uniforms(kExperts, -0.1f, 0.1f);
  for (const Score score : kScores) {
    if (score == Score::kSparsemixer) continue;  // see SparsemixerOfLongRows
    for (size_t kind = 0; kind < 9; ++kind) {
      for (const bool biased : {true, false}) {
        for (const bool renormalize : {true, false}) {
          SCOPED_TRACE(testing::Message()
                       << NameOf(score) << " kind " << kind << " bias "
                       << biased << " renormalize " << renormalize);
          RouteOptions o;
          o.score = score;
          o.renormalize = renormalize;
          if (kind == 1) o.logit_scale = 0.25f;
          if (kind == 2) o.logit_softcap = 20.0f;
          if (kind == 3) o.logit_clip = 4.5f;  // many ties
          if (kind == 4) o.weight_of = WeightOf::kSoftmaxOfSelected;
          if (kind == 5) o.weight_of = WeightOf::kSigmoidOfSelected;
          if (kind == 6) o.round_to = Type::kBF16;
          if (kind == 7) o.num_expert_group = 8, o.topk_group = 3;
          if (kind == 8) o.divisor = Divisor::kSumPlusEps, o.eps = 1e-6f;
          RouteCase c = OneRow(logits, o, 9);
          if (biased) c.bias = bias;
          RunRow(c);
        }
      }
    }
  }
}

// Sums may be 0 or negative. As route.h says, a clamp of 0 is no bound, and a
// division by 0 gives infinity or NaN.
TEST_P(RouteRecipeTest, SumsOfZeroAndBelow) {
  RouteOptions options;
  options.score = Score::kRaw;
  const auto weights = [&](const std::vector<float>& logits) {
    return RunRow(OneRow(logits, options, 2)).weights;
  };
  using Two = std::vector<float>;
  options.clamp = 0.0f;
  EXPECT_EQ(weights({-3, -1, -1, -4}), (Two{0.5f, 0.5f}));
  EXPECT_EQ(weights({-6, -1, -3, -4}), (Two{0.25f, 0.75f}));
  options.clamp = 0x1p-3f;  // 1/8 of the sum -16 is -2, which is above -4
  EXPECT_EQ(weights({-6, -1, -3, -6}), (Two{0.5f, 1.5f}));
  for (const Divisor divisor : kDivisors) {
    options.divisor = divisor;
    options.zero_sum_is_zero = false;
    EXPECT_EQ(weights({2, -2, -3, -4}), (Two{kInf, -kInf}));
    const Two nan = weights({0, -0.0f, -3, -4});
    EXPECT_TRUE(std::isnan(nan[0]) && std::isnan(nan[1]));
    options.zero_sum_is_zero = true;
    EXPECT_EQ(weights({2, -2, -3, -4}), (Two{0.0f, 0.0f}));
    EXPECT_EQ(weights({0, -0.0f, -3, -4}), (Two{0.0f, 0.0f}));
  }
  options.zero_sum_is_zero = false;
  options.divisor = Divisor::kSumPlusEps;
  options.eps = 1.0f;
  EXPECT_EQ(weights({-0.25f, -0.75f, -3, -4}), (Two{-kInf, -kInf}));
}

// All logits of the row are -inf. So every score is 1 / num_experts, 0 or -inf,
// and every key is the score plus a bias. All weights are 0.
TEST_P(RouteRecipeTest, RowsOfMinusInfinityWhereKeysAreScores) {
  const std::vector<float> logits(4, -kInf);
  const auto ids = [&](const RouteOptions& options,
                       const std::vector<float>& bias) {
    RouteCase c = OneRow(logits, options, 2);
    c.bias = bias;
    const RouteResult result = RunRow(c);
    EXPECT_EQ(CanonicalBits(result.weights), (std::vector<uint32_t>{0, 0}));
    return result.ids;
  };
  using Ids = std::vector<int32_t>;
  for (const Score score : kScores) {
    if (score == Score::kSparsemixer) continue;  // takes no bias
    SCOPED_TRACE(NameOf(score));
    RouteOptions options;
    options.score = score;
    const double lowest = ExactScore(score, -HUGE_VAL, -HUGE_VAL, 4.0);
    EXPECT_EQ(ids(options, {}), (Ids{0, 1}));
    EXPECT_EQ(ids(options, {0, 0.5f, 0.25f, 0}),
              std::isinf(lowest) ? (Ids{0, 1}) : (Ids{1, 2}));
    options.select_on_rounded_score = true;
    EXPECT_EQ(ids(options, {}), (Ids{0, 1}));
    options.select_on_rounded_score = false;
    options.bias_place = BiasPlace::kLogit;
    EXPECT_EQ(ids(options, {0, 0.5f, 0.25f, 0}), (Ids{0, 1}));
    options.bias_place = BiasPlace::kScore;
    options.num_expert_group = 2;
    options.topk_group = 1;
    // All experts of the first group have the same key. All others have a key
    // of 0.
    options.dropped_key_is_zero = true;
    for (const float bias : {-0.125f, -0.25f, -0.26f, 0.0f}) {
      const bool is_kept =  // on a tie with 0, the first group comes first
          ids(options, {bias, bias, bias - 1, bias - 1}) == Ids{0, 1};
      EXPECT_EQ(is_kept, lowest + double{bias} >= 0.0) << bias;
    }
  }
}

// A bias_index outside the biases means a bias of 0. The keys then are the
// scores. Here the scores tie, although the logits differ.
TEST_P(RouteRecipeTest, BiasIndexWithoutARow) {
  RouteOptions options;
  options.score = Score::kSigmoid;
  RouteCase c = OneRow({17.0f, 20.0f, 18.0f, 30.0f}, options, 2);
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(RunRow(c).ids, (Ids{3, 1}));
  c.bias = {0, 0, 0, 0};
  EXPECT_EQ(RunRow(c).ids, (Ids{0, 1}));
  c.bias = {0, 0, 5, 5};
  for (const int32_t index : {1, -1}) {
    c.bias_index = {index};
    const RouteResult result = RunRow(c);
    EXPECT_EQ(result.ids, (Ids{0, 1}));
    EXPECT_EQ(result.weights, (std::vector<float>{0.5f, 0.5f}));
    EXPECT_EQ(result.report.invalid_ids, 1u);
  }
  c.options.bias_place = BiasPlace::kLogit;
  EXPECT_EQ(RunRow(c).ids, (Ids{3, 1}));
}

TEST_P(RouteRecipeTest, BiasIndexOfEachType) {
  const float logits[12] = {};
  const float biases[] = {0, 9, 0, 0, 0, 0, 0, 9};
  const auto run = [&](const ConstAnyMatrix& index) {
    RouteInputs in;
    in.logits = {logits, 3, 4};
    in.correction_bias = {biases, 2, 4};
    in.bias_index = index;
    std::vector<int32_t> ids(3);
    std::vector<float> weights(3);
    EXPECT_OK(RouteTopK(in, {{ids.data(), 3, 1}, {weights.data(), 3, 1}}, {}));
    return ids;
  };
  // The third token has no bias. Ties go to the first expert.
  const std::vector<int32_t> best = {3, 1, 0};
  const int32_t i32[] = {1, 0, -1};
  const int64_t i64[] = {1, 0, int64_t{1} << 32};
  const uint32_t u32[] = {1, 0, ~uint32_t{0}};
  const uint8_t u8[] = {1, 0, 255};
  EXPECT_EQ(run({i32, 3, 1}), best);
  EXPECT_EQ(run({i64, 3, 1}), best);
  EXPECT_EQ(run({u32, 3, 1}), best);
  EXPECT_EQ(run({u8, 3, 1}), best);
  EXPECT_EQ(run({i64, 1, 3}), best);
}

// Tests optional inputs and options that RouteTopK() refuses. (route_test.cc
// tests the other arguments.)

constexpr size_t kTokens = 4, kExperts = 8, kTopK = 2;

class RouteRecipeErrors
    : public CallErrors<RouteInputs, RouteOutputs, RouteOptions> {
 protected:
  RouteRecipeErrors()
      : CallErrors("RouteTopK", RouteTopK),
        ids_(kTokens, kTopK),
        weights_(kTokens, kTopK),
        identity_(kTokens, 1),
        record_(kTokens, kTopK) {
    call_.in.logits = {logits_.data(), kTokens, kExperts};
    call_.in.correction_bias = {bias_.data(), 2, kExperts};
    call_.in.bias_index = {index_.data(), kTokens, 1};
    call_.in.expert_scale = {bias_.data(), 1, kExperts};
    call_.in.token_mask = {mask_.data(), kTokens, 1};
    call_.in.expert_map = {map_.data(), 1, kExperts};
    call_.out = {ids_.view(), weights_.view(), identity_.view(), &report_,
                 record_.view()};
    call_.options.score = Score::kSigmoid;
    call_.options.num_expert_group = 4;
    call_.options.topk_group = 2;
    call_.options.num_zero_experts = 1;
  }
  // Adds given ids to the call, and removes the arguments that may not be
  // combined with them.
  static void Give(Call& c, const std::vector<int32_t>& given) {
    c.in.given_ids = {given.data(), kTokens, kTopK};
    c.in.bias_index = {};
    c.in.correction_bias = {};
    c.options.num_expert_group = c.options.topk_group = 0;
  }
  static void Mix(Call& c) {
    c.options.score = Score::kSparsemixer;
    c.options.renormalize = false;
    c.options.num_expert_group = c.options.topk_group = 0;
    c.in.correction_bias = c.in.bias_index = {};
  }
  void ExpectUntouched() const override {
    ids_.ExpectUntouched("topk_ids");
    weights_.ExpectUntouched("topk_weights");
    identity_.ExpectUntouched("identity_weights");
    record_.ExpectUntouched("record");
  }

  const std::vector<float> logits_ = std::vector<float>(64, 1.0f);
  const std::vector<float> bias_ = std::vector<float>(64, 0.5f);
  const std::vector<int32_t> index_ = {0, 1, 0, 1};
  const std::vector<uint8_t> mask_ = {1, 0, 1, 1};
  const std::vector<int32_t> map_ = {0, 1, 2, 3, -1, -1, -1, -1};
  const std::vector<int32_t> given_ = {0, 1, 2, 3, 4, 5, 6, 7};
  const Guarded<int64_t> ids_;
  const Guarded<float> weights_;
  const Guarded<float> identity_;
  const Guarded<uint16_t> record_;
};

TEST_F(RouteRecipeErrors, ValidAreTheCallsThatAreSpoilt) {
  std::vector<int32_t> ids(kTokens * kTopK);
  std::vector<float> weights(kTokens * kTopK), identity(kTokens);
  std::vector<uint16_t> record(kTokens * kTopK);
  Report report;
  for (int kind = 0; kind < 3; ++kind) {
    Call c = call_;
    c.out = {{ids.data(), kTokens, kTopK},
             {weights.data(), kTokens, kTopK},
             {identity.data(), kTokens, 1},
             &report,
             {record.data(), kTokens, kTopK}};
    if (kind == 1) Give(c, given_);
    if (kind == 2) Mix(c);
    EXPECT_OK(Run(c)) << kind;
  }
}

TEST_F(RouteRecipeErrors, EveryLineOfItsTable) {
  ExpectExecutorErrorsAreReported();
  ExpectSpoiltCallsAreRefused<calls::RouteCall>();
  Give(call_, given_);
  ExpectSpoiltCallsAreRefused<calls::RouteCall>();
  call_.in = {call_.in.logits};
  call_.out.identity_weights = {};
  call_.out.record = {};
  call_.options = {};
  ExpectSpoiltCallsAreRefused<calls::RouteCall>();
}

TEST_F(RouteRecipeErrors, Shapes) {
  const std::string bias =
      "correction_bias: is not [1, num_experts], nor [num_biases, num_experts] "
      "with bias_index";
  EXPECT_ERROR(bias, c.in.correction_bias.cols = 7);
  EXPECT_ERROR(bias, c.in.bias_index = {});
  EXPECT_ERROR("correction_bias: has no rows", c.in.correction_bias.rows = 0);
  const std::string per_token = ": is not [tokens, 1] or [1, tokens]";
  EXPECT_ERROR("bias_index" + per_token,
               c.in.bias_index.cols = c.in.bias_index.stride = 2);
  EXPECT_ERROR("token_mask" + per_token,
               c.in.token_mask.cols = c.in.token_mask.stride = 2);
  EXPECT_ERROR("identity_weights" + per_token,
               c.out.identity_weights.cols = c.out.identity_weights.stride = 2);
  EXPECT_ERROR("bias_index: given without correction_bias",
               c.in.correction_bias = {});
  const std::string many = "logits: more than 2^31 - 1 experts";
  EXPECT_ERROR(many, c.in.logits.cols = c.in.logits.stride = size_t{1} << 31);
  EXPECT_ERROR(many, c.options.num_shared_experts = INT32_MAX - 7);
  EXPECT_ERROR("topk_ids: top_k (cols) is 0", c.options.num_shared_experts = 2);
  EXPECT_ERROR("topk_ids: top_k (cols) exceeds the experts",
               c.options.num_shared_experts = 7, c.options.shared_logits = true,
               c.out.topk_ids.cols = c.out.topk_ids.stride = 9);
  EXPECT_ERROR(
      "options: shared_logits: logits has only the shared experts' columns",
      c.options.num_shared_experts = 8, c.options.shared_logits = true,
      c.out.topk_ids.cols = c.out.topk_ids.stride = 10);
  EXPECT_ERROR("identity_weights: given without num_zero_experts",
               c.options.num_zero_experts = 0);
}

TEST_F(RouteRecipeErrors, Overlaps) {
  Give(call_, given_);
  EXPECT_ERROR(
      "topk_ids: overlaps given_ids without being the same view",
      c.in.given_ids = {ids_.data() + 1, 3, 2, 2}, c.in.logits.rows = 3,
      c.in.token_mask.rows = c.out.identity_weights.rows = c.out.topk_ids.rows =
          c.out.topk_weights.rows = c.out.record.rows = 3);
  EXPECT_ERROR("record: overlaps given_ids",
               c.in.given_ids = {record_.data(), kTokens, kTopK});
}

TEST_F(RouteRecipeErrors, TypesWithoutRoomForTheExperts) {
  const std::string room = ": uint8 has room for 255 experts, uint16 for 65535";
  const std::vector<float> logits(65536);
  std::vector<int32_t> memory(2);
  for (const auto& [type, most] :
       {std::pair{Type::kU8, size_t{255}}, {Type::kU16, size_t{65535}}}) {
    for (const size_t experts : {most, most + 1}) {
      SCOPED_TRACE(experts);
      const AnyMatrix small(static_cast<void*>(memory.data()), type, 1, 2, 2);
      call_ = {{{logits.data(), 1, experts}},
               {ids_.view().RowRange(0, 1), weights_.view().RowRange(0, 1)},
               {}};
      if (experts > most) {
        EXPECT_ERROR("given_ids" + room, c.in.given_ids = small);
        EXPECT_ERROR("record" + room, c.out.record = small);
        continue;
      }
      int64_t ids[2];
      float weights[2];
      call_.out = {{ids, 1, 2}, {weights, 1, 2}};
      Call records = call_, replays = call_;
      records.out.record = small;
      replays.in.given_ids = small;
      EXPECT_OK(Run(records));
      EXPECT_OK(Run(replays));
    }
  }
}

TEST_F(RouteRecipeErrors, DivisorsWithoutEps) {
  for (const Divisor d : kDivisors) {
    if (internal::TakesEps(d)) continue;
    EXPECT_ERROR("options: eps: this divisor has no eps",
                 c.options.eps = 1e-20f, c.options.divisor = d);
  }
}

// Spoils each option alone, first in a plain call, then in a call with a token
// mask and a report. These two calls have different checks.
TEST_F(RouteRecipeErrors, EveryOptionOfPlainAndOtherCalls) {
  const Call full = call_;
  for (const bool plain : {true, false}) {
    SCOPED_TRACE(plain ? "plain" : "by recipe");
    call_ = {{full.in.logits}, {full.out.topk_ids, full.out.topk_weights}, {}};
    if (!plain) {
      call_.in.token_mask = full.in.token_mask;
      call_.out.report = full.out.report;
    }
    const auto refuse = [&](const std::string& message, auto& option,
                            std::initializer_list<float> values) {
      using T = std::remove_reference_t<decltype(option)>;
      const T valid = option;
      for (const float value : values) {
        option = static_cast<T>(value);
        EXPECT_ERROR("options: " + message, (void)c);
      }
      option = valid;
    };
    const auto accept = [&](auto& option) {
      using T = std::remove_reference_t<decltype(option)>;
      const T valid = option;
      for (const size_t value : {0u, 1u}) {
        option = static_cast<T>(value);
        int32_t ids[kTokens * kTopK];
        float weights[kTokens * kTopK];
        Call c = call_;
        c.out.topk_ids = {ids, kTokens, kTopK};
        c.out.topk_weights = {weights, kTokens, kTopK};
        if (!plain) c.out.report = &report_;
        EXPECT_OK(Run(c));
      }
      report_ = kUnwritten;
      option = valid;
    };
    RouteOptions& o = call_.options;
    accept(o.renormalize);
    refuse("eps: this divisor has no eps", o.eps, {1e-20f});
    accept(o.zero_sum_is_zero);
    o.bias_in_weight = true;
    EXPECT_ERROR(
        "correction_bias: not given, but options.bias_in_weight needs it",
        (void)c);
    o.bias_in_weight = false;
    accept(o.select_on_rounded_score);
    refuse("num_expert_group does not divide the experts", o.num_expert_group,
           {3, 16});
    refuse("topk_group exceeds num_expert_group", o.topk_group, {2});
    accept(o.group_score_of);  // has no effect without groups
    accept(o.dropped_key_is_zero);
    refuse("num_zero_experts: every expert is a zero expert",
           o.num_zero_experts, {8});
    o.num_shared_experts = 2;
    EXPECT_ERROR("topk_ids: top_k (cols) is 0", (void)c);
    o.num_shared_experts = 0;
    refuse(
        "shared_weight: has no effect without num_shared_experts, or with "
        "shared_logits",
        o.shared_weight, {0.5f});
    refuse("shared_logits without num_shared_experts", o.shared_logits, {1});
    refuse("num_expert_group is 0, but the options need groups (1: none)",
           o.needs_groups, {1});
    refuse("needs_config: call ApplyConfig for the preset first",
           o.needs_config, {1});
    o.needs_correction_bias = true;
    EXPECT_ERROR("correction_bias: not given, but the options need it",
                 (void)c);
    o.needs_correction_bias = false;
    o.needs_expert_scale = true;
    EXPECT_ERROR("expert_scale: not given, but the options need it", (void)c);
    o.needs_expert_scale = false;
  }
}

TEST_F(RouteRecipeErrors, Groups) {
  EXPECT_ERROR("options: num_expert_group does not divide the experts",
               c.options.num_expert_group = 3);
  EXPECT_ERROR("options: num_expert_group does not divide the experts",
               c.options.num_expert_group = 16);
  EXPECT_ERROR("options: topk_group is 0", c.options.topk_group = 0);
  EXPECT_ERROR("options: topk_group exceeds num_expert_group",
               c.options.topk_group = 5);
  EXPECT_ERROR("options: topk_group exceeds num_expert_group",
               c.options.num_expert_group = 0);
  EXPECT_ERROR("options: group_score_of is 0", c.options.group_score_of = 0);
  EXPECT_ERROR("options: group_score_of exceeds the experts of a group",
               c.options.group_score_of = 3);
}

TEST_F(RouteRecipeErrors, WhatDoesNotGoTogether) {
  EXPECT_ERROR("options: num_zero_experts: every expert is a zero expert",
               c.options.num_zero_experts = 8);
  EXPECT_ERROR("options: shared_logits without num_shared_experts",
               c.options.shared_logits = true);
  const std::string weight =
      "options: shared_weight: has no effect without num_shared_experts, or "
      "with shared_logits";
  EXPECT_ERROR(weight, c.options.shared_weight = 0.5f);
  EXPECT_ERROR(
      "options: bias_in_weight: weight_of is not kScore, to which the bias is "
      "added",
      c.options.bias_in_weight = true,
      c.options.weight_of = WeightOf::kSigmoidOfSelected);
  EXPECT_ERROR(
      "options: select_on_rounded_score: has no effect with BiasPlace::kLogit",
      c.options.select_on_rounded_score = true,
      c.options.bias_place = BiasPlace::kLogit);
  Call groups = call_;
  Give(call_, given_);
  EXPECT_ERROR("options: num_expert_group: has no effect with given_ids",
               c.options.num_expert_group = 4, c.options.topk_group = 2);
  EXPECT_ERROR("options: select_on_rounded_score: has no effect with given_ids",
               c.options.select_on_rounded_score = true);
  EXPECT_ERROR("bias_index: given_ids are given, and weights have no bias",
               c.in.bias_index = groups.in.bias_index,
               c.in.correction_bias = groups.in.correction_bias);
}

TEST_F(RouteRecipeErrors, Sparsemixer) {
  Mix(call_);
  EXPECT_ERROR(
      "topk_ids: top_k (cols) is not 2, which kSparsemixer needs",
      c.out.topk_ids.cols = c.out.topk_weights.cols = c.out.record.cols = 1);
  EXPECT_ERROR("options: renormalize: kSparsemixer does not renormalise",
               c.options.renormalize = true);
  EXPECT_ERROR("options: weight_of: kSparsemixer computes its own weights",
               c.options.weight_of = WeightOf::kSoftmaxOfSelected);
  const std::string none =
      "options: score: kSparsemixer cannot be combined with a bias, groups, "
      "given_ids, shared_logits or select_on_rounded_score";
  EXPECT_ERROR(none, c.in.correction_bias = {bias_.data(), 1, 8});
  EXPECT_ERROR(none, c.options.num_expert_group = 2, c.options.topk_group = 1);
  EXPECT_ERROR(none, c.in.given_ids = {given_.data(), kTokens, kTopK});
  EXPECT_ERROR(none, c.options.select_on_rounded_score = true);
}

}  // namespace
}  // namespace switchyard::testing_support
