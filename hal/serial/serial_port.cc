#include "espalier/internal/hal/serial/serial_port.h"

#include "base/crc32.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {
namespace {

constexpr unsigned kTickBits = 10;      // of nanoseconds
constexpr std::uint32_t kNoRoom = 100;  // ticks until a carrier is asked for room again

// Whether the bytes are a whole frame. Its links check the code, if it has one.
bool is_frame(const std::uint8_t* frame, std::uint32_t size) {
  if (size < serial::kHeaderBytes + serial::kCrcBytes) return false;
  const std::uint8_t format = serial::get<serial::header::kFormat>(frame);
#if ESPALIER_SERIAL_MAC
  if (format == serial::kCodedFormat) return size >= serial::kHeaderBytes + serial::kTrailerBytes;
#endif
  const std::uint32_t covered = size - serial::kCrcBytes;
  return format == serial::kFormat && crc32(0, frame, covered) == load_u32(frame + covered);
}

}  // namespace

SerialPort::SerialPort(Carrier& carrier, Clock& clock, std::uint8_t* buffer,
                       const SerialPortConfig& config)
    : carrier_(&carrier),
      clock_(&clock),
      in_(buffer),
      out_(buffer + carrier.mtu()),
      resend_(static_cast<Ticks>(config.resend_ns >> kTickBits) + 1),
      frames_in_flight_(static_cast<std::uint8_t>(config.frames_in_flight)) {
#if __STDC_HOSTED__
  const bool is_countable = 1 <= config.frames_in_flight && config.frames_in_flight <= 255;
  if (carrier.mtu() < serial::kMinMtu || !is_countable) status_ = Status::kBadArgument;
#endif
}

void SerialPort::join(SerialLinks& owner) {
  ESPALIER_ASSERT(owner.next_ == nullptr);
  owner.next_ = owners_;
  owners_ = &owner;
  turn_ = &owner;
  turn_link_ = 0;
}

SerialPort::Ticks SerialPort::ticks() { return static_cast<Ticks>(clock_->now() >> kTickBits); }

bool SerialPort::receive() {
  if (!down_ && carrier_->down()) {
    down_ = true;
    for (SerialLinks* owner = owners_; owner != nullptr; owner = owner->next_) {
      for (std::uint32_t link = 0; link < owner->count_; ++link) owner->broken(link);
    }
  }
  const std::uint32_t size = carrier_->receive(in_);
  if (size == 0) return false;
  if (!is_frame(in_, size)) return true;
  ESPALIER_ASSERT(size <= carrier_->mtu());
  for (SerialLinks* owner = owners_; owner != nullptr; owner = owner->next_) {
    const std::uint32_t link =
        serial::get<serial::header::kChannel>(in_) - std::uint32_t{owner->first_channel_};
    if (link < owner->count_) owner->receive(link, in_, size, ticks());
  }
  return true;
}

bool SerialPort::transmit() {
  if (waiting_ == 0) waiting_ = next_frame(ticks());
  ESPALIER_ASSERT(waiting_ <= carrier_->mtu());
  if (waiting_ == 0 || carrier_->send(out_, waiting_) == Status::kTryAgain) return false;
  waiting_ = 0;
  return true;
}

// Puts the frame of the next link in turn that has one into out_. Returns its size, or 0.
std::uint32_t SerialPort::next_frame(Ticks now) {
  if (turn_ == nullptr) return 0;
  ESPALIER_ASSERT(turn_link_ == 0 || turn_link_ < turn_->count_);
  const SerialLinks* const first = turn_;
  const std::uint32_t first_link = turn_link_;
  do {
    SerialLinks& owner = *turn_;
    const std::uint32_t link = turn_link_;
    if (++turn_link_ >= owner.count_) {
      turn_ = owner.next_ != nullptr ? owner.next_ : owners_;
      turn_link_ = 0;
    }
    if (link < owner.count_ && owner.wants(owner.links_[link], now, resend_)) {
      return owner.build(link, out_, now);
    }
  } while (turn_ != first || turn_link_ != first_link);
  return 0;
}

bool SerialPort::poll() {
  int received = 0, sent = 0;
  while (received < kFramesPerPoll && receive()) ++received;
  while (sent < kFramesPerPoll && transmit()) ++sent;
  return received + sent > 0;
}

void SerialPort::wait(std::uint64_t until) {
  for (int sent = 0; transmit();) {
    if (++sent == kFramesPerPoll) return;
  }
  const std::uint64_t time = clock_->now();
  const auto now = static_cast<Ticks>(time >> kTickBits);
  Ticks least = waiting_ != 0 ? kNoRoom : UINT32_MAX;
  // Nothing else can be sent before the frame that waits for room.
  for (SerialLinks* owner = waiting_ != 0 ? nullptr : owners_; owner != nullptr;
       owner = owner->next_) {
    for (std::uint32_t link = 0; link < owner->count_; ++link) {
      const SerialLink& link_state = owner->links_[link];
      if (!owner->awaits(link_state)) continue;
      const Ticks since = now - link_state.sent_at_;
      const Ticks after = resend_ << link_state.out_.back_off;
      least = std::min(least, since < after ? after - since : 0);
    }
  }
  if (least != UINT32_MAX) until = std::min(until, time + (std::uint64_t{least} << kTickBits));
  clock_->wait(until);
}

}  // namespace espalier
