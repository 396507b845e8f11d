#include "bootstrap/cables/flood.h"

#include <algorithm>

#include "bootstrap/cables/codec.h"

namespace espalier::cables {
namespace {

constexpr Time kFirstPause = std::chrono::milliseconds(30);  // before bytes are sent again
constexpr Time kLongestPause = std::chrono::milliseconds(500);
constexpr Time kForgetTime = std::chrono::seconds(30);
constexpr Time kNever = Time::max();
constexpr std::size_t kWindowPackets = 3;     // of one log, on the way to a peer within the host
constexpr std::size_t kCableWindow = 24'000;  // bytes of one log, on the way over a cable
constexpr std::size_t kMaxParts = 4096;

template <typename Codec, typename Row>
void fields(Codec& codec, Row& packet) {
  codec.number(packet.host);
  codec.number(packet.to_host);
  codec.number(packet.port);
  codec.number(packet.to_port);
  codec.flag(packet.is_summary);
  codec.flag(packet.wants_summary);
  codec.rows(packet.has, kMaxLogs, [](Codec& inner, auto& has) {
    inner.number(has.log);
    inner.number(has.bytes);
  });
  codec.rows(packet.parts, kMaxParts, [](Codec& inner, auto& part) {
    inner.number(part.log);
    inner.number(part.offset);
    inner.text(part.bytes);
  });
}

}  // namespace

std::string encode(const FloodPacket& packet) {
  Writer writer;
  fields(writer, packet);
  return writer.bytes;
}

std::optional<FloodPacket> decode_flood(std::string_view bytes) {
  Reader reader(bytes);
  FloodPacket packet;
  fields(reader, packet);
  if (!reader.is_done()) return {};
  return packet;
}

void Flood::add(LogId log, const Entry& entry, Time now) {
  logs_.try_emplace(log, log).first->second.add(entry);
  next_due_ = now;
}

void Flood::keep(const std::set<LogId>& logs, Time now) {
  const auto is_missed = [this](LogId log) { return forgotten_.erase(log) > 0; };
  if (std::count_if(logs.begin(), logs.end(), is_missed) > 0) {
    for (auto& [id, peer] : peers_) peer.owes_summary = true;
    next_due_ = now;
  }
  for (auto each = logs_.begin(); each != logs_.end();) {
    const LogId id = each->first;
    if (logs.contains(id)) {
      unneeded_.erase(id);
    } else if (now - unneeded_.emplace(id, now).first->second > kForgetTime) {
      unneeded_.erase(id);
      forgotten_.insert(id);
      each = logs_.erase(each);
      continue;
    }
    ++each;
  }
}

void Flood::add_peer(PeerId peer, std::size_t packet_bytes, Time now) {
  peers_[peer] = {.packet_bytes = packet_bytes, .next_summary = now, .pause = kFirstPause};
  next_due_ = now;
}

std::uint64_t Flood::length_of(LogId log) const {
  const auto found = logs_.find(log);
  return found == logs_.end() ? 0 : found->second.bytes().size();
}

// What the peer has only grows, unless it has forgotten a log, which its summary shows.
void Flood::take_has(Peer& peer, const FloodPacket& packet) {
  if (packet.is_summary) {
    for (auto& [id, log] : peer.logs) log.known = log.sent = 0;
  }
  for (const FloodPacket::Has& has : packet.has) {
    PeerLog& log = peer.logs[has.log];
    if (has.bytes <= log.known) continue;
    log.known = has.bytes;
    log.sent = std::max(log.sent, log.known);
    log.pause = kFirstPause;
  }
  peer.has_summary |= packet.is_summary;
  peer.owes_summary |= packet.wants_summary;
}

bool Flood::receive(PeerId id, const FloodPacket& packet, Time now) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return false;
  Peer& peer = found->second;
  next_due_ = now;
  take_has(peer, packet);
  bool has_grown = false;
  for (const FloodPacket::Part& part : packet.parts) {
    peer.owed.insert(part.log);
    if (forgotten_.contains(part.log)) continue;
    if (!logs_.contains(part.log) && logs_.size() >= kMaxLogs) continue;
    Log& log = logs_.try_emplace(part.log, part.log).first->second;
    has_grown |= log.take(part.offset, part.bytes) > 0;
    // The peer has what it sent.
    PeerLog& there = peer.logs[part.log];
    there.known = std::max(there.known, part.offset + part.bytes.size());
    there.sent = std::max(there.sent, there.known);
  }
  return has_grown;
}

void Flood::add_summary(Peer& peer, Time now, FloodPacket& packet) {
  const bool is_asking = !peer.has_summary && now >= peer.next_summary;
  if (is_asking) {
    peer.next_summary = now + peer.pause;
    peer.pause = std::min(2 * peer.pause, kLongestPause);
  }
  if (is_asking || peer.owes_summary) {
    packet.is_summary = true;
    packet.wants_summary = !peer.has_summary;
    for (const auto& [id, log] : logs_) packet.has.push_back({id, log.bytes().size()});
  } else {
    for (const LogId log : peer.owed) packet.has.push_back({log, length_of(log)});
  }
  peer.owes_summary = false;
  peer.owed.clear();
  if (!peer.has_summary) next_due_ = std::min(next_due_, peer.next_summary);
}

void Flood::add_parts(PeerId id, Peer& peer, Time now, std::vector<Outgoing>& packets) {
  std::size_t room =
      packets.back().packet.has.size() * sizeof(FloodPacket::Has) < 600 ? peer.packet_bytes : 0;
  const std::size_t window =
      peer.packet_bytes == kCableBytes ? kCableWindow : kWindowPackets * peer.packet_bytes;
  for (const auto& [name, log] : logs_) {
    PeerLog& there = peer.logs[name];
    const std::uint64_t size = log.bytes().size();
    if (there.known >= size) continue;
    if (there.sent > there.known && now - there.sent_at >= there.pause) {
      there.sent = there.known;  // lost, or its receipt was
      there.pause = std::min(2 * there.pause, kLongestPause);
    }
    if (there.sent == there.known) there.pause = std::max(there.pause, kFirstPause);
    while (there.sent < size && there.sent - there.known < window) {
      if (room == 0) {
        packets.push_back({id, {}});
        room = peer.packet_bytes;
      }
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(room, size - there.sent));
      packets.back().packet.parts.push_back(
          {name, there.sent, log.bytes().substr(static_cast<std::size_t>(there.sent), count)});
      there.sent += count;
      there.sent_at = now;
      room -= std::min(room, count + 20);
    }
    next_due_ = std::min(next_due_, there.sent_at + there.pause);
  }
}

std::vector<Flood::Outgoing> Flood::take_due(Time now) {
  std::vector<Outgoing> packets;
  next_due_ = kNever;
  for (auto& [id, peer] : peers_) {
    packets.push_back({id, {}});
    add_summary(peer, now, packets.back().packet);
    if (peer.has_summary) add_parts(id, peer, now, packets);
    const FloodPacket& last = packets.back().packet;
    if (!last.is_summary && last.has.empty() && last.parts.empty()) packets.pop_back();
  }
  return packets;
}

bool Flood::is_everywhere() const {
  return std::all_of(peers_.begin(), peers_.end(), [this](const auto& entry) {
    const Peer& peer = entry.second;
    return std::all_of(logs_.begin(), logs_.end(), [&peer](const auto& log) {
      const auto there = peer.logs.find(log.first);
      return there != peer.logs.end() && there->second.known >= log.second.bytes().size();
    });
  });
}

}  // namespace espalier::cables
