#pragma once
// The state that the parts of an endpoint share: links, lanes, arena, and the libfabric domain.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "espalier/base/link_set.h"
#include "espalier/hal/ofi/ofi_endpoint.h"
#include "hal/ofi/domain.h"
#include "hal/ofi/lane.h"
#include "hal/ofi/link_state.h"
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
  Registration arena_registration;
  std::unique_ptr<std::byte[]> arena;    // written by the peers
  std::unique_ptr<std::byte[]> staging;  // eager messages being sent, with the arena's layout
  std::vector<WriteContext> contexts;    // lanes x ring
  std::vector<LinkState> links;
  std::vector<Lane> lanes;
  LinkSet to_report;         // lanes that have something to report to the caller
  LinkSet to_push;           // lanes that have something to write, now or when libfabric has room
  std::uint64_t writes = 0;  // accepted by libfabric
  bool connected = false;
  bool released = false;

  [[nodiscard]] std::uint64_t position(std::uint64_t number) const {
    return number & (layout.ring() - 1);
  }
  // Returns the greatest number below `limit` that uses `position`.
  [[nodiscard]] std::uint64_t last_before(std::uint64_t limit, std::uint64_t position) const {
    return limit - 1 - ((limit - 1 - position) & (layout.ring() - 1));
  }
};

}  // namespace espalier::ofi
