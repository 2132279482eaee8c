// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Runs one Mixture-of-Experts layer with experts spread over processes. The
// layer is in exchange.c and experts.c, written in C with the C ABI. This file
// makes up tokens, compares the results with a plain loop, and times the steps.

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "layer.h"
#include "programs/arguments.h"
#include "programs/program.h"

namespace {

struct Options {
  size_t tokens = 256, experts = 16, top_k = 4, hidden = 1024,
         intermediate = 512, rounds = 21;
  std::string dispatch = "i8", combine = "bf16";
  bool check = false;
};

const std::map<std::string, int32_t> kTypes = {{"i8", SWY_I8},
                                               {"f8e4m3", SWY_F8E4M3},
                                               {"bf16", SWY_BF16},
                                               {"f32", SWY_F32}};

// The made-up tokens of this rank, and the results of one step.
struct Tokens {
  Tokens(const Options& o, size_t rank, size_t num_ranks)
      : first(o.tokens * rank / num_ranks),
        count(o.tokens * (rank + 1) / num_ranks - first),
        hidden(count * o.hidden),
        logits(count * o.experts),
        weights(count * o.top_k),
        out(count * o.hidden),
        ids(count * o.top_k) {
    const auto stream = static_cast<uint32_t>(2 * o.experts);
    for (size_t i = 0; i < hidden.size(); ++i) {
      hidden[i] = Uniform(stream, static_cast<uint32_t>(first * o.hidden + i));
    }
    for (size_t i = 0; i < logits.size(); ++i) {
      logits[i] =
          3 * Uniform(stream + 1, static_cast<uint32_t>(first * o.experts + i));
    }
  }
  size_t first, count;
  std::vector<float> hidden, logits, weights, out;
  std::vector<int32_t> ids;
};

// This rank's part of the layer: its tokens, its experts, and the exchange.
class Layer {
 public:
  Layer(const Options& o, int rank, int num_ranks)
      : options_(o),
        rank_(rank),
        num_ranks_(num_ranks),
        shape_{o.hidden, o.intermediate, o.experts, o.top_k,
               (o.experts + static_cast<size_t>(num_ranks) - 1) /
                   static_cast<size_t>(num_ranks)},
        tokens_(o, static_cast<size_t>(rank), static_cast<size_t>(num_ranks)) {
    MakeExchange(&shape_, MPI_COMM_WORLD, kTypes.at(o.dispatch),
                 kTypes.at(o.combine), &exchange_);
    MakeExperts(&shape_, static_cast<size_t>(rank), &experts_);
  }
  ~Layer() {
    FreeExperts(&experts_);
    FreeExchange(&exchange_);
  }
  Layer(const Layer&) = delete;

  int Run() {
    const Options& o = options_;
    if (rank_ == 0) {
      std::printf(
          "%d process%s, %zu tokens, %zu of %zu experts of %zu x %zu, %s\n"
          "a row: %zu bytes of %s there, %zu of %s back\n",
          num_ranks_, num_ranks_ == 1 ? "" : "es", o.tokens, o.top_k, o.experts,
          o.hidden, o.intermediate, swy_active_isa().name, exchange_.row_bytes,
          o.dispatch.c_str(), swy_bytes_of(kTypes.at(o.combine), o.hidden),
          o.combine.c_str());
    }
    Stopwatch unused = {0, {0}};
    Step(&unused);
    const uint64_t digest = Digest();
    if (rank_ == 0) {
      std::printf("digest %016llx\n", static_cast<unsigned long long>(digest));
    }
    const bool good = !o.check || Check();
    Time();
    return good ? 0 : 1;
  }

 private:
  void Step(Stopwatch* watch) {
    Tokens& t = tokens_;
    const auto dense = [&](void* data, int32_t type, size_t cols) {
      return swy_dense(data, type, t.count, cols);
    };
    const swy_matrix ids = dense(t.ids.data(), SWY_I32, shape_.top_k);
    const swy_matrix weights = dense(t.weights.data(), SWY_F32, shape_.top_k);
    swy_route_inputs in = SWY_ROUTE_INPUTS_INIT;
    swy_route_outputs out = SWY_ROUTE_OUTPUTS_INIT;
    in.logits = dense(t.logits.data(), SWY_F32, shape_.num_experts);
    out.topk_ids = ids;
    out.topk_weights = weights;
    CheckStatus(swy_route_top_k(&in, &out, nullptr, nullptr));
    Dispatch(&exchange_, dense(t.hidden.data(), SWY_F32, shape_.hidden), ids,
             watch);
    RunExperts(&experts_, &exchange_, watch);
    Return(&exchange_, watch);
    Sum(&exchange_, weights, dense(t.out.data(), SWY_F32, shape_.hidden),
        watch);
  }

  // Returns the largest difference between a token's output and the output of a
  // plain loop in double precision, divided by the largest output value.
  double DifferenceOfToken(size_t token) const {
    const auto [hidden, intermediate, experts, top_k, each] = shape_;
    const float* const x = tokens_.hidden.data() + token * hidden;
    std::vector<double> sums(hidden), activated(intermediate);
    for (size_t slot = token * top_k; slot < (token + 1) * top_k; ++slot) {
      const auto stream = 2 * static_cast<uint32_t>(tokens_.ids[slot]);
      // Returns the dot product of `values` with row o of a matrix. The
      // elements of the matrix are the numbers of stream `weights`.
      const auto dot = [](uint32_t weights, size_t o, const auto* values,
                          size_t size) {
        double sum = 0;
        for (size_t i = 0; i < size; ++i) {
          sum += double{values[i]} *
                 double{Uniform(weights, static_cast<uint32_t>(o * size + i))};
        }
        return sum * double{WeightScale(size)};
      };
      for (size_t o = 0; o < intermediate; ++o) {
        const double gate = dot(stream, o, x, hidden);
        activated[o] = gate / (1 + std::exp(-gate)) *
                       dot(stream, intermediate + o, x, hidden);
      }
      for (size_t o = 0; o < hidden; ++o) {
        sums[o] += double{tokens_.weights[slot]} *
                   dot(stream + 1, o, activated.data(), intermediate);
      }
    }
    double difference = 0, largest = 0;
    for (size_t o = 0; o < hidden; ++o) {
      const double out{tokens_.out[token * hidden + o]};
      difference = std::max(difference, std::fabs(sums[o] - out));
      largest = std::max(largest, std::fabs(sums[o]));
    }
    return difference / largest;
  }

  // Compares some tokens of all ranks with the plain loop. The bounds are three
  // times the rounding errors of the types at the default sizes.
  bool Check() const {
    const double bound =
        options_.dispatch == "f8e4m3"                               ? 0.2
        : options_.dispatch == "i8"                                 ? 0.06
        : options_.dispatch == "bf16" || options_.combine == "bf16" ? 0.03
                                                                    : 1e-5;
    double difference = 0, of_all = 0;
    for (size_t i = 0; i < tokens_.count; i += tokens_.count / 4 + 1) {
      difference = std::max(difference, DifferenceOfToken(i));
    }
    MPI_Allreduce(&difference, &of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank_ == 0) {
      std::printf(
          "off a plain loop by %.2g of the largest sum, at most %g allowed\n",
          of_all, bound);
    }
    return of_all <= bound;
  }

  // Returns the FNV-1a hash of the outputs of all tokens, in the order of
  // tokens. Only rank 0 computes it; the other ranks return another value.
  uint64_t Digest() const {
    const auto ranks = static_cast<size_t>(num_ranks_);
    std::vector<unsigned char> all(
        rank_ == 0 ? options_.tokens * shape_.hidden * sizeof(float) : 0);
    std::vector<int> counts(ranks), offsets(ranks);
    for (size_t r = 0; r < ranks; ++r) {
      offsets[r] = static_cast<int>(options_.tokens * r / ranks);
      counts[r] =
          static_cast<int>(options_.tokens * (r + 1) / ranks) - offsets[r];
    }
    MPI_Datatype row;
    MPI_Type_contiguous(static_cast<int>(shape_.hidden), MPI_FLOAT, &row);
    MPI_Type_commit(&row);
    MPI_Gatherv(tokens_.out.data(), static_cast<int>(tokens_.count), row,
                all.data(), counts.data(), offsets.data(), row, 0,
                MPI_COMM_WORLD);
    MPI_Type_free(&row);
    uint64_t digest = 0xcbf29ce484222325u;
    for (const unsigned char byte : all) {
      digest = (digest ^ byte) * 0x100000001b3u;
    }
    return digest;
  }

  // Runs and times steps. Prints the time of the slowest rank for each part of
  // a step.
  void Time() {
    std::vector<double> seconds[kNumParts + 1];
    for (size_t round = 0; round < options_.rounds; ++round) {
      MPI_Barrier(MPI_COMM_WORLD);
      Stopwatch watch = {MPI_Wtime(), {0}};
      const double start = watch.last;
      Step(&watch);
      for (size_t part = 0; part < kNumParts; ++part) {
        seconds[part].push_back(watch.seconds[part]);
      }
      seconds[kNumParts].push_back(watch.last - start);
    }
    // Each row has the median time and the fastest time of a part of the step.
    // The last row has the times of the whole step.
    double mine[kNumParts + 1][2], slowest[kNumParts + 1][2];
    for (size_t part = 0; part <= kNumParts; ++part) {
      std::sort(seconds[part].begin(), seconds[part].end());
      mine[part][0] = seconds[part][options_.rounds / 2];
      mine[part][1] = seconds[part][0];
    }
    MPI_Reduce(mine, slowest, 2 * (kNumParts + 1), MPI_DOUBLE, MPI_MAX, 0,
               MPI_COMM_WORLD);
    if (rank_ != 0) return;
    std::printf("%-11s %12s  %14s\n", "", "median", "fastest");
    const char* const names[] = {"switchyard", "waiting", "exchange",
                                 "products", "step"};
    for (size_t part = 0; part <= kNumParts; ++part) {
      std::printf("%-11s %9.3f ms %5.1f %%  %9.3f ms\n", names[part],
                  1e3 * slowest[part][0],
                  100 * slowest[part][0] / slowest[kNumParts][0],
                  1e3 * slowest[part][1]);
    }
  }

  const Options options_;
  const int rank_, num_ranks_;
  const Shape shape_;
  Tokens tokens_;
  Exchange exchange_;
  Experts experts_;
};

int Run(int argc, char** argv, int rank, int num_ranks) {
  Options o;
  CLI::App app(
      "Runs one Mixture-of-Experts layer whose experts are spread over the "
      "processes\nof an mpiexec -n PROCESSES. Prints a digest of the results, "
      "which is that of one\nprocess, and what a step's time went to.",
      "expert_parallel");
  const auto number = [&](const char* name, size_t& value, int high,
                          const char* what) {
    app.add_option(name, value, what)
        ->capture_default_str()
        ->check(program::Within(1, high))
        ->type_name("N");
  };
  number("--tokens", o.tokens, 65536, "Of all processes together");
  number("--experts", o.experts, 4096, "Of all processes together");
  number("--top-k", o.top_k, 64, "Experts per token");
  number("--hidden", o.hidden, 65536,
         "Columns of a hidden state, a multiple of 4");
  number("--intermediate", o.intermediate, 65536,
         "Columns between an expert's products");
  number("--rounds", o.rounds, 10000, "Timed steps, after a warm-up step");
  app.add_option("--dispatch", o.dispatch,
                 "Type of the rows sent to the experts")
      ->capture_default_str()
      ->check(CLI::IsMember({"i8", "f8e4m3", "bf16", "f32"}));
  app.add_option("--combine", o.combine, "Type of the rows sent back")
      ->capture_default_str()
      ->check(CLI::IsMember({"bf16", "f32"}));
  app.add_flag("--check", o.check,
               "Compare some tokens with a loop in double precision");
  if (!program::Parse(app, argc, argv)) return 0;
  if (o.hidden % 4 != 0) {
    throw program::InputError("--hidden " + std::to_string(o.hidden) +
                              ": not a multiple of 4");
  }
  if (o.top_k > o.experts) {
    throw program::InputError("--top-k " + std::to_string(o.top_k) +
                              ": more than --experts");
  }
  try {
    return Layer(o, rank, num_ranks).Run();
  } catch (const std::exception& e) {
    // Ends all ranks, because the others would wait for this rank forever.
    std::fprintf(stderr, "expert_parallel: %s\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  int rank = 0, num_ranks = 1, code = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  // Each rank uses one thread, because each core runs a rank.
  omp_set_num_threads(1);
  const auto run = [=] { return Run(argc, argv, rank, num_ranks); };
  if (rank == 0) {
    code = program::RunMain("expert_parallel", 1, run);
  } else if (std::freopen("/dev/null", "w", stdout) != nullptr) {
    // Prints no error, because rank 0 prints the same error.
    try {
      code = run();
    } catch (const program::InputError&) {
      code = 2;
    }
  }
  MPI_Finalize();
  return code;
}
