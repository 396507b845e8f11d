#include "bootstrap/subnet_rates.h"

#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "bootstrap/stream.h"
#include "bootstrap/subnet_probe.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier::bootstrap {
namespace {

using Microseconds = std::chrono::microseconds;
using network::Address;

constexpr std::size_t kTokenBytes = 8;
constexpr std::size_t kChunkBytes = std::size_t{16} << 10;
// Chunks that are read from a connection before the others have their turn.
constexpr int kTurn = 4;
// Connections that the process before this one may have open: strangers may come, too.
constexpr std::size_t kMaxIncoming = 64;
// Bytes per us are 8000 kbit/s.
constexpr std::uint64_t kKbitsPerBytePerUs = 8'000;

struct Outgoing {
  Socket socket;
  bool is_connected = false;
  std::size_t sent = 0;  // bytes, with the token
  [[nodiscard]] bool is_done() const { return socket.get() < 0; }
};

struct Incoming {
  Socket socket;
  std::size_t subnet = 0;
  std::array<std::uint8_t, kTokenBytes> token = {};
  std::size_t token_bytes = 0;  // of the token that have come
};

// What came over a subnet.
struct Arrived {
  std::size_t bytes = 0;
  std::optional<Clock::time_point> whole = {};  // when all had come
};

class Measurement {
 public:
  explicit Measurement(const RateTest& test) : test_(test), arrived_(test.subnets.size()) {
    randombytes_buf(chunk_.data(), chunk_.size());  // a tunnel may compress
    for (const Transfer& each : test.subnets) {
      out_.push_back({.socket = start_probe({.from = each.from, .to = each.to})});
    }
  }

  [[nodiscard]] std::vector<std::uint32_t> run() {
    while (Clock::now() < until_ && !(has_received() && has_sent())) wait();
    return rates();
  }

 private:
  void wait();
  void accept_all();
  // False: the connection has ended.
  [[nodiscard]] bool read(Incoming& from);
  [[nodiscard]] bool take_token(Incoming& from, const std::uint8_t*& data, std::size_t& size) const;
  void write(Outgoing& to);
  [[nodiscard]] bool are_connected() const {
    return std::all_of(out_.begin(), out_.end(),
                       [](const Outgoing& each) { return each.is_done() || each.is_connected; });
  }
  [[nodiscard]] bool has_sent() const {
    return std::all_of(out_.begin(), out_.end(),
                       [](const Outgoing& each) { return each.is_done(); });
  }
  [[nodiscard]] bool has_received() const { return has_received_; }
  void end_of_window(Clock::time_point now) {
    const bool are_whole = std::all_of(arrived_.begin(), arrived_.end(),
                                       [](const Arrived& each) { return each.whole.has_value(); });
    if (!are_whole && !(first_ && now - *first_ >= kTransferTime)) return;
    has_received_ = true;
    last_ = now;
    in_.clear();  // which ends the transfers of the process before this one
  }
  [[nodiscard]] std::vector<std::uint32_t> rates() const;

  const RateTest& test_;
  std::array<std::uint8_t, kChunkBytes> chunk_ = {};
  std::vector<Outgoing> out_;
  std::vector<Incoming> in_;
  std::vector<Arrived> arrived_;
  std::optional<Clock::time_point> first_;  // byte of any subnet
  Clock::time_point last_ = {};
  bool has_received_ = false;
  const Clock::time_point until_ = Clock::now() + kMeasureTime;
};

void Measurement::accept_all() {
  while (in_.size() < kMaxIncoming) {
    sockaddr_storage here = {};
    socklen_t size = sizeof here;
    Socket socket(accept4(test_.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0) return;
    if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &size) != 0) continue;
    const auto own = Address::from_socket(reinterpret_cast<sockaddr*>(&here));
    for (std::size_t i = 0; own && i < test_.subnets.size(); ++i) {
      if (own->bare() != test_.subnets[i].from.bare()) continue;
      in_.push_back({.socket = std::move(socket), .subnet = i});
      break;
    }
  }
}

// Takes the token from the front of the data. False: it is another one.
bool Measurement::take_token(Incoming& from, const std::uint8_t*& data, std::size_t& size) const {
  while (from.token_bytes < kTokenBytes && size > 0) {
    from.token[from.token_bytes++] = *data++;
    --size;
  }
  return from.token_bytes < kTokenBytes || load_u64(from.token.data()) == test_.own_token;
}

bool Measurement::read(Incoming& from) {
  std::array<std::uint8_t, kChunkBytes> bytes;
  for (int turn = 0; turn < kTurn; ++turn) {
    const ssize_t got = recv(from.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (got == 0) return false;
    const std::uint8_t* data = bytes.data();
    auto size = static_cast<std::size_t>(got);
    if (!take_token(from, data, size)) return false;
    if (size == 0) continue;
    const auto now = Clock::now();
    if (!first_) first_ = now;
    Arrived& there = arrived_[from.subnet];
    there.bytes += size;
    if (there.bytes >= kTransferBytes && !there.whole) there.whole = now;
  }
  return true;
}

void Measurement::write(Outgoing& to) {
  constexpr std::size_t kAll = kTokenBytes + kTransferBytes;
  std::array<std::uint8_t, kTokenBytes> token;
  store_u32(token.data(), static_cast<std::uint32_t>(test_.peer_token));
  store_u32(token.data() + 4, static_cast<std::uint32_t>(test_.peer_token >> 32));
  const bool is_token = to.sent < kTokenBytes;
  const std::uint8_t* const data = is_token ? token.data() + to.sent : chunk_.data();
  const std::size_t size = is_token ? kTokenBytes - to.sent : std::min(kChunkBytes, kAll - to.sent);
  const ssize_t put = send(to.socket.get(), data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (put > 0) to.sent += static_cast<std::size_t>(put);
  const bool waits = put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  if (to.sent == kAll || (put < 0 && !waits)) to.socket.close();
}

void Measurement::wait() {
  std::vector<pollfd> files = {{has_received_ ? -1 : test_.listener, POLLIN, 0}};
  const bool may_send = are_connected();
  for (const Outgoing& each : out_) {
    // One that is connected waits for the others, so that all begin at once.
    const bool waits = each.is_connected && !may_send;
    files.push_back({each.socket.get(), static_cast<short>(waits ? 0 : POLLOUT), 0});
  }
  for (const Incoming& each : in_) files.push_back({each.socket.get(), POLLIN, 0});
  auto wake = until_;
  if (first_ && !has_received_) wake = std::min(wake, *first_ + kTransferTime);
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(wake - Clock::now()).count();
  (void)poll(files.data(), files.size(), static_cast<int>(std::max<std::int64_t>(left + 1, 1)));
  const pollfd* file = files.data() + 1;
  for (Outgoing& each : out_) {
    const short events = (file++)->revents;
    if (events == 0 || each.is_done()) continue;
    if (!each.is_connected) {
      each.is_connected = error_of(each.socket) == 0;
      if (!each.is_connected) each.socket.close();
    } else if (may_send) {
      write(each);
    } else {
      each.socket.close();  // the peer has ended it
    }
  }
  std::vector<bool> has_ended;
  for (Incoming& each : in_) has_ended.push_back((file++)->revents != 0 && !read(each));
  for (std::size_t i = in_.size(); i-- > 0;) {
    if (has_ended[i]) in_.erase(in_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (files.front().revents != 0) accept_all();
  if (!has_received_) end_of_window(Clock::now());
}

std::vector<std::uint32_t> Measurement::rates() const {
  std::vector<std::uint32_t> kbits(arrived_.size(), 0);
  if (!first_) return kbits;
  const Clock::time_point end = has_received_ ? last_ : Clock::now();
  for (std::size_t i = 0; i < arrived_.size(); ++i) {
    const auto time =
        std::chrono::duration_cast<Microseconds>(arrived_[i].whole.value_or(end) - *first_);
    const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 1));
    const std::uint64_t rate = arrived_[i].bytes * kKbitsPerBytePerUs / us;
    kbits[i] = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(rate, 1, UINT32_MAX));
  }
  return kbits;
}

}  // namespace

std::vector<std::uint32_t> measured_rates(const RateTest& test) { return Measurement(test).run(); }

std::size_t preferred_by_rate(const std::vector<std::uint32_t>& kbits) {
  if (std::find(kbits.begin(), kbits.end(), 0U) != kbits.end()) return 0;
  const auto time_us = [](std::uint32_t rate) {
    return kTransferBytes * kKbitsPerBytePerUs / rate;
  };
  const auto is_clearly_faster = [&time_us](std::uint32_t one, std::uint32_t other) {
    constexpr std::uint64_t kMarginUs = 5'000;
    return 2 * std::uint64_t{one} > 3 * std::uint64_t{other} &&
           time_us(one) + kMarginUs <= time_us(other);
  };
  for (std::size_t i = 0; i < kbits.size(); ++i) {
    const bool is_beaten = std::any_of(kbits.begin(), kbits.end(), [&](std::uint32_t other) {
      return is_clearly_faster(other, kbits[i]);
    });
    if (!is_beaten) return i;
  }
  return 0;
}

}  // namespace espalier::bootstrap
