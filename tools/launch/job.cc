#include "tools/launch/job.h"

#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "base/clock.h"
#include "base/counted.h"
#include "base/one_line.h"
#include "base/process/open_files.h"
#include "base/process/variables.h"
#include "base/try.h"
#include "base/version.h"
#include "bootstrap/first_word.h"
#include "tools/cluster/keeper.h"
#include "tools/common/find_program.h"
#include "tools/launch/connection.h"
#include "tools/launch/frames.h"
#include "tools/launch/job_signals.h"
#include "tools/launch/output.h"
#include "tools/launch/rendezvous.h"

namespace espalier::launch {
namespace {

constexpr std::size_t kInputBytes = 65536;  // of one message; the daemon has at most one
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kMaxQuoted = 40;  // bytes of a wrong message in an error
constexpr std::uint64_t kNever = UINT64_MAX;
constexpr std::uint64_t kDrainPatience = 2'000'000'000;  // ns, for a reader after a signal
constexpr int kForegroundMs = 500;                       // between two looks at the terminal

class Job {
 public:
  explicit Job(const JobOptions& options) : options_(options) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() { end(); }
  // Returns the job's status once all output is printed, or cannot be: then is_abandoned().
  Result<int> run();
  // Whether a reader does not read: a thread waits for it inside write().
  [[nodiscard]] bool is_abandoned() const { return is_abandoned_; }

 private:
  Result<void> start();
  void go();
  void go_on();
  bool drain();
  Result<void> await(Connection::State state);
  Result<void> serve_rendezvous();
  [[nodiscard]] Rendezvous::Callers callers() const;
  void describe_job(Connection& connection);
  void wait_and_serve(int timeout_ms);
  void serve(Connection& connection);
  [[nodiscard]] bool handle(Connection& connection, const Fields& message);
  void lose(Connection& connection);
  void print_errors(Connection& connection);
  void take_signal();
  void stop_and_go_on();
  void take_printed();
  [[nodiscard]] bool may_read_input() const;
  void say(const std::string& line);
  void take_input();
  [[nodiscard]] bool take_end(Connection& connection, const RankEnd& end);
  // Starts a process in place of a rank that failed. False: the job goes on without it.
  [[nodiscard]] bool start_again(Connection& connection, std::uint32_t rank,
                                 const std::string& how);
  [[nodiscard]] bool take_output(Connection& connection, const Fields& message);
  void fail_with(const std::string& line, int status);
  void end_all(int signal_number);
  void end();

  const JobOptions& options_;
  const JobSignals signals_;
  cluster::Keeper keeper_;
  Rendezvous rendezvous_;  // none of its own: the ranks are newcomers of another job
  std::vector<Connection> connections_;
  std::vector<bool> ended_;
  std::string secret_;
  std::unique_ptr<Output> output_;
  bool is_closed_[2] = {};  // a stream of the launcher, as its daemons know
  bool is_abandoned_ = false;
  int interrupted_by_ = 0;             // the first signal that ends the job
  std::vector<int> held_signals_;      // for the ranks, once they run
  std::uint64_t kill_ns_ = kNever;     // when the ranks that go on are killed
  std::uint64_t give_up_ns_ = kNever;  // when a host that does not answer is given up
  bool takes_input_ = false;
  std::uint32_t living_ = 0;
  std::uint32_t restarts_ = 0;
  int status_ = 0;
};

void Job::end() {
  rendezvous_.remove_job_file();
  end_daemons(connections_);
  keeper_.stop();
}

void Job::describe_job(Connection& connection) {
  std::error_code ignored;
  Description job;
  job.size = std::to_string(options_.ranks);
  for (std::uint32_t i = 0; i < connection.host.count; ++i) {
    job.ranks.push_back(connection.host.first + i);
  }
  job.secret = secret_;
  if (!options_.ticket.empty()) {
    job.size = kNewcomers;
    job.secret = options_.ticket + "\n";
  }
  job.folder = std::filesystem::current_path(ignored).string();
  job.ignored_signals = signals_.ignored();
  job.variables = options_.variables;
  job.arguments = options_.arguments;
  connection.send(to_fields(job));
}

void Job::fail_with(const std::string& line, int status) {
  say(line);
  if (status_ == 0) status_ = status;
  if (options_.kill_on_failure) end_all(SIGKILL);
}

void Job::say(const std::string& line) { output_->say("espalier: " + one_line(line) + "\n"); }

void Job::end_all(int signal_number) {
  for (Connection& connection : connections_) {
    if (connection.state != Connection::State::kRunning) continue;
    connection.send({"signal", std::to_string(signal_number)});
  }
}

// False: the rank is not one of the host, or has ended before.
bool Job::take_end(Connection& connection, const RankEnd& end) {
  const auto [rank, status] = end;
  const Host& host = connection.host;
  if (rank < host.first || rank - host.first >= host.count || ended_[rank]) return false;
  ended_[rank] = true;
  --living_;
  if (rank == 0) takes_input_ = false;
  if (status == 0) return true;
  const std::string place = connection.host.name.empty() ? "" : " on host " + connection.host.name;
  const bool is_signal = status < 0;
  const std::string how = "rank " + std::to_string(rank) + place + " ended with " +
                          (is_signal ? "signal " : "status ") +
                          std::to_string(is_signal ? -status : status);
  if (start_again(connection, rank, how)) return true;
  fail_with(how, is_signal ? 128 - status : status);
  return true;
}

// Without another process, no rank is left that could accept it.
bool Job::start_again(Connection& connection, std::uint32_t rank, const std::string& how) {
  if (restarts_ == options_.max_restarts || living_ == 0 || interrupted_by_ != 0) return false;
  ++restarts_;
  ++living_;
  ended_[rank] = false;
  say(how + "; it is started again, " + std::to_string(restarts_) + " of " +
      std::to_string(options_.max_restarts));
  const auto host = static_cast<std::size_t>(&connection - connections_.data());
  connection.send({"again", std::to_string(rank), rendezvous_.ticket_for(callers(), host)});
  return true;
}

// False: the rank is not one of the host, or the daemon sends more than it may.
bool Job::take_output(Connection& connection, const Fields& message) {
  const Host& host = connection.host;
  const auto rank = read_number(message[1]);
  if (!rank || *rank < host.first || *rank - host.first >= host.count) return false;
  connection.unprinted += message[3].size();
  if (connection.unprinted > kMaxUnprinted + host.count * kMaxRest) return false;
  output_->print(message[2] == "2" ? Output::kStderr : Output::kStdout, *rank, message[3],
                 static_cast<std::size_t>(&connection - connections_.data()));
  return true;
}

// Tells the daemons which output has been printed, so that they send more, and which stream the
// reader has closed: the ranks' end of it is then closed, too.
void Job::take_printed() {
  const std::vector<std::size_t> printed = output_->take_printed();
  for (std::size_t i = 0; i < printed.size(); ++i) {
    if (printed[i] == 0) continue;
    connections_[i].unprinted -= printed[i];
    if (connections_[i].state != Connection::State::kRunning) continue;
    connections_[i].send({"printed", std::to_string(printed[i])});
  }
  for (const auto stream : {Output::kStdout, Output::kStderr}) {
    const int error = output_->error(stream);
    if (error == 0 || is_closed_[stream - 1]) continue;
    is_closed_[stream - 1] = true;
    if (error != EPIPE) {
      say(std::string("cannot write to ") + (stream == Output::kStdout ? "stdout: " : "stderr: ") +
          std::strerror(error));
      if (status_ == 0) status_ = 1;
      continue;
    }
    for (Connection& connection : connections_) {
      if (connection.state != Connection::State::kRunning) continue;
      connection.send({"closed", std::to_string(stream)});
    }
  }
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
    return take_output(connection, message);
  } else {
    return false;
  }
  return true;
}

// The daemon is gone, and with it every process of its host.
void Job::lose(Connection& connection) {
  const bool was_running = connection.state == Connection::State::kRunning;
  connection.state = Connection::State::kOver;
  connection.close_messages();
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
  const bool open = connection.fill();
  for (Fields message; connection.take(message);) {
    if (handle(connection, message)) continue;
    connection.refusal = "its daemon sent a message '" + message[0].substr(0, kMaxQuoted) +
                         "' that is malformed or does not belong here";
    return lose(connection);
  }
  if (!open) lose(connection);
}

void Job::print_errors(Connection& connection) {
  const std::string text = connection.read_errors();
  if (!text.empty()) output_->say(text);
}

// INT, TERM, HUP and QUIT end the job: the ranks get the first one, and a grace time. A second one
// kills them. Other signals are forwarded.
void Job::take_signal() {
  const std::optional<int> taken = signals_.take();
  if (!taken) return;
  const int number = *taken;
  if (number == SIGTSTP) return stop_and_go_on();
  if (!ends_job(number)) {
    if (living_ == 0 && number != SIGCONT) held_signals_.push_back(number);
    return end_all(number);
  }
  const std::uint64_t now = monotonic_ns();
  if (interrupted_by_ == 0) {
    interrupted_by_ = number;
    kill_ns_ = now + options_.grace_ms * kNsPerMs;
    end_all(number);
  } else {
    kill_ns_ = now;
  }
}

// The ranks stop and go on with the launcher: they are in groups of their own, which the terminal
// does not know.
void Job::stop_and_go_on() {
  end_all(SIGSTOP);
  kill(getpid(), SIGSTOP);
  end_all(SIGCONT);
}

// A process in the background that reads the terminal would be stopped.
bool Job::may_read_input() const {
  const pid_t group = tcgetpgrp(STDIN_FILENO);
  return takes_input_ && (group < 0 || group == getpgrp());
}

void Job::take_input() {
  std::string bytes(kInputBytes, '\0');
  const ssize_t received = read(STDIN_FILENO, bytes.data(), bytes.size());
  if (received < 0 && (errno == EINTR || errno == EAGAIN)) return;
  takes_input_ = false;  // until the daemon has passed it on
  bytes.resize(received > 0 ? static_cast<std::size_t>(received) : 0);
  connections_.front().send({"input", bytes});
}

void Job::wait_and_serve(int timeout_ms) {
  const bool reads = may_read_input();
  if (takes_input_ && !reads && (timeout_ms < 0 || timeout_ms > kForegroundMs)) {
    timeout_ms = kForegroundMs;
  }
  std::vector<pollfd> files{{signals_.file(), POLLIN, 0},
                            {reads ? STDIN_FILENO : -1, POLLIN, 0},
                            {output_->event(), POLLIN, 0}};
  const std::size_t first = files.size();
  const bool has_room = output_->backlog() < kMaxUnprinted;
  for (const Connection& connection : connections_) {
    const auto events = connection.events(has_room);
    files.insert(files.end(), events.begin(), events.end());
  }
  if (poll(files.data(), files.size(), timeout_ms) <= 0) return;
  if (files[0].revents != 0) take_signal();
  if (files[2].revents != 0) take_printed();
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const pollfd* const entries = &files[first + 3 * i];
    if (entries[1].revents != 0) print_errors(connections_[i]);
    if (entries[2].revents != 0) connections_[i].flush();
    if (entries[0].revents != 0) serve(connections_[i]);
  }
  if (files[1].revents != 0 && takes_input_) take_input();
}

Result<void> Job::await(Connection::State state) {
  AwakeClock clock;
  const std::uint64_t until = clock.now() + options_.deadline_ms * kNsPerMs;
  bootstrap::FirstWord word;
  while (true) {
    bool all = true;
    std::string silent;
    for (Connection& connection : connections_) {
      if (!connection.refusal.empty()) return fail(connection.where() + ": " + connection.refusal);
      if (connection.state == Connection::State::kOver) {
        wait_and_serve(50);  // the shell's last words
        const std::string words = connection.last_error_line();
        return fail(connection.where() +
                    " cannot be reached: " + (words.empty() ? "the remote shell ended" : words));
      }
      if (connection.state == state) continue;
      all = false;
      silent += (silent.empty() ? "" : ", ") + connection.where();
      if (clock.now() < until) continue;
      return fail(connection.where() + " cannot be reached: no answer within " +
                  std::to_string(options_.deadline_ms / 1000) + " s");
    }
    if (interrupted_by_ != 0) return fail("interrupted");
    if (all) return {};
    if (word.is_due()) say("waiting for " + silent + ": no answer yet through the remote shell");
    wait_and_serve(100);
  }
}

// Every process can end without the others losing the rendezvous, since this process serves it.
Result<void> Job::serve_rendezvous() {
  // As many newcomers find room as there are ranks.
  const bool takes_newcomers = !options_.job_file.empty() || is_set(Variable::kJobFile);
  const std::uint64_t processes =
      (takes_newcomers ? 2 : 1) * std::uint64_t{options_.ranks} + options_.max_restarts;
  ESPALIER_TRY(allow_open_files(kOwnFiles + kFilesPerHost * connections_.size() + processes,
                                "the connections of " + counted(options_.ranks, "rank")));
  const bool is_one_host =
      std::all_of(connections_.begin(), connections_.end(),
                  [](const Connection& connection) { return connection.host.is_here; });
  ESPALIER_TRY(rendezvous_.start(options_, is_one_host, secret_));
  if (options_.job_file.empty()) return {};
  return rendezvous_.write_job_file(options_.job_file, callers());
}

Rendezvous::Callers Job::callers() const {
  Rendezvous::Callers all;
  for (const Connection& connection : connections_) all.push_back(connection.caller);
  return all;
}

Result<void> Job::start() {
  secret_.resize(kSecretBytes);
  if (getrandom(secret_.data(), secret_.size(), 0) != static_cast<ssize_t>(kSecretBytes)) {
    return fail("no random bytes from the system for the job's secret");
  }
  ESPALIER_TRY_TO(const auto espalier, tools::own_program());
  ESPALIER_TRY(keeper_.start());
  ended_.assign(options_.ranks, false);
  connections_.resize(options_.hosts.size());
  for (std::size_t i = 0; i < connections_.size(); ++i) connections_[i].host = options_.hosts[i];
  const DaemonStart how{keeper_, signals_, espalier, options_.remote_shell};
  for (Connection& connection : connections_) {
    ESPALIER_TRY(connection.start(how));
  }
  output_ = std::make_unique<Output>(
      options_.ticket.empty() ? "" : "new ");  // its threads come after the forks
  ESPALIER_TRY(await(Connection::State::kHello));
  for (Connection& connection : connections_) describe_job(connection);
  ESPALIER_TRY(await(Connection::State::kReady));
  if (!options_.ticket.empty()) return {};
  return serve_rendezvous();
}

// Signals that arrive from now on follow this message to each daemon.
void Job::go() {
  living_ = options_.ranks;
  const Rendezvous::Callers all = callers();
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = connections_[i];
    Fields go = rendezvous_.has_started() ? rendezvous_.addresses_for(all, i) : Fields{"0", ""};
    go.insert(go.begin(), "go");
    connection.state = Connection::State::kRunning;
    connection.send(go);
    if (!options_.verbose) continue;
    say(connection.where() + ": ranks " + std::to_string(connection.host.first) + " to " +
        std::to_string(connection.host.first + connection.host.count - 1) +
        (rendezvous_.has_started() ? "; rendezvous at " + go[2] : " of the newcomers"));
  }
  for (const int number : held_signals_) end_all(number);
  takes_input_ = true;
}

// Serves the daemons until all ranks have ended, or a host does not answer.
void Job::go_on() {
  while (living_ > 0) {
    const std::uint64_t now = monotonic_ns();
    if (now >= give_up_ns_) {
      say("a host does not answer; its processes end once it notices");
      if (status_ == 0) status_ = 128 + SIGKILL;
      return;
    }
    if (now >= kill_ns_) {
      kill_ns_ = kNever;
      give_up_ns_ = now + kDaemonPatience;
      end_all(SIGKILL);
    }
    const std::uint64_t next = std::min(kill_ns_, give_up_ns_);
    wait_and_serve(next == kNever ? -1 : static_cast<int>((next - now) / kNsPerMs) + 1);
  }
}

// Waits until everything is printed; after a signal only for a short time. False: it was not.
bool Job::drain() {
  std::uint64_t until = interrupted_by_ == 0 ? kNever : monotonic_ns() + kDrainPatience;
  while (output_->backlog() > 0 && monotonic_ns() < until) {
    const int before = interrupted_by_;
    kill_ns_ = kNever;
    wait_and_serve(until == kNever ? -1 : 50);
    if (before != interrupted_by_ || kill_ns_ != kNever) until = monotonic_ns() + kDrainPatience;
    if (before != 0 && kill_ns_ != kNever) return false;  // a second signal
  }
  take_printed();
  return output_->backlog() == 0;
}

Result<int> Job::run() {
  if (const auto started = start(); !started) {
    if (interrupted_by_ == 0) return fail(started.error());
    say("interrupted by signal " + std::to_string(interrupted_by_) + " before the start");
    status_ = 128 + interrupted_by_;
  } else {
    go();
    go_on();
  }
  takes_input_ = false;
  is_abandoned_ = !drain();
  end();
  return status_;
}

}  // namespace

Result<int> run_job(const JobOptions& options) {
  Job job(options);
  auto status = job.run();
  // Nothing else may be printed: it would wait for the same reader.
  if (status && job.is_abandoned()) std::_Exit(*status);
  return status;
}

}  // namespace espalier::launch
