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

Status LaneConnector::start(const std::vector<std::string>& addresses, std::string& error) {
  if (addresses.size() != state_.lanes.size()) {
    error = std::to_string(addresses.size()) + " addresses for " +
            std::to_string(state_.lanes.size()) + " lanes";
    return Status::kBadArgument;
  }
  for (Lane& lane : state_.lanes) {
    if (!decode(lane, addresses[lane.index], error)) return Status::kBackEnd;
  }
  state_.connected = true;
  greet();
  return Status::kOk;
}

bool LaneConnector::decode(Lane& lane, const std::string& address, std::string& error) {
  const Config& config = state_.config;
  const std::string where = "address of node " + std::to_string(lane.peer) + ": ";
  AddressHead head;
  if (address.size() <= sizeof(head)) {
    error = where + "too short";
    return false;
  }
  std::memcpy(&head, address.data(), sizeof(head));
  if (head.magic != AddressHead().magic || head.lane >= kMaxLinks) {
    error = where + "malformed";
    return false;
  }
  if (head.node != lane.peer || head.peer != config.node) {
    error = where + "it belongs to node " + std::to_string(head.node) + " and is for node " +
            std::to_string(head.peer);
    return false;
  }
  if (head.window != config.window || head.eager_bytes != config.eager_bytes) {
    error = where + "window " + std::to_string(head.window) + " and eager_bytes " +
            std::to_string(head.eager_bytes) + " there, " + std::to_string(config.window) +
            " and " + std::to_string(config.eager_bytes) + " here";
    return false;
  }
  lane.remote_lane = head.lane;
  lane.remote_base = head.base;
  lane.remote_key = head.key;
  return state_.domain.insert(address.substr(sizeof(head)), lane.target, error);
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

Status LaneConnector::check(std::string& error) {
  const Lane* missing = nullptr;
  for (const Lane& lane : state_.lanes) {
    if (!lane.hello_received || lane.outbox.hello) missing = &lane;
    if (lane.down) {
      error = "the link to node " + std::to_string(lane.peer) + " broke while connecting";
      return Status::kBackEnd;
    }
  }
  if (missing == nullptr) {
    state_.domain.stop_searching_locks();
    return Status::kOk;
  }
  if (monotonic_ns() <= greet_until_ns_) return Status::kBusy;
  error = "node " + std::to_string(missing->peer) + " did not connect within 60 s";
  return Status::kBackEnd;
}

}  // namespace espalier::ofi
