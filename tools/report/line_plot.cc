#include "tools/report/line_plot.h"

#include <algorithm>
#include <cmath>

#include "topology/svg.h"

namespace espalier::tools {
namespace {

constexpr double kPlotLeft = 70, kPlotTop = 40, kPlotWidth = 520, kPlotHeight = 300;
constexpr const char* kPlotColours[] = {"#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad",
                                        "#d68910", "#34495e", "#16a085", "#7f8c8d"};

// One axis: from values to points of the picture.
class PlotScale {
 public:
  PlotScale(const PlotAxis& axis, double low, double high) : axis_(axis) {
    low_ = place(low);
    high_ = place(high);
    if (axis.logarithmic) {
      low_ = std::floor(low_);
      high_ = std::ceil(high_);
    } else {
      unit_ = round_unit((high_ - low_) / 6);
      low_ = std::floor(low_ / unit_) * unit_;
      high_ = std::ceil(high_ / unit_) * unit_;
    }
    if (high_ <= low_) high_ = low_ + 1;
    if (axis.logarithmic) unit_ = std::max(1.0, std::ceil((high_ - low_) / 8));
  }
  // 0 .. 1 along the axis.
  [[nodiscard]] double at(double value) const { return (place(value) - low_) / (high_ - low_); }
  [[nodiscard]] std::vector<double> ticks() const {
    std::vector<double> values;
    for (int k = 0; low_ + k * unit_ <= high_ + unit_ / 1e6; ++k) {
      const double value = low_ + k * unit_;
      values.push_back(axis_.logarithmic ? std::exp2(value) : value);
    }
    return values;
  }

 private:
  [[nodiscard]] double place(double value) const {
    return axis_.logarithmic ? std::log2(value) : value;
  }
  // 1, 2 or 5 times a power of ten, at least `unit`.
  static double round_unit(double unit) {
    if (unit <= 0) return 1;
    const double power = std::pow(10, std::floor(std::log10(unit)));
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (unit <= factor * power) return factor * power;
    }
    return 10 * power;
  }

  PlotAxis axis_;
  double low_ = 0, high_ = 1, unit_ = 1;
};

std::string axis_number(const PlotAxis& axis, double value) {
  const char* unit = "";
  for (const char* larger : {" KiB", " MiB", " GiB"}) {
    if (!axis.is_bytes || value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  char text[32];
  if (!axis.is_bytes && value >= 1e6) {  // seven digits have no room beside the axis
    std::snprintf(text, sizeof text, "%.4gM", value / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.6g%s", value, unit);
  }
  return text;
}

PlotScale scale_of(const PlotAxis& axis, const std::vector<PlotLine>& lines,
                   double std::pair<double, double>::*value) {
  double low = lines[0].points[0].*value, high = low;
  for (const PlotLine& line : lines) {
    for (const auto& point : line.points) {
      low = std::min(low, point.*value);
      high = std::max(high, point.*value);
    }
  }
  return PlotScale(axis, low, high);
}

}  // namespace

std::string plot_svg(const std::string& title, const PlotAxis& x, const PlotAxis& y,
                     const std::vector<PlotLine>& lines,
                     const std::vector<std::pair<double, double>>& marks) {
  const PlotScale across = scale_of(x, lines, &std::pair<double, double>::first);
  const PlotScale up = scale_of(y, lines, &std::pair<double, double>::second);
  const auto px = [&](double value) { return kPlotLeft + kPlotWidth * across.at(value); };
  const auto py = [&](double value) { return kPlotTop + kPlotHeight * (1 - up.at(value)); };
  std::string out;
  svg::print(out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"780\" height=\"400\" "
             "font-family=\"sans-serif\" font-size=\"12\">\n"
             "<rect width=\"780\" height=\"400\" fill=\"white\"/>\n"
             "<text x=\"%.0f\" y=\"22\" font-size=\"14\">%s</text>\n",
             kPlotLeft, svg::escaped(title).c_str());
  for (const double value : across.ticks()) {
    svg::print(out,
               "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%.1f\" "
               "text-anchor=\"middle\">%s</text>\n",
               px(value), kPlotTop, kPlotTop + kPlotHeight, px(value), kPlotTop + kPlotHeight + 16,
               axis_number(x, value).c_str());
  }
  for (const double value : up.ticks()) {
    svg::print(out,
               "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%.1f\" "
               "text-anchor=\"end\">%s</text>\n",
               kPlotLeft, py(value), kPlotLeft + kPlotWidth, kPlotLeft - 6, py(value) + 4,
               axis_number(y, value).c_str());
  }
  svg::print(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
             kPlotLeft + kPlotWidth / 2, kPlotTop + kPlotHeight + 38, svg::escaped(x.name).c_str());
  svg::print(out,
             "<text x=\"18\" y=\"%.1f\" text-anchor=\"middle\" transform=\"rotate(-90 18 %.1f)\">"
             "%s</text>\n",
             kPlotTop + kPlotHeight / 2, kPlotTop + kPlotHeight / 2, svg::escaped(y.name).c_str());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const char* colour = kPlotColours[i % std::size(kPlotColours)];
    out += "<polyline fill=\"none\" stroke=\"" + std::string(colour) +
           "\" stroke-width=\"1.8\" points=\"";
    for (const auto& [px_value, py_value] : lines[i].points) {
      svg::print(out, "%.1f,%.1f ", px(px_value), py(py_value));
    }
    out += "\"/>\n";
    svg::print(out, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>\n",
               kPlotLeft + kPlotWidth + 10, kPlotTop + 14 + 18 * static_cast<double>(i), colour,
               svg::escaped(lines[i].name).c_str());
  }
  for (const auto& [mark_x, mark_y] : marks) {
    svg::print(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"none\" stroke=\"#222\"/>\n",
               px(mark_x), py(mark_y));
  }
  out += "</svg>\n";
  return out;
}

}  // namespace espalier::tools
