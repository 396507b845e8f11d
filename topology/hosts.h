#pragma once
// hosts:HxR: a cluster of H hosts with R ranks each. Memory links connect all ranks of a host; the
// ranks of a host share one link into the network and one out of it. It is a crossbar (crossbar.h)
// whose modules are hosts with one channel in and one out.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses the text after "hosts:". Rank h*R + i is on host h. Routers: the network port of each
// host, then the switch. A message between hosts crosses four links: to the port, to the switch, to
// the other port, to the rank. The two in the middle are the hosts' shared links.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_hosts(std::string_view text);

}  // namespace espalier::topology
