#pragma once
// A model (collectives/predict) from what `espalier measure` found. Host only.

#include <cstdint>
#include <vector>

#include "collectives/predict/model.h"

namespace espalier::tools {

// A time with the interval that holds it with 95 % confidence, s.
struct MeasuredTime {
  double seconds = 0, low = 0, high = 0;
};
// The median, and order statistics around it. Requires values.
[[nodiscard]] MeasuredTime median_time(std::vector<double> seconds);

// The one-way time of a message.
struct SizeTime {
  std::uint64_t bytes = 0;
  MeasuredTime one_way;
};
// A line through every two successive sizes; below the first size and from the last size but one
// on, the nearest of them. A line that would start below 0 goes through 0 and the longer of its
// sizes. `sizes`: ascending, at least one; a single size gives a line through 0.
[[nodiscard]] std::vector<predict::CostLine> lines_through(const std::vector<SizeTime>& sizes);

// Times the operators of this machine, for sums, products, least and greatest values and bitwise
// operators of every type. Takes about a second.
[[nodiscard]] std::vector<predict::CombineCost> time_operators();

}  // namespace espalier::tools
