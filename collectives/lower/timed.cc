#include "collectives/lower/timed.h"

#include <algorithm>
#include <map>
#include <utility>

#include "collectives/lower/timed_rows.h"
#include "collectives/schedule/excess_words.h"
#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/step_limits.h"

namespace espalier::lower {
namespace {

// The steps that need a port, and the port's lanes.
struct PortDemand {
  std::int32_t lanes = 1;
  std::vector<std::int32_t> steps;

  [[nodiscard]] std::int32_t least() const {
    return (static_cast<std::int32_t>(steps.size()) + lanes - 1) / lanes;
  }
  [[nodiscard]] bool fits(std::int32_t period) const {
    ESPALIER_ASSERT(period >= 1 && lanes >= 1);
    std::vector<std::int32_t> used(static_cast<std::size_t>(period), 0);
    return std::all_of(steps.begin(), steps.end(), [&](std::int32_t step) {
      return ++used[static_cast<std::size_t>(step % period)] <= lanes;
    });
  }
};

}  // namespace

TimedOperand TimedSchedule::add_message(std::int32_t block,
                                        std::span<const std::uint32_t> nodes_on_way,
                                        std::span<const std::int32_t> steps, TimedOperand from,
                                        TimedOperand into) {
  ESPALIER_ASSERT(!steps.empty() && nodes_on_way.size() == steps.size() + 1 && block >= 0);
  for (std::size_t hop = 0; hop < steps.size(); ++hop) {
    const std::uint32_t here = nodes_on_way[hop], there = nodes_on_way[hop + 1];
    ESPALIER_ASSERT(here < nodes.size() && there < nodes.size() && here != there);
    ESPALIER_ASSERT(steps[hop] >= 0 && (hop == 0 || steps[hop - 1] < steps[hop]));
    TimedInstance one{.kind = ActionKind::kSend,
                      .step = steps[hop],
                      .block = block,
                      .peer = there,
                      .message = messages++,
                      .a = from};
    nodes[here].push_back(one);
    one.kind = ActionKind::kReceive;
    one.peer = here;
    one.a = {};
    one.into = {Buffer::kScratch, into.segment, values[there]++};
    if (hop + 1 == steps.size()) one.into.buffer = into.buffer;
    nodes[there].push_back(one);
    from = one.into;
  }
  return from;
}

TimedOperand TimedSchedule::add_operation(ActionKind kind, std::uint32_t node, std::int32_t step,
                                          std::int32_t block, TimedOperand into,
                                          const TimedOperand& a, const TimedOperand& b) {
  ESPALIER_ASSERT(kind == ActionKind::kCombine || kind == ActionKind::kCopy);
  ESPALIER_ASSERT(node < nodes.size() && step >= 0 && block >= 0);
  ESPALIER_ASSERT((kind == ActionKind::kCombine) == (b.buffer != Buffer::kNone));
  TimedInstance one{.kind = kind, .step = step, .block = block, .a = a, .b = b};
  into.value = values[node]++;
  one.into = into;
  nodes[node].push_back(one);
  return into;
}

std::int32_t steps_of(const TimedSchedule& schedule) {
  std::int32_t steps = 0;
  for (const auto& node : schedule.nodes) {
    for (const TimedInstance& one : node) steps = std::max(steps, one.step + 1);
  }
  return steps;
}

std::int32_t least_period(const topology::Topology& topology, const TimedSchedule& schedule,
                          std::int32_t least) {
  const bool single = schedule.outline.port_model == PortModel::kSingleSend;
  std::map<std::pair<std::uint32_t, std::uint32_t>, PortDemand> ports;
  // The messages that nodes count: sends and receives of each node.
  std::map<std::pair<std::uint32_t, bool>, PortDemand> counted;
  for (std::uint32_t node = 0; node < schedule.nodes.size(); ++node) {
    for (const TimedInstance& one : schedule.nodes[node]) {
      const bool send = one.kind == ActionKind::kSend;
      if (send || one.kind == ActionKind::kReceive) {
        PortDemand& messages = counted[{node, send}];
        messages.lanes = as_int(kMaxStepMessages);
        messages.steps.push_back(one.step);
      }
      if (!send) continue;
      PortDemand& wanted = ports[{node, single ? node : one.peer}];
      if (!single) {
        wanted.lanes = as_int(std::min(topology.capacity(node, one.peer), kMaxLinkMessages));
      }
      wanted.steps.push_back(one.step);
    }
  }
  std::int32_t period = std::max(1, least);
  for (const auto& [port, wanted] : ports) period = std::max(period, wanted.least());
  for (const auto& [node, wanted] : counted) period = std::max(period, wanted.least());
  const auto fits = [&](const auto& port) { return port.second.fits(period); };
  while (!std::all_of(ports.begin(), ports.end(), fits) ||
         !std::all_of(counted.begin(), counted.end(), fits)) {
    ++period;
  }
  return period;
}

Result<Programs> write_programs(const CollectiveParameters& parameters,
                                const TimedSchedule& schedule) {
  if (parameters.host_limits) {
    // Boards run it, too, if it fits.
    CollectiveParameters for_boards = parameters;
    for_boards.host_limits = false;
    if (Result<Programs> programs = write_programs(for_boards, schedule)) return programs;
  }
  ESPALIER_ASSERT(schedule.period >= 1 && schedule.blocks >= 1 && parameters.window >= 1);
  ESPALIER_ASSERT(schedule.values.size() == schedule.nodes.size());
  std::vector<NodeRows> rows;
  for (const std::vector<TimedInstance>& node : schedule.nodes) {
    rows.push_back(rows_of(node, schedule.period, static_cast<std::int32_t>(parameters.window)));
  }
  set_orders(rows, schedule.period);
  Programs programs;
  Status status = Status::kOk;
  std::uint32_t node = 0;
  TableExcess excess;
  for (const bool paced : {false, true}) {
    programs.assign(schedule.nodes.size(), Program{});
    status = Status::kOk;
    for (node = 0; node < rows.size() && status == Status::kOk; ++node) {
      status = write_node(parameters, schedule, paced, node, rows[node], programs, excess);
    }
    if (status != Status::kTooLarge) break;
  }
  if (status == Status::kOk) return programs;
  const std::string reason =
      status != Status::kTooLarge ? status_name(status)
      : excess.table != nullptr
          ? excess_words(excess)
          : "its program needs more than " + std::to_string(kMaxStepInstances) +
                " instances of an action in a step, or numbers of more than 16 bits";
  return fail(std::string(schedule.outline.algorithm) + ", node " + std::to_string(node - 1) +
              ": " + reason);
}

Result<Programs> write_programs_for_window(const CollectiveParameters& parameters,
                                           const TimedSchedule& schedule) {
  Result<Programs> programs;
  CollectiveParameters narrow = parameters;
  for (; narrow.window > 0; --narrow.window) {
    programs = write_programs(narrow, schedule);
    if (programs) break;
  }
  return programs;
}

}  // namespace espalier::lower
