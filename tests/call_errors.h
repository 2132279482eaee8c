// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A fixture for the errors of a function: a call that is valid, of which one
// thing at a time is spoilt. Includes what the tests of every kernel use, of
// the standard library too.

#ifndef SWITCHYARD_TESTS_CALL_ERRORS_H_
#define SWITCHYARD_TESTS_CALL_ERRORS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"  // IWYU pragma: export
#include "switchyard/executor.h"
#include "switchyard/status.h"
#include "switchyard/views.h"
#include "testing/guarded_buffer.h"  // IWYU pragma: export
#include "testing/inputs.h"          // IWYU pragma: export
#include "testing/reference.h"       // IWYU pragma: export
#include "testing/unwritten.h"       // IWYU pragma: export
#include "tests/target_test.h"       // IWYU pragma: export

namespace switchyard {

namespace testing_support {

inline void ExpectError(const Status& status, const std::string& message,
                        StatusCode code = StatusCode::kInvalidArgument) {
  EXPECT_EQ(status.code(), code) << message;
  EXPECT_EQ(status.message(), message);
}

// The types that an argument takes, in a message's words.
struct Takes {
  std::vector<Type> types;
  const char* words;
};
inline const Takes kTakesFloats = {{Type::kF32, Type::kBF16, Type::kF16},
                                   "f32, bf16 or f16"};
inline const Takes kTakesRows = {
    {Type::kF32, Type::kBF16, Type::kF16, Type::kI8, Type::kU8, Type::kF8E4M3,
     Type::kF8E5M2, Type::kQ8_0, Type::kQ8_1, Type::kQ8_K},
    "f32, bf16, f16 or quantised"};
inline const Takes kTakesScales = {{Type::kF32}, "f32, or e8m0 with f8"};
inline const Takes kTakesI32 = {{Type::kI32}, "int32"};
inline const Takes kTakesIds = {{Type::kI32, Type::kU32, Type::kI64},
                                "int32, uint32 or int64"};

template <class T>
constexpr size_t ElementBytes(const Matrix<T>&) {
  return sizeof(T);
}
template <class V>
constexpr size_t ElementBytes(const BasicAnyMatrix<V>& m) {
  return SizeOf(m.type);
}

// In a test of CallErrors: `message` for the valid call `c` after changes.
#define EXPECT_ERROR(message, ...) \
  Expect(message, [&](Call& c) { __VA_ARGS__; })
// The same for a wrong number of rows, and of columns, of a view of `c`.
#define EXPECT_SIZE_ERRORS(message, view, num_rows, num_cols) \
  EXPECT_ERROR(message, (view).rows = (num_rows));            \
  EXPECT_ERROR(message, (view).cols = (num_cols))

template <class In, class Out, class Options>
class CallErrors : public testing::Test {
 protected:
  struct Call {
    In in;
    Out out;
    Options options;
  };
  using Function = Status (*)(const In&, const Out&, const Options&, Executor&);

  CallErrors(std::string name, Function function, In in = In())
      : call_{std::move(in), {}, {}},
        name_(std::move(name)),
        function_(function) {}

  // That no output was written.
  virtual void ExpectUntouched() const = 0;

  Status Run(const Call& call, Executor& executor = SerialExecutor()) const {
    return function_(call.in, call.out, call.options, executor);
  }
  // `message` without the function's name.
  virtual void Expect(const std::string& message,
                      const std::function<void(Call&)>& spoil) const {
    Call call = call_;
    spoil(call);
    ExpectError(Run(call), name_ + ": " + message);
    ExpectUntouched();
    EXPECT_EQ(report_, kUnwritten) << message;
  }

  // What every view may have wrong by itself: `view(call)` points to the
  // argument `name`.
  template <class View>
  void ExpectViewErrors(const std::string& name, const View& view,
                        const Takes& takes = kTakesFloats) const {
    Call valid = call_;
    using Argument = std::remove_pointer_t<decltype(view(valid))>;
    const size_t rows = view(valid)->rows;
    ASSERT_NE(view(valid)->data, nullptr);
    Expect(name + ": data is null", [&](Call& c) { view(c)->data = nullptr; });
    // More than fit, of elements of four bytes or of any.
    const bool wide = ElementBytes(*view(valid)) >= 4;
    const size_t many = wide ? SIZE_MAX / 4 : SIZE_MAX / 2 + 1;
    if (rows > 1) {
      Expect(name + ": stride is smaller than cols",
             [&](Call& c) { view(c)->stride = view(c)->cols - 1; });
      for (const size_t stride : {many, wide ? many / 2 : many, SIZE_MAX}) {
        Expect(name + ": size overflows the address space",
               [&](Call& c) { view(c)->stride = stride; });
      }
      Expect(name + ": size overflows the address space",
             [&](Call& c) { view(c)->rows = many; });
    }
    Expect(name + ": size overflows the address space", [&](Call& c) {
      view(c)->cols = view(c)->stride = many;
      view(c)->rows = 1;
    });
    if constexpr (std::is_base_of_v<AnyMatrix, Argument> ||
                  std::is_base_of_v<ConstAnyMatrix, Argument>) {
      for (const Type type :
           {Type::kF32, Type::kBF16, Type::kF16, Type::kI32, Type::kU32,
            Type::kI64, Type::kI8, Type::kU8, Type::kF8E4M3, Type::kF8E5M2,
            Type::kE8M0, Type::kQ8_0, Type::kQ8_1, Type::kQ8_K, Type(99)}) {
        const std::vector<Type>& fine = takes.types;
        if (std::find(fine.begin(), fine.end(), type) != fine.end()) continue;
        Expect(name + ": has to be " + takes.words,
               [&](Call& c) { view(c)->type = type; });
      }
    }
  }

  // The executor's own error is handed through, and no report is made.
  void ExpectExecutorErrorsAreReported() const {
    BackwardsExecutor executor(0);
    ExpectError(Run(call_, executor), "no memory", StatusCode::kOutOfMemory);
    EXPECT_EQ(report_, kUnwritten);
  }

  Call call_;
  Report report_ = kUnwritten;

 private:
  const std::string name_;
  const Function function_;
};

}  // namespace testing_support
}  // namespace switchyard

#endif  // SWITCHYARD_TESTS_CALL_ERRORS_H_
