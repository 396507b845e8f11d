#pragma once
// Test helper: a port to listen at later. Host only.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <random>

namespace espalier {

// Returns a port of 127.0.0.1 at which nothing listens, `type` as in socket(2). Linux gives higher
// ports to connections and to listeners that ask for any port, so no process gets this port
// meanwhile.
[[nodiscard]] inline std::uint16_t free_port(int type = SOCK_STREAM) {
  static std::mt19937 random{std::random_device{}()};
  while (true) {
    const auto port = static_cast<std::uint16_t>(20'000 + random() % 10'000);
    const int descriptor = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const int bound = bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address);
    close(descriptor);
    if (bound == 0) return port;
  }
}

}  // namespace espalier
