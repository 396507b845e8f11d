#include "collectives/lower/lower.h"

#include <algorithm>
#include <utility>

#include "collectives/lower/graph.h"
#include "collectives/lower/hops.h"
#include "collectives/lower/neighbours.h"
#include "collectives/lower/timed.h"

namespace espalier::lower {
namespace {

constexpr std::uint32_t kMostNodes = 4096;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// The instances at all nodes that the hops are, at the plan's steps.
class Timer {
 public:
  Timer(const Hops& hops, const Plan& plan, std::uint32_t nodes)
      : hops_(hops), plan_(plan), values_(nodes, 0), of_task_(hops.tasks.size(), -1) {
    timed_.resize(nodes);
  }

  std::vector<std::vector<TimedInstance>> time() {
    for (std::size_t task = 0; task < hops_.tasks.size(); ++task) {
      const Task& one = hops_.tasks[task];
      const std::int32_t last = hops_.last_of(static_cast<std::int32_t>(task));
      if (one.kind == espalier_Kind_SEND) {
        add_message(one, hops_.first[task], last, of_task_[task]);
      } else {
        add_operation(one, last, of_task_[task]);
      }
    }
    for (std::vector<TimedInstance>& node : timed_) {
      std::stable_sort(
          node.begin(), node.end(),
          [](const TimedInstance& a, const TimedInstance& b) { return a.step < b.step; });
    }
    return std::move(timed_);
  }

 private:
  [[nodiscard]] TimedPlace operand(const Operand& from) const {
    if (from.segment < 0) return {};
    if (from.task < 0) return {espalier_Buffer_INPUT, from.segment, -1};
    return place(hops_.tasks[at(from.task)], of_task_[at(from.task)]);
  }
  [[nodiscard]] static TimedPlace place(const Task& task, std::int32_t value) {
    return {task.output ? espalier_Buffer_OUTPUT : espalier_Buffer_SCRATCH, task.segment, value};
  }
  std::int32_t new_value(std::uint32_t node) { return values_[node]++; }

  void add_message(const Task& task, std::int32_t first, std::int32_t last, std::int32_t& value) {
    TimedPlace from = operand(task.a);
    for (std::int32_t hop = first; hop <= last; ++hop) {
      const Hop& over = hops_.all[at(hop)];
      TimedInstance one;
      one.step = plan_.steps[at(hop)];
      one.block = task.block;
      one.message = static_cast<std::uint32_t>(hop);
      one.kind = espalier_Kind_SEND;
      one.peer = over.to;
      one.a = from;
      timed_[over.from].push_back(one);
      const std::int32_t stays = new_value(over.to);
      TimedPlace into = {espalier_Buffer_SCRATCH, task.segment, stays};
      if (hop == last) {
        value = stays;
        into = place(task, value);
      }
      one.kind = espalier_Kind_RECEIVE;
      one.peer = over.from;
      one.a = {};
      one.into = into;
      timed_[over.to].push_back(one);
      from = into;
    }
  }

  void add_operation(const Task& task, std::int32_t hop, std::int32_t& value) {
    TimedInstance one;
    one.kind = task.kind;
    one.step = plan_.steps[at(hop)];
    one.block = task.block;
    one.a = operand(task.a);
    one.b = operand(task.b);
    value = new_value(task.to);
    one.into = place(task, value);
    timed_[task.to].push_back(one);
  }

  const Hops& hops_;
  const Plan& plan_;
  std::vector<std::int32_t> values_;   // of each node, so far
  std::vector<std::int32_t> of_task_;  // the value that it makes
  std::vector<std::vector<TimedInstance>> timed_;
};

// None of a round's blocks ends after block 0: another order of the blocks is as good.
void put_latest_first(const Plan& plan, Hops& hops) {
  std::int32_t latest = 0;
  for (std::size_t hop = 0; hop < hops.all.size(); ++hop) {
    if (plan.steps[hop] == plan.length - 1) latest = hops.tasks[at(hops.all[hop].task)].block;
  }
  for (Task& task : hops.tasks) {
    if (task.block == latest) {
      task.block = 0;
    } else if (task.block == 0) {
      task.block = latest;
    }
  }
}

Outline outline_of(const topology::Topology& topology, PortModel ports, const Program& direct,
                   const std::string& name) {
  Outline outline{};
  outline.collective = direct.collective;
  outline.algorithm = name.c_str();
  outline.segments = direct.segments;
  outline.one_block = direct.collective == espalier_Collective_BARRIER;
  outline.needs_commutative = direct.needs_commutative;
  outline.nodes = topology.nodes() > topology.ranks() ? topology.nodes() : 0;
  outline.port_model = ports;
  return outline;
}

// Steps that as many blocks as a round has take more than one round alone.
std::int32_t direct_period(const Program& direct, std::int32_t blocks) {
  const Count& steps = direct.counts[direct.steps_ref];
  bool one_block = true;
  for (std::uint32_t rule = 0; rule < direct.blocks_count; ++rule) {
    one_block = one_block && direct.blocks[rule].block_bytes == 0;
  }
  const std::int64_t once = count_value(steps, blocks);
  return static_cast<std::int32_t>(one_block ? count_value(steps, 1)
                                             : count_value(steps, 2 * blocks) - once);
}

void fill(const Hops& hops, const Plan& plan, const Program& direct, Report& report) {
  report.changed = true;
  report.period = plan.period;
  report.blocks = hops.blocks;
  report.direct_period = direct_period(direct, hops.blocks);
  report.first_steps = plan.length;
  report.order = plan.order;
  for (const Task& task : hops.tasks) report.messages += task.kind == espalier_Kind_SEND ? 1 : 0;
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

bool is_modelled(const topology::Topology& topology, const std::vector<Program>& programs) {
  return programs.size() == topology.nodes() && !find_stranger(topology, programs);
}

std::string lower(const topology::Topology& topology, const Group& group, PortModel ports,
                  const std::vector<Program>& direct, Programs& lowered, Report& report) {
  report = {};
  lowered.clear();
  if (is_modelled(topology, direct)) {
    lowered.assign(direct.begin(), direct.end());
    return "";
  }
  const std::string name = direct.empty() ? "" : direct[0].algorithm;
  const std::string who = "'" + name + "' on " + topology.title() + " cannot be lowered: ";
  if (topology.nodes() > kMostNodes) {
    return who + "at most " + std::to_string(kMostNodes) + " nodes can, this has " +
           std::to_string(topology.nodes());
  }
  Graph graph;
  Hops hops;
  std::string wrong = find_graph(direct, graph);
  if (wrong.empty()) wrong = find_hops(topology, std::move(graph), ports, hops);
  if (!wrong.empty()) return who + wrong;
  const std::string lowered_name = name + ", lowered";
  const auto window = static_cast<std::int32_t>(group.window);
  // Fewer different waits take fewer actions, and perhaps more steps.
  for (const std::int32_t near : {window - 1, 1, 0}) {
    const Plan plan = find_steps(hops, {near, window});
    put_latest_first(plan, hops);
    TimedSchedule timed;
    timed.outline = outline_of(topology, ports, direct[0], lowered_name);
    timed.period = plan.period;
    timed.blocks = hops.blocks;
    timed.bound.a = group.ranks > 1 ? 1 : 0;
    timed.digest = direct[0].schedule_digest;
    for (const std::int32_t step : plan.steps) {
      timed.digest = digest_u64(timed.digest, static_cast<std::uint64_t>(step));
    }
    timed.nodes = Timer(hops, plan, topology.nodes()).time();
    wrong = write_programs(group, timed, lowered);
    if (!wrong.empty()) continue;
    fill(hops, plan, direct[0], report);
    return "";
  }
  return who + wrong;
}

std::string describe(const topology::Topology& topology, const Report& report) {
  if (!report.changed) return "modelled already: every peer is a neighbour\n";
  const std::string round =
      report.blocks == 1 ? "a block" : std::to_string(report.blocks) + " blocks";
  std::string text = std::to_string(report.messages) + " messages over " +
                     std::to_string(report.hops) + " hops " + round + "; period " +
                     std::to_string(report.period) +
                     " (direct: " + std::to_string(report.direct_period) + ")";
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
