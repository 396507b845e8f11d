// The endpoints of a run: the links of the topology (hop by hop), or the peers that programs name
// (routed).

#include <algorithm>

#include "collectives/lower/neighbours.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "espalier/internal/base/limits.h"
#include "hal/fabric/address.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/run/run.h"

namespace espalier::run_command {
namespace {

// Every node is every other's neighbour: there the fabric routes, and any schedule stays on links.
bool complete(const topology::Topology& topology) {
  const std::uint64_t nodes = topology.nodes();
  return topology.link_count() == nodes * (nodes - 1);
}

// Images have spare links, which are in no table.
std::string interface_of(const tools::LinkTable& table, const EndpointResult& row) {
  const auto link = std::find_if(table.begin(), table.end(), [&row](const tools::NodeLink& each) {
    return each.peer == row.peer;
  });
  if (link == table.end() || row.lane >= link->interfaces.size()) return "";
  const std::string& name = link->interfaces[row.lane];
  return name.substr(0, name.find('/'));
}

}  // namespace

bool runs_hop_by_hop(const RunOptions& options, const planner::LoadedSchedule& schedule) {
  // Cables lead to neighbours only, also where these are all nodes.
  const std::string asked = options.cables.empty() ? options.plan.links : "hop-by-hop";
  if (asked == "routed") return false;
  const topology::Topology& topology = *schedule.topology;
  const auto stranger = lower::find_stranger(topology, schedule.programs);
  if (asked.empty()) return !stranger && !complete(topology);
  if (!stranger) return true;
  tools::bad_input("the schedule does not run hop by hop: " + topology.node_name(stranger->node) +
                   " exchanges messages with " + topology.node_name(stranger->peer) + ", and " +
                   topology.title() +
                   " has no link between the two; expected one of 'espalier compile --links "
                   "hop-by-hop', or --links routed");
}

std::vector<tools::LinkTable> link_tables(const planner::LoadedSchedule& schedule) {
  const topology::Topology& topology = *schedule.topology;
  std::vector<tools::LinkTable> tables =
      tools::link_tables(topology, static_cast<std::uint32_t>(schedule.programs.size()));
  for (std::uint32_t node = 0; node < tables.size(); ++node) {
    const std::uint64_t lanes = tools::endpoints(tables[node]);
    if (lanes <= kMaxLinks) continue;
    tools::bad_input(topology.node_name(node) + " of " + topology.title() + " has " +
                     std::to_string(lanes) + " lanes, and a node has room for " +
                     std::to_string(kMaxLinks) + " endpoints; expected --links routed");
  }
  return tables;
}

std::vector<EndpointResult> list_endpoints(const planner::LoadedSchedule& schedule,
                                           const std::vector<tools::LinkTable>& tables,
                                           const cluster::NodeProcesses& cluster) {
  std::vector<std::vector<std::uint32_t>> lanes;  // the peer of each
  for (const cluster::Member& member : cluster.members()) {
    lanes.emplace_back(member.hello.peers, member.hello.peers + member.hello.lanes);
  }
  const auto address = [&cluster](std::uint32_t node, std::uint32_t lane) {
    const control::Address& address = cluster.members()[node].hello.addresses[lane];
    return ofi::address_text(std::string(address.bytes, address.size));
  };
  std::vector<EndpointResult> list;
  for (std::uint32_t node = 0; node < lanes.size(); ++node) {
    EndpointResult row;
    row.node = node;
    row.name = schedule.topology->node_name(node);
    row.pid = cluster.members()[node].pid;
    for (std::uint32_t i = 0; i < lanes[node].size(); ++i) {
      const bool same = i > 0 && lanes[node][i] == lanes[node][i - 1];
      row.lane = same ? row.lane + 1 : 0;
      row.link += i > 0 && !same ? 1 : 0;
      row.peer = lanes[node][i];
      row.peer_name = schedule.topology->node_name(row.peer);
      row.interface = node < tables.size() ? interface_of(tables[node], row) : "";
      row.address = address(node, i);
      row.peer_address = address(row.peer, ofi::other_end(lanes, node, i));
      list.push_back(row);
    }
  }
  return list;
}

}  // namespace espalier::run_command
