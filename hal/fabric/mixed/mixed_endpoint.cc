#include "hal/fabric/mixed/mixed_endpoint.h"

#include <sched.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "base/try.h"
#include "hal/fabric/address.h"
#include "hal/fabric/cables/cabled_links.h"
#include "hal/fabric/ofi/lanes/libfabric_endpoint.h"
#include "hal/fabric/provider_list.h"
#include "hal/fabric/random.h"
#include "hal/mem/host/access.h"

namespace espalier::ofi {
namespace {

constexpr std::uint64_t kMaxFabricWaitNs = 1'000'000;
constexpr std::uint64_t kYieldNs = 10'000;  // Shorter sleeps are not worth their system calls.

// The successive nodes that each host has; 1: not all have the same number, or not in succession.
std::uint32_t successive_nodes(const std::vector<HostName>& hosts) {
  const auto other = std::find_if(hosts.begin(), hosts.end(),
                                  [&](const HostName& host) { return host != hosts.front(); });
  const auto nodes = static_cast<std::size_t>(other - hosts.begin());
  std::set<HostName> found;
  for (std::size_t first = 0; first < hosts.size(); first += nodes) {
    for (std::size_t node = first; node < first + nodes; ++node) {
      if (node >= hosts.size() || hosts[node] != hosts[first]) return 1;
    }
    if (!found.insert(hosts[first]).second) return 1;
  }
  return static_cast<std::uint32_t>(nodes);
}

HostName digest(const std::string& text) {
  HostName name;
  crypto_generichash(name.data(), name.size(), reinterpret_cast<const unsigned char*>(text.data()),
                     text.size(), nullptr, 0);
  return name;
}

HostName unlike_any() {
  HostName name;
  fill_randomly(name.data(), name.size());
  return name;
}

}  // namespace

HostName host_name(const std::string& host) {
  if (!host.empty()) return digest(host);
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  bool is_known = static_cast<bool>(std::getline(file, text));
  for (const char* space : {"pid", "user", "net"}) {
    struct stat status = {};
    is_known = is_known && stat((std::string("/proc/self/ns/") + space).c_str(), &status) == 0;
    text += '/' + std::to_string(status.st_ino);
  }
  return is_known ? digest(text + '/' + mem::credentials_text()) : unlike_any();
}

Result<std::unique_ptr<MixedEndpoint>> MixedEndpoint::open(const AddedConfig& config) {
  std::unique_ptr<MixedEndpoint> mixed(new MixedEndpoint(config));
  mixed->config_.secret = {};
  mixed->host_ = host_name(config.host);
  mixed->links_.reserve(2 * config.max_links);  // each part may add so many
  for (std::vector<std::uint32_t>& each : mixed->numbers_) each.reserve(config.max_links);
  if (!config.is_without_cables) {
    if (auto opened = mixed->open_fabric(config); !opened) return fail(opened.error());
  }
  if (auto opened = mixed->open_memory(config); !opened) return fail(opened.error());
  mixed->address_ = mixed->make_address();
  return mixed;
}

Result<void> MixedEndpoint::open_fabric(AddedConfig part) {
  part.provider = fabric_provider(part.provider);
  if (has_cables_) {
    ESPALIER_TRY_TO(fabric_, CabledLinks::open(part));
  } else {
    ESPALIER_TRY_TO(fabric_, LibfabricEndpoint::open(part));
  }
  endpoints_[kFabric] = &fabric_->endpoint();
  return {};
}

Result<void> MixedEndpoint::open_memory(AddedConfig part) {
  const std::string refusal = mem::sharing_refusal();
  if (!refusal.empty()) {
    host_ = unlike_any();  // so all peers take the fabric to this process
    if (fabric_ != nullptr) return {};
    return fail("node " + std::to_string(part.node) +
                " has no cable, and cannot share memory: " + refusal);
  }
  part.eager_bytes = fabric_ == nullptr ? LibfabricEndpoint::eager_bytes_of(part)
                                        : static_cast<std::uint32_t>(eager_bytes());
  part.local_address = {};
  part.authenticate_data = false;  // It protects what crosses a network.
  ESPALIER_TRY_TO(memory_, MemoryEndpoint::open(part));
  endpoints_[kMemory] = &memory_->endpoint();
  return {};
}

bool MixedEndpoint::is_reached(std::uint32_t node) const {
  return !has_cables_ ||
         std::any_of(config_.cables.begin(), config_.cables.end(),
                     [node](const AddedConfig::Cable& each) { return each.node == node; });
}

std::string MixedEndpoint::make_address() const {
  const std::string memory = memory_ == nullptr ? "" : memory_->address();
  MixedHead head{.memory_bytes = static_cast<std::uint32_t>(memory.size()), .host = host_};
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + memory +
         (fabric_ == nullptr ? "" : fabric_->address());
}

Result<void> MixedEndpoint::set_addresses(std::vector<std::string> addresses) {
  if (!parts_.empty()) return fail("this endpoint has its addresses");
  std::array<std::vector<std::string>, 2> of_part;
  std::array<std::uint32_t, 2> peers = {};
  std::vector<HostName> hosts;
  for (std::vector<std::string>& each : of_part) each.resize(addresses.size());
  // The numbers of links would run out on one part while the other has some.
  const bool has_memory = has_cables_ || addresses.size() <= std::size_t{config_.max_links} + 1;
  for (std::uint32_t node = 0; node < addresses.size(); ++node) {
    const std::string& address = addresses[node];
    MixedHead head;
    parts_.push_back(kFabric);
    if (address.size() < sizeof(head)) {
      of_part[kFabric][node] = address;  // add_link() says what is wrong.
      if (node != config_.node) ++peers[kFabric];
      continue;
    }
    std::memcpy(&head, address.data(), sizeof(head));
    const std::size_t memory_bytes =
        std::min<std::size_t>(head.memory_bytes, address.size() - sizeof(head));
    if (head.magic != MixedHead().magic) continue;
    hosts.push_back(head.host);
    if (has_memory && head.host == host_) parts_.back() = kMemory;
    of_part[kMemory][node] =
        parts_.back() == kMemory ? address.substr(sizeof(head), memory_bytes) : std::string();
    of_part[kFabric][node] =
        parts_.back() == kFabric ? address.substr(sizeof(head) + memory_bytes) : std::string();
    if (node != config_.node && (parts_.back() == kMemory || is_reached(node))) {
      ++peers[parts_.back()];
    }
  }
  for (const Part part : kParts) {
    if (owner(part) == nullptr) continue;
    if (auto set = owner(part)->set_addresses(std::move(of_part[part])); !set) return set;
  }
  if (has_memory && hosts.size() == addresses.size()) nodes_per_host_ = successive_nodes(hosts);
  if (peers[kMemory] == 0 && fabric_ != nullptr) {
    memory_.reset();
  } else if (peers[kFabric] == 0) {
    fabric_.reset();
  }
  return {};
}

AddedLinks* MixedEndpoint::owner(Part part) const {
  return part == kMemory ? static_cast<AddedLinks*>(memory_.get()) : fabric_.get();
}

Endpoint& MixedEndpoint::endpoint() {
  if (fabric_ == nullptr) return of(kMemory);
  if (memory_ == nullptr) return of(kFabric);
  return *this;
}

void MixedEndpoint::adopt() {
  for (const Part part : kParts) {
    if (owner(part) == nullptr || (part == kFabric && has_cables_)) continue;
    for (const std::uint32_t count = of(part).links(); numbers_[part].size() < count;) {
      (void)number_of(part, static_cast<std::uint32_t>(numbers_[part].size()));
    }
  }
}

std::uint32_t MixedEndpoint::number_of(Part part, std::uint32_t link) {
  std::vector<std::uint32_t>& numbers = numbers_[part];
  ESPALIER_ASSERT(link < of(part).links());
  if (link >= numbers.size()) numbers.resize(link + 1, kNoNumber);
  if (numbers[link] == kNoNumber) {
    links_.push_back({part, link});
    numbers[link] = links() - 1;
  }
  ESPALIER_ASSERT(links_[numbers[link]].number == link && links_[numbers[link]].part == part);
  return numbers[link];
}

Result<std::uint32_t> MixedEndpoint::add_link(std::uint32_t node) {
  if (node < parts_.size() && node != config_.node && parts_[node] == kFabric &&
      !is_reached(node)) {
    return fail("node " + std::to_string(config_.node) + ": no cable leads to node " +
                std::to_string(node));
  }
  AddedLinks* const only = memory_ == nullptr ? fabric_.get() : owner(kMemory);
  if (fabric_ == nullptr || memory_ == nullptr) return only->add_link(node);
  const Part part = node < parts_.size() ? parts_[node] : kFabric;
  const auto link = owner(part)->add_link(node);
  if (!link) return link;
  adopt();
  return number_of(part, *link);
}

Result<bool> MixedEndpoint::connect_links(std::span<const std::uint32_t> links) {
  if (fabric_ == nullptr) return memory_->connect_links(links);
  if (memory_ == nullptr) return fabric_->connect_links(links);
  std::array<std::vector<std::uint32_t>, 2> of_part;
  for (const std::uint32_t link : links) {
    if (link >= links_.size()) return fail("there is no link " + std::to_string(link));
    of_part[links_[link].part].push_back(links_[link].number);
  }
  bool all = true;
  for (const Part part : kParts) {
    const auto connected = owner(part)->connect_links(of_part[part]);
    if (!connected) return connected;
    all = all && *connected;
  }
  adopt();
  return all;
}

std::string MixedEndpoint::way_of_link(std::uint32_t link) const {
  if (fabric_ == nullptr) return {};
  if (memory_ == nullptr) return fabric_->way_of_link(link);
  const bool is_fabric = link < links_.size() && links_[link].part == kFabric;
  return is_fabric ? fabric_->way_of_link(links_[link].number) : "";
}

Result<void> MixedEndpoint::set_secret(const Secret& secret) {
  return fabric_ == nullptr ? memory_->set_secret(secret) : fabric_->set_secret(secret);
}

std::uint64_t MixedEndpoint::rejected_words() const {
  return fabric_ == nullptr ? 0 : fabric_->rejected_words();
}

Result<void> MixedEndpoint::keep(std::span<const Region> regions) {
  if (fabric_ == nullptr) return {};
  return fabric_->keep(regions);
}

void MixedEndpoint::forget(std::span<const Region> regions) {
  if (fabric_ != nullptr) fabric_->forget(regions);
}

// What follows is called only while there are both parts.

Status MixedEndpoint::prepare(const Region* regions, std::uint32_t count) {
  const Status status = of(kMemory).prepare(regions, count);
  return status == Status::kOk ? of(kFabric).prepare(regions, count) : status;
}

void MixedEndpoint::release_regions() {
  for (const Part part : kParts) of(part).release_regions();
}

Status MixedEndpoint::post_receive(std::uint32_t link, const ReceivePost& post) {
  if (link >= links_.size()) return Status::kBadArgument;
  return part_of(link).post_receive(links_[link].number, post);
}

Status MixedEndpoint::post_send(std::uint32_t link, const SendPost& post) {
  if (link >= links_.size()) return Status::kBadArgument;
  return part_of(link).post_send(links_[link].number, post);
}

Status MixedEndpoint::post_control(std::uint32_t link, const Control& control) {
  if (link >= links_.size()) return Status::kBadArgument;
  return part_of(link).post_control(links_[link].number, control);
}

bool MixedEndpoint::poll(Completion& completion) {
  for (const Part part : {turn_, turn_ == kMemory ? kFabric : kMemory}) {
    const bool found = of(part).poll(completion);
    adopt();
    if (!found) continue;
    completion.link = number_of(part, completion.link);
    ESPALIER_ASSERT(completion.link < links_.size());
    turn_ = part == kMemory ? kFabric : kMemory;
    silent_since_ = 0;
    return true;
  }
  return false;
}

void MixedEndpoint::release() {
  for (const Part part : kParts) of(part).release();
}

void MixedEndpoint::wake() {
  if (memory_ != nullptr) memory_->wake();
  if (fabric_ != nullptr) fabric_->wake();
}

void MixedEndpoint::wait(std::uint64_t until) {
  const std::uint64_t time = now();
  if (silent_since_ == 0) silent_since_ = time;
  if (memory_->look()) return;
  const std::uint64_t block_ns = std::min((time - silent_since_) / 16, kMaxFabricWaitNs);
  of(kFabric).wait(std::min(until, time + block_ns));
  if (block_ns < kYieldNs) sched_yield();
}

}  // namespace espalier::ofi
