#include <algorithm>
#include <vector>

#include "base/counted.h"
#include "espalier/internal/base/assert.h"
#include "hal/sim/network_state.h"

namespace espalier::sim {
namespace {

// Converts ns to the network's picoseconds; values beyond the range become kNever.
Picoseconds to_picoseconds(std::uint64_t ns) { return ns > kNever / 1000 ? kNever : ns * 1000; }

std::string post_text(const char* what, std::uint32_t node, const char* direction,
                      std::uint32_t peer, std::uint64_t message, std::uint64_t bytes) {
  return "node " + std::to_string(node) + "'s " + what + " " + std::to_string(message) + " " +
         direction + " node " + std::to_string(peer) + " (" + counted(bytes, "byte") + ")";
}

// The text for the channel's oldest incomplete send / receive.
std::string send_text(const Channel& channel) {
  return post_text("send", channel.from, "to", channel.to, channel.completed,
                   channel.send(channel.completed).post.size);
}

std::string receive_text(const Channel& channel) {
  return post_text("receive", channel.to, "from", channel.from, channel.completed,
                   channel.receive(channel.completed).post.size);
}

}  // namespace

Result<Network> Network::create(const Model& model,
                                const std::vector<std::vector<std::uint32_t>>& peers) {
  auto state = std::make_unique<NetworkState>(model);
  if (auto built = state->build(peers); !built) return fail(built.error());
  return Network(std::move(state));
}

Network::Network(const Model& model, const std::vector<std::vector<std::uint32_t>>& peers)
    : state_(std::make_unique<NetworkState>(model)) {
  const Result<void> valid = state_->build(peers);
  ESPALIER_ASSERT(valid);
}

Network::Network(std::unique_ptr<NetworkState> state) : state_(std::move(state)) {}
Network::Network(Network&& other) noexcept = default;
Network::~Network() = default;

std::uint32_t Network::nodes() const { return static_cast<std::uint32_t>(state_->nodes.size()); }
Endpoint& Network::endpoint(std::uint32_t node) { return state_->endpoints.at(node); }
const Model& Network::model() const { return state_->model; }
double Network::now() const { return static_cast<double>(state_->now) * 1e-12; }
std::uint64_t Network::now_ns() const { return state_->now / 1000; }
bool Network::advance(std::uint64_t until_ns) { return state_->advance(to_picoseconds(until_ns)); }
void Network::kill(std::uint32_t node) { state_->kill(node); }

void Network::kill(std::uint32_t node, std::uint64_t at_ns) {
  state_->schedule(to_picoseconds(at_ns), EventKind::kKill, node);
}

void Network::cut(std::uint32_t a, std::uint32_t b) { state_->cut(a, b); }

Status Network::reopen(std::uint32_t node, std::uint32_t generation) {
  return state_->reopen(node, generation);
}

void Network::revive(std::uint32_t node) { state_->revive(node); }

bool Network::alive(std::uint32_t node) const { return !state_->nodes[node].dead; }

void Network::wake(std::uint32_t node, std::uint64_t at_ns) {
  state_->schedule(to_picoseconds(at_ns), EventKind::kWake, node);
}

std::uint64_t Network::delay_ns(std::uint32_t node, std::uint64_t which) const {
  const Model& model = state_->model;
  // Half of the delay is constant per node, so that some nodes are slower than others.
  const double own = random_part(model.seed, ~std::uint64_t{node}, 1);
  const double moment = random_part(model.seed, ~std::uint64_t{node}, which + 2);
  return static_cast<std::uint64_t>(model.pace * 1e9 * (own + moment) / 2);
}

bool Network::pending(std::uint32_t node) const { return state_->nodes[node].pending(); }

std::uint64_t Network::sent(std::uint32_t node) const {
  std::uint64_t blocks = 0;
  for (std::uint32_t link = 0; link < state_->nodes[node].links * state_->model.generations;
       ++link) {
    blocks += state_->out(node, link).started;
  }
  return blocks;
}

std::uint64_t Network::received(std::uint32_t node) const {
  std::uint64_t blocks = 0;
  for (std::uint32_t link = 0; link < state_->nodes[node].links * state_->model.generations;
       ++link) {
    blocks += state_->in(node, link).started;
  }
  return blocks;
}

std::uint64_t Network::blocks() const { return state_->blocks; }

std::uint64_t Network::events() const { return state_->events_run; }

std::string Network::outstanding() const {
  const NetworkState& state = *state_;
  for (const Channel& channel : state.channels) {
    if (channel.closed) continue;
    if (channel.sends_posted > channel.completed) return send_text(channel);
    if (channel.receives_posted > channel.completed) return receive_text(channel);
  }
  return "";
}

void Network::begin_step() {
  ++state_->step;
  state_->crowded = state_->step_moved = false;
  state_->step_channels.clear();
}

namespace {

// Whether the channel has a post that should have been matched by the end of the current step.
bool unmatched(const NetworkState& state, const Channel& channel, std::uint32_t latency_ticks) {
  if (channel.closed) return false;
  if (channel.receives_posted > channel.completed) return true;
  if (channel.sends_posted == channel.completed) return false;
  const auto now = static_cast<std::uint32_t>(state.step);
  return now - channel.send(channel.completed).step >= latency_ticks - 1;
}

bool beyond_lanes(const NetworkState& state, const Channel& channel) {
  return !state.model.one_port && state.in_this_step(channel) &&
         std::max(channel.sends_of_step, channel.receives_of_step) > channel.lanes;
}

// Describes the first fault of the step: the first channel's, otherwise the first node's.
std::string fault_of_step(const NetworkState& state, std::uint32_t latency_ticks) {
  for (const Channel& channel : state.channels) {
    if (unmatched(state, channel, latency_ticks)) {
      const bool receive = channel.receives_posted > channel.completed;
      return (receive ? receive_text(channel) : send_text(channel)) +
             " found no partner in this step";
    }
    if (beyond_lanes(state, channel)) {
      return "node " + std::to_string(channel.from) + " sends " +
             std::to_string(std::max(channel.sends_of_step, channel.receives_of_step)) +
             " blocks to node " + std::to_string(channel.to) + "; the link has " +
             counted(channel.lanes, "lane");
    }
  }
  if (!state.model.one_port) return "";
  std::vector<std::uint32_t> sends(state.nodes.size()), receives(state.nodes.size());
  for (const Channel& channel : state.channels) {
    if (!state.in_this_step(channel)) continue;
    sends[channel.from] += channel.sends_of_step;
    receives[channel.to] += channel.receives_of_step;
  }
  for (std::uint32_t v = 0; v < state.nodes.size(); ++v) {
    if (sends[v] <= 1 && receives[v] <= 1) continue;
    return "node " + std::to_string(v) + (sends[v] > 1 ? " sends " : " receives ") +
           std::to_string(sends[v] > 1 ? sends[v] : receives[v]) + " blocks";
  }
  return "";
}

}  // namespace

bool Network::step_is_complete(std::uint32_t latency_ticks) {
  NetworkState& state = *state_;
  if (state.crowded || state.open_receives > 0) return false;
  if (latency_ticks <= 1) return state.open_sends == 0;
  // Sends on channels that sent in this step or an earlier one may still be in flight.
  std::vector<std::uint32_t>& late = state.late_channels;
  late.insert(late.end(), state.step_channels.begin(), state.step_channels.end());
  state.step_channels.clear();
  std::sort(late.begin(), late.end());
  late.erase(std::unique(late.begin(), late.end()), late.end());
  std::erase_if(late, [&state](std::uint32_t number) {
    const Channel& channel = state.channels[number];
    return channel.closed || channel.sends_posted == channel.completed;
  });
  return std::none_of(late.begin(), late.end(), [&](std::uint32_t number) {
    return unmatched(state, state.channels[number], latency_ticks);
  });
}

// The text is only searched for if a fault exists.
std::string Network::end_step(std::uint32_t latency_ticks, bool& moved) {
  moved = state_->step_moved;
  return step_is_complete(latency_ticks) ? "" : fault_of_step(*state_, latency_ticks);
}

std::vector<std::vector<std::uint32_t>> complete_links(std::uint32_t nodes) {
  std::vector<std::vector<std::uint32_t>> peers(nodes);
  for (std::uint32_t v = 0; v < nodes; ++v) {
    for (std::uint32_t u = 0; u < nodes; ++u) {
      if (u != v) peers[v].push_back(u);
    }
  }
  return peers;
}

}  // namespace espalier::sim
