#include "tests/algorithms/replay.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include "collectives/schedule/expand.h"

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

struct Message {
  std::int64_t arrival;  // step
  OperandAt from;
  std::vector<Value> parts;
};

// The state of one node.
struct NodeState {
  std::array<std::vector<Cell>, 4> cells;  // by buffer
  // For each step that an operation waited for: the step of the first such operation. All later
  // operations, and all actions that wait for them, come after the receives of that step.
  std::map<std::int64_t, std::int64_t> awaited;
  // Actions; `tight`: those whose `after` some instance needs.
  std::set<std::uint32_t> sends, tight;
  std::int64_t last_send = -1, last_receive = -1;
};

class Replay {
 public:
  // topology: the links of a schedule that runs hop by hop; null: every node reaches every node.
  Replay(const Programs& programs, std::int64_t blocks, const topology::Topology* topology)
      : programs_(programs), blocks_(blocks), topology_(topology) {
    const Program& any = programs[0];
    send_ticks_ = any.send_ticks == 0 ? 1 : any.send_ticks;
    latency_ticks_ = any.latency_ticks == 0 ? 1 : any.latency_ticks;
    all_to_all_ = any.collective == Collective::kAllToAll;
    barrier_ = any.collective == Collective::kBarrier;
  }

  // Otherwise the first check that failed, and where.
  Result<LinkOutcome> run() {
    const std::size_t nodes = programs_.size();
    nodes_.resize(nodes);
    std::vector<std::vector<Instance>> instances;
    std::int64_t steps = 0;
    for (const Program& program : programs_) {
      instances.push_back(expand(program, blocks_));
      if (!instances.back().empty()) steps = std::max(steps, instances.back().back().step + 1);
    }
    std::vector<std::size_t> next(nodes, 0);
    std::vector<std::span<const Instance>> now(nodes);
    for (step_ = 0; step_ < steps && failure_.empty(); ++step_) {
      for (rank_ = 0; rank_ < nodes; ++rank_) {
        const std::vector<Instance>& mine = instances[rank_];
        const std::size_t first = next[rank_];
        while (next[rank_] < mine.size() && mine[next[rank_]].step == step_) ++next[rank_];
        now[rank_] = std::span(mine).subspan(first, next[rank_] - first);
      }
      step(now);
    }
    for (rank_ = 0; rank_ < nodes && failure_.empty(); ++rank_) check_end();
    if (!failure_.empty()) return fail(failure_);
    return LinkOutcome{steps, held_};
  }

 private:
  // Whether this check and all earlier ones hold. The first that does not is the failure; later
  // ones may only be its consequences.
  bool require(bool holds, const char* what) {
    if (holds && failure_.empty()) return true;
    if (failure_.empty()) set_failure(what);
    return false;
  }
  void set_failure(const char* what) {
    std::ostringstream text;
    const Program& program = programs_[0];
    text << collective_name(program.collective) << ' ' << program.algorithm << " p "
         << program.ranks << (topology_ == nullptr ? "" : " on " + topology_->spec()) << " root "
         << program.root << " window " << program.window << " N " << blocks_ << " node " << rank_
         << " step " << step_ << ": " << what;
    failure_ = text.str();
  }

  const Program& program() const { return programs_[rank_]; }
  NodeState& node() { return nodes_[rank_]; }
  std::int64_t ranks() const { return program().ranks; }
  std::int64_t me() const { return static_cast<std::int64_t>(rank_); }
  // Checks that the caller's buffer contains the location.
  void check_operand(const OperandAt& operand) {
    require(operand.segment >= 0 && operand.segment < program().segments,
            "segment outside the message");
    require(operand.block >= 0 && operand.block < blocks_, "block outside the segment");
    if (operand.buffer == Buffer::kScratch) {
      require(operand.slot >= 0 && operand.slot < program().scratch_blocks,
              "slot outside the scratch");
      return;
    }
    if (barrier_ && operand.buffer == Buffer::kInput) return;
    const Extent extent = buffer_extent(program(), operand.buffer);
    require(extent != Extent::kNothing, "names a buffer that the node does not have");
    require(extent == Extent::kWhole || operand.segment == me(), "names another rank's segment");
  }

  // A place of the node, or, once a check has failed, one that is not used.
  Cell& cell(const OperandAt& operand) {
    check_operand(operand);
    if (!failure_.empty()) return outside_;
    std::vector<Cell>& cells = node().cells[operand.buffer];
    const bool scratch = operand.buffer == Buffer::kScratch;
    const std::int64_t at = scratch ? operand.slot
                            : buffer_extent(program(), operand.buffer) == Extent::kOwn
                                ? operand.block
                                : operand.segment * blocks_ + operand.block;
    if (at >= static_cast<std::int64_t>(cells.size()))
      cells.resize(static_cast<std::size_t>(at) + 1);
    Cell& found = cells[static_cast<std::size_t>(at)];
    if (operand.buffer == Buffer::kInput && !found.value) {
      Value own{me(), 1, operand.segment, operand.block, {}};
      if (barrier_ || program().needs_commutative) {
        own.heard.resize(static_cast<std::size_t>(ranks()));
        own.heard[rank_] = true;
      }
      found.value = own;
    }
    return found;
  }

  // The value stays until the next call of cell().
  const Value& read(const OperandAt& operand) {
    static const Value kNothing;
    Cell& from = cell(operand);
    if (!require(from.value.has_value(), "reads a place that holds nothing")) return kNothing;
    // In an all-to-all the segment of a location is the other rank, the segment of a value its
    // destination.
    const bool moves = all_to_all_ && operand.buffer == Buffer::kScratch;
    const bool same_segment = moves || from.value->segment == operand.segment;
    require(same_segment && from.value->block == operand.block,
            "reads another block than it names");
    from.last_access = step_;
    from.accessed_in = phase_;
    return *from.value;
  }

  void write(const OperandAt& operand, Value value, bool received) {
    Cell& into = cell(operand);
    require(operand.buffer != Buffer::kInput, "writes INPUT");
    // Phases are barriers. Within a phase, a receive may land once step - W has retired.
    if (received && into.last_access >= 0 && into.accessed_in == phase_) {
      require(into.last_access <= step_ - program().window, "slot reused within the window");
    }
    into = {std::move(value), step_, phase_, received, step_, phase_};
  }

  // Whether a send that waits for the step `after` back (0: for none) comes after the last write of
  // the location by that wait alone, without the window.
  bool comes_after(const OperandAt& operand, std::int64_t after) {
    const Cell& from = cell(operand);
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

  void check_age(const Instance& send) {
    for (std::uint32_t part = 0; part < send.a.segment_count; ++part) {
      const Cell& from = cell(part_of(send.a, part));
      const std::int64_t age = from.written < 0 ? 0 : step_ - from.written;
      require(send.after == age, "`after` is not the age of the block");
      if (is_router(program())) held_ = std::max(held_, age);
    }
  }

  void send(const Instance& instance) {
    require(instance.peer >= 0 && instance.peer < static_cast<std::int64_t>(nodes_.size()),
            "sends to no node");
    phase_ = instance.phase;
    check_after(instance);
    if (topology_ != nullptr) check_age(instance);
    Message message{step_ + latency_ticks_ - 1, instance.a, {}};
    for (std::uint32_t part = 0; part < instance.a.segment_count; ++part) {
      message.parts.push_back(read(part_of(instance.a, part)));
    }
    flying_[{me(), instance.peer}].push_back(std::move(message));
  }

  void receive(const Instance& instance) {
    std::deque<Message>& link = flying_[{instance.peer, me()}];
    if (!require(!link.empty() && link.front().arrival == step_, "receives what nobody sends")) {
      return;
    }
    Message& sent = link.front();
    if (!require(sent.from.segment_count == instance.into.segment_count,
                 "receives another segment count than was sent")) {
      return;
    }
    require(sent.from.block == instance.into.block, "receives another block than was sent");
    require(all_to_all_ || sent.from.segment == instance.into.segment,
            "receives another segment than was sent");
    phase_ = instance.phase;
    for (std::uint32_t part = 0; part < instance.into.segment_count; ++part) {
      write(part_of(instance.into, part), std::move(sent.parts[part]), true);
    }
    link.pop_front();
  }

  // The neighbours and lanes of a node's messages in one step.
  void check_lanes(std::span<const Instance> now) {
    std::map<std::pair<std::int64_t, bool>, std::uint32_t> lanes;
    for (const Instance& instance : now) {
      const bool sends = instance.kind == ActionKind::kSend;
      if (!sends && instance.kind != ActionKind::kReceive) continue;
      if (!require(instance.peer >= 0, "a link outside the table")) return;
      const auto me = static_cast<std::uint32_t>(rank_);
      const auto peer = static_cast<std::uint32_t>(instance.peer);
      const std::uint32_t capacity =
          sends ? topology_->capacity(me, peer) : topology_->capacity(peer, me);
      require(capacity > 0, "a peer that is no neighbour");
      require(++lanes[{peer, sends}] <= capacity, "more messages in a step than lanes");
    }
  }

  // One send and one receive per step (postal model: per send_ticks steps); simplex: only one of
  // the two.
  void check_ports(std::span<const Instance> now) {
    const PortModel ports = program().port_model;
    int sends = 0, receives = 0;
    for (const Instance& instance : now) {
      sends += instance.kind == ActionKind::kSend;
      receives += instance.kind == ActionKind::kReceive;
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

  void step(const std::vector<std::span<const Instance>>& now) {
    for (rank_ = 0; rank_ < now.size(); ++rank_) {
      check_ports(now[rank_]);
      if (topology_ != nullptr) check_lanes(now[rank_]);
      for (const Instance& instance : now[rank_]) {
        if (instance.kind == ActionKind::kSend) send(instance);
      }
    }
    for (rank_ = 0; rank_ < now.size(); ++rank_) {
      for (const Instance& instance : now[rank_]) {
        if (instance.kind == ActionKind::kReceive) receive(instance);
      }
    }
    std::erase_if(flying_, [](const auto& link) { return link.second.empty(); });
    for (const auto& [link, messages] : flying_) {
      require(messages.front().arrival > step_, "nobody receives a message");
    }
    for (rank_ = 0; rank_ < now.size(); ++rank_) {
      for (const Instance& instance : now[rank_]) operate(instance);
    }
  }

  void operate(const Instance& instance) {
    if (instance.kind != ActionKind::kCopy && instance.kind != ActionKind::kCombine) return;
    phase_ = instance.phase;
    node().awaited.try_emplace(step_ - instance.after, step_);
    for (std::uint32_t part = 0; part < instance.into.segment_count; ++part) {
      const OperandAt into = part_of(instance.into, part);
      Value value = read_operand(part_of(instance.a, part));
      if (instance.kind == ActionKind::kCombine) {
        join(value, read_operand(part_of(instance.b, part)));
      }
      write(into, std::move(value), false);
    }
  }

  // The operation, or an earlier one, must have waited for the receive that wrote the operand.
  const Value& read_operand(const OperandAt& operand) {
    const Cell& from = cell(operand);
    require(!from.received || from.written_in != phase_ || node().awaited.contains(from.written),
            "reads a block before it waits for it");
    return read(operand);
  }

  // Adds the inputs of `b` to `a`.
  void join(Value& a, const Value& b) {
    if (!require(a.segment == b.segment && a.block == b.block, "combines different blocks")) return;
    if (barrier_) {
      for (std::size_t rank = 0; rank < a.heard.size(); ++rank) {
        if (b.heard[rank]) a.heard[rank] = true;
      }
      return;
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
  }

  void check_end() {
    step_ = -1;
    if (!require(node().sends == node().tight, "a send's `after` waits for more than it needs")) {
      return;
    }
    if (is_router(program())) return;
    if (barrier_) return check_heard();
    const Extent extent = buffer_extent(program(), Buffer::kOutput);
    if (extent == Extent::kNothing) return;
    OperandAt output;
    output.buffer = Buffer::kOutput;
    for (output.segment = 0; output.segment < program().segments; ++output.segment) {
      if (extent == Extent::kOwn && output.segment != me()) continue;
      for (output.block = 0; output.block < blocks_; ++output.block) {
        const Cell& result = cell(output);
        if (!require(result.value.has_value(), "a block is missing")) return;
        check_result(*result.value, output);
      }
    }
  }

  void check_result(const Value& value, const OperandAt& operand) {
    std::int64_t first = 0, length = ranks(), segment = operand.segment;
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
        first = operand.segment;
        length = 1;
        break;
      case Collective::kAllToAll:
        first = operand.segment;
        length = 1;
        segment = me();
        break;
      default:  // all inputs; if the order may be arbitrary, from any rank onward
        if (program().needs_commutative) first = value.first;
    }
    require(value.first == first && value.length == length, "another combination than wanted");
    require(value.segment == segment && value.block == operand.block, "another block's result");
  }

  void check_heard() {
    OperandAt own;
    own.buffer = Buffer::kInput;
    std::vector<bool> heard = cell(own).value->heard;
    for (const std::vector<Cell>& cells : node().cells) {
      for (const Cell& known : cells) {
        for (std::size_t rank = 0; known.value && rank < heard.size(); ++rank) {
          if (known.value->heard[rank]) heard[rank] = true;
        }
      }
    }
    require(std::find(heard.begin(), heard.end(), false) == heard.end(), "a rank is not heard of");
  }

  const Programs& programs_;
  const std::int64_t blocks_;
  const topology::Topology* topology_;
  std::string failure_;  // empty: none so far
  std::int64_t send_ticks_ = 1, latency_ticks_ = 1;
  bool all_to_all_ = false, barrier_ = false;
  std::size_t rank_ = 0;
  std::int64_t step_ = 0, held_ = 0;
  std::uint32_t phase_ = 0;
  std::vector<NodeState> nodes_;
  Cell outside_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::deque<Message>> flying_;  // by link
};

// Replays, and compares what the programs claim.
Result<LinkOutcome> check(const Programs& programs, const topology::Topology* topology,
                          std::int64_t blocks) {
  const Result<LinkOutcome> outcome = Replay(programs, blocks, topology).run();
  if (!outcome) return outcome;
  const std::int64_t steps = outcome->steps;
  for (const Program& program : programs) {
    if (count_value(program.counts[program.steps_ref], blocks) != steps ||
        phase_steps(program, blocks) != steps) {
      return fail("claimed steps differ from the " + std::to_string(steps) + " taken, rank " +
                  std::to_string(program.node) + " of " + std::to_string(program.ranks));
    }
    if (count_value(program.counts[program.bound_ref], blocks) > steps) {
      return fail("claimed bound above the steps");
    }
  }
  return outcome;
}

}  // namespace

Result<std::int64_t> run(const Programs& programs, std::int64_t blocks) {
  return check(programs, nullptr, blocks).map([](const LinkOutcome& of) { return of.steps; });
}

Result<LinkOutcome> run(const Programs& programs, const topology::Topology& topology,
                        std::int64_t blocks) {
  return check(programs, &topology, blocks);
}

}  // namespace espalier::replay
