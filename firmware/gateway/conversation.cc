#include "firmware/gateway/conversation.h"

namespace espalier::gateway {
namespace {

SerialConfig channel(std::uint32_t session, const std::uint8_t* key, std::uint32_t nonce) {
  return {.session = session,
          .first_channel = agent::kChannel,
          .window = agent::kWindow,
          .key = key,
          .nonce = nonce};
}

}  // namespace

Conversation::Conversation(SerialPort& port, std::uint32_t session, const std::uint8_t* key,
                           std::uint32_t nonce)
    : endpoint_(port, link_, &board_, 1, agent::kGateway, channel(session, key, nonce)) {}

void Conversation::expect(std::span<std::uint8_t> first, std::span<std::uint8_t> second) {
  in_[0] = {first.data(), first.size(), 0};
  in_[1] = {second.data(), second.size(), 0};
}

Conversation::Event Conversation::poll() {
  post_all();
  Completion completion;
  while (endpoint_.poll(completion)) {
    const Event event = take(completion);
    if (event != Event::kNothing) return event;
    post_all();
  }
  return Event::kNothing;
}

Conversation::Event Conversation::take(const Completion& completion) {
  ++completions_;
  switch (completion.kind) {
    case Completion::Kind::kSent:
      if (sends_ > 0) --sends_;
      return completion.status == Status::kOk ? Event::kNothing : Event::kViolation;
    case Completion::Kind::kReceived:
      if (completion.status != Status::kOk || receives_ == 0) return Event::kViolation;
      --receives_;
      if (packet_posted_) {
        packet_posted_ = false;
        return Event::kPacket;
      }
      return receives_ == 0 && in_[0].remaining() + in_[1].remaining() == 0 ? Event::kData
                                                                            : Event::kNothing;
    case Completion::Kind::kLinkDown:
      packet_to_send_ = packet_posted_ = false;
      sends_ = receives_ = 0;
      out_ = {};
      in_[0] = in_[1] = {};
      return Event::kRestarted;
    default: return Event::kNothing;  // unexpected messages, controls
  }
}

// Posts sends and receives while the window has room.
void Conversation::post_all() {
  if (packet_to_send_ && sends_ < agent::kWindow) {
    const SendPost post{&out_packet_, sizeof out_packet_, agent::kPacketTag};
    if (endpoint_.post_send(0, post) != Status::kOk) return;
    packet_to_send_ = false;
    ++sends_;
  }
  while (!packet_to_send_ && out_.remaining() > 0 && sends_ < agent::kWindow) {
    const SendPost post{out_.bytes + out_.posted, out_.next(), agent::kDataTag};
    if (endpoint_.post_send(0, post) != Status::kOk) return;
    out_.posted += out_.next();
    ++sends_;
  }
  if (packet_posted_) return;
  for (Data<std::uint8_t>& data : in_) {
    while (data.remaining() > 0) {
      const ReceivePost post{data.bytes + data.posted, data.next(), agent::kDataTag};
      if (receives_ >= agent::kWindow || endpoint_.post_receive(0, post) != Status::kOk) return;
      data.posted += data.next();
      ++receives_;
    }
  }
  if (receives_ > 0) return;
  const ReceivePost post{&in_packet_, sizeof in_packet_, agent::kPacketTag};
  if (endpoint_.post_receive(0, post) != Status::kOk) return;
  packet_posted_ = true;
  ++receives_;
}

}  // namespace espalier::gateway
