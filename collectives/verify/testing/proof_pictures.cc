// proof-pictures: prints the two pictures of docs/verifier.md for rank 1 of a chain reduction on
// four ranks. The verifier's own code computes them. The first: the events that precede each event
// of the rank. The second: its progressions for N*, and for one stride more.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "collectives/verify/every_n/progressions.h"
#include "collectives/verify/properties/hazard_rules.h"
#include "collectives/verify/properties/operands.h"
#include "collectives/verify/testing/program_builder.h"

namespace espalier::verify {
namespace {

constexpr std::uint32_t kNode = 1, kWindow = 3, kSlots = 4;

const char* name_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kSend: return "send";
    case ActionKind::kReceive: return "receive";
    case ActionKind::kCombine: return "combine";
    default: return "copy";
  }
}

std::string up_to(std::int64_t last) { return last < 0 ? "none" : "0 .. " + std::to_string(last); }

void print_event(const Instance& event, const Known& before) {
  std::string received;
  for (std::int64_t step = before.retired + 1; step <= event.step; ++step) {
    if (before.received(step)) received += (received.empty() ? "" : ", ") + std::to_string(step);
  }
  const bool writes = event.kind != ActionKind::kSend;
  std::printf("%4lld  %-7s  block %lld  %s slot %lld  %-8s  %-10s  %lld\n",
              static_cast<long long>(event.step), name_of(event.kind),
              static_cast<long long>(moved(event).block), writes ? "into" : "from",
              static_cast<long long>(writes ? event.into.slot : event.a.slot),
              up_to(before.retired).c_str(), received.empty() ? "none" : received.c_str(),
              static_cast<long long>(before.operations));
}

// By the rules of property hazards, event by event. One phase, so only the window gates a step.
void print_hazards(const Program& program, std::int64_t blocks) {
  std::printf("step  event                         retired   received    operations\n");
  const std::vector<Instance> all = expand(program, blocks);
  HazardRules rules(links_count(program));
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].step == all[begin].step) ++end;
    rules.begin_step(all[begin].step,
                     std::max<std::int64_t>(-1, all[begin].step - std::int64_t{program.window}));
    for (int turn = 0; turn < 3; ++turn) {
      for (std::size_t k = begin; k < end; ++k) {
        if (turn_of(all[k].kind) != turn) continue;
        const bool send = all[k].kind == ActionKind::kSend;
        const bool receive = all[k].kind == ActionKind::kReceive;
        print_event(all[k],
                    send      ? rules.post_send(static_cast<std::size_t>(all[k].link), all[k].after)
                    : receive ? rules.before_issue()
                              : rules.run_operation(all[k].after));
      }
    }
    rules.end_step();
  }
}

void print_run(const RankProgressions& ranks, const char* name, std::int64_t blocks,
               std::int64_t steps) {
  std::printf("%-10s", (std::string(name) + " = " + std::to_string(blocks)).c_str());
  for (std::int64_t step = 0; step < steps; ++step) {
    std::printf("  %4s", ("s" + std::to_string(step)).c_str());
  }
  std::printf("\n");
  for (const Progression& one : ranks.all) {
    const std::int64_t period = ranks.stages[one.stage].period;
    std::string line = std::string("  ") + name_of(one.kind);
    line.resize(10, ' ');
    std::int32_t slot = one.kind == ActionKind::kSend ? one.a_slot : one.into_slot;
    std::int64_t next = one.first, block = one.block;
    for (std::int64_t step = 0; step < steps; ++step) {
      std::string cell;
      if (step == next && block < blocks) {
        cell = std::to_string(block) + ":" + std::to_string(slot);
        slot = ranks.next_slot[static_cast<std::size_t>(slot)];
        next += period;
        block += ranks.stride;
      }
      line += std::string(6 - cell.size(), ' ') + cell;
    }
    while (line.back() == ' ') line.pop_back();
    std::printf("%s\n", line.c_str());
  }
}

int run() {
  const auto topology = or_throw(topology::parse("complete:4"));
  const std::vector<OwnedProgram> programs = chain_reduce(*topology, kWindow, kSlots);
  const Verdict verdict = verdict_of(*topology, programs, {.method = Method::kPeriodic});
  RankProgressions ranks;
  if (!verdict.valid || !read_progressions(programs[0], programs[kNode], ranks).passed()) return 1;
  print_hazards(programs[kNode], 4);
  const std::int64_t last = verdict.proven_blocks;
  std::printf("\n");
  print_run(ranks, "N", last, last + 3);
  print_run(ranks, "N'", last + ranks.stride, last + 3);
  return 0;
}

}  // namespace
}  // namespace espalier::verify

int main() { return espalier::verify::run(); }
