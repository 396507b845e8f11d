#pragma once
// A third reading of docs/architecture.md: a fast one, in lock step, for every N that it is asked
// for. Shares no code with the verifier, the machine or collectives/schedule beyond the program's
// struct; with tests/mutation it shares the formulas of counts and indices.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "espalier/collectives/schedule/programs.h"
#include "espalier/topology/topology.h"
#include "tests/mutation/contract.h"

namespace espalier::random {

// A place of an event; buffer 0: none.
struct Memory {
  std::uint8_t buffer = 0;  // espalier_Buffer
  std::int32_t segment = 0, block = 0, slot = 0, segment_count = 1;
};

// An instance that exists.
struct Event {
  std::int64_t step = 0;  // of the schedule
  std::uint8_t kind = 0;  // espalier_ActionKind
  std::uint8_t phase = 0, action = 0;
  std::int32_t peer = -1;
  std::uint32_t after = 0;
  Memory into, a, b;
  [[nodiscard]] bool is_send() const { return kind == ActionKind::kSend; }
  [[nodiscard]] bool is_receive() const { return kind == ActionKind::kReceive; }
  [[nodiscard]] bool is_operation() const { return !is_send() && !is_receive(); }
  // The order within a step: sends, then receives, then operations.
  [[nodiscard]] int turn() const { return is_send() ? 0 : is_receive() ? 1 : 2; }
};

// A program's rows, each read once: their values for an instance do not depend on N.
class Reading {
 public:
  explicit Reading(const Program& program) : program_(program) {}
  [[nodiscard]] std::int64_t value(std::uint32_t ref, std::int64_t i);
  [[nodiscard]] const espalier_Program& program() const { return program_; }
  // Whether a value that was asked for differs from the one that a machine computes, in 64 bits.
  [[nodiscard]] bool wraps() const { return wraps_; }

 private:
  [[nodiscard]] std::int64_t read(std::uint32_t ref, std::int64_t i);
  bool wraps_ = false;
  const Program& program_;
  std::vector<std::vector<std::int64_t>> rows_;  // by index and instance
};

// The segments of a buffer that a rank's caller gives, [first, end).
[[nodiscard]] inline std::pair<std::int64_t, std::int64_t> given_segments(
    const espalier_Program& program, std::uint8_t buffer) {
  return mutation::contract_of(program).given(program.node, buffer);
}

// One node's events for one N, in the order of a lock-step run: by step, turn, and position in the
// program.
struct NodeEvents {
  const espalier_Program* program = nullptr;
  std::int64_t blocks = 1;
  std::vector<std::int64_t> phase_ends;  // steps, cumulative
  std::vector<Event> events;
};

// Whether input and output are the same memory: each segment that both hold.
enum class InPlace : std::uint8_t { kNo, kYes };

// Holds back each event in turn, while all others continue as far as the rules let them. Empty if
// no event of the node can begin before the end of an event that it needs, or that uses the same
// memory, however late messages are (rules 2 to 7).
[[nodiscard]] std::string find_hazard(const NodeEvents& node, InPlace in_place);

class Brute {
 public:
  // The programs of all nodes, which are kept. `links`: whether the topology's links count.
  Brute(const topology::Topology& topology, const Programs& programs, bool links);

  // Empty if a lock-step run for N = blocks keeps all that docs/verifier.md promises: paces,
  // places, claims, ports, matching, results, hazards, links. Otherwise one line.
  [[nodiscard]] std::string check(std::int64_t blocks, InPlace in_place);
  // Steps of the schedule: [first, end).
  struct Window {
    std::int64_t first = 0, end = INT64_MAX;
  };
  // The same of a part of a run whose N may be large, as far as that part shows it: memory written
  // before the part is unknown.
  [[nodiscard]] std::string check_window(std::int64_t blocks, Window window);
  // The events of the last check.
  [[nodiscard]] const std::vector<NodeEvents>& nodes() const { return nodes_; }

 private:
  using Pair = std::pair<std::int32_t, std::int32_t>;
  [[nodiscard]] std::string expand(std::uint32_t node, std::int64_t blocks, Window window);
  [[nodiscard]] std::string expand_action(Reading& reading, const espalier_Action& action,
                                          const espalier_Phase& phase, std::int64_t steps,
                                          Window window, NodeEvents& out);
  void sort_by_time(std::vector<Event>& events);
  // The instances whose steps are in [first, end) of their phase.
  [[nodiscard]] Window find_instances(Reading& reading, const espalier_Action& action,
                                      std::int64_t period, Window steps, std::int64_t blocks);
  [[nodiscard]] std::string check_operand(const NodeEvents& node, const Memory& place) const;
  [[nodiscard]] std::string check_claims() const;
  [[nodiscard]] std::string check_ports(std::size_t node) const;
  [[nodiscard]] std::string check_matching(Window window) const;
  [[nodiscard]] std::string check_links();
  // The links, by at().
  [[nodiscard]] const std::vector<std::uint32_t>& route(Pair pair);
  [[nodiscard]] std::int64_t lanes(std::int32_t from, std::int32_t to) const;

  const topology::Topology& topology_;
  const Programs& programs_;
  bool links_;
  std::vector<Reading> readings_;
  std::vector<NodeEvents> nodes_;
  std::vector<std::uint32_t> begins_;  // sort_by_time()'s own
  std::vector<Event> sorted_;
  std::vector<std::int64_t> loads_;  // check_links()'s own
  // Side of the tables by pair of nodes, whether the nodes have programs or not.
  [[nodiscard]] std::uint32_t width() const {
    return std::max(topology_.nodes(), static_cast<std::uint32_t>(programs_.size()));
  }
  [[nodiscard]] std::size_t at(Pair pair) const {
    return static_cast<std::size_t>(pair.first) * width() + static_cast<std::size_t>(pair.second);
  }
  std::vector<std::int64_t> capacities_;            // by at(); 0: no such link
  std::vector<std::vector<std::uint32_t>> routes_;  // by at()
};

// Empty if every slot that is read in the window holds the expected data, as far as it was written
// there.
[[nodiscard]] std::string check_slots(const NodeEvents& node);

// Empty if a lock-step run of the nodes' events gives every rank what its collective must.
[[nodiscard]] std::string run_in_lock_step(const std::vector<NodeEvents>& nodes, InPlace in_place);

}  // namespace espalier::random
