#pragma once
// The search for cables, without sockets and clocks: packets and times come in, packets go out.
// Host only.
//
// Each port sends a packet to all its neighbours every 100 ms, with a fresh challenge. A host that
// receives it answers at once, and repeats the challenge. An answer proves that the neighbour knows
// the job secret, that it is there now, and that both directions work; its time is the round trip.
// Nothing else in a packet is believed before that: a recorded packet repeats old challenges.
// Proven neighbours exchange records, so that each record reaches all hosts.
//
// A host is content once its caller has set that. When all hosts are content with one view of the
// graph, each may leave.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/network/address.h"
#include "bootstrap/cables/graph.h"
#include "bootstrap/cables/packet.h"

namespace espalier::cables {

// Since an arbitrary time.
using Time = std::chrono::nanoseconds;

inline constexpr Time kBeaconTime = std::chrono::milliseconds(100);
inline constexpr Time kIdleBeaconTime = std::chrono::milliseconds(250);
// After so long without a packet a neighbour is gone, and a challenge has no answer.
inline constexpr Time kSilenceTime = std::chrono::seconds(1);
// A cable is seen from one side only if it stayed so for this time, over this many packets.
inline constexpr Time kOneSidedTime = std::chrono::milliseconds(400);
inline constexpr std::uint32_t kOneSidedPackets = 4;
// Packets that a port sends before it is ready: enough for each neighbour to answer.
inline constexpr std::uint32_t kFirstPackets = 4;

struct Identity {
  HostId host = 0;  // random
  std::uint64_t network = 0;
  std::string name = {};  // is_name()
};

class Discovery {
 public:
  // A packet to send: to all neighbours of the port, or to one.
  struct Outgoing {
    std::uint32_t port = 0;  // number
    std::optional<network::Address> to = {};
    std::string bytes = {};
  };
  using Random = std::function<std::uint64_t()>;

  // `random` returns numbers that no other host can guess.
  Discovery(Identity self, const Key& key, Random random);

  // Sets the ports of this host: at most kMaxPorts, with valid names and different numbers. Only
  // those in kReady send; the state that others see is kBeginning at first.
  void set_ports(const std::vector<Port>& ports, Time now);
  // Takes a packet that arrived at a port. Bytes that are not of this job have no effect.
  void receive(std::uint32_t port, const network::Address& from, const std::string& bytes,
               Time now);
  // Returns the packets that are due.
  [[nodiscard]] std::vector<Outgoing> take_due(Time now);
  // Returns when take_due() has to be called again, if nothing is received.
  [[nodiscard]] Time next_due() const { return next_due_; }

  // Whether this host waits only for the others.
  void set_content(bool is_content, Time now);
  // Sets HostRecord::members and term.
  void set_members(std::vector<std::uint64_t> members, std::uint32_t term, Time now);
  // Whether beacons are sent every kIdleBeaconTime: silence is still noticed in kSilenceTime.
  void set_idle(bool is_idle) { beacon_time_ = is_idle ? kIdleBeaconTime : kBeaconTime; }
  // Returns the last packets; the others keep this host in their graph.
  [[nodiscard]] std::vector<Outgoing> leave(Time now);

  // Returns the records of the hosts that are in the graph, this host included, by host.
  [[nodiscard]] std::vector<HostRecord> hosts() const;
  // Returns since when view_of(hosts()) is as it is.
  [[nodiscard]] Time changed_at() const { return changed_at_; }
  // Whether a port of a host in the graph is at its beginning.
  [[nodiscard]] bool is_beginning() const;
  // Whether all hosts in the graph are content with the view of this host.
  [[nodiscard]] bool all_content() const;
  // Whether a host of the graph has left.
  [[nodiscard]] bool has_any_left() const;
  // A neighbour of a port that has proven itself.
  struct ProvenPeer {
    std::uint32_t port = 0;  // of this host
    HostId host = 0;
    std::uint32_t peer_port = 0;
    network::Address address = {};
  };
  [[nodiscard]] std::vector<ProvenPeer> proven_peers() const;
  // Returns the number of packets that were not of this job, or repeated.
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
  struct Peer {
    network::Address address = {};
    std::string host_name = {}, port_name = {};
    std::uint64_t sequence = 0;
    std::uint64_t challenge = 0;  // the last one that arrived
    Time arrived_at{0}, first_at{0};
    std::uint32_t packets = 0;
    std::optional<Time> proven_at = {};
    std::uint64_t round_trip_ns = 0;  // the shortest; 0: unknown
    std::map<HostId, std::uint64_t> known = {};
    bool is_owed_answer = false;
  };
  using PeerName = std::pair<HostId, std::uint32_t>;
  struct Challenge {
    std::uint64_t number = 0;
    Time sent_at{0};
  };
  struct OwnPort {
    Port port = {};
    std::uint64_t sequence = 0;
    std::uint32_t sent = 0;
    Time next_beacon{0}, began_at{0};
    std::array<Challenge, 16> challenges = {};
    std::size_t newest = 0;
    std::map<PeerName, Peer> peers = {};
    std::map<std::uint32_t, Time> loops = {};  // own ports whose packets arrive here, and when last
  };

  [[nodiscard]] const Challenge* find_challenge(const OwnPort& port, std::uint64_t number,
                                                Time now) const;
  static void make_room(OwnPort& port);
  // The peer of a packet; null: it is refused.
  [[nodiscard]] Peer* take_peer(OwnPort& port, const Packet& packet, Time now);
  void take_loop(OwnPort& port, const Packet& packet, Time now);
  [[nodiscard]] bool take_echoes(OwnPort& port, const Packet& packet, Peer& peer, Time now);
  void take_records(Packet& packet, Peer& peer);
  [[nodiscard]] Packet begin_packet(OwnPort& port) const;
  [[nodiscard]] std::string beacon(OwnPort& port, Time now);
  // Adds the packets that answer a peer, or carry the records that it lacks.
  void add_answers(OwnPort& port, const PeerName& name, Peer& peer, Time now,
                   std::vector<Outgoing>& packets);
  [[nodiscard]] std::vector<const HostRecord*> missing_of(const Peer& peer) const;
  [[nodiscard]] bool has_left(HostId host) const;
  void forget_silent(Time now);
  [[nodiscard]] PortState state_of(const OwnPort& port, Time now) const;
  [[nodiscard]] PortRecord row_of(const OwnPort& port, Time now) const;
  static void keep_round_trips(HostRecord& record, const HostRecord& old);
  // Makes this host's record anew, and the view.
  void update(Time now);
  void set_record(HostRecord record);
  void forget_unreached(Time now);

  Identity self_;
  Key key_;
  Random random_;
  std::map<std::uint32_t, OwnPort> ports_;
  std::map<HostId, HostRecord> records_;  // with this host's
  std::map<HostId, Time> unreached_;      // since when a record's host is not in the graph
  std::vector<HostRecord> hosts_;         // in the graph
  std::uint64_t view_ = 0;
  std::vector<std::uint64_t> members_;
  std::uint32_t term_ = 0;
  Time beacon_time_ = kBeaconTime;
  bool is_content_ = false, has_left_ = false;
  bool is_changed_ = false;  // since the last update()
  Time changed_at_{0}, next_due_{0}, updated_at_{0};
  std::uint64_t refused_ = 0;
};

}  // namespace espalier::cables
