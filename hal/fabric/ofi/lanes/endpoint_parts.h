#pragma once
// The parts of an endpoint over libfabric. With a SharedFabric they outlive it.

#include <condition_variable>
#include <vector>

#include "hal/fabric/ofi/lanes/endpoint_state.h"
#include "hal/fabric/ofi/lanes/lane_announcer.h"
#include "hal/fabric/ofi/lanes/lane_connector.h"
#include "hal/fabric/ofi/lanes/lane_receiver.h"
#include "hal/fabric/ofi/lanes/lane_sender.h"
#include "hal/fabric/ofi/lanes/lane_writer.h"
#include "hal/fabric/ofi/prepared_regions.h"

namespace espalier::ofi {

struct EndpointParts {
  EndpointParts() { state.parts = this; }

  EndpointState state;
  PreparedRegions regions;
  Registration staging_registration;  // only if the provider needs it (FI_MR_LOCAL)
  LaneWriter writer{state};
  LaneAnnouncer announcer{state, writer};
  LaneSender sender{state, writer, announcer};
  LaneConnector connector{state};
  LaneReceiver receiver{state, regions, connector, sender};

  // Only with a SharedFabric:
  std::vector<Arrival> inbox;
  std::condition_variable_any woken;
  std::uint64_t departed_until_ns = 0;  // how long to try to say goodbye; 0: from the next look on

  // Takes what arrived.
  void take(const Arrival& arrival);
  void empty_inbox();
  // Writes what waits and can be written now.
  void retry();
};

}  // namespace espalier::ofi
