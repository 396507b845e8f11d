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
#include "tools/common/find_program.h"
#include "tools/launch/host_search.h"
#include "tools/launch/job_run.h"

namespace espalier::launch {
namespace {

constexpr std::size_t kInputBytes = 65536;  // of one message; the daemon has at most one
constexpr std::size_t kSecretBytes = 32;
constexpr std::uint64_t kDrainPatience = 2'000'000'000;  // ns, for a reader after a signal
constexpr int kForegroundMs = 500;                       // between two looks at the terminal

}  // namespace

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

void Job::say(const std::string& line) { output_->say("espalier: " + one_line(line) + "\n"); }

void Job::end_all(int signal_number) {
  for (Connection& connection : connections_) {
    if (connection.state != Connection::State::kRunning) continue;
    connection.send({"signal", std::to_string(signal_number)});
  }
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
  for (Connection& connection : connections_) connection.pause();
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

Result<void> Job::start_daemons(const DaemonStart& how) {
  connections_.resize(options_.hosts.size());
  for (std::size_t i = 0; i < connections_.size(); ++i) connections_[i].host = options_.hosts[i];
  for (Connection& connection : connections_) {
    ESPALIER_TRY(connection.start(how));
  }
  output_ = std::make_unique<Output>(
      options_.ticket.empty() ? "" : "new ");  // its threads come after the forks
  return await(Connection::State::kHello);
}

Result<void> Job::find_hosts(const DaemonStart& how) {
  const auto relay = [this](const Way& way, const Fields& message) {
    if (Connection* const neighbour = find(way.from)) neighbour->send(message);
  };
  HostSearch search(options_, how, relay, connections_);
  ESPALIER_TRY(search.begin());
  output_ = std::make_unique<Output>("");
  bootstrap::FirstWord word;
  while (search.advance(monotonic_ns())) {
    if (interrupted_by_ != 0) return fail("interrupted");
    const std::string silent = search.silent();
    if (!silent.empty() && word.is_due()) say("waiting for " + silent + ": no answer yet");
    wait_and_serve(50);
  }
  auto found = search.finish();
  for (const std::string& line : search.remarks()) say(line);
  ESPALIER_TRY(std::move(found));
  return detours_.begin(how, relay);
}

Result<void> Job::start() {
  secret_.resize(kSecretBytes);
  if (getrandom(secret_.data(), secret_.size(), 0) != static_cast<ssize_t>(kSecretBytes)) {
    return fail("no random bytes from the system for the job's secret");
  }
  ESPALIER_TRY_TO(const auto espalier, tools::own_program());
  ESPALIER_TRY(keeper_.start());
  ended_.assign(options_.ranks, false);
  const DaemonStart how{keeper_, signals_, espalier, options_.remote_shell};
  ESPALIER_TRY(options_.cables.lead_to_hosts ? find_hosts(how) : start_daemons(how));
  for (Connection& connection : connections_) describe_job(connection);
  ESPALIER_TRY(await(Connection::State::kReady));
  if (!options_.ticket.empty()) return {};
  if (!options_.cables.are_used) return serve_rendezvous();
  return allow_open_files(kOwnFiles + kFilesPerHost * connections_.size(), "the hosts' daemons");
}

// Signals that arrive from now on follow this message to each daemon.
void Job::go() {
  living_ = options_.ranks;
  const Rendezvous::Callers all = callers();
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = connections_[i];
    Fields go = options_.cables.are_used    ? Fields{kOverCables}
                : rendezvous_.has_started() ? rendezvous_.addresses_for(all, i)
                                            : Fields{"0", ""};
    go.insert(go.begin(), "go");
    connection.state = Connection::State::kRunning;
    connection.send(go);
    if (!options_.verbose) continue;
    say(connection.where() + ": ranks " + std::to_string(connection.host.first) + " to " +
        std::to_string(connection.host.first + connection.host.count - 1) +
        (options_.cables.are_used    ? " over cables"
         : rendezvous_.has_started() ? "; rendezvous at " + go[2]
                                     : " of the newcomers"));
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
    const bool may_detour = options_.cables.lead_to_hosts && connections_.size() > 1;
    if (may_detour) detours_.tick(now);
    const std::uint64_t next = std::min(kill_ns_, give_up_ns_);
    const int wait_ms = next == kNever ? -1 : static_cast<int>((next - now) / kNsPerMs) + 1;
    const bool is_long = wait_ms < 0 || wait_ms > Detours::kTickMs;
    wait_and_serve(may_detour && is_long ? Detours::kTickMs : wait_ms);
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

Result<int> run_job(const JobOptions& options) {
  Job job(options);
  auto status = job.run();
  // Nothing else may be printed: it would wait for the same reader.
  if (status && job.is_abandoned()) std::_Exit(*status);
  return status;
}

}  // namespace espalier::launch
