#include "tests/fat_tree/leaf_replay.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <sstream>
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

// What a node does in a step.
struct Event {
  std::size_t node;
  Instance instance;
};

class Replay {
 public:
  Replay(const Programs& programs, const topology::Topology& topology, std::int64_t blocks)
      : programs_(programs), topology_(topology), blocks_(blocks) {}

  Result<Outcome> run() {
    cells_.resize(programs_.size());
    std::vector<std::vector<Event>> steps;
    for (node_ = 0; node_ < programs_.size(); ++node_) {
      for (const Instance& instance : expand(programs_[node_], blocks_)) {
        const auto at = static_cast<std::size_t>(instance.step);
        if (at >= steps.size()) steps.resize(at + 1);
        steps[at].push_back({node_, instance});
      }
    }
    for (step_ = 0; step_ < static_cast<std::int64_t>(steps.size()) && failure_.empty(); ++step_) {
      step(steps[static_cast<std::size_t>(step_)]);
    }
    outcome_.steps = static_cast<std::int64_t>(steps.size());
    for (node_ = 0; node_ < programs_.size() && failure_.empty(); ++node_) {
      check_claims();
      if (node_ < program().ranks) check_result();
    }
    if (!failure_.empty()) return fail(failure_);
    return outcome_;
  }

 private:
  // Whether this check and all earlier ones hold. The first that does not is the failure; later
  // ones may only be its consequences.
  bool require(bool holds, const char* what) {
    if (!failure_.empty()) return false;
    if (holds) return true;
    std::ostringstream text;
    text << collective_name(program().collective) << ' ' << program().algorithm << " on "
         << topology_.spec() << " root " << program().root << " N " << blocks_ << ' '
         << topology_.node_name(static_cast<std::uint32_t>(node_)) << " step " << step_ << ": "
         << what;
    failure_ = text.str();
    return false;
  }
  const Program& program() const { return programs_[node_]; }
  bool all_to_all() const { return program().collective == Collective::kAllToAll; }

  // Cell `number` of `count` of the buffer, or one that is not used if a check has failed.
  Cell& cell(Buffer buffer, std::int64_t number, std::int64_t count) {
    if (!failure_.empty()) return outside_;
    std::vector<Cell>& cells = cells_[node_][buffer];
    cells.resize(static_cast<std::size_t>(count));
    return cells[static_cast<std::size_t>(number)];
  }

  Cell& cell(const OperandAt& operand) {
    require(operand.segment >= 0 && operand.segment < program().segments,
            "segment outside the message");
    require(operand.block >= 0 && operand.block < blocks_, "block outside the segment");
    if (operand.buffer == Buffer::kScratch) {
      require(operand.slot >= 0 && operand.slot < program().scratch_blocks,
              "slot outside the scratch");
      return cell(operand.buffer, operand.slot, program().scratch_blocks);
    }
    const auto mine = static_cast<std::int64_t>(node_);
    const Extent extent = buffer_extent(program(), operand.buffer);
    require(extent != Extent::kNothing, "uses a buffer that it does not have");
    require(extent == Extent::kWhole || operand.segment == mine, "names another's segment");
    Cell& found = cell(operand.buffer, operand.segment * blocks_ + operand.block,
                       program().segments * blocks_);
    if (operand.buffer == Buffer::kInput && !found.value) {
      found.value = Value{mine, operand.segment, operand.block};
    }
    return found;
  }

  Value read(const OperandAt& operand, bool send, std::uint32_t after) {
    Cell& from = cell(operand);
    if (!require(from.value.has_value(), "reads a place that holds nothing")) return {};
    require(from.value->block == operand.block, "reads another block than it names");
    const bool scratch = operand.buffer == Buffer::kScratch;
    require((all_to_all() && scratch) || from.value->segment == operand.segment,
            "reads another segment than it names");
    if (send) {
      const std::int64_t kept = from.written < 0 ? 0 : step_ - from.written;
      require(after == kept, "`after` is not exact");
      if (node_ >= program().ranks) outcome_.held = std::max(outcome_.held, kept);
    }
    from.last_access = step_;
    return *from.value;
  }

  void write(const OperandAt& operand, const Value& value, bool received) {
    Cell& into = cell(operand);
    require(into.last_access < 0 || !received || into.last_access <= step_ - program().window,
            "a place is written again within the window");
    into = {value, step_, step_};
  }

  // Counts the messages of the events of one node.
  void count_ports(const Event* begin, const Event* end) {
    std::map<std::pair<std::int64_t, ActionKind>, std::uint32_t> lanes;
    std::uint32_t sends = 0, receives = 0;
    node_ = begin->node;
    for (const Event* event = begin; event != end; ++event) {
      const Instance& instance = event->instance;
      if (instance.kind != ActionKind::kSend && instance.kind != ActionKind::kReceive) continue;
      const bool send = instance.kind == ActionKind::kSend;
      ++(send ? sends : receives);
      if (!require(instance.peer >= 0, "a link outside the table")) return;
      const auto me = static_cast<std::uint32_t>(node_),
                 peer = static_cast<std::uint32_t>(instance.peer);
      const std::uint32_t capacity =
          send ? topology_.capacity(me, peer) : topology_.capacity(peer, me);
      require(capacity > 0, "a peer that is no neighbour");
      require(++lanes[{instance.peer, instance.kind}] <= capacity,
              "more messages in a step than lanes");
    }
    const PortModel model = program().port_model;
    require(model == PortModel::kMultiport || sends <= 1, "two sends in one step");
    require(model != PortModel::kOnePortDuplex || receives <= 1, "two receives in one step");
  }

  // `now`: the events of the step, in the order of the nodes.
  void step(const std::vector<Event>& now) {
    for (const Event *begin = now.data(), *end = begin; end != now.data() + now.size();) {
      if (++end != now.data() + now.size() && end->node == begin->node) continue;
      count_ports(begin, end);
      begin = end;
    }
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<Value, OperandAt>>>
        flying;
    for (const auto& [node, instance] : now) {
      node_ = node;
      if (instance.kind != ActionKind::kSend) continue;
      flying[{node_, instance.peer}].push_back(
          {read(instance.a, true, instance.after), instance.a});
    }
    for (const auto& [node, instance] : now) {
      node_ = node;
      if (instance.kind != ActionKind::kReceive) continue;
      auto& sent = flying[{instance.peer, node_}];
      if (!require(!sent.empty(), "receives what nobody sends")) return;
      const auto [value, from] = sent.front();
      sent.erase(sent.begin());
      require(value.block == instance.into.block, "receives another block than was sent");
      require(all_to_all() || from.segment == instance.into.segment,
              "receives another segment than was sent");
      write(instance.into, value, true);
    }
    for (const auto& [link, sent] : flying) {
      node_ = static_cast<std::size_t>(link.first);
      require(sent.empty(), "sends what nobody receives");
    }
    for (const auto& [node, instance] : now) {
      node_ = node;
      require(instance.kind != ActionKind::kCombine, "combines");
      if (instance.kind == ActionKind::kCopy) {
        write(instance.into, read(instance.a, false, 0), false);
      }
    }
  }

  void check_claims() {
    step_ = -1;
    require(count_value(program().counts[program().steps_ref], blocks_) == outcome_.steps &&
                phase_steps(program(), blocks_) == outcome_.steps,
            "claims other steps than it takes");
    require(count_value(program().counts[program().bound_ref], blocks_) <= outcome_.steps,
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
    OperandAt output;
    output.buffer = Buffer::kOutput;
    for (output.segment = 0; output.segment < program().segments; ++output.segment) {
      const bool own = output.segment == static_cast<std::int64_t>(node_);
      if (extent == Extent::kNothing || (extent == Extent::kOwn && !own)) continue;
      for (output.block = 0; output.block < blocks_; ++output.block) {
        const std::optional<Value>& result = cell(output).value;
        if (!require(result.has_value(), "a block is missing")) return;
        require(*result == wanted(output.segment, output.block), "another block's result");
      }
    }
  }

  const Programs& programs_;
  const topology::Topology& topology_;
  const std::int64_t blocks_;
  std::size_t node_ = 0;
  std::int64_t step_ = 0;
  Outcome outcome_;
  std::string failure_;                                  // empty: none so far
  std::vector<std::array<std::vector<Cell>, 4>> cells_;  // by node and buffer
  Cell outside_;
};

}  // namespace

std::uint32_t arity(const Tree& tree, std::uint32_t level) {
  return tree.arities.empty() ? tree.arity : tree.arities[level - 1];
}

std::int64_t leaves(const Tree& tree, std::uint32_t level) {
  return level == 0 ? 1 : leaves(tree, level - 1) * arity(tree, level);
}

std::string spec(const Tree& tree) {
  std::string text = "fattree:k=";
  for (std::size_t at = 0; at < tree.arities.size(); ++at) {
    text += (at == 0 ? "" : "x") + std::to_string(tree.arities[at]);
  }
  if (tree.arities.empty()) text += std::to_string(tree.arity);
  text += ",h=" + std::to_string(tree.height) + ",c=";
  if (tree.capacities.empty()) return text + "1";
  for (std::size_t at = 0; at < tree.capacities.size(); ++at) {
    text += (at == 0 ? "" : ",") + std::to_string(tree.capacities[at]);
  }
  return text;
}

CollectiveParameters parameters_of(const Tree& tree, std::uint32_t root) {
  CollectiveParameters parameters;
  parameters.ranks = static_cast<std::uint32_t>(leaves(tree, tree.height));
  parameters.root = root;
  parameters.arity = tree.arity;
  parameters.height = tree.height;
  if (!tree.arities.empty()) parameters.arities = tree.arities.data();
  if (!tree.capacities.empty()) parameters.capacities = tree.capacities.data();
  return parameters;
}

Result<Programs> generate(const Algorithm& algorithm, const CollectiveParameters& parameters) {
  Programs programs(algorithm_nodes(algorithm, parameters));
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    Program& program = programs[node];
    Status status = algorithm.generate(parameters, node, program);
    if (status == Status::kOk) status = check_program(program);
    const Program& first = programs[0];
    const bool agrees = program.node == node && program_nodes(program) == programs.size() &&
                        program.schedule_digest == first.schedule_digest &&
                        program.phases_count == first.phases_count;
    if (status == Status::kOk && agrees) continue;
    return fail(std::string(collective_name(algorithm.collective)) + " ranks " +
                std::to_string(parameters.ranks) + " h " + std::to_string(parameters.height) +
                " node " + std::to_string(node) + ": " +
                (status == Status::kOk ? "header differs" : status_name(status)));
  }
  return programs;
}

Result<Outcome> run(const Programs& programs, const topology::Topology& topology,
                    std::int64_t blocks) {
  return Replay(programs, topology, blocks).run();
}

}  // namespace espalier::leaf_replay
