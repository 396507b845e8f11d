#include "tools/report/measure_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/common/json.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

// Null where a fit says nothing.
Json known(double value) { return value > 0 ? Json(value) : Json(); }

std::string lambda_text(double lambda) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", lambda);
  return lambda > 0 ? text : "-";
}

}  // namespace

void evaluate(Measured& measured) {
  std::vector<double> bytes;
  std::vector<double> seconds;
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
    predict::LinkCost cost;
    cost.lines = lines_through(samples);
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
  for (const MeasuredSize& size : measured.sizes) sizes.push_back({size.bytes, size.one_way});
  predict::LinkCost& cost = model.links[static_cast<std::size_t>(link_class)];
  model.is_given[static_cast<std::size_t>(link_class)] = true;
  cost.lines = lines_through(sizes);
  // A message alone takes alpha + beta b + 2 o; among many, one takes alpha + beta b, or o if that
  // is longer.
  const MeasuredTime& alone = sizes.front().one_way;
  const MeasuredTime& block = measured.block;
  if (block.seconds > 0 && block.seconds < alone.seconds) {
    const auto half = [](double a, double b) {
      return static_cast<std::uint64_t>(std::max(0.0, std::round((a - b) / 2 * 1e12)));
    };
    model.overhead_ps = half(alone.seconds, block.seconds);
    model.overhead = {std::min(model.overhead_ps, half(alone.low, block.high)),
                      std::max(model.overhead_ps, half(alone.high, block.low))};
    for (predict::CostLine& line : cost.lines) {
      const std::uint64_t less = std::min(line.alpha_ps, 2 * model.overhead_ps);
      line.alpha_ps -= less;
      line.alpha.low -= std::min(line.alpha.low, less);
      line.alpha.high -= std::min(line.alpha.high, less);
      if (line.alpha_ps == 0 && line.beta_fs == 0) line.alpha_ps = line.alpha.high = 1;
    }
  }
  model.combines = combines;
  for (const predict::CombineCost& one : combines) {
    model.gamma_fs = std::max(model.gamma_fs, one.op == Op::kSum ? one.gamma_fs : 0);
  }
  model.cores = measured.processors;
  model.found_by = "espalier measure --provider " + measured.provider + ", " +
                   std::to_string(measured.repetitions) + " repetitions";
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
                {"beta_s_per_byte", size.line.beta}};
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
  if (measured.processors > 0 && measured.receivers.back() >= measured.processors) {
    text += std::to_string(measured.receivers.back() + 1) + " processes share " +
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

}  // namespace espalier::tools
