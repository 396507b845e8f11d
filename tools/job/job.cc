#include "tools/job/job.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "base/one_line.h"
#include "espalier/base/version.h"
#include "espalier/bootstrap/server.h"
#include "tools/job/frames.h"
#include "tools/launch/keeper.h"

namespace espalier::job {
namespace {

constexpr std::size_t kInputBytes = 65536;  // of one message; the daemon has at most one
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kMaxQuoted = 40;  // bytes of a wrong message in an error
constexpr std::uint64_t kNsPerMs = 1'000'000;

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? "'\\''" : std::string(1, letter);
  return text + "'";
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// The daemon of one host, or the remote shell that runs it.
struct Connection {
  enum class State { kStarting, kHello, kReady, kRunning, kOver };
  Host host;
  State state = State::kStarting;
  pid_t process = -1;
  int to = -1;
  std::string outgoing;  // what the pipe has not taken yet
  int from = -1;
  int errors = -1;
  Reader reader{kGreeting};
  std::string error_text;  // of the remote shell, incomplete line or last words
  std::string refusal;
  std::string caller;  // this host's IP as the daemon's ssh saw it

  [[nodiscard]] std::string where() const {
    return host.name.empty() ? "this host" : "host " + host.name;
  }
};

class Job {
 public:
  explicit Job(const JobOptions& options) : options_(options) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();
  Result<int> run();

 private:
  Result<void> connect(Connection& connection, const std::string& espalier);
  [[noreturn]] void become_daemon(const Connection& connection, const std::string& espalier,
                                  const std::array<int, 3>& files);
  Result<void> await(Connection::State state);
  Result<void> serve_rendezvous();
  [[nodiscard]] std::string address_for(const Connection& connection) const;
  void describe_job(Connection& connection);
  void wait_and_serve(int timeout_ms);
  void send(Connection& connection, const Fields& message);
  void flush(Connection& connection);
  void serve(Connection& connection);
  [[nodiscard]] bool handle(Connection& connection, const Fields& message);
  void lose(Connection& connection);
  void read_errors(Connection& connection);
  void take_signal();
  void take_input();
  [[nodiscard]] bool take_end(const Connection& connection, const RankEnd& end);
  void fail_with(const std::string& line, int status);
  void end_all(int signal_number);

  const JobOptions& options_;
  launch::Keeper keeper_;
  std::unique_ptr<bootstrap::Server> server_;
  std::vector<Connection> connections_;
  std::vector<bool> ended_;
  std::string secret_;
  sigset_t mask_before_{};
  int signals_ = -1;
  int signals_seen_ = 0;
  int interrupted_by_ = 0;
  bool takes_input_ = false;
  std::uint32_t living_ = 0;
  int status_ = 0;
};

// Ends the daemons: each one ends its processes once its pipe is closed.
Job::~Job() {
  std::vector<pid_t> groups;
  for (Connection& connection : connections_) {
    if (connection.to >= 0) close(connection.to);
    if (connection.process > 0) groups.push_back(connection.process);
  }
  // Reads to the end of the daemon's output, which is the daemon's end; a shell gets 3 s.
  const std::uint64_t until = monotonic_ns() + 3000 * kNsPerMs;
  for (Connection& connection : connections_) {
    while (connection.from >= 0 && monotonic_ns() < until) {
      pollfd file{connection.from, POLLIN, 0};
      if (poll(&file, 1, 10) > 0 && !connection.reader.fill(connection.from)) break;
    }
    if (connection.from >= 0) close(connection.from);
    if (connection.errors >= 0) close(connection.errors);
  }
  launch::end_groups(groups);
  for (const pid_t group : groups) waitpid(group, nullptr, 0);
  keeper_.stop();
  if (signals_ >= 0) {
    close(signals_);
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }
}

void Job::become_daemon(const Connection& connection, const std::string& espalier,
                        const std::array<int, 3>& files) {
  for (int i = 0; i < 3; ++i) dup2(files[static_cast<std::size_t>(i)], i);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  if (connection.host.name.empty()) {
    execl(espalier.c_str(), espalier.c_str(), "launch-daemon", nullptr);
  } else {
    const std::string words = "exec " + options_.remote_shell + " \"$@\"";
    const std::string command = "exec " + quoted(espalier) + " launch-daemon";
    execl("/bin/sh", "sh", "-c", words.c_str(), "sh", connection.host.name.c_str(), command.c_str(),
          nullptr);
  }
  _exit(127);
}

Result<void> Job::connect(Connection& connection, const std::string& espalier) {
  int pipes[3][2];
  for (auto& ends : pipes) {
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return fail(std::string("cannot open a pipe: ") + std::strerror(errno));
    }
  }
  const pid_t self = getpid();
  connection.process = fork();
  const int failure = errno;
  if (connection.process == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self || !keeper_.enter()) _exit(127);
    become_daemon(connection, espalier, {pipes[0][0], pipes[1][1], pipes[2][1]});
  }
  close(pipes[0][0]);
  close(pipes[1][1]);
  close(pipes[2][1]);
  connection.to = pipes[0][1];
  fcntl(connection.to, F_SETFL, O_NONBLOCK);
  connection.from = pipes[1][0];
  connection.errors = pipes[2][0];
  if (connection.process < 0) {
    return fail(std::string("cannot start a process: ") + std::strerror(failure));
  }
  setpgid(connection.process, connection.process);
  return {};
}

void Job::describe_job(Connection& connection) {
  std::error_code ignored;
  Description job;
  job.size = std::to_string(options_.ranks);
  for (std::uint32_t i = 0; i < connection.host.count; ++i) {
    job.ranks.push_back(connection.host.first + i);
  }
  job.secret = secret_;
  job.folder = std::filesystem::current_path(ignored).string();
  job.variables = options_.variables;
  job.arguments = options_.arguments;
  send(connection, to_fields(job));
}

// Never waits: a daemon that waits until its own messages are read takes no others.
void Job::send(Connection& connection, const Fields& message) {
  connection.outgoing += encode(message);
  flush(connection);
}

void Job::flush(Connection& connection) {
  while (!connection.outgoing.empty()) {
    const ssize_t written =
        write(connection.to, connection.outgoing.data(), connection.outgoing.size());
    if (written > 0) connection.outgoing.erase(0, static_cast<std::size_t>(written));
    if (written >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) connection.outgoing.clear();  // its end is read from the other pipe
    return;
  }
}

void Job::fail_with(const std::string& line, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "espalier: %s\n", one_line(line).c_str());
  if (status_ == 0) status_ = status;
  if (options_.kill_on_failure) end_all(SIGKILL);
}

void Job::end_all(int signal_number) {
  for (Connection& connection : connections_) {
    if (connection.state != Connection::State::kRunning) continue;
    send(connection, {"signal", std::to_string(signal_number)});
  }
}

// False: the rank is not one of the host, or has ended before.
bool Job::take_end(const Connection& connection, const RankEnd& end) {
  const auto [rank, status] = end;
  const Host& host = connection.host;
  if (rank < host.first || rank - host.first >= host.count || ended_[rank]) return false;
  ended_[rank] = true;
  --living_;
  if (rank == 0) takes_input_ = false;
  if (status == 0) return true;
  const std::string place = connection.host.name.empty() ? "" : " on host " + connection.host.name;
  const bool is_signal = status < 0;
  fail_with("rank " + std::to_string(rank) + place + " ended with " +
                (is_signal ? "signal " : "status ") + std::to_string(is_signal ? -status : status),
            is_signal ? 128 - status : status);
  return true;
}

// False: the message is malformed, or does not belong here.
bool Job::handle(Connection& connection, const Fields& message) {
  using State = Connection::State;
  const std::string& name = message[0];
  const bool runs = connection.state == State::kRunning;
  if (name == "hello" && message.size() == 3 && connection.state == State::kStarting) {
    connection.state = State::kHello;
    connection.caller = message[2];
    if (message[1] != kVersion) {
      connection.refusal = "it has Espalier " + message[1] + "; expected " + kVersion;
    }
  } else if (name == "ready" && message.size() == 1 && connection.state == State::kHello) {
    connection.state = State::kReady;
  } else if (name == "refused" && message.size() == 2) {
    connection.refusal = message[1];
  } else if (name == "taken" && message.size() == 1 && runs) {
    takes_input_ = living_ > 0;
  } else if (name == "end" && runs) {
    const auto end = read_end(message);
    return end && take_end(connection, *end);
  } else if (name == "output" && message.size() == 4 && runs) {
    std::string text;
    for (std::size_t begin = 0; begin < message[3].size();) {
      const std::size_t end = message[3].find('\n', begin) + 1;
      text += "[" + one_line(message[1]) + "] " + message[3].substr(begin, end - begin);
      if (end == 0) break;
      begin = end;
    }
    (void)write_all(message[2] == "2" ? STDERR_FILENO : STDOUT_FILENO, text);
  } else {
    return false;
  }
  return true;
}

// The daemon is gone, and with it every process of its host.
void Job::lose(Connection& connection) {
  const bool was_running = connection.state == Connection::State::kRunning;
  connection.state = Connection::State::kOver;
  close(connection.from);
  connection.from = -1;
  if (!was_running) return;
  std::uint32_t lost = 0;
  for (std::uint32_t i = 0; i < connection.host.count; ++i) {
    const std::uint32_t rank = connection.host.first + i;
    if (ended_[rank]) continue;
    ended_[rank] = true;
    ++lost;
  }
  living_ -= lost;
  if (lost == 0) return;
  const std::string reason = connection.refusal.empty() ? "its daemon ended" : connection.refusal;
  fail_with(connection.where() + ": " + reason + "; " + std::to_string(lost) +
                " of its ranks from " + std::to_string(connection.host.first) + " are lost",
            1);
}

void Job::serve(Connection& connection) {
  const bool open = connection.reader.fill(connection.from);
  for (Fields message; connection.reader.take(message);) {
    if (handle(connection, message)) continue;
    connection.refusal = "its daemon sent a message '" + message[0].substr(0, kMaxQuoted) +
                         "' that is malformed or does not belong here";
    return lose(connection);
  }
  if (!open) lose(connection);
}

// Before the start the text is the reason of a failure, afterwards a message for the user.
void Job::read_errors(Connection& connection) {
  char buffer[4096];
  const ssize_t received = read(connection.errors, buffer, sizeof buffer);
  if (received <= 0) {
    close(connection.errors);
    connection.errors = -1;
    return;
  }
  const std::string text(buffer, static_cast<std::size_t>(received));
  if (connection.state == Connection::State::kRunning) {
    (void)write_all(STDERR_FILENO, text);
  } else {
    connection.error_text = (connection.error_text + text).substr(0, 65536);
  }
}

void Job::take_signal() {
  signalfd_siginfo about;
  if (read(signals_, &about, sizeof about) != sizeof about) return;
  interrupted_by_ = static_cast<int>(about.ssi_signo);
  // Processes that ignore the signal end at the second one.
  end_all(++signals_seen_ > 1 && interrupted_by_ != SIGHUP ? SIGKILL : interrupted_by_);
}

void Job::take_input() {
  std::string bytes(kInputBytes, '\0');
  const ssize_t received = read(STDIN_FILENO, bytes.data(), bytes.size());
  takes_input_ = false;  // until the daemon has passed it on
  bytes.resize(received > 0 ? static_cast<std::size_t>(received) : 0);
  send(connections_.front(), {"input", bytes});
}

void Job::wait_and_serve(int timeout_ms) {
  std::vector<pollfd> files{{signals_, POLLIN, 0}, {takes_input_ ? STDIN_FILENO : -1, POLLIN, 0}};
  for (const Connection& connection : connections_) {
    files.push_back({connection.from, POLLIN, 0});
    files.push_back({connection.errors, POLLIN, 0});
    files.push_back({connection.outgoing.empty() ? -1 : connection.to, POLLOUT, 0});
  }
  if (poll(files.data(), files.size(), timeout_ms) <= 0) return;
  if (files[0].revents != 0) take_signal();
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    if (files[3 + 3 * i].revents != 0) read_errors(connections_[i]);
    if (files[4 + 3 * i].revents != 0) flush(connections_[i]);
    if (files[2 + 3 * i].revents != 0) serve(connections_[i]);
  }
  if (files[1].revents != 0 && takes_input_) take_input();
}

Result<void> Job::await(Connection::State state) {
  const std::uint64_t until = monotonic_ns() + options_.deadline_ms * kNsPerMs;
  while (true) {
    bool all = true;
    for (Connection& connection : connections_) {
      if (!connection.refusal.empty()) return fail(connection.where() + ": " + connection.refusal);
      if (connection.state == Connection::State::kOver) {
        wait_and_serve(50);  // the shell's last words
        const std::string words = last_line(connection.error_text);
        return fail(connection.where() +
                    " cannot be reached: " + (words.empty() ? "the remote shell ended" : words));
      }
      if (connection.state == state) continue;
      all = false;
      if (monotonic_ns() < until) continue;
      return fail(connection.where() + " cannot be reached: no answer within " +
                  std::to_string(options_.deadline_ms / 1000) + " s");
    }
    if (all) return {};
    if (interrupted_by_ != 0) {
      return fail("interrupted by signal " + std::to_string(interrupted_by_));
    }
    wait_and_serve(100);
  }
}

// Every process can end without the others losing the rendezvous, since this process serves it.
Result<void> Job::serve_rendezvous() {
  bool is_here = true;
  for (const Connection& connection : connections_) is_here &= connection.host.name.empty();
  std::string host = is_here ? "127.0.0.1" : "0.0.0.0";
  if (!options_.address.empty()) host = options_.address;
  auto server =
      bootstrap::Server::start(host + ":0", options_.ranks, bootstrap::secret_of(secret_));
  if (!server) return fail(server.error());
  server_ = *std::move(server);
  return {};
}

// Where the processes of a host reach the rendezvous: at --address, or at the IP from which their
// daemon was called. Processes on this host must be reached by the others, hence the same IP for
// all if one host was called from the loopback interface, or without ssh.
std::string Job::address_for(const Connection& connection) const {
  const std::string& bound = server_->address();
  if (!bound.starts_with("0.0.0.0:")) return bound;
  const auto is_outside = [](const std::string& ip) {
    return !ip.empty() && !ip.starts_with("127.");
  };
  std::string host = connection.caller;
  bool are_all_loopback = true;
  for (const Connection& other : connections_) {
    are_all_loopback &= other.caller.starts_with("127.");
    if (!is_outside(host) && is_outside(other.caller)) host = other.caller;
  }
  if (are_all_loopback) host = "127.0.0.1";
  if (host.empty()) host = bootstrap::own_ip();
  return host + bound.substr(bound.rfind(':'));
}

Result<int> Job::run() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t caught;
  sigemptyset(&caught);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&caught, number);
  sigprocmask(SIG_BLOCK, &caught, &mask_before_);
  signals_ = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
  secret_.resize(kSecretBytes);
  if (getrandom(secret_.data(), secret_.size(), 0) != static_cast<ssize_t>(kSecretBytes)) {
    return fail("no random bytes from the system for the job's secret");
  }
  if (const auto kept = keeper_.start(); !kept) return fail(kept.error());
  std::error_code error;
  const std::string espalier = std::filesystem::read_symlink("/proc/self/exe", error).string();
  ended_.assign(options_.ranks, false);
  for (const Host& host : options_.hosts) {
    connections_.emplace_back().host = host;
    if (const auto done = connect(connections_.back(), espalier); !done) return fail(done.error());
  }
  if (const auto done = await(Connection::State::kHello); !done) return fail(done.error());
  for (Connection& connection : connections_) describe_job(connection);
  if (const auto done = await(Connection::State::kReady); !done) return fail(done.error());
  if (const auto served = serve_rendezvous(); !served) return fail(served.error());
  living_ = options_.ranks;
  for (Connection& connection : connections_) {
    const std::string address = address_for(connection);
    connection.state = Connection::State::kRunning;
    send(connection, {"go", address});
    if (!options_.verbose) continue;
    std::fprintf(stderr, "espalier: %s: ranks %u to %u; rendezvous at %s\n",
                 connection.where().c_str(), connection.host.first,
                 connection.host.first + connection.host.count - 1, one_line(address).c_str());
  }
  takes_input_ = true;
  while (living_ > 0) wait_and_serve(-1);
  return status_;
}

}  // namespace

Result<int> run_job(const JobOptions& options) { return Job(options).run(); }

}  // namespace espalier::job
