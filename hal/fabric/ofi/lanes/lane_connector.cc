#include "hal/fabric/ofi/lanes/lane_connector.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/counted.h"
#include "base/process/open_files.h"
#include "hal/fabric/provider_list.h"

namespace espalier::ofi {
namespace {

// A greeting is lost if the peer has no addresses yet, or if another greeting overwrote it.
constexpr std::uint64_t kFirstGreetDelayNs = 50'000'000;
// The higher node of a link greets if the lower one has not: that one may be in another collective.
constexpr std::uint64_t kHigherGreetDelayNs = 100'000'000;
constexpr std::uint64_t kMaxGreetDelayNs = 1'000'000'000;

std::string seconds(std::uint64_t ns) {
  const std::uint64_t ms = ns / 1'000'000;
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

}  // namespace

AddressHead LaneConnector::head() const {
  AddressHead head{.node = state_.config.node,
                   .window = state_.config.window,
                   .eager_bytes = state_.config.eager_bytes,
                   .authenticates_data = state_.config.authenticate_data ? 1u : 0u,
                   .member = state_.member,
                   .base = state_.arena_registration.base,
                   .key = state_.arena_registration.key};
  const Registration& greetings =
      state_.shared != nullptr ? state_.shared->greetings() : state_.arena_registration;
  head.greetings = greetings.base;
  head.greetings_key = greetings.key;
  head.greetings_count = state_.greetings_count();
  head.nonce = state_.authentication.nonce();
  return head;
}

std::vector<std::string> LaneConnector::addresses() const {
  std::vector<std::string> all;
  AddressHead head = this->head();
  for (const Lane& lane : state_.lanes) {
    head.peer = lane.peer;
    head.lane = lane.index;
    head.key = state_.domain->key(state_.arena_registration, lane.target.port);
    if (state_.shared == nullptr) head.greetings_key = head.key;
    all.emplace_back(reinterpret_cast<const char*>(&head), sizeof(head));
    all.back() += state_.domain->name(lane.target.port);
  }
  return all;
}

Result<void> LaneConnector::check_secret() const {
  if (!state_.config.authenticate_data || state_.authentication.has_secret()) return {};
  return fail("node " + std::to_string(state_.config.node) +
              ": authenticate_data needs a job secret");
}

Result<void> LaneConnector::start(const std::vector<std::string>& addresses) {
  if (auto good = check_secret(); !good) return good;
  if (addresses.size() != state_.lanes.size()) {
    return fail(counted(addresses.size(), "address") + " for " +
                counted(state_.lanes.size(), "lane"));
  }
  for (Lane& lane : state_.lanes) {
    if (auto decoded = decode(lane, addresses[lane.index]); !decoded) return decoded;
    if (auto inserted = insert(lane, addresses[lane.index]); !inserted) return inserted;
  }
  greet_until_ns_ = monotonic_ns() + state_.config.connect_deadline_ns;
  for (Lane& lane : state_.lanes) {
    lane.is_open = true;
    greet(lane);
  }
  return {};
}

Result<void> LaneConnector::begin() {
  if (has_addresses()) return fail("this endpoint has its addresses");
  if (auto good = check_secret(); !good) return good;
  greet_until_ns_ = UINT64_MAX;
  return {};
}

Result<void> LaneConnector::start_link(std::uint32_t link, std::span<const std::string> addresses) {
  ESPALIER_ASSERT(link < state_.links.size() && has_addresses());
  const LinkState& to = state_.links[link];
  ESPALIER_ASSERT(addresses.size() == std::max(to.out.lanes, to.in.lanes));
  Lane* const lanes = &state_.lanes[to.first_lane];
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (auto decoded = decode(lanes[i], addresses[i]); !decoded) return decoded;
    if (auto inserted = insert(lanes[i], addresses[i]); !inserted) return inserted;
  }
  // The higher node waits for the hello, because otherwise both might open a connection.
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    lanes[i].is_open = state_.config.node < lanes[i].peer;
    greet(lanes[i]);
  }
  return {};
}

Result<bool> LaneConnector::check_link(std::uint32_t link) {
  ESPALIER_ASSERT(link < state_.links.size());
  const LinkState& to = state_.links[link];
  bool all = true;
  for (std::uint32_t i = 0; i < std::max(to.out.lanes, to.in.lanes); ++i) {
    Lane& lane = state_.lanes[to.first_lane + i];
    if (lane.connect_until_ns == 0) {
      lane.connect_until_ns = monotonic_ns() + state_.config.connect_deadline_ns;
    }
    const auto one = connected(lane, lane.connect_until_ns);
    if (!one) return one;
    all = all && *one;
  }
  return all;
}

std::string LaneConnector::address() const {
  AddressHead head = this->head();
  head.peer = head.lane = AddressHead::kAny;
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + state_.domain->name(0);
}

Result<void> LaneConnector::set_addresses(std::vector<std::string> addresses) {
  if (!addresses_.empty()) return fail("this endpoint has its addresses");
  if (auto good = check_secret(); !good) return good;
  addresses_ = std::move(addresses);
  return {};
}

std::string LaneConnector::port_name_of(std::uint32_t node) const {
  const bool is_known = node < addresses_.size() && addresses_[node].size() > sizeof(AddressHead);
  return is_known ? addresses_[node].substr(sizeof(AddressHead)) : "";
}

Lane* LaneConnector::find_lane(std::uint32_t node) {
  for (Lane& lane : state_.lanes) {
    if (lane.peer == node) return &lane;
  }
  return nullptr;
}

Result<std::uint32_t> LaneConnector::add_link(std::uint32_t node) {
  if (const Lane* const present = find_lane(node)) return present->link;
  if (auto free = check_files(); !free) return fail(free.error());
  return make_link(node);
}

// libfabric opens a connection per peer later, while it polls, and drops its messages without an
// error if no descriptor is free then. A port for long messages that is open will need one, too.
Result<void> LaneConnector::check_files() const {
  if (!binds_address(state_.config.provider)) return {};
  const auto closed = std::count_if(state_.lanes.begin(), state_.lanes.end(),
                                    [](const Lane& lane) { return !lane.is_open; });
  const std::uint64_t of_long_port = state_.long_port.port != 0 ? 1 : 0;
  return check_free_files(static_cast<std::uint64_t>(closed) + 1 + of_long_port,
                          "node " + std::to_string(state_.config.node));
}

Result<std::uint32_t> LaneConnector::make_link(std::uint32_t node) {
  if (node >= addresses_.size() || node == state_.config.node) {
    return fail("node " + std::to_string(state_.config.node) + ": no address of node " +
                std::to_string(node));
  }
  if (state_.links.size() >= state_.max_links) {
    return fail("node " + std::to_string(state_.config.node) + " has " +
                counted(state_.links.size(), "link") + ", the limit; no room for one to node " +
                std::to_string(node));
  }
  if (state_.shared != nullptr && !state_.shared->has_lane_left()) {
    return fail("node " + std::to_string(state_.config.node) + ": this process has " +
                std::to_string(kMaxLaneIds) + " links, the limit");
  }
  Lane lane;
  lane.peer = node;
  if (auto decoded = decode(lane, addresses_[node]); !decoded) return fail(decoded.error());
  if (auto inserted = insert(lane, addresses_[node]); !inserted) return fail(inserted.error());
  state_.add_link(node, 1, 1, true);
  state_.add_contexts();
  Lane& added = state_.lanes.back();
  ESPALIER_ASSERT(added.peer == node && added.link + 1 == state_.links.size());
  added.target = lane.target;
  added.remote_base = lane.remote_base;
  added.remote_key = lane.remote_key;
  added.remote_member = lane.remote_member;
  added.remote_greetings = lane.remote_greetings;
  added.remote_greetings_key = lane.remote_greetings_key;
  added.remote_greetings_count = lane.remote_greetings_count;
  added.remote_name = lane.remote_name;
  added.opens = lane.opens;
  added.outbox.goodbye = state_.has_departed;
  added.send_key = lane.send_key;
  added.receive_key = lane.receive_key;
  state_.check_lane(added);
  return added.link;
}

Result<void> LaneConnector::start_links(std::span<const std::uint32_t> links) {
  const std::uint64_t time_ns = monotonic_ns();
  for (const std::uint32_t link : links) {
    if (link >= state_.links.size()) {
      return fail("node " + std::to_string(state_.config.node) + ": cannot connect link " +
                  std::to_string(link));
    }
    Lane& lane = state_.lanes[state_.links[link].first_lane];
    ESPALIER_ASSERT(lane.link == link);
    if (lane.connect_until_ns != 0) continue;
    lane.connect_until_ns = time_ns + state_.config.connect_deadline_ns;
    if (lane.hello_received) continue;
    lane.greet_delay_ns = lane.opens ? kFirstGreetDelayNs : kHigherGreetDelayNs;
    lane.greet_again_at_ns = time_ns + lane.greet_delay_ns;
    state_.greeting.insert(lane.index);
    if (!lane.opens) continue;
    lane.outbox.greeting = true;
    state_.to_push.insert(lane.index);
  }
  return {};
}

void LaneConnector::repeat_greetings() {
  const std::uint64_t time_ns = monotonic_ns();
  state_.greeting.for_each([&](std::uint32_t index) {
    Lane& lane = state_.lanes[index];
    ESPALIER_ASSERT(!lane.is_open);
    if (time_ns < lane.greet_again_at_ns) return;
    ESPALIER_ASSERT(lane.greet_delay_ns != 0);
    lane.greet_delay_ns = std::min(2 * lane.greet_delay_ns, kMaxGreetDelayNs);
    lane.greet_again_at_ns = time_ns + lane.greet_delay_ns;
    lane.outbox.greeting = true;
    state_.to_push.insert(index);
  });
}

std::uint64_t LaneConnector::next_greeting_ns() const {
  std::uint64_t next = UINT64_MAX;
  state_.greeting.for_each(
      [&](std::uint32_t index) { next = std::min(next, state_.lanes[index].greet_again_at_ns); });
  return next;
}

void LaneConnector::hello_arrived(Lane& lane, std::uint64_t code) {
  if (code != state_.authentication.word_code(lane.receive_key, Opcode::kHello, 0)) {
    return state_.reject(lane.peer, "hello");
  }
  lane.hello_received = true;
  if (lane.peer < state_.config.node) lane.outbox.hello = true;
  if (!lane.is_open || lane.outbox.hello) state_.to_push.insert(lane.index);
  lane.is_open = true;
}

// A greeting that cannot be answered yet is ignored: the peer repeats it.
void LaneConnector::greeting_arrived(std::uint32_t node) {
  if (state_.max_links == 0) return;
  GreetingEntry entry;
  const std::byte* const greetings =
      state_.shared != nullptr ? state_.shared->greetings_memory() : state_.arena.get();
  std::memcpy(&entry, greetings + greeting_offset(state_.member, node, state_.greetings_count()),
              sizeof(entry));
  if (entry.node != node || entry.lane >= kMaxLinks) return;
  Lane* lane = find_lane(node);
  Lane unknown;
  if (lane == nullptr) {
    // Its link is added if the greeting is authentic.
    unknown.peer = node;
    if (node == state_.config.node || node >= addresses_.size() ||
        !decode(unknown, addresses_[node])) {
      return;
    }
  }
  const DirectionKey& key = lane != nullptr ? lane->receive_key : unknown.receive_key;
  if (entry.code !=
      state_.authentication.entry_code(key, Opcode::kGreeting, &entry, kCovered<GreetingEntry>)) {
    return state_.has_own_greetings() ? state_.reject(node, "greeting") : (void)0;
  }
  if (lane == nullptr && make_link(node)) lane = find_lane(node);
  if (lane == nullptr) return;
  ESPALIER_ASSERT(lane->peer == node);
  lane->remote_lane = entry.lane;
  lane->remote_id = entry.id;
  lane->is_open = true;
  lane->hello_received = true;
  state_.greeting.erase(lane->index);
  ++state_.opened;
  lane->outbox.greeting = entry.answers == 0;
  state_.to_push.insert(lane->index);  // also for what was posted earlier
}

Result<void> LaneConnector::decode(Lane& lane, const std::string& address) {
  const Config& config = state_.config;
  const std::string where = "address of node " + std::to_string(lane.peer) + ": ";
  AddressHead head;
  if (address.size() <= sizeof(head)) {
    return fail(where + "too short");
  }
  std::memcpy(&head, address.data(), sizeof(head));
  if (head.magic != AddressHead().magic ||
      (head.lane >= kMaxLinks && head.lane != AddressHead::kAny)) {
    return fail(where + "malformed");
  }
  const bool for_all = state_.max_links != 0;
  if (head.node != lane.peer || head.peer != (for_all ? AddressHead::kAny : config.node)) {
    return fail(
        where + "it belongs to node " + std::to_string(head.node) + " and is for " +
        (head.peer == AddressHead::kAny ? "all nodes" : "node " + std::to_string(head.peer)));
  }
  if (head.window != config.window || head.eager_bytes != config.eager_bytes) {
    return fail(where + "window " + std::to_string(head.window) + " and eager_bytes " +
                std::to_string(head.eager_bytes) + " there, " + std::to_string(config.window) +
                " and " + std::to_string(config.eager_bytes) + " here");
  }
  if ((head.authenticates_data != 0) != config.authenticate_data) {
    return fail(where + "authenticate_data is " +
                (config.authenticate_data ? "off there and on here" : "on there and off here") +
                "; expected the same on all nodes");
  }
  lane.remote_lane = lane.remote_id = head.lane;
  lane.remote_base = head.base;
  lane.remote_key = head.key;
  if (head.greetings_count == 0 || !std::has_single_bit(std::uint32_t{head.greetings_count})) {
    return fail(where + "malformed");
  }
  lane.remote_member = head.member;
  lane.remote_greetings = head.greetings;
  lane.remote_greetings_key = head.greetings_key;
  lane.remote_greetings_count = head.greetings_count;
  lane.remote_name = address.substr(sizeof(head));
  // With a SharedFabric, the same end opens for all its members.
  lane.opens = state_.shared != nullptr ? state_.domain->name(0) < lane.remote_name
                                        : config.node < lane.peer;
  const bool has_number = head.lane != AddressHead::kAny;
  const LaneEnd here = {config.node, has_number ? lane.index : AddressHead::kAny,
                        state_.authentication.nonce()};
  const LaneEnd there = {lane.peer, head.lane, head.nonce};
  lane.send_key = state_.authentication.derive(here, there);
  lane.receive_key = state_.authentication.derive(there, here);
  return {};
}

Result<void> LaneConnector::insert(Lane& lane, const std::string& address) {
  return state_.domain->insert(address.substr(sizeof(AddressHead)), lane.target);
}

void LaneConnector::greet(Lane& lane) {
  if (state_.config.node < lane.peer) lane.outbox.hello = true;
  if (lane.outbox.hello) state_.to_push.insert(lane.index);
}

Result<bool> LaneConnector::check() {
  bool all = true;
  for (const Lane& lane : state_.lanes) {
    const auto one = connected(lane, greet_until_ns_);
    if (!one) return one;
    all = all && *one;
  }
  return all;
}

Result<bool> LaneConnector::check_links(std::span<const std::uint32_t> links) {
  bool all = true;
  for (const std::uint32_t link : links) {
    ESPALIER_ASSERT(link < state_.links.size());
    const Lane& lane = state_.lanes[state_.links[link].first_lane];
    const auto one = connected(lane, lane.connect_until_ns);
    if (!one) return one;
    all = all && *one;
  }
  return all;
}

// Whether the lane can carry messages. Errors as check().
Result<bool> LaneConnector::connected(const Lane& lane, std::uint64_t until_ns) const {
  if (!lane.down && lane.hello_received && !lane.outbox.hello && !lane.outbox.greeting) return true;
  if (!lane.down && monotonic_ns() <= until_ns) return false;
  const std::string peer = "node " + std::to_string(lane.peer);
  const std::vector<std::string>& own = state_.lane_addresses;
  const std::string where = !state_.lane_texts.empty() ? " " + state_.lane_texts[lane.index]
                            : own.empty()              ? ""
                                                       : " at " + own[lane.index];
  if (lane.has_no_carrier) return fail("the link to " + peer + where + " has lost its carrier");
  if (lane.down) return fail("the link to " + peer + where + " broke while connecting");
  return fail(peer + " did not connect" + where + " within " +
              seconds(state_.config.connect_deadline_ns));
}

}  // namespace espalier::ofi
