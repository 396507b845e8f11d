#include "base/network/lookup.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/network/interfaces.h"
#include "base/one_line.h"
#include "base/try.h"

namespace espalier::network {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kWaitPause(100);

// Adds `address`, or if it needs a scope and has none, one for each interface.
void add(const Address& address, std::vector<Address>& all) {
  const auto add_once = [&all](const Address& each) {
    if (std::find(all.begin(), all.end(), each) == all.end()) all.push_back(each);
  };
  if (!address.needs_scope() || address.scope != 0) return add_once(address);
  for (const Interface& interface : running_interfaces()) {
    if (interface.kind == InterfaceKind::kLoopback) continue;
    Address scoped = address;
    scoped.scope = interface.index;
    add_once(scoped);
  }
}

// "2.0 s".
std::string seconds_text(Milliseconds time) {
  const auto tenths = (time.count() + 50) / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

// The addresses of a name.
Result<std::vector<Address>> look_up(const std::string& host, Milliseconds time,
                                     const std::function<void()>& on_wait) {
  const auto until = Clock::now() + time;
  Lookup lookup(host);
  while (!lookup.wait(std::min(until, Clock::now() + kWaitPause))) {
    if (Clock::now() >= until) {
      return fail("host '" + one_line(host) + "': the resolver does not answer within " +
                  seconds_text(time) +
                  "; expected an address, a name in /etc/hosts, or name servers that answer");
    }
    if (on_wait) on_wait();
  }
  return lookup.addresses();
}

}  // namespace

// What the thread writes, and the waiting thread reads once `is_there`.
struct Lookup::Answer {
  std::mutex mutex = {};
  std::condition_variable changed = {};
  bool is_there = false;
  std::string error = {};
  std::vector<Address> addresses = {};
  std::string full_name = {};

  void ask(const std::string& host) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_CANONNAME;
    addrinfo* found = nullptr;
    const int failure = getaddrinfo(host.c_str(), nullptr, &hints, &found);
    const std::lock_guard lock(mutex);
    if (failure != 0) error = gai_strerror(failure);
    if (failure == 0 && found->ai_canonname != nullptr) full_name = found->ai_canonname;
    for (const addrinfo* each = failure == 0 ? found : nullptr; each; each = each->ai_next) {
      if (const auto address = Address::from_socket(each->ai_addr)) addresses.push_back(*address);
    }
    if (failure == 0) freeaddrinfo(found);
  }
  void tell(const char* failure = nullptr) {
    const std::lock_guard lock(mutex);
    if (failure != nullptr) error = failure;
    is_there = true;
    changed.notify_all();
  }
};

Lookup::Lookup(const std::string& host) : host_(host), answer_(std::make_shared<Answer>()) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([answer = answer_, host] {
      try {
        answer->ask(host);
        answer->tell();
      } catch (const std::bad_alloc&) {
        answer->tell("no memory");
      }
    }).detach();
  } catch (const std::system_error&) {
    answer_->tell("no thread for the resolver");
  } catch (const std::bad_alloc&) {
    answer_->tell("no memory");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Lookup::wait(Clock::time_point until) {
  std::unique_lock lock(answer_->mutex);
  return answer_->changed.wait_until(lock, until, [this] { return answer_->is_there; });
}

Result<std::vector<Address>> Lookup::addresses() const {
  const std::lock_guard lock(answer_->mutex);
  if (!answer_->error.empty()) {
    return fail("host '" + one_line(host_) + "' is unknown: " + answer_->error);
  }
  if (answer_->addresses.empty()) return fail("host '" + one_line(host_) + "' has no IP address");
  return answer_->addresses;
}

std::string Lookup::full_name() const {
  const std::lock_guard lock(answer_->mutex);
  return answer_->full_name;
}

Result<std::vector<Address>> resolve(const std::string& text, Milliseconds time,
                                     const std::function<void()>& on_wait) {
  ESPALIER_TRY_TO(const HostAndPort parts, split(text));
  std::vector<Address> all;
  if (const auto given = parse_ip(parts.host)) {
    ESPALIER_TRY(check_host_address(*given));
    add(given->with_port(parts.port), all);
    if (!all.empty()) return all;
    return fail("'" + one_line(parts.host) +
                "' needs an interface, and none is up and running; expected ADDRESS%INTERFACE");
  }
  ESPALIER_TRY_TO(const auto found, look_up(parts.host, time, on_wait));
  for (const Address& each : found) {
    ESPALIER_TRY(check_host_address(each));
    add(each.with_port(parts.port), all);
  }
  if (!all.empty()) return all;
  return fail("host '" + one_line(parts.host) + "' has no IP address");
}

}  // namespace espalier::network
