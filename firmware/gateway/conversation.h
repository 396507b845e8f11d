#pragma once
// The gateway's side of the agent's protocol (firmware/bare/agent.h): packets, and the data that
// follow them, over the agent's channel. What they mean is the caller's. Host only.

#include <cstdint>
#include <span>

#include "espalier/hal/serial/serial_endpoint.h"
#include "firmware/bare/agent.h"

namespace espalier::gateway {

class Conversation {
 public:
  // The port outlives this. session: as in SerialConfig.
  Conversation(SerialPort& port, std::uint32_t session);

  enum class Event : std::uint8_t {
    kNothing,
    kPacket,     // packet() has come; expect() the data that follow it, if any, before poll()
    kData,       // all that was expected is here
    kRestarted,  // the board begins anew: all that was under way is gone
    kStrange,    // the board sent something else than the protocol has there
  };
  // Moves what can move, without waiting.
  [[nodiscard]] Event poll();
  [[nodiscard]] const agent::Packet& packet() const { return in_packet_; }
  // Where the data that follow the packet go, first one, then the other. They stay there until
  // kData.
  void expect(std::span<std::uint8_t> first, std::span<std::uint8_t> second = {});

  // All that was sent has been taken: the next packet may go.
  [[nodiscard]] bool can_send() const {
    return !packet_to_send_ && sends_ == 0 && out_.left() == 0;
  }
  template <typename T>
  void send(const T& packet);
  // After a packet; the bytes stay until can_send().
  void send_data(std::span<const std::uint8_t> bytes) { out_ = {bytes.data(), bytes.size(), 0}; }

  // Times that anything was sent or came: whoever waits sees that the board is alive.
  [[nodiscard]] std::uint64_t moves() const { return moves_; }

 private:
  template <typename Byte>
  struct Data {
    Byte* bytes = nullptr;
    std::uint64_t size = 0;
    std::uint64_t posted = 0;
    [[nodiscard]] std::uint64_t left() const { return size - posted; }
    [[nodiscard]] std::uint64_t next() const {
      return left() < agent::kPieceBytes ? left() : agent::kPieceBytes;
    }
  };

  [[nodiscard]] Event take(const Completion& completion);
  void go_on();

  SerialLink link_[1] = {};
  std::uint32_t board_ = agent::kNoNode;
  SerialEndpoint endpoint_;
  agent::Packet out_packet_, in_packet_;
  bool packet_to_send_ = false;
  bool packet_posted_ = false;  // the receive that is posted is the next packet's
  Data<const std::uint8_t> out_;
  Data<std::uint8_t> in_[2];
  std::uint32_t sends_ = 0, receives_ = 0;  // posted and not complete
  std::uint64_t moves_ = 0;
};

template <typename T>
void Conversation::send(const T& packet) {
  static_assert(sizeof(T) <= agent::kPacketBytes);
  out_packet_ = agent::Packet{};
  const auto* from = reinterpret_cast<const std::uint8_t*>(&packet);
  for (std::size_t at = 0; at < sizeof(T); ++at) out_packet_.bytes[at] = from[at];
  packet_to_send_ = true;
  go_on();
}

}  // namespace espalier::gateway
