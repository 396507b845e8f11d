#pragma once
// The receiving direction of lanes: posted receives, and everything that arrives from a peer.

#include <cstdint>

#include "hal/fabric/ofi/lanes/endpoint_state.h"
#include "hal/fabric/ofi/lanes/lane_connector.h"
#include "hal/fabric/ofi/lanes/lane_sender.h"
#include "hal/fabric/ofi/prepared_regions.h"

namespace espalier::ofi {

class LaneReceiver {
 public:
  LaneReceiver(EndpointState& state, PreparedRegions& regions, LaneConnector& connector,
               LaneSender& sender)
      : state_(state), regions_(regions), connector_(connector), sender_(sender) {}

  // As Endpoint::post_receive().
  [[nodiscard]] Status post(std::uint32_t link, const ReceivePost& post);

  // A peer has written with this immediate data, on the lane with this index unless it is a
  // greeting. Feedback on messages of this node goes to the sender. Malformed and outdated data is
  // ignored.
  void data_arrived(const Immediate& immediate, std::uint32_t index);

 private:
  void goodbye_arrived(Lane& lane, const Immediate& immediate);
  void control_arrived(Lane& lane, ControlKind kind, Opcode opcode);
  void message_arrived(Lane& lane, const Immediate& immediate);
  // Reads what arrived for message `number`; false: it must be ignored.
  [[nodiscard]] bool read_arrival(Lane& lane, const Immediate& immediate, std::uint64_t number,
                                  bool posted);
  void consume(Lane& lane);
  [[nodiscard]] bool consume_next(Lane& lane);
  // Whether the payload is what the peer sent, if payloads are authenticated.
  [[nodiscard]] bool intact(const Lane& lane, const Incoming::Arrival& arrival,
                            const void* bytes) const;

  EndpointState& state_;
  PreparedRegions& regions_;
  LaneConnector& connector_;
  LaneSender& sender_;
};

}  // namespace espalier::ofi
