// A block's path over the real links, leg by leg. A block holds the out-port while it waits for the
// wires of its first leg, as a sender does whose first link is busy. After that leg it waits in the
// buffers of the node that it has reached. These never fill up, so no circular wait can occur.

#include <algorithm>

#include "hal/sim/fabric.h"

namespace espalier::sim {

void Fabric::ask(Channel& channel) {
  std::uint32_t steps = 0;
  if (wires != nullptr) {
    steps = wires->ask(index(channel), channel.sends_posted, step);
  }
  stays.add(index(channel), steps);
}

void Fabric::come(std::uint32_t number) {
  Leg& leg = wires->legs[number];
  ++leg.come;
  go_on(leg);
}

void Fabric::go_on(Leg& leg) {
  while (leg.begun < leg.come && !leg.waiting) {
    leg.turn = order++;
    if (wires->take(leg, now)) set_out(leg);
  }
}

// Gives the wires of the leg to the leg's next block.
void Fabric::set_out(Leg& leg) {
  const auto number = static_cast<std::uint32_t>(&leg - wires->legs.data());
  Channel& channel = channels[leg.channel];
  const std::uint64_t message = leg.begun++;
  const Picoseconds takes = duration(channel, message, leg.hop, wires->slower(leg));
  wires->held(leg, takes);
  if (leg.hop == 0) {
    const Send& send = channel.send(message);
    stays.leaves(leg.channel, channel.from, send.planned, send.furthest);
  }
  schedule_left(now + takes, EventKind::kPassed, number, message);
  if (leg.last) return land(channel, takes);
  leg.end_of_last = std::max(leg.end_of_last, now + takes);
  schedule(leg.end_of_last, EventKind::kCome, number + 1);
}

void Fabric::passed(Leg& leg, std::uint16_t message) {
  wires->give_back(leg);
  for (std::uint32_t at = leg.first; at < leg.end; ++at) {
    Wire& wire = wires->wires[wires->path[at]];
    for (;;) {
      const std::uint32_t waiter = wires->next_waiter(wire, now);
      if (waiter == Wires::kNone) break;
      Leg& next = wires->legs[waiter];
      if (!wires->take(next, now)) continue;
      set_out(next);
      if (next.begun == next.come) continue;
      // The next block of the leg queues behind those that already wait.
      next.turn = order++;
      wires->wait(next, wire, now);
    }
  }
  if (leg.hop == 0) left(channels[leg.channel], message);
}

}  // namespace espalier::sim
