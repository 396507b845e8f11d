#include "collectives/algorithms/replay.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include "collectives/schedule/expand.h"

namespace espalier::replay {
namespace {

// What a place holds: the ordered combination of the inputs of `length` ranks from `first` on
// (cyclically; a broadcast's data is its root's input), of one block.
struct Value {
  std::int64_t first = 0, length = 0;
  std::int64_t segment = 0, block = 0;
  bool operator==(const Value&) const = default;
};

struct Cell {
  std::optional<Value> value;
  std::int64_t written = -1;  // step of the last write, -1: before the start
  std::uint32_t written_in = 0;
  bool received = false;          // the last write was a receive
  std::int64_t last_access = -1;  // step of the last read or write
  std::uint32_t accessed_in = 0;  // its phase
};

using Key = std::tuple<int, std::int64_t, std::int64_t>;

Key key_of(const PlaceAt& at) {
  if (at.buffer == espalier_Buffer_SCRATCH) return {at.buffer, 0, at.slot};
  return {at.buffer, at.segment, at.block};
}

struct Failure {
  std::string text;
};

class Replay {
 public:
  Replay(const Schedule& schedule, std::int64_t blocks) : schedule_(schedule), blocks_(blocks) {}

  std::int64_t run() {
    const std::size_t ranks = schedule_.programs.size();
    cells_.resize(ranks);
    std::vector<std::vector<Instance>> instances;
    std::int64_t steps = 0;
    for (const Program& program : schedule_.programs) {
      instances.push_back(expand(program, blocks_));
      if (!instances.back().empty()) steps = std::max(steps, instances.back().back().step + 1);
    }
    std::vector<std::size_t> next(ranks, 0);
    for (step_ = 0; step_ < steps; ++step_) {
      std::vector<std::vector<const Instance*>> now(ranks);
      for (rank_ = 0; rank_ < ranks; ++rank_) {
        const std::vector<Instance>& mine = instances[rank_];
        for (; next[rank_] < mine.size() && mine[next[rank_]].step == step_; ++next[rank_]) {
          now[rank_].push_back(&mine[next[rank_]]);
        }
      }
      step(now);
    }
    for (rank_ = 0; rank_ < ranks; ++rank_) check_result();
    return steps;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::ostringstream text;
    const Program& program = schedule_.programs[0];
    text << collective_name(program.collective) << ' ' << program.algorithm << " p "
         << program.ranks << " root " << program.root << " window " << program.window << " N "
         << blocks_ << " rank " << rank_ << " step " << step_ << ": " << what;
    throw Failure{text.str()};
  }
  void require(bool holds, const char* what) const {
    if (!holds) fail(what);
  }

  const Program& program() const { return schedule_.programs[rank_]; }

  std::int64_t ranks() const { return program().ranks; }

  Cell& cell(const PlaceAt& at) {
    require(at.segment >= 0 && at.segment < program().segments, "segment outside the message");
    require(at.block >= 0 && at.block < blocks_, "block outside the segment");
    if (at.buffer == espalier_Buffer_SCRATCH) {
      require(at.slot >= 0 && at.slot < program().scratch_blocks, "slot outside the scratch");
    }
    auto [found, added] = cells_[rank_].try_emplace(key_of(at));
    const bool holds_input =
        program().collective != espalier_Collective_BROADCAST || rank_ == program().root;
    if (added && at.buffer == espalier_Buffer_INPUT && holds_input) {
      found->second.value = Value{static_cast<std::int64_t>(rank_), 1, at.segment, at.block};
    }
    return found->second;
  }

  Value read(const PlaceAt& at) {
    Cell& from = cell(at);
    require(from.value.has_value(), "reads a place that holds nothing");
    require(from.value->segment == at.segment && from.value->block == at.block,
            "reads another block than it names");
    from.last_access = step_;
    from.accessed_in = phase_;
    return *from.value;
  }

  void write(const PlaceAt& at, const Value& value, bool received) {
    Cell& into = cell(at);
    require(at.buffer != espalier_Buffer_INPUT, "writes INPUT");
    // Phases are barriers of their own; within one, a receive may land once step - W has retired.
    if (received && into.last_access >= 0 && into.accessed_in == phase_) {
      require(into.last_access <= step_ - program().window, "slot reused within the window");
    }
    into = {value, step_, phase_, received, step_, phase_};
  }

  // A send must wait for exactly the step that wrote what it reads, and for nothing otherwise.
  void check_after(const Instance& send) {
    const Cell& from = cell(send.a);
    const bool waits = from.written >= 0 && from.written_in == send.phase;
    require(send.after == (waits ? step_ - from.written : 0), "`after` is not exact");
  }

  void step(const std::vector<std::vector<const Instance*>>& now) {
    std::map<std::pair<std::int64_t, std::int64_t>, Value> flying;
    const bool simplex = schedule_.programs[0].port_model == espalier_PortModel_SIMPLEX;
    std::vector<bool> busy(now.size());  // sends
    for (rank_ = 0; rank_ < now.size(); ++rank_) {
      int sends = 0;
      for (const Instance* at : now[rank_]) {
        if (at->kind != espalier_Kind_SEND) continue;
        require(++sends == 1, "two sends in one step");
        busy[rank_] = true;
        require(at->peer >= 0 && at->peer < ranks(), "sends to no rank");
        phase_ = at->phase;
        check_after(*at);
        flying[{rank_, at->peer}] = read(at->a);
      }
    }
    for (rank_ = 0; rank_ < now.size(); ++rank_) {
      int receives = 0;
      for (const Instance* at : now[rank_]) {
        if (at->kind != espalier_Kind_RECEIVE) continue;
        require(++receives == 1, "two receives in one step");
        require(!simplex || !busy[rank_], "sends and receives in one step");
        const auto sent = flying.find({at->peer, rank_});
        require(sent != flying.end(), "receives what nobody sends");
        require(sent->second.segment == at->into.segment && sent->second.block == at->into.block,
                "receives another block than was sent");
        phase_ = at->phase;
        write(at->into, sent->second, true);
        flying.erase(sent);
      }
    }
    require(flying.empty(), "a block that nobody receives");
    for (rank_ = 0; rank_ < now.size(); ++rank_) {
      for (const Instance* at : now[rank_]) operate(*at);
    }
  }

  void operate(const Instance& at) {
    phase_ = at.phase;
    if (at.kind == espalier_Kind_COPY) {
      write(at.into, read(at.a), false);
    } else if (at.kind == espalier_Kind_COMBINE) {
      check_operand(at, at.a);
      check_operand(at, at.b);
      write(at.into, joined(read(at.a), read(at.b)), false);
    }
  }

  // A combine runs once the receives of the step `after` back are there; it can rely on no others.
  void check_operand(const Instance& combine, const PlaceAt& at) {
    const Cell& operand = cell(at);
    require(!operand.received || operand.written == step_ - combine.after,
            "reads a block before it waits for it");
  }

  Value joined(Value a, Value b) {
    require(a.segment == b.segment && a.block == b.block, "combines different blocks");
    const bool commutes = program().needs_commutative;
    if (commutes && (b.first + b.length) % ranks() == a.first) std::swap(a, b);
    const std::int64_t end = a.first + a.length;
    require((commutes ? end % ranks() : end) == b.first, "combines out of rank order");
    require(a.length + b.length <= ranks(), "combines an input twice");
    return {a.first, a.length + b.length, a.segment, a.block};
  }

  void check_result() {
    const Collective collective = program().collective;
    const bool is_root = rank_ == program().root;
    step_ = -1;
    PlaceAt at;
    at.buffer = espalier_Buffer_OUTPUT;
    for (at.segment = 0; at.segment < program().segments; ++at.segment) {
      for (at.block = 0; at.block < blocks_; ++at.block) {
        const Cell& result = cell(at);
        if (collective == espalier_Collective_BROADCAST) {
          require(is_root == !result.value.has_value(),
                  "a block is missing, or the root wrote one");
          if (is_root) continue;
          const Value wanted{program().root, 1, at.segment, at.block};
          require(*result.value == wanted, "not the root's block");
        } else if (collective == espalier_Collective_ALLREDUCE || is_root) {
          require(result.value.has_value(), "a block is missing");
          require(result.value->length == ranks(), "an input is missing");
          require(program().needs_commutative || result.value->first == 0, "out of rank order");
          require(result.value->segment == at.segment && result.value->block == at.block,
                  "another block's result");
        } else {
          require(!result.value.has_value(), "writes OUTPUT away from the root");
        }
      }
    }
  }

  const Schedule& schedule_;
  const std::int64_t blocks_;
  std::size_t rank_ = 0;
  std::int64_t step_ = 0;
  std::uint32_t phase_ = 0;
  std::vector<std::map<Key, Cell>> cells_;
};

// What must be the same in all programs of a schedule.
bool agrees(const Program& a, const Program& b) {
  return a.schedule_digest == b.schedule_digest && a.topology_digest == b.topology_digest &&
         a.ranks == b.ranks && a.root == b.root && a.window == b.window &&
         a.segments == b.segments && a.collective == b.collective &&
         a.needs_commutative == b.needs_commutative && a.phases_count == b.phases_count;
}

}  // namespace

Schedule generate(const Algorithm& algorithm, const Group& group) {
  Schedule schedule{group, std::vector<Program>(group.ranks), ""};
  for (std::uint32_t rank = 0; rank < group.ranks; ++rank) {
    Program& program = schedule.programs[rank];
    Status status = algorithm.generate(group, rank, program);
    if (status == Status::kOk) status = check_program(program);
    const bool wrong = program.node != rank || !agrees(program, schedule.programs[0]);
    if (status == Status::kOk && !wrong) continue;
    schedule.error = std::string(algorithm.name) + " p " + std::to_string(group.ranks) + " rank " +
                     std::to_string(rank) + ": " +
                     (status == Status::kOk ? "header differs" : status_name(status));
    break;
  }
  return schedule;
}

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

Neighbours neighbours(const Algorithm& algorithm, const Group& group, std::uint32_t me) {
  Neighbours result;
  Program mine;
  if (algorithm.generate(group, me, mine) != Status::kOk) return {"does not generate", 0};
  const std::int64_t blocks = mine.blocks[0].block_bytes == 0 ? 1 : 3;
  for (const Instance& at : expand(mine, blocks)) {
    if (at.peer < 0) continue;
    Program other;
    const auto peer = static_cast<std::uint32_t>(at.peer);
    if (algorithm.generate(group, peer, other) != Status::kOk) return {"does not generate", 0};
    const bool sends = at.kind == espalier_Kind_SEND;
    int found = 0;
    for (const Instance& there : expand(other, blocks)) {
      if (there.peer != me || there.step != at.step) continue;
      if (there.kind != (sends ? espalier_Kind_RECEIVE : espalier_Kind_SEND)) continue;
      const PlaceAt& here_place = sends ? at.a : at.into;
      const PlaceAt& there_place = sends ? there.into : there.a;
      found += here_place.segment == there_place.segment && here_place.block == there_place.block;
    }
    if (found != 1) return {"rank " + std::to_string(peer) + " does not know a transfer", 0};
    ++result.transfers;
  }
  return result;
}

}  // namespace espalier::replay
