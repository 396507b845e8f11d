#include "tests/storm/single_faults_page.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "tests/storm/single_faults.h"
#include "tests/whole.h"

namespace espalier::storm {
namespace {

// The ends of a point that the page counts, in the order of its columns.
constexpr std::array kEnds = {"right",     "mismatch", "not in schedule", "corrupt",
                              "dead link", "stalled",  "other",           "promise broken"};

struct Row {
  std::set<std::string> algorithms;
  std::uint64_t points = 0;
  std::array<std::uint64_t, kEnds.size()> ends = {};

  void add(const std::string& end) {
    ++points;
    std::size_t column = 0;
    while (column + 2 < kEnds.size() && end != kEnds[column]) ++column;
    if (end == kEnds.back()) column = kEnds.size() - 1;
    ++ends[column];
  }
};

// How the point ended: the failure that its survivors name, if any does.
std::string end_of(const Outcome& outcome) {
  if (!outcome.wrong.empty()) return kEnds.back();
  for (const auto& [name, number] : outcome.verdicts) {
    if (name != "right") return name;
  }
  return "right";
}

struct PointTally {
  std::map<Collective, Row> collectives;
  std::map<Kind, Row> kinds;
  Row all;
  std::uint64_t idle = 0;  // points at which the fault did nothing

  void add(const Plan& plan, const Outcome& outcome) {
    const std::string end = end_of(outcome);
    const Kind kind = plan.faults[0].kind;
    Row& row = collectives[plan.schedule.collective];
    row.algorithms.insert(plan.schedule.algorithm);
    all.algorithms.insert(std::string(collective_name(plan.schedule.collective)) + " " +
                          plan.schedule.algorithm);
    row.add(end);
    kinds[kind].add(end);
    all.add(end);
    if (outcome.struck[static_cast<std::size_t>(kind)] == 0) ++idle;
  }
};

void print_table(const char* head, const std::map<std::string, Row>& rows, const Row& all) {
  std::printf("\n| %s | points |", head);
  for (const char* end : kEnds) std::printf(" %s |", end);
  std::printf("\n| --- |");
  for (std::size_t column = 0; column <= kEnds.size(); ++column) std::printf(" ---: |");
  std::printf("\n");
  const auto print = [](const std::string& name, const Row& row) {
    std::printf("| %s | %" PRIu64 " |", name.c_str(), std::uint64_t{row.points});
    for (const std::uint64_t number : row.ends)
      std::printf(" %" PRIu64 " |", std::uint64_t{number});
    std::printf("\n");
  };
  for (const auto& [name, row] : rows) print(name, row);
  print("all", all);
}

void print_points(const PointTally& tally, std::size_t clusters) {
  std::printf(
      "# Single faults\n\n"
      "Written by `build/tests/storm/storm --single-faults >docs/results/faults.md`; `storm "
      "--list-single-faults` lists the points. Each of the %zu\n"
      "pairs of a collective and an algorithm runs twice, on a small cluster of four to eight "
      "ranks, %zu clusters together: with eager copies and equal\n"
      "counts; and without such copies and with a count for each rank, where the algorithm takes "
      "one. A cluster runs two collectives of N = 2 blocks, one\n"
      "after the other. At each operation of each endpoint one fault strikes: each message is "
      "dropped, duplicated, overtaken by the next one, corrupted, or\n"
      "delayed by D/2; at each post and each completion the node is killed, or pauses for 2D. What "
      "is checked is what [the storm](storm.md) checks.\n\n"
      "The column names the failure that the survivors report; in *right* every survivor has its "
      "result. *Dead link* names the node that was killed or\n"
      "paused, and every other failure the link of the message. Only *stalled* may name another "
      "link: that of the node that waited longest.\n",
      tally.all.algorithms.size(), clusters);
  std::map<std::string, Row> rows;
  for (const auto& [collective, row] : tally.collectives) {
    rows[std::string(collective_name(collective)) + ", " + std::to_string(row.algorithms.size()) +
         (row.algorithms.size() == 1 ? " algorithm" : " algorithms")] = row;
  }
  print_table("collective", rows, tally.all);
  rows.clear();
  for (const auto& [kind, row] : tally.kinds) rows[kind_name(kind)] = row;
  print_table("fault", rows, tally.all);
}

std::vector<SmallCluster> clusters_or_exit() {
  auto clusters = small_clusters();
  if (clusters) return *std::move(clusters);
  std::fprintf(stderr, "storm: %s\n", clusters.error().message.c_str());
  std::exit(1);
}

}  // namespace

int run_single_faults(std::uint64_t of) {
  const std::vector<SmallCluster> clusters = clusters_or_exit();
  PointTally tally;
  std::uint64_t number = 0;
  for (const SmallCluster& cluster : clusters) {
    cluster.for_each([&](const Plan& plan) {
      if (of > 1 && !sampled(number++, of)) return;
      const Outcome outcome = run_trial(plan, cluster.schedule);
      tally.add(plan, outcome);
      if (outcome.wrong.empty()) return;
      std::printf("WRONG %s: %s\n  storm --plan %s\n", outcome.wrong_kind.c_str(),
                  outcome.wrong.c_str(), plan_text(plan).c_str());
    });
  }
  if (of > 1 && !whole()) {
    std::printf("single faults: %" PRIu64 " points of %" PRIu64 ", %" PRIu64 " promises broken\n",
                std::uint64_t{tally.all.points}, std::uint64_t{number},
                std::uint64_t{tally.all.ends.back()});
  } else {
    print_points(tally, clusters.size());
  }
  if (tally.idle > 0) {
    std::fprintf(stderr, "storm: at %" PRIu64 " points the fault did nothing\n",
                 std::uint64_t{tally.idle});
  }
  return tally.all.ends.back() == 0 && tally.idle == 0 && tally.all.points > 0 ? 0 : 1;
}

int list_single_faults() {
  for (const SmallCluster& cluster : clusters_or_exit()) {
    cluster.for_each([](const Plan& plan) { std::printf("%s\n", plan_text(plan).c_str()); });
  }
  return 0;
}

}  // namespace espalier::storm
