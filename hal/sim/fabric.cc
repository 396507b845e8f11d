#include "hal/sim/fabric.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <stdexcept>

namespace espalier::sim {
namespace {

constexpr double kPicosecondsPerSecond = 1e12;

Picoseconds picoseconds(double seconds) {
  return static_cast<Picoseconds>(seconds * kPicosecondsPerSecond + 0.5);
}

bool later(const Event& a, const Event& b) {
  return a.at != b.at ? a.at > b.at : a.order > b.order;
}

// splitmix64: a number that depends on nothing but its argument, so that jitter does not depend on
// the order of polling.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

void check_model(const Model& model) {
  const bool times = model.alpha >= 0 && model.beta >= 0 && model.jitter >= 0 &&
                     model.alpha < 1e6 && model.beta < 1 && model.jitter < 1e3;
  if (!times) throw std::invalid_argument("sim: alpha, beta or jitter is negative or too large");
  if (model.window == 0) throw std::invalid_argument("sim: the window must be at least 1");
}

}  // namespace

Fabric::Fabric(const Model& the_model, const std::vector<std::vector<std::uint32_t>>& peers)
    : model(the_model), alpha(picoseconds(the_model.alpha)) {
  check_model(model);
  const auto count = static_cast<std::uint32_t>(peers.size());
  nodes.resize(count);
  // (from, to) -> channels from one to the other, in the order of their links.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> between;
  for (std::uint32_t v = 0; v < count; ++v) {
    if (peers[v].size() > kMaxLinks) {
      throw std::invalid_argument("sim: node " + std::to_string(v) + " has " +
                                  std::to_string(peers[v].size()) + " links, at most " +
                                  std::to_string(kMaxLinks) + " are allowed");
    }
    nodes[v].first = static_cast<std::uint32_t>(channels.size());
    nodes[v].links = static_cast<std::uint32_t>(peers[v].size());
    for (std::uint32_t link = 0; link < nodes[v].links; ++link) {
      const std::uint32_t to = peers[v][link];
      if (to >= count || to == v) {
        throw std::invalid_argument("sim: node " + std::to_string(v) + " has a link to node " +
                                    std::to_string(to) + ", which is not another node");
      }
      between[{v, to}].push_back(static_cast<std::uint32_t>(channels.size()));
      Channel channel;
      channel.from = v;
      channel.from_link = link;
      channel.to = to;
      channels.push_back(channel);
    }
  }
  in_channel.resize(channels.size());
  for (const auto& [pair, forward] : between) {
    const auto found = between.find({pair.second, pair.first});
    if (found == between.end() || found->second.size() != forward.size()) {
      throw std::invalid_argument("sim: the links of nodes " + std::to_string(pair.first) +
                                  " and " + std::to_string(pair.second) + " are not mutual");
    }
    for (std::size_t i = 0; i < forward.size(); ++i) {
      const std::uint32_t back = found->second[i];
      channels[forward[i]].to_link = channels[back].from_link;
      in_channel[back] = forward[i];
    }
  }
  sends.resize(channels.size() * model.window);
  arrivals.resize(sends.size());
  receives.resize(sends.size());
  if (model.eager_copies) slots.reset(new std::uint8_t[sends.size() * model.eager_bytes]);
  // A channel has at most one transfer, one announcement and one control of each kind under way.
  events.reserve(channels.size() * (2 + kControlKinds) + 16);
  touched.resize(count);
  for (std::uint32_t v = 0; v < count; ++v) endpoints.emplace_back(*this, v);
}

void Fabric::schedule(Picoseconds at, EventKind kind, std::uint32_t where, std::uint8_t control) {
  events.push_back({at, order++, kind, control, where});
  std::push_heap(events.begin(), events.end(), later);
}

bool Fabric::advance(Picoseconds until) {
  if (events.empty() || events.front().at > until) {
    if (until != kNever) now = std::max(now, until);
    return false;
  }
  const Event event = events.front();
  std::pop_heap(events.begin(), events.end(), later);
  events.pop_back();
  now = std::max(now, event.at);
  switch (event.kind) {
    case EventKind::kMoved: finish(channels[event.where]); break;
    case EventKind::kAnnounced: {
      Channel& channel = channels[event.where];
      channel.announcing = false;
      if (!channel.closed && channel.moved < channel.sends_posted) {
        channel.announced = std::max(channel.announced, channel.moved + 1);
        touch_link(channel.to, channel.to_link);
      }
      break;
    }
    case EventKind::kControl: {
      Channel& channel = channels[event.where];
      channel.control_flying[event.control] = false;
      if (nodes[channel.from].dead || nodes[channel.to].dead) break;
      channel.control_there[event.control] = true;
      channel.there[event.control] = channel.flying[event.control];
      touch_link(channel.to, channel.to_link);
      break;
    }
    case EventKind::kWake: touch(event.where); break;
    case EventKind::kKill: kill(event.where); break;
  }
  return true;
}

void Fabric::touch(std::uint32_t node) {
  if (nodes[node].touched || nodes[node].dead) return;
  nodes[node].touched = true;
  touched[(touched_first + touched_count++) % touched.size()] = node;
}

void Fabric::touch_link(std::uint32_t node, std::uint32_t link) {
  nodes[node].pending |= 1ull << link;
  touch(node);
}

Picoseconds Fabric::duration(const Channel& channel) {
  const SendPost& send = sends[slot(channel, channel.moved)].post;
  double seconds = model.alpha + model.beta * static_cast<double>(send.size);
  // A rendezvous finds a disagreement before any byte travels.
  if (channel.receives_posted > channel.moved && send.size > model.eager_bytes) {
    const ReceivePost& receive = receives[slot(channel, channel.moved)].post;
    if (receive.tag != send.tag || receive.size != send.size) seconds = model.alpha;
  }
  if (model.jitter > 0) {
    const auto index = static_cast<std::uint64_t>(&channel - channels.data());
    const std::uint64_t random = mix(mix(mix(model.seed) ^ index) ^ channel.moved);
    seconds *= 1 + model.jitter * (static_cast<double>(random >> 11) * 0x1p-53);
  }
  return picoseconds(seconds);
}

void Fabric::update(Channel& channel) {
  if (channel.closed || channel.moving || channel.waiting) return;
  const std::uint64_t message = channel.moved;
  if (message == channel.sends_posted || message >= channel.completed + model.window) return;
  const auto index = static_cast<std::uint32_t>(&channel - channels.data());
  if (sends[slot(channel, message)].post.size > model.eager_bytes &&
      message >= channel.receives_posted) {
    if (channel.announcing || channel.announced > message) return;
    channel.announcing = true;
    schedule(now + alpha, EventKind::kAnnounced, index);
    return;
  }
  if (model.one_port && (nodes[channel.from].out_busy || nodes[channel.to].in_busy)) {
    channel.waiting = true;
    channel.turn = order++;
    nodes[channel.from].out_waiting |= 1ull << channel.from_link;
    nodes[channel.to].in_waiting |= 1ull << channel.to_link;
    return;
  }
  start(channel);
}

void Fabric::start(Channel& channel) {
  Node& from = nodes[channel.from];
  Node& to = nodes[channel.to];
  if (channel.waiting) {
    channel.waiting = false;
    from.out_waiting &= ~(1ull << channel.from_link);
    to.in_waiting &= ~(1ull << channel.to_link);
  }
  channel.moving = true;
  from.out_busy = true;
  to.in_busy = true;
  ++from.sent;
  ++to.received;
  schedule(now + duration(channel), EventKind::kMoved,
           static_cast<std::uint32_t>(&channel - channels.data()));
}

// Gives the ports just freed to the transfers that have waited longest.
void Fabric::start_waiting(std::uint32_t from, std::uint32_t to) {
  Channel* first = nullptr;
  for (std::uint64_t mask = nodes[from].out_waiting; mask != 0; mask &= mask - 1) {
    Channel& channel = out(from, static_cast<std::uint32_t>(std::countr_zero(mask)));
    const bool free = !nodes[from].out_busy && !nodes[channel.to].in_busy;
    if (free && (first == nullptr || channel.turn < first->turn)) first = &channel;
  }
  if (first != nullptr) start(*first);
  first = nullptr;
  for (std::uint64_t mask = nodes[to].in_waiting; mask != 0; mask &= mask - 1) {
    Channel& channel = in(to, static_cast<std::uint32_t>(std::countr_zero(mask)));
    const bool free = !nodes[to].in_busy && !nodes[channel.from].out_busy;
    if (free && (first == nullptr || channel.turn < first->turn)) first = &channel;
  }
  if (first != nullptr) start(*first);
}

void Fabric::finish(Channel& channel) {
  channel.moving = false;
  nodes[channel.from].out_busy = false;
  nodes[channel.to].in_busy = false;
  if (!channel.closed) {
    arrive(channel);
    channel.announced = std::max(channel.announced, channel.moved);
    if (channel.receives_posted < channel.moved) touch_link(channel.to, channel.to_link);
    match(channel);
    update(channel);
  }
  if (model.one_port) start_waiting(channel.from, channel.to);
}

// The message that moved is at the receiver now.
void Fabric::arrive(Channel& channel) {
  const std::size_t i = slot(channel, channel.moved);
  ++channel.moved;
  Arrival& arrival = arrivals[i];
  arrival.post = sends[i].post;
  arrival.sent_done = model.eager_copies && arrival.post.size <= model.eager_bytes &&
                      channel.receives_posted < channel.moved;
  if (!arrival.sent_done) return;
  std::uint8_t* bytes = slots.get() + i * model.eager_bytes;
  if (arrival.post.size > 0) std::memcpy(bytes, arrival.post.bytes, arrival.post.size);
  arrival.post.bytes = bytes;
  sends[i].status = Status::kOk;
  channel.sends_done = channel.moved;
  touch_link(channel.from, channel.from_link);
}

void Fabric::match(Channel& channel) {
  if (channel.closed) return;
  const std::uint64_t until = std::min(channel.moved, channel.receives_posted);
  if (channel.completed >= until) return;
  for (; channel.completed < until; ++channel.completed) {
    const std::size_t i = slot(channel, channel.completed);
    const SendPost& send = arrivals[i].post;
    const ReceivePost& receive = receives[i].post;
    const bool agreed = send.tag == receive.tag && send.size == receive.size;
    // The sender's bytes are the fabric's until its completion, so they are read as late as this.
    if (agreed && send.size > 0) std::memmove(receive.bytes, send.bytes, send.size);
    receives[i].status = agreed ? Status::kOk : Status::kMismatch;
    if (!arrivals[i].sent_done) {
      sends[i].status = receives[i].status;
      channel.sends_done = channel.completed + 1;
    } else if (!agreed && !channel.late_mismatch) {
      channel.late_mismatch = true;
      channel.late_cookie = send.cookie;
    }
    receives[i].check = send.check;
    receives[i].tag = send.tag;
  }
  touch_link(channel.from, channel.from_link);
  touch_link(channel.to, channel.to_link);
  update(channel);  // a slot may be free again
}

void Fabric::close(Channel& channel) {
  channel.closed = true;
  if (!channel.waiting) return;
  channel.waiting = false;
  nodes[channel.from].out_waiting &= ~(1ull << channel.from_link);
  nodes[channel.to].in_waiting &= ~(1ull << channel.to_link);
}

void Fabric::kill(std::uint32_t node) {
  nodes[node].dead = true;
  for (std::uint32_t link = 0; link < nodes[node].links; ++link) {
    close(out(node, link));
    close(in(node, link));
  }
}

}  // namespace espalier::sim
