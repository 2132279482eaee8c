// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/contest.h"
#include "bench/inputs.h"
#include "bench/rivals.h"
#include "switchyard/activate.h"
#include "testing/reference.h"

namespace switchyard::bench {
namespace {

struct Data {
  size_t rows, cols;
  Aligned<float> gate = Floats(rows * cols, 2);
  Aligned<float> up = Floats(rows * cols, 3);
  Aligned<float> out = Aligned<float>(rows * cols);

  Data(size_t r, size_t c) : rows(r), cols(c) {}
  ActivateInputs In() const {
    return {{gate.data(), rows, cols}, {up.data(), rows, cols}};
  }
  ActivateOutputs Out() { return {{out.data(), rows, cols}}; }
};

Contest MakeActivate(const ActivationShape& shape) {
  Contest contest = {shape.model, "row", static_cast<double>(shape.rows),
                     12.0 * static_cast<double>(shape.rows * shape.cols)};
  const auto d = std::make_shared<Data>(shape.rows, shape.cols);
  Output want(d->out);
  for (size_t i = 0; i < d->out.size(); ++i) {
    want.floats.push_back(reference::Silu(static_cast<double>(d->gate[i])) *
                          static_cast<double>(d->up[i]));
  }
  contest.outputs = {want};
  AddOurs(contest, {0}, [d](size_t, Executor& executor) {
    return Activate(d->In(), d->Out(), {}, executor);
  });
  AddRival(contest, Kind::kPlain, "plain C++", {0},
           [d](size_t) { plain::Activate(d->In(), d->Out()); });
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

void Asks(Table& table) {
  const std::string& avx512 = table.avx512;
  for (const char* shape : {"8x768", "64x2048"}) {
    table.AtMost(1.15, table.Ratio("activate", shape, avx512, "probe"),
                 std::string("activate, ") + shape + ", " + avx512 +
                     " / load, divide, store");
    table.AtMost(1.6, table.Ratio("activate", shape, "AVX2", avx512),
                 std::string("activate, ") + shape + ", AVX2 / " + avx512);
  }
  table.AtMost(1.05, table.Ratio("activate", "4096x1536", avx512, Kind::kProbe),
               "activate, 4096x1536, " + avx512 +
                   " / the better probe, plain or streaming");
}

const Registration registration(
    [] {
      for (const ActivationShape& shape : kActivations) {
        Register("activate",
                 std::to_string(shape.rows) + "x" + std::to_string(shape.cols),
                 [=] { return MakeActivate(shape); });
      }
      RegisterThreads("activate F=768", {64, 512, 4096}, [](size_t rows) {
        return MakeActivate({"", rows, 768});
      });
    },
    Asks);

}  // namespace
}  // namespace switchyard::bench
