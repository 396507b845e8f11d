// docs/results/choice.md: what `auto` takes on each family of topologies, for each collective and
// size, its simulated time, and the best simulated time of all candidates.
//
//   choice [TOPOLOGY]    prints the page, or the section of one topology
//   choice --check PAGE  compares some rows (ESPALIER_WHOLE=1: all) with those of the page
//
// Exit status 1 if a row differs, or if a candidate is simulated to be more than 5 % faster than
// the one that was taken. Candidates that are predicted to take 1.5 times the best are not
// simulated: predictions are within 20 % of simulation (prediction_test.cc).

#include "tools/choose/choice.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "espalier/collectives/algorithms/algorithms.h"
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
  std::string text;
  std::uint64_t loss_permille = 0;
};

std::string time_text(predict::Picoseconds time) {
  return seconds_text(static_cast<double>(time) * 1e-12);
}

predict::Picoseconds simulated_time(const Choice& choice, const Estimate& estimate,
                                    std::uint64_t bytes) {
  const Candidate& candidate = choice.candidates()[estimate.candidate];
  const Operator op = operator_of(choice.request());
  return testing::simulated(*candidate.selected->topology, candidate.programs, op,
                            bytes / std::max(1u, element_bytes(op)), testing::LineCost{},
                            Switching::kCutThrough);
}

ChoiceRow make_row(const Choice& choice, std::uint64_t bytes) {
  const Ranking ranking = choice.rank(bytes);
  const predict::Picoseconds taken = simulated_time(choice, ranking.best(), bytes);
  predict::Picoseconds best = taken;
  std::size_t best_candidate = ranking.best().candidate;
  for (const Estimate& one : ranking.estimates) {
    if (one.candidate == ranking.best().candidate || one.time / 3 > ranking.best().time / 2)
      continue;
    const predict::Picoseconds time = simulated_time(choice, one, bytes);
    if (time >= best) continue;
    best = time;
    best_candidate = one.candidate;
  }
  ChoiceRow row;
  row.loss_permille = best == 0 ? 0 : (taken - best) * 1000 / best;
  char line[512];
  std::snprintf(
      line, sizeof line, "| %s | %llu | %s | %lld | %s | %s | %s%s | %.2f | %s |",
      choice.request().selection.collective.c_str(), static_cast<unsigned long long>(bytes),
      choice.candidates()[ranking.best().candidate].name.c_str(),
      static_cast<long long>(ranking.best().blocks), time_text(ranking.best().time).c_str(),
      time_text(taken).c_str(), time_text(best).c_str(),
      best_candidate == ranking.best().candidate
          ? ""
          : (" (" + choice.candidates()[best_candidate].name + ")").c_str(),
      best == 0 ? 1.0 : static_cast<double>(taken) / static_cast<double>(best),
      time_text(ranking.bound).c_str());
  row.text = line;
  return row;
}

std::vector<ChoiceRow> rows_of(const char* topology, Collective collective) {
  ChoiceRequest request;
  request.selection.topology = topology;
  request.selection.collective = collective_name(collective);
  const Choice choice(std::move(request));
  std::vector<ChoiceRow> rows;
  for (const std::uint64_t bytes : kSizesToChoose) {
    rows.push_back(make_row(choice, collective == Collective::kBarrier ? 0 : bytes));
    if (collective == Collective::kBarrier) break;
  }
  return rows;
}

constexpr const char* kHead =
    "# What `auto` takes\n\n"
    "Printed by `build/tests/predict/choice`; a test compares a part of it, and `ESPALIER_WHOLE=1` "
    "all of it. The model is the default\none for a fabric: alpha 20 us, beta 1 ns/B, cut-through. "
    "[choosing.md](../choosing.md) explains the candidates.\n\n"
    "* *bytes*: the whole message; one rank's part in scatter, gather, allgather, reduce-scatter "
    "and "
    "all-to-all.\n"
    "* *predicted*, *simulated*: the time of the candidate that `auto` takes.\n"
    "* *best*: the least simulated time of all candidates, and which one has it if `auto` took "
    "another; *ratio* is simulated / best.\n"
    "* *bound*: no schedule with blocks of equal length takes less.\n";

constexpr const char* kTableHead =
    "| collective | bytes | `auto` takes | N | predicted | simulated | best | ratio | bound |\n"
    "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";

// The texts of the page's rows, by topology.
int check(const char* path) {
  std::ifstream in(path);
  std::stringstream content;
  content << in.rdbuf();
  const std::string page = content.str();
  std::size_t pair = 0, compared = 0;
  for (const char* topology : kTopologies) {
    const std::size_t begin = page.find(std::string("\n## ") + topology + "\n");
    const std::size_t end = page.find("\n## ", begin == std::string::npos ? begin : begin + 1);
    const std::string section = begin == std::string::npos ? "" : page.substr(begin, end - begin);
    for (const Collective collective : kAllCollectives) {
      const bool sampled =
          pair++ % kSampleStride == 0 && topology::parse(topology).value()->ranks() <= kSampleRanks;
      if (!whole() && !sampled) continue;
      for (const ChoiceRow& row : rows_of(topology, collective)) {
        ++compared;
        if (section.find("\n" + row.text + "\n") != std::string::npos) continue;
        std::printf("%s: not below %s: %s\n", path, topology, row.text.c_str());
        return 1;
      }
    }
  }
  std::printf("%zu rows of %s are as printed\n", compared, path);
  return compared == 0 ? 1 : 0;
}

int print(const std::string& only) {
  std::uint64_t worst = 0;
  if (only.empty()) std::fputs(kHead, stdout);
  for (const char* topology : kTopologies) {
    if (!only.empty() && only != topology) continue;
    std::printf("\n## %s\n\n%s", topology, kTableHead);
    for (const Collective collective : kAllCollectives) {
      for (const ChoiceRow& row : rows_of(topology, collective)) {
        std::printf("%s\n", row.text.c_str());
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
  std::fprintf(stderr, "choice: expected a topology of the page, --check PAGE, or nothing\n");
  return 2;
}
