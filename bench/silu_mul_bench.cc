// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/contest.h"
#include "bench/inputs.h"
#include "bench/onednn.h"
#include "bench/plain.h"
#include "bench/probes.h"
#include "bench/shapes.h"
#include "switchyard/silu_mul.h"
#include "testing/reference.h"

namespace switchyard {
namespace bench {
namespace {

struct Silu {
  size_t rows, cols;
  Aligned<float> gate = Floats(rows * cols, 2);
  Aligned<float> up = Floats(rows * cols, 3);
  Aligned<float> out = Aligned<float>(rows * cols);

  Silu(size_t r, size_t c) : rows(r), cols(c) {}
  Matrix<const float> Gate() const { return {gate.data(), rows, cols}; }
  Matrix<const float> Up() const { return {up.data(), rows, cols}; }
  Matrix<float> Out() { return {out.data(), rows, cols}; }
};

std::string Shape(size_t rows, size_t cols) {
  return std::to_string(rows) + "x" + std::to_string(cols);
}

Contest Ours(const ActivationShape& shape) {
  Contest contest;
  contest.kernel = "silu_mul";
  contest.shape = Shape(shape.rows, shape.cols);
  contest.model = shape.model;
  contest.units = static_cast<double>(shape.rows);
  contest.bytes = 12.0 * static_cast<double>(shape.rows * shape.cols);
  const auto data = std::make_shared<Silu>(shape.rows, shape.cols);
  Silu* const d = data.get();
  contest.data = data;
  Output want = {d->out.data(), d->out.size()};
  for (size_t i = 0; i < d->out.size(); ++i) {
    want.floats.push_back(reference::Silu(static_cast<double>(d->gate[i])) *
                          static_cast<double>(d->up[i]));
  }
  contest.outputs = {want};
  AddOurs(contest, {0}, [d](size_t, Executor& executor) {
    return SiluMul(d->Gate(), d->Up(), d->Out(), executor);
  });
  return contest;
}

Contest MakeSilu(const ActivationShape& shape) {
  Contest contest = Ours(shape);
  Silu* const d = static_cast<Silu*>(contest.data.get());
  AddRival(contest, Kind::kPlain, "plain C++", {0},
           [d](size_t) { plain::SiluMul(d->Gate(), d->Up(), d->Out()); });
  AddRival(contest, Kind::kOneDnn, "oneDNN swish, product", {0},
           [d, silu_mul = onednn::SiluMul(d->rows, d->cols)](size_t) {
             silu_mul(d->gate.data(), d->up.data(), d->out.data());
           });
  AddRival(contest, Kind::kProbe, "probe", {}, [d](size_t) {
    BestProbes().divide(d->gate.data(), d->up.data(), d->out.data(),
                        d->out.size());
  });
  AddRival(contest, Kind::kProbe, "probe, streaming stores", {}, [d](size_t) {
    BestProbes().divide_streaming(d->gate.data(), d->up.data(), d->out.data(),
                                  d->out.size());
  });
  return contest;
}

}  // namespace

void RegisterSiluMul() {
  for (const ActivationShape& shape : kActivations) {
    Register("silu_mul", Shape(shape.rows, shape.cols),
             [=] { return MakeSilu(shape); });
  }
  RegisterThreads("silu_mul F=768", {64, 512, 4096}, [](size_t rows) {
    return Ours({"", rows, 768});
  });
}

}  // namespace bench
}  // namespace switchyard
