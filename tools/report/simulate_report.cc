#include "tools/report/simulate_report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/counted.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "tools/common/json.h"
#include "tools/options/workload_options.h"

namespace espalier::tools {
namespace {

constexpr std::size_t kBins = 10;         // of the histogram of links
constexpr std::size_t kBusiest = 3;       // links that are named
constexpr std::size_t kListed = 100'000;  // and that JSON lists at most

const char* switching_name(Switching switching) {
  return switching == Switching::kCutThrough ? "cut-through" : "store-and-forward";
}

// The part of the run for which blocks held the link, of all its lanes: 0 .. 1.
double share(const sim::LinkTraffic& link, const Outcome& outcome) {
  return outcome.run.seconds > 0 ? link.busy / (link.lanes * outcome.run.seconds) : 0;
}

// Sums over the links of the asynchronous run.
struct Links {
  std::uint64_t all = 0, used = 0, waits = 0;
  double waited = 0;                            // s
  std::array<std::uint64_t, kBins> by_share{};  // of those used
  std::vector<sim::LinkTraffic> busiest = {};   // of those used, the busiest first
};

// With at most `listed` of the busiest.
Links add_up(const StoredSchedule& schedule, const Outcome& outcome, std::size_t listed) {
  Links links{.all = schedule.loaded().topology->link_count()};
  std::vector<const sim::LinkTraffic*> used;
  for (const sim::LinkTraffic& link : outcome.links) {
    if (link.blocks == 0) continue;
    ++links.used;
    links.waits += link.waits;
    links.waited += link.waited;
    ++links.by_share[std::min(static_cast<std::size_t>(share(link, outcome) * kBins), kBins - 1)];
    used.push_back(&link);
  }
  const auto end = used.begin() + static_cast<std::ptrdiff_t>(std::min(listed, used.size()));
  std::partial_sort(used.begin(), end, used.end(),
                    [](const sim::LinkTraffic* a, const sim::LinkTraffic* b) {
                      const double left = a->busy * b->lanes, right = b->busy * a->lanes;
                      return left != right ? left > right : a < b;
                    });
  for (auto link = used.begin(); link != end; ++link) links.busiest.push_back(**link);
  return links;
}

std::string link_name(const StoredSchedule& schedule, std::uint32_t from, std::uint32_t to) {
  return schedule.loaded().topology->node_name(from) + " -> " +
         schedule.loaded().topology->node_name(to);
}

Json transfer_json(const sim::Transfer& transfer) {
  return {{"from", transfer.from}, {"to", transfer.to}, {"number", transfer.number}};
}

Json contention_json(const sim::Contention& found) {
  Json json = {{"conflicts", found.conflicts},
               {"most_asked", found.max_asked},
               {"most_lanes", found.max_lanes}};
  if (found.conflicts == 0) return json;
  json["first"] = {{"step", found.step},
                   {"from", found.from},
                   {"to", found.to},
                   {"lanes", found.lanes},
                   {"transfers", {transfer_json(found.one), transfer_json(found.other)}}};
  return json;
}

Json links_json(const Links& links, const Outcome& outcome) {
  Json used = Json::array();
  for (const sim::LinkTraffic& link : links.busiest) {
    used.push_back({{"from", link.from},
                    {"to", link.to},
                    {"lanes", link.lanes},
                    {"blocks", link.blocks},
                    {"held", share(link, outcome)},
                    {"waits", link.waits},
                    {"waited_seconds", link.waited}});
  }
  return {{"all", links.all},
          {"used", links.used},
          {"waits", links.waits},
          {"waited_seconds", links.waited},
          {"histogram", links.by_share},
          {"busiest_first", used}};
}

void print_as_json(const StoredSchedule& schedule, const SimulateReport& report) {
  const Program& program = schedule.first();
  const bool right = report.lock_step.wrong.empty() && report.free_running.wrong.empty();
  Json json = {
      {"file", schedule.loaded().name},
      {"topology", schedule.loaded().topology->spec()},
      {"collective", collective_name(program.collective)},
      {"algorithm", program.algorithm},
      {"nodes", schedule.nodes()},
      {"bytes", report.bytes},
      {"bytes_are", !report.counts.empty()                ? "longest part"
                    : counts_per_rank(program.collective) ? "per rank"
                                                          : "whole message"},
      {"segments", report.layout.segments},
      {"blocks", report.layout.blocks},
      {"alpha", report.alpha},
      {"beta", report.beta},
      {"switching", switching_name(report.switching)},
      {"predicted_steps", report.predicted_steps},
      {"simulated_steps", report.lock_step.run.steps},
      {"bound_steps", report.bound_steps},
      {"predicted_seconds", report.predicted_seconds},
      {"lock_step_seconds", report.lock_step.run.seconds},
      {"simulated_seconds", report.free_running.run.seconds},
      {"lock_step_status", status_name(report.lock_step.run.status)},
      {"status", status_name(report.free_running.run.status)},
      {"data", report.data},
      {"right", report.data ? Json(right) : Json()},
      {"messages", report.lock_step.blocks},
      {"free_running_messages", report.free_running.blocks},
      {"contention_free", report.lock_step.contention.conflicts == 0},
      {"contention", contention_json(report.lock_step.contention)},
      {"links", links_json(add_up(schedule, report.free_running, kListed), report.free_running)},
      {"window", program.window},
      {"residence_lock_step", report.lock_step.residence.blocks},
      {"residence", report.free_running.residence.blocks}};
  if (!report.chosen.empty()) json["chosen"] = report.chosen;
  if (!report.counts.empty()) json["counts"] = report.counts;
  print_json(json);
}

std::string block_name(const StoredSchedule& schedule, const sim::Transfer& transfer) {
  return "block " + std::to_string(transfer.number) + " of " +
         link_name(schedule, transfer.from, transfer.to);
}

void print_links(const StoredSchedule& schedule, const Outcome& outcome, Switching switching) {
  const Links links = add_up(schedule, outcome, kBusiest);
  std::printf("  links      %s, %llu of %s carry blocks\n", switching_name(switching),
              static_cast<unsigned long long>(links.used), counted(links.all, "link").c_str());
  for (std::size_t i = 0; i < std::min(links.busiest.size(), kBusiest); ++i) {
    const sim::LinkTraffic& link = links.busiest[i];
    std::printf("             %s: %s%s, held %.0f %% of the time\n",
                link_name(schedule, link.from, link.to).c_str(),
                counted(link.blocks, "block").c_str(),
                link.lanes > 1 ? (" on " + counted(link.lanes, "lane")).c_str() : "",
                100 * share(link, outcome));
  }
  std::printf("  occupancy  these links by the part of the time for which they are held:");
  const char* before = "";
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    if (links.by_share[bin] == 0) continue;
    std::printf("%s %zu-%zu %%: %llu", before, bin * 100 / kBins, (bin + 1) * 100 / kBins,
                static_cast<unsigned long long>(links.by_share[bin]));
    before = ",";
  }
  std::printf("\n  waits      free running %s for busy links, %s together\n",
              counted(links.waits, "wait").c_str(), seconds_text(links.waited).c_str());
}

void print_contention(const StoredSchedule& schedule, const SimulateReport& report) {
  const sim::Contention& found = report.lock_step.contention;
  if (found.conflicts == 0) {
    std::printf(
        "  contention none: in lock step no link is asked for more blocks%s than its lanes\n",
        report.switching == Switching::kCutThrough ? "" : ", on the same hop,");
    return;
  }
  std::printf("  contention %s in lock step, at worst %u blocks in a step on a link of %s\n",
              counted(found.conflicts, "conflict").c_str(), found.max_asked,
              counted(found.max_lanes, "lane").c_str());
  std::printf("             first in step %lld on %s: %s, and %s\n",
              static_cast<long long>(found.step), link_name(schedule, found.from, found.to).c_str(),
              block_name(schedule, found.one).c_str(), block_name(schedule, found.other).c_str());
}

// With a histogram of the asynchronous run, if it adds something.
void print_residence(const StoredSchedule& schedule, const SimulateReport& report) {
  const sim::Residence& free = report.free_running.residence;
  std::printf(
      "  residence  at most %s beyond a block's own in lock step, %u free running (window %u)",
      counted(report.lock_step.residence.longest(), "step").c_str(), free.longest(),
      schedule.first().window);
  for (std::size_t steps = 0; steps < free.blocks.size() && free.longest() > 0; ++steps) {
    std::printf("%s %zu: %llu", steps == 0 ? "; blocks by steps:" : ",", steps,
                static_cast<unsigned long long>(free.blocks[steps]));
  }
  std::printf("\n");
}

void print_as_text(const StoredSchedule& schedule, const SimulateReport& report) {
  const Program& program = schedule.first();
  const bool right = report.lock_step.wrong.empty() && report.free_running.wrong.empty();
  std::printf("%s: %s by %s on %s, %s%s\n", one_line(schedule.loaded().name).c_str(),
              collective_name(program.collective), program.algorithm,
              schedule.loaded().topology->title().c_str(), counted(report.bytes, "byte").c_str(),
              !report.counts.empty()                ? " in the longest part"
              : counts_per_rank(program.collective) ? " a rank"
                                                    : "");
  if (!report.chosen.empty()) std::printf("  selection  %s\n", report.chosen.c_str());
  if (!report.counts.empty()) {
    std::printf("  counts     %s elements\n",
                counts_text(report.counts_option, report.counts).c_str());
  }
  std::printf("  blocks     %s of N = %u, %s a block\n",
              counted(report.layout.segments, "segment").c_str(), report.layout.blocks,
              counted(report.layout.block_elements * report.layout.element_bytes, "byte").c_str());
  std::printf("  steps      %lld predicted, %lld simulated in lock step, %lld at least\n",
              static_cast<long long>(report.predicted_steps),
              static_cast<long long>(report.lock_step.run.steps),
              static_cast<long long>(report.bound_steps));
  std::string step = "steps x (alpha + beta x block)";
  if (program.send_ticks > 1) step += " / " + std::to_string(program.send_ticks);
  std::printf("  time       %s predicted (%s), %s simulated free running\n",
              seconds_text(report.predicted_seconds).c_str(), step.c_str(),
              seconds_text(report.free_running.run.seconds).c_str());
  if (!report.free_running.links.empty()) {  // otherwise it is a rank alone
    print_links(schedule, report.free_running, report.switching);
    print_contention(schedule, report);
    print_residence(schedule, report);
  }
  const bool barrier = program.collective == Collective::kBarrier;
  std::printf("  results    %s\n", !report.data ? "not checked: no byte was moved (--no-data)"
                                   : !right     ? "WRONG"
                                   : barrier    ? "no rank leaves before all have entered"
                                                : "right on every rank");
}

}  // namespace

void print_report(const StoredSchedule& schedule, const SimulateReport& report, Format format) {
  if (format == Format::kJson) return print_as_json(schedule, report);
  print_as_text(schedule, report);
}

}  // namespace espalier::tools
