#include "espalier/collectives/lower/lower.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "collectives/lower/graph.h"
#include "collectives/lower/hops.h"
#include "collectives/lower/neighbours.h"
#include "collectives/lower/timed.h"
#include "espalier/base/arithmetic.h"
#include "espalier/base/digest.h"
#include "espalier/collectives/verify/verify.h"

namespace espalier::lower {
namespace {

constexpr std::uint32_t kMaxNodes = 4096;
// Adds the hops to the schedule, at the plan's steps.
class Timer {
 public:
  Timer(const HopGraph& hops, const Plan& plan, TimedSchedule& timed)
      : hops_(hops), plan_(plan), timed_(timed) {}

  void add_all() {
    for (std::size_t task = 0; task < hops_.tasks.size(); ++task) {
      const Task& one = hops_.tasks[task];
      const std::int32_t first = hops_.first[task];
      const std::int32_t last = hops_.last_of(static_cast<std::int32_t>(task));
      const TimedOperand into = {one.output ? Buffer::kOutput : Buffer::kScratch, one.segment, -1};
      if (one.kind != ActionKind::kSend) {
        made_.push_back(timed_.add_operation(one.kind, one.to, plan_.steps[as_index(last)],
                                             one.block, into, operand(one.a), operand(one.b)));
        continue;
      }
      std::vector<std::uint32_t> nodes = {one.from};
      for (std::int32_t hop = first; hop <= last; ++hop) {
        nodes.push_back(hops_.all[as_index(hop)].to);
      }
      const std::span steps(plan_.steps.data() + first, nodes.size() - 1);
      made_.push_back(timed_.add_message(one.block, nodes, steps, operand(one.a), into));
    }
  }

 private:
  [[nodiscard]] TimedOperand operand(const TaskInput& from) const {
    if (from.segment < 0) return {};
    if (from.task < 0) return {Buffer::kInput, from.segment, -1};
    return made_[as_index(from.task)];
  }

  const HopGraph& hops_;
  const Plan& plan_;
  TimedSchedule& timed_;
  std::vector<TimedOperand> made_;  // by task
};

// Reorders the blocks of a round so that none ends after block 0; any order of the blocks is valid.
void put_latest_first(const Plan& plan, HopGraph& hops) {
  std::int32_t latest = 0;
  for (std::size_t hop = 0; hop < hops.all.size(); ++hop) {
    if (plan.steps[hop] == plan.length - 1) latest = hops.tasks[as_index(hops.all[hop].task)].block;
  }
  for (Task& task : hops.tasks) {
    if (task.block == latest) {
      task.block = 0;
    } else if (task.block == 0) {
      task.block = latest;
    }
  }
}

// The name, truncated to the available room.
std::string lowered_name_of(const std::string& name) {
  constexpr std::string_view kLowered = ", lowered";
  constexpr std::size_t kMost = sizeof Program::algorithm - 1 - kLowered.size();
  return name.substr(0, kMost).append(kLowered);
}

Outline outline_of(const topology::Topology& topology, PortModel ports, const Program& routed,
                   const std::string& name) {
  Outline outline{};
  outline.collective = routed.collective;
  outline.algorithm = name.c_str();
  outline.segments = routed.segments;
  outline.one_block = routed.collective == Collective::kBarrier;
  outline.needs_commutative = routed.needs_commutative;
  outline.nodes = topology.nodes() > topology.ranks() ? topology.nodes() : 0;
  outline.port_model = ports;
  return outline;
}

Count bound_of(const topology::Topology& topology, const CollectiveParameters& parameters,
               const Outline& outline) {
  Program program;
  if (Builder(program).begin(parameters, 0, outline) != Status::kOk) return {};
  return verify::provable_bound(topology, program, 1, true);
}

// The steps by which the blocks of one round prolong the routed schedule.
std::int32_t routed_period(const Program& routed, std::int32_t blocks) {
  const Count& steps = routed.counts[routed.steps_ref];
  bool one_block = true;
  for (std::uint32_t rule = 0; rule < routed.blocks_count; ++rule) {
    one_block = one_block && routed.blocks[rule].block_bytes == 0;
  }
  const std::int64_t once = count_value(steps, blocks);
  return static_cast<std::int32_t>(one_block ? count_value(steps, 1)
                                             : count_value(steps, 2 * blocks) - once);
}

// Whether programs that are left unchanged send no more per step than `ports` allow.
bool keeps_ports(const Programs& programs, PortModel ports) {
  return ports != PortModel::kSingleSend ||
         std::all_of(programs.begin(), programs.end(), [](const Program& program) {
           return program.port_model != PortModel::kMultiport;
         });
}

void fill(const HopGraph& hops, const Plan& plan, const Program& routed, Report& report) {
  report.changed = true;
  report.period = plan.period;
  report.blocks = hops.blocks;
  report.routed_period = routed_period(routed, hops.blocks);
  report.first_steps = plan.length;
  report.order = plan.order;
  for (const Task& task : hops.tasks) report.messages += task.kind == ActionKind::kSend ? 1 : 0;
  for (const Port& link : hops.links) report.hops += static_cast<std::size_t>(link.load);
  for (const Port& port : hops.ports) {
    if (report.load > 0 && port.steps() < plan.period) continue;
    report.from = port.from;
    report.to = port.to;
    report.lanes = static_cast<std::uint32_t>(port.lanes);
    report.load = port.load;
    if (port.steps() == plan.period) break;
  }
}

}  // namespace

bool is_hop_by_hop(const topology::Topology& topology, const Programs& programs) {
  return programs.size() == topology.nodes() && !find_stranger(topology, programs);
}

Result<Programs> lower(const topology::Topology& topology, const CollectiveParameters& parameters,
                       PortModel ports, const Programs& routed, Report& report) {
  report = {};
  const std::string name = routed.empty() ? "" : routed[0].algorithm;
  const auto cannot = [&](const std::string& reason) {
    return fail("'" + name + "' on " + topology.title() + " cannot be lowered: " + reason);
  };
  if (is_hop_by_hop(topology, routed)) {
    if (keeps_ports(routed, ports)) return routed;
    return cannot(
        "every peer is a neighbour already, and its nodes send over several links in a step; "
        "expected ports multiport, not single-send");
  }
  if (topology.nodes() > kMaxNodes) {
    return cannot("at most " + std::to_string(kMaxNodes) + " nodes can, this has " +
                  std::to_string(topology.nodes()));
  }
  auto graph = find_graph(routed);
  if (!graph) return cannot(graph.error().message);
  auto found = find_hops(topology, *std::move(graph), ports);
  if (!found) return cannot(found.error().message);
  HopGraph& hops = *found;
  const std::string lowered_name = lowered_name_of(name);
  const Outline outline = outline_of(topology, ports, routed[0], lowered_name);
  const Count bound = bound_of(topology, parameters, outline);
  const auto window = static_cast<std::int32_t>(parameters.window);
  std::string tables_too_small;
  // Fewer different waits take fewer actions, and possibly more steps.
  for (const std::int32_t near : {window - 1, 1, 0}) {
    const Plan plan = find_steps(hops, {near, window});
    put_latest_first(plan, hops);
    TimedSchedule timed(topology.nodes());
    timed.outline = outline;
    timed.period = plan.period;
    timed.blocks = hops.blocks;
    timed.bound = bound;
    timed.digest = routed[0].schedule_digest;
    for (const std::int32_t step : plan.steps) {
      timed.digest = digest_u64(timed.digest, static_cast<std::uint64_t>(step));
    }
    Timer(hops, plan, timed).add_all();
    auto lowered = write_programs(parameters, timed);
    if (!lowered) {
      tables_too_small = lowered.error().message;
      continue;
    }
    fill(hops, plan, routed[0], report);
    return lowered;
  }
  return cannot(tables_too_small);
}

std::string describe(const topology::Topology& topology, const Report& report) {
  if (!report.changed) return "hop by hop already: every peer is a neighbour\n";
  const std::string round =
      report.blocks == 1 ? "a block" : std::to_string(report.blocks) + " blocks";
  std::string text = std::to_string(report.messages) + " messages over " +
                     std::to_string(report.hops) + " hops " + round + "; period " +
                     std::to_string(report.period) +
                     " (routed: " + std::to_string(report.routed_period) + ")";
  if (report.load > 0) {
    const bool node = report.from == report.to;
    text += ", as " + topology.node_name(report.from) +
            (node ? " sends " : " -> " + topology.node_name(report.to) + " carries ") +
            std::to_string(report.load) +
            (node                ? ""
             : report.lanes == 1 ? ""
                                 : " on " + std::to_string(report.lanes) + " lanes");
  }
  const std::string blocks =
      report.blocks == 1 ? "N" : "ceil(N/" + std::to_string(report.blocks) + ")";
  text += "\nsteps " + std::to_string(report.first_steps - report.period) + " + " +
          std::to_string(report.period) + " " + blocks + " (hops placed by " + report.order + ")\n";
  return text;
}

}  // namespace espalier::lower
