#include "tools/report/measure_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/report/line_plot.h"

namespace espalier::tools {
namespace {

// Null where a fit says nothing.
Json known(double value) { return value > 0 ? Json(value) : Json(); }

std::string lambda_text(double lambda) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", lambda);
  return lambda > 0 ? text : "-";
}

std::uint64_t picoseconds(double seconds) {
  return static_cast<std::uint64_t>(std::max(0.0, std::round(seconds * 1e12)));
}

// A message alone takes 2 o longer than in a stream. Nodes that share processors take turns: there
// o is what a further message costs.
void add_overhead(const Measured& measured, predict::Model& model) {
  const MeasuredSize& small = measured.sizes.front();
  if (shares_processors(measured)) {
    const double alone = shared_overhead(small.timings, measured.processors);
    model.overhead_ps = picoseconds(alone);
    const MeasuredSize& large = measured.sizes.back();
    const double with_bytes = shared_overhead(large.chain_gap.seconds, large.gap.seconds,
                                              measured.ranks_on_host, measured.processors);
    if (large.bytes > 0 && with_bytes > alone) {
      const double part = (with_bytes - alone) / static_cast<double>(large.bytes) * 1e15;
      model.overhead_fs = std::min(static_cast<std::uint64_t>(part), predict::kMaxFsPerByte);
    }
    // A hop is the link's time, o twice, and the time to wake the next rank.
    model.wake_ps = picoseconds(measured.hop.seconds - small.gap.seconds - 2 * alone);
    return;
  }
  const MeasuredTime &alone = small.one_way, &block = small.gap;
  if (block.seconds <= 0 || block.seconds >= alone.seconds) return;
  model.overhead_ps = picoseconds((alone.seconds - block.seconds) / 2);
  model.overhead = {std::min(model.overhead_ps, picoseconds((alone.low - block.high) / 2)),
                    std::max(model.overhead_ps, picoseconds((alone.high - block.low) / 2))};
}

}  // namespace

bool shares_processors(const Measured& measured) {
  return measured.processors > 0 && measured.ranks_on_host > measured.processors;
}

void evaluate(Measured& measured) {
  std::vector<double> bytes, seconds;
  std::vector<SizeTime> samples;
  for (MeasuredSize& size : measured.sizes) {
    size.postal = fit_postal(size.timings);
    bytes.push_back(static_cast<double>(size.bytes));
    seconds.push_back(size.postal.one_way_s);
    size.one_way.seconds = size.postal.one_way_s;
    samples.push_back({size.bytes, size.one_way});
  }
  measured.line = fit_line(bytes, seconds);
  for (MeasuredSize& size : measured.sizes) {
    if (samples.size() < 2) {
      size.line = measured.line;
      continue;
    }
    predict::LinkCost cost{.lines = lines_through(samples)};
    const predict::CostLine& line = cost.line(size.bytes);
    size.line = {static_cast<double>(line.alpha_ps) * 1e-12,
                 static_cast<double>(line.beta_fs) * 1e-15};
  }
}

predict::Model measured_model(const Measured& measured,
                              const std::vector<predict::CombineCost>& combines,
                              topology::LinkClass link_class) {
  predict::Model model = predict::default_model();
  std::vector<SizeTime> sizes;
  for (const MeasuredSize& size : measured.sizes) {
    sizes.push_back({size.bytes, size.gap.seconds > 0 ? size.gap : size.one_way});
  }
  predict::LinkCost& cost = model.links[static_cast<std::size_t>(link_class)];
  model.is_given[static_cast<std::size_t>(link_class)] = true;
  cost.lines = lines_through(sizes);
  add_overhead(measured, model);
  model.combines = combines;
  for (const predict::CombineCost& one : combines) {
    model.gamma_fs = std::max(model.gamma_fs, one.op == Op::kSum ? one.gamma_fs : 0);
  }
  model.cores = measured.processors;
  model.found_by = "espalier measure --provider " + measured.provider + ", " +
                   counted(measured.repetitions, "repetition");
  return model;
}

std::string measured_json(const Measured& measured) {
  Json out = {{"provider", measured.provider},   {"repetitions", measured.repetitions},
              {"receivers", measured.receivers}, {"processors", measured.processors},
              {"alpha_s", measured.line.alpha},  {"beta_s_per_byte", measured.line.beta}};
  out["sizes"] = Json::array();
  for (const MeasuredSize& size : measured.sizes) {
    Json row = {{"bytes", size.bytes},
                {"send_s", known(size.postal.send_s)},
                {"one_way_s", size.postal.one_way_s},
                {"lambda", known(size.postal.lambda)},
                {"lambda_quartiles", {known(size.lambda_low), known(size.lambda_high)}},
                {"lambda_echo", known(size.postal.echo_lambda)},
                {"lambda_return", known(size.postal.return_lambda)},
                {"alpha_s", size.line.alpha},
                {"beta_s_per_byte", size.line.beta},
                {"gap_s", known(size.gap.seconds)}};
    row["timings"] = Json::array();
    for (std::size_t i = 0; i < size.timings.size(); ++i) {
      row["timings"].push_back({{"experiment", experiment_name(size.timings[i].experiment)},
                                {"receivers", size.timings[i].receivers},
                                {"median_s", size.timings[i].seconds},
                                {"least_s", size.least[i]},
                                {"most_s", size.most[i]}});
    }
    out["sizes"].push_back(row);
  }
  return out.dump(2) + "\n";
}

std::string measured_text(const Measured& measured) {
  char line[256];
  std::snprintf(line, sizeof line,
                "over %s: one way alpha %s + beta %.3g ns/B, through all sizes; medians of %u\n",
                measured.provider.c_str(), seconds_text(measured.line.alpha).c_str(),
                measured.line.beta * 1e9, measured.repetitions);
  std::string text = line;
  // Then receivers take processor time from the sender: their work is measured as part of the send.
  if (shares_processors(measured)) {
    text += std::to_string(measured.ranks_on_host) + " processes share " +
            counted(measured.processors, "processor") +
            ": 'send' includes work of receivers, and lambda may be below 1\n";
  }
  text +=
      "     bytes        send     one way  lambda    quartiles    echo  return       alpha   "
      "beta ns/B\n";
  for (const MeasuredSize& size : measured.sizes) {
    const Postal& postal = size.postal;
    const std::string spread = lambda_text(size.lambda_low) + "-" + lambda_text(size.lambda_high);
    std::snprintf(line, sizeof line, "%10llu  %10s  %10s  %6s  %11s  %6s  %6s  %10s  %10.3g\n",
                  static_cast<unsigned long long>(size.bytes),
                  postal.send_s > 0 ? seconds_text(postal.send_s).c_str() : "-",
                  seconds_text(postal.one_way_s).c_str(), lambda_text(postal.lambda).c_str(),
                  spread.c_str(), lambda_text(postal.echo_lambda).c_str(),
                  lambda_text(postal.return_lambda).c_str(), seconds_text(size.line.alpha).c_str(),
                  size.line.beta * 1e9);
    text += line;
  }
  return text;
}

std::string measured_svg(const Measured& measured) {
  using Curve = std::pair<const char*, double Postal::*>;
  const auto plot = [&](const std::string& title, const PlotAxis& y, double unit,
                        const std::vector<Curve>& curves) {
    std::vector<PlotLine> lines;
    for (const auto& [name, value] : curves) {
      PlotLine line{name, {}};
      for (const MeasuredSize& size : measured.sizes) {
        if (size.postal.*value <= 0) continue;
        line.points.emplace_back(std::max(1.0, static_cast<double>(size.bytes)),
                                 size.postal.*value / unit);
      }
      if (!line.points.empty()) lines.push_back(std::move(line));
    }
    return lines.empty() ? "" : plot_svg(title, {"bytes", true, true}, y, lines);
  };
  char beta[32];
  std::snprintf(beta, sizeof beta, "%.3g", measured.line.beta * 1e9);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"780\" height=\"800\">\n" +
         plot("Over " + measured.provider + ": one way " + seconds_text(measured.line.alpha) +
                  " + " + beta + " ns/B * bytes",
              {"us", true}, 1e-6,
              {{"one way, lambda t_s", &Postal::one_way_s}, {"send, t_s", &Postal::send_s}}) +
         "<svg y=\"400\">\n" +
         plot("lambda", {"lambda"}, 1,
              {{"both experiments", &Postal::lambda},
               {"echo", &Postal::echo_lambda},
               {"return", &Postal::return_lambda}}) +
         "</svg>\n</svg>\n";
}

}  // namespace espalier::tools
