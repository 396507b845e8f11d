#include "espalier/collectives/lower/lower.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/counted.h"
#include "collectives/lower/graph.h"
#include "collectives/lower/hop_writer.h"
#include "collectives/lower/hops.h"
#include "collectives/lower/neighbours.h"
#include "espalier/collectives/verify/verify.h"
#include "espalier/internal/base/arithmetic.h"

namespace espalier::lower {
namespace {

constexpr std::uint32_t kMaxNodes = 4096;

// The name, truncated to the available room.
std::string lowered_name_of(const std::string& name) {
  constexpr std::string_view kLowered = ", lowered";
  constexpr std::size_t kMost = sizeof Program::algorithm - 1 - kLowered.size();
  return name.substr(0, kMost).append(kLowered);
}

Outline outline_of(const topology::Topology& topology, PortModel ports, const Program& routed,
                   const std::string& name) {
  return {.collective = routed.collective,
          .algorithm = name.c_str(),
          .segments = routed.segments,
          .one_block = routed.collective == Collective::kBarrier,
          .needs_commutative = routed.needs_commutative,
          .nodes = topology.nodes() > topology.ranks() ? topology.nodes() : 0,
          .port_model = ports};
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
    auto lowered =
        write_hops(topology, parameters, outline, bound, routed[0].schedule_digest, plan, hops);
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
  const std::string round = report.blocks == 1 ? "a block" : counted(report.blocks, "block");
  std::string text = counted(report.messages, "message") + " over " + counted(report.hops, "hop") +
                     " " + round + "; period " + std::to_string(report.period) +
                     " (routed: " + std::to_string(report.routed_period) + ")";
  if (report.load > 0) {
    const bool node = report.from == report.to;
    text += ", as " + topology.node_name(report.from) +
            (node ? " sends " : " -> " + topology.node_name(report.to) + " carries ") +
            std::to_string(report.load) +
            (node                ? ""
             : report.lanes == 1 ? ""
                                 : " on " + counted(report.lanes, "lane"));
  }
  const std::string blocks =
      report.blocks == 1 ? "N" : "ceil(N/" + std::to_string(report.blocks) + ")";
  text += "\nsteps " + std::to_string(report.first_steps - report.period) + " + " +
          std::to_string(report.period) + " " + blocks + " (hops placed by " + report.order + ")\n";
  return text;
}

}  // namespace espalier::lower
