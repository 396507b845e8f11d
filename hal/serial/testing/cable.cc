#include "hal/serial/testing/cable.h"

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "espalier/hal/serial/carrier.h"
#include "espalier/hal/serial/serial_endpoint.h"

namespace espalier::serial {
namespace {

// One direction of the cable. Its device takes up to kFifo bytes that it has not begun to send.
class Direction {
 public:
  static constexpr std::uint64_t kFifo = 16;
  Direction(const CableSpec& spec, const std::uint64_t& now, std::mt19937& random)
      : byte_ns(10 * std::uint64_t{1'000'000'000} / spec.baud),
        lose_(spec.lose),
        now_(now),
        random_(random) {}

  [[nodiscard]] bool put(std::uint8_t byte) {
    if (free_at_ > now_ + kFifo * byte_ns) return false;
    free_at_ = std::max(free_at_, now_) + byte_ns;
    ++carried;
    if (lose_ == 0 || random_() % lose_ != 0) bytes_.push_back({free_at_, byte});
    return true;
  }
  [[nodiscard]] bool get(std::uint8_t& byte) {
    if (next_arrival() > now_) return false;
    byte = bytes_.front().byte;
    bytes_.pop_front();
    return true;
  }
  [[nodiscard]] std::uint64_t next_arrival() const {
    return bytes_.empty() ? UINT64_MAX : bytes_.front().time;
  }

  const std::uint64_t byte_ns;
  std::uint64_t carried = 0;  // bytes, with the lost ones

 private:
  struct Arrival {
    std::uint64_t time;
    std::uint8_t byte;
  };
  std::uint32_t lose_;
  const std::uint64_t& now_;
  std::mt19937& random_;
  std::deque<Arrival> bytes_;
  std::uint64_t free_at_ = 0;
};

// A node at one end of the cable, whose links lead to the other end.
class CableEnd final : public ByteStream, public Clock {
 public:
  CableEnd(const CableSpec& spec, std::uint32_t node, const std::uint64_t& now, Direction& out,
           Direction& in)
      : now_(now),
        out_(out),
        in_(in),
        carrier_(*this, kByteMtu),
        frames_(2 * kByteMtu / 4),
        links_(spec.links),
        peers_(spec.links, 1 - node),
        port_(carrier_, *this, reinterpret_cast<std::uint8_t*>(frames_.data()),
              {spec.resend_ns, spec.frames_in_flight}),
        endpoint_(port_, links_.data(), peers_.data(), spec.links, node, config(node)) {}
  CableEnd(const CableEnd&) = delete;
  CableEnd& operator=(const CableEnd&) = delete;

  [[nodiscard]] SerialEndpoint& endpoint() { return endpoint_; }
  // Sends what there is to send. Returns the time at which the node must be polled again.
  [[nodiscard]] std::uint64_t due() {
    until_ = now_;
    port_.wait(UINT64_MAX);
    return until_;
  }
  // When this end last began a frame.
  [[nodiscard]] std::uint64_t began() const { return began_; }

 private:
  static SerialConfig config(std::uint32_t node) { return SerialConfig{.session = 11 + node}; }
  [[nodiscard]] bool put(std::uint8_t byte) override {
    if (!out_.put(byte)) return false;
    if (between_frames_) began_ = now_;
    between_frames_ = byte == 0;
    return true;
  }
  [[nodiscard]] bool get(std::uint8_t& byte) override { return in_.get(byte); }
  [[nodiscard]] std::uint64_t now() override { return now_; }
  void wait(std::uint64_t until) override { until_ = until; }

  const std::uint64_t& now_;
  Direction& out_;
  Direction& in_;
  ByteCarrier carrier_;
  std::vector<std::uint32_t> frames_;
  std::vector<SerialLink> links_;
  std::vector<std::uint32_t> peers_;
  SerialPort port_;
  SerialEndpoint endpoint_;
  std::uint64_t until_ = 0;
  bool between_frames_ = true;
  std::uint64_t began_ = 0;
};

// The messages of one link in one direction.
struct Flow {
  std::vector<std::uint8_t> out, in;
  std::uint32_t posted = 0;
  std::uint64_t posted_at = 0;
};

class Cable {
 public:
  Cable(const CableSpec& spec, std::uint32_t messages, std::uint32_t size)
      : spec_(spec), messages_(messages), size_(size), random_(spec.seed), flows_(2 * spec.links) {}

  CableTimes run() {
    for (std::uint32_t from = 0; from < (spec_.both ? 2 : 1); ++from) {
      for (std::uint32_t link = 0; link < spec_.links; ++link) post(from, link);
    }
    while (unfinished_ > 0) step();
    times_.frame_ns = (kByteMtu + 4) * ways_[0].byte_ns;  // stuffed
    times_.bytes = ways_[0].carried;
    return times_;
  }

 private:
  Flow& flow(std::uint32_t from, std::uint32_t link) { return flows_[from * spec_.links + link]; }

  void post(std::uint32_t from, std::uint32_t link) {
    Flow& next = flow(from, link);
    next.out.assign(size_, static_cast<std::uint8_t>(next.posted + link));
    next.in.assign(size_, 0xee);
    next.posted_at = now_;
    const ReceivePost receive{next.in.data(), size_, next.posted, 0};
    const SendPost send{next.out.data(), size_, next.posted, 0, 0};
    static_cast<void>(ends_[1 - from].endpoint().post_receive(link, receive));
    static_cast<void>(ends_[from].endpoint().post_send(link, send));
    ++next.posted;
    ++unfinished_;
  }

  // Polls both ends, then lets time pass until one of them has something to do.
  void step() {
    for (std::uint32_t v = 0; v < 2; ++v) {
      for (Completion c; ends_[v].endpoint().poll(c);) {
        if (c.kind == Completion::Kind::kSent) finish(v, c.link, c.status);
      }
    }
    std::uint64_t next = std::min(ends_[0].due(), ends_[1].due());
    for (const Direction& way : ways_) next = std::min(next, way.next_arrival());
    if (unfinished_ == 0) return;
    now_ = std::max(now_, next);
    const std::uint64_t began = std::max(ends_[0].began(), ends_[1].began());
    times_.silence_ns = std::max(times_.silence_ns, now_ - began);
  }

  void finish(std::uint32_t from, std::uint32_t link, Status status) {
    const Flow& done = flow(from, link);
    if (status == Status::kOk && done.in == done.out) ++times_.correct;
    times_.message_ns = std::max(times_.message_ns, now_ - done.posted_at);
    times_.total_ns = now_;
    --unfinished_;
    if (done.posted < messages_) post(from, link);
  }

  const CableSpec& spec_;
  std::uint32_t messages_, size_;
  std::uint64_t now_ = 0;
  std::mt19937 random_;
  Direction ways_[2] = {{spec_, now_, random_}, {spec_, now_, random_}};
  CableEnd ends_[2] = {{spec_, 0, now_, ways_[0], ways_[1]}, {spec_, 1, now_, ways_[1], ways_[0]}};
  std::vector<Flow> flows_;
  std::uint32_t unfinished_ = 0;
  CableTimes times_;
};

}  // namespace

CableTimes exchange(const CableSpec& spec, std::uint32_t messages, std::uint32_t size) {
  return Cable(spec, messages, size).run();
}

}  // namespace espalier::serial
