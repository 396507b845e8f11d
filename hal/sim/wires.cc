#include "hal/sim/wires.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/splitmix64.h"
#include "hal/sim/fabric.h"

namespace espalier::sim {
namespace {

[[noreturn]] void no_route(std::uint32_t from, std::uint32_t to) {
  throw std::invalid_argument("sim: the route from node " + std::to_string(from) + " to node " +
                              std::to_string(to) + " does not begin or end there");
}

}  // namespace

// The numbers of wires, by their ends: a hash table with open addresses.
class WireNumbers {
 public:
  // That of the wire; Wires::kNone, to be set, if it is new.
  std::uint32_t& operator()(std::uint32_t from, std::uint32_t to) {
    if (2 * (used_ + 1) > entries_.size()) grow();
    Entry& entry = find(std::uint64_t{from} << 32 | to);
    used_ += entry.number == Wires::kNone ? 1 : 0;
    return entry.number;
  }

 private:
  struct Entry {
    std::uint64_t ends = 0;
    std::uint32_t number = Wires::kNone;
  };
  Entry& find(std::uint64_t ends) {
    std::size_t at = splitmix64(ends) & (entries_.size() - 1);
    while (entries_[at].number != Wires::kNone && entries_[at].ends != ends) {
      at = (at + 1) & (entries_.size() - 1);
    }
    entries_[at].ends = ends;
    return entries_[at];
  }
  void grow() {
    LargeVector<Entry> old(std::max<std::size_t>(64, 2 * entries_.size()));
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.number != Wires::kNone) find(entry.ends).number = entry.number;
    }
  }
  LargeVector<Entry> entries_;  // a power of two of them
  std::size_t used_ = 0;
};

Wires::Wires(const Model& model, const LargeVector<Channel>& channels)
    : channels_(channels),
      jitter_(model.link_jitter > 0),
      ticks_(std::max<std::uint32_t>(1, model.send_ticks)) {
  legs.reserve(channels.size());
  path.reserve(channels.size());
  first_leg_.reserve(channels.size() + 1);
  WireNumbers numbers;
  for (std::uint32_t channel = 0; channel < channels.size(); ++channel) {
    add_channel(model, channel, numbers);
  }
  first_leg_.push_back(static_cast<std::uint32_t>(legs.size()));
  further_.resize(wires.size() * (hops_ - 1));
  if (ticks_ > 1) loads_.resize(wires.size() * hops_ * ticks_);
}

void Wires::add_channel(const Model& model, std::uint32_t channel, WireNumbers& numbers) {
  const std::uint32_t from = channels_[channel].from, to = channels_[channel].to;
  const std::vector<std::uint32_t> nodes = model.route(from, to);
  if (nodes.size() < 2 || nodes.front() != from || nodes.back() != to) no_route(from, to);
  std::vector<std::uint32_t> crossed;
  for (std::size_t at = 1; at < nodes.size(); ++at) {
    std::uint32_t& number = numbers(nodes[at - 1], nodes[at]);
    if (number == kNone) number = add_wire(model, nodes[at - 1], nodes[at]);
    crossed.push_back(number);
  }
  add_legs(model, channel, crossed);
}

std::uint32_t Wires::add_wire(const Model& model, std::uint32_t from, std::uint32_t to) {
  const auto number = static_cast<std::uint32_t>(wires.size());
  Wire& wire = wires.emplace_back();
  wire.lanes = model.lanes ? model.lanes(from, to) : 1;
  wire.first_waiter = kNone;
  if (wire.lanes == 0) throw std::invalid_argument("sim: a link has at least one lane");
  const double slower = model.link_jitter * random_part(model.seed, ~std::uint64_t{number}, 0);
  details.push_back({from, to, slower, 0, 0});
  return number;
}

void Wires::add_legs(const Model& model, std::uint32_t channel,
                     const std::vector<std::uint32_t>& route) {
  first_leg_.push_back(static_cast<std::uint32_t>(legs.size()));
  const std::size_t each = model.hops == Hops::kCutThrough ? route.size() : 1;
  if (route.size() / each > UINT16_MAX) {
    throw std::invalid_argument("sim: a route has too many hops");
  }
  for (std::size_t at = 0; at < route.size(); at += each) {
    Leg leg;
    leg.channel = channel;
    leg.hop = static_cast<std::uint16_t>(at / each);
    leg.first = static_cast<std::uint32_t>(path.size());
    leg.wire = route[at];
    const auto first = route.begin() + static_cast<std::ptrdiff_t>(at);
    path.insert(path.end(), first, first + static_cast<std::ptrdiff_t>(each));
    leg.end = static_cast<std::uint32_t>(path.size());
    leg.last = at + each == route.size();
    legs.push_back(leg);
    hops_ = std::max(hops_, leg.hop + 1u);
  }
}

bool Wires::take(Leg& leg, Picoseconds now) {
  std::uint32_t busy = kNone;  // the first that is
  for_each_wire(leg, [&](std::uint32_t number) {
    if (busy == kNone && wires[number].taken >= wires[number].lanes) busy = number;
  });
  if (busy != kNone) {
    wait(leg, wires[busy], now);
    return false;
  }
  for_each_wire(leg, [this](std::uint32_t number) { ++wires[number].taken; });
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
  WireDetails& its = details[static_cast<std::size_t>(&wire - wires.data())];
  its.waited += now - leg.since;
  its.waits += now > leg.since ? 1 : 0;
  return first;
}

void Wires::give_back(const Leg& leg) {
  for_each_wire(leg, [this](std::uint32_t number) { --wires[number].taken; });
}

void Wires::held(const Leg& leg, Picoseconds time) {
  for_each_wire(leg, [this, time](std::uint32_t number) {
    wires[number].held += time;
    ++wires[number].blocks;
  });
}

double Wires::slower(const Leg& leg) {
  double most = 0;
  if (!jitter_) return most;
  for_each_wire(leg, [&](std::uint32_t number) { most = std::max(most, details[number].slower); });
  return most;
}

std::uint32_t Wires::ask(std::uint32_t channel, std::uint64_t number, std::int64_t step) {
  std::uint32_t stays = 0;
  const std::uint32_t end = hops_ == 1 ? channel + 1 : first_leg_[channel + 1];
  for (std::uint32_t leg = first_leg(channel); leg < end; ++leg) {
    const std::uint32_t hop = legs[leg].hop;
    for_each_wire(legs[leg], [&](std::uint32_t wire) {
      Asked& asked = asked_of(wire, hop);
      std::uint32_t* const loads =
          ticks_ == 1 ? &asked.load : &loads_[(std::size_t{wire} * hops_ + hop) * ticks_];
      // Those of steps that are over for longer than a block holds a wire count no more.
      const std::int64_t gone = std::min<std::int64_t>(step - asked.step, ticks_);
      for (std::int64_t tick = 0; tick < gone; ++tick) loads[(step - tick) % ticks_] = 0;
      std::uint32_t before = 0;
      for (std::uint32_t tick = 0; tick < ticks_; ++tick) before += loads[tick];
      stays = std::max(stays, before / wires[wire].lanes);
      ++loads[step % ticks_];
      const Asked now = {step, number, channel, asked.load};
      note(wire, before + 1, asked, now);
      asked = now;
    });
  }
  return stays;
}

void Wires::note(std::uint32_t wire, std::uint32_t load, const Asked& before, const Asked& now) {
  Contention& all = contention;
  const std::uint32_t lanes = wires[wire].lanes;
  if (std::uint64_t{load} * all.most_lanes > std::uint64_t{all.most_asked} * lanes) {
    all.most_asked = load;
    all.most_lanes = lanes;
  }
  // Once a step, though a block of an earlier tick may hold the wire still.
  if (load <= lanes || (before.step == now.step && load > lanes + 1)) return;
  ++all.conflicts;
  if (all.conflicts > 1) return;
  all.step = now.step - 1;
  all.from = details[wire].from;
  all.to = details[wire].to;
  all.lanes = lanes;
  all.one = {channels_[before.channel].from, channels_[before.channel].to, before.number};
  all.other = {channels_[now.channel].from, channels_[now.channel].to, now.number};
}

}  // namespace espalier::sim
