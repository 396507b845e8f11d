#include "espalier/internal/hal/serial/serial_link.h"

#include <cstring>

#include "espalier/internal/hal/serial/serial_port.h"

namespace espalier {

SerialLinks::SerialLinks(SerialPort& port, SerialLink* links, std::uint32_t count,
                         const SerialConfig& config)
    : port_(&port),
      links_(links),
      count_(count),
      session_(config.session),
      window_(
          static_cast<std::uint8_t>(std::clamp<std::uint32_t>(config.window, 1, kSerialWindow))),
      first_channel_(config.first_channel),
      settles_(config.settles) {
#if ESPALIER_SERIAL_MAC
  key_ = config.key;
  nonce_ = config.nonce;
#endif
#if __STDC_HOSTED__
  bool works = port.status() == Status::kOk;
#if ESPALIER_SERIAL_MAC
  works &= key_ == nullptr || port.carrier_->mtu() >= serial::kMinCodedMtu;
#endif
  if (!works) {
    count_ = 0;
    return;
  }
#endif
  port.join(*this);
  ESPALIER_ASSERT(config.session != 0 && first_channel_ + count <= 256);
}

Status SerialLinks::post_send(std::uint32_t link, const SendPost& post) {
  if (post.size > serial::kMaxSize) return Status::kTooLarge;
  return put_send(
      link, {static_cast<const std::uint8_t*>(post.bytes), static_cast<std::uint32_t>(post.size),
             post.tag, post.check, post.context});
}

Status SerialLinks::post_refusal(std::uint32_t link, std::uint64_t tag, std::uint32_t context) {
  return put_send(link, {nullptr, serial::kSizeRefused, tag, 0, context});
}

Status SerialLinks::put_send(std::uint32_t link, const SerialLink::Send& send) {
  if (link >= count_ || released_) return Status::kBadArgument;
  SerialLink& link_state = links_[link];
  SerialLink::Outgoing& out = link_state.out_;
  if (SerialLink::minus(out.posted, out.first) >= window_) return Status::kTooLarge;
  const bool announced = out.announced != out.posted;
  out.posts[out.posted & SerialLink::kMask] = send;
  ++out.posted;
  if (!announced) out.announced = out.posted;
  link_state.out_.due = true;
  check_invariants(link);
  return Status::kOk;
}

Status SerialLinks::announce(std::uint32_t link, std::uint64_t tag) {
  if (link >= count_ || released_) return Status::kBadArgument;
  SerialLink& link_state = links_[link];
  SerialLink::Outgoing& out = link_state.out_;
  if (SerialLink::minus(out.announced, out.first) >= window_) return Status::kTooLarge;
  out.posts[out.announced & SerialLink::kMask] = {nullptr, serial::kSizeUnknown, tag, 0, 0};
  ++out.announced;
  link_state.out_.due = true;
  check_invariants(link);
  return Status::kOk;
}

Status SerialLinks::post_receive(std::uint32_t link, const ReceivePost& post) {
  if (link >= count_ || released_) return Status::kBadArgument;
  SerialLink& link_state = links_[link];
  SerialLink::Incoming& in = link_state.in_;
  if (post.size > serial::kMaxSize || SerialLink::minus(in.posted, in.first) >= window_ ||
      SerialLink::minus(in.posted, in.settled) >= window_) {
    return Status::kTooLarge;
  }
  in.posts[in.posted & SerialLink::kMask] = {static_cast<std::uint8_t*>(post.bytes),
                                             static_cast<std::uint32_t>(post.size), post.tag, 0,
                                             post.context};
  if (in.opened == in.posted) ++in.opened;  // it need not be reported any more
  ++in.posted;
  link_state.out_.due = true;
  check_invariants(link);
  return Status::kOk;
}

Status SerialLinks::post_control(std::uint32_t link, const Control& control) {
  const auto kind = static_cast<std::uint8_t>(control.kind);
  if (link >= count_ || kind >= kControlKinds) return Status::kBadArgument;
  SerialLink& link_state = links_[link];
  SerialLink::Controls& controls = link_state.controls_;
  if (control.kind == ControlKind::kCause) {
    controls.detector = control.cause.detector;
    controls.peer = control.cause.peer;
    controls.status = static_cast<std::uint8_t>(control.cause.status) & 63;
  } else {
    controls.number[kind] = control.number;
  }
  // A control that was not yet sent is replaced under its own number.
  using C = SerialLink::Controls;
  const std::uint32_t state = controls.state;
  if ((state >> kind & (C::kWanted | C::kGone)) != C::kWanted) ++controls.version[kind];
  controls.state = (state & ~((C::kGone | C::kTold) << kind)) | C::kWanted << kind;
  ESPALIER_ASSERT((controls.state >> kind & (C::kWanted | C::kGone | C::kTold)) == C::kWanted);
  link_state.out_.due = true;
  return Status::kOk;
}

bool SerialLinks::take(std::uint32_t link, Completion& completion) {
  if (link >= count_ || released_) return false;
  SerialLink::Outgoing& out = links_[link].out_;
  SerialLink::Incoming& in = links_[link].in_;
  bool refused = false;
  if (out.first != out.settled) {
    const SerialLink::Send& post = out.posts[out.first++ & SerialLink::kMask];
    completion.kind = Completion::Kind::kSent;
    completion.context = post.context;
    refused = post.size == serial::kSizeRefused;
  } else if (in.first != in.arrived) {
    const std::uint32_t index = in.first++ & SerialLink::kMask;
    const SerialLink::Receive& post = in.posts[index];
    completion.kind = Completion::Kind::kReceived;
    completion.context = post.context;
    completion.check = post.check;
    refused = (in.refused >> index & 1) != 0;
  } else {
    return false;
  }
  completion.link = link;
  check_invariants(link);
  completion.status = refused ? Status::kMismatch : Status::kOk;
  return true;
}

Status SerialLinks::settle(std::uint32_t link, Status status) {
  if (link >= count_ || !settles_) return Status::kBadArgument;
  SerialLink::Incoming& in = links_[link].in_;
  if (in.settled == in.arrived) return Status::kBadArgument;
  settle_next(links_[link], status != Status::kOk);
  check_invariants(link);
  return Status::kOk;
}

// Settles the oldest unsettled message.
void SerialLinks::settle_next(SerialLink& link, bool rejected) {
  SerialLink::Incoming& in = link.in_;
  ESPALIER_ASSERT(in.settled != in.arrived);
  const std::uint32_t refused = in.refused >> (in.settled++ & SerialLink::kMask) & 1;
  in.rejected = static_cast<std::uint16_t>(in.rejected << 1 | (rejected ? 1 : refused));
  link.out_.due = true;
}

void SerialLinks::release() { released_ = true; }

#if ESPALIER_SPARES
void SerialLinks::reopen(std::uint8_t first_channel) {
  first_channel_ = first_channel;
  ESPALIER_ASSERT(first_channel + count_ <= 256);
  released_ = false;
  for (std::uint32_t link = 0; link < count_; ++link) {
    SerialLink& link_state = links_[link];
    const auto last = link_state.sequence_;
#if ESPALIER_SERIAL_MAC
    // The challenge of the former channels is in frames that someone may have kept.
    const std::uint32_t admissions = link_state.admissions_ + 1;
#endif
    std::memset(&link_state, 0, sizeof link_state);
    link_state.sequence_ = last;
#if ESPALIER_SERIAL_MAC
    link_state.admissions_ = admissions;
#endif
  }
}
#endif

}  // namespace espalier
