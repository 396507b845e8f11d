#pragma once
// The graph of hosts and cables, and what is wrong with it. Host only.

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "bootstrap/cables/packet.h"

namespace espalier::cables {

struct GraphHost {
  std::string name = {};  // "box", and of a second host of that name "box#2"
  std::vector<Port> ports = {};
  HostId id = 0;  // of a host that was found by the search
};

// An interface in the graph.
struct End {
  std::uint32_t host = 0, port = 0;  // places in Graph::hosts and GraphHost::ports

  auto operator<=>(const End&) const = default;
};

struct Cable {
  End a = {}, b = {};               // a < b
  std::uint64_t round_trip_ns = 0;  // the shortest one; 0: unknown
  [[nodiscard]] bool joins(std::uint32_t one, std::uint32_t other) const {
    return a.host == one && b.host == other;
  }
};

// Something to know about the graph. `is_fault`: mend it before the graph is relied on.
struct Finding {
  enum class Kind : std::uint8_t {
    kOneSided,  // a cable seen from one side only
    kUnproven,  // the same, of a host that is not in the graph; or repeated packets
    kSwitch,    // several neighbours on one interface
    kLoop,      // a cable from a host to itself
    kSameName,  // two hosts of one name
    kTwice,     // the search runs twice on one host
    kLanes,     // several cables between two hosts
    kMtu,       // the ends of a cable have different MTUs
    kIslands,   // the cables do not connect all hosts
    kNoProbe,   // an interface without IPv6, or without a link-local address
    kMissing,   // fewer hosts than expected, or more
    kAlone,     // no host was found
  };
  Kind kind = Kind::kLanes;
  std::string text = {};  // one line
  [[nodiscard]] bool is_fault() const;
};
// "one-sided", "switch", ...
[[nodiscard]] const char* name_of(Finding::Kind kind);

struct Graph {
  std::vector<GraphHost> hosts = {};            // by name; numbers in names count as numbers
  std::vector<Cable> cables = {};               // by a, then b
  std::vector<std::vector<End>> networks = {};  // the interfaces on each switch
  std::vector<Finding> findings = {};
  [[nodiscard]] const Port& port(End end) const { return hosts[end.host].ports[end.port]; }
  [[nodiscard]] std::string text(End end) const {
    return hosts[end.host].name + " " + port(end).name;
  }
  // Returns, for each host, the lowest number of a host that cables connect it to.
  [[nodiscard]] std::vector<std::uint32_t> islands() const;
};

// Two interfaces that reach each other, and what the ends measured.
struct Adjacency {
  End a = {}, b = {};
  std::uint64_t round_trip_ns = 0;
};

// Orders the hosts, and renames those of one name. Returns the new place of each host.
[[nodiscard]] std::vector<std::uint32_t> order_hosts(Graph& graph);

// Sorts the adjacencies into cables, networks and loops, and adds what is found about them.
// The hosts must be in order.
void add_adjacencies(Graph& graph, const std::vector<Adjacency>& adjacencies);

// Returns the graph of these records, of which each host and port occurs once. `expected`: the
// number of hosts; 0: unknown.
[[nodiscard]] Graph graph_of(const std::vector<HostRecord>& records, std::uint32_t expected);

// Returns a digest of the records' hosts, ports and proven neighbours.
[[nodiscard]] std::uint64_t view_of(const std::vector<HostRecord>& records);

// Returns the records of the hosts that `self` reaches over neighbours that both ends have proven,
// by host.
[[nodiscard]] std::vector<HostRecord> reached(const std::vector<const HostRecord*>& records,
                                              HostId self);

}  // namespace espalier::cables
