#include "hal/sim/physical_links.h"

#include <algorithm>
#include <string>

#include "base/splitmix64.h"
#include "hal/sim/network_state.h"

namespace espalier::sim {

// Finds the number of a link by its ends: a hash table with open addressing.
class LinkNumbers {
 public:
  // Returns the number of the link; for a new link PhysicalLinks::kNone, which the caller must set.
  std::uint32_t& operator()(std::uint32_t from, std::uint32_t to) {
    if (2 * (used_ + 1) > entries_.size()) grow();
    ESPALIER_ASSERT(entries_.empty() || (entries_.size() & (entries_.size() - 1)) == 0);
    Entry& entry = find(std::uint64_t{from} << 32 | to);
    used_ += entry.number == PhysicalLinks::kNone ? 1 : 0;
    return entry.number;
  }

 private:
  struct Entry {
    std::uint64_t ends = 0;
    std::uint32_t number = PhysicalLinks::kNone;
  };
  Entry& find(std::uint64_t ends) {
    std::size_t i = splitmix64(ends) & (entries_.size() - 1);
    while (entries_[i].number != PhysicalLinks::kNone && entries_[i].ends != ends) {
      i = (i + 1) & (entries_.size() - 1);
    }
    entries_[i].ends = ends;
    return entries_[i];
  }
  void grow() {
    LargeVector<Entry> old(std::max<std::size_t>(64, 2 * entries_.size()));
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.number != PhysicalLinks::kNone) find(entry.ends).number = entry.number;
    }
  }
  LargeVector<Entry> entries_;  // the size is a power of two
  std::size_t used_ = 0;
};

PhysicalLinks::PhysicalLinks(const Model& model, const LargeVector<Channel>& channels)
    : channels_(channels),
      jitter_(model.link_jitter > 0),
      ticks_(std::max<std::uint32_t>(1, model.send_ticks)) {}

Result<void> PhysicalLinks::build(const Model& model) {
  ESPALIER_ASSERT(links.empty() && segments.empty());
  segments.reserve(channels_.size());
  path.reserve(channels_.size());
  first_segment_.reserve(channels_.size() + 1);
  LinkNumbers numbers;
  for (std::uint32_t channel = 0; channel < channels_.size(); ++channel) {
    if (auto added = add_channel(model, channel, numbers); !added) return added;
  }
  first_segment_.push_back(static_cast<std::uint32_t>(segments.size()));
  further_.resize(links.size() * (hops_ - 1));
  if (ticks_ > 1) loads_.resize(links.size() * hops_ * ticks_);
  return {};
}

Result<void> PhysicalLinks::add_channel(const Model& model, std::uint32_t channel,
                                        LinkNumbers& numbers) {
  const std::uint32_t from = channels_[channel].from, to = channels_[channel].to;
  const std::vector<std::uint32_t> nodes = model.route(from, to);
  if (nodes.size() < 2 || nodes.front() != from || nodes.back() != to) {
    return fail("sim: the route from node " + std::to_string(from) + " to node " +
                std::to_string(to) + " does not begin or end there");
  }
  std::vector<std::uint32_t> crossed;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    std::uint32_t& number = numbers(nodes[i - 1], nodes[i]);
    if (number == kNone) {
      const auto added = add_link(model, nodes[i - 1], nodes[i]);
      if (!added) return fail(added.error());
      number = *added;
    }
    crossed.push_back(number);
  }
  return add_segments(model, channel, crossed);
}

Result<std::uint32_t> PhysicalLinks::add_link(const Model& model, std::uint32_t from,
                                              std::uint32_t to) {
  const auto number = static_cast<std::uint32_t>(links.size());
  PhysicalLink& link = links.emplace_back();
  link.lanes = model.lanes ? model.lanes(from, to) : 1;
  link.first_waiter = kNone;
  if (link.lanes == 0) return fail("sim: a link has 0 lanes; expected at least 1");
  const double slower = model.link_jitter * random_part(model.seed, ~std::uint64_t{number}, 0);
  details.push_back({from, to, slower, 0, 0});
  return number;
}

Result<void> PhysicalLinks::add_segments(const Model& model, std::uint32_t channel,
                                         const std::vector<std::uint32_t>& route) {
  ESPALIER_ASSERT(!route.empty());
  first_segment_.push_back(static_cast<std::uint32_t>(segments.size()));
  const std::size_t each = model.switching == Switching::kCutThrough ? route.size() : 1;
  if (route.size() / each > UINT16_MAX) {
    return fail("sim: a route has too many hops");
  }
  for (std::size_t i = 0; i < route.size(); i += each) {
    PathSegment segment{.channel = channel,
                        .hop = static_cast<std::uint16_t>(i / each),
                        .first = static_cast<std::uint32_t>(path.size()),
                        .first_link = route[i]};
    const auto first = route.begin() + static_cast<std::ptrdiff_t>(i);
    path.insert(path.end(), first, first + static_cast<std::ptrdiff_t>(each));
    segment.end = static_cast<std::uint32_t>(path.size());
    segment.last = i + each == route.size();
    segments.push_back(segment);
    hops_ = std::max(hops_, segment.hop + 1u);
  }
  return {};
}

bool PhysicalLinks::take(PathSegment& segment, Picoseconds now) {
  std::uint32_t busy = kNone;  // the first busy link
  for_each_link(segment, [&](std::uint32_t number) {
    if (busy == kNone && links[number].lanes_taken >= links[number].lanes) busy = number;
  });
  if (busy != kNone) {
    wait(segment, links[busy], now);
    return false;
  }
  for_each_link(segment, [this](std::uint32_t number) {
    ++links[number].lanes_taken;
    ESPALIER_ASSERT(links[number].lanes_taken <= links[number].lanes);
  });
  return true;
}

void PhysicalLinks::wait(PathSegment& segment, PhysicalLink& link, Picoseconds now) {
  ESPALIER_ASSERT(!segment.waiting && segment.begun < segment.arrived);
  segment.waiting = true;
  segment.since = now;
  std::uint32_t* place = &link.first_waiter;
  while (*place != kNone && segments[*place].turn < segment.turn)
    place = &segments[*place].next_waiter;
  segment.next_waiter = *place;
  *place = static_cast<std::uint32_t>(&segment - segments.data());
}

std::uint32_t PhysicalLinks::next_waiter(PhysicalLink& link, Picoseconds now) {
  const std::uint32_t first = link.first_waiter;
  if (first == kNone || link.lanes_taken >= link.lanes) return kNone;
  PathSegment& segment = segments[first];
  link.first_waiter = segment.next_waiter;
  ESPALIER_ASSERT(segment.waiting && segment.since <= now);
  segment.waiting = false;
  PhysicalLinkDetails& link_details = details[static_cast<std::size_t>(&link - links.data())];
  link_details.waited += now - segment.since;
  link_details.waits += now > segment.since ? 1 : 0;
  return first;
}

void PhysicalLinks::give_back(const PathSegment& segment) {
  for_each_link(segment, [this](std::uint32_t number) {
    ESPALIER_ASSERT(links[number].lanes_taken > 0);
    --links[number].lanes_taken;
  });
}

void PhysicalLinks::add_held(const PathSegment& segment, Picoseconds time) {
  for_each_link(segment, [this, time](std::uint32_t number) {
    links[number].held += time;
    ++links[number].blocks;
  });
}

double PhysicalLinks::slower(const PathSegment& segment) {
  double most = 0;
  if (!jitter_) return most;
  for_each_link(segment,
                [&](std::uint32_t number) { most = std::max(most, details[number].slower); });
  return most;
}

std::uint32_t PhysicalLinks::ask(std::uint32_t channel, std::uint64_t number, std::int64_t step) {
  ESPALIER_ASSERT(channel < channels_.size() && step >= 0);
  std::uint32_t wait_steps = 0;
  const std::uint32_t end = hops_ == 1 ? channel + 1 : first_segment_[channel + 1];
  for (std::uint32_t segment = first_segment(channel); segment < end; ++segment) {
    const std::uint32_t hop = segments[segment].hop;
    for_each_link(segments[segment], [&](std::uint32_t link) {
      LinkDemand& demand = demand_of(link, hop);
      std::uint32_t* const loads =
          ticks_ == 1 ? &demand.load : &loads_[(std::size_t{link} * hops_ + hop) * ticks_];
      // Drops the counts of steps that ended longer ago than a block holds a link.
      const std::int64_t gone = std::min<std::int64_t>(step - demand.step, ticks_);
      for (std::int64_t tick = 0; tick < gone; ++tick) loads[(step - tick) % ticks_] = 0;
      std::uint32_t before = 0;
      for (std::uint32_t tick = 0; tick < ticks_; ++tick) before += loads[tick];
      wait_steps = std::max(wait_steps, before / links[link].lanes);
      ++loads[step % ticks_];
      const LinkDemand now = {step, number, channel, demand.load};
      note(link, before + 1, demand, now);
      demand = now;
    });
  }
  return wait_steps;
}

void PhysicalLinks::note(std::uint32_t link, std::uint32_t load, const LinkDemand& before,
                         const LinkDemand& now) {
  Contention& all = contention;
  const std::uint32_t lanes = links[link].lanes;
  if (std::uint64_t{load} * all.max_lanes > std::uint64_t{all.max_asked} * lanes) {
    all.max_asked = load;
    all.max_lanes = lanes;
  }
  // Counts each conflict once per step, although a block of an earlier tick may still hold the
  // link.
  if (load <= lanes || (before.step == now.step && load > lanes + 1)) return;
  ++all.conflicts;
  if (all.conflicts > 1) return;
  all.step = now.step - 1;
  all.from = details[link].from;
  all.to = details[link].to;
  all.lanes = lanes;
  all.one = {channels_[before.channel].from, channels_[before.channel].to, before.number};
  all.other = {channels_[now.channel].from, channels_[now.channel].to, now.number};
}

}  // namespace espalier::sim
