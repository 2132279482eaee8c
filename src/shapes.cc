// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/shapes.h"

#include <cstddef>
#include <string_view>
#include <utility>

namespace switchyard::internal {
namespace {

constexpr size_t kMaxDimensions = 12;

// The values of dimensions, as arguments have them.
class Dimensions {
 public:
  // False where an argument before had another one.
  bool Add(std::string_view name, size_t value) {
    if (const size_t* known = Find(name)) return *known == value;
    if (size_ < kMaxDimensions) {
      names_[size_] = name;
      values_[size_++] = value;
    }
    return true;
  }
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // Whether words such as "tokens * top_k" are `value`, or may be, because no
  // argument has one of the dimensions.
  bool MayBe(std::string_view words, size_t value) const {
    const size_t space = words.find(' ');
    size_t first, second = 0;
    if (space == words.npos) return !Get(words, &first) || first == value;
    if (!Get(words.substr(0, space), &first) ||
        !Get(words.substr(space + 3), &second)) {
      return true;
    }
    size_t result;
    return !(words[space + 1] == '*'
                 ? __builtin_mul_overflow(first, second, &result)
                 : __builtin_add_overflow(first, second, &result)) &&
           result == value;
  }

 private:
  const size_t* Find(std::string_view name) const {
    for (size_t i = 0; i < size_; ++i) {
      if (names_[i] == name) return &values_[i];
    }
    return nullptr;
  }
  bool Get(std::string_view name, size_t* value) const {
    if (name[0] >= '0' && name[0] <= '9') {
      *value = static_cast<size_t>(name[0] - '0');
      return true;
    }
    const size_t* const known = Find(name);
    if (known != nullptr) *value = *known;
    return known != nullptr;
  }

  std::string_view names_[kMaxDimensions];
  size_t values_[kMaxDimensions];
  size_t size_ = 0;
};

bool IsDimension(std::string_view words) {
  return words.find(' ') == words.npos && (words[0] < '0' || words[0] > '9');
}

// Whether the sizes of all arguments that `takes` wants go together.
template <class Takes>
bool Agree(const Shaped* arguments, size_t size, const Takes& takes) {
  Dimensions dimensions;
  for (const bool of_dimensions : {true, false}) {
    for (size_t i = 0; i < size; ++i) {
      const Shaped& a = arguments[i];
      if (!a.is_given || !takes(i)) continue;
      for (const int axis : {0, 1}) {
        if (IsDimension(a.words[axis]) != of_dimensions) continue;
        if (of_dimensions ? !dimensions.Add(a.words[axis], a.sizes[axis])
                          : !dimensions.MayBe(a.words[axis], a.sizes[axis])) {
          return false;
        }
      }
    }
  }
  return true;
}

bool AgreeWithout(const Shaped* arguments, size_t size, size_t other) {
  return Agree(arguments, size, [other](size_t i) { return i != other; });
}

// Like the others with rows and columns exchanged.
bool IsTransposed(const Shaped* arguments, size_t size, size_t at) {
  if (!arguments[at].is_given || !AgreeWithout(arguments, size, at)) {
    return false;
  }
  const Shaped* const end = arguments + size;
  Dimensions dimensions;
  for (const Shaped* a = arguments; a != end; ++a) {
    if (!a->is_given || a == arguments + at) continue;
    for (const int axis : {0, 1}) {
      if (IsDimension(a->words[axis])) {
        dimensions.Add(a->words[axis], a->sizes[axis]);
      }
    }
  }
  const Shaped& a = arguments[at];
  return (dimensions.Has(a.words[0]) || dimensions.Has(a.words[1])) &&
         dimensions.MayBe(a.words[0], a.sizes[1]) &&
         dimensions.MayBe(a.words[1], a.sizes[0]);
}

const char* Find(const Shaped* arguments, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (arguments[i].is_needed() && !arguments[i].is_given) {
      return arguments[i].missing;
    }
  }
  if (Agree(arguments, size, [](size_t) { return true; })) return nullptr;
  for (size_t i = 0; i < size; ++i) {
    if (IsTransposed(arguments, size, i)) return arguments[i].misshaped;
  }
  for (size_t i = size; --i > 0;) {
    if (arguments[i].is_given && AgreeWithout(arguments, size, i)) {
      return arguments[i].misshaped;
    }
  }
  for (size_t out = 0; out < size; ++out) {
    const auto is_input_or = [&](size_t i) {
      return !arguments[i].is_output() || i == out;
    };
    if (arguments[out].is_output() && arguments[out].is_given &&
        !Agree(arguments, size, is_input_or)) {
      const auto is_input = [&](size_t i) { return !arguments[i].is_output(); };
      if (!Agree(arguments, size, is_input)) break;
      return arguments[out].misshaped;
    }
  }
  return AgreeWithout(arguments, size, 0) ? arguments[0].misshaped : nullptr;
}

}  // namespace

const char* OddOneOut(const Shaped* arguments, size_t size,
                      const char* otherwise) noexcept {
  const char* const message = Find(arguments, size);
  return message != nullptr ? message : otherwise;
}

}  // namespace switchyard::internal
