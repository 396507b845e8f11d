#include "firmware/gateway/gateway.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>

namespace espalier::gateway {
namespace {

constexpr int kFailed = 1;
constexpr int kBadInput = 2;
// The loop cannot block on fabric and device at once. After the last progress it spins and yields
// the core after each round. Then it naps for a sixteenth of the time waited so far, which
// lengthens the wait by at most a sixteenth.
constexpr std::uint64_t kSpin = 150'000;        // ns
constexpr std::uint64_t kLongestNap = 200'000;  // ns, while a collective runs
constexpr std::uint64_t kIdleNap = 1'000'000;   // ns, between collectives
constexpr std::uint64_t kLook = 10'000'000;     // ns, between two looks at the launcher's channel

}  // namespace

int Gateway::run() {
  // Otherwise the board's process would inherit the channel and hold it open.
  (void)fcntl(channel(), F_SETFD, FD_CLOEXEC);
  const auto started = open_record().and_then([this] { return start_board(); });
  if (!started) return report_failure(kBadInput, started.error());
  const auto connected = receive_hello()
                             .and_then([this] { return check_hello(); })
                             .and_then([this] { return read_release(); })
                             .and_then([this] { return configure(); })
                             .and_then([this] { return open_fabric(); })
                             .and_then([this] { return connect(); })
                             .and_then([this] { return prepare_bridges(0); });
  if (!connected) return ended_ ? kFailed : report_failure(kFailed, connected.error());
  return serve();
}

int Gateway::report_failure(int status, const Error& error) {
  // This returns when the launcher ends the node. Nodes in a roll call wait for this one until the
  // fabric says that it is gone.
  if (options_.node.updates()) {
    generations_.clear();
    fabrics_.clear();
  }
  record_.ended(error.message);
  control::send_failure(channel(), "espalier-gateway", error.message, has_bad_input_);
  return has_bad_input_ ? kBadInput : status;
}

Conversation::Event Gateway::pump() {
  bool progress = port_->poll();
  const Conversation::Event event = agent_->poll();
  for (const Generation& each : generations_) progress = each.bridge->step() || progress;
  progress = port_->poll() || progress;
  const std::uint64_t now = clock_.now();
  if (agent_->completions() != board_completions_) {
    board_completions_ = agent_->completions();
    board_progress_ns_ = heard_ns_ = now;
  }
  hear_board(now);
  if (progress || event != Conversation::Event::kNothing) progress_ns_ = now;
  return event;
}

Result<void> Gateway::check_works() {
  report_rejections();
  look_at_board(clock_.now());
  if (const auto end = child_.ended(); end && end->failed) {
    return fail_board(end->how + "; it was started as: " + options_.start);
  }
  if (carrier_->down()) return fail_board("the device closed the connection");
  for (const Generation& each : generations_) {
    if (!each.bridge->fault().empty()) return fail_board(each.bridge->fault());
  }
  if (control::is_closed(channel())) {
    ended_ = true;
    return fail("the launcher is gone");
  }
  return {};
}

Result<void> Gateway::check_progress(std::uint64_t patience_ns, const std::string& what) {
  const std::uint64_t now = clock_.now();
  if (now - std::min(now, board_progress_ns_) <= patience_ns) return {};
  return fail_board("it was silent for " + std::to_string(patience_ns / 1'000'000) +
                    " ms; expected " + what);
}

void Gateway::wait() {
  const std::uint64_t now = clock_.now();
  const std::uint64_t waited = now - std::min(now, progress_ns_);
  if (waited < kSpin) {
    sched_yield();
    return;
  }
  const std::uint64_t longest = state_ == State::kIdle ? kIdleNap : kLongestNap;
  const std::uint64_t nap = std::min(waited / 16, longest);
  pollfd entries[] = {{channel(), POLLIN, 0}, {carrier_->fd(), POLLIN, 0}};
  const timespec limit{0, static_cast<long>(nap)};
  (void)ppoll(entries, 2, &limit, nullptr);
}

int Gateway::serve() {
  record_.connected();
  Result<void> served = send_to_launcher(control::Ready{});
  if (!served) return report_failure(kFailed, served.error());
  std::uint64_t next_look = 0;
  while (!ended_) {
    const Conversation::Event event = pump();
    const std::uint64_t now = clock_.now();
    served = take_event(event).and_then([this] { return continue_request(); });
    if (served && (state_ != State::kRunning || now >= next_look)) served = take_from_launcher();
    if (served && now >= next_look) {
      served = check_works();
      next_look = now + kLook;
    }
    if (!served && !ended_) return report_failure(kFailed, served.error());
    wait();
  }
  // The launcher ended the node or is gone, so end the board's session.
  if (!served) record_.ended("");
  if (agent_->can_send()) agent_->send(agent::Quit{});
  (void)pump();
  return served ? 0 : kFailed;
}

}  // namespace espalier::gateway
