#pragma once
// A daemon on this host, or the remote shell that runs one, and the pipes to it. Host only.

#include <poll.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "tools/cluster/keeper.h"

namespace espalier::launch {

inline constexpr std::uint64_t kDaemonPatience = 3'000'000'000;  // ns, for a daemon to end

struct ShellCommand {
  std::string espalier;           // the path of this program, the same on all hosts
  std::string remote_shell = {};  // words for sh, before the host and a command; empty: none
  std::string host = {};          // a name or an address; not without a remote shell
  std::uint32_t port = 0;         // of the remote shell; 0: its default
  std::string session = {};       // of a daemon that runs there already; empty: a new daemon
};

class Shell {
 public:
  // Starts the daemon. `prepare` runs in its process: it restores the signals.
  // Errors: no pipe, no process.
  [[nodiscard]] Result<void> start(const cluster::Keeper& keeper, const ShellCommand& command,
                                   const std::function<void()>& prepare);
  // Sends the bytes, or keeps them for flush(). Never waits: a daemon that waits until its own
  // messages are read takes no others.
  void send(const std::string& bytes);
  void flush();
  // Pipes to read; negative: closed.
  [[nodiscard]] int output() const { return from_; }
  [[nodiscard]] int errors() const { return errors_; }
  void close_output();
  void close_errors();
  // What poll() waits for: output, text on stderr (if `reads_errors`), room for bytes.
  [[nodiscard]] std::array<pollfd, 3> events(bool reads_errors) const;

 private:
  friend void end_shells(const std::vector<Shell*>& shells, std::uint64_t patience_ns);

  pid_t process_ = -1;
  int to_ = -1;
  std::string outgoing_;  // what the pipe has not taken yet
  int from_ = -1;
  int errors_ = -1;
};

// Ends the daemons. Each one ends its processes once its pipe is closed; it, or its remote shell,
// has `patience_ns`.
void end_shells(const std::vector<Shell*>& shells, std::uint64_t patience_ns = kDaemonPatience);

}  // namespace espalier::launch
