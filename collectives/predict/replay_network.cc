// The network of a replay: ports, real links, arrivals. The rules are those of hal/sim.

#include <algorithm>

#include "collectives/predict/replay_state.h"

namespace espalier::predict {

void ReplayState::add_route(std::uint32_t number) {
  ReplayChannel& channel = channels_[number];
  channel.first_segment = static_cast<std::uint32_t>(segments_.size());
  const std::vector<std::uint32_t> nodes = topology_.route(channel.from, channel.to);
  for (std::size_t hop = 1; hop < nodes.size(); ++hop) {
    const bool begins = hop == 1 || conditions_.switching == Switching::kStoreAndForward;
    if (begins) {
      ReplaySegment& segment = segments_.emplace_back();
      segment.channel = number;
      segment.first = hop == 1;
    }
    segments_.back().links.push_back(add_link(nodes[hop - 1], nodes[hop]));
  }
  segments_.back().last = true;
}

std::uint32_t ReplayState::add_link(std::uint32_t from, std::uint32_t to) {
  const auto [found, is_new] =
      link_numbers_.emplace(std::pair(from, to), static_cast<std::uint32_t>(links_.size()));
  if (is_new) {
    ReplayLink& link = links_.emplace_back();
    link.lanes = topology_.capacity(from, to);
    link.cost = &model_.cost(topology_.link_class(from, to));
  }
  return found->second;
}

void ReplayState::happen(const Event& event) {
  switch (event.kind) {
    case EventKind::kLeft: return passed(event.where, event.message);
    case EventKind::kArrived: ++segments_[event.where].arrived; return proceed(event.where);
    case EventKind::kMoved: ++channels_[event.where].moved; return match(channels_[event.where]);
    case EventKind::kPosted: return posted(channels_[event.where]);
    case EventKind::kReceived: {
      ReplayChannel& channel = channels_[event.where];
      --nodes_[channel.to]
            .steps[static_cast<std::size_t>(channel.receives[event.message])]
            .receives;
      return touch(channel.to);
    }
    case EventKind::kOperated: {
      ReplayNode& node = nodes_[event.where];
      const ReplayOperation& operation = node.operations[node.next_operation++];
      --node.steps[static_cast<std::size_t>(operation.step)].operations;
      node.operating = false;
      return touch(event.where);
    }
  }
}

void ReplayState::posted(ReplayChannel& channel) {
  channel.sends[channel.sends_posted++].turn = order_++;
  update(channel);
}

// Lets the channel's messages leave that may, or puts the channel in its port's queue.
void ReplayState::update(ReplayChannel& channel) {
  while (!channel.waiting && channel.started < channel.sends_posted) {
    const bool is_eager = channel.sends[channel.started].bytes <= conditions_.eager_bytes;
    if (!is_eager && channel.started >= channel.receives_posted) return;
    if (one_port_ || channel.leaving >= channel.lanes) {
      channel.waiting = true;
      if (!one_port_) return;
      nodes_[channel.from].port_waiters.push_back(number_of(channel));
      return list_port(channel.from);
    }
    start(channel);
  }
}

void ReplayState::list_port(std::uint32_t number) {
  ReplayNode& node = nodes_[number];
  if (node.in_free_ports || node.leaving > 0 || node.port_waiters.empty()) return;
  node.in_free_ports = true;
  free_ports_.push_back(number);
}

// Starts the first post of each free port that is ready.
void ReplayState::serve_ports() {
  std::sort(free_ports_.begin(), free_ports_.end());
  for (const std::uint32_t number : free_ports_) {
    ReplayNode& node = nodes_[number];
    node.in_free_ports = false;
    const auto turn = [this](std::uint32_t channel) {
      return channels_[channel].sends[channels_[channel].started].turn;
    };
    const auto first =
        std::min_element(node.port_waiters.begin(), node.port_waiters.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return turn(a) < turn(b); });
    ReplayChannel& channel = channels_[*first];
    node.port_waiters.erase(first);
    channel.waiting = false;
    start(channel);
  }
  free_ports_.clear();
}

void ReplayState::start(ReplayChannel& channel) {
  ++channel.started;
  ++(one_port_ ? nodes_[channel.from].leaving : channel.leaving);
  ++segments_[channel.first_segment].arrived;
  proceed(channel.first_segment);
}

void ReplayState::proceed(std::uint32_t number) {
  ReplaySegment& segment = segments_[number];
  while (segment.begun < segment.arrived && !segment.waiting) {
    segment.turn = order_++;
    if (take(segment, number)) depart(number);
  }
}

// Takes a lane of every link of the path segment, or waits for the first one that has none.
bool ReplayState::take(ReplaySegment& segment, std::uint32_t number) {
  for (const std::uint32_t link : segment.links) {
    if (links_[link].taken < links_[link].lanes) continue;
    wait_for(links_[link], number);
    return false;
  }
  for (const std::uint32_t link : segment.links) ++links_[link].taken;
  return true;
}

void ReplayState::wait_for(ReplayLink& link, std::uint32_t number) {
  segments_[number].waiting = true;
  const auto place = std::upper_bound(
      link.waiters.begin(), link.waiters.end(), number,
      [this](std::uint32_t a, std::uint32_t b) { return segments_[a].turn < segments_[b].turn; });
  link.waiters.insert(place, number);
}

// The cost of that link of a path segment which a message of `bytes` keeps longest.
const LinkCost& ReplayState::slowest_of(const ReplaySegment& segment, std::uint64_t bytes) const {
  const LinkCost* slowest = links_[segment.links.front()].cost;
  for (const std::uint32_t link : segment.links) {
    const LinkCost* const cost = links_[link].cost;
    if (cost != slowest && cost->send_time(bytes) > slowest->send_time(bytes)) slowest = cost;
  }
  return *slowest;
}

namespace {

// The time for which a message keeps one end of a link from `start` on. `full`: when the bucket of
// that end is full again, before the message and after it.
Picoseconds end_time(const LinkCost& cost, std::uint64_t bytes, Picoseconds start,
                     Picoseconds& full) {
  if (cost.burst_bytes == 0) return cost.send_time(bytes);
  const CostLine& line = cost.line(bytes);
  full = std::min(std::max(full, start) + per_byte(line.beta_fs, bytes), kMaxPrediction);
  const Picoseconds free = start + per_byte(line.beta_fs, cost.burst_bytes);
  return std::min(line.alpha_ps + (full > free ? full - free : 0), kMaxPrediction);
}

}  // namespace

void ReplayState::depart(std::uint32_t number) {
  ReplaySegment& segment = segments_[number];
  ReplayChannel& channel = channels_[segment.channel];
  const std::size_t message = segment.begun++;
  const std::uint64_t bytes = channel.sends[message].bytes;
  const LinkCost& cost = slowest_of(segment, bytes);
  const Picoseconds takes = segment.first
                                ? end_time(cost, bytes, now_, nodes_[channel.from].out_full)
                                : cost.send_time(bytes);
  schedule(now_ + takes, EventKind::kLeft, number, message);
  if (!segment.last) {
    segment.end_of_last = std::max(segment.end_of_last, now_ + takes);
    schedule(segment.end_of_last, EventKind::kArrived, number + 1);
    return;
  }
  // A schedule's latency is that of one block, however many segments a message holds.
  const Picoseconds latency = links_[segment.links.back()].cost->latency(block_bytes_);
  Picoseconds& free = one_port_ ? nodes_[channel.to].in_free : segment.end_of_last;
  const Picoseconds arrives = now_ + latency + takes;
  if (one_port_) {
    const Picoseconds start = std::max(free, now_ + latency);
    free = std::max(start + end_time(cost, bytes, start, nodes_[channel.to].in_full), arrives);
  } else {
    free = std::max(free, arrives);
  }
  schedule(free, EventKind::kMoved, segment.channel);
}

void ReplayState::passed(std::uint32_t number, std::size_t message) {
  ReplaySegment& segment = segments_[number];
  for (const std::uint32_t link : segment.links) --links_[link].taken;
  for (const std::uint32_t link_number : segment.links) {
    ReplayLink& link = links_[link_number];
    while (!link.waiters.empty() && link.taken < link.lanes) {
      const std::uint32_t waiter = link.waiters.front();
      link.waiters.pop_front();
      ReplaySegment& next = segments_[waiter];
      next.waiting = false;
      if (!take(next, waiter)) continue;
      depart(waiter);
      if (next.begun == next.arrived) continue;
      // The next message of the path segment queues behind those that already wait.
      next.turn = order_++;
      wait_for(link, waiter);
    }
  }
  if (segment.first) left(channels_[segment.channel], message);
}

// The message has left its sender's port, which the next message takes.
void ReplayState::left(ReplayChannel& channel, std::size_t message) {
  ReplayNode& node = nodes_[channel.from];
  channel.sends[message].left = true;
  while (channel.sends_done < channel.started && channel.sends[channel.sends_done].left) {
    const std::pair done(number_of(channel), channel.sends_done);
    const ReplaySend& send = channel.sends[channel.sends_done++];
    --node.steps[static_cast<std::size_t>(send.step)].sends;
    node.reading.erase(std::find(node.reading.begin(), node.reading.end(), done));
    touch(channel.from);
  }
  update(channel);
  --(one_port_ ? node.leaving : channel.leaving);
  if (one_port_) return list_port(channel.from);
  if (!channel.waiting) return;
  channel.waiting = false;
  start(channel);
}

// Completes the receives whose messages have arrived.
void ReplayState::match(ReplayChannel& channel) {
  const std::size_t until = std::min(channel.moved, channel.receives_posted);
  for (; channel.completed < until; ++channel.completed) {
    const Picoseconds overhead = model_.overhead_time(channel.sends[channel.completed].bytes);
    if (overhead + wake_ > 0) {
      ReplayNode& node = nodes_[channel.to];
      const Picoseconds spent = spend(channel.to, overhead);
      if (node.turn <= now_) node.turn = spent + wake_;
      schedule(std::max(node.turn, spent), EventKind::kReceived, number_of(channel),
               channel.completed);
      continue;
    }
    --nodes_[channel.to]
          .steps[static_cast<std::size_t>(channel.receives[channel.completed])]
          .receives;
    touch(channel.to);
  }
}

}  // namespace espalier::predict
