// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "packed.h"

#include <torch/csrc/stable/library.h>

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
  // The table is never destroyed, because Python may still drop entries while
  // the process ends.
  static All& instance = *new All;
  return instance;
}

constexpr char kKeep[] = "keep_packed";

PackedProduct ProductOf(const char* argument, std::vector<Tensor> experts) {
  Check(!experts.empty(), kKeep, argument, "no experts");
  PackedProduct product = {{}, Type::kF32, 0, 0};
  for (const Tensor& expert : experts) {
    int32_t layout = 0;
    SWITCHYARD_CHECK_TORCH(aoti_torch_get_layout(expert.get(), &layout));
    Check(layout == aoti_torch_layout__mkldnn(), kKeep, argument,
          "not packed by oneDNN on the CPU");
    const Type type = TypeOfDtype(kKeep, argument, expert.scalar_type());
    CheckFloat(kKeep, argument, type);
    Check(expert.dim() == 2, kKeep, argument, "not of two dimensions");
    const int64_t out = expert.size(0), in = expert.size(1);
    Check(out > 0 && in > 0, kKeep, argument, "empty");
    if (&expert == &experts.front()) product = {{}, type, out, in};
    Check(type == product.type && out == product.out && in == product.in, kKeep,
          argument, "not of one shape and dtype for all experts");
  }
  product.experts = std::move(experts);
  return product;
}

}  // namespace

int64_t KeepPacked(std::vector<Tensor> up, std::vector<Tensor> down) {
  Check(up.size() == down.size(), kKeep, "down", "not a tensor for each of up");
  auto packed = std::make_shared<const Packed>(Packed{
      ProductOf("up", std::move(up)), ProductOf("down", std::move(down))});
  const std::lock_guard<std::mutex> lock(all().mutex);
  all().by_number.emplace(++all().last, std::move(packed));
  return all().last;
}

void DropPacked(int64_t number) {
  std::shared_ptr<const Packed> dropped;  // frees its memory after unlocking
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

STABLE_TORCH_LIBRARY_FRAGMENT(switchyard, m) {
  m.def("keep_packed(Tensor[] up, Tensor[] down) -> int");
  m.def("drop_packed(int packed) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(switchyard, CompositeExplicitAutograd, m) {
  m.impl("keep_packed", TORCH_BOX(&switchyard::python::KeepPacked));
  m.impl("drop_packed", TORCH_BOX(&switchyard::python::DropPacked));
}
