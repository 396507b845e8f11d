#include "collectives/algorithms/searched/timed.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace espalier::searched {
namespace {

// An instance of an action in the first block.
struct Row {
  std::int32_t step = 0;
  std::int32_t link = 0;
  std::int32_t what = 0;  // segment (ranks) or slot (routers)
};

// What passes a node: `came` and `goes` are steps, -1 where it begins or ends here.
struct Passing {
  std::int32_t came = -1, goes = -1;
  std::uint32_t from = 0, to = 0;  // nodes
  std::int32_t segment = 0;
};

std::vector<std::vector<Passing>> passings_of(const TimedExchange& exchange) {
  std::vector<std::vector<Passing>> all(exchange.outline.nodes);
  for (const TimedRoute& route : exchange.routes) {
    for (std::size_t at = 0; at < route.nodes.size(); ++at) {
      Passing passing;
      const bool first = at == 0, last = at == route.steps.size();
      if (!first) {
        passing.came = route.steps[at - 1];
        passing.from = route.nodes[at - 1];
      }
      if (!last) {
        passing.goes = route.steps[at];
        passing.to = route.nodes[at + 1];
      }
      passing.segment = static_cast<std::int32_t>(first ? route.nodes.back() : route.nodes.front());
      all[route.nodes[at]].push_back(passing);
    }
  }
  return all;
}

// Slots of a router, each free or taken in every step of a period.
class Slots {
 public:
  explicit Slots(std::int32_t period) : period_(period) {}

  // A slot that is free from step `first` for `steps` steps, which it takes.
  std::int32_t take(std::int32_t first, std::int32_t steps) {
    std::size_t slot = 0;
    while (slot < taken_.size() && !is_free(slot, first, steps)) ++slot;
    if (slot == taken_.size()) taken_.emplace_back(static_cast<std::size_t>(period_), false);
    for (std::int32_t at = 0; at < steps; ++at) taken_[slot][place(first + at)] = true;
    return static_cast<std::int32_t>(slot);
  }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(taken_.size()); }

 private:
  [[nodiscard]] std::size_t place(std::int32_t step) const {
    return static_cast<std::size_t>(step % period_);
  }
  [[nodiscard]] bool is_free(std::size_t slot, std::int32_t first, std::int32_t steps) const {
    for (std::int32_t at = 0; at < steps; ++at) {
      if (taken_[slot][place(first + at)]) return false;
    }
    return true;
  }

  std::int32_t period_;
  std::vector<std::vector<bool>> taken_;
};

class NodeWriter {
 public:
  NodeWriter(Program& program, const TimedExchange& exchange)
      : builder_(program), program_(program), exchange_(exchange) {}

  [[nodiscard]] Status write(const Group& group, std::uint32_t node,
                             std::vector<Passing>& passings);
  [[nodiscard]] const std::vector<std::int16_t>& entries() const { return entries_; }
  // Whether a number was met that is too large for an entry.
  [[nodiscard]] bool too_large() const { return too_large_; }

 private:
  void add_rank(std::uint32_t rank, const std::vector<Passing>& passings);
  void add_router(const std::vector<Passing>& passings);
  void add(Kind kind, Buffer buffer, std::uint32_t after, std::vector<Row> rows);
  [[nodiscard]] std::int32_t link(std::uint32_t peer) {
    return static_cast<std::int32_t>(builder_.link(peer));
  }
  // An index that is these values in turn; a constant where all are alike.
  [[nodiscard]] std::uint8_t index(const std::vector<std::int32_t>& column);
  // coef * the entry of instance i's position in its round.
  [[nodiscard]] Term lookup(std::int32_t coef, const std::vector<std::int32_t>& column);
  // coef * the number of the round of `rows` instances.
  [[nodiscard]] static Term round(std::int32_t coef, std::size_t rows) {
    return {.coef = coef,
            .mul = 1,
            .add = 0,
            .div = static_cast<std::uint32_t>(rows),
            .mod = 0,
            .base = 0,
            .digits = 0,
            .table = 0};
  }

  Builder builder_;
  Program& program_;
  const TimedExchange& exchange_;
  std::vector<std::int16_t> entries_;
  std::map<std::vector<std::int32_t>, std::uint32_t> columns_;  // where they begin
  bool too_large_ = false;
};

Term NodeWriter::lookup(std::int32_t coef, const std::vector<std::int32_t>& column) {
  const auto [found, fresh] =
      columns_.try_emplace(column, static_cast<std::uint32_t>(entries_.size()));
  for (std::size_t at = 0; fresh && at < column.size(); ++at) {
    too_large_ = too_large_ || column[at] > std::numeric_limits<std::int16_t>::max();
    entries_.push_back(static_cast<std::int16_t>(column[at]));
  }
  return {.coef = coef,
          .mul = 1,
          .add = 0,
          .div = 0,
          .mod = static_cast<std::uint32_t>(column.size()),
          .base = 0,
          .digits = 0,
          .table = found->second + 1};
}

std::uint8_t NodeWriter::index(const std::vector<std::int32_t>& column) {
  const auto other = [&](std::int32_t value) { return value != column[0]; };
  if (std::none_of(column.begin(), column.end(), other)) {
    return builder_.constant(static_cast<std::uint32_t>(column[0]));
  }
  return builder_.index(Index{}, {lookup(1, column)});
}

// Round r of the rows, in the order of their steps within a period: in it stands, of block r - q,
// what is q periods after the first.
void NodeWriter::add(Kind kind, Buffer buffer, std::uint32_t after, std::vector<Row> rows) {
  if (rows.empty()) return;
  std::int32_t first = rows[0].step;
  for (const Row& row : rows) first = std::min(first, row.step);
  const std::int32_t period = exchange_.period;
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return (a.step - first) % period < (b.step - first) % period;
  });
  std::vector<std::int32_t> steps, later, links, whats;
  std::int32_t most_later = 0, last = 0;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    steps.push_back((rows[at].step - first) % period);
    later.push_back((rows[at].step - first) / period);
    links.push_back(rows[at].link);
    whats.push_back(rows[at].what);
    if (later.back() < most_later) continue;
    most_later = later.back();
    last = static_cast<std::int32_t>(at);
  }
  const auto many = static_cast<std::int32_t>(rows.size());
  Place at = Builder::place(buffer, builder_.constant(0));
  (buffer == espalier_Buffer_SCRATCH ? at.slot_ref : at.segment_ref) = index(whats);
  Index block{};
  if (most_later == 0) {
    block.coef = 1;
    block.div = static_cast<std::uint32_t>(many > 1 ? many : 0);
    at.block_ref = builder_.index(block);
  } else {
    at.block_ref = builder_.index(block, {round(1, rows.size()), lookup(-1, later)});
  }
  const std::uint8_t link_ref = index(links);
  const std::uint8_t pace = builder_.index(Index{}, {round(period, rows.size()), lookup(1, steps)});
  // Up to the last of them that is of the last block.
  const std::uint8_t instances = builder_.count(many * (most_later - 1) + last + 1, many);
  const auto t0 = static_cast<std::uint32_t>(first);
  Action& added = kind == espalier_Kind_SEND ? builder_.send_by(t0, link_ref, at, after)
                                             : builder_.receive_by(t0, link_ref, at);
  added.instances_ref = instances;
  added.pace_ref = pace;
}

void NodeWriter::add_rank(std::uint32_t rank, const std::vector<Passing>& passings) {
  Index pace{};  // as all else, so that one proof serves every N
  pace.coef = exchange_.period;
  builder_.copy(0, builder_.output(rank), builder_.input(rank)).pace_ref = builder_.index(pace);
  std::vector<Row> sends, receives;
  for (const Passing& one : passings) {
    if (one.goes >= 0) {
      sends.push_back({one.goes, link(one.to), one.segment});
    } else {
      receives.push_back({one.came, link(one.from), one.segment});
    }
  }
  add(espalier_Kind_SEND, espalier_Buffer_INPUT, 0, std::move(sends));
  add(espalier_Kind_RECEIVE, espalier_Buffer_OUTPUT, 0, std::move(receives));
}

void NodeWriter::add_router(const std::vector<Passing>& passings) {
  const auto window = static_cast<std::int32_t>(program_.window);
  Slots slots(exchange_.period);
  std::vector<Row> receives;
  std::map<std::int32_t, std::vector<Row>> sends;  // by what they wait for, 0: the window
  for (const Passing& one : passings) {
    const std::int32_t waits = one.goes - one.came;
    const std::int32_t slot = slots.take(one.came, waits + window);
    receives.push_back({one.came, link(one.from), slot});
    sends[waits < window ? waits : 0].push_back({one.goes, link(one.to), slot});
  }
  (void)builder_.scratch(slots.count());
  add(espalier_Kind_RECEIVE, espalier_Buffer_SCRATCH, 0, std::move(receives));
  for (auto& [after, rows] : sends) {
    add(espalier_Kind_SEND, espalier_Buffer_SCRATCH, static_cast<std::uint32_t>(after), rows);
  }
}

Status NodeWriter::write(const Group& group, std::uint32_t node, std::vector<Passing>& passings) {
  const Status status = builder_.begin(group, node, exchange_.outline);
  if (status != Status::kOk) return status;
  std::stable_sort(passings.begin(), passings.end(), [](const Passing& a, const Passing& b) {
    return std::pair(a.came, a.goes) < std::pair(b.came, b.goes);
  });
  if (is_router(program_)) {
    add_router(passings);
  } else {
    add_rank(node, passings);
  }
  builder_.phase(1, steps_of(exchange_) - exchange_.period, exchange_.period);
  return builder_.finish(exchange_.bound);
}

}  // namespace

std::int32_t steps_of(const TimedExchange& exchange) {
  std::int32_t steps = 0;
  for (const TimedRoute& route : exchange.routes) steps = std::max(steps, route.steps.back() + 1);
  return steps;
}

std::int32_t period_apart(const TimedExchange& exchange, std::int32_t least, std::uint32_t window) {
  std::int32_t period = least;
  for (const std::vector<Passing>& node : passings_of(exchange)) {
    constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();
    std::int32_t came[2] = {kNever, -1}, goes[2] = {kNever, -1};
    const auto take = [](std::int32_t(&range)[2], std::int32_t step) {
      if (step < 0) return;
      range[0] = std::min(range[0], step);
      range[1] = std::max(range[1], step);
    };
    for (const Passing& one : node) {
      take(came, one.came);
      take(goes, one.goes);
      if (one.came < 0 || one.goes < 0) continue;
      period = std::max(period, one.goes - one.came + static_cast<std::int32_t>(window));
    }
    for (const auto& range : {came, goes}) {
      if (range[1] >= 0) period = std::max(period, range[1] - range[0] + 1);
    }
  }
  return period;
}

std::string write_exchange(const Group& group, const TimedExchange& exchange, Programs& programs) {
  const std::uint32_t nodes = exchange.outline.nodes;
  programs.assign(nodes, Program{});
  std::vector<std::vector<Passing>> passings = passings_of(exchange);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    NodeWriter writer(programs[node], exchange);
    Status status = writer.write(group, node, passings[node]);
    const bool fits = !writer.too_large() && 2 * writer.entries().size() <= kMaxTableBytes;
    if (status == Status::kOk && !fits) status = Status::kTooLarge;
    if (status == Status::kOk) {
      programs.set_table(programs[node], writer.entries());
      continue;
    }
    programs.clear();
    return std::string(exchange.outline.algorithm) + ", node " + std::to_string(node) + ": " +
           status_name(status);
  }
  return "";
}

}  // namespace espalier::searched
