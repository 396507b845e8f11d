#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/network/lookup.h"
#include "base/try.h"
#include "hal/serial/host/open_carriers.h"
#include "hal/serial/host/sockets.h"

namespace espalier {
namespace {

// An error on the way, such as a missing receiver, loses the message. Only a full buffer is worth
// another try.
[[nodiscard]] Status sent(ssize_t result) {
  const bool full = result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS);
  return full ? Status::kTryAgain : Status::kOk;
}

// Ethernet frames between two unix sockets.
class UnixCarrier final : public HostCarrier {
 public:
  UnixCarrier(Descriptor socket, std::string local, const sockaddr_un& remote,
              const EthernetAddress& own, const EthernetAddress& other)
      : socket_(std::move(socket)),
        local_(std::move(local)),
        remote_(remote),
        own_(own),
        other_(other) {}
  ~UnixCarrier() override { unlink(local_.c_str()); }

  [[nodiscard]] std::uint32_t mtu() const override { return kEthernetMtu; }
  [[nodiscard]] int fd() const override { return socket_.get(); }
  [[nodiscard]] Status send(const std::uint8_t* frame, std::uint32_t size) override {
    write_ethernet_header(out_.data(), other_, own_, size);
    std::memcpy(out_.data() + kEthernetHeaderBytes, frame, size);
    const std::uint32_t all = ethernet_bytes(size);
    const std::uint32_t used = kEthernetHeaderBytes + size;
    std::memset(out_.data() + used, 0, all - used);
    return sent(sendto(socket_.get(), out_.data(), all, MSG_DONTWAIT,
                       reinterpret_cast<const sockaddr*>(&remote_), sizeof remote_));
  }
  // Skips frames for others, which a switch may deliver.
  [[nodiscard]] std::uint32_t receive(std::uint8_t* frame) override {
    for (;;) {
      const ssize_t got = recv(socket_.get(), in_.data(), in_.size(), MSG_DONTWAIT);
      if (got < 0) return 0;
      const std::uint32_t size =
          read_ethernet_header(in_.data(), static_cast<std::uint32_t>(got), own_);
      if (size == 0) continue;
      std::memcpy(frame, in_.data() + kEthernetHeaderBytes, size);
      return size;
    }
  }

 private:
  Descriptor socket_;
  std::string local_;
  sockaddr_un remote_;
  EthernetAddress own_, other_;
  std::array<std::uint8_t, kEthernetMaxBytes> out_ = {};
  std::array<std::uint8_t, 2048> in_ = {};  // including a frame check sequence and a VLAN tag
};

class UdpCarrier final : public HostCarrier {
 public:
  explicit UdpCarrier(Descriptor socket) : socket_(std::move(socket)) {}

  [[nodiscard]] std::uint32_t mtu() const override { return kUdpMtu; }
  [[nodiscard]] int fd() const override { return socket_.get(); }
  [[nodiscard]] Status send(const std::uint8_t* frame, std::uint32_t size) override {
    return sent(::send(socket_.get(), frame, size, MSG_DONTWAIT));
  }
  [[nodiscard]] std::uint32_t receive(std::uint8_t* frame) override {
    // An error reports an earlier message that had no receiver.
    for (int tries = 0; tries < 2; ++tries) {
      const ssize_t got = recv(socket_.get(), frame, kUdpMtu, MSG_DONTWAIT);
      if (got > 0) return static_cast<std::uint32_t>(got);
    }
    return 0;
  }

 private:
  static constexpr std::uint32_t kUdpMtu = 1472;  // fits into an Ethernet frame
  Descriptor socket_;
};

[[nodiscard]] std::string reason() { return std::strerror(errno); }

}  // namespace

Result<std::unique_ptr<HostCarrier>> open_unix(const std::string& local, const std::string& remote,
                                               const EthernetAddress& own,
                                               const EthernetAddress& other) {
  const auto address = address_of(remote);
  if (!address) return fail(address.error());
  Descriptor fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) {
    return fail("cannot create a unix socket: " + reason());
  }
  if (auto bound = bind_unix(fd.get(), local); !bound) return fail(bound.error());
  return std::make_unique<UnixCarrier>(std::move(fd), local, *address, own, other);
}

Result<std::unique_ptr<HostCarrier>> open_udp(std::uint16_t local_port, const std::string& remote) {
  ESPALIER_TRY_TO(const std::vector<network::Address> found, network::resolve(remote));
  const network::Address& other = found.front();
  const network::Address own = network::wildcard(other.is_v6).with_port(local_port);
  sockaddr_storage address;
  socklen_t size = own.to_socket(address);
  Descriptor fd(socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd || bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return fail("cannot bind UDP port " + std::to_string(local_port) + ": " + reason());
  }
  size = other.to_socket(address);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return fail("cannot connect to " + other.text() + ": " + reason());
  }
  return std::make_unique<UdpCarrier>(std::move(fd));
}

}  // namespace espalier
