#pragma once
// What the verifier's checks share: one N of a schedule, expanded, and how a finding is put.
// Internal to collectives/verify.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/schedule/expand.h"
#include "collectives/verify/verify.h"

namespace espalier::verify {

using Finding = std::optional<Counterexample>;

// All programs of a schedule for one N.
struct Case {
  const topology::Topology* topology = nullptr;
  const Program* common = nullptr;  // rank 0's; in it everything that is the same on all ranks
  std::int64_t blocks = 1;          // N
  std::vector<std::int64_t> phase_first;         // first step of each phase, then the end
  std::vector<std::vector<Instance>> instances;  // by node; each by (step, action)

  [[nodiscard]] std::int64_t steps() const { return phase_first.back(); }
  // Every step up to this one has retired before `step` is let in (rule 2); -1: none need.
  [[nodiscard]] std::int64_t gate(std::int64_t step, std::uint32_t phase) const {
    const std::int64_t by_window = step - common->window;
    const std::int64_t by_phase = phase_first[phase] - 1;
    return by_window > by_phase ? by_window : by_phase;
  }
};

// A counterexample at `instance` of `node` (either may be missing: null, -1). `text` says what is
// wrong and what would be right; the rest of the line is put before it.
[[nodiscard]] Counterexample found(Point point, const Case& at, std::int64_t node,
                                   const Instance* instance, const std::string& text);
// "block 3 of segment 0"
[[nodiscard]] std::string block_name(const PlaceAt& place);
// "scratch slot 2", "output block 3 of segment 0"
[[nodiscard]] std::string place_name(const PlaceAt& place);
// The place whose block an instance moves: `a` of a send, else `into`.
[[nodiscard]] inline const PlaceAt& moved(const Instance& instance) {
  return instance.kind == espalier_Kind_SEND ? instance.a : instance.into;
}

// Point kForm for one rank against rank 0's program (form.cc). For every N at once.
[[nodiscard]] Finding check_agreement(const topology::Topology& topology, const Program& common,
                                      std::uint32_t node, const Program& program);
// Whether expanding `program` for N = at.blocks would take more instances than anyone checks.
[[nodiscard]] Finding check_size(const Case& at, std::uint32_t node, const Program& program);
// Every instance names links, segments, blocks and slots that exist and that its rank may use
// (kForm, kClaims, kDataFlow).
[[nodiscard]] Finding check_instances(const Case& at, std::uint32_t node, const Program& program);
[[nodiscard]] Finding check_ports(const Case& at, std::uint32_t node);
// kMatching, and kDeadlock where the ends of a transfer name different steps (rule 8).
[[nodiscard]] Finding check_matching(const Case& at);
[[nodiscard]] Finding check_steps(const Case& at);
// kHazards; clears `in_place` where input and output may not be the same memory.
[[nodiscard]] Finding check_hazards(const Case& at, std::uint32_t node, bool& in_place);
// A lower bound on the steps by ports and log p (bounds.cc).
[[nodiscard]] std::int64_t lower_bound_steps(const Program& common, std::int64_t blocks);

// Loads of the topology's links along its routes (links.cc); capacities and routes serve all N.
class Links {
 public:
  explicit Links(const topology::Topology& topology);
  // kLinks: in lock step; for grade ASYNC under any drift. Raises `busiest`.
  [[nodiscard]] Finding check(const Case& at, LinkLoad& busiest);

 private:
  static std::uint64_t key(std::uint32_t from, std::uint32_t to) {
    return (static_cast<std::uint64_t>(from) << 32) | to;
  }
  const std::vector<std::uint64_t>& route(std::uint32_t from, std::uint32_t to);
  const topology::Topology& topology_;
  std::unordered_map<std::uint64_t, std::uint32_t> capacity_;
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> routes_;  // links of each
};

}  // namespace espalier::verify
