// A block between two ports: when it may leave, how long it takes, when each end completes.

#include <algorithm>
#include <cstring>

#include "hal/sim/network_state.h"

namespace espalier::sim {

Picoseconds NetworkState::duration(const Channel& channel, std::uint64_t message, std::uint32_t hop,
                                   double slower) const {
  const SendPost& send = channel.send(message).post;
  double seconds = model.alpha + model.beta * static_cast<double>(send.size);
  // A rendezvous detects a mismatch before any byte travels.
  if (channel.receives_posted > message && send.size > model.eager_bytes) {
    const ReceivePost& receive = channel.receive(message).post;
    if (receive.tag != send.tag || receive.size != send.size) seconds = model.alpha;
  }
  if (model.jitter > 0) {
    const std::uint64_t who = index(channel) | std::uint64_t{hop} << 32;
    seconds *= 1 + model.jitter * random_part(model.seed, who, message);
  }
  return picoseconds(seconds * (1 + slower));
}

void NetworkState::update(Channel& channel) {
  while (ready(channel)) {
    if (model.one_port || leaving(channel) >= channel.lanes) {
      channel.waiting = true;
      nodes[channel.from].waiting.insert(channel.from_link);
      if (model.one_port) list_port(channel.from);
      return;
    }
    start(channel);
  }
}

// Whether the channel's next message may leave as soon as a port is free. Announces the message if
// only its receive is missing.
bool NetworkState::ready(Channel& channel) {
  if (channel.closed || channel.waiting) return false;
  const std::uint64_t message = channel.started;
  if (message == channel.sends_posted || message >= channel.completed + model.window) return false;
  if (channel.send(message).post.size <= model.eager_bytes || message < channel.receives_posted) {
    return true;
  }
  // Announced once all earlier messages have arrived.
  if (channel.announcing || channel.announced > message || channel.moved < message) return false;
  channel.announcing = true;
  schedule(now + alpha + latency, EventKind::kAnnounced, index(channel));
  return false;
}

void NetworkState::start(Channel& channel) {
  ESPALIER_ASSERT(!channel.closed && !channel.waiting && channel.started < channel.sends_posted);
  const std::uint64_t message = channel.started++;
  ++blocks;
  ++leaving(channel);
  channel.check_invariants();
  if (physical_links != nullptr) return arrive(physical_links->first_segment(index(channel)));
  const double slower =
      model.link_jitter == 0
          ? 0
          : model.link_jitter * random_part(model.seed, ~std::uint64_t{index(channel)}, 0);
  const Picoseconds takes = duration(channel, message, 0, slower);
  const Send& send = channel.send(message);
  residence_times.leaves(index(channel), channel.from, send.planned, send.furthest);
  schedule_left(now + takes, EventKind::kLeft, index(channel), message);
  land(channel, takes);
}

// Schedules the arrival of the channel's next message, which now begins its last hop.
void NetworkState::land(Channel& channel, Picoseconds takes) {
  Picoseconds& free = in_free(channel);
  // Lanes do not wait for each other, but the messages of a link arrive in order.
  free = model.one_port ? std::max(free, now + latency) + takes
                        : std::max(free, now + latency + takes);
  schedule(free, EventKind::kMoved, index(channel));
}

// The message has left: its sender may reuse the memory, and its port is free. `message`: the
// lowest bits of its number. They are unambiguous: no message is done before it has left, and fewer
// than the window have not left.
void NetworkState::left(Channel& channel, std::uint16_t message) {
  const auto further = static_cast<std::uint16_t>(message - channel.sends_done);
  ESPALIER_ASSERT(channel.closed || channel.sends_done + further < channel.started);
  if (!channel.closed) {
    channel.send(channel.sends_done + further).left = true;
    if (further == 0) complete_sends(channel);
  }
  free_port(channel);
}

// Completes, in order, the sends whose blocks have left.
void NetworkState::complete_sends(Channel& channel) {
  const std::uint64_t before = channel.sends_done;
  while (channel.sends_done < channel.started && channel.send(channel.sends_done).left &&
         give_bytes(channel, channel.sends_done)) {
    ++channel.sends_done;
  }
  if (channel.sends_done > before) touch_sender(channel);
  channel.check_invariants();
}

// Frees the sender's memory of the message that left. Its bytes go to its receive, which has
// belonged to the fabric since it was posted, or to a slot. False: it must wait for its receive.
bool NetworkState::give_bytes(Channel& channel, std::uint64_t message) {
  ESPALIER_ASSERT(message == channel.sends_done && message < channel.started);
  Send& send = channel.send(message);
  const bool bytes = send.post.size > 0 && !model.no_data;
  if (message < channel.receives_posted) {
    const ReceivePost& receive = channel.receive(message).post;
    const bool agreed = send.post.tag == receive.tag && send.post.size == receive.size;
    if (agreed && bytes) std::memmove(receive.bytes, send.post.bytes, send.post.size);
    send.status = agreed ? Status::kOk : Status::kMismatch;
    return true;
  }
  if (!model.eager_copies) return false;
  // A message above eager_bytes would not have left without its receive.
  ESPALIER_ASSERT(channel.send(message).post.size <= model.eager_bytes);
  send.slot = true;
  send.status = Status::kOk;
  if (bytes) {
    std::uint8_t* const slot = slots.take();
    std::memcpy(slot, send.post.bytes, send.post.size);
    send.post.bytes = slot;
  }
  return true;
}

// The channel's block has left: frees the out-port for the next one.
void NetworkState::free_port(Channel& channel) {
  update(channel);  // before the port is free: this channel's next message waits like the others
  ESPALIER_ASSERT(leaving(channel) > 0);
  --leaving(channel);
  if (model.one_port) return list_port(channel.from);
  if (!channel.waiting) return;
  stop_waiting(channel);
  start(channel);
}

void NetworkState::list_port(std::uint32_t number) {
  NodeState& node = nodes[number];
  if (node.in_free_ports || node.leaving > 0 || node.waiting.empty()) return;
  node.in_free_ports = true;
  free_ports.push_back(number);
}

void NetworkState::serve_ports() {
  // By number: a result does not depend on the order in which nodes were polled.
  if (!std::is_sorted(free_ports.begin(), free_ports.end())) {
    std::sort(free_ports.begin(), free_ports.end());
  }
  for (const std::uint32_t node : free_ports) serve_port(node);
  free_ports.clear();
}

void NetworkState::serve_port(std::uint32_t number) {
  ESPALIER_ASSERT(number < nodes.size() && nodes[number].in_free_ports);
  NodeState& node = nodes[number];
  node.in_free_ports = false;
  std::uint32_t link = node.waiting.next(0);
  if (link == LinkSet::kNone) return;  // what waited was closed
  Channel* first = &out(number, link);
  while ((link = node.waiting.next(link + 1)) != LinkSet::kNone) {
    Channel& other = out(number, link);
    const std::uint32_t turn = other.send(other.started).turn;
    if (static_cast<std::int32_t>(turn - first->send(first->started).turn) < 0) first = &other;
  }
  ESPALIER_ASSERT(first->waiting && node.leaving == 0);
  stop_waiting(*first);
  start(*first);
}

void NetworkState::stop_waiting(Channel& channel) {
  ESPALIER_ASSERT(channel.waiting && nodes[channel.from].waiting.contains(channel.from_link));
  channel.waiting = false;
  nodes[channel.from].waiting.erase(channel.from_link);
}

void NetworkState::moved(Channel& channel) {
  if (channel.closed) return;
  ++channel.moved;
  channel.announced = std::max(channel.announced, channel.moved);
  channel.check_invariants();
  if (channel.receives_posted < channel.moved) touch_receiver(channel);
  match(channel);
  update(channel);
}

void NetworkState::match(Channel& channel) {
  if (channel.closed) return;
  if (channel.sends_done < channel.started) complete_sends(channel);
  const std::uint64_t until = std::min(channel.moved, channel.receives_posted);
  if (channel.completed >= until) return;
  for (; channel.completed < until; ++channel.completed) match_next(channel);
  touch_receiver(channel);
  update(channel);  // the window may have room again
  channel.check_invariants();
}

// Compares the message, which has arrived and has a receive, with that receive.
void NetworkState::match_next(Channel& channel) {
  ESPALIER_ASSERT(channel.completed < channel.moved);
  ESPALIER_ASSERT(channel.completed < channel.receives_posted);
  Send& send = channel.send(channel.completed);
  Receive& receive = channel.receive(channel.completed);
  const bool agreed = send.post.tag == receive.post.tag && send.post.size == receive.post.size;
  residence_times.arrives(channel.to, send.planned);
  ESPALIER_ASSERT(open_sends > 0 && open_receives > 0);
  --open_sends;
  --open_receives;
  receive.status = agreed ? Status::kOk : Status::kMismatch;
  if (send.slot) {
    if (send.post.size > 0 && !model.no_data) {
      if (agreed) std::memcpy(receive.post.bytes, send.post.bytes, send.post.size);
      slots.give(static_cast<std::uint8_t*>(const_cast<void*>(send.post.bytes)));
    }
    if (!agreed && !extras_of(channel).late_mismatch) {
      extras_of(channel).late_mismatch = true;
      extras_of(channel).late_cookie = send.post.context;
      touch_sender(channel);
    }
  }
  receive.check = send.post.check;
  receive.tag = send.post.tag;
}

}  // namespace espalier::sim
