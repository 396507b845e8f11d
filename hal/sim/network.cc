#include <algorithm>
#include <set>

#include "hal/sim/fabric.h"

namespace espalier::sim {
namespace {

// Nanoseconds to the fabric's picoseconds; the far future stays the far future.
Picoseconds to_picoseconds(std::uint64_t ns) { return ns > kNever / 1000 ? kNever : ns * 1000; }

std::string post_text(const char* what, std::uint32_t node, const char* direction,
                      std::uint32_t peer, std::uint64_t message, std::uint64_t bytes) {
  return "node " + std::to_string(node) + "'s " + what + " " + std::to_string(message) + " " +
         direction + " node " + std::to_string(peer) + " (" + std::to_string(bytes) + " bytes)";
}

// The channel's oldest send / receive that has not completed.
std::string send_text(const Fabric& fabric, const Channel& channel) {
  const std::size_t i = fabric.slot(channel, channel.completed);
  const bool moved = channel.completed < channel.moved;
  return post_text("send", channel.from, "to", channel.to, channel.completed,
                   moved ? fabric.arrivals[i].post.size : fabric.sends[i].post.size);
}

std::string receive_text(const Fabric& fabric, const Channel& channel) {
  return post_text("receive", channel.to, "from", channel.from, channel.completed,
                   fabric.receives[fabric.slot(channel, channel.completed)].post.size);
}

}  // namespace

Network::Network(const Model& model, const std::vector<std::vector<std::uint32_t>>& peers)
    : fabric_(std::make_unique<Fabric>(model, peers)) {}

Network::~Network() = default;

std::uint32_t Network::nodes() const { return static_cast<std::uint32_t>(fabric_->nodes.size()); }
Endpoint& Network::endpoint(std::uint32_t node) { return fabric_->endpoints.at(node); }
const Model& Network::model() const { return fabric_->model; }
double Network::now() const { return static_cast<double>(fabric_->now) * 1e-12; }
std::uint64_t Network::now_ns() const { return fabric_->now / 1000; }
bool Network::advance(std::uint64_t until_ns) { return fabric_->advance(to_picoseconds(until_ns)); }
void Network::kill(std::uint32_t node) { fabric_->kill(node); }

void Network::kill(std::uint32_t node, std::uint64_t at_ns) {
  fabric_->schedule(to_picoseconds(at_ns), EventKind::kKill, node);
}

bool Network::alive(std::uint32_t node) const { return !fabric_->nodes[node].dead; }

void Network::wake(std::uint32_t node, std::uint64_t at_ns) {
  fabric_->schedule(to_picoseconds(at_ns), EventKind::kWake, node);
}

std::uint64_t Network::delay_ns(std::uint32_t node, std::uint64_t which) const {
  const Model& model = fabric_->model;
  // Half of it is the node's own, so that some nodes are slower than others.
  const double own = random_part(model.seed, ~std::uint64_t{node}, 1);
  const double moment = random_part(model.seed, ~std::uint64_t{node}, which + 2);
  return static_cast<std::uint64_t>(model.pace * 1e9 * (own + moment) / 2);
}

bool Network::next_touched(std::uint32_t& node) {
  Fabric& fabric = *fabric_;
  if (fabric.touched_count == 0) return false;
  node = fabric.touched[fabric.touched_first];
  fabric.touched_first = (fabric.touched_first + 1) % fabric.touched.size();
  --fabric.touched_count;
  fabric.nodes[node].touched = false;
  return true;
}

bool Network::pending(std::uint32_t node) const { return !fabric_->nodes[node].pending.empty(); }
std::uint64_t Network::activity(std::uint32_t node) const { return fabric_->nodes[node].activity; }
std::uint64_t Network::sent(std::uint32_t node) const { return fabric_->nodes[node].sent; }
std::uint64_t Network::received(std::uint32_t node) const { return fabric_->nodes[node].received; }

std::string Network::outstanding() const {
  const Fabric& fabric = *fabric_;
  for (const Channel& channel : fabric.channels) {
    if (channel.closed) continue;
    if (channel.sends_posted > channel.completed) return send_text(fabric, channel);
    if (channel.receives_posted > channel.completed) return receive_text(fabric, channel);
  }
  return "";
}

void Network::begin_step() { ++fabric_->step; }

namespace {

// A post that should have found its partner by the end of the present step.
std::string unmatched(const Fabric& fabric, const Channel& channel, std::uint32_t latency_ticks) {
  if (channel.closed) return "";
  if (channel.receives_posted > channel.completed) return receive_text(fabric, channel);
  if (channel.sends_posted == channel.completed) return "";
  const std::size_t i = fabric.slot(channel, channel.completed);
  const std::int64_t step =
      channel.completed < channel.moved ? fabric.arrivals[i].step : fabric.sends[i].step;
  return step + latency_ticks - 1 <= fabric.step ? send_text(fabric, channel) : "";
}

}  // namespace

std::string Network::end_step(std::uint32_t latency_ticks, bool& moved) const {
  const Fabric& fabric = *fabric_;
  moved = false;
  std::vector<std::uint32_t> sends(nodes()), receives(nodes());
  for (const Channel& channel : fabric.channels) {
    const std::string late = unmatched(fabric, channel, latency_ticks);
    if (!late.empty()) return late + " found no partner in this step";
    if (channel.step != fabric.step) continue;
    moved = true;
    sends[channel.from] += channel.sends_of_step;
    receives[channel.to] += channel.receives_of_step;
    const std::uint32_t most = std::max(channel.sends_of_step, channel.receives_of_step);
    if (!fabric.model.one_port && most > channel.lanes) {
      return "node " + std::to_string(channel.from) + " sends " + std::to_string(most) +
             " blocks to node " + std::to_string(channel.to) + "; the link has " +
             std::to_string(channel.lanes) + (channel.lanes == 1 ? " lane" : " lanes");
    }
  }
  for (std::uint32_t v = 0; v < nodes() && fabric.model.one_port; ++v) {
    if (sends[v] <= 1 && receives[v] <= 1) continue;
    return "node " + std::to_string(v) + (sends[v] > 1 ? " sends " : " receives ") +
           std::to_string(sends[v] > 1 ? sends[v] : receives[v]) + " blocks";
  }
  return "";
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

std::vector<std::vector<std::uint32_t>> links_of(const std::vector<const Program*>& programs) {
  std::vector<std::set<std::uint32_t>> sets(programs.size());
  for (std::uint32_t v = 0; v < programs.size(); ++v) {
    if (programs[v] == nullptr) continue;
    for (std::uint32_t i = 0; i < links_count(*programs[v]); ++i) {
      const std::uint32_t u = peer_of(*programs[v], i);
      if (u >= sets.size()) continue;  // the machine's start() says kNoSuchPeer
      sets[v].insert(u);
      sets[u].insert(v);
    }
  }
  std::vector<std::vector<std::uint32_t>> peers;
  for (const auto& set : sets) peers.emplace_back(set.begin(), set.end());
  return peers;
}

}  // namespace espalier::sim
