#include <fcntl.h>
#include <sys/socket.h>
#include <termios.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "espalier/hal/serial/carrier.h"
#include "hal/serial/host/open_carriers.h"
#include "hal/serial/host/sockets.h"

namespace espalier {
namespace {

// Bytes of a non-blocking descriptor, one buffer at a time in each direction.
class FdStream final : public ByteStream {
 public:
  explicit FdStream(Descriptor fd) : fd_(std::move(fd)) {}

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool down() const override { return !fd_; }
  [[nodiscard]] bool pending() const { return taken_ < got_; }
  [[nodiscard]] bool put(std::uint8_t byte) override {
    if (put_ == out_.size()) flush();
    if (put_ == out_.size()) return false;
    out_[put_++] = byte;
    if (byte == 0) flush();  // end of a frame
    return true;
  }
  [[nodiscard]] bool get(std::uint8_t& byte) override {
    if (put_ > 0) flush();
    if (taken_ == got_ && !fill()) return false;
    byte = in_[taken_++];
    return true;
  }
  // Data begun with one device is not sent to the next.
  void join(Descriptor fd) {
    fd_ = std::move(fd);
    put_ = taken_ = got_ = 0;
  }

 private:
  void flush() {
    std::size_t gone = 0;
    while (gone < put_) {
      const ssize_t wrote = fd_ ? write(fd_.get(), out_.data() + gone, put_ - gone) : 0;
      if (wrote <= 0) {
        if (fd_ && (errno == EAGAIN || errno == EINTR)) break;
        leave();
        gone = put_;  // no device is connected: lost
      } else {
        gone += static_cast<std::size_t>(wrote);
      }
    }
    std::memmove(out_.data(), out_.data() + gone, put_ - gone);
    put_ -= gone;
  }
  [[nodiscard]] bool fill() {
    if (!fd_) return false;
    const ssize_t got = read(fd_.get(), in_.data(), in_.size());
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) leave();
    taken_ = 0;
    got_ = got > 0 ? static_cast<std::size_t>(got) : 0;
    return got_ > 0;
  }
  void leave() { fd_ = Descriptor(); }

  Descriptor fd_;
  std::array<std::uint8_t, 1024> out_ = {}, in_ = {};
  std::size_t put_ = 0, taken_ = 0, got_ = 0;
};

// Two of the longest frames take 90 ms at 115200 baud, and a board is polled in between.
constexpr std::uint64_t kResendNs = 200'000'000;

class TtyCarrier final : public HostCarrier {
 public:
  TtyCarrier(Descriptor fd, std::uint32_t baud) : stream_(std::move(fd)), baud_(baud) {}
  [[nodiscard]] std::uint32_t mtu() const override { return carrier_.mtu(); }
  [[nodiscard]] Status send(const std::uint8_t* frame, std::uint32_t size) override {
    return carrier_.send(frame, size);
  }
  [[nodiscard]] std::uint32_t receive(std::uint8_t* frame) override {
    return carrier_.receive(frame);
  }
  [[nodiscard]] bool down() const override { return stream_.down(); }
  [[nodiscard]] int fd() const override { return stream_.fd(); }
  [[nodiscard]] bool pending() const override { return stream_.pending(); }
  // The time of four of the longest frames, ten bits per byte, if that is longer.
  [[nodiscard]] std::uint64_t resend_ns() const override {
    return std::max(kResendNs, 4 * std::uint64_t{kByteMtu} * 10 * 1'000'000'000 / baud_);
  }

 private:
  FdStream stream_;
  std::uint32_t baud_;
  ByteCarrier carrier_{stream_, kByteMtu};
};

class StreamCarrier final : public HostCarrier {
 public:
  StreamCarrier(Descriptor listener, std::string path)
      : listener_(std::move(listener)), path_(std::move(path)), stream_(Descriptor()) {}
  ~StreamCarrier() override { unlink(path_.c_str()); }
  [[nodiscard]] std::uint32_t mtu() const override { return carrier_.mtu(); }
  [[nodiscard]] Status send(const std::uint8_t* frame, std::uint32_t size) override {
    if (!joined()) return Status::kOk;
    return carrier_.send(frame, size);
  }
  [[nodiscard]] std::uint32_t receive(std::uint8_t* frame) override {
    return joined() ? carrier_.receive(frame) : 0;
  }
  // The listener while no device is connected.
  [[nodiscard]] int fd() const override { return stream_.down() ? listener_.get() : stream_.fd(); }
  [[nodiscard]] bool pending() const override { return stream_.pending(); }
  [[nodiscard]] std::uint64_t resend_ns() const override { return kResendNs; }

 private:
  [[nodiscard]] bool joined() {
    if (!stream_.down()) return true;
    Descriptor fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) return false;
    stream_.join(std::move(fd));
    carrier_ = ByteCarrier(stream_, kByteMtu);
    return true;
  }

  Descriptor listener_;
  std::string path_;
  FdStream stream_;
  ByteCarrier carrier_{stream_, kByteMtu};
};

struct Speed {
  std::uint32_t baud;
  speed_t code;
};
constexpr Speed kSpeeds[] = {
    {9600, B9600},       {19200, B19200},     {38400, B38400},     {57600, B57600},
    {115200, B115200},   {230400, B230400},   {460800, B460800},   {500000, B500000},
    {576000, B576000},   {921600, B921600},   {1000000, B1000000}, {1152000, B1152000},
    {1500000, B1500000}, {2000000, B2000000}, {3000000, B3000000}, {4000000, B4000000}};

}  // namespace

Result<std::unique_ptr<HostCarrier>> open_tty(const std::string& path, std::uint32_t baud) {
  const Speed* speed = nullptr;
  std::string known;
  for (const Speed& each : kSpeeds) {
    if (each.baud == baud) speed = &each;
    known += (known.empty() ? "" : ", ") + std::to_string(each.baud);
  }
  if (speed == nullptr) {
    return fail("unknown baud rate " + std::to_string(baud) + "; expected one of " + known);
  }
  Descriptor fd(open(path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  termios settings = {};
  if (!fd || tcgetattr(fd.get(), &settings) != 0) {
    return fail("cannot use '" + path + "' as a serial device: " + std::strerror(errno));
  }
  cfmakeraw(&settings);
  settings.c_cflag |= CLOCAL | CREAD;
  settings.c_cflag &= ~static_cast<tcflag_t>(CRTSCTS | CSTOPB);
  settings.c_cc[VMIN] = 1;
  settings.c_cc[VTIME] = 0;
  if (cfsetspeed(&settings, speed->code) != 0 || tcsetattr(fd.get(), TCSANOW, &settings) != 0) {
    return fail("cannot set '" + path + "' to " + std::to_string(baud) +
                " baud: " + std::strerror(errno));
  }
  tcflush(fd.get(), TCIOFLUSH);
  return std::make_unique<TtyCarrier>(std::move(fd), baud);
}

Result<std::unique_ptr<HostCarrier>> open_stream(const std::string& path) {
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) {
    return fail(std::string("cannot create a unix socket: ") + std::strerror(errno));
  }
  if (auto bound = bind_unix(fd.get(), path); !bound) return fail(bound.error());
  if (listen(fd.get(), 1) != 0) {
    return fail("cannot listen at '" + path + "': " + std::strerror(errno));
  }
  return std::make_unique<StreamCarrier>(std::move(fd), path);
}

}  // namespace espalier
