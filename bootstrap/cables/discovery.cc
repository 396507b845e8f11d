#include "bootstrap/cables/discovery.h"

#include <algorithm>

#include "espalier/internal/base/assert.h"

namespace espalier::cables {
namespace {

// Peers of a port that have proven nothing. Repeated packets of earlier runs can make some.
constexpr std::size_t kMaxUnproven = 16;
// Records of hosts that left the graph without a word.
constexpr Time kUnreachedTime = std::chrono::seconds(5);
// Unproven neighbours hold up a port's beginning no longer than this: they may be repeated packets.
constexpr Time kLongestBeginning = std::chrono::milliseconds(1500);
constexpr Time kUpdateTime = std::chrono::milliseconds(20);
// Records in one packet, unless a single one is longer: most fit into a frame of Ethernet.
constexpr std::size_t kRecordBytes = 1000;

}  // namespace

Discovery::Discovery(Identity self, const Key& key, Random random)
    : self_(std::move(self)), key_(key), random_(std::move(random)) {
  ESPALIER_ASSERT(is_name(self_.name));
  update(Time(0));
}

void Discovery::set_ports(const std::vector<Port>& ports, Time now) {
  ESPALIER_ASSERT(ports.size() <= kMaxPorts);
  std::map<std::uint32_t, OwnPort> kept;
  for (const Port& port : ports) {
    ESPALIER_ASSERT(is_name(port.name));
    const auto old = ports_.find(port.number);
    OwnPort own = old == ports_.end() ? OwnPort{} : std::move(old->second);
    if (old == ports_.end()) own.next_beacon = now;
    if (own.port.state != PortState::kReady && port.state == PortState::kReady) {
      own.next_beacon = now;
      own.began_at = now;
      own.sent = 0;
    }
    own.port = port;
    kept.emplace(port.number, std::move(own));
  }
  ports_ = std::move(kept);
  update(now);
}

const Discovery::Challenge* Discovery::find_challenge(const OwnPort& port, std::uint64_t number,
                                                      Time now) const {
  for (const Challenge& each : port.challenges) {
    if (each.sent_at != Time(0) && each.number == number && now - each.sent_at <= kSilenceTime) {
      return &each;
    }
  }
  return nullptr;
}

// A host's own packet: it is a loop only if it is recent.
void Discovery::take_loop(OwnPort& port, const Packet& packet, Time now) {
  const auto from = ports_.find(packet.port);
  if (from == ports_.end() || find_challenge(from->second, packet.challenge, now) == nullptr) {
    ++refused_;
    return;
  }
  is_changed_ |= !port.loops.contains(packet.port);
  port.loops[packet.port] = now;
}

// Unproven peers may be repeated packets, so they do not keep a new one out.
void Discovery::make_room(OwnPort& port) {
  std::size_t unproven = 0;
  auto oldest = port.peers.end();
  for (auto each = port.peers.begin(); each != port.peers.end(); ++each) {
    if (each->second.proven_at) continue;
    ++unproven;
    if (oldest == port.peers.end() || each->second.arrived_at < oldest->second.arrived_at) {
      oldest = each;
    }
  }
  if (unproven >= kMaxUnproven) port.peers.erase(oldest);
}

Discovery::Peer* Discovery::take_peer(OwnPort& port, const Packet& packet, Time now) {
  const PeerName name{packet.host, packet.port};
  auto found = port.peers.find(name);
  if (found == port.peers.end()) {
    make_room(port);
    if (port.peers.size() >= kMaxNeighbours) return nullptr;
    found = port.peers.emplace(name, Peer{.first_at = now}).first;
  }
  Peer& peer = found->second;
  if (peer.packets > 0 && packet.sequence <= peer.sequence) return nullptr;
  peer.sequence = packet.sequence;
  peer.challenge = packet.challenge;
  peer.arrived_at = now;
  peer.host_name = packet.host_name;
  peer.port_name = packet.port_name;
  ++peer.packets;
  return &peer;
}

void Discovery::take_records(Packet& packet, Peer& peer) {
  peer.known.clear();
  for (const Known& known : packet.known) peer.known[known.host] = known.version;
  for (HostRecord& record : packet.records) {
    std::uint64_t& known = peer.known[record.host];
    known = std::max(known, record.version);
    if (record.host != self_.host) set_record(std::move(record));
  }
}

void Discovery::set_record(HostRecord record) {
  const auto old = records_.find(record.host);
  if (old == records_.end() && records_.size() >= kMaxHosts) return;
  if (old != records_.end() && old->second.version >= record.version) return;
  const HostId host = record.host;
  records_[host] = std::move(record);
  is_changed_ = true;
}

void Discovery::receive(std::uint32_t number, const network::Address& from,
                        const std::string& bytes, Time now) {
  const auto own = ports_.find(number);
  auto packet = own == ports_.end() ? std::nullopt : open(bytes, key_);
  if (!packet || own->second.port.state != PortState::kReady) {
    ++refused_;
    return;
  }
  OwnPort& port = own->second;
  if (packet->host == self_.host) {
    take_loop(port, *packet, now);
    return;
  }
  Peer* const peer = take_peer(port, *packet, now);
  if (peer == nullptr) {
    ++refused_;
    return;
  }
  // A packet that is not an answer may be a repeated one, until its sender has proven itself.
  if (!peer->proven_at) peer->address = from;
  if (take_echoes(port, *packet, *peer, now)) {
    peer->address = from;
    take_records(*packet, *peer);
  }
  peer->is_owed_answer |= !packet->is_answer;
  next_due_ = now;
}

// Whether the packet answers a recent challenge of this port, which proves the peer.
bool Discovery::take_echoes(OwnPort& port, const Packet& packet, Peer& peer, Time now) {
  bool is_fresh = false;
  for (const Echo& echo : packet.echoes) {
    if (echo.host != self_.host || echo.port != port.port.number) continue;
    const Challenge* const challenge = find_challenge(port, echo.challenge, now);
    if (challenge == nullptr) continue;
    const auto away = static_cast<std::uint64_t>((now - challenge->sent_at).count());
    const std::uint64_t round_trip = away - std::min(echo.kept_ns, away);
    if (peer.round_trip_ns == 0 || round_trip < peer.round_trip_ns) {
      peer.round_trip_ns = std::max<std::uint64_t>(round_trip, 1);
    }
    is_fresh = true;
  }
  if (!is_fresh) return false;
  if (!peer.proven_at) {
    is_changed_ = true;
    // The same end of a cable in an earlier run of that host.
    std::erase_if(port.peers, [&](const auto& entry) {
      return &entry.second != &peer && has_left(entry.first.first) &&
             entry.second.host_name == packet.host_name &&
             entry.second.port_name == packet.port_name;
    });
  }
  peer.proven_at = now;
  return true;
}

bool Discovery::has_left(HostId host) const {
  const auto record = records_.find(host);
  return record != records_.end() && record->second.has_left;
}

// A host that left stays a neighbour.
void Discovery::forget_silent(Time now) {
  for (auto& [number, port] : ports_) {
    for (auto& [name, peer] : port.peers) {
      if (!peer.proven_at || has_left(name.first) || now - *peer.proven_at <= kSilenceTime) {
        continue;
      }
      peer.proven_at.reset();
      peer.first_at = now;
    }
    std::erase_if(port.peers, [this, now](const auto& entry) {
      const auto& [name, peer] = entry;
      const bool has_ended = peer.proven_at && has_left(name.first);
      return !has_ended && now - peer.arrived_at > kSilenceTime;
    });
    std::erase_if(port.loops, [now](const auto& loop) { return now - loop.second > kSilenceTime; });
  }
}

// A port is at its beginning also while a new neighbour has not answered yet.
PortState Discovery::state_of(const OwnPort& port, Time now) const {
  if (port.port.state != PortState::kReady) return port.port.state;
  if (port.sent < kFirstPackets) return PortState::kBeginning;
  for (const auto& [name, peer] : port.peers) {
    if (!peer.proven_at && now - peer.first_at < kOneSidedTime &&
        now - port.began_at < kLongestBeginning) {
      return PortState::kBeginning;
    }
  }
  return PortState::kReady;
}

PortRecord Discovery::row_of(const OwnPort& port, Time now) const {
  PortRecord row{.port = port.port};
  row.port.state = state_of(port, now);
  for (const auto& [from, at] : port.loops) {
    row.neighbours.push_back({.host = self_.host, .port = from, .is_proven = true});
  }
  for (const auto& [name, peer] : port.peers) {
    const bool is_one_sided =
        !peer.proven_at && peer.packets >= kOneSidedPackets && now - peer.first_at >= kOneSidedTime;
    if ((!peer.proven_at && !is_one_sided) || row.neighbours.size() >= kMaxNeighbours) continue;
    Neighbour neighbour{.host = name.first, .port = name.second};
    neighbour.is_proven = peer.proven_at.has_value();
    neighbour.round_trip_ns = peer.round_trip_ns;
    if (is_one_sided) neighbour.host_name = peer.host_name;
    if (is_one_sided) neighbour.port_name = peer.port_name;
    row.neighbours.push_back(std::move(neighbour));
  }
  return row;
}

// Round trips get shorter all the time. A neighbour's is published when it is new, and once more
// when this host becomes content: all hosts then have the same.
void Discovery::keep_round_trips(HostRecord& record, const HostRecord& old) {
  if (record.is_content && !old.is_content) return;
  for (PortRecord& port : record.ports) {
    for (const PortRecord& before : old.ports) {
      if (before.port.number != port.port.number) continue;
      for (Neighbour& neighbour : port.neighbours) {
        for (const Neighbour& each : before.neighbours) {
          const bool is_same = each.host == neighbour.host && each.port == neighbour.port &&
                               each.is_proven == neighbour.is_proven;
          if (is_same) neighbour.round_trip_ns = each.round_trip_ns;
        }
      }
    }
  }
}

void Discovery::update(Time now) {
  is_changed_ = false;
  updated_at_ = now;
  forget_silent(now);
  const auto old = records_.find(self_.host);
  HostRecord record{.host = self_.host,
                    .version = old == records_.end() ? 1 : old->second.version,
                    .network = self_.network,
                    .view = view_,
                    .is_content = is_content_,
                    .has_left = has_left_,
                    .name = self_.name,
                    .term = term_,
                    .members = members_};
  for (const auto& [number, port] : ports_) record.ports.push_back(row_of(port, now));
  if (old != records_.end()) keep_round_trips(record, old->second);
  if (old == records_.end()) {
    records_[self_.host] = std::move(record);
  } else if (record != old->second) {
    ++record.version;
    old->second = std::move(record);
  }
  forget_unreached(now);
}

void Discovery::forget_unreached(Time now) {
  std::vector<const HostRecord*> all;
  for (const auto& [host, record] : records_) all.push_back(&record);
  hosts_ = reached(all, self_.host);
  std::map<HostId, Time> unreached;
  for (const HostRecord* record : all) {
    const bool is_in = std::any_of(hosts_.begin(), hosts_.end(), [record](const HostRecord& each) {
      return each.host == record->host;
    });
    if (is_in) continue;
    const auto since = unreached_.find(record->host);
    unreached[record->host] = since == unreached_.end() ? now : since->second;
  }
  unreached_ = std::move(unreached);
  for (const auto& [host, since] : unreached_) {
    if (now - since > kUnreachedTime) records_.erase(host);
  }
  const std::uint64_t view = view_of(hosts_);
  if (view == view_) return;
  view_ = view;
  changed_at_ = now;
  update(now);  // the record has the view, which does not depend on it
}

Packet Discovery::begin_packet(OwnPort& port) const {
  Packet packet{.host = self_.host,
                .port = port.port.number,
                .sequence = ++port.sequence,
                .challenge = port.challenges[port.newest].number,
                .host_name = self_.name,
                .port_name = port.port.name};
  for (const auto& [host, record] : records_) packet.known.push_back({host, record.version});
  return packet;
}

std::string Discovery::beacon(OwnPort& port, Time now) {
  const bool is_idle = beacon_time_ == kIdleBeaconTime;
  port.newest = (port.newest + 1) % port.challenges.size();
  port.challenges[port.newest] = {random_(), now};
  is_changed_ |= ++port.sent == kFirstPackets;
  // All ports of an idle host at once: it wakes up for all of them together.
  port.next_beacon = is_idle ? now - now % kIdleBeaconTime + kIdleBeaconTime : now + kBeaconTime;
  Packet packet = begin_packet(port);
  for (const auto& [name, peer] : port.peers) {
    if (peer.packets == 0) continue;
    packet.echoes.push_back({name.first, name.second, peer.challenge,
                             static_cast<std::uint64_t>((now - peer.arrived_at).count())});
  }
  return seal(packet, key_);
}

std::vector<const HostRecord*> Discovery::missing_of(const Peer& peer) const {
  std::vector<const HostRecord*> missing;
  if (!peer.proven_at) return missing;
  for (const auto& [host, record] : records_) {
    const auto known = peer.known.find(host);
    if (known == peer.known.end() || known->second < record.version) missing.push_back(&record);
  }
  return missing;
}

void Discovery::add_answers(OwnPort& port, const PeerName& name, Peer& peer, Time now,
                            std::vector<Outgoing>& packets) {
  const std::vector<const HostRecord*> missing = missing_of(peer);
  for (std::size_t next = 0; next < missing.size() || peer.is_owed_answer;) {
    Packet packet = begin_packet(port);
    packet.is_answer = true;
    packet.echoes.push_back({name.first, name.second, peer.challenge,
                             static_cast<std::uint64_t>((now - peer.arrived_at).count())});
    for (std::size_t bytes = 0; next < missing.size();) {
      const std::size_t size = size_of(*missing[next]);
      if (bytes > 0 && bytes + size > kRecordBytes) break;
      bytes += size;
      peer.known[missing[next]->host] = missing[next]->version;
      packet.records.push_back(*missing[next++]);
    }
    peer.is_owed_answer = false;
    packets.push_back({port.port.number, peer.address, seal(packet, key_)});
  }
}

std::vector<Discovery::Outgoing> Discovery::take_due(Time now) {
  if (is_changed_ || now - updated_at_ >= kUpdateTime) update(now);
  std::vector<Outgoing> packets;
  next_due_ = now + beacon_time_;
  for (auto& [number, port] : ports_) {
    if (port.port.state != PortState::kReady) continue;
    if (port.next_beacon <= now) packets.push_back({number, std::nullopt, beacon(port, now)});
    next_due_ = std::min(next_due_, port.next_beacon);
    for (auto& [name, peer] : port.peers) add_answers(port, name, peer, now, packets);
  }
  if (is_changed_) next_due_ = now;
  return packets;
}

void Discovery::set_content(bool is_content, Time now) {
  if (is_content == is_content_) return;
  is_content_ = is_content;
  update(now);
  next_due_ = now;
}

void Discovery::set_members(std::vector<std::uint64_t> members, std::uint32_t term, Time now) {
  members_ = std::move(members);
  term_ = term;
  update(now);
  next_due_ = now;
}

std::vector<Discovery::ProvenPeer> Discovery::proven_peers() const {
  std::vector<ProvenPeer> all;
  for (const auto& [number, port] : ports_) {
    for (const auto& [name, peer] : port.peers) {
      if (peer.proven_at) all.push_back({number, name.first, name.second, peer.address});
    }
  }
  return all;
}

std::vector<Discovery::Outgoing> Discovery::leave(Time now) {
  has_left_ = true;
  update(now);
  return take_due(now);
}

std::vector<HostRecord> Discovery::hosts() const { return hosts_; }

bool Discovery::is_beginning() const {
  for (const HostRecord& host : hosts_) {
    for (const PortRecord& port : host.ports) {
      if (port.port.state == PortState::kBeginning) return true;
    }
  }
  return false;
}

bool Discovery::all_content() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [this](const HostRecord& host) {
    return host.is_content && host.view == view_;
  });
}

bool Discovery::has_any_left() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const HostRecord& host) { return host.has_left; });
}

}  // namespace espalier::cables
