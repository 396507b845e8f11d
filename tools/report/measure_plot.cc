// The picture of `espalier measure`.

#include <algorithm>
#include <cmath>
#include <functional>

#include "tools/common/output.h"
#include "tools/report/measure_report.h"
#include "topology/svg.h"

namespace espalier::tools {
namespace {

constexpr double kLeft = 80, kWidth = 520, kHeight = 220;
constexpr double kTimesTop = 50, kLambdaTop = 340;

// Where values of one axis are drawn.
struct Axis {
  double least = 0, most = 1;  // values, or their logarithms
  bool log = false;
  double from = 0, to = 1;  // pixels
  [[nodiscard]] double at(double value) const {
    const double scaled = log ? std::log10(value) : value;
    return from + (to - from) * (scaled - least) / (most - least);
  }
};

Axis log_axis(double least, double most, double from, double to) {
  Axis axis{std::floor(std::log10(least)), std::ceil(std::log10(most)), true, from, to};
  if (axis.most <= axis.least) axis.most = axis.least + 1;
  return axis;
}

// Message sizes go by powers of two; 0 bytes are drawn at 1.
double position(std::uint64_t bytes) {
  return std::log2(static_cast<double>(std::max<std::uint64_t>(1, bytes)));
}

std::string size_text(std::uint64_t bytes) {
  if (bytes != 0 && bytes % (1u << 20) == 0) return std::to_string(bytes >> 20) + "M";
  if (bytes != 0 && bytes % 1024 == 0) return std::to_string(bytes >> 10) + "K";
  return std::to_string(bytes);
}

class Plot {
 public:
  explicit Plot(const Measured& measured) : measured_(measured) {
    const double last = position(measured.sizes.back().bytes);
    x_ = Axis{position(measured.sizes.front().bytes), last, false, kLeft, kLeft + kWidth};
    if (x_.most <= x_.least) x_.most = x_.least + 1;
  }

  std::string draw() {
    svg::print(out_,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"620\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n");
    svg::print(out_, "<rect width=\"640\" height=\"620\" fill=\"white\"/>\n");
    svg::print(out_,
               "<text x=\"%g\" y=\"24\" font-size=\"15\">Over %s: one way %s + %.3g ns/B * "
               "bytes</text>\n",
               kLeft, svg::escaped(measured_.provider).c_str(),
               seconds_text(measured_.line.alpha).c_str(), measured_.line.beta * 1e9);
    times();
    lambdas();
    svg::print(out_, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">bytes</text>\n",
               kLeft + kWidth / 2, kLambdaTop + kHeight + 40);
    out_ += "</svg>\n";
    return out_;
  }

 private:
  using Value = std::function<double(const MeasuredSize&)>;

  void frame(double top) {
    svg::print(out_,
               "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" "
               "stroke=\"#888\"/>\n",
               kLeft, top, kWidth, kHeight);
    for (const MeasuredSize& size : measured_.sizes) {
      svg::print(out_, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
                 x_.at(position(size.bytes)), top + kHeight + 18, size_text(size.bytes).c_str());
    }
  }

  void mark(const Axis& y, double value, const std::string& label) {
    svg::print(out_, "<line x1=\"%g\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", kLeft,
               y.at(value), kLeft + kWidth, y.at(value));
    svg::print(out_, "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", kLeft - 6,
               y.at(value) + 4, label.c_str());
  }

  // A line through the sizes that have a value; its name goes to the upper left, `row` lines down.
  void curve(const Axis& y, double top, int row, const char* colour, const char* name,
             const Value& value) {
    std::string points;
    for (const MeasuredSize& size : measured_.sizes) {
      const double v = value(size);
      if (v <= 0) continue;
      const double x = x_.at(position(size.bytes));
      svg::print(points, "%.1f,%.1f ", x, y.at(v));
      svg::print(out_, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x, y.at(v),
                 colour);
    }
    out_ += "<polyline fill=\"none\" stroke=\"";
    out_ += colour;
    out_ += "\" points=\"" + points + "\"/>\n";
    svg::print(out_, "<text x=\"%g\" y=\"%g\" fill=\"%s\">%s</text>\n", kLeft + 10,
               top + 18 + 16 * row, colour, name);
  }

  void times() {
    double least = 1;
    double most = 1e-9;
    for (const MeasuredSize& size : measured_.sizes) {
      for (const double seconds : {size.postal.send_s, size.postal.one_way_s}) {
        if (seconds <= 0) continue;
        least = std::min(least, seconds);
        most = std::max(most, seconds);
      }
    }
    const Axis y = log_axis(least, most, kTimesTop + kHeight, kTimesTop);
    frame(kTimesTop);
    for (double power = y.least; power <= y.most; ++power) {
      mark(y, std::pow(10, power), seconds_text(std::pow(10, power)));
    }
    curve(y, kTimesTop, 0, "#1f6f43", "one way, lambda t_s",
          [](const MeasuredSize& size) { return size.postal.one_way_s; });
    curve(y, kTimesTop, 1, "#b2541a", "send, t_s",
          [](const MeasuredSize& size) { return size.postal.send_s; });
  }

  void lambdas() {
    double most = 2;
    for (const MeasuredSize& size : measured_.sizes) {
      most =
          std::max({most, size.postal.lambda, size.postal.echo_lambda, size.postal.return_lambda});
    }
    const Axis y{0, std::ceil(most), false, kLambdaTop + kHeight, kLambdaTop};
    frame(kLambdaTop);
    const double step = std::max(1.0, std::ceil(y.most / 8));
    for (double value = 0; value <= y.most; value += step) {
      mark(y, value, std::to_string(static_cast<int>(value)));
    }
    curve(y, kLambdaTop, 0, "#33508c", "lambda, both experiments",
          [](const MeasuredSize& size) { return size.postal.lambda; });
    curve(y, kLambdaTop, 1, "#9a9a9a", "echo",
          [](const MeasuredSize& size) { return size.postal.echo_lambda; });
    curve(y, kLambdaTop, 2, "#c9a227", "return",
          [](const MeasuredSize& size) { return size.postal.return_lambda; });
  }

  const Measured& measured_;
  Axis x_;
  std::string out_;
};

}  // namespace

std::string measured_svg(const Measured& measured) { return Plot(measured).draw(); }

}  // namespace espalier::tools
