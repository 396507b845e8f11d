#include "hal/ofi/lane_connector.h"

#include <cstring>

#include "espalier/hal/ofi/address.h"

namespace espalier::ofi {
namespace {

constexpr std::uint64_t kGreetTimeoutNs = 60'000'000'000;

}  // namespace

std::vector<std::string> LaneConnector::addresses() const {
  std::vector<std::string> all;
  AddressHead head;
  head.node = state_.config.node;
  head.window = state_.config.window;
  head.eager_bytes = state_.config.eager_bytes;
  head.base = state_.arena_registration.base;
  head.key = state_.arena_registration.key;
  for (const Lane& lane : state_.lanes) {
    head.peer = lane.peer;
    head.lane = lane.index;
    all.emplace_back(reinterpret_cast<const char*>(&head), sizeof(head));
    all.back() += state_.domain.name(lane.target.port);
  }
  return all;
}

Result<void> LaneConnector::start(const std::vector<std::string>& addresses) {
  if (addresses.size() != state_.lanes.size()) {
    return fail(std::to_string(addresses.size()) + " addresses for " +
                std::to_string(state_.lanes.size()) + " lanes");
  }
  for (Lane& lane : state_.lanes) {
    if (auto decoded = decode(lane, addresses[lane.index]); !decoded) return decoded;
  }
  state_.connected = true;
  greet();
  return {};
}

Result<void> LaneConnector::decode(Lane& lane, const std::string& address) {
  const Config& config = state_.config;
  const std::string where = "address of node " + std::to_string(lane.peer) + ": ";
  AddressHead head;
  if (address.size() <= sizeof(head)) {
    return fail(where + "too short");
  }
  std::memcpy(&head, address.data(), sizeof(head));
  if (head.magic != AddressHead().magic || head.lane >= kMaxLinks) {
    return fail(where + "malformed");
  }
  if (head.node != lane.peer || head.peer != config.node) {
    return fail(where + "it belongs to node " + std::to_string(head.node) + " and is for node " +
                std::to_string(head.peer));
  }
  if (head.window != config.window || head.eager_bytes != config.eager_bytes) {
    return fail(where + "window " + std::to_string(head.window) + " and eager_bytes " +
                std::to_string(head.eager_bytes) + " there, " + std::to_string(config.window) +
                " and " + std::to_string(config.eager_bytes) + " here");
  }
  lane.remote_lane = head.lane;
  lane.remote_base = head.base;
  lane.remote_key = head.key;
  return state_.domain.insert(address.substr(sizeof(head)), lane.target);
}

// The lower node of a lane says hello first and the other answers, so only one of the two opens a
// connection.
void LaneConnector::greet() {
  greet_until_ns_ = monotonic_ns() + kGreetTimeoutNs;
  for (Lane& lane : state_.lanes) {
    if (state_.config.node < lane.peer) lane.outbox.hello = true;
    if (lane.outbox.hello) state_.to_push.insert(lane.index);
  }
}

Result<bool> LaneConnector::check() {
  const Lane* missing = nullptr;
  for (const Lane& lane : state_.lanes) {
    if (!lane.hello_received || lane.outbox.hello) missing = &lane;
    if (lane.down) {
      return fail("the link to node " + std::to_string(lane.peer) + " broke while connecting");
    }
  }
  if (missing == nullptr) {
    state_.domain.stop_searching_locks();
    return true;
  }
  if (monotonic_ns() <= greet_until_ns_) return false;
  return fail("node " + std::to_string(missing->peer) + " did not connect within 60 s");
}

}  // namespace espalier::ofi
