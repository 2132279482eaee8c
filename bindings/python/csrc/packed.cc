// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "packed.h"

#include <map>
#include <mutex>
#include <utility>

namespace switchyard {
namespace python {
namespace {

struct All {
  std::mutex mutex;
  std::map<int64_t, std::shared_ptr<const Packed>> by_number;
  int64_t last = 0;
};
All& all() {
  // Never destroyed: Python drops what it has when it pleases.
  static All& instance = *new All;
  return instance;
}

}  // namespace

int64_t KeepPacked(std::vector<Tensor> up, std::vector<Tensor> down) {
  Check(!up.empty() && up.size() == down.size(), "keep_packed", "down",
        "not a tensor for each of up");
  auto packed =
      std::make_shared<const Packed>(Packed{std::move(up), std::move(down)});
  const std::lock_guard<std::mutex> lock(all().mutex);
  all().by_number.emplace(++all().last, std::move(packed));
  return all().last;
}

void DropPacked(int64_t number) {
  std::shared_ptr<const Packed> dropped;  // is freed behind the lock
  const std::lock_guard<std::mutex> lock(all().mutex);
  const auto found = all().by_number.find(number);
  if (found == all().by_number.end()) return;
  dropped = std::move(found->second);
  all().by_number.erase(found);
}

std::shared_ptr<const Packed> FindPacked(const char* op, int64_t number) {
  if (number == 0) return nullptr;
  const std::lock_guard<std::mutex> lock(all().mutex);
  const auto found = all().by_number.find(number);
  Check(found != all().by_number.end(), op, "packed", "no such number");
  return found->second;
}

}  // namespace python
}  // namespace switchyard
