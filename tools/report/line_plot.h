#pragma once
// A plot of a few lines, as SVG. Host only.

#include <string>
#include <utility>
#include <vector>

namespace espalier::tools {

struct PlotLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // ascending x
};

struct PlotAxis {
  std::string name;
  bool logarithmic = false;  // base 2
  bool is_bytes = false;     // numbers as KiB, MiB, GiB
};

// A self-contained picture. Every line has at least one point; values on a logarithmic axis are
// above 0. `marks`: points
// that get a circle.
[[nodiscard]] std::string plot_svg(const std::string& title, const PlotAxis& x, const PlotAxis& y,
                                   const std::vector<PlotLine>& lines,
                                   const std::vector<std::pair<double, double>>& marks = {});

}  // namespace espalier::tools
