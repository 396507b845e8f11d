#include "hal/serial/testing/hub.h"

#include <algorithm>

#include "base/crc32.h"
#include "espalier/internal/base/little_endian.h"
#include "espalier/internal/hal/serial/frame.h"

namespace espalier::serial {
namespace {

constexpr std::uint64_t kLatencyNs = 10'000;
constexpr std::uint64_t kDelayNs = 50'000;

}  // namespace

bool Pipe::put(std::uint8_t byte) {
  if (end_ - first_ >= kRoom) return false;
  if (until_fault_-- == 0) {
    // One draw per byte would take most of a test's time.
    const double all = faults_.lose + faults_.repeat + faults_.damage;
    const double which = std::uniform_real_distribution<double>(0, all)(random_);
    until_fault_ = all > 0 ? std::geometric_distribution<std::int64_t>(all)(random_) : -1;
    if (all > 0 && started_) {
      if (which < faults_.lose) return true;
      if (which < faults_.lose + faults_.repeat) {
        push(byte);
      } else {
        byte = static_cast<std::uint8_t>(random_());
      }
    }
    started_ = true;
  }
  push(byte);
  return true;
}

bool Pipe::get(std::uint8_t& byte) {
  if (empty()) return false;
  byte = bytes_[first_++ % kRing];
  return true;
}

Hub::Hub(std::vector<std::vector<std::uint32_t>> peers, const CarrierFaults& faults)
    : peers_(std::move(peers)), faults_(faults), random_(faults.seed) {
  ports_.resize(peers_.size());
  cut_.resize(peers_.size());
  for (std::uint32_t v = 0; v < nodes(); ++v) {
    End& end = ends_.emplace_back();
    end.hub = this;
    end.node = v;
    NodeClock& clock = clocks_.emplace_back();
    clock.hub = this;
    clock.node = v;
    if (!faults.bytes) continue;
    Wire& wire = wires_.emplace_back(faults_, random_);
    wire.hub_side.out = &wire.down;
    wire.hub_side.in = &wire.up;
    wire.node_end = std::make_unique<ByteCarrier>(wire, faults.mtu);
    wire.hub_end = std::make_unique<ByteCarrier>(wire.hub_side, faults.mtu);
    wire.buffer.resize(faults.mtu);
  }
}

Carrier& Hub::carrier(std::uint32_t node) {
  if (faults_.bytes) return *wires_[node].node_end;
  return ends_[node];
}

void Hub::cut(std::uint32_t node) {
  cut_[node] = true;
  ports_[node] = nullptr;
  ends_[node].inbox.clear();
}

void Hub::restore(std::uint32_t node) {
  cut_[node] = false;
  if (!faults_.bytes) return;
  // Bytes that wait in the device stay there.
  wires_[node].node_end = std::make_unique<ByteCarrier>(wires_[node], faults_.mtu);
}

Status Hub::End::send(const std::uint8_t* frame, std::uint32_t size) {
  hub->route(node, Frame(frame, frame + size));
  return Status::kOk;
}

std::uint32_t Hub::End::receive(std::uint8_t* frame) {
  if (inbox.empty()) return 0;
  // As a device, which has no room for the rest of a longer one.
  const std::uint32_t size =
      std::min(static_cast<std::uint32_t>(inbox.front().size()), hub->faults_.mtu);
  std::copy_n(inbox.front().begin(), size, frame);
  inbox.pop_front();
  return size;
}

// Routes the frame to the other end of its channel, with the channel's number there.
void Hub::route(std::uint32_t node, Frame frame) {
  const std::size_t covered = frame.size() - serial::kCrcBytes;
  if (frame.size() < serial::kHeaderBytes + serial::kCrcBytes ||
      get<header::kChannel>(frame.data()) >= peers_[node].size()) {
    return;  // damaged before it reached the hub
  }
  // The hub has no key, so it cannot check codes; they do not cover the channel.
  const bool coded = get<header::kFormat>(frame.data()) == kCodedFormat;
  if (!coded && crc32(0, frame.data(), covered) != load_u32(frame.data() + covered)) return;
  ++frames_;
  if (watcher_) watcher_(node, frame);
  const auto& here = peers_[node];
  const std::uint8_t sent_on = get<header::kChannel>(frame.data());
  const std::uint32_t to = here[sent_on];
  if (cut_[node] || cut_[to] || (loses_ && loses_(node, to))) return;
  const auto& back = peers_[to];
  // With several channels between the same two nodes, number k here is number k there.
  auto before = std::count(here.begin(), here.begin() + sent_on, to);
  std::size_t channel = 0;
  while (back[channel] != node || before-- > 0) ++channel;
  set<header::kChannel>(frame.data(), channel);
  if (!coded) store_le(frame.data() + covered, crc32(0, frame.data(), covered), 4);
  if (faults_.bytes) return deliver(to, std::move(frame));
  if (happens(faults_.lose)) return;
  if (happens(faults_.repeat)) fly(to, frame);
  if (happens(faults_.damage)) {
    if (happens(0.3)) {
      frame.resize(1 + random_() % frame.size());
    } else {
      frame[random_() % frame.size()] ^= static_cast<std::uint8_t>(1u << random_() % 8);
    }
  }
  fly(to, frame);
}

void Hub::fly(std::uint32_t to, const Frame& frame) {
  const std::uint64_t late = happens(faults_.delay) ? random_() % kDelayNs : 0;
  flying_.insert({now_ + kLatencyNs + late, {to, frame}});
}

void Hub::deliver(std::uint32_t to, Frame frame) {
  if (cut_[to]) return;
  (faults_.bytes ? wires_[to].outbox : ends_[to].inbox).push_back(std::move(frame));
}

// Moves bytes between the hub's ends of the byte streams.
bool Hub::move_bytes() {
  bool any = false;
  for (std::uint32_t v = 0; v < wires_.size(); ++v) {
    Wire& wire = wires_[v];
    while (!wire.up.empty()) {
      any = true;
      const std::uint32_t size = wire.hub_end->receive(wire.buffer.data());
      if (size != 0) route(v, Frame(wire.buffer.begin(), wire.buffer.begin() + size));
    }
    while (!wire.outbox.empty()) {
      const Frame& frame = wire.outbox.front();
      const auto size = static_cast<std::uint32_t>(frame.size());
      if (wire.hub_end->send(frame.data(), size) == Status::kTryAgain) break;
      any = true;
      wire.outbox.pop_front();
    }
  }
  return any;
}

bool Hub::ready(std::uint32_t node) const {
  if (cut_[node]) return false;
  return !ends_[node].inbox.empty() || (faults_.bytes && !wires_[node].down.empty());
}

bool Hub::busy() const {
  for (std::uint32_t v = 0; v < nodes(); ++v) {
    if (ready(v)) return true;
  }
  return false;
}

std::uint64_t Hub::due(std::uint32_t node) {
  if (ports_[node] == nullptr) return UINT64_MAX;
  asking_ = true;
  answer_ = now_;  // a port that has much to send does not wait
  ports_[node]->wait(UINT64_MAX);
  asking_ = false;
  return answer_;
}

// The time at which the first port has something to do, taken from their calls of wait().
std::uint64_t Hub::next_due() {
  std::uint64_t earliest = UINT64_MAX;
  for (std::uint32_t v = 0; v < nodes(); ++v) earliest = std::min(earliest, due(v));
  return earliest;
}

void Hub::NodeClock::wait(std::uint64_t until) {
  if (hub->asking_) {
    hub->answer_ = until;
  } else {
    hub->advance(until);
  }
}

bool Hub::advance(std::uint64_t until) {
  const std::uint64_t due = next_due();
  if (move_bytes() || busy()) return true;
  std::uint64_t next = std::min(due, until);
  if (!flying_.empty()) next = std::min(next, flying_.begin()->first);
  if (next == UINT64_MAX) return false;
  now_ = std::max(now_, next);
  deliver_due();
  return true;
}

bool Hub::pass(std::uint64_t until) {
  if (move_bytes()) return true;
  std::uint64_t next = until;
  if (!flying_.empty()) next = std::min(next, flying_.begin()->first);
  if (next == UINT64_MAX) return false;
  now_ = std::max(now_, next);
  return deliver_due();
}

// Returns whether any frame arrived.
bool Hub::deliver_due() {
  bool any = false;
  while (!flying_.empty() && flying_.begin()->first <= now_) {
    auto& [to, frame] = flying_.begin()->second;
    deliver(to, std::move(frame));
    flying_.erase(flying_.begin());
    any = true;
  }
  return any;
}

SerialNode::SerialNode(Hub& hub, std::uint32_t node, const std::vector<std::uint32_t>& peers,
                       const SerialConfig& config, const SerialPortConfig& port_config)
    : peers_(peers),
      buffer_(hub.carrier(node).mtu() / 2 + 1),
      links_(peers.size()),
      port_(hub.carrier(node), hub.clock(node), reinterpret_cast<std::uint8_t*>(buffer_.data()),
            port_config),
      endpoint_(port_, links_.data(), peers_.data(), static_cast<std::uint32_t>(peers.size()), node,
                config) {
  hub.add(node, port_);
}

}  // namespace espalier::serial
