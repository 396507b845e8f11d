// The events of every rank: a step is issued, a message is posted, a message completes, an
// operation runs, a step retires. Each has the events that must precede it, by rules 2 to 6 of
// docs/architecture.md. These waits are monotone, so the ranks that are stuck do not depend on
// timing. So events are removed in any order that the rules allow. Among the rest, following the
// waits of an event leads into a cycle, unless it waits only for messages that never arrive.

#include "collectives/verify/report/wait_cycle.h"

#include <algorithm>
#include <map>
#include <utility>

#include "collectives/verify/properties/checks.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/properties/operands.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::verify {
namespace {

constexpr std::int64_t kMaxInstances = std::int64_t{1} << 21;  // instances and places

using EventId = std::uint32_t;
constexpr EventId kNone = 0xffffffffu;

enum class EventKind : std::uint8_t { kIssue, kPost, kTransfer, kRun, kRetire };

struct Event {
  EventKind kind = EventKind::kIssue;
  std::uint32_t node = 0;  // of a transfer: the receiver
  std::int64_t step = 0;
  const Instance* instance = nullptr;  // of a transfer: the receive
  std::vector<EventId> before;
};

// The events of one rank.
struct Rank {
  std::vector<std::int64_t> steps;          // those that have an action
  std::vector<EventId> issued, retired;     // by position in `steps`
  std::vector<std::vector<EventId>> ready;  // receives and operations, by position in `steps`
  std::map<std::uint32_t, std::vector<EventId>> sends, receives;  // by peer: posts, transfers
};

class Graph {
 public:
  Graph(const topology::Topology& topology, ExpandedSchedule& schedule)
      : topology_(topology), schedule_(schedule) {
    ranks_.resize(schedule.instances.size());
    for (std::uint32_t node = 0; node < ranks_.size(); ++node) add_rank(node);
    for (std::uint32_t node = 0; node < ranks_.size(); ++node) join_ends(node);
  }

  std::vector<std::string> cycle() {
    const std::vector<EventId> events = find_cycle();
    if (events.empty()) return {};
    return sentences(events);
  }

 private:
  EventId add(EventKind kind, std::uint32_t node, std::int64_t step, const Instance* instance,
              std::vector<EventId> before) {
    std::erase(before, kNone);
    events_.push_back({kind, node, step, instance, std::move(before)});
    return static_cast<EventId>(events_.size() - 1);
  }

  // Returns the position of the last step of `rank` that is <= step; -1: none.
  static std::int64_t position(const Rank& rank, std::int64_t step) {
    return std::upper_bound(rank.steps.begin(), rank.steps.end(), step) - rank.steps.begin() - 1;
  }

  void add_rank(std::uint32_t node) {
    const std::vector<Instance>& all = schedule_.instances[node];
    last_run_ = kNone;
    reads_.clear();
    for (std::size_t begin = 0; begin < all.size();) {
      std::size_t end = begin;
      while (end < all.size() && all[end].step == all[begin].step) ++end;
      add_step(node, begin, end);
      begin = end;
    }
  }

  void add_step(std::uint32_t node, std::size_t begin, std::size_t end) {
    const std::vector<Instance>& all = schedule_.instances[node];
    Rank& rank = ranks_[node];
    const Instance& first = all[begin];
    const std::int64_t gate = position(rank, schedule_.gate(first.step, first.phase));
    const EventId issued = add(EventKind::kIssue, node, first.step, nullptr,
                               {gate >= 0 ? rank.retired[static_cast<std::size_t>(gate)] : kNone,
                                rank.issued.empty() ? kNone : rank.issued.back()});
    std::vector<EventId> over = {rank.retired.empty() ? kNone : rank.retired.back(), issued};
    std::vector<EventId> ready = {issued};
    rank.steps.push_back(first.step);
    rank.issued.push_back(issued);
    std::vector<EventId> posts;
    for (std::size_t k = begin; k < end; ++k) {
      if (all[k].kind == ActionKind::kReceive) {
        const EventId id = add(EventKind::kTransfer, node, first.step, &all[k], {issued});
        rank.receives[static_cast<std::uint32_t>(all[k].peer)].push_back(id);
        ready.push_back(id);
      }
    }
    for (std::size_t k = begin; k < end; ++k) {
      if (all[k].kind == ActionKind::kSend) posts.push_back(add_send(node, all[k], issued));
    }
    for (std::size_t k = begin; k < end; ++k) {
      if (all[k].kind != ActionKind::kCombine && all[k].kind != ActionKind::kCopy) continue;
      add_operation(node, all[k], issued, posts, ready);
      ready.push_back(last_run_);
    }
    over.insert(over.end(), ready.begin(), ready.end());
    over.insert(over.end(), posts.begin(), posts.end());  // join_ends() replaces them by their ends
    rank.ready.push_back(std::move(ready));
    rank.retired.push_back(add(EventKind::kRetire, node, first.step, nullptr, std::move(over)));
  }

  // Adds a send, by rule 4.
  EventId add_send(std::uint32_t node, const Instance& send, EventId issued) {
    Rank& rank = ranks_[node];
    std::vector<EventId>& lane = rank.sends[static_cast<std::uint32_t>(send.peer)];
    std::vector<EventId> before = {issued, lane.empty() ? kNone : lane.back()};
    const std::int64_t awaited = position(rank, send.step - send.after);
    const bool waits = send.after > 0 && awaited >= 0 &&
                       rank.steps[static_cast<std::size_t>(awaited)] == send.step - send.after;
    if (waits) {
      const std::vector<EventId>& ready = rank.ready[static_cast<std::size_t>(awaited)];
      before.insert(before.end(), ready.begin(), ready.end());
    }
    const EventId id = add(EventKind::kPost, node, send.step, &send, std::move(before));
    lane.push_back(id);
    for (std::uint32_t part = 0; part < send.a.segment_count; ++part) {
      reads_[key(part_of(send.a, part))].push_back(id);
    }
    return id;
  }

  // Adds an operation, by rule 5. A wait for the end of a send is recorded as a wait for its
  // posting until join_ends().
  void add_operation(std::uint32_t node, const Instance& operation, EventId issued,
                     const std::vector<EventId>& posts, const std::vector<EventId>& own_ready) {
    Rank& rank = ranks_[node];
    std::vector<EventId> before = {issued, last_run_};
    const std::int64_t awaited = position(rank, operation.step - operation.after);
    if (operation.after == 0) {
      before.insert(before.end(), own_ready.begin(), own_ready.end());
    } else if (awaited >= 0 &&
               rank.steps[static_cast<std::size_t>(awaited)] == operation.step - operation.after) {
      for (const EventId id : rank.ready[static_cast<std::size_t>(awaited)]) {
        if (events_[id].kind != EventKind::kRun) before.push_back(id);
      }
    }
    before.insert(before.end(), posts.begin(), posts.end());
    last_run_ = add(EventKind::kRun, node, operation.step, &operation, std::move(before));
    for (std::uint32_t part = 0; part < operation.into.segment_count; ++part) {
      const OperandKey written = key(part_of(operation.into, part));
      for (const EventId send : reads_[written]) ends_before_.push_back({send, last_run_});
      reads_.erase(written);
    }
  }

  using OperandKey = std::pair<int, std::pair<std::int64_t, std::int64_t>>;
  static OperandKey key(const OperandAt& operand) {
    if (operand.buffer == Buffer::kScratch) return {operand.buffer, {operand.slot, 0}};
    return {operand.buffer, {operand.segment, operand.block}};
  }

  // Send k of a link ends with receive k at the other end. A send or receive without a counterpart
  // waits for an event that never happens.
  void join_ends(std::uint32_t node) {
    for (auto& [peer, posts] : ranks_[node].sends) {
      const std::vector<EventId> none;
      const auto other = ranks_[peer].receives.find(node);
      const std::vector<EventId>& ends =
          other == ranks_[peer].receives.end() ? none : other->second;
      for (std::size_t k = 0; k < posts.size(); ++k) {
        const EventId end = k < ends.size() ? ends[k] : kNone;
        if (end != kNone) events_[end].before.push_back(posts[k]);
        end_of_[posts[k]] = end;
      }
    }
    for (auto& [peer, transfers] : ranks_[node].receives) {
      const auto other = ranks_[peer].sends.find(node);
      const std::size_t sends = other == ranks_[peer].sends.end() ? 0 : other->second.size();
      for (std::size_t k = sends; k < transfers.size(); ++k) never_.push_back(transfers[k]);
    }
  }

  // Replaces postings by the ends of sends where an event waits for the end.
  void resolve_ends() {
    for (Event& event : events_) {
      if (event.kind != EventKind::kRetire) continue;
      for (EventId& id : event.before) id = end_of(id);
    }
    for (const auto& [send, segment_count] : ends_before_)
      events_[segment_count].before.push_back(end_of(send));
  }
  EventId end_of(EventId id) {
    if (events_[id].kind != EventKind::kPost) return id;
    const auto end = end_of_.find(id);
    if (end == end_of_.end() || end->second == kNone) {
      never_.push_back(id);
      return id;
    }
    return end->second;
  }

  std::vector<EventId> find_cycle() {
    resolve_ends();
    std::vector<std::uint32_t> open(events_.size(), 0);
    std::vector<std::vector<EventId>> then(events_.size());
    for (EventId id = 0; id < events_.size(); ++id) {
      for (const EventId before : events_[id].before) {
        ++open[id];
        then[before].push_back(id);
      }
    }
    for (const EventId id : never_) ++open[id];
    std::vector<EventId> next;
    for (EventId id = 0; id < events_.size(); ++id) {
      if (open[id] == 0) next.push_back(id);
    }
    while (!next.empty()) {
      const EventId id = next.back();
      next.pop_back();
      for (const EventId after : then[id]) {
        if (--open[after] == 0) next.push_back(after);
      }
    }
    return walk(open, then);
  }

  // Returns a cycle among the events that are still open. Events that wait only for messages that
  // never arrive are removed first, from the other end.
  std::vector<EventId> walk(std::vector<std::uint32_t>& open,
                            const std::vector<std::vector<EventId>>& then) {
    std::vector<std::uint32_t> waits(events_.size(), 0);
    std::vector<EventId> next;
    for (EventId id = 0; id < events_.size(); ++id) {
      if (open[id] == 0) continue;
      for (const EventId before : events_[id].before) waits[id] += open[before] > 0 ? 1 : 0;
      if (waits[id] == 0) next.push_back(id);
    }
    while (!next.empty()) {
      const EventId id = next.back();
      next.pop_back();
      open[id] = 0;
      for (const EventId after : then[id]) {
        if (open[after] > 0 && --waits[after] == 0) next.push_back(after);
      }
    }
    const auto start = std::find_if(open.begin(), open.end(), [](auto count) { return count > 0; });
    if (start == open.end()) return {};
    std::vector<EventId> path;
    std::vector<bool> seen(events_.size(), false);
    auto id = static_cast<EventId>(start - open.begin());
    while (!seen[id]) {
      seen[id] = true;
      path.push_back(id);
      id = *std::find_if(events_[id].before.begin(), events_[id].before.end(),
                         [&open](EventId before) { return open[before] > 0; });
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), id));
    return path;
  }

  // Each line: a transfer between two ranks of the cycle, and the events of the second rank up to
  // the next transfer.
  std::vector<std::string> sentences(std::vector<EventId> path) const {
    const auto crosses = [&](std::size_t k) {
      const EventId last = path[(k + path.size() - 1) % path.size()];
      const EventId next = path[(k + 1) % path.size()];
      return events_[path[k]].kind == EventKind::kTransfer &&
             events_[last].node != events_[next].node;
    };
    std::vector<std::size_t> transfers;
    for (std::size_t k = 0; k < path.size(); ++k) {
      if (crosses(k)) transfers.push_back(k);
    }
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const std::size_t k = transfers[i];
      const Event& waiting = events_[path[(k + path.size() - 1) % path.size()]];
      const Event& transfer = events_[path[k]];
      const Event& other = events_[path[(k + 1) % path.size()]];
      const std::size_t end = transfers[(i + 1) % transfers.size()];
      const std::string there = topology_.node_name(other.node);
      lines.push_back(
          topology_.node_name(waiting.node) + " waits in step " + std::to_string(waiting.step) +
          " for " + there + (other.node == transfer.node ? " to receive " : " to send ") +
          block_name(moved(*transfer.instance)) + ", which " + there + " does in step " +
          std::to_string(other.step) + because(path, (k + 1) % path.size(), end));
    }
    return lines;
  }

  // Returns the reason why the event at `k` of the cycle waits for the transfer at `end`: the first
  // event between them that gives one.
  [[nodiscard]] std::string because(const std::vector<EventId>& path, std::size_t k,
                                    std::size_t end) const {
    const Event& first = events_[path[k]];
    for (; k != end; k = (k + 1) % path.size()) {
      const Event& event = events_[path[k]];
      const std::string step = std::to_string(event.step);
      if (event.kind == EventKind::kRetire) {
        return ", once its step " + step + " is over (window " +
               std::to_string(schedule_.common->window) + ")";
      }
      if (event.kind == EventKind::kRun) {
        return ", once it has computed " + block_name(event.instance->into) + " in step " + step;
      }
    }
    return ", once what step " + std::to_string(first.step) + " waits for has come";
  }

  const topology::Topology& topology_;
  const ExpandedSchedule& schedule_;
  std::vector<Rank> ranks_;
  std::vector<Event> events_;
  std::map<EventId, EventId> end_of_;                     // posting of a send -> its transfer
  std::vector<std::pair<EventId, EventId>> ends_before_;  // a send must end before an operation
  std::vector<EventId> never_;                            // events that never happen
  EventId last_run_ = kNone;                              // of the rank that is being added
  std::map<OperandKey, std::vector<EventId>> reads_;  // sends from each operand, of the same rank
};

}  // namespace

std::vector<std::string> wait_cycle(const topology::Topology& topology, const Programs& programs,
                                    std::int64_t blocks) {
  const OwnedProgram common = programs(0);
  ExpandedSchedule schedule{.topology = &topology, .common = &common};
  schedule.max_instances = kMaxInstances;
  set_blocks(schedule, blocks);
  const std::uint32_t nodes = program_nodes(common);
  if (nodes > topology.nodes()) return {};
  schedule.instances.resize(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Program& program = programs(node);
    if (check_size(schedule, node, program)) return {};
    schedule.instances[node] = expand(program, blocks);
    for (const Instance& instance : schedule.instances[node]) {
      const bool transfer =
          instance.kind == ActionKind::kSend || instance.kind == ActionKind::kReceive;
      if (transfer && (instance.peer < 0 || instance.peer >= nodes)) return {};
    }
  }
  return Graph(topology, schedule).cycle();
}

}  // namespace espalier::verify
