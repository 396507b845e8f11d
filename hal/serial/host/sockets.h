#pragma once
// A file descriptor that is closed with its owner, and unix sockets by their paths. Host only.

#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "espalier/base/result.h"

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

// Returns the address of the socket at `path`. Error: the path is empty or too long.
[[nodiscard]] Result<sockaddr_un> address_of(const std::string& path);
// Binds fd to `path`; replaces a socket left there.
[[nodiscard]] Result<void> bind_unix(int fd, const std::string& path);

}  // namespace espalier
