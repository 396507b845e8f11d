// The record of docs/results/choice.md: what `auto` takes on each family of topologies, for each
// collective and size, its simulated time, and the best simulated time of all candidates. page.py
// makes the page of it.
//
//   choice [TOPOLOGY]      prints all rows, or those of one topology
//   choice --check RECORD  compares some rows (ESPALIER_WHOLE=1: all) with those of the record
//
// Exit status 1 if a row differs, or if a candidate is simulated to be more than 5 % faster than
// the one that was taken. Candidates that are predicted to take 1.5 times the best are not
// simulated: predictions are within 20 % of simulation (prediction_test.cc).

#include "planner/choose/choice.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "planner/workload/reference.h"
#include "tests/csv_line.h"
#include "tests/predict/simulated.h"
#include "tests/whole.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

constexpr const char* kTopologies[] = {
    "complete:8",        "complete:16",  "complete:100",        "mesh:4x4",
    "mesh:5x7",          "mesh:8x8",     "fattree:k=4,h=2,c=1", "fattree:k=3,h=3,c=1",
    "fattree:k=4x3,c=1", "crossbar:4x4", "crossbar:2x2x4"};
constexpr std::uint64_t kSizesToChoose[] = {8, 4096, 65536, 1 << 20, 64 << 20};
constexpr std::uint64_t kMaxLossPermille = 50;
// A sampled check takes every so many-th pair of topology and collective, of few ranks.
constexpr std::size_t kSampleStride = 7;
constexpr std::uint32_t kSampleRanks = 40;

struct ChoiceRow {
  std::string line;
  std::uint64_t loss_permille = 0;
};

std::string time_text(predict::Picoseconds time) {
  return seconds_text(static_cast<double>(time) * 1e-12);
}

predict::Picoseconds simulated_time(const planner::Choice& choice,
                                    const planner::Estimate& estimate, std::uint64_t bytes) {
  const planner::Candidate& candidate = choice.candidates()[estimate.candidate];
  const Operator op = choice.request().op;
  return testing::simulated(*candidate.schedule->topology, candidate.programs, op,
                            bytes / std::max(1u, element_bytes(op)), testing::LineCost{},
                            Switching::kCutThrough);
}

ChoiceRow make_row(const planner::Choice& choice, std::uint64_t bytes) {
  const planner::Ranking ranking = tools::or_bad_input(choice.rank(bytes));
  const predict::Picoseconds taken = simulated_time(choice, ranking.best(), bytes);
  predict::Picoseconds best = taken;
  std::size_t best_candidate = ranking.best().candidate;
  for (const planner::Estimate& one : ranking.estimates) {
    if (one.candidate == ranking.best().candidate || one.time / 3 > ranking.best().time / 2)
      continue;
    const predict::Picoseconds time = simulated_time(choice, one, bytes);
    if (time >= best) continue;
    best = time;
    best_candidate = one.candidate;
  }
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.2f",
                best == 0 ? 1.0 : static_cast<double>(taken) / static_cast<double>(best));
  const std::vector<planner::Candidate>& candidates = choice.candidates();
  const bool is_best = best_candidate == ranking.best().candidate;
  return {testing::csv_line(
              {choice.request().plan.topology->spec(),
               collective_name(choice.request().plan.collective), std::to_string(bytes),
               candidates[ranking.best().candidate].name, std::to_string(ranking.best().blocks),
               time_text(ranking.best().time), time_text(taken), time_text(best),
               is_best ? "" : candidates[best_candidate].name, ratio, time_text(ranking.bound)}),
          best == 0 ? 0 : (taken - best) * 1000 / best};
}

std::vector<ChoiceRow> rows_of(const char* topology, Collective collective) {
  planner::ChoiceRequest request;
  request.plan.topology = *topology::parse(topology);
  request.plan.collective = collective;
  request.op = reference::default_operator(collective);
  const planner::Choice choice = tools::or_bad_input(planner::Choice::make(std::move(request)));
  std::vector<ChoiceRow> rows;
  for (const std::uint64_t bytes : kSizesToChoose) {
    rows.push_back(make_row(choice, collective == Collective::kBarrier ? 0 : bytes));
    if (collective == Collective::kBarrier) break;
  }
  return rows;
}

int check(const char* path) {
  std::ifstream in(path);
  std::stringstream content;
  content << in.rdbuf();
  const std::string record = content.str();
  std::size_t pair = 0, compared = 0;
  for (const char* topology : kTopologies) {
    for (const Collective collective : kAllCollectives) {
      const bool sampled =
          pair++ % kSampleStride == 0 && topology::parse(topology).value()->ranks() <= kSampleRanks;
      if (!whole() && !sampled) continue;
      for (const ChoiceRow& row : rows_of(topology, collective)) {
        ++compared;
        if (record.find("\n" + row.line) != std::string::npos) continue;
        std::printf("%s has no line %s", path, row.line.c_str());
        return 1;
      }
    }
  }
  const auto lines = static_cast<std::size_t>(std::count(record.begin(), record.end(), '\n'));
  if (whole() && lines != compared + 1) {
    std::printf("%s has %zu lines, expected %zu\n", path, lines, compared + 1);
    return 1;
  }
  std::printf("%zu rows of %s are as printed\n", compared, path);
  return compared == 0 ? 1 : 0;
}

int print(const std::string& only) {
  std::uint64_t worst = 0;
  std::fputs(testing::csv_line({"topology", "collective", "bytes", "taken", "N", "predicted",
                                "simulated", "best", "best by", "ratio", "bound"})
                 .c_str(),
             stdout);
  for (const char* topology : kTopologies) {
    if (!only.empty() && only != topology) continue;
    for (const Collective collective : kAllCollectives) {
      for (const ChoiceRow& row : rows_of(topology, collective)) {
        std::fputs(row.line.c_str(), stdout);
        worst = std::max(worst, row.loss_permille);
      }
      std::fflush(stdout);
    }
  }
  if (worst <= kMaxLossPermille) return 0;
  std::fprintf(stderr, "a candidate is %.1f %% faster than the one that was taken\n",
               static_cast<double>(worst) / 10);
  return 1;
}

}  // namespace
}  // namespace espalier::tools

int main(int argc, char** argv) {
  try {
    if (argc == 1) return espalier::tools::print("");
    if (argc == 3 && std::strcmp(argv[1], "--check") == 0) return espalier::tools::check(argv[2]);
    if (argc == 2) return espalier::tools::print(argv[1]);
  } catch (const espalier::tools::Failure& failure) {
    std::fprintf(stderr, "choice: %s\n", failure.line.c_str());
    return failure.exit_status;
  }
  std::fprintf(stderr, "choice: expected a topology of the record, --check RECORD, or nothing\n");
  return 2;
}
