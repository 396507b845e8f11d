#pragma once
// The launcher's connection to one host: the daemon that starts the host's ranks, or the remote
// shell that runs the daemon, and the pipes to it. Host only.

#include <poll.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "tools/cluster/keeper.h"
#include "tools/launch/frames.h"
#include "tools/launch/hosts.h"
#include "tools/launch/job_signals.h"

namespace espalier::launch {

inline constexpr std::uint64_t kFilesPerHost = 3;                // pipes of its daemon
inline constexpr std::uint64_t kDaemonPatience = 3'000'000'000;  // ns, for a daemon to end

// How daemons are started.
struct DaemonStart {
  const cluster::Keeper& keeper;
  const JobSignals& signals;
  std::string espalier;      // the path of this program, the same on all hosts
  std::string remote_shell;  // words for sh; the host's name and a command follow them
};

class Connection {
 public:
  enum class State { kStarting, kHello, kReady, kRunning, kOver };
  Host host;
  State state = State::kStarting;
  std::string refusal;
  std::string caller;         // this host's IP as the daemon's ssh saw it
  std::size_t unprinted = 0;  // bytes of output that are not printed yet

  [[nodiscard]] std::string where() const {
    return host.name.empty() ? "this host" : "host " + host.name;
  }
  // Starts the daemon. Errors: no pipe, no process.
  [[nodiscard]] Result<void> start(const DaemonStart& how);
  // Sends the message, or keeps it for flush(). Never waits: a daemon that waits until its own
  // messages are read takes no others.
  void send(const Fields& message);
  void flush();
  // Reads the available messages for take(). Returns false once the daemon has ended.
  [[nodiscard]] bool fill() { return reader_.fill(from_); }
  [[nodiscard]] bool take(Fields& message) { return reader_.take(message); }
  // Takes nothing more from the daemon.
  void close_messages();
  // Reads stderr. Before the start the text is kept, because it is the reason of a failure;
  // afterwards it is returned, for the user.
  [[nodiscard]] std::string read_errors();
  [[nodiscard]] std::string last_error_line() const;
  // What poll() waits for: messages, text on stderr (if `reads_errors`), room for messages.
  [[nodiscard]] std::array<pollfd, 3> events(bool reads_errors) const;

 private:
  friend void end_daemons(std::vector<Connection>& connections);
  [[noreturn]] void become_daemon(const DaemonStart& how, const std::array<int, 3>& files) const;

  pid_t process_ = -1;
  int to_ = -1;
  std::string outgoing_;  // what the pipe has not taken yet
  int from_ = -1;
  int errors_ = -1;
  Reader reader_{kGreeting};
  std::string error_text_;  // of the remote shell, incomplete line or last words
};

// Ends the daemons and removes their connections. Each daemon ends its processes once its pipe is
// closed; it, or its shell, has kDaemonPatience.
void end_daemons(std::vector<Connection>& connections);

}  // namespace espalier::launch
