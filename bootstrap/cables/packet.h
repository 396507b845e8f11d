#pragma once
// What hosts that look for their cables send each other: packets with a code by the job secret.
// Host only.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "espalier/bootstrap/bootstrap.h"

namespace espalier::cables {

// A host's number: random for each run.
using HostId = std::uint64_t;

inline constexpr std::size_t kMaxHosts = 256;
inline constexpr std::size_t kMaxPorts = 256;       // of a host
inline constexpr std::size_t kMaxNeighbours = 256;  // of a port
inline constexpr std::size_t kMaxMembers = 1024;    // of a host
inline constexpr std::size_t kMaxNameBytes = 64;    // of a host or an interface
inline constexpr std::size_t kMaxPacketBytes = 60'000;

enum class PortState : std::uint8_t {
  kReady,
  kBeginning,  // its address is not usable yet, or its first packets are on the way
  kNoCarrier,
  kNoIpv6,     // IPv6 is off
  kNoAddress,  // it has no link-local address, and gets none
};
inline constexpr std::uint8_t kPortStates = 5;

// An interface of a host.
struct Port {
  std::uint32_t number = 0;  // on its host
  std::string name = {};
  std::uint32_t rate_mbits = 0;  // Mbit/s, as its driver says; 0: unknown
  std::uint32_t mtu = 0;         // bytes; 0: unknown
  PortState state = PortState::kReady;
  std::array<std::uint8_t, 16> address = {};  // link-local, as on the wire; zeros: none yet

  bool operator==(const Port&) const = default;
};

// A port that packets came from.
struct Neighbour {
  HostId host = 0;
  std::uint32_t port = 0;
  bool is_proven = false;  // it answered this run's challenge: both directions work
  std::uint64_t round_trip_ns = 0;
  std::string host_name = {}, port_name = {};  // as it says; of one that is not proven

  bool operator==(const Neighbour&) const = default;
};

struct PortRecord {
  Port port = {};
  std::vector<Neighbour> neighbours = {};  // by host and port

  bool operator==(const PortRecord&) const = default;
};

// Everything that a host says of itself. It reaches all hosts.
struct HostRecord {
  HostId host = 0;
  std::uint64_t version = 0;  // grows with each change
  std::uint64_t network = 0;  // network::network_id()
  std::uint64_t view = 0;     // digest of the graph that it sees
  bool is_content = false;    // it waits for nothing but the others
  bool has_left = false;      // its last record
  std::string name = {};
  std::uint32_t term = 0;  // grows with each agent of this host's processes: the last one counts
  std::vector<std::uint64_t> members = {};  // the logs of the processes that run here (logs.h)
  std::vector<PortRecord> ports = {};

  bool operator==(const HostRecord&) const = default;
};

// The answer to a challenge.
struct Echo {
  HostId host = 0;
  std::uint32_t port = 0;
  std::uint64_t challenge = 0;
  std::uint64_t kept_ns = 0;  // from the challenge's arrival to the answer
};

// The version of a host's record that the sender has.
struct Known {
  HostId host = 0;
  std::uint64_t version = 0;
};

struct Packet {
  HostId host = 0;
  std::uint32_t port = 0;
  std::uint64_t sequence = 0;   // grows with each packet of the port
  std::uint64_t challenge = 0;  // a recent random number
  bool is_answer = false;       // to one host: it is not answered
  std::string host_name = {}, port_name = {};
  std::vector<Echo> echoes = {};
  std::vector<Known> known = {};
  std::vector<HostRecord> records = {};
};

// The key of the packets' codes.
using Key = std::array<std::uint8_t, 16>;
[[nodiscard]] Key key_of(const bootstrap::JobSecret& secret);

// Returns the bytes of the packet with their code.
[[nodiscard]] std::string seal(const Packet& packet, const Key& key);
// Returns the packet. Nothing: a code of another key, malformed, or beyond a limit.
[[nodiscard]] std::optional<Packet> open(const std::string& bytes, const Key& key);

[[nodiscard]] std::string encode(const HostRecord& record);
// Nothing: malformed.
[[nodiscard]] std::optional<HostRecord> decode_record(const std::string& bytes);
// Returns how many bytes the record takes in a packet.
[[nodiscard]] std::size_t size_of(const HostRecord& record);

// Whether the text may be a name of a host or an interface: printable ASCII, no spaces.
[[nodiscard]] bool is_name(const std::string& text);
// Returns the name with other characters replaced, and cut to kMaxNameBytes.
[[nodiscard]] std::string name_from(const std::string& text);

}  // namespace espalier::cables
