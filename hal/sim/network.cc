#include <algorithm>
#include <vector>

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
std::string send_text(const Channel& channel) {
  return post_text("send", channel.from, "to", channel.to, channel.completed,
                   channel.sends[channel.completed].post.size);
}

std::string receive_text(const Channel& channel) {
  return post_text("receive", channel.to, "from", channel.from, channel.completed,
                   channel.receives[channel.completed].post.size);
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

std::uint64_t Network::blocks() const {
  std::uint64_t blocks = 0;
  for (const Node& node : fabric_->nodes) blocks += node.sent;
  return blocks;
}

std::uint64_t Network::events() const { return fabric_->events_run; }

std::string Network::outstanding() const {
  const Fabric& fabric = *fabric_;
  for (const Channel& channel : fabric.channels) {
    if (channel.closed) continue;
    if (channel.sends_posted > channel.completed) return send_text(channel);
    if (channel.receives_posted > channel.completed) return receive_text(channel);
  }
  return "";
}

void Network::begin_step() { ++fabric_->step; }

namespace {

// A post that should have found its partner by the end of the present step.
bool unmatched(const Fabric& fabric, const Channel& channel, std::uint32_t latency_ticks) {
  if (channel.closed) return false;
  if (channel.receives_posted > channel.completed) return true;
  if (channel.sends_posted == channel.completed) return false;
  return channel.sends[channel.completed].step + latency_ticks - 1 <= fabric.step;
}

bool beyond_lanes(const Fabric& fabric, const Channel& channel) {
  return !fabric.model.one_port && channel.step == fabric.step &&
         std::max(channel.sends_of_step, channel.receives_of_step) > channel.lanes;
}

// What is wrong in the step: the first channel with a fault, else the first node.
std::string fault_of_step(const Fabric& fabric, std::uint32_t latency_ticks) {
  for (const Channel& channel : fabric.channels) {
    if (unmatched(fabric, channel, latency_ticks)) {
      const bool receive = channel.receives_posted > channel.completed;
      return (receive ? receive_text(channel) : send_text(channel)) +
             " found no partner in this step";
    }
    if (beyond_lanes(fabric, channel)) {
      return "node " + std::to_string(channel.from) + " sends " +
             std::to_string(std::max(channel.sends_of_step, channel.receives_of_step)) +
             " blocks to node " + std::to_string(channel.to) + "; the link has " +
             std::to_string(channel.lanes) + (channel.lanes == 1 ? " lane" : " lanes");
    }
  }
  for (std::uint32_t v = 0; v < fabric.nodes.size() && fabric.model.one_port; ++v) {
    const std::uint32_t sends = fabric.step_sends[v], receives = fabric.step_receives[v];
    if (sends <= 1 && receives <= 1) continue;
    return "node " + std::to_string(v) + (sends > 1 ? " sends " : " receives ") +
           std::to_string(sends > 1 ? sends : receives) + " blocks";
  }
  return "";
}

}  // namespace

// Looks only at channels with a post of this step, or with a send that is still under way.
std::string Network::end_step(std::uint32_t latency_ticks, bool& moved) {
  Fabric& fabric = *fabric_;
  moved = !fabric.step_channels.empty();
  bool fault = false;
  const auto look_at = [&](std::uint32_t number) {
    const Channel& channel = fabric.channels[number];
    fault = fault || unmatched(fabric, channel, latency_ticks) || beyond_lanes(fabric, channel);
    return channel.sends_posted > channel.completed && !channel.closed;
  };
  std::erase_if(fabric.late_channels, [&](std::uint32_t number) {
    return !look_at(number) || fabric.channels[number].step == fabric.step;
  });
  for (const std::uint32_t number : fabric.step_channels) {
    if (look_at(number)) fabric.late_channels.push_back(number);
    const Channel& channel = fabric.channels[number];
    const std::uint32_t sends = fabric.step_sends[channel.from] += channel.sends_of_step;
    const std::uint32_t receives = fabric.step_receives[channel.to] += channel.receives_of_step;
    fault = fault || (fabric.model.one_port && (sends > 1 || receives > 1));
  }
  const std::string text = fault ? fault_of_step(fabric, latency_ticks) : "";
  for (const std::uint32_t number : fabric.step_channels) {
    fabric.step_sends[fabric.channels[number].from] = 0;
    fabric.step_receives[fabric.channels[number].to] = 0;
  }
  fabric.step_channels.clear();
  return text;
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
  LinkCollector links;
  for (std::uint32_t v = 0; v < programs.size(); ++v) {
    if (programs[v] != nullptr) links.add(v, *programs[v]);
  }
  return links.links(static_cast<std::uint32_t>(programs.size()));
}

void LinkCollector::add(std::uint32_t node, const Program& program) {
  for (std::uint32_t i = 0; i < links_count(program); ++i) {
    const std::uint32_t peer = peer_of(program, i);
    pairs_.push_back(std::uint64_t{node} << 32 | peer);
    pairs_.push_back(std::uint64_t{peer} << 32 | node);
  }
}

std::vector<std::vector<std::uint32_t>> LinkCollector::links(std::uint32_t nodes) {
  std::sort(pairs_.begin(), pairs_.end());
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
  std::vector<std::vector<std::uint32_t>> peers(nodes);
  for (auto first = pairs_.begin(); first != pairs_.end();) {
    const auto node = static_cast<std::uint32_t>(*first >> 32);
    const auto end = std::find_if(first, pairs_.end(),
                                  [node](std::uint64_t pair) { return pair >> 32 != node; });
    if (node < nodes) peers[node].reserve(static_cast<std::size_t>(end - first));
    for (; first != end; ++first) {
      const auto peer = static_cast<std::uint32_t>(*first);
      // Of another than those here the machine's start() says kNoSuchPeer.
      if (node < nodes && peer < nodes) peers[node].push_back(peer);
    }
  }
  return peers;
}

}  // namespace espalier::sim
