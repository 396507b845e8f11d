#include "hal/sim/fabric.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "hal/splitmix64.h"

namespace espalier::sim {
namespace {

constexpr double kPicosecondsPerSecond = 1e12;
Picoseconds picoseconds(double seconds) {
  return static_cast<Picoseconds>(seconds * kPicosecondsPerSecond + 0.5);
}

bool later(const Event& a, const Event& b) {
  return a.at != b.at ? a.at > b.at : a.order > b.order;
}

void check_model(const Model& model) {
  const bool times = model.alpha >= 0 && model.beta >= 0 && model.jitter >= 0 &&
                     model.latency >= 0 && model.alpha < 1e6 && model.beta < 1 &&
                     model.latency < 1e6 && model.jitter < 1e3 && model.link_jitter >= 0 &&
                     model.link_jitter < 1e3 && model.pace >= 0 && model.pace < 1e6;
  if (!times) {
    throw std::invalid_argument(
        "sim: alpha, beta, latency, pace or jitter is negative or too large");
  }
  if (model.window == 0) throw std::invalid_argument("sim: the window must be at least 1");
}

}  // namespace

double random_part(std::uint64_t seed, std::uint64_t who, std::uint64_t which) {
  return static_cast<double>(splitmix64(splitmix64(splitmix64(seed) ^ who) ^ which) >> 11) *
         0x1p-53;
}

Fabric::Fabric(const Model& the_model, const std::vector<std::vector<std::uint32_t>>& peers)
    : model(the_model),
      alpha(picoseconds(the_model.alpha)),
      latency(picoseconds(the_model.latency)) {
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
      if (model.lanes) channel.lanes = model.lanes(v, to);
      // To a node that is no neighbour the fabric routes.
      if (model.route) channel.lanes = std::max(channel.lanes, 1u);
      if (channel.lanes == 0) throw std::invalid_argument("sim: a link has at least one lane");
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
  ports.resize(model.one_port ? count : channels.size());
  if (model.route) wires = std::make_unique<Wires>(model, channels);
  // A channel has at most `window` blocks on their way, as many leaving (or each of a leg), one
  // announced, and one control of each kind.
  const std::size_t legs = wires == nullptr ? channels.size() : wires->legs.size();
  events.reserve(2 * legs * model.window + channels.size() * (1 + kControlKinds) + 16);
  stays.blocks.reserve(model.window + 1);
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
    case EventKind::kLeft: left(channels[event.where]); break;
    case EventKind::kMoved: moved(channels[event.where]); break;
    case EventKind::kAnnounced: {
      Channel& channel = channels[event.where];
      channel.announcing = false;
      if (!channel.closed && channel.moved == channel.started &&
          channel.moved < channel.sends_posted) {
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
    case EventKind::kCome: come(event.where); break;
    case EventKind::kPassed: passed(wires->legs[event.where]); break;
  }
  return true;
}

void Fabric::touch(std::uint32_t node) {
  if (nodes[node].touched || nodes[node].dead) return;
  nodes[node].touched = true;
  touched[(touched_first + touched_count++) % touched.size()] = node;
}

void Fabric::touch_link(std::uint32_t node, std::uint32_t link) {
  nodes[node].pending.insert(link);
  touch(node);
}

Picoseconds Fabric::duration(const Channel& channel, std::uint64_t message, std::uint32_t hop,
                             double slower) const {
  const SendPost& send = sends[slot(channel, message)].post;
  double seconds = model.alpha + model.beta * static_cast<double>(send.size);
  // A rendezvous finds a disagreement before any byte travels.
  if (channel.receives_posted > message && send.size > model.eager_bytes) {
    const ReceivePost& receive = receives[slot(channel, message)].post;
    if (receive.tag != send.tag || receive.size != send.size) seconds = model.alpha;
  }
  if (model.jitter > 0) {
    const std::uint64_t who = index(channel) | std::uint64_t{hop} << 32;
    seconds *= 1 + model.jitter * random_part(model.seed, who, message);
  }
  return picoseconds(seconds * (1 + slower));
}

void Fabric::update(Channel& channel) {
  while (ready(channel)) {
    if (!out_free(channel)) {
      channel.waiting = true;
      channel.turn = order++;
      out_port(channel).waiting.insert(channel.from_link);
      return;
    }
    start(channel);
  }
}

// Whether the channel's next message may leave as soon as there is a port; announces it if it only
// lacks its receive.
bool Fabric::ready(Channel& channel) {
  if (channel.closed || channel.waiting) return false;
  const std::uint64_t message = channel.started;
  if (message == channel.sends_posted || message >= channel.completed + model.window) return false;
  if (sends[slot(channel, message)].post.size <= model.eager_bytes ||
      message < channel.receives_posted) {
    return true;
  }
  // Told once all before it are in.
  if (channel.announcing || channel.announced > message || channel.moved < message) return false;
  channel.announcing = true;
  schedule(now + alpha + latency, EventKind::kAnnounced, index(channel));
  return false;
}

void Fabric::start(Channel& channel) {
  const std::uint64_t message = channel.started++;
  ++nodes[channel.from].sent;
  ++nodes[channel.to].received;
  ++out_port(channel).leaving;
  if (wires != nullptr) return come(wires->first_leg(index(channel)));
  const double slower =
      model.link_jitter == 0
          ? 0
          : model.link_jitter * random_part(model.seed, ~std::uint64_t{index(channel)}, 0);
  const Picoseconds takes = duration(channel, message, 0, slower);
  stays.leaves(index(channel), channel.from, message, sends[slot(channel, message)].furthest);
  schedule(now + takes, EventKind::kLeft, index(channel));
  land(channel, takes);
}

// The channel's next message comes in, in its turn, having begun its last hop now.
void Fabric::land(Channel& channel, Picoseconds takes) {
  Picoseconds& in_free = in_port(channel).in_free;
  // Lanes do not wait for each other, but messages of a link come in order.
  in_free = model.one_port ? std::max(in_free, now + latency) + takes
                           : std::max(in_free, now + latency + takes);
  schedule(in_free, EventKind::kMoved, index(channel));
}

// The out-port is free: for this channel's next message, or one that has waited longer.
void Fabric::left(Channel& channel) {
  Port& port = out_port(channel);
  // Its next message queues behind those that wait already.
  update(channel);
  --port.leaving;
  Channel* first = nullptr;
  port.waiting.for_each([&](std::uint32_t link) {
    Channel& other = out(channel.from, link);
    if (first == nullptr || other.turn < first->turn) first = &other;
  });
  if (first == nullptr) return;
  first->waiting = false;
  port.waiting.erase(first->from_link);
  start(*first);
}

void Fabric::moved(Channel& channel) {
  if (channel.closed) return;
  arrive(channel);
  if (channel.receives_posted < channel.moved) touch_link(channel.to, channel.to_link);
  match(channel);
  update(channel);
}

// The message that moved is at the receiver now.
void Fabric::arrive(Channel& channel) {
  const std::size_t i = slot(channel, channel.moved);
  ++channel.moved;
  channel.announced = std::max(channel.announced, channel.moved);
  Arrival& arrival = arrivals[i];
  arrival.post = sends[i].post;
  arrival.step = sends[i].step;
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
    stays.comes(index(channel), channel.to, channel.completed);
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
  out_port(channel).waiting.erase(channel.from_link);
}

void Fabric::close_all(std::uint32_t node) {
  for (std::uint32_t link = 0; link < nodes[node].links; ++link) {
    close(out(node, link));
    close(in(node, link));
  }
}

void Fabric::kill(std::uint32_t node) {
  nodes[node].dead = true;
  close_all(node);
}

}  // namespace espalier::sim
