#pragma once
// A TCP connection that carries sealed messages: encrypted and authenticated under keys derived
// from the job secret and two fresh random values, one per end. A message that was not sealed by a
// process of the job, or was repeated, reordered or cut, ends the connection and has no other
// effect. Host only.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/process/forks.h"
#include "espalier/base/result.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier::bootstrap {

// The longest messages carry a set of ranks, or a value of 64 KiB and its key.
inline constexpr std::size_t kMaxMessageBytes = (std::size_t{128} << 10) + 1024;

using Clock = std::chrono::steady_clock;

// A socket that is closed at the end. A forked child has none of its parent's sockets: it closes
// them when it begins, so that a connection ends with the parent.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor);
  Socket(Socket&& other) noexcept : descriptor_(other.descriptor_), generation_(other.generation_) {
    other.descriptor_ = -1;
  }
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }
  void close();
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  std::uint32_t generation_ = process_generation();
};

// One end of a connection.
class Stream {
 public:
  Stream() = default;
  Stream(Socket socket, bool is_server);

  // Sends this end's random value, which must precede everything else.
  [[nodiscard]] bool greet();
  // Reads what has arrived, without waiting. False: the connection ended, or the peer speaks
  // another protocol (is_foreign()); next() still gives the messages that arrived whole.
  [[nodiscard]] bool read();
  // The next message that has arrived whole; nothing: none, or is_broken().
  [[nodiscard]] std::optional<std::string> next(const JobSecret& secret);
  // Sends a message; waits for room at most 10 s. False: the connection ended. The peer's random
  // value must have arrived: is_ready().
  [[nodiscard]] bool send(const std::string& message, const JobSecret& secret);
  [[nodiscard]] bool is_ready() const { return has_peer_; }
  [[nodiscard]] bool is_broken() const { return is_broken_; }
  [[nodiscard]] bool is_foreign() const { return is_foreign_; }
  [[nodiscard]] int descriptor() const { return socket_.get(); }

 private:
  using Key = std::array<unsigned char, 32>;
  void derive_keys(const JobSecret& secret);
  [[nodiscard]] bool take_greeting();
  [[nodiscard]] bool write_all(const std::string& bytes);

  Socket socket_;
  bool is_server_ = false;
  std::array<unsigned char, 32> own_ = {}, peer_ = {};  // random values
  bool has_peer_ = false, has_keys_ = false, is_broken_ = false, is_foreign_ = false;
  Key send_key_ = {}, receive_key_ = {};
  std::uint64_t sent_ = 0, received_ = 0;
  std::string in_;
};

}  // namespace espalier::bootstrap
