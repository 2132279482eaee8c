// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "src/base/details.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "src/base/fp_env.h"

namespace switchyard {
namespace {

// The details of the last error on this thread. Errors without details do not
// count.
struct LastDetails {
  uint32_t number;  // the error's number, or 0 before the first error
  char text[kMaxDetails + 1];
};
thread_local LastDetails t_last = {};

std::atomic<uint32_t> g_count{0};

// Returns the next error's number. Two copies of the library in a process count
// from different numbers, so that each copy recognises its own statuses.
uint32_t NextNumber() noexcept {
  const auto place =
      static_cast<uint32_t>(reinterpret_cast<uintptr_t>(&g_count) >> 4 << 8);
  const uint32_t number =
      place + g_count.fetch_add(1, std::memory_order_relaxed) + 1;
  return number != 0 ? number : 1;
}

}  // namespace

const char* DetailsOf(const Status& status) noexcept {
  const uint32_t number = internal::DetailsAccess::Number(status);
  return number != 0 && number == t_last.number ? t_last.text : "";
}

namespace internal {

Status Refuse(StatusCode code, const char* message,
              const Details& details) noexcept {
  if (details.empty()) return Status(code, message);
  t_last.number = NextNumber();
  std::memcpy(t_last.text, details.text(), sizeof(t_last.text));
  return DetailsAccess::Make(code, message, t_last.number);
}

Details& Details::Put(std::string_view words) noexcept {
  const size_t fits = std::min(words.size(), kMaxDetails - size_);
  std::memcpy(text_ + size_, words.data(), fits);
  size_ += fits;
  if (fits < words.size()) std::memcpy(text_ + kMaxDetails - 3, "...", 3);
  return *this;
}
Details& Details::Put(size_t value) noexcept {
  char digits[24];
  char* at = digits + sizeof(digits);
  do {
    *--at = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  return Put(
      std::string_view(at, static_cast<size_t>(digits + sizeof(digits) - at)));
}
Details& Details::Put(int value) noexcept {
  if (value >= 0) return Put(static_cast<size_t>(value));
  return Put("-").Put(size_t{0} - static_cast<size_t>(value));
}
Details& Details::Put(float value) noexcept {
  const DefaultFpEnv fp_env;
  char text[48];
  for (int digits = 6; digits <= 9; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits,
                  static_cast<double>(value));
    const float read = std::strtof(text, nullptr);
    if (std::memcmp(&read, &value, sizeof(read)) == 0) break;
  }
  // Puts "." as decimal point, because the program's locale may use another
  // decimal point, even one of several bytes.
  bool was_point = false;
  for (const char* c = text; *c != '\0'; ++c) {
    const bool is_point = std::strchr("0123456789+-einfa", *c) == nullptr;
    if (!is_point) Put(std::string_view(c, 1));
    if (is_point && !was_point) Put(".");
    was_point = is_point;
  }
  return *this;
}
Details& Details::PutShape(size_t rows, size_t cols) noexcept {
  return Put("[").Put(rows).Put(", ").Put(cols).Put("]");
}

}  // namespace internal
}  // namespace switchyard
