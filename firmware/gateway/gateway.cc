#include "firmware/gateway/gateway.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>

namespace espalier::gateway {
namespace {

constexpr int kFailed = 1;
constexpr int kBadInput = 2;
// The fabric cannot be waited for together with the device: after the last thing that moved the
// loop spins, giving the core away after each round, then naps for a sixteenth of the time waited
// so far, which adds at most that to it.
constexpr std::uint64_t kSpin = 150'000;        // ns
constexpr std::uint64_t kLongestNap = 200'000;  // ns, while a collective runs
constexpr std::uint64_t kIdleNap = 1'000'000;   // ns, between collectives
constexpr std::uint64_t kLook = 10'000'000;     // ns, between two looks at the launcher's channel

}  // namespace

int Gateway::run() {
  // Else the board's process would hold it open.
  (void)fcntl(options_.node.controls.front(), F_SETFD, FD_CLOEXEC);
  if (!start_board()) return fail(kBadInput);
  if (!hear_hello() || !check_hello() || !configure() || !open_fabric() || !connect()) {
    return ended_ ? kFailed : fail(kFailed);
  }
  return serve();
}

int Gateway::fail(int status) {
  control::send_failure(options_.node.controls.front(), "espalier-gateway", error_);
  return status;
}

Conversation::Event Gateway::pump() {
  bool moved = port_->poll();
  const Conversation::Event event = agent_->poll();
  if (bridge_ != nullptr) moved = bridge_->step() || moved;
  moved = port_->poll() || moved;
  const std::uint64_t now = clock_.now();
  if (agent_->moves() != board_moves_) {
    board_moves_ = agent_->moves();
    board_moved_ns_ = now;
  }
  if (moved || event != Conversation::Event::kNothing) moved_ns_ = now;
  return event;
}

// Whether board, device and launcher are there still; else error_ says why not.
bool Gateway::works() {
  std::string how;
  if (child_.lost(how)) return broken(how + "; it was started as: " + options_.start);
  if (carrier_->down()) return broken("the device hung up");
  if (bridge_ != nullptr && !bridge_->fault().empty()) return broken(bridge_->fault());
  pollfd entry{options_.node.controls.front(), 0, 0};
  if (poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0) {
    ended_ = true;
    error_ = "the launcher is gone";
    return false;
  }
  return true;
}

bool Gateway::patient(std::uint64_t patience_ns, const std::string& what) {
  const std::uint64_t now = clock_.now();
  if (now - std::min(now, board_moved_ns_) <= patience_ns) return true;
  return broken("it is silent for " + std::to_string(patience_ns / 1'000'000) + " ms; awaited " +
                what);
}

void Gateway::wait() {
  const std::uint64_t now = clock_.now();
  const std::uint64_t still = now - std::min(now, moved_ns_);
  if (still < kSpin) {
    sched_yield();
    return;
  }
  const std::uint64_t longest = state_ == State::kIdle ? kIdleNap : kLongestNap;
  const std::uint64_t nap = std::min(still / 16, longest);
  pollfd entries[] = {{options_.node.controls.front(), POLLIN, 0}, {carrier_->fd(), POLLIN, 0}};
  const timespec most{0, static_cast<long>(nap)};
  (void)ppoll(entries, 2, &most, nullptr);
}

int Gateway::serve() {
  const int channel = options_.node.controls.front();
  if (!control::send(channel, control::Ready{})) return kFailed;
  std::uint64_t look = 0;
  while (!ended_) {
    const Conversation::Event event = pump();
    const std::uint64_t now = clock_.now();
    bool well = take(event) && go_on();
    if (well && (state_ != State::kRunning || now >= look)) well = attend();
    if (well && now >= look) {
      well = works();
      look = now + kLook;
    }
    if (!well && !ended_) return fail(kFailed);
    wait();
  }
  // Told to end: so is the board.
  if (agent_->can_send()) agent_->send(agent::Quit{});
  (void)pump();
  return error_.empty() ? 0 : kFailed;
}

}  // namespace espalier::gateway
