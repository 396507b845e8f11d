#include "tools/report/explain_report.h"

#include <algorithm>
#include <cstdio>

#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/report/line_plot.h"

namespace espalier::tools {
namespace {

constexpr std::size_t kPlotted = 16;  // candidates in a picture

double to_seconds(predict::Picoseconds time) { return static_cast<double>(time) * 1e-12; }

double ratio(predict::Picoseconds time, predict::Picoseconds to) {
  return to == 0 ? 0 : static_cast<double>(time) / static_cast<double>(to);
}

std::string ratio_text(predict::Picoseconds time, predict::Picoseconds to) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", ratio(time, to));
  return to == 0 ? "-" : text;
}

// Why the candidate was not taken.
std::string verdict_text(const planner::Ranking& ranking, std::size_t place) {
  const planner::Estimate& one = ranking.estimates[place];
  if (place == 0) return "taken";
  const std::string slower = ratio_text(one.time, ranking.best().time) + " times the best";
  if (one.is_by_steps) return slower + ", by its steps alone";
  return one.time == ranking.best().time ? "as fast, and later in the list" : slower;
}

std::string header(const planner::Choice& choice, const std::string& topology) {
  const planner::ChoiceRequest& request = choice.request();
  const std::string found_by = request.model.found_by;
  return std::string(collective_name(request.plan.collective)) + " on " + one_line(topology) +
         ": predicted from " + (found_by.empty() ? "a model" : one_line(found_by)) +
         (choice.tuning() == nullptr ? "" : " and tuned by runs") + ", model " +
         hex(request.model.digest()) + "\n";
}

std::string table(const planner::Choice& choice, const planner::Ranking& ranking,
                  std::size_t width) {
  char line[512];
  std::string text = counted(ranking.bytes, "byte") + ":\n";
  std::snprintf(line, sizeof line, "  %-*s %8s %8s %12s %8s  verdict\n", static_cast<int>(width),
                "candidate", "N", "steps", "predicted", "bound x");
  text += line;
  for (std::size_t place = 0; place < ranking.estimates.size(); ++place) {
    const planner::Estimate& one = ranking.estimates[place];
    std::snprintf(line, sizeof line, "  %-*s %8lld %8lld %12s %8s  ", static_cast<int>(width),
                  choice.candidates()[one.candidate].name.c_str(),
                  static_cast<long long>(one.blocks), static_cast<long long>(one.steps),
                  seconds_text(to_seconds(one.time)).c_str(),
                  ratio_text(one.time, ranking.bound).c_str());
    text += line + verdict_text(ranking, place) + "\n";
  }
  return text;
}

// Empty: 0.
std::string number_text(std::uint32_t number) { return number == 0 ? "" : std::to_string(number); }

Json estimate_json(const planner::Choice& choice, const planner::Ranking& ranking,
                   const planner::Estimate& one) {
  const planner::Candidate& candidate = choice.candidates()[one.candidate];
  return {{"candidate", candidate.name},
          {"algorithm", candidate.plan.algorithm->name},
          {"run_length", planner::run_length_text(candidate.plan)},
          {"radix", number_text(candidate.plan.radix)},
          {"lambda", planner::text_of(candidate.plan.lambda)},
          {"ratio", planner::text_of(candidate.plan.ratio)},
          {"embedding", candidate.plan.placement.name()},
          {"blocks", one.blocks},
          {"steps", one.steps},
          {"predicted_ps", one.time},
          {"by_steps", one.is_by_steps},
          {"times_bound", ratio(one.time, ranking.bound)},
          {"times_best", ratio(one.time, ranking.best().time)}};
}

}  // namespace

std::vector<Crossover> crossovers(const std::vector<planner::Ranking>& rankings) {
  std::vector<Crossover> all;
  for (std::size_t i = 1; i < rankings.size(); ++i) {
    const std::size_t before = rankings[i - 1].best().candidate;
    const std::size_t after = rankings[i].best().candidate;
    if (before != after) all.push_back({rankings[i].bytes, before, after});
  }
  return all;
}

std::string explain_text(const planner::Choice& choice, const std::string& topology,
                         const std::vector<planner::Ranking>& rankings) {
  std::string text = header(choice, topology);
  std::size_t width = 9;
  for (const planner::Candidate& candidate : choice.candidates()) {
    width = std::max(width, candidate.name.size());
  }
  for (const planner::Ranking& ranking : rankings) text += table(choice, ranking, width);
  for (const Crossover& one : crossovers(rankings)) {
    text += "from " + counted(one.bytes, "byte") + " on " + choice.candidates()[one.after].name +
            " is faster than " + choice.candidates()[one.before].name + "\n";
  }
  for (const planner::Candidate& candidate : choice.candidates()) {
    if (candidate.dropped.empty()) continue;
    text += "dropped " + candidate.name + ": " + one_line(candidate.dropped) + "\n";
  }
  return text;
}

std::string explain_json(const planner::Choice& choice, const std::string& topology,
                         const std::vector<planner::Ranking>& rankings) {
  const planner::ChoiceRequest& request = choice.request();
  Json out = {{"topology", topology},
              {"collective", collective_name(request.plan.collective)},
              {"model", hex(request.model.digest())},
              {"found_by", request.model.found_by},
              {"tuned", choice.tuning() != nullptr}};
  out["sizes"] = Json::array();
  for (const planner::Ranking& ranking : rankings) {
    Json row = {{"bytes", ranking.bytes}, {"bound_ps", ranking.bound}};
    row["ranking"] = Json::array();
    for (const planner::Estimate& one : ranking.estimates) {
      row["ranking"].push_back(estimate_json(choice, ranking, one));
    }
    out["sizes"].push_back(row);
  }
  out["dropped"] = Json::array();
  for (const planner::Candidate& candidate : choice.candidates()) {
    if (candidate.dropped.empty()) continue;
    out["dropped"].push_back({{"candidate", candidate.name}, {"reason", candidate.dropped}});
  }
  out["crossovers"] = Json::array();
  for (const Crossover& one : crossovers(rankings)) {
    out["crossovers"].push_back({{"bytes", one.bytes},
                                 {"before", choice.candidates()[one.before].name},
                                 {"after", choice.candidates()[one.after].name}});
  }
  return out.dump(2) + "\n";
}

std::string explain_svg(const planner::Choice& choice, const std::string& topology,
                        const std::vector<planner::Ranking>& rankings) {
  // The candidates that are fastest somewhere come first, then the others by their last place.
  std::vector<std::size_t> order;
  const auto add = [&order](std::size_t candidate) {
    if (std::find(order.begin(), order.end(), candidate) == order.end()) order.push_back(candidate);
  };
  for (const planner::Ranking& ranking : rankings) add(ranking.best().candidate);
  for (const planner::Estimate& one : rankings.back().estimates) add(one.candidate);
  order.resize(std::min(order.size(), kPlotted));
  std::vector<PlotLine> lines;
  for (const std::size_t candidate : order) {
    PlotLine line{choice.candidates()[candidate].name, {}};
    for (const planner::Ranking& ranking : rankings) {
      for (const planner::Estimate& one : ranking.estimates) {
        if (one.candidate != candidate) continue;
        line.points.emplace_back(static_cast<double>(std::max<std::uint64_t>(1, ranking.bytes)),
                                 to_seconds(std::max<predict::Picoseconds>(1, one.time)) * 1e6);
      }
    }
    lines.push_back(std::move(line));
  }
  PlotLine marks{"crossovers", {}};
  for (const Crossover& one : crossovers(rankings)) {
    for (const planner::Ranking& ranking : rankings) {
      if (ranking.bytes != one.bytes) continue;
      marks.points.emplace_back(
          static_cast<double>(std::max<std::uint64_t>(1, one.bytes)),
          to_seconds(std::max<predict::Picoseconds>(1, ranking.best().time)) * 1e6);
    }
  }
  return plot_svg(std::string(collective_name(choice.request().plan.collective)) + " on " +
                      topology + ", predicted",
                  {"bytes", true, true}, {"us", true}, lines, marks.points);
}

}  // namespace espalier::tools
