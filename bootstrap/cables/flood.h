#pragma once
// Brings the logs of all processes to all hosts, without sockets and clocks: packets and times come
// in, packets go out. Host only.
//
// Each peer says how much of each log it has. Bytes beyond that are sent at once when they come,
// and again until the peer says that it has them. Packets may be lost, repeated, or overtake each
// other. A repeated packet has no effect, because a log only grows; a packet of an earlier run has
// none, because its logs and its sender have other numbers.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bootstrap/cables/discovery.h"
#include "bootstrap/cables/logs.h"

namespace espalier::cables {

struct FloodPacket {
  HostId host = 0, to_host = 0;         // sender and receiver; between processes of a host: 0
  std::uint32_t port = 0, to_port = 0;  // of these
  bool is_summary = false;              // `has` names every log of the sender
  bool wants_summary = false;
  struct Has {
    LogId log = 0;
    std::uint64_t bytes = 0;  // from the log's beginning
  };
  struct Part {
    LogId log = 0;
    std::uint64_t offset = 0;
    std::string bytes = {};
  };
  std::vector<Has> has = {};
  std::vector<Part> parts = {};
};
[[nodiscard]] std::string encode(const FloodPacket& packet);
// Nothing: malformed.
[[nodiscard]] std::optional<FloodPacket> decode_flood(std::string_view bytes);

class Flood {
 public:
  using PeerId = std::uint64_t;
  // Bytes of logs that one packet carries, and packets on the way: over a cable, and within a host.
  static constexpr std::size_t kCableBytes = 1200, kLocalBytes = 24'000;

  [[nodiscard]] const Logs& logs() const { return logs_; }
  // Adds to an own log.
  void add(LogId log, const Entry& entry, Time now);
  // Forgets logs except these, 30 s after they ceased to be among them.
  void keep(const std::set<LogId>& logs, Time now);

  [[nodiscard]] bool has_peer(PeerId peer) const { return peers_.contains(peer); }
  void add_peer(PeerId peer, std::size_t packet_bytes, Time now);
  void remove_peer(PeerId peer) { peers_.erase(peer); }
  // Returns whether a log has grown.
  bool receive(PeerId peer, const FloodPacket& packet, Time now);
  struct Outgoing {
    PeerId to = 0;
    FloodPacket packet = {};  // without hosts and ports
  };
  [[nodiscard]] std::vector<Outgoing> take_due(Time now);
  // When take_due() has to be called again, if nothing is received or added.
  [[nodiscard]] Time next_due() const { return next_due_; }
  // Whether each peer has all of each log.
  [[nodiscard]] bool is_everywhere() const;

 private:
  struct PeerLog {
    std::uint64_t known = 0, sent = 0;
    Time sent_at{0}, pause{0};
  };
  struct Peer {
    std::size_t packet_bytes = 0;
    bool has_summary = false;  // of the peer's logs
    Time next_summary{0}, pause{0};
    bool owes_summary = false;
    std::set<LogId> owed = {};  // whose bytes the peer must learn that they are here
    std::map<LogId, PeerLog> logs = {};
  };
  [[nodiscard]] std::uint64_t length_of(LogId log) const;
  void take_has(Peer& peer, const FloodPacket& packet);
  void add_summary(Peer& peer, Time now, FloodPacket& packet);
  // Adds the parts that are due to packets.
  void add_parts(PeerId id, Peer& peer, Time now, std::vector<Outgoing>& packets);

  Logs logs_;
  std::set<LogId> forgotten_;
  std::map<LogId, Time> unneeded_;  // since when
  std::map<PeerId, Peer> peers_;
  Time next_due_{0};
};

}  // namespace espalier::cables
