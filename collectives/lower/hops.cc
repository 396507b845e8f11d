#include "collectives/lower/hops.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/step_limits.h"

namespace espalier::lower {
namespace {
class Router {
 public:
  Router(const topology::Topology& topology, PortModel ports, HopGraph& hops)
      : topology_(topology), single_(ports == PortModel::kSingleSend), hops_(hops) {}

  Result<void> add(std::int32_t number) {
    ESPALIER_ASSERT(hops_.first.size() == as_index(number));
    const Task& task = hops_.tasks[as_index(number)];
    hops_.first.push_back(static_cast<std::int32_t>(hops_.all.size()));
    const std::int32_t a = source(task.a), b = source(task.b);
    if (task.kind != ActionKind::kSend) {
      hops_.all.push_back({task.from, task.to, number, a, b, -1});
      return {};
    }
    const std::vector<std::uint32_t> route = topology_.route(task.from, task.to);
    ESPALIER_ASSERT(route.size() >= 2 && route.front() == task.from && route.back() == task.to);
    for (std::size_t hop = 1; hop < route.size(); ++hop) {
      const std::int32_t lanes =
          as_int(std::min(topology_.capacity(route[hop - 1], route[hop]), kMaxLinkMessages));
      if (lanes == 0 || topology_.route(route[hop - 1], route[hop]).size() != 2) {
        return fail("the route from " + topology_.node_name(task.from) + " to " +
                    topology_.node_name(task.to) +
                    " is not one of links that are their own routes");
      }
      const std::int32_t before = hop == 1 ? a : static_cast<std::int32_t>(hops_.all.size()) - 1;
      hops_.all.push_back({route[hop - 1], route[hop], number, before, -1,
                           port(route[hop - 1], route[hop], lanes)});
    }
    return {};
  }

 private:
  [[nodiscard]] std::int32_t source(const TaskInput& operand) const {
    ESPALIER_ASSERT(operand.task + 1 < static_cast<std::int32_t>(hops_.first.size()));
    return operand.task < 0 ? -1 : hops_.last_of(operand.task);
  }

  std::int32_t port(std::uint32_t from, std::uint32_t to, std::int32_t lanes) {
    const std::int32_t link = count(from, to, lanes, links_, hops_.links);
    return single_ ? count(from, from, 1, nodes_, hops_.ports) : link;
  }

  using Numbers = std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t>;
  static std::int32_t count(std::uint32_t from, std::uint32_t to, std::int32_t lanes,
                            Numbers& numbers, std::vector<Port>& ports) {
    const auto [entry, fresh] =
        numbers.try_emplace({from, to}, static_cast<std::int32_t>(ports.size()));
    if (fresh) ports.push_back({from, to, lanes, 0});
    ++ports[as_index(entry->second)].load;
    return entry->second;
  }

  const topology::Topology& topology_;
  bool single_;
  HopGraph& hops_;
  Numbers links_, nodes_;
};

// The priority of the ready hops: the smallest goes first.
using Rank = std::tuple<std::int64_t, std::int64_t, std::int32_t>;

class Scheduler {
 public:
  Scheduler(const HopGraph& hops, const Waits& waits, std::int32_t period)
      : hops_(hops), waits_(waits), period_(period), next_(hops.all.size()) {
    for (std::size_t hop = 0; hop < hops.all.size(); ++hop) {
      for (const std::int32_t before : {hops.all[hop].a, hops.all[hop].b}) {
        if (before >= 0) next_[as_index(before)].push_back({static_cast<std::int32_t>(hop), -1});
      }
    }
    for (const Order& order : hops.orders) {
      const std::int32_t steps = order.window ? waits.far : order.steps;
      next_[as_index(order.first)].push_back({order.then, steps});
    }
  }

  [[nodiscard]] Plan run(const std::vector<std::int64_t>& order, const char* name) {
    order_ = &order;
    const std::size_t many = hops_.all.size();
    plan_ = {period_, 0, std::vector<std::int32_t>(many, -1), name};
    ready_at_.assign(many, kAlways);
    not_before_.assign(many, 0);
    waiting_for_.assign(many, 0);
    ready_.assign(hops_.ports.size(), {});
    used_.assign(hops_.ports.size(), std::vector<std::int32_t>(as_index(period_), 0));
    left_ = many;
    for (const auto& after : next_) {
      for (const auto& [hop, steps] : after) ++waiting_for_[as_index(hop)];
    }
    for (const Hop& hop : hops_.all) {
      if (hop.step >= 0) ++used_[as_index(hop.port)][as_index(hop.step % period_)];
    }
    std::vector<std::int32_t> begin;  // found first: placing a hop makes others ready
    for (std::size_t hop = 0; hop < many; ++hop) {
      if (waiting_for_[hop] == 0) begin.push_back(static_cast<std::int32_t>(hop));
    }
    for (const std::int32_t hop : begin) make_ready(hop);
    for (std::int32_t step = 0; left_ > 0; ++step) {
      for (std::size_t port = 0; port < ready_.size(); ++port) fill(port, step);
    }
    return std::move(plan_);
  }

 private:
  static constexpr std::int32_t kAlways = -1;  // reads only input

  // Takes as many of the ready hops as the port has lanes left in this step.
  void fill(std::size_t port, std::int32_t step) {
    std::int32_t& used = used_[port][as_index(step % period_)];
    std::set<Rank>& ready = ready_[port];
    for (auto next = ready.begin(); next != ready.end() && used < hops_.ports[port].lanes;) {
      const std::int32_t hop = std::get<2>(*next);
      const std::int32_t waited = step - ready_at_[as_index(hop)];
      const bool may = ready_at_[as_index(hop)] == kAlways || waited >= waits_.far ||
                       (waited > 0 && waited <= waits_.near);
      if (!may || step < not_before_[as_index(hop)]) {
        ++next;
        continue;
      }
      next = ready.erase(next);
      ++used;
      ESPALIER_ASSERT(used <= hops_.ports[port].lanes);
      place(hop, step);
    }
  }

  void place(std::int32_t hop, std::int32_t step) {
    ESPALIER_ASSERT(step >= 0 && plan_.steps[as_index(hop)] < 0 && left_ > 0);
    plan_.steps[as_index(hop)] = step;
    plan_.length = std::max(plan_.length, step + 1);
    --left_;
    for (const auto& [after, steps] : next_[as_index(hop)]) {
      if (steps < 0) {
        ready_at_[as_index(after)] = std::max(ready_at_[as_index(after)], step);
      } else {
        not_before_[as_index(after)] = std::max(not_before_[as_index(after)], step + steps);
      }
      ESPALIER_ASSERT(waiting_for_[as_index(after)] > 0);
      if (--waiting_for_[as_index(after)] == 0) make_ready(after);
    }
  }

  // An operation runs in the step of its latest operand.
  void make_ready(std::int32_t hop) {
    const Hop& one = hops_.all[as_index(hop)];
    if (one.port < 0) {
      place(hop, std::max(ready_at_[as_index(hop)], not_before_[as_index(hop)]));
    } else if (one.step >= 0) {
      place(hop, one.step);
    } else {
      ready_[as_index(one.port)].insert(
          {(*order_)[as_index(hop)], hops_.tasks[as_index(one.task)].step, hop});
    }
  }

  const HopGraph& hops_;
  Waits waits_;
  std::int32_t period_;
  // By hop: the hops that need it (second: -1), and the hops that may only follow at least this
  // many steps later (second >= 0).
  std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> next_;
  const std::vector<std::int64_t>* order_ = nullptr;
  Plan plan_;
  std::vector<std::int32_t> ready_at_, not_before_, waiting_for_;
  std::vector<std::set<Rank>> ready_;            // by port
  std::vector<std::vector<std::int32_t>> used_;  // by port, and step of the period
  std::size_t left_ = 0;
};

// By hop: minus the number of links still to cross on the longest path that depends on it.
std::vector<std::int64_t> longest_way(const HopGraph& hops) {
  std::vector<std::int64_t> way(hops.all.size(), 0);
  for (std::size_t hop = hops.all.size(); hop-- > 0;) {
    if (hops.all[hop].port >= 0) --way[hop];
    for (const std::int32_t before : {hops.all[hop].a, hops.all[hop].b}) {
      if (before >= 0) way[as_index(before)] = std::min(way[as_index(before)], way[hop]);
    }
  }
  return way;
}

// By hop: minus the number of links that its message still has to cross.
std::vector<std::int64_t> message_left(const HopGraph& hops) {
  std::vector<std::int64_t> left;
  for (std::size_t hop = 0; hop < hops.all.size(); ++hop) {
    left.push_back(static_cast<std::int64_t>(hop) - hops.last_of(hops.all[hop].task));
  }
  return left;
}

}  // namespace

Result<HopGraph> find_hops(const topology::Topology& topology, Graph graph, PortModel ports) {
  HopGraph hops{.blocks = graph.blocks, .tasks = std::move(graph.tasks)};
  Router router(topology, ports, hops);
  for (std::size_t task = 0; task < hops.tasks.size(); ++task) {
    if (auto routed = router.add(static_cast<std::int32_t>(task)); !routed) {
      return fail(routed.error());
    }
    if (hops.all.size() > kMaxHops) {
      return fail("its messages cross more than " + std::to_string(kMaxHops) + " links");
    }
  }
  if (ports != PortModel::kSingleSend) hops.ports = hops.links;
  for (const InPlace& order : graph.in_place) {
    const bool from_send = hops.tasks[as_index(order.first)].kind == ActionKind::kSend;
    const bool into_receive = hops.tasks[as_index(order.then)].kind == ActionKind::kSend;
    hops.orders.push_back({hops.first[as_index(order.first)], hops.last_of(order.then),
                           into_receive, from_send ? 0 : 1});
  }
  return hops;
}

Plan find_steps(const HopGraph& hops, const Waits& waits, std::int32_t least_period) {
  std::int32_t period = least_period;
  for (const Port& port : hops.ports) period = std::max(period, port.steps());
  ESPALIER_ASSERT(period >= 1);
  Scheduler scheduler(hops, waits, period);
  Plan best = scheduler.run(std::vector<std::int64_t>(hops.all.size(), 0), "plain order");
  for (const auto& [order, name] : {std::pair(longest_way(hops), "longest way first"),
                                    std::pair(message_left(hops), "furthest first")}) {
    Plan plan = scheduler.run(order, name);
    if (plan.length < best.length) best = std::move(plan);
  }
  return best;
}

}  // namespace espalier::lower
