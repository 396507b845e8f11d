#include "tools/report/measure_report.h"

#include <cstdio>

#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/measure/cost_model.h"

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
  std::vector<CostModel::Sample> samples;
  for (MeasuredSize& size : measured.sizes) {
    size.postal = fit_postal(size.timings);
    bytes.push_back(static_cast<double>(size.bytes));
    seconds.push_back(size.postal.one_way_s);
    samples.push_back({bytes.back(), seconds.back()});
  }
  measured.line = fit_line(bytes, seconds);
  for (MeasuredSize& size : measured.sizes) {
    if (samples.size() < 2) {
      size.line = measured.line;
      continue;
    }
    const CostModel::Line line = CostModel(samples).line(static_cast<double>(size.bytes));
    size.line = {line.alpha, line.beta};
  }
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
