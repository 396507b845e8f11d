#include "tests/algorithms/replay.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "espalier/collectives/schedule/expand.h"

namespace espalier::replay {
namespace {

// The content of a buffer location: the ordered combination of the inputs of `length` ranks from
// `first` onward, for one block. Without combining it is the one rank that it comes from. If
// operators must be commutative, the ranks are those in `heard`, in any order. In an all-to-all the
// segment is the destination rank. In a barrier: only the ranks that the rank has heard of.
struct Value {
  std::int64_t first = 0, length = 0;
  std::int64_t segment = 0, block = 0;
  std::vector<bool> heard;
  bool operator==(const Value&) const = default;
};

struct Cell {
  std::optional<Value> value;
  std::int64_t written = -1;  // step of the last write; -1: before the start
  std::uint32_t written_in = 0;
  bool received = false;          // the last write was a receive
  std::int64_t last_access = -1;  // step of the last read or write
  std::uint32_t accessed_in = 0;  // the phase of that access
};

using Key = std::tuple<int, std::int64_t, std::int64_t>;

Key key_of(const OperandAt& at) {
  if (at.buffer == Buffer::kScratch) return {at.buffer, 0, at.slot};
  return {at.buffer, at.segment, at.block};
}

// Part number `part` of an operand of several segments.
OperandAt part_of(OperandAt at, std::uint32_t part) {
  at.segment += part;
  at.slot += part;
  at.segment_count = 1;
  return at;
}

struct Message {
  std::int64_t arrival;  // step
  OperandAt from;
  std::vector<Value> parts;
};

// The state of one node.
struct NodeState {
  std::map<Key, Cell> cells;
  // For each step that an operation waited for: the step of the first such operation. All later
  // operations, and all actions that wait for them, come after the receives of that step.
  std::map<std::int64_t, std::int64_t> awaited;
  // Actions; `tight`: those whose `after` some instance needs.
  std::set<std::uint32_t> sends, tight;
  std::int64_t last_send = -1, last_receive = -1;
};

struct Failure {
  std::string text;
};

class Replay {
 public:
  Replay(const Schedule& schedule, std::int64_t blocks) : schedule_(schedule), blocks_(blocks) {
    const Program& any = schedule.programs[0];
    send_ticks_ = any.send_ticks == 0 ? 1 : any.send_ticks;
    latency_ticks_ = any.latency_ticks == 0 ? 1 : any.latency_ticks;
    all_to_all_ = any.collective == Collective::kAllToAll;
    barrier_ = any.collective == Collective::kBarrier;
  }

  std::int64_t run() {
    const std::size_t nodes = schedule_.programs.size();
    nodes_.resize(nodes);
    std::vector<std::vector<Instance>> instances;
    std::int64_t steps = 0;
    for (const Program& program : schedule_.programs) {
      instances.push_back(expand(program, blocks_));
      if (!instances.back().empty()) steps = std::max(steps, instances.back().back().step + 1);
    }
    std::vector<std::size_t> next(nodes, 0);
    for (step_ = 0; step_ < steps; ++step_) {
      std::vector<std::vector<const Instance*>> now(nodes);
      for (rank_ = 0; rank_ < nodes; ++rank_) {
        const std::vector<Instance>& mine = instances[rank_];
        for (; next[rank_] < mine.size() && mine[next[rank_]].step == step_; ++next[rank_]) {
          now[rank_].push_back(&mine[next[rank_]]);
        }
      }
      step(now);
    }
    for (rank_ = 0; rank_ < nodes; ++rank_) check_end();
    return steps;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::ostringstream text;
    const Program& program = schedule_.programs[0];
    text << collective_name(program.collective) << ' ' << program.algorithm << " p "
         << program.ranks << " root " << program.root << " window " << program.window << " N "
         << blocks_ << " node " << rank_ << " step " << step_ << ": " << what;
    throw Failure{text.str()};
  }
  void require(bool holds, const char* what) const {
    if (!holds) fail(what);
  }

  const Program& program() const { return schedule_.programs[rank_]; }
  NodeState& node() { return nodes_[rank_]; }
  std::int64_t ranks() const { return program().ranks; }
  std::int64_t me() const { return static_cast<std::int64_t>(rank_); }
  // Checks that the caller's buffer contains the location.
  void check_operand(const OperandAt& at) const {
    require(at.segment >= 0 && at.segment < program().segments, "segment outside the message");
    require(at.block >= 0 && at.block < blocks_, "block outside the segment");
    if (at.buffer == Buffer::kScratch) {
      require(at.slot >= 0 && at.slot < program().scratch_blocks, "slot outside the scratch");
      return;
    }
    if (barrier_ && at.buffer == Buffer::kInput) return;
    const Extent extent = buffer_extent(program(), at.buffer);
    require(extent != Extent::kNothing, "names a buffer that the node does not have");
    require(extent == Extent::kWhole || at.segment == me(), "names another rank's segment");
  }

  Cell& cell(const OperandAt& at) {
    check_operand(at);
    auto [found, added] = node().cells.try_emplace(key_of(at));
    if (added && at.buffer == Buffer::kInput) {
      Value own{me(), 1, at.segment, at.block, {}};
      if (barrier_ || program().needs_commutative) {
        own.heard.resize(static_cast<std::size_t>(ranks()));
        own.heard[rank_] = true;
      }
      found->second.value = own;
    }
    return found->second;
  }

  Value read(const OperandAt& at) {
    Cell& from = cell(at);
    require(from.value.has_value(), "reads a place that holds nothing");
    // In an all-to-all the segment of a location is the other rank, the segment of a value its
    // destination.
    const bool same_segment = all_to_all_ || from.value->segment == at.segment;
    require(same_segment && from.value->block == at.block, "reads another block than it names");
    from.last_access = step_;
    from.accessed_in = phase_;
    return *from.value;
  }

  void write(const OperandAt& at, const Value& value, bool received) {
    Cell& into = cell(at);
    require(at.buffer != Buffer::kInput, "writes INPUT");
    // Phases are barriers. Within a phase, a receive may land once step - W has retired.
    if (received && into.last_access >= 0 && into.accessed_in == phase_) {
      require(into.last_access <= step_ - program().window, "slot reused within the window");
    }
    into = {value, step_, phase_, received, step_, phase_};
  }

  // Whether a send that waits for the step `after` back (0: for none) comes after the last write of
  // the location by that wait alone, without the window.
  bool comes_after(const OperandAt& at, std::int64_t after) {
    const Cell& from = cell(at);
    if (from.written < 0 || from.written_in != phase_) return true;
    if (after == 0) return false;
    if (!from.received) return from.written <= step_ - after;
    const auto waited = node().awaited.find(from.written);
    return from.written == step_ - after ||
           (waited != node().awaited.end() && waited->second <= step_ - after);
  }
  bool comes_after_all(const OperandAt& segment_count, std::int64_t after) {
    for (std::uint32_t part = 0; part < segment_count.segment_count; ++part) {
      if (!comes_after(part_of(segment_count, part), after)) return false;
    }
    return true;
  }
  // A send must wait for the write of the data that it reads, and for nothing else.
  void check_after(const Instance& send) {
    require(comes_after_all(send.a, send.after), "sends what it did not wait for");
    const bool less = comes_after_all(send.a, 0);
    const bool earlier = send.after > 0 && comes_after_all(send.a, send.after + 1);
    node().sends.insert(send.action);
    if (send.after == 0 || (!less && !earlier)) node().tight.insert(send.action);
  }

  void send(const Instance& at) {
    require(at.peer >= 0 && at.peer < static_cast<std::int64_t>(nodes_.size()), "sends to no node");
    phase_ = at.phase;
    check_after(at);
    Message message{step_ + latency_ticks_ - 1, at.a, {}};
    for (std::uint32_t part = 0; part < at.a.segment_count; ++part) {
      message.parts.push_back(read(part_of(at.a, part)));
    }
    flying_[{me(), at.peer}].push_back(std::move(message));
  }

  void receive(const Instance& at) {
    std::deque<Message>& link = flying_[{at.peer, me()}];
    require(!link.empty() && link.front().arrival == step_, "receives what nobody sends");
    const Message& sent = link.front();
    require(sent.from.segment_count == at.into.segment_count,
            "receives another segment count than was sent");
    require(sent.from.block == at.into.block, "receives another block than was sent");
    require(all_to_all_ || sent.from.segment == at.into.segment,
            "receives another segment than was sent");
    phase_ = at.phase;
    for (std::uint32_t part = 0; part < at.into.segment_count; ++part) {
      write(part_of(at.into, part), sent.parts[part], true);
    }
    link.pop_front();
  }

  // One send and one receive per step (postal model: per send_ticks steps); simplex: only one of
  // the two.
  void check_ports(const std::vector<const Instance*>& now) {
    const PortModel ports = program().port_model;
    int sends = 0, receives = 0;
    for (const Instance* at : now) {
      sends += at->kind == ActionKind::kSend;
      receives += at->kind == ActionKind::kReceive;
    }
    if (ports == PortModel::kMultiport) return;
    require(sends <= 1, "two sends in one step");
    require(ports == PortModel::kSingleSend || receives <= 1, "two receives in one step");
    require(ports != PortModel::kSimplex || sends + receives <= 1,
            "sends and receives in one step");
    const auto use = [&](int count, std::int64_t& last, const char* what) {
      if (count == 0) return;
      require(last < 0 || step_ - last >= send_ticks_, what);
      last = step_;
    };
    use(sends, node().last_send, "the port still sends");
    use(receives, node().last_receive, "the port still receives");
  }

  void step(const std::vector<std::vector<const Instance*>>& now) {
    for (rank_ = 0; rank_ < now.size(); ++rank_) {
      check_ports(now[rank_]);
      for (const Instance* at : now[rank_]) {
        if (at->kind == ActionKind::kSend) send(*at);
      }
    }
    for (rank_ = 0; rank_ < now.size(); ++rank_) {
      for (const Instance* at : now[rank_]) {
        if (at->kind == ActionKind::kReceive) receive(*at);
      }
    }
    std::erase_if(flying_, [](const auto& link) { return link.second.empty(); });
    for (const auto& [link, messages] : flying_) {
      require(messages.front().arrival > step_, "nobody receives a message");
    }
    for (rank_ = 0; rank_ < now.size(); ++rank_) {
      for (const Instance* at : now[rank_]) operate(*at);
    }
  }

  void operate(const Instance& at) {
    if (at.kind != ActionKind::kCopy && at.kind != ActionKind::kCombine) return;
    phase_ = at.phase;
    node().awaited.try_emplace(step_ - at.after, step_);
    for (std::uint32_t part = 0; part < at.into.segment_count; ++part) {
      const OperandAt into = part_of(at.into, part);
      const Value a = operand(part_of(at.a, part));
      write(into, at.kind == ActionKind::kCopy ? a : joined(a, operand(part_of(at.b, part))),
            false);
    }
  }

  // The operation, or an earlier one, must have waited for the receive that wrote the operand.
  Value operand(const OperandAt& at) {
    const Cell& from = cell(at);
    require(!from.received || from.written_in != phase_ || node().awaited.contains(from.written),
            "reads a block before it waits for it");
    return read(at);
  }

  Value joined(Value a, const Value& b) {
    require(a.segment == b.segment && a.block == b.block, "combines different blocks");
    if (barrier_) {
      for (std::size_t rank = 0; rank < a.heard.size(); ++rank) {
        if (b.heard[rank]) a.heard[rank] = true;
      }
      return a;
    }
    if (program().needs_commutative) {
      for (std::size_t rank = 0; rank < a.heard.size(); ++rank) {
        require(!a.heard[rank] || !b.heard[rank], "combines an input twice");
        if (b.heard[rank]) a.heard[rank] = true;
      }
    } else {
      require(a.first + a.length == b.first, "combines out of rank order");
      require(a.length + b.length <= ranks(), "combines an input twice");
    }
    a.length += b.length;
    return a;
  }

  void check_end() {
    step_ = -1;
    require(node().sends == node().tight, "a send's `after` waits for more than it needs");
    if (is_router(program())) return;
    if (barrier_) return check_heard();
    const Extent extent = buffer_extent(program(), Buffer::kOutput);
    if (extent == Extent::kNothing) return;
    OperandAt at;
    at.buffer = Buffer::kOutput;
    for (at.segment = 0; at.segment < program().segments; ++at.segment) {
      if (extent == Extent::kOwn && at.segment != me()) continue;
      for (at.block = 0; at.block < blocks_; ++at.block) {
        const Cell& result = cell(at);
        require(result.value.has_value(), "a block is missing");
        check_result(*result.value, at);
      }
    }
  }

  void check_result(const Value& value, const OperandAt& at) const {
    std::int64_t first = 0, length = ranks(), segment = at.segment;
    switch (program().collective) {
      case Collective::kScan: length = me() + 1; break;
      case Collective::kExscan: length = me(); break;
      case Collective::kBroadcast:
      case Collective::kScatter:
        first = program().root;
        length = 1;
        break;
      case Collective::kGather:
      case Collective::kAllgather:
        first = at.segment;
        length = 1;
        break;
      case Collective::kAllToAll:
        first = at.segment;
        length = 1;
        segment = me();
        break;
      default:  // all inputs; if the order may be arbitrary, from any rank onward
        if (program().needs_commutative) first = value.first;
    }
    require(value.first == first && value.length == length, "another combination than wanted");
    require(value.segment == segment && value.block == at.block, "another block's result");
  }

  void check_heard() {
    OperandAt own;
    own.buffer = Buffer::kInput;
    std::vector<bool> heard = cell(own).value->heard;
    for (const auto& [key, known] : node().cells) {
      for (std::size_t rank = 0; known.value && rank < heard.size(); ++rank) {
        if (known.value->heard[rank]) heard[rank] = true;
      }
    }
    require(std::find(heard.begin(), heard.end(), false) == heard.end(), "a rank is not heard of");
  }

  const Schedule& schedule_;
  const std::int64_t blocks_;
  std::int64_t send_ticks_ = 1, latency_ticks_ = 1;
  bool all_to_all_ = false, barrier_ = false;
  std::size_t rank_ = 0;
  std::int64_t step_ = 0;
  std::uint32_t phase_ = 0;
  std::vector<NodeState> nodes_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::deque<Message>> flying_;  // by link
};

}  // namespace

std::string run(const Schedule& schedule, std::int64_t blocks, std::int64_t& steps) {
  if (!schedule.error.empty()) return schedule.error;
  try {
    steps = Replay(schedule, blocks).run();
  } catch (const Failure& failure) {
    return failure.text;
  }
  for (const Program& program : schedule.programs) {
    if (count_value(program.counts[program.steps_ref], blocks) != steps ||
        phase_steps(program, blocks) != steps) {
      return "claimed steps differ from the " + std::to_string(steps) + " taken, rank " +
             std::to_string(program.node) + " of " + std::to_string(program.ranks);
    }
    if (count_value(program.counts[program.bound_ref], blocks) > steps) {
      return "claimed bound above the steps";
    }
  }
  return "";
}

}  // namespace espalier::replay
