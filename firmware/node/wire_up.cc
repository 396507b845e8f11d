#include "firmware/node/wire_up.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/counted.h"
#include "base/try.h"
#include "firmware/node/control.h"

namespace espalier::node {

Result<void> ControlWireUp::publish(std::uint32_t node, const std::vector<std::string>& addresses,
                                    const std::vector<std::uint32_t>& peers) {
  if (peers.size() > control::kMaxLanes) {
    return fail(counted(peers.size(), "lane") + "; expected at most " +
                std::to_string(control::kMaxLanes));
  }
  control::Hello hello{.node = node,
                       .pid = pid_ != 0 ? pid_ : getpid(),
                       .release = release_,
                       .release_digest = release_digest_};
  (void)gethostname(hello.host, sizeof hello.host - 1);
  hello.lanes = lanes_ = static_cast<std::uint32_t>(peers.size());
  std::copy(peers.begin(), peers.end(), hello.peers);
  for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
    const std::string& address = addresses[lane];
    if (address.size() > control::kMaxAddressBytes) {
      return fail("an address of " + counted(address.size(), "byte") + "; expected at most " +
                  std::to_string(control::kMaxAddressBytes));
    }
    hello.addresses[lane].size = static_cast<std::uint32_t>(address.size());
    std::copy(address.begin(), address.end(), hello.addresses[lane].bytes);
  }
  if (control::send(channel_, hello)) return {};
  return fail("cannot send this node's addresses: the launcher is gone");
}

Result<std::vector<std::string>> ControlWireUp::collect() {
  control::Any packet;
  int descriptor = -1;
  control::Received received = control::Received::kNothing;
  while (received == control::Received::kNothing) {
    received = control::receive(channel_, packet, descriptor, wait_ ? 100 : -1);
    if (wait_) wait_();
  }
  if (received != control::Received::kPacket || packet.packet != control::Packet::kPeers ||
      packet.peers.lanes != lanes_) {
    return fail("the launcher ended before it sent the neighbours' addresses");
  }
  std::copy(std::begin(packet.peers.secret), std::end(packet.peers.secret), secret_.begin());
  std::vector<std::string> addresses;
  for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
    const control::Address& address = packet.peers.addresses[lane];
    addresses.emplace_back(address.bytes, std::min(address.size, control::kMaxAddressBytes));
  }
  return addresses;
}

Result<void> publish_all(const Endpoints& endpoints, std::uint32_t node, ControlWireUp& wire_up) {
  std::vector<std::string> own;
  std::vector<std::uint32_t> peers;
  for (const auto& endpoint : endpoints) {
    for (const std::string& address : endpoint->addresses()) own.push_back(address);
    for (const std::uint32_t peer : endpoint->lane_peers()) peers.push_back(peer);
  }
  return wire_up.publish(node, own, peers);
}

Result<void> start_connecting_all(const Endpoints& endpoints, ControlWireUp& wire_up) {
  ESPALIER_TRY_TO(const auto collected, wire_up.collect());
  auto next = collected.begin();
  for (const auto& endpoint : endpoints) {
    const auto end = next + static_cast<std::ptrdiff_t>(endpoint->lane_peers().size());
    auto started = endpoint->set_secret(*wire_up.secret());
    if (started) started = endpoint->start_connecting({next, end});
    if (!started) return fail("cannot connect to the neighbours: " + started.error().message);
    next = end;
  }
  return {};
}

Result<bool> go_on_connecting_all(const Endpoints& endpoints) {
  bool all = true;
  for (const auto& endpoint : endpoints) {
    const auto connected = endpoint->go_on_connecting();
    if (!connected) return fail("cannot connect to the neighbours: " + connected.error().message);
    all = all && *connected;
  }
  return all;
}

}  // namespace espalier::node
