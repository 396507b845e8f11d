#pragma once
// Addresses of a host's name by a deadline: the system's resolver waits for as long as it likes.
// Host only.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/network/address.h"

namespace espalier::network {

// A look-up in a thread of its own. If the resolver has not answered when this object ends, the
// thread is abandoned: it ends when the resolver answers, and its signals are blocked.
class Lookup {
 public:
  // Starts it. No thread, no memory: addresses() says so.
  explicit Lookup(const std::string& host);
  // Waits for the answer. False: it was not there by `until`.
  [[nodiscard]] bool wait(std::chrono::steady_clock::time_point until);
  // Returns the host's addresses with port 0, in the order of the resolver; not before wait() has
  // returned true. Errors: the host is unknown, or has no IP address.
  [[nodiscard]] Result<std::vector<Address>> addresses() const;
  // The same host's name in full, as the resolver has it; empty: none.
  [[nodiscard]] std::string full_name() const;

 private:
  struct Answer;
  std::string host_;
  std::shared_ptr<Answer> answer_;
};

// How long a look-up without a deadline of its own may take.
inline constexpr std::chrono::milliseconds kLookupTime{30'000};

// Returns all addresses of "HOST:PORT", at least one, each once, in the order of the resolver. A
// link-local address without an interface gives one for each interface of this host. `on_wait`, if
// any, is called each 0.1 s. Errors: not of this form, the host is unknown, no host can have the
// address (check_host_address()), the resolver does not answer within `time`.
[[nodiscard]] Result<std::vector<Address>> resolve(const std::string& text,
                                                   std::chrono::milliseconds time = kLookupTime,
                                                   const std::function<void()>& on_wait = {});

}  // namespace espalier::network
