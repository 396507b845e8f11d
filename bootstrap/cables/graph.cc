#include "bootstrap/cables/graph.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "base/counted.h"
#include "base/digest.h"
#include "espalier/internal/base/assert.h"

namespace espalier::cables {
namespace {

using Kind = Finding::Kind;

// Sets of numbers that are joined two by two; a set is named by its lowest member.
class Sets {
 public:
  explicit Sets(std::size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), 0u);
  }
  [[nodiscard]] std::uint32_t find(std::uint32_t member) const {
    while (parents_[member] != member) member = parents_[member];
    return member;
  }
  void join(std::uint32_t one, std::uint32_t other) {
    one = find(one);
    other = find(other);
    parents_[std::max(one, other)] = std::min(one, other);
  }

 private:
  std::vector<std::uint32_t> parents_;
};

// Whether `a` comes before `b`; digits count as numbers, so that box2 comes before box10.
bool comes_before(const std::string& a, const std::string& b) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto number_at = [&is_digit](const std::string& text, std::size_t& at) {
    while (at + 1 < text.size() && text[at] == '0' && is_digit(text[at + 1])) ++at;
    const std::size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return text.substr(begin, at - begin);
  };
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string one = number_at(a, i), other = number_at(b, j);
      if (one.size() != other.size()) return one.size() < other.size();
      if (one != other) return one < other;
    } else if (a[i++] != b[j++]) {
      return a[i - 1] < b[j - 1];
    }
  }
  return std::make_pair(a.size(), a) < std::make_pair(b.size(), b);
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

using Neighbours = std::map<std::pair<HostId, std::uint32_t>, const Neighbour*>;

void add(Graph& graph, Kind kind, std::string text) { graph.findings.push_back({kind, text}); }

// What is wrong with one group of interfaces that reach each other.
void add_group(Graph& graph, const std::vector<End>& group, std::uint64_t round_trip_ns) {
  if (group.size() > 2) {
    std::vector<std::string> names;
    for (const End end : group) names.push_back(graph.text(end));
    add(graph, Kind::kSwitch,
        "these " + std::to_string(group.size()) +
            " interfaces are on one network, so they are not cables: " + list_of(names));
    graph.networks.push_back(group);
  } else if (group.size() == 1) {
    add(graph, Kind::kLoop, graph.text(group[0]) + " receives its own packets");
  } else if (group[0].host == group[1].host) {
    add(graph, Kind::kLoop,
        "a cable joins " + graph.text(group[0]) + " to " + graph.port(group[1]).name +
            " of the same host");
  } else {
    graph.cables.push_back({group[0], group[1], round_trip_ns});
    const std::uint32_t a = graph.port(group[0]).mtu, b = graph.port(group[1]).mtu;
    if (a != b && a != 0 && b != 0) {
      add(graph, Kind::kMtu,
          "the cable of " + graph.text(group[0]) + " and " + graph.text(group[1]) + " has MTU " +
              std::to_string(a) + " at one end and " + std::to_string(b) +
              " at the other; expected one");
    }
  }
}

void add_lanes(Graph& graph) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counts;
  for (const Cable& cable : graph.cables) ++counts[{cable.a.host, cable.b.host}];
  for (const auto& [ends, count] : counts) {
    if (count < 2) continue;
    add(graph, Kind::kLanes,
        counted(count, "cable") + " between " + graph.hosts[ends.first].name + " and " +
            graph.hosts[ends.second].name + ": as many lanes");
  }
}

void add_islands(Graph& graph) {
  const std::vector<std::uint32_t> islands = graph.islands();
  std::map<std::uint32_t, std::vector<std::string>> names;
  for (std::size_t i = 0; i < islands.size(); ++i) {
    names[islands[i]].push_back(graph.hosts[i].name);
  }
  if (names.size() < 2) return;
  std::string text = "the cables connect " + counted(names.size(), "part") + " only in themselves:";
  const char* separator = " ";
  for (const auto& [island, members] : names) {
    text += separator + list_of(members);
    separator = "; ";
  }
  add(graph, Kind::kIslands, text);
}

// Hosts of one name, and searches that share a host's interfaces.
void add_names(Graph& graph, const std::vector<HostRecord>& records) {
  std::map<std::string, std::uint32_t> names;
  std::map<std::uint64_t, std::uint32_t> networks;
  for (const HostRecord& record : records) {
    ++names[record.name];
    if (record.network != 0 && ++networks[record.network] == 2) {
      add(graph, Kind::kTwice,
          "the search runs more than once on " + record.name + "; expected one process per host");
    }
  }
  for (const auto& [name, count] : names) {
    if (count < 2) continue;
    add(graph, Kind::kSameName,
        counted(count, "host") + " have the name " + name + "; expected different names");
  }
}

void add_ports(Graph& graph) {
  for (const GraphHost& host : graph.hosts) {
    for (const Port& port : host.ports) {
      const std::string who = host.name + " " + port.name;
      if (port.state == PortState::kNoIpv6) {
        add(graph, Kind::kNoProbe,
            who + " has IPv6 off, so it is not searched; expected sysctl net.ipv6.conf." +
                port.name + ".disable_ipv6=0");
      } else if (port.state == PortState::kNoAddress) {
        add(graph, Kind::kNoProbe, who + " has no link-local IPv6 address, so it is not searched");
      }
    }
  }
}

// Interfaces by host and number.
using Places = std::map<std::pair<HostId, std::uint32_t>, End>;

// Packets that did not prove their sender. A cable has two ends: they are of no interest where
// either end has a proven neighbour, because anyone who records packets can send them again.
void add_one_sided(Graph& graph, const std::vector<HostRecord>& records, const Places& places,
                   const std::set<End>& proven) {
  for (const HostRecord& record : records) {
    for (const PortRecord& port : record.ports) {
      const End end = places.at({record.host, port.port.number});
      for (const Neighbour& neighbour : port.neighbours) {
        const auto peer = places.find({neighbour.host, neighbour.port});
        const bool is_known = peer != places.end();
        if (neighbour.is_proven || proven.contains(end)) continue;
        if (is_known && proven.contains(peer->second)) continue;
        if (is_known) {
          add(graph, Kind::kOneSided,
              "a cable is seen from one side only: " + graph.text(end) + " receives from " +
                  graph.text(peer->second) + ", which does not receive from it");
        } else {
          add(graph, Kind::kUnproven,
              graph.text(end) + " receives from " + neighbour.host_name + " " +
                  neighbour.port_name +
                  ", which does not answer: a cable seen from one side only, or repeated packets");
        }
      }
    }
  }
}

std::uint64_t digest_text(std::uint64_t seed, const std::string& text) {
  return digest_bytes(digest_u64(seed, text.size()), text.data(), text.size());
}

// Whether the record has this neighbour, proven.
bool has_proven(const HostRecord& record, std::uint32_t port, HostId host, std::uint32_t peer) {
  for (const PortRecord& each : record.ports) {
    if (each.port.number != port) continue;
    for (const Neighbour& neighbour : each.neighbours) {
      if (neighbour.host == host && neighbour.port == peer) return neighbour.is_proven;
    }
  }
  return false;
}

}  // namespace

bool Finding::is_fault() const {
  return kind == Kind::kOneSided || kind == Kind::kSameName || kind == Kind::kTwice ||
         kind == Kind::kMtu || kind == Kind::kIslands || kind == Kind::kMissing ||
         kind == Kind::kAlone;
}

const char* name_of(Kind kind) {
  static constexpr const char* kNames[] = {"one-sided", "unproven", "switch",  "loop",
                                           "same-name", "twice",    "lanes",   "mtu",
                                           "islands",   "no-probe", "missing", "alone"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<std::uint32_t> Graph::islands() const {
  Sets sets(hosts.size());
  for (const Cable& cable : cables) sets.join(cable.a.host, cable.b.host);
  std::vector<std::uint32_t> found(hosts.size());
  for (std::uint32_t host = 0; host < found.size(); ++host) found[host] = sets.find(host);
  return found;
}

std::vector<std::uint32_t> order_hosts(Graph& graph) {
  std::vector<std::uint32_t> order(graph.hosts.size()), places(order.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&graph](std::uint32_t a, std::uint32_t b) {
    return comes_before(graph.hosts[a].name, graph.hosts[b].name);
  });
  std::vector<GraphHost> sorted;
  std::uint32_t again = 1;
  std::string earlier;
  for (std::uint32_t place = 0; place < order.size(); ++place) {
    places[order[place]] = place;
    GraphHost host = std::move(graph.hosts[order[place]]);
    again = place > 0 && host.name == earlier ? again + 1 : 1;
    earlier = host.name;
    if (again > 1) host.name += "#" + std::to_string(again);
    sorted.push_back(std::move(host));
  }
  graph.hosts = std::move(sorted);
  return places;
}

void add_adjacencies(Graph& graph, const std::vector<Adjacency>& adjacencies) {
  std::map<End, std::uint32_t> numbers;
  std::set<End> proven;
  for (const Adjacency& each : adjacencies) {
    for (const End end : {each.a, each.b}) {
      numbers.emplace(end, static_cast<std::uint32_t>(numbers.size()));
      if (each.a.host != each.b.host) proven.insert(end);
    }
  }
  Sets sets(numbers.size());
  // A loop counts only where no other host is: a host's own packets may be sent back by anyone.
  const auto counts = [&proven](const Adjacency& each) {
    return each.a.host != each.b.host || (!proven.contains(each.a) && !proven.contains(each.b));
  };
  std::set<End> members;
  for (const Adjacency& each : adjacencies) {
    if (!counts(each)) continue;
    sets.join(numbers[each.a], numbers[each.b]);
    members.insert({each.a, each.b});
  }
  std::map<std::uint32_t, std::vector<End>> groups;
  for (const End end : members) groups[sets.find(numbers[end])].push_back(end);
  std::map<std::uint32_t, std::uint64_t> shortest;
  for (const Adjacency& each : adjacencies) {
    std::uint64_t& least = shortest[sets.find(numbers[each.a])];
    if (each.round_trip_ns != 0 && (least == 0 || each.round_trip_ns < least)) {
      least = each.round_trip_ns;
    }
  }
  for (const auto& [set, group] : groups) add_group(graph, group, shortest[set]);
  std::sort(graph.cables.begin(), graph.cables.end(),
            [](const Cable& a, const Cable& b) { return std::tie(a.a, a.b) < std::tie(b.a, b.b); });
  add_lanes(graph);
  add_islands(graph);
}

Graph graph_of(const std::vector<HostRecord>& records, std::uint32_t expected) {
  Graph graph;
  for (const HostRecord& record : records) {
    GraphHost host{.name = record.name, .id = record.host};
    for (const PortRecord& port : record.ports) host.ports.push_back(port.port);
    graph.hosts.push_back(std::move(host));
  }
  const std::vector<std::uint32_t> order = order_hosts(graph);
  Places places;
  for (std::uint32_t host = 0; host < records.size(); ++host) {
    for (std::uint32_t port = 0; port < records[host].ports.size(); ++port) {
      places[{records[host].host, records[host].ports[port].port.number}] = {order[host], port};
    }
  }
  std::vector<Adjacency> adjacencies;
  for (const HostRecord& record : records) {
    for (const PortRecord& port : record.ports) {
      for (const Neighbour& neighbour : port.neighbours) {
        const auto peer = places.find({neighbour.host, neighbour.port});
        if (!neighbour.is_proven || peer == places.end()) continue;
        adjacencies.push_back(
            {places.at({record.host, port.port.number}), peer->second, neighbour.round_trip_ns});
      }
    }
  }
  std::set<End> proven;
  for (const Adjacency& each : adjacencies) {
    if (each.a.host != each.b.host) proven.insert({each.a, each.b});
  }
  add_one_sided(graph, records, places, proven);
  add_adjacencies(graph, adjacencies);
  add_names(graph, records);
  add_ports(graph);
  if (records.size() < 2) {
    add(graph, Kind::kAlone, "no host answered; expected the same command on the others");
  }
  if (expected != 0 && records.size() != expected) {
    add(graph, Kind::kMissing,
        counted(records.size(), "host") + " found; expected " + std::to_string(expected));
  }
  std::stable_sort(graph.findings.begin(), graph.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.kind < b.kind; });
  return graph;
}

std::uint64_t view_of(const std::vector<HostRecord>& records) {
  std::uint64_t digest = kDigestSeed;
  for (const HostRecord& record : records) {
    digest = digest_text(digest_u64(digest, record.host), record.name);
    for (const PortRecord& port : record.ports) {
      digest = digest_text(digest_u64(digest, port.port.number), port.port.name);
      digest = digest_u64(digest, static_cast<std::uint64_t>(port.port.state));
      for (const Neighbour& neighbour : port.neighbours) {
        if (!neighbour.is_proven) continue;
        digest = digest_u64(digest_u64(digest, neighbour.host), neighbour.port);
      }
    }
  }
  return digest;
}

std::vector<HostRecord> reached(const std::vector<const HostRecord*>& records, HostId self) {
  std::map<HostId, const HostRecord*> all;
  for (const HostRecord* record : records) all[record->host] = record;
  std::set<HostId> found = {self};
  for (std::vector<HostId> next = {self}; !next.empty();) {
    const auto record = all.find(next.back());
    next.pop_back();
    if (record == all.end()) continue;
    for (const PortRecord& port : record->second->ports) {
      for (const Neighbour& neighbour : port.neighbours) {
        const auto peer = all.find(neighbour.host);
        if (!neighbour.is_proven || peer == all.end()) continue;
        if (!has_proven(*peer->second, neighbour.port, record->first, port.port.number)) continue;
        if (found.insert(neighbour.host).second) next.push_back(neighbour.host);
      }
    }
  }
  std::vector<HostRecord> result;
  for (const auto& [host, record] : all) {
    if (found.contains(host)) result.push_back(*record);
  }
  return result;
}

}  // namespace espalier::cables
