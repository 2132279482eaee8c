// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/shapes.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "switchyard/activate.h"
#include "switchyard/bucket.h"
#include "switchyard/combine.h"
#include "switchyard/gather.h"
#include "switchyard/route.h"
#include "testing/floats.h"
#include "testing/inputs.h"
#include "tools/cli/isas.h"

namespace swy {
namespace {

using switchyard::AnyMatrix;
using switchyard::BFloat16;
using switchyard::Executor;
using switchyard::Float16;
using switchyard::Type;
using switchyard::testing_support::Round;
using switchyard::testing_support::Uniform;

std::vector<float> Floats(size_t count, uint32_t stream) {
  std::vector<float> floats(count);
  for (size_t i = 0; i < count; ++i) floats[i] = Uniform(stream, i, 4.0f);
  return floats;
}

// Contiguous rows of a type of row data.
class Rows {
 public:
  Rows(Type type, size_t rows, size_t cols)
      : type_(type),
        rows_(rows),
        cols_(cols),
        storage_((switchyard::BytesOf(type, rows * cols) + 3) / 4) {}
  // The numbers of Floats(), rounded.
  Rows(Type type, size_t rows, size_t cols, uint32_t stream)
      : Rows(type, rows, cols) {
    void* const data = storage_.data();
    for (size_t i = 0; i < rows * cols; ++i) {
      const float value = Uniform(stream, i, 4.0f);
      if (type == Type::kBF16) {
        static_cast<BFloat16*>(data)[i] = Round<BFloat16>(value);
      } else if (type == Type::kF16) {
        static_cast<Float16*>(data)[i] = Round<Float16>(value);
      } else {
        static_cast<float*>(data)[i] = value;
      }
    }
  }

  AnyMatrix All() { return {storage_.data(), type_, rows_, cols_, cols_}; }
  AnyMatrix Range(size_t first, size_t count) {
    return All().RowRange(first, first + count);
  }

 private:
  Type type_;
  size_t rows_, cols_;
  std::vector<uint32_t> storage_;
};

// A branch predictor learns the data of a few rows by heart: calls go through
// at least 64 rows in turn.
size_t Slots(size_t tokens) { return tokens < 64 ? 64 / tokens : 1; }

class Turn {
 public:
  explicit Turn(size_t slots) : slots_(slots) {}
  size_t Next() {
    const size_t now = at_;
    at_ = at_ + 1 == slots_ ? 0 : at_ + 1;
    return now;
  }

 private:
  size_t slots_;
  size_t at_ = 0;
};

// What the router gives for random logits.
std::vector<int32_t> RoutedIds(size_t rows, size_t experts, size_t top_k) {
  const std::vector<float> logits = Floats(rows * experts, 1);
  std::vector<float> weights(rows * top_k);
  std::vector<int32_t> ids(rows * top_k);
  Check(switchyard::RouteTopK(
      {{logits.data(), rows, experts}},
      {{ids.data(), rows, top_k}, {weights.data(), rows, top_k}}));
  return ids;
}

std::function<void(Executor&)> Route(const Model& model, size_t tokens) {
  const size_t slots = Slots(tokens), experts = model.experts;
  const size_t top_k = model.top_k;
  return [=, turn = Turn(slots),
          logits = Rows(model.type, slots * tokens, experts, 1),
          ids = std::vector<int32_t>(tokens * top_k),
          weights =
              std::vector<float>(tokens * top_k)](Executor& executor) mutable {
    Check(switchyard::RouteTopK(
        {logits.Range(turn.Next() * tokens, tokens)},
        {{ids.data(), tokens, top_k}, {weights.data(), tokens, top_k}}, {},
        executor));
  };
}

std::function<void(Executor&)> Bucket(const Model& model, size_t tokens) {
  const size_t slots = Slots(tokens), experts = model.experts;
  const size_t top_k = model.top_k, pairs = tokens * top_k;
  return
      [=, turn = Turn(slots), ids = RoutedIds(slots * tokens, experts, top_k),
       counts = std::vector<int32_t>(experts),
       offsets = std::vector<int32_t>(experts + 1),
       packed = std::vector<int32_t>(pairs)](Executor& executor) mutable {
        const int32_t* const rows = ids.data() + turn.Next() * pairs;
        Check(switchyard::BucketPacked(
            {{rows, tokens, top_k}}, {counts, offsets, packed}, {}, executor));
      };
}

std::function<void(Executor&)> Gather(const Model& model, size_t tokens) {
  const size_t top_k = model.top_k, pairs = tokens * top_k;
  const size_t hidden = model.hidden;
  std::vector<int32_t> ids = RoutedIds(tokens, model.experts, top_k);
  std::vector<int32_t> counts(model.experts), offsets(model.experts + 1);
  std::vector<int32_t> packed(pairs);
  Check(switchyard::BucketPacked({{ids.data(), tokens, top_k}},
                                 {counts, offsets, packed}));
  return [=, ids = std::move(ids), packed = std::move(packed),
          rows = Rows(model.type, tokens, hidden, 2),
          out = Rows(model.type, pairs, hidden)](Executor& executor) mutable {
    Check(switchyard::GatherRows(
        {rows.All(), packed, {ids.data(), tokens, top_k}}, {out.All()}, {},
        executor));
  };
}

std::function<void(Executor&)> Activate(Type type, size_t rows, size_t cols) {
  return [gate = Rows(type, rows, cols, 3), up = Rows(type, rows, cols, 4),
          out = Rows(type, rows, cols)](Executor& executor) mutable {
    Check(switchyard::Activate({gate.All(), up.All()}, {out.All()}, {},
                               executor));
  };
}

// With residual and norm.
std::function<void(Executor&)> Combine(const Model& model, size_t tokens) {
  const size_t top_k = model.top_k, hidden = model.hidden;
  const Type type = model.type;
  return [=, rows = Rows(type, tokens * top_k, hidden, 5),
          weights = Floats(tokens * top_k, 6),
          residual = Rows(type, tokens, hidden, 7), norm = Floats(hidden, 8),
          out = Rows(type, tokens, hidden),
          normed = Rows(type, tokens, hidden)](Executor& executor) mutable {
    Check(switchyard::Combine({rows.All(),
                               {weights.data(), tokens, top_k},
                               switchyard::RowIndex::kTokenOrder,
                               residual.All(),
                               norm},
                              {out.All(), normed.All()}, {}, executor));
  };
}

// The data are made when it is their turn, and are not copied with the call.
template <class Make>
std::function<std::function<void(Executor&)>()> Later(Make make) {
  return [make] {
    auto call = std::make_shared<std::function<void(Executor&)>>(make());
    return [call](Executor& executor) { (*call)(executor); };
  };
}

std::string Text(const char* key, size_t value) {
  return std::string(key) + "=" + std::to_string(value);
}

std::string TypesText(Type type) {
  for (const auto& [name, known] : DataTypes()) {
    if (known == type && type != Type::kF32) return name;
  }
  return "";
}

Shape ActivateShape(const std::string& model, Type type, size_t rows,
                    size_t cols) {
  const double bytes = 3.0 * static_cast<double>(SizeOf(type)) *
                       static_cast<double>(rows) * static_cast<double>(cols);
  return {"activate",
          std::to_string(rows) + "x" + std::to_string(cols),
          model,
          "row",
          static_cast<double>(rows),
          bytes,
          bytes,
          TypesText(type),
          Later([=] { return Activate(type, rows, cols); })};
}

}  // namespace

const std::vector<std::string>& Kernels() {
  static const std::vector<std::string> kKernels = {"route", "bucket", "gather",
                                                    "activate", "combine"};
  return kKernels;
}

Shape ShapeOf(const std::string& kernel, const Model& model, size_t tokens) {
  const auto t = static_cast<double>(tokens);
  const auto k = static_cast<double>(model.top_k);
  const auto h = static_cast<double>(model.hidden);
  const auto e = static_cast<double>(model.experts);
  const auto size = static_cast<double>(SizeOf(model.type));
  const std::string types = TypesText(model.type);
  const std::string routed =
      Text("E", model.experts) + Text(" k", model.top_k) + Text(" T", tokens);
  const std::string rows =
      Text("H", model.hidden) + Text(" k", model.top_k) + Text(" T", tokens);
  const double logits = e * std::max(t, 64.0);  // how many
  if (kernel == "route") {
    return {kernel,
            routed,
            model.name,
            "row",
            t,
            0.0,
            size * logits + 8.0 * t * k,
            types,
            Later([=] { return Route(model, tokens); })};
  }
  if (kernel == "bucket") {
    return {kernel,
            routed,
            model.name,
            "pair",
            t * k,
            0.0,
            4.0 * logits + 16.0 * t * k,
            "",
            Later([=] { return Bucket(model, tokens); })};
  }
  if (kernel == "gather") {
    const double bytes = 2.0 * size * t * k * h;
    return {kernel,
            rows,
            model.name,
            "row",
            t * k,
            bytes,
            bytes + 4.0 * logits,
            types,
            Later([=] { return Gather(model, tokens); })};
  }
  if (kernel == "activate") {
    return ActivateShape(model.name, model.type, tokens * model.top_k,
                         model.intermediate);
  }
  // The experts' rows and the residual are read, its sum and norm written.
  const double bytes = size * t * h * (k + 3.0);
  return {kernel, rows,  model.name,
          "row",  t,     bytes,
          bytes,  types, Later([=] { return Combine(model, tokens); })};
}

std::vector<Shape> DefaultShapes(Type type) {
  const Model qwen = {128, 8, 2048, 768, type};
  const Model of_256 = {256, 8, 2048, 768, type, ""},
              of_512 = {512, 10, 2048, 768, type, ""};
  return {
      ShapeOf("route", qwen, 1),         ShapeOf("route", qwen, 512),
      ShapeOf("route", of_256, 512),     ShapeOf("route", of_512, 512),
      ShapeOf("bucket", qwen, 1),        ShapeOf("bucket", qwen, 512),
      ShapeOf("gather", qwen, 64),       ActivateShape(qwen.name, type, 8, 768),
      ActivateShape("", type, 64, 2048), ShapeOf("combine", qwen, 1),
      ShapeOf("combine", qwen, 64)};
}

const std::map<std::string, Type>& DataTypes() {
  static const std::map<std::string, Type> kTypes = {
      {"f32", Type::kF32}, {"bf16", Type::kBF16}, {"f16", Type::kF16}};
  return kTypes;
}

}  // namespace swy
