#pragma once
// The state that the parts of an endpoint share: links, lanes, arena, and the libfabric domain.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/link_set.h"
#include "hal/fabric/ofi/authentication.h"
#include "hal/fabric/ofi/domain.h"
#include "hal/fabric/ofi/lanes/lane.h"
#include "hal/fabric/ofi/lanes/shared_fabric.h"
#include "hal/fabric/ofi/pages.h"
#include "hal/fabric/ofi/wire.h"

namespace espalier::ofi {

// One direction of a link. Messages are assigned to the link's lanes round robin, so both ends know
// which lane carries which message without exchanging anything.
struct LinkDirection {
  std::uint32_t lanes = 1;
  std::uint32_t outstanding = 0;  // messages posted and not reported
  std::uint32_t post_lane = 0;    // carries the next message to be posted; counts from the link's
                                  // first lane
  std::uint32_t report_lane = 0;  // carries the next message to be reported

  // Asserts that the lanes take turns: the message to report was posted `outstanding` ago.
  void check_invariants() const {
    ESPALIER_ASSERT(post_lane < lanes && report_lane < lanes);
    ESPALIER_ASSERT((report_lane + outstanding) % lanes == post_lane);
  }
  void count_posted() {
    ESPALIER_ASSERT(lanes > 0);
    ++outstanding;
    if (++post_lane == lanes) post_lane = 0;
    check_invariants();
  }
  void count_reported() {
    ESPALIER_ASSERT(outstanding > 0);
    --outstanding;
    if (++report_lane == lanes) report_lane = 0;
    check_invariants();
  }
};

struct LinkState {
  std::uint32_t first_lane = 0;
  LinkDirection out;
  LinkDirection in;
};

// The context of a write: identifies the message that the write's completion belongs to. libfabric
// uses the first field.
struct WriteContext {
  fi_context2 libfabric;
  EndpointParts* owner;
  std::uint32_t lane;
  std::uint32_t position;
};

struct EndpointState {
  Config config;
  std::uint32_t max_links = 0;  // of AddedConfig; 0: the links are fixed
  ArenaLayout layout;
  std::unique_ptr<Domain> own_domain;  // unless `shared`
  Domain* domain = nullptr;
  // Null: the domain is the endpoint's own. Otherwise its mutex is held whenever the state is used,
  // except to report.
  std::shared_ptr<SharedFabric> shared;
  EndpointParts* parts = nullptr;  // of which this is one
  std::uint32_t member = 0;        // of `shared`
  bool has_departed = false;       // the same
  // A port of this endpoint alone for long messages: only by closing it can they be ended early.
  SharedFabric::LongPort long_port;
  Authentication authentication;
  Registration arena_registration;
  Pages arena;                         // written by the peers
  Pages staging;                       // eager messages being sent, with the arena's layout
  std::vector<WriteContext> contexts;  // lanes x ring
  std::vector<LinkState> links;
  std::vector<Lane> lanes;
  std::vector<std::string> lane_addresses;  // of FixedConfig
  bool separate_domains = false;            // the same
  // Over cables, which way each lane takes: "over eth0 (fe80::7%eth0 to fe80::9)". Otherwise empty.
  std::vector<std::string> lane_texts;
  LinkSet to_report;           // lanes that have something to report to the caller
  LinkSet to_push;             // lanes that have something to write, now or when libfabric has room
  LinkSet greeting;            // lanes whose greeting is not answered
  LinkSet requesting;          // lanes with a request to send that is not due yet
  std::uint64_t writes = 0;    // accepted by libfabric
  std::uint64_t opened = 0;    // greetings received
  std::uint64_t rejected = 0;  // words that were not authentic
  bool released = false;
  std::string lacked;  // OfiEndpoint::lacked()

  // Adds a link with lanes for both directions. Allocates unless capacity was reserved.
  void add_link(std::uint32_t peer, std::uint32_t out, std::uint32_t in, bool routed) {
    const auto link = static_cast<std::uint32_t>(links.size());
    const auto first = static_cast<std::uint32_t>(lanes.size());
    links.push_back({first, {out, 0, 0, 0}, {in, 0, 0, 0}});
    for (std::uint32_t i = 0; i < std::max(out, in); ++i) {
      Lane& lane = lanes.emplace_back();
      lane.index = lane.id = first + i;
      lane.link = link;
      lane.peer = peer;
      lane.target.port = routed ? 0 : lane.index;
      if (shared != nullptr) lane.id = shared->add_lane(*parts, lane.index);
    }
    ESPALIER_ASSERT(lanes.size() <= kMaxLinks && links.size() <= lanes.size());
  }
  // Makes the contexts of all lanes that have none.
  void add_contexts() {
    for (std::size_t i = contexts.size(); i < lanes.size() * layout.ring(); ++i) {
      contexts.push_back({{},
                          parts,
                          static_cast<std::uint32_t>(i / layout.ring()),
                          static_cast<std::uint32_t>(i % layout.ring())});
    }
    ESPALIER_ASSERT(contexts.size() == lanes.size() * layout.ring());
  }
  // Whether messages of this size carry a code of their payload. What a peer writes into a slot is
  // always covered, because someone who reads the traffic of a network sees the slots' key; the key
  // of a longer message's place is new for each collective.
  [[nodiscard]] bool has_payload_code(std::uint64_t size) const {
    return config.authenticate_data || (authentication.has_secret() && size <= config.eager_bytes);
  }
  // Drops a word that is not authentic.
  void reject(std::uint32_t peer, const char* word) {
    if (++rejected != 1) return;
    std::fprintf(stderr,
                 "espalier: node %u dropped a %s that does not authenticate as node %u's: another "
                 "process may be attacking this job, or the nodes have different job secrets\n",
                 config.node, word, peer);
  }
  // Whether long messages can be received: opens the port for them if there is one.
  [[nodiscard]] bool has_long_port() {
    if (shared == nullptr || long_port.port != 0) return true;
    const auto opened = shared->open_long_port(long_port, lanes.size());
    if (!opened) lacked = "node " + std::to_string(config.node) + opened.error().message;
    return opened.has_value();
  }
  [[nodiscard]] std::uint32_t greetings_count() const {
    return shared == nullptr ? kMaxLinks : SharedFabric::kGreetings;
  }
  // Greetings for other endpoints of the process may be at the same place.
  [[nodiscard]] bool has_own_greetings() const { return shared == nullptr; }
  [[nodiscard]] std::uint32_t long_port_number() const {
    return shared == nullptr ? 0 : long_port.number;
  }
  // Finds where long messages of the lane go, to the peer's port with this number.
  [[nodiscard]] bool find_long_target(Lane& lane, std::uint32_t number) {
    if (shared == nullptr) return true;
    if (!has_long_port()) return false;
    if (lane.long_port == number && lane.long_epoch == long_port.epoch) return true;
    lane.long_port = 0;
    lane.long_target.port = long_port.port;
    if (!domain->insert_socket(lane.remote_name, number, lane.long_target)) return false;
    lane.long_port = number;
    ESPALIER_ASSERT(long_port.port != 0);
    lane.long_epoch = long_port.epoch;
    return true;
  }
  [[nodiscard]] Domain::Target long_target(const Lane& lane) const {
    ESPALIER_ASSERT(shared == nullptr || long_port.port != 0);
    return shared == nullptr ? lane.target : lane.long_target;
  }
  [[nodiscard]] std::uint64_t position(std::uint64_t number) const {
    return number & (layout.ring() - 1);
  }
  // Returns the greatest number below `limit` that uses `position`.
  [[nodiscard]] std::uint64_t last_before(std::uint64_t limit, std::uint64_t position) const {
    ESPALIER_ASSERT(position < layout.ring() && position < limit);
    return limit - 1 - ((limit - 1 - position) & (layout.ring() - 1));
  }
  // Asserts what holds of a lane between two calls.
  void check_lane([[maybe_unused]] const Lane& lane) const {
    ESPALIER_ASSERT(lane.index < lanes.size() && &lane == &lanes[lane.index]);
    ESPALIER_ASSERT(lane.link < links.size() && links[lane.link].first_lane <= lane.index);
    lane.out.check_invariants(layout.ring());
    lane.in.check_invariants(layout.ring());
    ESPALIER_ASSERT(!lane.outbox.credit || lane.in.credited != lane.in.consumed);
    ESPALIER_ASSERT((lane.outbox.withdrawn & ~all_positions(layout.ring())) == 0);
    ESPALIER_ASSERT((lane.outbox.rejected & ~all_positions(layout.ring())) == 0);
    ESPALIER_ASSERT((lane.outbox.clear_to_send & ~all_positions(layout.ring())) == 0);
    ESPALIER_ASSERT(lane.outbox.controls < bit(kControlKinds));
    ESPALIER_ASSERT(lane.unread_controls < bit(kControlKinds));
  }
};

}  // namespace espalier::ofi
