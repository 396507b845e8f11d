// Opening, addresses, connecting.

#include <sched.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <mutex>

#include "hal/ofi/libfabric_endpoint.h"
#include "hal/ofi/sweep.h"

namespace espalier::ofi {
namespace {

constexpr std::uint32_t kMagic = 0x31495045;  // "EPI1"
constexpr std::uint32_t kCopiedBytes = 16384;
constexpr std::uint64_t kGreetTimeoutNs = 60'000'000'000;

// The fixed part of an address; the peers' numbers and libfabric's name follow.
struct AddressHead {
  std::uint32_t magic = kMagic;
  std::uint32_t node = 0;
  std::uint32_t window = 0;
  std::uint32_t eager_bytes = 0;
  std::uint64_t base = 0;
  std::uint64_t key = 0;
  std::uint32_t peers = 0;
  std::uint32_t name_bytes = 0;
};

// How many of peers[0..link) are `node`: parallel links between two nodes pair up in order.
std::uint32_t occurrence(const std::vector<std::uint32_t>& peers, std::uint32_t link) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < link; ++i) count += peers[i] == peers[link] ? 1 : 0;
  return count;
}

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
  return true;
}

bool LibfabricEndpoint::open(const Config& config, std::string& error) {
  if (!check(config, error)) return false;
  config_ = config;
  const std::uint32_t links = this->links();
  // Completions a link can have outstanding: its own writes, and every kind of word from the peer.
  const std::size_t completions = 64 + std::size_t{links} * (6 * std::bit_ceil(config.window) + 8);
  if (config.provider == "shm") sweep_our_number();
  if (!fabric_.open(config.provider, config.local_address, links, completions, error)) return false;

  if (config.eager_bytes == 0) {
    const std::uint64_t piece = fabric_.inject_bytes() - sizeof(EagerHeader);
    config_.eager_bytes = fabric_.copies() ? static_cast<std::uint32_t>(piece) : kCopiedBytes;
  }
  layout_ = ArenaLayout(config.window, config_.eager_bytes);
  links_.resize(links);
  for (std::uint32_t l = 0; l < links; ++l) links_[l].peer = config.peers[l];
  contexts_.resize(std::size_t{links} * layout_.ring());
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    contexts_[i].link = static_cast<std::uint32_t>(i / layout_.ring());
    contexts_[i].position = static_cast<std::uint32_t>(i % layout_.ring());
  }
  const std::uint64_t bytes = layout_.bytes(links == 0 ? 1 : links);
  arena_ = std::make_unique<std::byte[]>(bytes);
  staging_ = std::make_unique<std::byte[]>(bytes);
  if (!fabric_.expose(arena_.get(), bytes, arena_exposed_)) {
    error = "provider " + fabric_.provider() + " refused to register " + std::to_string(bytes) +
            " bytes";
    return false;
  }
  std::string name;
  if (!fabric_.name(name, error)) return false;
  address_ = encode_address(name);
  return true;
}

LibfabricEndpoint::~LibfabricEndpoint() {
  for (Prepared& prepared : prepared_) fabric_.hide(prepared.exposed);
  fabric_.hide(arena_exposed_);
  fabric_.close();
}

std::string LibfabricEndpoint::encode_address(const std::string& name) const {
  AddressHead head;
  head.node = config_.node;
  head.window = config_.window;
  head.eager_bytes = config_.eager_bytes;
  head.base = arena_exposed_.base;
  head.key = arena_exposed_.key;
  head.peers = links();
  head.name_bytes = static_cast<std::uint32_t>(name.size());
  std::string text(reinterpret_cast<const char*>(&head), sizeof(head));
  text.append(reinterpret_cast<const char*>(config_.peers.data()),
              config_.peers.size() * sizeof(std::uint32_t));
  return text + name;
}

bool LibfabricEndpoint::decode_address(std::uint32_t index, const std::string& text,
                                       std::string& error) {
  Link& link = links_[index];
  const std::string who = "address of node " + std::to_string(link.peer) + ": ";
  AddressHead head;
  if (text.size() < sizeof(head)) {
    error = who + "too short";
    return false;
  }
  std::memcpy(&head, text.data(), sizeof(head));
  if (head.magic != kMagic || head.peers > kMaxLinks ||
      text.size() != sizeof(head) + head.peers * sizeof(std::uint32_t) + head.name_bytes) {
    error = who + "malformed";
    return false;
  }
  if (head.node != link.peer) {
    error = who + "it is node " + std::to_string(head.node) + "'s";
    return false;
  }
  if (head.window != config_.window || head.eager_bytes != config_.eager_bytes) {
    error = who + "window " + std::to_string(head.window) + " and eager_bytes " +
            std::to_string(head.eager_bytes) + " there, " + std::to_string(config_.window) +
            " and " + std::to_string(config_.eager_bytes) + " here";
    return false;
  }
  std::vector<std::uint32_t> peers(head.peers);
  std::memcpy(peers.data(), text.data() + sizeof(head), peers.size() * sizeof(std::uint32_t));
  const std::uint32_t wanted = occurrence(config_.peers, index);
  link.remote = head.peers;
  for (std::uint32_t l = 0; l < head.peers; ++l) {
    if (peers[l] == config_.node && occurrence(peers, l) == wanted) link.remote = l;
  }
  if (link.remote == head.peers) {
    error = who + "it has no link to node " + std::to_string(config_.node);
    return false;
  }
  link.base = head.base;
  link.key = head.key;
  return fabric_.insert(text.substr(text.size() - head.name_bytes), link.address, error);
}

Status LibfabricEndpoint::connect(const std::vector<std::string>& addresses, std::string& error) {
  Status status = start_connecting(addresses, error);
  if (status != Status::kOk) return status;
  while ((status = go_on_connecting(error)) == Status::kBusy) sched_yield();
  return status;
}

Status LibfabricEndpoint::start_connecting(const std::vector<std::string>& addresses,
                                           std::string& error) {
  if (addresses.size() != links_.size()) {
    error = std::to_string(addresses.size()) + " addresses for " + std::to_string(links_.size()) +
            " links";
    return Status::kBadArgument;
  }
  for (std::uint32_t l = 0; l < links(); ++l) {
    if (!decode_address(l, addresses[l], error)) return Status::kBackEnd;
  }
  connected_ = true;
  greet();
  return Status::kOk;
}

// The lower node of a link says hello first, the other answers: so only one of the two opens a
// connection.
void LibfabricEndpoint::greet() {
  greet_until_ = now() + kGreetTimeoutNs;
  for (std::uint32_t l = 0; l < links(); ++l) {
    Link& link = links_[l];
    link.box.hello = link.box.hello || config_.node < link.peer;
    if (link.box.hello) pending_.insert(l);
  }
}

Status LibfabricEndpoint::go_on_connecting(std::string& error) {
  (void)progress();
  const Link* missing = nullptr;
  for (const Link& link : links_) {
    if (!link.hello || link.box.hello) missing = &link;
    if (link.down) {
      error = "the link to node " + std::to_string(link.peer) + " broke while connecting";
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
