#pragma once
// Test helper: a server, its members, and connections by hand. Host only.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>

#include "base/network/address.h"
#include "bootstrap/client.h"
#include "bootstrap/message.h"
#include "bootstrap/server.h"
#include "bootstrap/stream.h"

namespace espalier::bootstrap {

using std::chrono::milliseconds;

inline constexpr JobSecret kSecret{1};

inline network::Address ip(const std::string& text) { return network::parse_ip(text).value(); }

inline std::unique_ptr<Server> start(std::uint32_t size, const JobSecret& secret = kSecret) {
  auto server = Server::start("127.0.0.1:0", size, secret);
  EXPECT_TRUE(server) << server.error().message;
  return *std::move(server);
}

inline Result<std::unique_ptr<Bootstrap>> member(const Server& server, std::uint32_t rank,
                                                 std::uint32_t size, milliseconds deadline,
                                                 const JobSecret& secret = kSecret) {
  Place place{.method = Method::kEnvironment,
              .rank = rank,
              .size = size,
              .address = server.address(),
              .secret = secret};
  return connect(std::move(place), deadline);
}

inline int connect_raw(const Server& server) {
  const auto address = network::resolve(server.address())->front();
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage where;
  const socklen_t size = address.to_socket(where);
  EXPECT_EQ(::connect(descriptor, reinterpret_cast<sockaddr*>(&where), size), 0);
  return descriptor;
}

// A member that is no Bootstrap: it sends a hello, then `more`, and reads the welcome. It ends
// without leaving the job.
inline Stream killed_member(const Server& server, std::uint32_t rank, std::uint32_t size,
                            const std::vector<Message>& more = {}) {
  Stream stream(Socket(connect_raw(server)), false);
  EXPECT_TRUE(stream.greet());
  while (!stream.is_ready() && stream.read()) continue;
  EXPECT_TRUE(stream.send(encode({.kind = Kind::kHello, .a = rank, .b = size}), kSecret));
  for (const Message& one : more) EXPECT_TRUE(stream.send(encode(one), kSecret));
  while (!stream.next(kSecret) && stream.read()) continue;
  return stream;
}

}  // namespace espalier::bootstrap
