// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// A fixture for tests of errors. It holds a valid call, and each test breaks
// the call in one way. This file also includes the headers that the tests of
// all kernels use.

#ifndef SWITCHYARD_TESTS_CALL_ERRORS_H_
#define SWITCHYARD_TESTS_CALL_ERRORS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <set>
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
#include "testing/spoilt_calls.h"
#include "testing/unwritten.h"  // IWYU pragma: export
#include "tests/target_test.h"  // IWYU pragma: export

namespace switchyard {

namespace testing_support {

inline void ExpectError(const Status& status, const std::string& message,
                        StatusCode code = StatusCode::kInvalidArgument) {
  EXPECT_EQ(status.code(), code) << message;
  EXPECT_EQ(status.message(), message);
}

// Runs the statements on `c`, a copy of the valid call, and expects that the
// call returns the error `message`. Only tests that use CallErrors can use
// this macro.
#define EXPECT_ERROR(message, ...) \
  Expect(message, [&](Call& c) { __VA_ARGS__; })
// Expects `message` if a view of `c` has a wrong number of rows, and if it
// has a wrong number of columns.
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

  // Expects that the call has written no output.
  virtual void ExpectUntouched() const = 0;

  Status Run(const Call& call, Executor& executor = SerialExecutor()) const {
    return function_(call.in, call.out, call.options, executor);
  }
  // Expects the error `message`, which does not include the function's name.
  virtual void Expect(const std::string& message,
                      const std::function<void(Call&)>& spoil) const {
    Call call = call_;
    spoil(call);
    ExpectRefused(Run(call), {message});
  }
  void ExpectRefused(const Status& status,
                     const std::set<std::string>& messages) const {
    const std::string prefix = name_ + ": ", message = status.message();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << *messages.begin();
    const bool is_of_function = message.rfind(prefix, 0) == 0;
    EXPECT_TRUE(is_of_function) << message;
    EXPECT_TRUE(is_of_function &&
                messages.count(message.substr(prefix.size())) != 0)
        << message << "\nexpected: " << *messages.begin();
    ExpectDetails(message, status.details());
    ExpectUntouched();
    EXPECT_EQ(report_, kUnwritten) << message;
  }
  // Checks details(). If the message is about a shape, `details` has to give
  // the actual shape and the required shape. The two must differ.
  static void ExpectDetails(const std::string& message,
                            const std::string& details) {
    const auto has = [&](const char* words) {
      return message.find(words) != message.npos;
    };
    const bool is_shape =
        has(": is not [") || has(": size is not ") || has(": fewer than ");
    const bool is_type = has(": has to be "), is_stride = has(": stride is ");
    // A message "options: name: ..." is about a rule. Some rules have no
    // numbers.
    const size_t option = message.find(": options: ");
    const bool is_range = option != message.npos &&
                          message.find(": ", option + 11) == message.npos;
    if (!is_shape && !is_type && !is_stride && !is_range) return;
    EXPECT_EQ(details.rfind("got ", 0), 0u) << message << ": " << details;
    const std::string needs = ", needs ";
    const size_t at = details.find(needs);
    if (is_type) {
      EXPECT_TRUE(details.find(", takes ") != details.npos ||
                  details.find(" of ") != details.npos ||
                  details.find("num_rows 0") != details.npos)
          << message << ": " << details;
    } else if (at == details.npos) {
      // The message states the rule in words. `details` has only the sizes or
      // options to which the rule applies.
      const bool is_rule = is_range || message.rfind("Activate: ", 0) == 0 ||
                           has(": correction_bias: ");
      EXPECT_TRUE(!is_stride && is_rule &&
                  details.find_first_of("0123456789") != details.npos)
          << message << ": " << details;
    } else {
      EXPECT_NE(details.substr(4, at - 4), details.substr(at + needs.size()))
          << message;
      EXPECT_TRUE(is_range ||
                  details.find_first_of("0123456789", at) != details.npos)
          << message << ": " << details;
    }
  }

  // Breaks each rule of the call in turn. C is the type in src/calls/ that
  // lists the rules.
  template <class C>
  void ExpectSpoiltCallsAreRefused() const {
    SpoiltCalls<
        C>({call_.in, call_.out, call_.options}, [this](
                                                     const std::set<
                                                         std::string>& texts,
                                                     const typename SpoiltCalls<
                                                         C>::Spoil& spoil) {
      typename SpoiltCalls<C>::Call c = {call_.in, call_.out, call_.options};
      spoil(c);
      ExpectRefused(Run({c.in, c.out, c.options}), texts);
    }).All();
  }

  // Expects that the call returns an executor's error unchanged, and does not
  // write the report.
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
