#include "hal/sim/network_state.h"

#include <algorithm>

#include "base/splitmix64.h"
#include "espalier/internal/base/limits.h"

namespace espalier::sim {
namespace {

constexpr std::size_t kEventsAhead = 6, kEventStages = 4;

Result<void> check_model(const Model& model) {
  const bool times = model.alpha >= 0 && model.beta >= 0 && model.jitter >= 0 &&
                     model.latency >= 0 && model.alpha < 1e6 && model.beta < 1 &&
                     model.latency < 1e6 && model.jitter < 1e3 && model.link_jitter >= 0 &&
                     model.link_jitter < 1e3 && model.pace >= 0 && model.pace < 1e6;
  if (!times) {
    return fail("sim: alpha, beta, latency, pace or jitter is negative or too large");
  }
  if (model.poison && model.no_data) {
    return fail("sim: poison needs data, but no_data is set");
  }
  if (model.window == 0 || model.window > kMaxFieldWindow) {
    return fail("sim: the window is out of range; expected 1 to 65535");
  }
  if (model.generations == 0 || model.generations > Model::kMaxGenerations) {
    return fail("sim: the number of generations is out of range; expected 1 to 8");
  }
  return {};
}

}  // namespace

double random_part(std::uint64_t seed, std::uint64_t who, std::uint64_t which) {
  return static_cast<double>(splitmix64(splitmix64(splitmix64(seed) ^ who) ^ which) >> 11) *
         0x1p-53;
}

NetworkState::NetworkState(const Model& the_model)
    : model(the_model), slots(the_model.eager_bytes, 0) {}

Result<void> NetworkState::build(const std::vector<std::vector<std::uint32_t>>& peers) {
  if (auto sound = check_model(model); !sound) return sound;
  alpha = picoseconds(model.alpha);
  latency = picoseconds(model.latency);
  const auto count = static_cast<std::uint32_t>(peers.size());
  nodes.resize(count);
  if (auto added = add_channels(peers); !added) return added;
  if (auto paired = pair_channels(); !paired) return paired;
  if (!model.one_port) ports_.resize(channels.size());
  if (!model.no_data) regions.resize(count);
  if (model.route) {
    physical_links = std::make_unique<PhysicalLinks>(model, channels);
    if (auto routed = physical_links->build(model); !routed) return routed;
  }
  residence_times.blocks.reserve(model.window + 1);
  touched.reserve(count);
  if (model.one_port) free_ports.reserve(count);
  endpoints.reserve(count);
  for (std::uint32_t v = 0; v < count; ++v) endpoints.emplace_back(*this, v);
  if (model.reserve) reserve();
  return {};
}

Result<void> NetworkState::add_channels(const std::vector<std::vector<std::uint32_t>>& peers) {
  std::size_t all = 0;
  for (const auto& links : peers) all += links.size() * model.generations;
  channels.reserve(all);
  for (std::uint32_t v = 0; v < peers.size(); ++v) {
    const std::size_t all_links = peers[v].size() * model.generations;
    if (all_links > kMaxLinks) {
      return fail("sim: node " + std::to_string(v) + " has " + std::to_string(all_links) +
                  " links, at most " + std::to_string(kMaxLinks) + " are allowed");
    }
    nodes[v].first = static_cast<std::uint32_t>(channels.size());
    nodes[v].links = static_cast<std::uint8_t>(peers[v].size());
    for (std::uint32_t link = 0; link < all_links; ++link) {
      const std::uint32_t to = peers[v][link % nodes[v].links];
      if (to >= peers.size() || to == v) {
        return fail("sim: node " + std::to_string(v) + " has a link to node " + std::to_string(to) +
                    ", which is not another node");
      }
      Channel& channel = channels.emplace_back();
      channel.from = v;
      channel.from_link = static_cast<std::uint8_t>(link);
      channel.to = to;
      if (model.lanes) channel.lanes = model.lanes(v, to);
      // The fabric routes to a node that is not a neighbour.
      if (model.route) channel.lanes = std::max(channel.lanes, 1u);
      if (channel.lanes == 0) {
        return fail("sim: a link has 0 lanes; expected at least 1");
      }
    }
  }
  return {};
}

// Finds each channel's reverse: the k-th link of v to u is the k-th of u to v.
Result<void> NetworkState::pair_channels() {
  in_channel.resize(channels.size());
  for (Channel& channel : channels) {
    const NodeState& own = nodes[channel.from];
    const NodeState& other = nodes[channel.to];
    std::uint32_t before = 0, there = 0, back = 0;  // links of v to u before this one; of u to v
    for (std::uint32_t link = 0; link < own.links * model.generations; ++link) {
      if (channels[own.first + link].to != channel.to) continue;
      before += link < channel.from_link ? 1 : 0;
      ++there;
    }
    for (std::uint32_t link = 0; link < other.links * model.generations; ++link) {
      if (channels[other.first + link].to != channel.from) continue;
      if (back++ == before) channel.to_link = static_cast<std::uint8_t>(link);
    }
    if (back != there) {
      return fail("sim: the links of nodes " + std::to_string(channel.from) + " and " +
                  std::to_string(channel.to) + " are not mutual");
    }
    in_channel[other.first + channel.to_link] = index(channel);
  }
  return {};
}

// Reserves memory for the maximum number of events. A channel has at most `window` blocks in
// flight, as many leaving (or in each path segment), one announcement and one control of each kind,
// and as many blocks that arrived and have no receive yet.
void NetworkState::reserve() {
  const std::size_t segments =
      physical_links == nullptr ? channels.size() : physical_links->segments.size();
  events.reserve(2 * segments * model.window + channels.size() * (1 + kControlKinds) + 16);
  extras.reserve(channels.size());
  for (Channel& channel : channels) {
    send_rings.reserve(channel.sends, channel.sends_log, 2 * std::uint64_t{model.window});
    receive_rings.reserve(channel.receives, channel.receives_log, model.window);
  }
  if (model.eager_copies && !model.no_data) {
    slots = EagerSlots(model.eager_bytes, channels.size() * model.window);
  }
}

Send& NetworkState::next_send(Channel& channel) {
  const std::uint64_t first = std::min(channel.sends_polled, channel.completed);
  if (channel.sends_posted - first == Ring<Send>::capacity(channel.sends_log)) {
    send_rings.grow(channel.sends, channel.sends_log, first, channel.sends_posted);
  }
  return channel.send(channel.sends_posted);
}

Receive& NetworkState::next_receive(Channel& channel) {
  const std::uint64_t first = channel.receives_polled;
  if (channel.receives_posted - first == Ring<Receive>::capacity(channel.receives_log)) {
    receive_rings.grow(channel.receives, channel.receives_log, first, channel.receives_posted);
  }
  return channel.receive(channel.receives_posted);
}

// Resets the channel's counts if they are of an earlier step.
void NetworkState::enter_step(Channel& channel) {
  if (in_this_step(channel)) return;
  channel.sends_of_step = channel.receives_of_step = 0;
  channel.step = static_cast<std::uint32_t>(step);
  step_moved = true;
  if (step > 0) step_channels.push_back(index(channel));
}

void NetworkState::count_send(Channel& channel) {
  ++channel.sends_posted;
  ++open_sends;
  enter_step(channel);
  count_post(channel, ++channel.sends_of_step, endpoints[channel.from].send_step);
}

void NetworkState::count_receive(Channel& channel) {
  ++channel.receives_posted;
  ++open_receives;
  enter_step(channel);
  count_post(channel, ++channel.receives_of_step, endpoints[channel.to].receive_step);
}

// Counts the channel's `posts` of one kind in this step. `last_step` is the last step in which the
// node had any.
void NetworkState::count_post(const Channel& channel, std::uint32_t posts,
                              std::uint32_t& last_step) {
  crowded = crowded || (model.one_port ? last_step == channel.step : posts > channel.lanes);
  last_step = channel.step;
}

Extras& NetworkState::extras_of(Channel& channel) {
  if (channel.extras == Channel::kNoExtras) {
    channel.extras = static_cast<std::uint32_t>(extras.size());
    extras.emplace_back();
  }
  return extras[channel.extras];
}

void NetworkState::schedule(Picoseconds time, EventKind kind, std::uint32_t where,
                            std::uint8_t control) {
  events.push(time, {where, kind, control, 0});
}

bool NetworkState::advance(Picoseconds until) {
  if (!free_ports.empty() && (events.empty() || events.least() > now)) serve_ports();
  if (events.empty() || events.least() > until) {
    if (until != kNever) now = std::max(now, until);
    return false;
  }
  run_next();
  return true;
}

bool NetworkState::advance_moment(Picoseconds until) {
  if (!advance(until)) return false;
  while (!events.empty() && events.least() <= now) {
    for (std::size_t stage = 0; stage < kEventStages; ++stage) {
      const Event* const event = events.ahead((kEventStages - stage) * kEventsAhead);
      if (event != nullptr) expect_event(*event, stage);
    }
    run_next();
  }
  return true;
}

void NetworkState::expect_event(const Event& event, std::size_t stage) {
  if (event.kind == EventKind::kMoved) {
    const Channel& channel = channels[event.where];
    if (stage == 0) {
      expect_use(&channel, sizeof channel);
    } else if (stage == 1) {
      expect_use(&channel.send(channel.moved), sizeof(Send));
      if (channel.receives_log != Ring<Receive>::kEmpty) {
        expect_use(&channel.receive(channel.moved), sizeof(Receive));
      }
      expect_use(&nodes[channel.from]);
      expect_use(&nodes[channel.to]);
    }
  } else if (event.kind == EventKind::kPassed) {
    const PathSegment& segment = physical_links->segments[event.where];
    if (stage == 0) return expect_use(&segment);
    if (stage == 1) return expect_use(&physical_links->links[segment.first_link]);
    // With one_port the port is then free for another of the node's channels.
    if (!model.one_port) return;
    const NodeState& node = nodes[channels[segment.channel].from];
    const std::uint32_t link = node.waiting.next(0);
    if (link != LinkSet::kNone) expect_send(node.first + link, stage == 2 ? 1 : 3);
  }
}

void NetworkState::expect_poll(std::uint32_t number, std::size_t stage) {
  const NodeState& node = nodes[number];
  const NodeEndpoint& endpoint = endpoints[number];
  if (stage == 0) {
    expect_use(&node);
    expect_use(&endpoint);
    return;
  }
  if (stage == 1) expect_use(&in_channel[node.first]);
  for (std::uint32_t links = endpoint.sent_on; links != 0; links &= links - 1) {
    expect_send(node.first + static_cast<std::uint32_t>(std::countr_zero(links)), stage);
  }
  for (std::uint32_t links = endpoint.received_on; links != 0 && stage > 1; links &= links - 1) {
    const Channel& in = this->in(number, static_cast<std::uint32_t>(std::countr_zero(links)));
    if (stage == 2) expect_use(&in, sizeof in);
    if (stage == 3) expect_use(&in.receive(in.receives_polled), sizeof(Receive));
  }
}

void NetworkState::expect_send(std::uint32_t number, std::size_t stage) {
  const Channel& out = channels[number];
  if (stage == 1) {
    expect_use(&out, sizeof out);
    if (physical_links != nullptr)
      expect_use(&physical_links->segments[physical_links->first_segment(number)]);
  } else if (stage == 2) {
    expect_use(&out.send(out.sends_polled), sizeof(Send));
  } else if (physical_links != nullptr) {
    expect_use(
        &physical_links
             ->links[physical_links->segments[physical_links->first_segment(number)].first_link]);
  }
}

void NetworkState::run_next() {
  now = std::max(now, events.least());
  const Event event = events.pop();
  ++events_run;
  switch (event.kind) {
    case EventKind::kLeft: left(channels[event.where], event.message); break;
    case EventKind::kMoved: moved(channels[event.where]); break;
    case EventKind::kAnnounced: {
      Channel& channel = channels[event.where];
      channel.announcing = false;
      if (!channel.closed && channel.moved == channel.started &&
          channel.moved < channel.sends_posted) {
        channel.announced = std::max(channel.announced, channel.moved + 1);
        touch_receiver(channel);
      }
      break;
    }
    case EventKind::kControl: {
      Channel& channel = channels[event.where];
      Extras& extras = extras_of(channel);
      extras.flying[event.control] = false;
      if (nodes[channel.from].dead || nodes[channel.to].dead || channel.cut) break;
      extras.there[event.control] = true;
      extras.arrived[event.control] = extras.on_its_way[event.control];
      touch_receiver(channel);
      break;
    }
    case EventKind::kWake: touch(event.where); break;
    case EventKind::kKill: kill(event.where); break;
    case EventKind::kArrived: arrive(event.where); break;
    case EventKind::kPassed: passed(physical_links->segments[event.where], event.message); break;
  }
}

void NetworkState::touch(std::uint32_t node) {
  if (nodes[node].touched || nodes[node].dead) return;
  nodes[node].touched = true;
  touched.push_back(node);
}

void NetworkState::touch_sender(const Channel& channel) {
  NodeState& node = nodes[channel.from];
  if (!node.uses(channel.from_link)) return;
  node.pending_out.insert(channel.from_link);
  touch(channel.from);
}

void NetworkState::touch_receiver(const Channel& channel) {
  NodeState& node = nodes[channel.to];
  if (!node.uses(channel.to_link)) return;
  node.pending_in.insert(channel.to_link);
  touch(channel.to);
}

void NetworkState::close(Channel& channel) {
  channel.closed = true;
  if (channel.waiting) stop_waiting(channel);
}

void NetworkState::close_present(std::uint32_t node) {
  const std::uint32_t base = nodes[node].base();
  for (std::uint32_t link = base; link < base + nodes[node].links; ++link) {
    close(out(node, link));
    close(in(node, link));
  }
}

void NetworkState::close_all(std::uint32_t node) {
  for (std::uint32_t link = 0; link < nodes[node].links * model.generations; ++link) {
    close(out(node, link));
    close(in(node, link));
  }
}

void NetworkState::cut(std::uint32_t a, std::uint32_t b) {
  for (const std::uint32_t node : {a, b}) {
    for (std::uint32_t link = 0; link < nodes[node].links * model.generations; ++link) {
      Channel& channel = out(node, link);
      if (channel.to != (node == a ? b : a)) continue;
      close(channel);
      channel.cut = true;
    }
  }
}

Status NetworkState::reopen(std::uint32_t number, std::uint32_t generation) {
  NodeState& node = nodes[number];
  if (!node.released || generation <= node.generation || generation >= model.generations) {
    return Status::kBadArgument;
  }
  // Channels of generations that are passed over, too.
  for (; node.generation < generation; ++node.generation) close_present(number);
  node.released = false;
  node.pending_out = node.pending_in = LinkSet();
  // What has arrived before is found by polling.
  for (std::uint32_t link = node.base(); link < node.base() + node.links; ++link) {
    node.pending_in.insert(link);
  }
  touch(number);
  return Status::kOk;
}

void NetworkState::revive(std::uint32_t number) {
  NodeState& node = nodes[number];
  dead -= node.dead ? 1 : 0;
  node.dead = false;
  node.released = true;
  node.generation = 0;
  node.pending_out = node.pending_in = LinkSet();
  for (std::uint32_t link = node.links; link < node.links * model.generations; ++link) {
    const std::uint32_t generation = link / node.links;
    open_unused(out(number, link), generation, out(number, link).to);
    open_unused(in(number, link), generation, in(number, link).from);
    // What was for the node that was killed.
    if (in(number, link).extras == Channel::kNoExtras) continue;
    for (bool& there : extras_of(in(number, link)).there) there = false;
  }
}

void NetworkState::open_unused(Channel& channel, std::uint32_t generation, std::uint32_t peer) {
  const bool used = channel.sends_posted != 0 || channel.receives_posted != 0;
  if (used || channel.cut || nodes[peer].dead || generation < nodes[peer].generation) return;
  channel.closed = false;
}

void NetworkState::kill(std::uint32_t node) {
  dead += nodes[node].dead ? 0 : 1;
  nodes[node].dead = true;
  close_all(node);
}

}  // namespace espalier::sim
