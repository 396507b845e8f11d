#pragma once
// A file descriptor that is closed with its owner, and unix sockets by their paths. Host only.

#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace espalier {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// On error returns false and sets `error`.
[[nodiscard]] bool address_of(const std::string& path, sockaddr_un& address, std::string& error);
// Binds fd to `path`; replaces a socket left there.
[[nodiscard]] bool bind_unix(int fd, const std::string& path, std::string& error);

}  // namespace espalier
