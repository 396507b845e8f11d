// A block's path over the real links, path segment by path segment. A block holds the out-port
// while it waits for the links of its first path segment, as a sender does whose first link is
// busy. After that path segment it waits in the buffers of the node that it has reached. These
// never fill up, so no circular wait can occur.

#include <algorithm>

#include "hal/sim/network_state.h"

namespace espalier::sim {

void NetworkState::ask(Channel& channel) {
  std::uint32_t steps = 0;
  if (physical_links != nullptr) {
    steps = physical_links->ask(index(channel), channel.sends_posted, step);
  }
  residence_times.add(index(channel), steps);
}

void NetworkState::arrive(std::uint32_t number) {
  ESPALIER_ASSERT(number < physical_links->segments.size());
  PathSegment& segment = physical_links->segments[number];
  ++segment.arrived;
  proceed(segment);
}

void NetworkState::proceed(PathSegment& segment) {
  while (segment.begun < segment.arrived && !segment.waiting) {
    segment.turn = order++;
    if (physical_links->take(segment, now)) depart(segment);
  }
}

// Gives the links of the path segment to the path segment's next block.
void NetworkState::depart(PathSegment& segment) {
  ESPALIER_ASSERT(segment.begun < segment.arrived && !segment.waiting);
  const auto number = static_cast<std::uint32_t>(&segment - physical_links->segments.data());
  Channel& channel = channels[segment.channel];
  const std::uint64_t message = segment.begun++;
  const Picoseconds takes =
      duration(channel, message, segment.hop, physical_links->slower(segment));
  physical_links->add_held(segment, takes);
  if (segment.hop == 0) {
    const Send& send = channel.send(message);
    residence_times.leaves(segment.channel, channel.from, send.planned, send.furthest);
  }
  schedule_left(now + takes, EventKind::kPassed, number, message);
  if (segment.last) return land(channel, takes);
  segment.end_of_last = std::max(segment.end_of_last, now + takes);
  schedule(segment.end_of_last, EventKind::kArrived, number + 1);
  ESPALIER_ASSERT(physical_links->segments[number + 1].channel == segment.channel);
}

void NetworkState::passed(PathSegment& segment, std::uint16_t message) {
  ESPALIER_ASSERT(segment.begun > 0);
  physical_links->give_back(segment);
  for (std::uint32_t i = segment.first; i < segment.end; ++i) {
    PhysicalLink& link = physical_links->links[physical_links->path[i]];
    for (;;) {
      const std::uint32_t waiter = physical_links->next_waiter(link, now);
      if (waiter == PhysicalLinks::kNone) break;
      PathSegment& next = physical_links->segments[waiter];
      if (!physical_links->take(next, now)) continue;
      depart(next);
      if (next.begun == next.arrived) continue;
      // The next block of the path segment queues behind those that already wait.
      next.turn = order++;
      physical_links->wait(next, link, now);
    }
  }
  if (segment.hop == 0) left(channels[segment.channel], message);
}

}  // namespace espalier::sim
