#pragma once
// The launcher's connection to one host: the daemon that starts the host's ranks. Its messages pass
// through pipes of the launcher, or through the daemon of a neighbour. Host only.

#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "tools/cluster/keeper.h"
#include "tools/launch/frames.h"
#include "tools/launch/hosts.h"
#include "tools/launch/job_signals.h"
#include "tools/launch/neighbours.h"
#include "tools/launch/session.h"
#include "tools/launch/shell.h"

namespace espalier::launch {

inline constexpr std::uint64_t kFilesPerHost = 3;  // pipes of its daemon

// How daemons are started.
struct DaemonStart {
  const cluster::Keeper& keeper;
  const JobSignals& signals;
  std::string espalier;      // the path of this program, the same on all hosts
  std::string remote_shell;  // words for sh; the host's name and a command follow them
};

// A cable over which a host is reached: the neighbour from which, by its connection's number, and
// the address there.
struct Way {
  std::uint32_t from = 0;
  Neighbour to = {};
};

class Connection {
 public:
  enum class State { kStarting, kHello, kReady, kRunning, kOver };
  using Relay = std::function<void(const Way& way, Fields message)>;
  Host host;
  State state = State::kStarting;
  std::string refusal;
  std::string caller;         // this host's IP as the daemon's ssh saw it
  std::size_t unprinted = 0;  // bytes of output that are not printed yet
  // Only of a job over cables:
  std::uint32_t number = 0;                       // of the connection
  std::uint32_t channel = 0;                      // of its bytes at the neighbour's daemon
  std::optional<Way> way = {};                    // nothing: pipes of the launcher
  std::string came_from = {};                     // the way: "fe80::7 at eth0 of host box1"
  std::string identity = {};                      // of the host
  std::string announced = {};                     // the host's own name
  std::optional<Surroundings> surroundings = {};  // nothing: not known yet
  Session session = {};                           // begins only if there is a way
  bool is_cut = false;                            // the way has ended, and the session has not

  [[nodiscard]] std::string where() const;
  // Starts the daemon. Errors: no pipe, no process.
  [[nodiscard]] Result<void> start(const DaemonStart& how);
  // Lets a neighbour's daemon start it, over the cable to this host; `relay` sends a message
  // to the daemon `over.from`. `shell`: the words of the remote shell.
  void start_over(const Way& over, const std::string& espalier, const std::string& shell,
                  Relay relay);
  // Goes on over another way, on which `resumed` has arrived.
  void go_over(const Way& over, std::uint32_t other_channel, Reader reader, const Fields& resumed);
  // Tells the daemon of a session which messages have arrived, if that is due.
  void keep_alive(std::uint64_t now_ns) { pass(session.alive(now_ns)); }
  // Tells the daemon of a session that this process stops.
  void pause() {
    if (session.has_begun()) pass(encode({"pause"}));
  }
  // Sends the message, or keeps it for flush().
  void send(const Fields& message);
  void flush() { shell_.flush(); }
  // Reads the available messages for take(). Returns false once the daemon has ended.
  [[nodiscard]] bool fill() { return reader_.fill(shell_.output()); }
  [[nodiscard]] bool fill(const std::string& bytes) { return reader_.add(bytes); }
  [[nodiscard]] bool take(Fields& message) { return reader_.take(message); }
  // Takes nothing more from the daemon.
  void close_messages();
  // Reads stderr. Before the start the text is kept, because it is the reason of a failure;
  // afterwards it is returned, for the user.
  [[nodiscard]] std::string read_errors();
  [[nodiscard]] std::string take_errors(const std::string& text);
  [[nodiscard]] std::string last_error_line() const;
  // What poll() waits for: messages, text on stderr (if `reads_errors`), room for messages.
  [[nodiscard]] std::array<pollfd, 3> events(bool reads_errors) const {
    return shell_.events(reads_errors);
  }

 private:
  void pass(const std::string& bytes);
  friend void end_daemons(std::vector<Connection>& connections);

  Shell shell_;
  Relay relay_;
  Reader reader_{kGreeting};
  std::string error_text_;  // of the remote shell, incomplete line or last words
};

// Ends the daemons, as end_shells(), and removes their connections.
void end_daemons(std::vector<Connection>& connections);

}  // namespace espalier::launch
