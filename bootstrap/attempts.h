#pragma once
// Connections to the addresses of a rendezvous server, side by side and without blocking: the first
// server that proves the job secret is taken. Host only.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/candidates.h"
#include "bootstrap/stream.h"

namespace espalier::bootstrap {

class Attempts {
 public:
  // A server that ends may close connections that it has accepted for this long.
  static constexpr std::chrono::milliseconds kEndTime{1'000};

  // `secret` must outlive it.
  Attempts(std::vector<Target> targets, const JobSecret& secret);

  struct Reached {
    Stream stream;
    network::Address server = {}, own = {};  // the two ends
  };
  // Connects until a server has proven itself, or until `until`. Each address is tried again until
  // a server is found; after that, the next call begins anew with all addresses.
  [[nodiscard]] std::optional<Reached> go_on(Clock::time_point until);

  // Whether a server speaks another protocol, or for kEndTime did not know the secret, and no other
  // address may still answer.
  [[nodiscard]] bool is_foreign() const { return all_ended(Outcome::kForeign, {}); }
  [[nodiscard]] bool has_other_secret() const { return all_ended(Outcome::kClosed, kEndTime); }
  // The first address, which the processes of a host have in common.
  [[nodiscard]] network::Address first() const {
    return attempts_.empty() ? network::Address() : attempts_.front().target.address;
  }
  // Returns what became of each address, with the interface that leads to it:
  // "10.0.0.7 (eth0: no route to host), fd00::7 (eth1: no answer)".
  [[nodiscard]] std::string report() const;

 private:
  enum class State : std::uint8_t { kIdle, kConnecting, kGreeting, kProving };
  enum class Outcome : std::uint8_t { kNone, kError, kForeign, kClosed };
  struct Attempt {
    Target target;
    State state = State::kIdle;
    Socket socket = {};  // kConnecting
    Stream stream = {};  // kGreeting, kProving
    Clock::time_point since = {}, due = {};
    Clock::time_point closed_since = {};
    Outcome outcome = Outcome::kNone;
    int error = 0;            // kError: errno
    std::uint32_t fails = 0;  // in a row
  };

  void start(Attempt& attempt);
  void connected(Attempt& attempt);
  // Reads what has arrived. True: the server has proven itself.
  [[nodiscard]] bool read(Attempt& attempt);
  void end(Attempt& attempt, Outcome outcome, int error);
  void start_those_due();
  [[nodiscard]] std::optional<Reached> take(Attempt& attempt);
  [[nodiscard]] bool all_ended(Outcome outcome, std::chrono::milliseconds time) const;
  [[nodiscard]] std::size_t running() const;

  std::vector<Attempt> attempts_;
  const JobSecret& secret_;
  bool is_new_ = true;  // none has begun
};

}  // namespace espalier::bootstrap
