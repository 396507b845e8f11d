#pragma once
// The gateway's end of the agent's protocol (firmware/bare/agent.h): packets and the data that
// follow them, over the agent's channel. The caller interprets them. Host only.

#include <cstdint>
#include <span>

#include "espalier/hal/serial/serial_endpoint.h"
#include "firmware/bare/agent.h"

namespace espalier::gateway {

class Conversation {
 public:
  // The port and the key must outlive the conversation. session, key, nonce: as in SerialConfig.
  Conversation(SerialPort& port, std::uint32_t session, const std::uint8_t* key = nullptr,
               std::uint32_t nonce = 0);

  enum class Event : std::uint8_t {
    kNothing,
    kPacket,     // packet() arrived; if data follow it, call expect() before the next poll()
    kData,       // all expected data arrived
    kRestarted,  // the board restarted: all outstanding sends and receives are cancelled
    kViolation,  // the board sent a message that the protocol does not allow here
  };
  // Posts and completes what it can, without waiting.
  [[nodiscard]] Event poll();
  [[nodiscard]] const agent::Packet& packet() const { return in_packet_; }
  // Sets the memory for the data that follow the packet: `first`, then `second`. It must stay valid
  // until kData.
  void expect(std::span<std::uint8_t> first, std::span<std::uint8_t> second = {});

  // Whether the board has received everything that was sent, so that the next packet may be sent.
  [[nodiscard]] bool can_send() const {
    return !packet_to_send_ && sends_ == 0 && out_.remaining() == 0;
  }
  template <typename T>
  void send(const T& packet);
  // Sends the data that belong to the packet sent before. The bytes must stay valid until
  // can_send().
  void send_data(std::span<const std::uint8_t> bytes) { out_ = {bytes.data(), bytes.size(), 0}; }

  [[nodiscard]] const SerialRejections& rejections() const { return endpoint_.rejections(); }

  // Number of completed sends and receives. While it increases, the board is working.
  [[nodiscard]] std::uint64_t completions() const { return completions_; }

 private:
  template <typename Byte>
  struct Data {
    Byte* bytes = nullptr;
    std::uint64_t size = 0;
    std::uint64_t posted = 0;
    [[nodiscard]] std::uint64_t remaining() const { return size - posted; }
    [[nodiscard]] std::uint64_t next() const {
      return remaining() < agent::kPieceBytes ? remaining() : agent::kPieceBytes;
    }
  };

  [[nodiscard]] Event take(const Completion& completion);
  void post_all();

  SerialLink link_[1] = {};
  std::uint32_t board_ = agent::kNoNode;
  SerialEndpoint endpoint_;
  agent::Packet out_packet_, in_packet_;
  bool packet_to_send_ = false;
  bool packet_posted_ = false;  // the posted receive is for the next packet
  Data<const std::uint8_t> out_;
  Data<std::uint8_t> in_[2];
  std::uint32_t sends_ = 0, receives_ = 0;  // posted, incomplete
  std::uint64_t completions_ = 0;
};

template <typename T>
void Conversation::send(const T& packet) {
  static_assert(sizeof(T) <= agent::kPacketBytes);
  out_packet_ = agent::Packet{};
  const auto* from = reinterpret_cast<const std::uint8_t*>(&packet);
  for (std::size_t i = 0; i < sizeof(T); ++i) out_packet_.bytes[i] = from[i];
  packet_to_send_ = true;
  post_all();
}

}  // namespace espalier::gateway
