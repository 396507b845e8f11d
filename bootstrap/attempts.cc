#include "bootstrap/attempts.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "bootstrap/message.h"

namespace espalier::bootstrap {
namespace {

using Milliseconds = std::chrono::milliseconds;
using network::Address;

// The next address is tried when the one before has failed, or after this time.
constexpr Milliseconds kStagger(50);
// Pauses before an address is tried again: doubled up to the second value.
constexpr Milliseconds kFirstPause(20), kLastPause(100);
// A connection that is not there by then begins anew: the kernel repeats it ever more seldom. It
// says after 3.1 s that no host has the address.
constexpr Milliseconds kConnectTime(3'500);
// Connections at once.
constexpr std::size_t kMostRunning = 32;

Address end_of(int descriptor, decltype(&getsockname) function) {
  sockaddr_storage found = {};
  socklen_t size = sizeof found;
  (void)function(descriptor, reinterpret_cast<sockaddr*>(&found), &size);
  return Address::from_socket(reinterpret_cast<sockaddr*>(&found)).value_or(Address());
}

}  // namespace

Attempts::Attempts(std::vector<Target> targets, const JobSecret& secret) : secret_(secret) {
  for (Target& target : targets) attempts_.push_back({.target = std::move(target)});
}

std::size_t Attempts::running() const {
  return static_cast<std::size_t>(
      std::count_if(attempts_.begin(), attempts_.end(),
                    [](const Attempt& each) { return each.state != State::kIdle; }));
}

void Attempts::end(Attempt& attempt, Outcome outcome, int error) {
  const auto now = Clock::now();
  const Milliseconds pause = std::min(kLastPause, kFirstPause * (1 << std::min(attempt.fails, 5U)));
  if (outcome != Outcome::kClosed || attempt.outcome != Outcome::kClosed)
    attempt.closed_since = now;
  ++attempt.fails;
  attempt.state = State::kIdle;
  attempt.socket.close();
  attempt.stream = Stream();
  attempt.outcome = outcome;
  attempt.error = error;
  attempt.due = now + pause;
  // The next one that has not been tried yet need not wait for its turn.
  for (Attempt& next : attempts_) {
    if (next.state == State::kIdle && next.fails == 0 && next.target.refusal.empty()) {
      next.due = std::min(next.due, now);
      break;
    }
  }
}

void Attempts::start(Attempt& attempt) {
  const Address& to = attempt.target.address;
  attempt.since = Clock::now();
  attempt.socket = Socket(
      ::socket(to.is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (attempt.socket.get() < 0) return end(attempt, Outcome::kError, errno);
  sockaddr_storage there;
  const socklen_t size = to.to_socket(there);
  if (::connect(attempt.socket.get(), reinterpret_cast<sockaddr*>(&there), size) == 0) {
    return connected(attempt);
  }
  if (errno != EINPROGRESS && errno != EINTR) return end(attempt, Outcome::kError, errno);
  attempt.state = State::kConnecting;
}

void Attempts::connected(Attempt& attempt) {
  const int descriptor = attempt.socket.get();
  int error = 0;
  socklen_t size = sizeof error;
  (void)getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return end(attempt, Outcome::kError, error);
  // A connection to a port of this host that nothing listens to can connect to itself.
  if (end_of(descriptor, getsockname) == end_of(descriptor, getpeername)) {
    return end(attempt, Outcome::kError, ECONNREFUSED);
  }
  attempt.stream = Stream(std::move(attempt.socket), false);
  attempt.state = State::kGreeting;
  if (!attempt.stream.greet()) end(attempt, Outcome::kClosed, 0);
}

bool Attempts::read(Attempt& attempt) {
  const bool is_open = attempt.stream.read();
  if (attempt.stream.is_foreign()) {
    end(attempt, Outcome::kForeign, 0);
    return false;
  }
  if (attempt.state == State::kGreeting && attempt.stream.is_ready()) {
    attempt.state = State::kProving;
    if (!attempt.stream.send(encode({.kind = Kind::kProbe}), secret_)) {
      end(attempt, Outcome::kClosed, 0);
      return false;
    }
  }
  if (const auto bytes = attempt.stream.next(secret_)) {
    const auto reply = decode(*bytes);
    if (reply && reply->kind == Kind::kHere) return true;
  }
  if (!is_open || attempt.stream.is_broken()) end(attempt, Outcome::kClosed, 0);
  return false;
}

void Attempts::start_those_due() {
  const auto now = Clock::now();
  if (is_new_) {
    is_new_ = false;
    auto due = now;
    for (Attempt& each : attempts_) {
      each.due = due;
      if (each.target.refusal.empty()) due += kStagger;
    }
  }
  for (Attempt& each : attempts_) {
    if (each.state == State::kConnecting && now - each.since > kConnectTime) {
      end(each, Outcome::kError, ETIMEDOUT);
    }
    const bool is_due =
        each.state == State::kIdle && each.target.refusal.empty() && each.due <= now;
    if (is_due && running() < kMostRunning) start(each);
  }
}

std::optional<Attempts::Reached> Attempts::take(Attempt& attempt) {
  Reached reached{.stream = std::move(attempt.stream), .server = attempt.target.address};
  reached.own = end_of(reached.stream.descriptor(), getsockname);
  for (Attempt& each : attempts_) each = {.target = std::move(each.target)};
  is_new_ = true;
  return reached;
}

std::optional<Attempts::Reached> Attempts::go_on(Clock::time_point until) {
  while (true) {
    start_those_due();
    std::vector<pollfd> files;
    std::vector<Attempt*> owners;
    auto wake = until;
    for (Attempt& each : attempts_) {
      if (each.state == State::kIdle) {
        if (each.target.refusal.empty()) wake = std::min(wake, each.due);
        continue;
      }
      const bool is_connecting = each.state == State::kConnecting;
      const int file = is_connecting ? each.socket.get() : each.stream.descriptor();
      files.push_back({file, static_cast<short>(is_connecting ? POLLOUT : POLLIN), 0});
      owners.push_back(&each);
      if (is_connecting) wake = std::min(wake, each.since + kConnectTime);
    }
    const auto left = std::chrono::duration_cast<Milliseconds>(wake - Clock::now()).count();
    (void)poll(files.data(), files.size(),
               static_cast<int>(std::clamp<std::int64_t>(left + 1, 1, 1'000)));
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (files[i].revents == 0) continue;
      if (owners[i]->state == State::kConnecting) {
        connected(*owners[i]);
      } else if (read(*owners[i])) {
        return take(*owners[i]);
      }
    }
    if (Clock::now() >= until) return {};
  }
}

bool Attempts::all_ended(Outcome outcome, Milliseconds time) const {
  bool has_any = false;
  for (const Attempt& each : attempts_) {
    if (!each.target.refusal.empty()) continue;
    if (each.outcome == Outcome::kNone) return false;
    // In between, it may be trying again.
    const bool is_so = each.outcome == outcome && Clock::now() - each.closed_since >= time;
    if (!is_so && each.outcome != Outcome::kError) return false;
    has_any = has_any || is_so;
  }
  return has_any;
}

std::string Attempts::report() const {
  const auto interfaces = network::running_interfaces();
  std::string text;
  for (const Attempt& each : attempts_) {
    const Address& address = each.target.address;
    std::string words = each.target.refusal;
    if (words.empty()) {
      switch (each.outcome) {
        case Outcome::kForeign: words = "not a server of Espalier"; break;
        case Outcome::kClosed: words = "another secret, or it ends"; break;
        case Outcome::kError: words = network::error_words(each.error); break;
        default: words = "no answer";
      }
    }
    const std::string interface = network::route_to(address, interfaces);
    text += (text.empty() ? "" : ", ") + address.bare().host() + " (" +
            (interface.empty() ? "" : interface + ": ") + words + ")";
  }
  return text.empty() ? "no address" : text;
}

}  // namespace espalier::bootstrap
