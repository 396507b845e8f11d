#pragma once
// Property ports: in no step does a node need more ports than the port model gives it, or more
// lanes of a link than there are. Nor does it have more messages than nodes count
// (espalier/internal/base/step_limits.h). Internal to collectives/verify.

#include <cstdint>

#include "collectives/verify/properties/expanded_schedule.h"
#include "collectives/verify/report/counterexample.h"
#include "espalier/topology/topology.h"

namespace espalier::verify {

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

}  // namespace espalier::verify
