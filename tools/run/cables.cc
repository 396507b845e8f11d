// The interfaces by which the lanes of a run leave: those of the cables in the file of --cables.

#include <algorithm>
#include <map>
#include <utility>

#include "base/counted.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/run/run.h"
#include "topology/custom_content.h"

namespace espalier::run_command {
namespace {

using topology::Cable;

// The cables between two nodes, the lower one first, in the order of the file: both ends of a lane
// choose the same cable.
using CableTable = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const Cable*>>;

CableTable cable_table(const std::vector<Cable>& cables) {
  CableTable table;
  for (const Cable& cable : cables) {
    table[std::minmax(cable.ends[0].node, cable.ends[1].node)].push_back(&cable);
  }
  return table;
}

// Returns the cable of each lane: every cable has one, and more in proportion to its rate. Cables
// without a rate are equal.
std::vector<const Cable*> deal_lanes(const std::vector<const Cable*>& cables, std::size_t lanes) {
  const bool has_rates = std::all_of(cables.begin(), cables.end(),
                                     [](const Cable* cable) { return cable->rate_mbits != 0; });
  std::vector<const Cable*> dealt = cables;
  std::vector<std::uint64_t> given(cables.size(), 1);
  while (dealt.size() < lanes) {
    std::size_t best = 0;
    const auto rate = [&](std::size_t i) -> std::uint64_t {
      return has_rates ? cables[i]->rate_mbits : 1;
    };
    for (std::size_t i = 1; i < cables.size(); ++i) {
      if ((given[i] + 1) * rate(best) < (given[best] + 1) * rate(i)) best = i;
    }
    ++given[best];
    dealt.push_back(cables[best]);
  }
  return dealt;
}

const Cable::End& end_of(const Cable& cable, std::uint32_t node) {
  return cable.ends[cable.ends[0].node == node ? 0 : 1];
}

std::string interface_of(const Cable& cable, std::uint32_t node) {
  return end_of(cable, node).interface + (cable.mtu == 0 ? "" : "/" + std::to_string(cable.mtu));
}

}  // namespace

std::vector<std::string> add_cables(const RunOptions& options, const topology::Topology& topology,
                                    std::vector<tools::LinkTable>& tables) {
  const std::string where = "--cables " + tools::one_line(options.cables) + ": ";
  const auto content = tools::or_bad_input(topology::read_custom_file(options.cables));
  if (content.cables.empty()) {
    tools::bad_input(where + "it has no cable { ... }; expected a topology file with cables");
  }
  if (content.nodes.size() != topology.nodes()) {
    tools::bad_input(where + "it has " + counted(content.nodes.size(), "node") + ", and " +
                     topology.title() + " has " + std::to_string(topology.nodes()) +
                     "; expected the same nodes");
  }
  const CableTable cables = cable_table(content.cables);
  std::vector<std::string> hosts;
  for (const auto& node : content.nodes) hosts.push_back(node.host);
  for (std::uint32_t node = 0; node < tables.size(); ++node) {
    for (tools::NodeLink& link : tables[node]) {
      const auto found = cables.find(std::minmax(node, link.peer));
      if (found == cables.end()) {
        tools::bad_input(where + "no cable joins " + topology.node_name(node) + " and " +
                         topology.node_name(link.peer) + ", which have a link in " +
                         topology.title() + "; expected a cable for each link of the schedule");
      }
      const auto count = static_cast<std::uint32_t>(found->second.size());
      if (link.out != 0) link.out = std::max(link.out, count);
      if (link.in != 0) link.in = std::max(link.in, count);
      for (const Cable* cable : deal_lanes(found->second, std::max(link.out, link.in))) {
        const std::string& host = hosts[node].empty() ? topology.node_name(node) : hosts[node];
        link.interfaces.push_back(interface_of(*cable, node));
        link.cables.push_back(end_of(*cable, node).interface + " of " + host);
      }
    }
  }
  return hosts;
}

}  // namespace espalier::run_command
