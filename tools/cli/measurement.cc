// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "tools/cli/measurement.h"

#include <nlohmann/json.hpp>

#include "programs/json.h"
#include "programs/machine.h"
#include "programs/statistics.h"

namespace swy {
namespace {

// Nanoseconds per unit.
struct Figure {
  double low, median, high;  // quartiles
};

Figure FigureOf(const Measurement& measurement, double units) {
  std::vector<double> times;
  for (const Repetition& repetition : measurement.repetitions) {
    times.push_back(repetition.nanoseconds / units);
  }
  return {program::Quantile(times, 0.25), program::Median(times),
          program::Quantile(times, 0.75)};
}

std::string NanosecondsText(double value) {
  return Number(value < 1e2 ? "%.2f" : value < 1e5 ? "%.1f" : "%.0f", value);
}

// "" where bytes are not what bounds it.
std::string BandwidthText(const Shape& shape, double median) {
  if (shape.bytes == 0.0) return "";
  return Number("%.1f", shape.bytes / (median * shape.units));
}

std::string Line(const Row& cells) {
  std::string line = PadRight(cells[0], 20) + PadLeft(cells[1], 12) +
                     PadLeft(cells[2], 26) + PadLeft(cells[3], 10) +
                     PadLeft(cells[4], 10);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string FullName(const Shape& shape, const Measurement& measurement) {
  return shape.kernel + "/" + shape.name + "/" + measurement.contender;
}

}  // namespace

std::string TextHead() {
  return Line({"", "ns", "quartiles", "GB/s", "of first"});
}

std::string Text(const Measured& measured) {
  const Shape& shape = measured.shape;
  std::string text = shape.kernel + "/" + shape.name + ", per " + shape.unit;
  if (!shape.model.empty()) text += " (" + shape.model + ")";
  text += "\n";
  const double first =
      FigureOf(measured.measurements.front(), shape.units).median;
  for (const Measurement& measurement : measured.measurements) {
    const Figure figure = FigureOf(measurement, shape.units);
    text += Line(
        {"  " + measurement.contender, NanosecondsText(figure.median),
         NanosecondsText(figure.low) + " .. " + NanosecondsText(figure.high),
         BandwidthText(shape, figure.median),
         Number("%.2f", figure.median / first)});
  }
  return text;
}

std::string Table(Format format, const std::vector<Measured>& all) {
  std::vector<Row> rows = {{"kernel", "shape", "model", "contender", "unit",
                            "ns", "ns_q1", "ns_q3", "gb_per_s", "of_first"}};
  for (const Measured& measured : all) {
    const Shape& shape = measured.shape;
    const double first =
        FigureOf(measured.measurements.front(), shape.units).median;
    for (const Measurement& measurement : measured.measurements) {
      const Figure figure = FigureOf(measurement, shape.units);
      rows.push_back({shape.kernel, shape.name, shape.model,
                      measurement.contender, shape.unit,
                      Number("%.6g", figure.median), Number("%.6g", figure.low),
                      Number("%.6g", figure.high),
                      BandwidthText(shape, figure.median),
                      Number("%.3f", figure.median / first)});
    }
  }
  return TableText(format, rows, 5);
}

std::string Json(const std::vector<Measured>& all) {
  using Object = nlohmann::ordered_json;
  Object json;
  json["context"] = program::Context("swy");
  json["context"]["onednn"] = "none";
  json["context"]["ggml"] = "none";
  Object& benchmarks = json["benchmarks"] = Object::array();
  for (size_t family = 0; family < all.size(); ++family) {
    const Shape& shape = all[family].shape;
    const std::vector<Measurement>& measurements = all[family].measurements;
    for (size_t instance = 0; instance < measurements.size(); ++instance) {
      const Measurement& m = measurements[instance];
      const std::string name = FullName(shape, m);
      for (size_t i = 0; i < m.repetitions.size(); ++i) {
        const Repetition& repetition = m.repetitions[i];
        benchmarks.push_back(
            {{"name", name},
             {"family_index", family},
             {"per_family_instance_index", instance},
             {"run_name", name},
             {"run_type", "iteration"},
             {"repetitions", m.repetitions.size()},
             {"repetition_index", i},
             {"threads", m.threads},
             {"iterations", repetition.calls},
             {"real_time", repetition.nanoseconds},
             {"cpu_time", repetition.cpu_nanoseconds},
             {"time_unit", "ns"},
             {"units", program::Count(shape.units)},
             {"bytes", program::Count(shape.bytes)},
             {"label", std::string(shape.unit) + "; " + shape.model}});
      }
    }
  }
  return json.dump(1) + "\n";
}

}  // namespace swy
