#pragma once
// The checks of a schedule for one N, by property. Internal to collectives/verify.

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/verify/properties/counterexample.h"
#include "collectives/verify/properties/expanded_schedule.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

// Property form: every program is one that a node would load, and all programs agree on everything
// that must be the same on all nodes. For every N at once.

// Checks the program of `node` against rank 0's program, `common`.
[[nodiscard]] Finding check_agreement(const topology::Topology& topology, const Program& common,
                                      std::uint32_t node, const Program& program);

// Whether a schedule stays within the limits of VerifyOptions. Proves nothing about it: what
// exceeds them is refused as too large, before memory of that size is taken.

// Returns the limit for all N together, options.max_instances_total. Unless the caller asks for
// certain N, it is at most kMaxInstancesAnyFile + kMaxInstancesPerNode * nodes: a schedule of few
// nodes is a small file, which keeps the verifier busy for some seconds at most. The proof for
// every N at once takes less time per instance, so its limit is kTimesAtOnce times this.
inline constexpr std::int64_t kTimesAtOnce = 4;
[[nodiscard]] std::int64_t max_total(const VerifyOptions& options, std::uint32_t nodes,
                                     std::int64_t times = 1);

// Adds the cost of expanding `program` for N = schedule.blocks to schedule.held and at.spent.
// too_large if that exceeds the limits. Call before expanding.
[[nodiscard]] Finding check_size(ExpandedSchedule& schedule, std::uint32_t node,
                                 const Program& program);
// Returns the end of the line of such a refusal: the largest part of the cost of `program` for
// N = schedule.blocks, usually an action with its instances, each counted once per segment.
[[nodiscard]] std::string costliest_text(const ExpandedSchedule& schedule, const Program& program);
// Adds the cost of walking through the steps of all nodes to schedule.spent. If that exceeds the
// limit, the next check_size() refuses.
void add_steps(ExpandedSchedule& schedule);

// Properties form, claims, hazards and data flow, as far as one instance alone decides them:
//  * it names a link, segments, blocks and slots that exist and that its node may use;
//  * its operands are the same block;
//  * its operands are the same place, or do not overlap;
//  * the pace of its action keeps the rules.

// Checks the instances of `node` in schedule.instances, expanded from `program`. kForm, kClaims,
// kHazards or kDataFlow.
[[nodiscard]] Finding check_instances(const ExpandedSchedule& schedule, std::uint32_t node,
                                      const Program& program);

// Property ports: in no step does a node need more ports than the port model gives it, or more
// lanes of a link than there are. Nor does it have more messages than nodes count
// (espalier/internal/base/step_limits.h).

// Checks the instances of `node` in schedule.instances.
[[nodiscard]] Finding check_ports(const ExpandedSchedule& schedule, std::uint32_t node);

// Whether two transfers of one node, each a send or a receive, need the same port of the model if
// they hold it at the same time. The lanes of links are counted in addition, in every model.
[[nodiscard]] bool share_port(PortModel model, bool send, bool other_send);
// Returns the maximum of messages that a program may send from one node to another in a step: one
// per lane, and not more than nodes count.
[[nodiscard]] std::uint32_t messages_together(const topology::Topology& topology,
                                              std::uint32_t from, std::uint32_t to);
// Returns the first of the S steps in which a transfer of `step` holds its port. A send holds it
// from its step onward, a receive up to its step.
[[nodiscard]] std::int64_t port_begin(const Program& program, bool send, std::int64_t step);

// Properties matching and deadlock. On every link send k, by (step, action), matches receive k: it
// moves the same blocks (kMatching). The receive is L - 1 steps later (rule 8; otherwise
// kDeadlock).

// Checks all links of schedule.instances, step by step.
[[nodiscard]] Finding check_matching(const ExpandedSchedule& schedule);
// Checks the link from -> to alone. Reads the instances of these two nodes only.
[[nodiscard]] Finding check_link(const ExpandedSchedule& schedule, std::uint32_t from,
                                 std::uint32_t to);

// Property links: no link of the topology carries more messages at once than its capacity, along
// the routes of all messages.

// One message on the route from -> to.
struct LinkUse {
  std::uint32_t from = 0, to = 0;  // nodes
  std::int64_t slot = 0;           // messages with equal slots travel in the same step
};

// Checks the loads of all links for N = schedule.blocks. Clears verdict.slot and verdict.async if
// they do not hold, and sets verdict.busiest to the busiest link under the claimed one if that link
// is closer to its capacity.
[[nodiscard]] Finding check_links(ExpandedSchedule& schedule, Verdict& verdict);
// Does the same for these uses.
[[nodiscard]] Finding check_loads(ExpandedSchedule& schedule, std::vector<LinkUse> uses,
                                  Verdict& verdict);

// Property hazards: no place is read before it is written, and none is overwritten before its last
// use, under any timing skew that the window lets a node have.
//
// Each node alone, from rules 2 to 7 (hazard_rules.h). Other nodes order nothing here: they only
// delay. An access that must come first is safe exactly if it is certain to have happened before.
// The accesses to a place are taken in the order of a lock-step run. Checking each access against
// those since the last write orders all of them, because "before" is transitive.

// Checks the instances of `node` in schedule.instances. Clears verdict.in_place if input and output
// may not be the same memory, and adds to verdict.checks.
[[nodiscard]] Finding check_hazards(const ExpandedSchedule& schedule, std::uint32_t node,
                                    Verdict& verdict);

}  // namespace espalier::verify
