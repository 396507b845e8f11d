#pragma once
// A daemon's way to its launcher: its stdin and stdout, and others after them once the launcher has
// asked for a session. Host only.

#include <poll.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "espalier/base/result.h"
#include "tools/launch/frames.h"
#include "tools/launch/session.h"

namespace espalier::launch {

class LauncherLink {
 public:
  using Take = std::function<void(const Fields& message)>;
  static constexpr std::size_t kEvents = 3;

  LauncherLink() = default;
  LauncherLink(const LauncherLink&) = delete;
  LauncherLink& operator=(const LauncherLink&) = delete;
  ~LauncherLink();
  // Sends the greeting. Returns false if stdout cannot be written.
  [[nodiscard]] bool greet();
  // Begins a session that outlives this way: pass_on() of this name leads to it.
  // Error: the name cannot be used.
  [[nodiscard]] Result<void> last(const std::string& name);
  // Sends the message as far as the launcher reads. Never waits.
  void say(const Fields& message);
  [[nodiscard]] std::array<pollfd, kEvents> events() const;
  // Serves the events, and gives each message to `take` until is_over().
  void serve(const pollfd* events, const Take& take);
  // Whether the launcher is gone, or has said that the job is over.
  [[nodiscard]] bool is_over() const;
  // When serve() has something to do without an event, ms; negative: never.
  [[nodiscard]] int timeout_ms() const;
  // Waits until the launcher has read everything, as long as it reads within this time.
  void drain(int patience_ms);

 private:
  void send();
  void lose();
  void accept_other();
  void resume();

  int in_ = 0, out_ = 1, listener_ = -1;  // stdin and stdout; in_ is negative: no way
  Session session_;
  Reader reader_;
  std::string outgoing_;  // what the way has not taken yet
  bool is_resumed_ = true;
  bool is_gone_ = false;
  std::uint64_t lost_at_ns_ = 0;
};

// Carries bytes between this process's stdin and stdout and the session of this name on this host,
// until either ends. Returns an exit status; 1: there is no such session of this user.
[[nodiscard]] int pass_on(const std::string& name);

}  // namespace espalier::launch
