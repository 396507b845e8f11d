// Opening, addresses, connecting.

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "espalier/hal/ofi/address.h"
#include "hal/ofi/libfabric_endpoint.h"
#include "hal/ofi/sweep.h"

namespace espalier::ofi {
namespace {

constexpr std::uint32_t kCopiedBytes = 16384;
constexpr std::uint64_t kGreetTimeoutNs = 60'000'000'000;

// A process that had our number and was killed may have left files; libfabric would take them for
// those of a living one and refuse to open.
void sweep_our_number() {
  static std::mutex mutex;
  static pid_t swept = 0;  // a fork has a number of its own
  const std::lock_guard<std::mutex> lock(mutex);
  if (swept != getpid()) sweep_shared_memory(getpid());
  swept = getpid();
}

}  // namespace

bool known_provider(const std::string& name) {
  fi_info* info = Fabric::find(name, "");
  if (info == nullptr) return false;
  fi_freeinfo(info);
  return true;
}

std::unique_ptr<OfiEndpoint> OfiEndpoint::open(const Config& config, std::string& error) {
  auto endpoint = std::make_unique<LibfabricEndpoint>();
  if (!endpoint->open(config, error)) return nullptr;
  return endpoint;
}

bool LibfabricEndpoint::check(const Config& config, std::string& error) const {
  if (config.peers.size() > kMaxLinks) {
    error = "node " + std::to_string(config.node) + " has " + std::to_string(config.peers.size()) +
            " links; at most " + std::to_string(kMaxLinks) + " are possible";
    return false;
  }
  if (config.window == 0 || config.window > kMaxRing) {
    error = "window " + std::to_string(config.window) + " is not in 1.." + std::to_string(kMaxRing);
    return false;
  }
  if (config.eager_bytes > (1u << 24)) {
    error = "eager_bytes " + std::to_string(config.eager_bytes) + " is above 16 MiB";
    return false;
  }
  for (const std::uint32_t peer : config.peers) {
    if (peer != config.node) continue;
    error = "node " + std::to_string(config.node) + " has a link to itself";
    return false;
  }
  if (config.lanes.empty()) return true;
  std::uint64_t lanes = 0;
  bool none = config.lanes.size() != config.peers.size();
  for (const Config::Lanes& link : config.lanes) {
    lanes += std::max(link.out, link.in);
    none = none || std::max(link.out, link.in) == 0;
  }
  if (!none && lanes <= kMaxLinks) return true;
  error = "node " + std::to_string(config.node) + " has " + std::to_string(lanes) + " lanes for " +
          std::to_string(config.peers.size()) + " links; expected one or more for each, at most " +
          std::to_string(kMaxLinks) + " together";
  return false;
}

bool LibfabricEndpoint::open(const Config& config, std::string& error) {
  if (!check(config, error)) return false;
  config_ = config;
  make_lanes();
  const std::size_t lanes = lanes_.size();
  Fabric::Size size;
  size.ports = config.lanes.empty() ? 1 : lanes;
  size.peers = config.lanes.empty() ? lanes : 1;
  // Completions a lane can have outstanding: its own writes, and every kind of word from the peer.
  size.completions = 64 + size.peers * (6 * std::bit_ceil(config.window) + 8);
  if (config.provider == "shm") sweep_our_number();
  if (!fabric_.open(config.provider, config.local_address, size, error)) return false;

  if (config.eager_bytes == 0) {
    const std::uint64_t piece = fabric_.inject_bytes() - sizeof(EagerHeader);
    config_.eager_bytes = fabric_.copies() ? static_cast<std::uint32_t>(piece) : kCopiedBytes;
  }
  layout_ = ArenaLayout(config.window, config_.eager_bytes);
  contexts_.resize(lanes * layout_.ring());
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    contexts_[i].lane = static_cast<std::uint32_t>(i / layout_.ring());
    contexts_[i].position = static_cast<std::uint32_t>(i % layout_.ring());
  }
  const std::uint64_t bytes = layout_.bytes(static_cast<std::uint32_t>(lanes == 0 ? 1 : lanes));
  arena_ = std::make_unique<std::byte[]>(bytes);
  staging_ = std::make_unique<std::byte[]>(bytes);
  if (fabric_.expose(arena_.get(), bytes, arena_exposed_)) return true;
  error =
      "provider " + fabric_.provider() + " refused to register " + std::to_string(bytes) + " bytes";
  return false;
}

void LibfabricEndpoint::make_lanes() {
  const bool direct = config_.lanes.empty();
  for (std::uint32_t l = 0; l < links(); ++l) {
    const Config::Lanes has = direct ? Config::Lanes{} : config_.lanes[l];
    const auto first = static_cast<std::uint32_t>(lanes_.size());
    links_.push_back({first, {has.out, 0, 0, 0}, {has.in, 0, 0, 0}});
    for (std::uint32_t i = 0; i < std::max(has.out, has.in); ++i) {
      Lane& lane = lanes_.emplace_back();
      lane.link = l;
      lane.peer = config_.peers[l];
      lane.target.port = direct ? 0 : first + i;
    }
  }
}

LibfabricEndpoint::~LibfabricEndpoint() {
  for (Prepared& prepared : prepared_) fabric_.hide(prepared.exposed);
  fabric_.hide(arena_exposed_);
  fabric_.close();
}

std::vector<std::uint32_t> LibfabricEndpoint::lane_peers() const {
  std::vector<std::uint32_t> peers;
  for (const Lane& lane : lanes_) peers.push_back(lane.peer);
  return peers;
}

std::vector<std::string> LibfabricEndpoint::addresses() const {
  std::vector<std::string> all;
  AddressHead head;
  head.node = config_.node;
  head.window = config_.window;
  head.eager_bytes = config_.eager_bytes;
  head.base = arena_exposed_.base;
  head.key = arena_exposed_.key;
  for (const Lane& lane : lanes_) {
    head.peer = lane.peer;
    head.lane = static_cast<std::uint32_t>(all.size());
    all.emplace_back(reinterpret_cast<const char*>(&head), sizeof(head));
    all.back() += fabric_.name(lane.target.port);
  }
  return all;
}

bool LibfabricEndpoint::decode_address(std::uint32_t index, const std::string& text,
                                       std::string& error) {
  Lane& lane = lanes_[index];
  const std::string who = "address of node " + std::to_string(lane.peer) + ": ";
  AddressHead head;
  if (text.size() <= sizeof(head)) {
    error = who + "too short";
    return false;
  }
  std::memcpy(&head, text.data(), sizeof(head));
  if (head.magic != AddressHead().magic || head.lane >= kMaxLinks) {
    error = who + "malformed";
    return false;
  }
  if (head.node != lane.peer || head.peer != config_.node) {
    error = who + "it is node " + std::to_string(head.node) + "'s, for node " +
            std::to_string(head.peer);
    return false;
  }
  if (head.window != config_.window || head.eager_bytes != config_.eager_bytes) {
    error = who + "window " + std::to_string(head.window) + " and eager_bytes " +
            std::to_string(head.eager_bytes) + " there, " + std::to_string(config_.window) +
            " and " + std::to_string(config_.eager_bytes) + " here";
    return false;
  }
  lane.remote = head.lane;
  lane.base = head.base;
  lane.key = head.key;
  return fabric_.insert(text.substr(sizeof(head)), lane.target, error);
}

Status LibfabricEndpoint::connect(const std::vector<std::string>& addresses, std::string& error) {
  Status status = start_connecting(addresses, error);
  if (status != Status::kOk) return status;
  while ((status = go_on_connecting(error)) == Status::kBusy) sched_yield();
  return status;
}

Status LibfabricEndpoint::start_connecting(const std::vector<std::string>& addresses,
                                           std::string& error) {
  if (addresses.size() != lanes_.size()) {
    error = std::to_string(addresses.size()) + " addresses for " + std::to_string(lanes_.size()) +
            " lanes";
    return Status::kBadArgument;
  }
  for (std::uint32_t l = 0; l < lanes_.size(); ++l) {
    if (!decode_address(l, addresses[l], error)) return Status::kBackEnd;
  }
  connected_ = true;
  greet();
  return Status::kOk;
}

// The lower node of a lane says hello first, the other answers: so only one of the two opens a
// connection.
void LibfabricEndpoint::greet() {
  greet_until_ = now() + kGreetTimeoutNs;
  for (std::uint32_t l = 0; l < lanes_.size(); ++l) {
    Lane& lane = lanes_[l];
    lane.box.hello = lane.box.hello || config_.node < lane.peer;
    if (lane.box.hello) pending_.insert(l);
  }
}

Status LibfabricEndpoint::go_on_connecting(std::string& error) {
  (void)progress();
  const Lane* missing = nullptr;
  for (const Lane& lane : lanes_) {
    if (!lane.hello || lane.box.hello) missing = &lane;
    if (lane.down) {
      error = "the link to node " + std::to_string(lane.peer) + " broke while connecting";
      return Status::kBackEnd;
    }
  }
  if (missing == nullptr) {
    fabric_.settle();
    return Status::kOk;
  }
  if (now() <= greet_until_) return Status::kBusy;
  error = "node " + std::to_string(missing->peer) + " did not connect within 60 s";
  return Status::kBackEnd;
}

}  // namespace espalier::ofi
