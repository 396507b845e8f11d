#pragma once
// The sending direction of lanes: posted messages, and the feedback of the peer and of libfabric.

#include <cstdint>

#include "hal/fabric/ofi/lanes/endpoint_state.h"
#include "hal/fabric/ofi/lanes/lane_announcer.h"
#include "hal/fabric/ofi/lanes/lane_writer.h"

namespace espalier::ofi {

class LaneSender {
 public:
  LaneSender(EndpointState& state, LaneWriter& writer, LaneAnnouncer& announcer)
      : state_(state), writer_(writer), announcer_(announcer) {}

  // As Endpoint::post_send() and Endpoint::post_control().
  [[nodiscard]] Status post(std::uint32_t link, const SendPost& post);
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control);

  // Writes to the peer everything that waits and can be written now. Controls come first: they must
  // arrive even when messages cannot.
  void push(Lane& lane);
  // Writes the requests to send that are due.
  void push_requests();
  // When the next one is due; UINT64_MAX if none is.
  [[nodiscard]] std::uint64_t next_request_ns() const;

  // The write of the message at `position` has completed.
  void write_completed(Lane& lane, std::uint32_t position);
  // A write on this lane failed.
  void write_failed(Lane& lane);
  // The peer has consumed `count` messages (low 32 bits).
  void credit_arrived(Lane& lane, std::uint32_t count);
  void credit_word_arrived(Lane& lane, const Immediate& immediate);
  void clear_to_send_arrived(Lane& lane, const Immediate& immediate);
  void rejection_arrived(Lane& lane, const Immediate& immediate);

 private:
  // These return false if libfabric refused a write, true if the rest waits for the peer.
  [[nodiscard]] bool push_messages(Lane& lane);
  [[nodiscard]] bool send_eager(Lane& lane, std::uint64_t number);
  [[nodiscard]] bool send_large(Lane& lane, std::uint64_t number);
  [[nodiscard]] bool is_request_due(Lane& lane, std::uint64_t number);
  [[nodiscard]] bool send_placed(Lane& lane, std::uint64_t number, const ClearToSendEntry& clear,
                                 Opcode opcode, const MessageHeader* header);
  [[nodiscard]] bool withdraw(Lane& lane, std::uint64_t number);

  [[nodiscard]] MessageHeader header_of(const Lane& lane, const Outgoing::Post& post) const;
  [[nodiscard]] bool read_clear_to_send(Lane& lane, std::uint64_t position,
                                        ClearToSendEntry& entry);
  // Whether feedback on `number` is authentic; counts it if not.
  [[nodiscard]] bool authentic(const Lane& lane, const Immediate& immediate, std::uint64_t number);
  void count_sent(Lane& lane);
  void mismatch_after_send(Lane& lane, std::uint64_t number);

  EndpointState& state_;
  LaneWriter& writer_;
  LaneAnnouncer& announcer_;
};

}  // namespace espalier::ofi
