#pragma once
// A plot of a few lines, as SVG.

#include <string>
#include <utility>
#include <vector>

namespace espalier::papers {

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;  // ascending x
};

struct Axis {
  std::string name;
  bool logarithmic = false;  // base 2
};

// A self-contained picture. Every line has at least one point; values on a logarithmic axis are
// above 0.
[[nodiscard]] std::string plot_svg(const std::string& title, const Axis& x, const Axis& y,
                                   const std::vector<Line>& lines);

}  // namespace espalier::papers
