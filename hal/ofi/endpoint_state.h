#pragma once
// The state that the parts of an endpoint share: links, lanes, arena, and the libfabric domain.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/clock.h"
#include "espalier/base/link_set.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/ofi/authentication.h"
#include "hal/ofi/domain.h"
#include "hal/ofi/lane.h"
#include "hal/ofi/link_state.h"
#include "hal/ofi/pages.h"
#include "hal/ofi/wire.h"

namespace espalier::ofi {

// The context of a write: identifies the message that the write's completion belongs to. libfabric
// uses the first field.
struct WriteContext {
  fi_context2 libfabric;
  std::uint32_t lane;
  std::uint32_t position;
};

struct EndpointState {
  Config config;
  ArenaLayout layout;
  Domain domain;
  Authentication authentication;
  Registration arena_registration;
  Pages arena;                         // written by the peers
  Pages staging;                       // eager messages being sent, with the arena's layout
  std::vector<WriteContext> contexts;  // lanes x ring
  std::vector<LinkState> links;
  std::vector<Lane> lanes;
  LinkSet to_report;           // lanes that have something to report to the caller
  LinkSet to_push;             // lanes that have something to write, now or when libfabric has room
  LinkSet greeting;            // lanes whose greeting is not answered
  LinkSet requesting;          // lanes with a request to send that is not due yet
  std::uint64_t writes = 0;    // accepted by libfabric
  std::uint64_t opened = 0;    // greetings received
  std::uint64_t rejected = 0;  // words that were not authentic
  bool released = false;

  // Adds a link with lanes for both directions. Allocates unless capacity was reserved.
  void add_link(std::uint32_t peer, std::uint32_t out, std::uint32_t in, bool routed) {
    const auto link = static_cast<std::uint32_t>(links.size());
    const auto first = static_cast<std::uint32_t>(lanes.size());
    links.push_back({first, {out, 0, 0, 0}, {in, 0, 0, 0}});
    for (std::uint32_t i = 0; i < std::max(out, in); ++i) {
      Lane& lane = lanes.emplace_back();
      lane.index = first + i;
      lane.link = link;
      lane.peer = peer;
      lane.target.port = routed ? 0 : lane.index;
    }
  }
  // Makes the contexts of all lanes that have none.
  void add_contexts() {
    for (std::size_t i = contexts.size(); i < lanes.size() * layout.ring(); ++i) {
      contexts.push_back({{},
                          static_cast<std::uint32_t>(i / layout.ring()),
                          static_cast<std::uint32_t>(i % layout.ring())});
    }
  }
  // Whether messages of this size carry a code of their payload. What a peer writes into a slot is
  // always covered, because someone who reads the traffic of a network sees the slots' key; the key
  // of a longer message's place is new for each collective. A file in /dev/shm has no traffic.
  [[nodiscard]] bool has_payload_code(std::uint64_t size) const {
    return config.authenticate_data ||
           (authentication.has_secret() && size <= config.eager_bytes && !domain.copies_messages());
  }
  // Drops a word that is not authentic.
  void reject(std::uint32_t peer, const char* word) {
    if (++rejected != 1) return;
    std::fprintf(stderr,
                 "espalier: node %u dropped a %s that does not authenticate as node %u's: another "
                 "process may be attacking this job, or the nodes have different job secrets\n",
                 config.node, word, peer);
  }
  [[nodiscard]] std::uint64_t position(std::uint64_t number) const {
    return number & (layout.ring() - 1);
  }
  // Returns the greatest number below `limit` that uses `position`.
  [[nodiscard]] std::uint64_t last_before(std::uint64_t limit, std::uint64_t position) const {
    return limit - 1 - ((limit - 1 - position) & (layout.ring() - 1));
  }
};

}  // namespace espalier::ofi
