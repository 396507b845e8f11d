// Prints a plot as SVG, for scripts: the JSON on stdin has title, x and y (name, logarithmic,
// is_bytes) and lines (name, points).

#include "tools/report/line_plot.h"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

namespace {

espalier::tools::PlotAxis axis_of(const nlohmann::json& json) {
  return {json.at("name"), json.at("logarithmic"), json.at("is_bytes")};
}

}  // namespace

int main() {
  try {
    const nlohmann::json json = nlohmann::json::parse(std::cin);
    std::vector<espalier::tools::PlotLine> lines;
    for (const nlohmann::json& line : json.at("lines")) {
      lines.push_back({line.at("name"), line.at("points")});
    }
    std::cout << espalier::tools::plot_svg(json.at("title"), axis_of(json.at("x")),
                                           axis_of(json.at("y")), lines);
    return std::cout.flush() ? 0 : 2;
  } catch (const nlohmann::json::exception& wrong) {
    std::fprintf(stderr, "line-plot: %s\n", wrong.what());
    return 2;
  }
}
