// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Kernels of tests/device/metal that use what the language has, each with what
// it is to leave in its buffers, computed here.

#ifndef SWITCHYARD_TESTS_DEVICE_METAL_FEATURES_H_
#define SWITCHYARD_TESTS_DEVICE_METAL_FEATURES_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "switchyard/device/library.h"
#include "switchyard/types.h"
#include "testing/floats.h"
#include "testing/inputs.h"
#include "tests/device/device_test.h"

namespace switchyard::testing_support {

template <class... Parts>
std::string Text(const Parts&... parts) {
  std::ostringstream text;
  text.precision(9);
  (text << ... << parts);
  return text.str();
}

using Bytes = std::vector<unsigned char>;

template <class T>
Bytes BytesOf(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> FromBytes(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline double AsNumber(float v) { return static_cast<double>(v); }
inline double AsNumber(Float16 v) { return static_cast<double>(Widen(v)); }
inline double AsNumber(BFloat16 v) { return static_cast<double>(Widen(v)); }
template <class T>
double AsNumber(T v) {
  return static_cast<double>(v);
}

// One dispatch: buffers in the order of their indices.
class Feature {
 public:
  struct Memory {
    Bytes before;
    // The error in the bytes that are left; "" for none.
    std::function<std::string(const Bytes&)> wrong;
  };
  struct Constant {
    Bytes value;
    DataType type;
    size_t index;
  };

  Feature(const char* file, std::string kernel)
      : file_(file), kernel_(std::move(kernel)) {}

  // In threads; the last threadgroups may be smaller.
  Feature& Threads(Size grid, Size threads) {
    grid_ = grid;
    threads_ = threads;
    return *this;
  }
  Feature& Threads(size_t grid, size_t threads) {
    return Threads(Size(grid, 1, 1), Size(threads, 1, 1));
  }
  template <class T>
  Feature& In(const std::vector<T>& values) {
    const Bytes before = BytesOf(values);
    memory_.push_back({before, [before](const Bytes& after) -> std::string {
                         return after == before ? "" : "an input was written";
                       }});
    return *this;
  }
  // Nothing bound at the next index.
  Feature& Skip() {
    memory_.emplace_back();
    return *this;
  }
  // An output, to be these bits; what is in it before is the canary.
  template <class T>
  Feature& Out(const std::vector<T>& right) {
    return InOut(std::vector<T>(), right);
  }
  template <class T>
  Feature& InOut(const std::vector<T>& before, const std::vector<T>& right) {
    return Output(before, right);
  }
  // To be within so many units of 2^-24, relatively, or of 1 below 1.
  Feature& Near(const std::vector<double>& right, double units) {
    std::vector<float> floats;
    for (const double r : right) floats.push_back(static_cast<float>(r));
    Output(std::vector<float>(), floats);
    memory_.back().wrong = [=](const Bytes& after) -> std::string {
      const std::vector<float> got = FromBytes<float>(after);
      for (size_t i = 0; i < right.size(); ++i) {
        const double value = static_cast<double>(got[i]);
        if (std::isnan(right[i]) && std::isnan(value)) continue;
        if (std::isinf(right[i]) && value == right[i]) continue;
        const double size = std::fmax(1.0, std::fabs(right[i]));
        if (!(std::fabs(value - right[i]) <= units * 0x1p-24 * size)) {
          return Text("[", i, "] is ", value, ", and ought to be ", right[i]);
        }
      }
      return "";
    };
    return *this;
  }
  // An output of which `wrong` has an opinion.
  template <class T>
  Feature& Out(size_t size,
               const std::function<std::string(const std::vector<T>&)>& wrong) {
    memory_.push_back({Canaries(size * sizeof(T)), [=](const Bytes& after) {
                         return wrong(FromBytes<T>(after));
                       }});
    return *this;
  }
  Feature& ThreadgroupMemory(size_t bytes) {
    threadgroup_memory_.push_back(bytes);
    return *this;
  }
  template <class T>
  Feature& Set(size_t index, DataType type, T value) {
    Bytes bytes(sizeof(value));
    std::memcpy(bytes.data(), &value, sizeof(value));
    constants_.push_back({bytes, type, index});
    return *this;
  }
  // Atomics of which the order shows, in what nothing is said of.
  Feature& InAnyOrder() {
    in_any_order_ = true;
    return *this;
  }

  const char* file() const { return file_; }
  const std::string& kernel() const { return kernel_; }
  Size grid() const { return grid_; }
  Size threads() const { return threads_; }
  const std::vector<Memory>& memory() const { return memory_; }
  const std::vector<size_t>& threadgroup_memory() const {
    return threadgroup_memory_;
  }
  const std::vector<Constant>& constants() const { return constants_; }
  bool in_any_order() const { return in_any_order_; }

 private:
  static Bytes Canaries(size_t size) { return Bytes(size, 0xA5); }

  template <class T>
  Feature& Output(const std::vector<T>& before, const std::vector<T>& right) {
    const Bytes want = BytesOf(right);
    memory_.push_back(
        {before.empty() ? Canaries(want.size()) : BytesOf(before),
         [=](const Bytes& after) -> std::string {
           if (after == want) return "";
           const std::vector<T> got = FromBytes<T>(after);
           for (size_t i = 0; i < right.size(); ++i) {
             if (std::memcmp(&got[i], &right[i], sizeof(T)) != 0) {
               return Text("[", i, "] is ", AsNumber(got[i]),
                           ", and ought to be ", AsNumber(right[i]));
             }
           }
           return "differs";
         }});
    return *this;
  }

  const char* file_;
  std::string kernel_;
  Size grid_{1, 1, 1}, threads_{1, 1, 1};
  std::vector<Memory> memory_;
  std::vector<size_t> threadgroup_memory_;
  std::vector<Constant> constants_;
  bool in_any_order_ = false;
};

// Each metal_features_<name>.cc adds its own while the program starts.
inline std::vector<Feature>& Features() {
  static std::vector<Feature> features;
  return features;
}
inline bool AddFeatures(const std::vector<Feature>& some) {
  for (const Feature& feature : some) Features().push_back(feature);
  return true;
}

// function(i) for i = 0, ..., n - 1.
template <class Function>
auto Values(size_t n, const Function& function) {
  std::vector<decltype(function(size_t{0}))> values;
  values.reserve(n);
  for (size_t i = 0; i < n; ++i) values.push_back(function(i));
  return values;
}
inline float Float(size_t i) { return static_cast<float>(i); }

}  // namespace switchyard::testing_support

#endif  // SWITCHYARD_TESTS_DEVICE_METAL_FEATURES_H_
