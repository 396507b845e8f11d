#include "tools/cables/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "tools/common/table.h"

namespace espalier::cables {
namespace {

constexpr std::uint32_t kMaxLanes = 16;  // of a cable, beside one of the slowest rate

// Mbit/s; 0: unknown.
std::uint32_t rate_of(const Graph& graph, const Cable& cable) {
  return std::min(graph.port(cable.a).rate_mbits, graph.port(cable.b).rate_mbits);
}

// Bytes; 0: unknown.
std::uint32_t mtu_of(const Graph& graph, const Cable& cable) {
  return std::min(graph.port(cable.a).mtu, graph.port(cable.b).mtu);
}

std::string rate_text(std::uint32_t mbits) {
  if (mbits == 0) return "unknown";
  if (mbits < 1000) return std::to_string(mbits) + " Mbit/s";
  std::string text(32, '\0');
  const int size = std::snprintf(text.data(), text.size(), "%g Gbit/s", mbits / 1000.0);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::string round_trip_text(std::uint64_t ns) {
  if (ns == 0) return "unknown";
  std::string text(32, '\0');
  const int size =
      std::snprintf(text.data(), text.size(), "%.0f us", static_cast<double>(ns) / 1000);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

using Row = std::array<std::string, 7>;

const char* state_name(PortState state) {
  static constexpr const char* kNames[kPortStates] = {"ready", "beginning", "no carrier", "no IPv6",
                                                      "no address"};
  return kNames[static_cast<std::size_t>(state)];
}

// Interfaces that no cable or network has.
std::vector<End> idle_ends(const Graph& graph) {
  std::vector<End> used, idle;
  for (const Cable& cable : graph.cables) used.insert(used.end(), {cable.a, cable.b});
  for (const auto& network : graph.networks)
    used.insert(used.end(), network.begin(), network.end());
  for (std::uint32_t host = 0; host < graph.hosts.size(); ++host) {
    for (std::uint32_t port = 0; port < graph.hosts[host].ports.size(); ++port) {
      if (std::find(used.begin(), used.end(), End{host, port}) == used.end()) {
        idle.push_back({host, port});
      }
    }
  }
  return idle;
}

tools::Json end_json(const Graph& graph, End end) {
  return {{"host", graph.hosts[end.host].name}, {"interface", graph.port(end).name}};
}

tools::Json known(std::uint64_t number) {
  return number == 0 ? tools::Json() : tools::Json(number);
}

}  // namespace

std::string text_of(const Graph& graph) {
  std::string text =
      counted(graph.hosts.size(), "host") + ", " + counted(graph.cables.size(), "cable") + "\n";
  std::vector<Row> rows = {{"host", "interface", "host", "interface", "rate", "MTU", "round trip"}};
  for (const Cable& cable : graph.cables) {
    const std::uint32_t mtu = mtu_of(graph, cable);
    rows.push_back({graph.hosts[cable.a.host].name, graph.port(cable.a).name,
                    graph.hosts[cable.b.host].name, graph.port(cable.b).name,
                    rate_text(rate_of(graph, cable)), mtu == 0 ? "unknown" : std::to_string(mtu),
                    round_trip_text(cable.round_trip_ns)});
  }
  if (!graph.cables.empty()) text += tools::table_text(rows);
  for (const Finding& finding : graph.findings) {
    text += std::string("  ") + (finding.is_fault() ? "fault: " : "note: ") + finding.text + "\n";
  }
  std::map<std::string, std::string> idle;
  for (const End end : idle_ends(graph)) {
    std::string& names = idle[state_name(graph.port(end).state)];
    names += (names.empty() ? "" : ", ") + graph.text(end);
  }
  for (const auto& [state, names] : idle) {
    text += "  without a neighbour (" + state + "): " + names + "\n";
  }
  return text;
}

tools::Json json_of(const Graph& graph) {
  tools::Json hosts = tools::Json::array(), cables = tools::Json::array(),
              networks = tools::Json::array(), findings = tools::Json::array();
  for (const GraphHost& host : graph.hosts) {
    tools::Json interfaces = tools::Json::array();
    for (const Port& port : host.ports) {
      interfaces.push_back({{"name", port.name},
                            {"state", state_name(port.state)},
                            {"rate_mbits", known(port.rate_mbits)},
                            {"mtu", known(port.mtu)}});
    }
    hosts.push_back({{"name", host.name}, {"interfaces", interfaces}});
  }
  for (const Cable& cable : graph.cables) {
    cables.push_back({{"from", end_json(graph, cable.a)},
                      {"to", end_json(graph, cable.b)},
                      {"rate_mbits", known(rate_of(graph, cable))},
                      {"mtu", known(mtu_of(graph, cable))},
                      {"round_trip_ns", known(cable.round_trip_ns)}});
  }
  for (const auto& network : graph.networks) {
    tools::Json ends = tools::Json::array();
    for (const End end : network) ends.push_back(end_json(graph, end));
    networks.push_back(ends);
  }
  for (const Finding& finding : graph.findings) {
    findings.push_back(
        {{"kind", name_of(finding.kind)}, {"fault", finding.is_fault()}, {"text", finding.text}});
  }
  return {{"hosts", hosts}, {"cables", cables}, {"networks", networks}, {"findings", findings}};
}

std::string topology_of(const Graph& graph) {
  std::uint32_t slowest = 0;
  bool is_known = true;
  for (const Cable& cable : graph.cables) {
    const std::uint32_t rate = rate_of(graph, cable);
    is_known &= rate != 0;
    if (slowest == 0 || rate < slowest) slowest = rate;
  }
  std::string text = "# Written by 'espalier cables'.\nname: \"cables\"\nranks: " +
                     std::to_string(graph.hosts.size()) + "\n";
  for (std::size_t host = 0; host < graph.hosts.size(); ++host) {
    text +=
        "node { node: " + std::to_string(host) + " name: \"" + graph.hosts[host].name + "\" }\n";
  }
  struct Lanes {
    std::uint32_t cables = 0, all = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Lanes> links;
  for (const Cable& cable : graph.cables) {
    Lanes& lanes = links[{cable.a.host, cable.b.host}];
    ++lanes.cables;
    lanes.all += is_known ? std::min(rate_of(graph, cable) / slowest, kMaxLanes) : 1;
    text += "cable {";
    for (const End end : {cable.a, cable.b}) {
      text += " end { host: \"" + graph.hosts[end.host].name + "\" interface: \"" +
              graph.port(end).name + "\" }";
    }
    const auto add = [&text](const char* name, std::uint64_t number) {
      if (number != 0) text += std::string(" ") + name + ": " + std::to_string(number);
    };
    add("rate_mbits", rate_of(graph, cable));
    add("mtu", mtu_of(graph, cable));
    text += " }\n";
  }
  for (const auto& [ends, lanes] : links) {
    if (lanes.all == lanes.cables) continue;  // as many lanes as cables
    text += "link { from: " + std::to_string(ends.first) + " to: " + std::to_string(ends.second) +
            " capacity: " + std::to_string(lanes.all) + " }\n";
  }
  return text;
}

}  // namespace espalier::cables
