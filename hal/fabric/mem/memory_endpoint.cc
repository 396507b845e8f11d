#include "hal/fabric/mem/memory_endpoint.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "base/counted.h"
#include "hal/mem/host/access.h"

namespace espalier::ofi {
namespace {

// Small enough that the slots of a few links stay in a core's cache; a longer message goes in
// pieces.
constexpr std::uint32_t kSlotBytes = 4096;
// 1 MiB of pieces for each link, as much as the second cache of a core. With 128 KiB the lines of a
// piece are still in the other core's caches when it is written again, and a copy between two
// cores takes three times as long. Pages that no message needs are never touched.
constexpr std::uint32_t kPieces = 32;

std::string milliseconds(std::uint64_t ns) { return std::to_string(ns / 1'000'000) + " ms"; }

Result<void> check_memory(const Config& config) {
  const std::string node = "node " + std::to_string(config.node);
  if (config.window > kMaxWindow) {
    return fail(node + ": window " + std::to_string(config.window) + "; mem has at most " +
                std::to_string(kMaxWindow));
  }
  if (!config.local_address.empty()) {
    return fail(node + ": mem binds no address; expected none, or provider tcp");
  }
  if (config.authenticate_data) {
    return fail(node +
                ": authenticate_data protects what crosses a network; expected another "
                "provider than mem");
  }
  if (const std::string refusal = mem::sharing_refusal(); !refusal.empty()) {
    return fail("provider \"mem\": " + refusal + "; expected provider tcp");
  }
  return {};
}

mem::HostConfig host_config_of(const Config& config, std::size_t blocks) {
  mem::Shape shape{.ring = std::bit_ceil(config.window)};
  const std::uint32_t slot = config.eager_bytes != 0 ? config.eager_bytes : kSlotBytes;
  shape.slot_bytes = (slot + 63) / 64 * 64;
  shape.pieces = kPieces;
  return {{config.node, config.window, shape}, static_cast<std::uint32_t>(blocks), {}};
}

}  // namespace

template <class AnyConfig>
Result<std::unique_ptr<MemoryEndpoint>> MemoryEndpoint::open(const AnyConfig& config) {
  if (auto serves = check_memory(config); !serves) return fail(serves.error());
  std::unique_ptr<MemoryEndpoint> endpoint(new MemoryEndpoint(config));
  if (auto opened = endpoint->endpoint_.open(); !opened) {
    return fail("provider \"mem\": " + opened.error().message);
  }
  endpoint->config_.secret = {};
  return endpoint;
}

template Result<std::unique_ptr<MemoryEndpoint>> MemoryEndpoint::open(const FixedConfig&);
template Result<std::unique_ptr<MemoryEndpoint>> MemoryEndpoint::open(const AddedConfig&);

MemoryEndpoint::MemoryEndpoint(const FixedConfig& config)
    : config_(config), peers_(config.peers), endpoint_(host_config_of(config, peers_.size())) {
  for (std::size_t link = 0; link < peers_.size(); ++link) {
    const FixedConfig::Lanes lanes =
        config.lanes.empty() ? FixedConfig::Lanes{} : config.lanes[link];
    lane_links_.insert(lane_links_.end(), std::max(lanes.out, lanes.in),
                       static_cast<std::uint32_t>(link));
  }
}

MemoryEndpoint::MemoryEndpoint(const AddedConfig& config)
    : config_(config), max_links_(config.max_links), endpoint_(host_config(config)) {}

mem::HostConfig MemoryEndpoint::host_config(const AddedConfig& config) {
  mem::HostConfig host = host_config_of(config, std::min(kMostMemoryNodes, config.max_links + 1));
  host.touches_memory = !config.is_small;
  host.greeted = [this] { adopt(); };
  return host;
}

// "mem://PROCESS:DESCRIPTOR@OFFSET" and `lane`, which only names the lane.
std::string MemoryEndpoint::address_for(std::uint32_t peer, std::uint32_t block,
                                        const std::string& lane) const {
  AddressHead head{.node = config_.node,
                   .peer = peer,
                   .lane = block,
                   .window = config_.window,
                   .eager_bytes = static_cast<std::uint32_t>(endpoint_.eager_bytes()),
                   .nonce = endpoint_.place().nonce};
  const std::string name = "mem://" + std::to_string(endpoint_.place().process) + ":" +
                           std::to_string(endpoint_.place().file) + '@' +
                           std::to_string(endpoint_.place().offset) + lane;
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + name + '\0';
}

std::vector<std::uint32_t> MemoryEndpoint::lane_peers() const {
  std::vector<std::uint32_t> all;
  for (const std::uint32_t link : lane_links_) all.push_back(peers_[link]);
  return all;
}

// All lanes of a link are one: memory has no bandwidth to divide.
std::vector<std::string> MemoryEndpoint::addresses() const {
  std::vector<std::string> all;
  for (const std::uint32_t link : lane_links_) {
    all.push_back(address_for(peers_[link], link, ":" + std::to_string(all.size())));
  }
  return all;
}

std::string MemoryEndpoint::address() const {
  return address_for(AddressHead::kAny, AddressHead::kAny, "");
}

Result<void> MemoryEndpoint::connect_to(std::uint32_t peer, std::uint32_t own,
                                        const std::string& address) {
  const std::string where = "address of node " + std::to_string(peer) + ": ";
  AddressHead head;
  mem::SegmentPlace place;
  if (address.size() <= sizeof(head)) return fail(where + "too short");
  std::memcpy(&head, address.data(), sizeof(head));
  const std::string name = address_text(address);
  if (head.magic != AddressHead().magic ||
      std::sscanf(name.c_str(), "mem://%d:%d@%" SCNu64, &place.process, &place.file,
                  &place.offset) != 3) {
    return fail(where + "it is not one of provider mem");
  }
  const bool for_all = max_links_ != 0;
  if (head.node != peer || head.peer != (for_all ? AddressHead::kAny : config_.node)) {
    return fail(
        where + "it belongs to node " + std::to_string(head.node) + " and is for " +
        (head.peer == AddressHead::kAny ? "all nodes" : "node " + std::to_string(head.peer)));
  }
  if (head.window != config_.window || head.eager_bytes != endpoint_.eager_bytes()) {
    return fail(where + "window " + std::to_string(head.window) + " and eager_bytes " +
                std::to_string(head.eager_bytes) + " there, " + std::to_string(config_.window) +
                " and " + std::to_string(endpoint_.eager_bytes()) + " here");
  }
  place.nonce = head.nonce;
  const std::uint32_t lane = head.lane;
  const std::uint32_t block = lane != AddressHead::kAny ? lane : block_of(config_.node);
  std::string error;
  if (auto connected = endpoint_.connect(peer, own, place, block); !connected) {
    error = "node " + std::to_string(peer) + ": " + connected.error().message;
    if (!for_all) return fail(error);
    if (auto added = endpoint_.connect_to_none(peer, own); !added) return added;
  }
  blocks_.push_back(own);
  until_ns_.push_back(0);
  errors_.push_back(std::move(error));
  return {};
}

Result<void> MemoryEndpoint::start_connecting(const std::vector<std::string>& addresses) {
  const std::vector<std::uint32_t>& lanes = lane_links_;
  if (addresses.size() != lanes.size()) {
    return fail(counted(addresses.size(), "address") + " for " + counted(lanes.size(), "lane"));
  }
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const std::uint32_t link = lanes[lane];
    if (lane > 0 && lanes[lane - 1] == link) continue;
    if (auto done = connect_to(peers_[link], link, addresses[lane]); !done) return done;
    until_ns_.back() = monotonic_ns() + config_.connect_deadline_ns;
  }
  return {};
}

Result<bool> MemoryEndpoint::is_connected(std::uint32_t link) const {
  if (!errors_[link].empty()) return fail(errors_[link]);
  if (endpoint_.is_greeted(blocks_[link])) return true;
  if (monotonic_ns() <= until_ns_[link]) return false;
  return fail("node " + std::to_string(endpoint_.peer(link)) + " did not connect within " +
              milliseconds(config_.connect_deadline_ns));
}

Result<bool> MemoryEndpoint::go_on_connecting() {
  bool all = true;
  for (std::uint32_t link = 0; link < endpoint_.links(); ++link) {
    const auto one = is_connected(link);
    if (!one) return one;
    all = all && *one;
  }
  return all;
}

Result<void> MemoryEndpoint::set_addresses(std::vector<std::string> addresses) {
  if (!addresses_.empty()) return fail("this endpoint has its addresses");
  const auto nodes = addresses.size() - std::count(addresses.begin(), addresses.end(), "");
  if (nodes > kMostMemoryNodes) {
    return fail(counted(nodes, "process") + "; mem connects at most " +
                std::to_string(kMostMemoryNodes) + ", expected provider tcp");
  }
  addresses_ = std::move(addresses);
  return {};
}

std::uint32_t MemoryEndpoint::block_of(std::uint32_t node) const {
  const auto end = addresses_.begin() + node;
  return node - static_cast<std::uint32_t>(std::count(addresses_.begin(), end, ""));
}

Result<std::uint32_t> MemoryEndpoint::add_link(std::uint32_t node) {
  for (std::uint32_t link = 0; link < endpoint_.links(); ++link) {
    if (endpoint_.peer(link) == node) return link;
  }
  const std::string here = "node " + std::to_string(config_.node);
  if (node >= addresses_.size() || node == config_.node || addresses_[node].empty()) {
    return fail(here + ": no address of node " + std::to_string(node));
  }
  if (endpoint_.links() >= max_links_) {
    return fail(here + " has " + counted(endpoint_.links(), "link") +
                ", the limit; no room for one to node " + std::to_string(node));
  }
  if (auto done = connect_to(node, block_of(node), addresses_[node]); !done)
    return fail(done.error());
  return endpoint_.links() - 1;
}

void MemoryEndpoint::adopt() {
  for (std::uint32_t node = 0; node < addresses_.size(); ++node) {
    if (node != config_.node && !addresses_[node].empty() && endpoint_.is_greeted(block_of(node))) {
      (void)add_link(node);  // A node that ended since needs none.
    }
  }
}

Result<bool> MemoryEndpoint::connect_links(std::span<const std::uint32_t> links) {
  bool all = true;
  for (const std::uint32_t link : links) {
    if (link >= endpoint_.links()) {
      return fail("node " + std::to_string(config_.node) + ": cannot connect link " +
                  std::to_string(link));
    }
    if (until_ns_[link] == 0) until_ns_[link] = monotonic_ns() + config_.connect_deadline_ns;
    const auto one = is_connected(link);
    if (!one) return one;
    all = all && *one;
  }
  return all;
}

Result<void> MemoryEndpoint::set_secret(const Secret& /*secret*/) {
  if (!addresses_.empty()) return fail("the addresses were given before the job secret");
  return {};
}

Result<void> MemoryEndpoint::keep(std::span<const Region> /*regions*/) { return {}; }

}  // namespace espalier::ofi
