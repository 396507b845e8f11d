#include "tests/fat_tree/leaf_replay.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include "espalier/collectives/schedule/expand.h"

namespace espalier::leaf_replay {
namespace {

// A block of the input of `origin` for `segment`.
struct Value {
  std::int64_t origin = 0, segment = 0, block = 0;
  bool operator==(const Value&) const = default;
};

struct Cell {
  std::optional<Value> value;
  std::int64_t written = -1;      // step of the last write, -1: before the start
  std::int64_t last_access = -1;  // step of the last read or write
};

using Key = std::tuple<int, std::int64_t, std::int64_t>;

struct Failure {
  std::string text;
};

class Replay {
 public:
  Replay(const Schedule& schedule, const topology::Topology& topology, std::int64_t blocks)
      : programs_(schedule.programs), topology_(topology), blocks_(blocks) {}

  Result run() {
    cells_.resize(programs_.size());
    std::map<std::int64_t, std::vector<std::vector<Instance>>> steps;
    for (node_ = 0; node_ < programs_.size(); ++node_) {
      for (const Instance& at : expand(programs_[node_], blocks_)) {
        auto [found, added] = steps.try_emplace(at.step);
        if (added) found->second.resize(programs_.size());
        found->second[node_].push_back(at);
      }
    }
    for (const auto& [number, nodes] : steps) {
      step_ = number;
      step(nodes);
    }
    result_.steps = steps.empty() ? 0 : steps.rbegin()->first + 1;
    for (node_ = 0; node_ < programs_.size(); ++node_) {
      check_claims();
      if (node_ < program().ranks) check_result();
    }
    return result_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::ostringstream text;
    text << collective_name(program().collective) << ' ' << program().algorithm << " on "
         << topology_.spec() << " root " << program().root << " N " << blocks_ << ' '
         << topology_.node_name(static_cast<std::uint32_t>(node_)) << " step " << step_ << ": "
         << what;
    throw Failure{text.str()};
  }
  void require(bool holds, const char* what) const {
    if (!holds) fail(what);
  }
  const Program& program() const { return programs_[node_]; }
  bool all_to_all() const { return program().collective == Collective::kAllToAll; }

  Cell& cell(const OperandAt& at) {
    require(at.segment >= 0 && at.segment < program().segments, "segment outside the message");
    require(at.block >= 0 && at.block < blocks_, "block outside the segment");
    if (at.buffer == Buffer::kScratch) {
      require(at.slot >= 0 && at.slot < program().scratch_blocks, "slot outside the scratch");
      return cells_[node_][{at.buffer, 0, at.slot}];
    }
    const auto mine = static_cast<std::int64_t>(node_);
    const Extent extent = buffer_extent(program(), at.buffer);
    require(extent != Extent::kNothing, "uses a buffer that it does not have");
    require(extent == Extent::kWhole || at.segment == mine, "names another's segment");
    auto [found, added] = cells_[node_].try_emplace(Key{at.buffer, at.segment, at.block});
    if (added && at.buffer == Buffer::kInput) {
      found->second.value = Value{mine, at.segment, at.block};
    }
    return found->second;
  }

  Value read(const OperandAt& at, bool send, std::uint32_t after) {
    Cell& from = cell(at);
    require(from.value.has_value(), "reads a place that holds nothing");
    require(from.value->block == at.block, "reads another block than it names");
    const bool scratch = at.buffer == Buffer::kScratch;
    require((all_to_all() && scratch) || from.value->segment == at.segment,
            "reads another segment than it names");
    if (send) {
      const std::int64_t kept = from.written < 0 ? 0 : step_ - from.written;
      require(after == kept, "`after` is not exact");
      if (node_ >= program().ranks) result_.held = std::max(result_.held, kept);
    }
    from.last_access = step_;
    return *from.value;
  }

  void write(const OperandAt& at, const Value& value, bool received) {
    Cell& into = cell(at);
    require(into.last_access < 0 || !received || into.last_access <= step_ - program().window,
            "a place is written again within the window");
    into = {value, step_, step_};
  }

  void count_ports(const std::vector<Instance>& now) {
    std::map<std::pair<std::int64_t, ActionKind>, std::uint32_t> lanes;
    std::uint32_t sends = 0, receives = 0;
    for (const Instance& at : now) {
      if (at.kind != ActionKind::kSend && at.kind != ActionKind::kReceive) continue;
      const bool send = at.kind == ActionKind::kSend;
      ++(send ? sends : receives);
      require(at.peer >= 0, "a link outside the table");
      const auto me = static_cast<std::uint32_t>(node_), peer = static_cast<std::uint32_t>(at.peer);
      const std::uint32_t capacity =
          send ? topology_.capacity(me, peer) : topology_.capacity(peer, me);
      require(capacity > 0, "a peer that is no neighbour");
      require(++lanes[{at.peer, at.kind}] <= capacity, "more messages in a step than lanes");
    }
    const PortModel model = program().port_model;
    require(model == PortModel::kMultiport || sends <= 1, "two sends in one step");
    require(model != PortModel::kOnePortDuplex || receives <= 1, "two receives in one step");
  }

  void step(const std::vector<std::vector<Instance>>& now) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<Value, OperandAt>>>
        flying;
    for (node_ = 0; node_ < now.size(); ++node_) {
      count_ports(now[node_]);
      for (const Instance& at : now[node_]) {
        if (at.kind != ActionKind::kSend) continue;
        flying[{node_, at.peer}].push_back({read(at.a, true, at.after), at.a});
      }
    }
    for (node_ = 0; node_ < now.size(); ++node_) {
      for (const Instance& at : now[node_]) {
        if (at.kind != ActionKind::kReceive) continue;
        auto& sent = flying[{at.peer, node_}];
        require(!sent.empty(), "receives what nobody sends");
        const auto [value, from] = sent.front();
        sent.erase(sent.begin());
        require(value.block == at.into.block, "receives another block than was sent");
        require(all_to_all() || from.segment == at.into.segment,
                "receives another segment than was sent");
        write(at.into, value, true);
      }
    }
    for (const auto& [link, sent] : flying) {
      node_ = static_cast<std::size_t>(link.first);
      require(sent.empty(), "sends what nobody receives");
    }
    for (node_ = 0; node_ < now.size(); ++node_) {
      for (const Instance& at : now[node_]) {
        require(at.kind != ActionKind::kCombine, "combines");
        if (at.kind == ActionKind::kCopy) write(at.into, read(at.a, false, 0), false);
      }
    }
  }

  void check_claims() {
    step_ = -1;
    require(count_value(program().counts[program().steps_ref], blocks_) == result_.steps &&
                phase_steps(program(), blocks_) == result_.steps,
            "claims other steps than it takes");
    require(count_value(program().counts[program().bound_ref], blocks_) <= result_.steps,
            "claims a bound above its steps");
  }

  Value wanted(std::int64_t segment, std::int64_t block) const {
    const auto mine = static_cast<std::int64_t>(node_);
    const std::int64_t root = program().root;
    switch (program().collective) {
      case Collective::kBroadcast:
      case Collective::kScatter: return {root, segment, block};
      case Collective::kAllToAll: return {segment, mine, block};
      default: return {segment, segment, block};
    }
  }

  void check_result() {
    const Extent extent = buffer_extent(program(), Buffer::kOutput);
    OperandAt at;
    at.buffer = Buffer::kOutput;
    for (at.segment = 0; at.segment < program().segments; ++at.segment) {
      const bool own = at.segment == static_cast<std::int64_t>(node_);
      if (extent == Extent::kNothing || (extent == Extent::kOwn && !own)) continue;
      for (at.block = 0; at.block < blocks_; ++at.block) {
        const std::optional<Value>& result = cell(at).value;
        require(result.has_value(), "a block is missing");
        require(*result == wanted(at.segment, at.block), "another block's result");
      }
    }
  }

  const Programs& programs_;
  const topology::Topology& topology_;
  const std::int64_t blocks_;
  std::size_t node_ = 0;
  std::int64_t step_ = 0;
  Result result_;
  std::vector<std::map<Key, Cell>> cells_;
};

}  // namespace

std::string spec(const Tree& tree) {
  std::string text =
      "fattree:k=" + std::to_string(tree.arity) + ",h=" + std::to_string(tree.height) + ",c=";
  if (tree.capacities.empty()) return text + "1";
  for (std::size_t at = 0; at < tree.capacities.size(); ++at) {
    text += (at == 0 ? "" : ",") + std::to_string(tree.capacities[at]);
  }
  return text;
}

Group group_of(const Tree& tree, std::uint32_t root) {
  Group group;
  for (std::uint32_t level = 0; level < tree.height; ++level) group.ranks *= tree.arity;
  group.root = root;
  group.arity = tree.arity;
  group.height = tree.height;
  if (!tree.capacities.empty()) group.capacities = tree.capacities.data();
  return group;
}

Schedule generate(const Algorithm& algorithm, const Group& group) {
  Schedule schedule{Programs(algorithm_nodes(algorithm, group)), ""};
  for (std::uint32_t node = 0; node < schedule.programs.size(); ++node) {
    Program& program = schedule.programs[node];
    Status status = algorithm.generate(group, node, program);
    if (status == Status::kOk) status = check_program(program);
    const Program& first = schedule.programs[0];
    const bool agrees = program.node == node &&
                        program_nodes(program) == schedule.programs.size() &&
                        program.schedule_digest == first.schedule_digest &&
                        program.phases_count == first.phases_count;
    if (status == Status::kOk && agrees) continue;
    schedule.error = std::string(collective_name(algorithm.collective)) + " k " +
                     std::to_string(group.arity) + " h " + std::to_string(group.height) + " node " +
                     std::to_string(node) + ": " +
                     (status == Status::kOk ? "header differs" : status_name(status));
    break;
  }
  return schedule;
}

Result run(const Schedule& schedule, const topology::Topology& topology, std::int64_t blocks) {
  if (!schedule.error.empty()) return {schedule.error, 0, 0};
  try {
    return Replay(schedule, topology, blocks).run();
  } catch (const Failure& failure) {
    return {failure.text, 0, 0};
  }
}

}  // namespace espalier::leaf_replay
