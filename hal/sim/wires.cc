#include "hal/sim/wires.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "hal/sim/fabric.h"

namespace espalier::sim {
namespace {

[[noreturn]] void no_route(std::uint32_t from, std::uint32_t to) {
  throw std::invalid_argument("sim: the route from node " + std::to_string(from) + " to node " +
                              std::to_string(to) + " does not begin or end there");
}

}  // namespace

Wires::Wires(const Model& model, const LargeVector<Channel>& channels)
    : ticks_(std::max<std::uint32_t>(1, model.send_ticks)) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers;
  std::vector<std::uint32_t> crossed;
  for (std::uint32_t channel = 0; channel < channels.size(); ++channel) {
    const std::uint32_t from = channels[channel].from, to = channels[channel].to;
    const std::vector<std::uint32_t> nodes = model.route(from, to);
    if (nodes.size() < 2 || nodes.front() != from || nodes.back() != to) no_route(from, to);
    crossed.clear();
    for (std::size_t at = 1; at < nodes.size(); ++at) {
      const auto [found, is_new] = numbers.try_emplace({nodes[at - 1], nodes[at]}, wires.size());
      if (is_new) {
        Wire wire;
        wire.from = nodes[at - 1];
        wire.to = nodes[at];
        wire.lanes = model.lanes ? model.lanes(wire.from, wire.to) : 1;
        wire.first_waiter = kNone;
        wire.slower = model.link_jitter * random_part(model.seed, ~std::uint64_t{found->second}, 0);
        if (wire.lanes == 0) throw std::invalid_argument("sim: a link has at least one lane");
        wires.push_back(wire);
      }
      crossed.push_back(found->second);
    }
    add_legs(model, channel, crossed);
  }
  first_leg_.push_back(static_cast<std::uint32_t>(legs.size()));
  asked_.resize(wires.size() * hops_);
  loads_.resize(asked_.size() * ticks_);
}

void Wires::add_legs(const Model& model, std::uint32_t channel,
                     const std::vector<std::uint32_t>& route) {
  first_leg_.push_back(static_cast<std::uint32_t>(legs.size()));
  const std::size_t each = model.hops == Hops::kCutThrough ? route.size() : 1;
  for (std::size_t at = 0; at < route.size(); at += each) {
    Leg leg;
    leg.channel = channel;
    leg.hop = static_cast<std::uint32_t>(at / each);
    leg.first = static_cast<std::uint32_t>(path.size());
    path.insert(path.end(), route.begin() + at, route.begin() + at + each);
    leg.end = static_cast<std::uint32_t>(path.size());
    leg.last = at + each == route.size();
    legs.push_back(leg);
    hops_ = std::max(hops_, leg.hop + 1);
  }
}

bool Wires::take(Leg& leg, Picoseconds now) {
  for (std::uint32_t at = leg.first; at < leg.end; ++at) {
    Wire& wire = wires[path[at]];
    if (wire.taken < wire.lanes) continue;
    wait(leg, wire, now);
    return false;
  }
  for (std::uint32_t at = leg.first; at < leg.end; ++at) ++wires[path[at]].taken;
  return true;
}

void Wires::wait(Leg& leg, Wire& wire, Picoseconds now) {
  leg.waiting = true;
  leg.since = now;
  std::uint32_t* place = &wire.first_waiter;
  while (*place != kNone && legs[*place].turn < leg.turn) place = &legs[*place].next_waiter;
  leg.next_waiter = *place;
  *place = static_cast<std::uint32_t>(&leg - legs.data());
}

std::uint32_t Wires::next_waiter(Wire& wire, Picoseconds now) {
  const std::uint32_t first = wire.first_waiter;
  if (first == kNone || wire.taken >= wire.lanes) return kNone;
  Leg& leg = legs[first];
  wire.first_waiter = leg.next_waiter;
  leg.waiting = false;
  wire.waited += now - leg.since;
  wire.waits += now > leg.since ? 1 : 0;
  return first;
}

void Wires::give_back(const Leg& leg) {
  for (std::uint32_t at = leg.first; at < leg.end; ++at) --wires[path[at]].taken;
}

void Wires::held(const Leg& leg, Picoseconds time) {
  for (std::uint32_t at = leg.first; at < leg.end; ++at) {
    wires[path[at]].held += time;
    ++wires[path[at]].blocks;
  }
}

double Wires::slower(const Leg& leg) const {
  double most = 0;
  for (std::uint32_t at = leg.first; at < leg.end; ++at) {
    most = std::max(most, wires[path[at]].slower);
  }
  return most;
}

std::uint32_t Wires::ask(std::uint32_t channel, const Transfer& transfer, std::int64_t step) {
  std::uint32_t stays = 0;
  for (std::uint32_t number = first_leg_[channel]; number < first_leg_[channel + 1]; ++number) {
    const Leg& leg = legs[number];
    for (std::uint32_t at = leg.first; at < leg.end; ++at) {
      const Wire& wire = wires[path[at]];
      const std::size_t place = std::size_t{path[at]} * hops_ + leg.hop;
      Asked& asked = asked_[place];
      std::uint32_t* loads = &loads_[place * ticks_];
      // Those of steps that are over for longer than a block holds a wire count no more.
      const std::int64_t gone = std::min<std::int64_t>(step - asked.step, ticks_);
      for (std::int64_t tick = 0; tick < gone; ++tick) loads[(step - tick) % ticks_] = 0;
      std::uint32_t before = 0;
      for (std::uint32_t tick = 0; tick < ticks_; ++tick) before += loads[tick];
      stays = std::max(stays, before / wire.lanes);
      ++loads[step % ticks_];
      note(wire, before + 1, asked, transfer, step);
      asked = {step, transfer};
    }
  }
  return stays;
}

void Wires::note(const Wire& wire, std::uint32_t asked, const Asked& before,
                 const Transfer& transfer, std::int64_t step) {
  Contention& all = contention;
  if (std::uint64_t{asked} * all.most_lanes > std::uint64_t{all.most_asked} * wire.lanes) {
    all.most_asked = asked;
    all.most_lanes = wire.lanes;
  }
  // Once a step, though a block of an earlier tick may hold the wire still.
  if (asked <= wire.lanes || (before.step == step && asked > wire.lanes + 1)) return;
  ++all.conflicts;
  if (all.conflicts > 1) return;
  all.step = step - 1;
  all.from = wire.from;
  all.to = wire.to;
  all.lanes = wire.lanes;
  all.one = before.last;
  all.other = transfer;
}

}  // namespace espalier::sim
