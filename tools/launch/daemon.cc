#include "tools/launch/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counted.h"
#include "base/network/filter.h"
#include "base/network/interfaces.h"
#include "base/parse_number.h"
#include "base/process/inherited.h"
#include "base/process/open_files.h"
#include "base/process/system_error.h"
#include "base/process/variables.h"
#include "base/version.h"
#include "bootstrap/cables/packet.h"
#include "bootstrap/candidates.h"
#include "espalier/base/result.h"
#include "tools/cluster/keeper.h"
#include "tools/common/find_program.h"
#include "tools/launch/frames.h"
#include "tools/launch/launcher_link.h"
#include "tools/launch/neighbours.h"
#include "tools/launch/relay.h"

namespace espalier::launch {
namespace {

constexpr std::size_t kMaxLine = 65536;               // bytes of a line that are held back
constexpr std::uint64_t kPartPatience = 100'000'000;  // ns until a part of a line is sent
constexpr std::size_t kBuffer = 4096;  // programs that buffer their output write multiples of it
constexpr std::size_t kReadBytes = 65536;
constexpr int kRefusalMs = 3000;
constexpr std::uint64_t kFilesPerRank =
    3;  // descriptors of the daemon; one is closed after the start

struct Stream {
  int pipe = -1;               // negative: closed
  std::string line;            // read and not sent
  bool is_open = false;        // the last part that was sent did not end a line
  std::uint64_t since_ns = 0;  // when the last byte came
  std::size_t burst = 0;       // bytes since the stream was quiet
};

struct Rank {
  std::uint32_t number = 0;
  pid_t process = -1;
  bool ended = false;  // stays a zombie, so that its group's number stays its own
  std::array<Stream, 2> streams = {};
};

// The IP from which ssh was called; empty if there is none.
std::string caller() {
  const char* connection = raw_value(Variable::kSshConnection);
  const std::string text = connection == nullptr ? "" : connection;
  const std::string ip = text.substr(0, text.find(' '));
  return network::parse_ip(ip) ? ip : "";
}

// The value of ESPALIER_ADDRESS: the launcher's addresses in the order in which this host tries
// them, each link-local one with the interfaces of this host. Addresses that this host has, too,
// are left out, unless no other is left.
std::string addresses_for(const Fields& go, const std::vector<network::Interface>& interfaces) {
  bootstrap::Candidates launcher;
  std::uint64_t network = 0;
  const bool are_tried = parse_number(go[1], network) && network != 0;
  launcher.network = network;
  std::string all, tried;
  const auto add = [](std::string& list, const std::string& text) {
    list += (list.empty() ? "" : ",") + text;
  };
  for (std::size_t i = 2; i < go.size(); ++i) {
    add(all, go[i]);
    const auto parts = network::split(go[i]);
    const auto ip = parts ? network::parse_ip(parts->host) : std::nullopt;
    if (ip) launcher.addresses.push_back(ip->with_port(parts->port));
  }
  if (!are_tried) return all;
  for (const bootstrap::Target& target : bootstrap::targets_of(launcher, interfaces)) {
    if (target.refusal.empty()) add(tried, target.address.text());
  }
  return tried.empty() ? all : tried;
}

class Daemon {
 public:
  int serve();

 private:
  void handle(const Fields& message);
  void prepare(const Fields& message);
  void start(const Fields& message);
  void set_place(const Fields& go) const;
  void look_for_neighbours(const std::string& interfaces);
  // `ticket`: a file with the ticket by which the process joins the job; negative: it is a rank.
  bool fork_rank(std::uint32_t number, int ticket = -1);
  void start_again(const Fields& message);
  [[noreturn]] void become(std::uint32_t number, int ticket, const std::array<int, 3>& streams);
  void watch_children();
  void read_stream(Rank& rank, std::size_t stream);
  void flush(Rank& rank, std::size_t stream, bool whole);
  void finish(Rank& rank, std::size_t stream);
  int flush_parts();
  void close_stream(const Fields& message);
  void feed();
  void wait_and_serve();
  void refuse(const std::string& reason) {
    say({"refused", reason});
    over_ = true;
  }
  void say(const Fields& message) { link_.say(message); }

  cluster::Keeper keeper_;
  Relay relay_{keeper_, [this](const Fields& message) { say(message); },
               [this] {
                 reset_signals({});
                 sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
               }};
  LauncherLink link_;
  int signals_ = -1;
  int secret_ = -1;
  int ticket_ = -1;  // of processes that are started again
  bool over_ = false;
  std::size_t unprinted_ = 0;  // bytes of output that the launcher has not printed
  std::vector<int> ignored_;   // signals, in the ranks
  sigset_t mask_before_{};
  rlimit files_before_{};
  std::string size_;
  std::vector<network::Interface> interfaces_;  // that the job uses on this host
  std::string program_;
  std::vector<std::uint32_t> numbers_;
  Fields arguments_;
  std::vector<Rank> ranks_;
  int input_ = -1;  // of rank 0
  std::string input_bytes_;
  bool input_ends_ = false;
};

int make_secret(const std::string& secret) {
  const int file = memfd_create("espalier-secret", MFD_CLOEXEC);
  if (file < 0 || fchmod(file, 0600) != 0 || !write_all(file, secret)) return -1;
  return file;
}

void Daemon::prepare(const Fields& message) {
  const auto job = read_description(message);
  if (!job || secret_ >= 0) return refuse("a malformed message");
  size_ = job->size;
  numbers_ = job->ranks;
  arguments_ = job->arguments;
  ignored_ = job->ignored_signals;
  secret_ = make_secret(job->secret);
  if (secret_ < 0)
    return refuse(std::string("no memory for the secret: ") + system_error_text(errno));
  // Otherwise a library behind libfabric handles the signals of a rank before its main(), ignored
  // ones too (hal/fabric/ofi/provider.cc).
  setenv("IPATH_NO_BACKTRACE", "1", 0);
  for (const std::string& entry : job->variables) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  // The variable may stand for the launcher's --interface: the error names neither.
  const char* const interfaces = raw_value(Variable::kInterface);
  const auto filter = network::interface_filter(interfaces == nullptr ? "" : interfaces);
  auto used = filter ? filter->apply(network::running_interfaces()) : fail(filter.error());
  if (!used) return refuse(used.error().message);
  interfaces_ = *std::move(used);
  if (chdir(job->folder.c_str()) != 0) {
    return refuse("folder '" + job->folder + "': " + std::strerror(errno));
  }
  program_ = tools::find_program(arguments_.front());
  if (program_.empty()) {
    return refuse("no program '" + arguments_.front() + "'; expected an executable file");
  }
  // The ranks get the limit that was there before.
  getrlimit(RLIMIT_NOFILE, &files_before_);
  const auto allowed = allow_open_files(kFilesPerRank * numbers_.size() + kOwnFiles,
                                        counted(numbers_.size(), "rank"));
  if (!allowed) return refuse(allowed.error().message);
  if (access("/proc/self/fd", X_OK) != 0) {
    return refuse("/proc is not mounted, from which the ranks read the job's secret");
  }
  say({"ready"});
}

// The environment of a process that joins the job by the ticket in this file.
void join_by(int ticket) {
  for (const char* name : {"ESPALIER_RANK", "ESPALIER_SIZE", "ESPALIER_ADDRESS", "ESPALIER_SERVER",
                           "ESPALIER_SECRET_FILE"}) {
    unsetenv(name);
  }
  setenv("ESPALIER_JOIN", ("/proc/self/fd/" + std::to_string(ticket)).c_str(), 1);
}

void Daemon::become(std::uint32_t number, int ticket, const std::array<int, 3>& streams) {
  if (ticket >= 0) {
    join_by(ticket);
  } else if (size_ != kNewcomers) {
    setenv("ESPALIER_RANK", std::to_string(number).c_str(), 1);
  }
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    dup2(streams[static_cast<std::size_t>(stream)], stream);
  }
  fcntl(ticket >= 0 ? ticket : secret_, F_SETFD, 0);
  setrlimit(RLIMIT_NOFILE, &files_before_);
  // A signal that came since the fork is pending, and is delivered now.
  reset_signals(ignored_);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  std::vector<char*> words;
  words.reserve(arguments_.size() + 1);
  for (std::string& argument : arguments_) words.push_back(argument.data());
  words.push_back(nullptr);
  execv(program_.c_str(), words.data());
  (void)write_all(STDERR_FILENO, "cannot start '" + program_ + "': " + std::strerror(errno) + "\n");
  _exit(127);
}

bool Daemon::fork_rank(std::uint32_t number, int ticket) {
  int pipes[3][2];
  for (auto& ends : pipes) {
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
  }
  sigset_t all, own;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &own);
  const pid_t child = keeper_.fork_group();
  if (child == 0) become(number, ticket, {pipes[0][0], pipes[1][1], pipes[2][1]});
  sigprocmask(SIG_SETMASK, &own, nullptr);
  if (child < 0) return false;
  close(pipes[0][0]);
  close(pipes[1][1]);
  close(pipes[2][1]);
  if (number == 0 && ticket < 0) {
    input_ = pipes[0][1];
  } else {  // only rank 0 has the launcher's input; the others read its end
    close(pipes[0][1]);
  }
  Rank rank{.number = number, .process = child};
  for (std::size_t i = 0; i < 2; ++i) rank.streams[i].pipe = pipes[i + 1][0];
  for (const int file : {pipes[1][0], pipes[2][0], input_}) {
    if (file >= 0) fcntl(file, F_SETFL, O_NONBLOCK);
  }
  ranks_.push_back(std::move(rank));
  return true;
}

// The environment by which the ranks join.
void Daemon::set_place(const Fields& go) const {
  // What another launcher set for its own processes.
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) unsetenv(name);
  for (const char* name : {"ESPALIER_CABLES", "ESPALIER_ADDRESS", "ESPALIER_SERVER"}) {
    unsetenv(name);
  }
  if (size_ == kNewcomers) return join_by(secret_);
  unsetenv("ESPALIER_JOIN");
  setenv("ESPALIER_SIZE", size_.c_str(), 1);
  setenv("ESPALIER_SECRET_FILE", ("/proc/self/fd/" + std::to_string(secret_)).c_str(), 1);
  if (go[1] == kOverCables) {
    setenv("ESPALIER_CABLES", "1", 1);
  } else {
    setenv("ESPALIER_ADDRESS", addresses_for(go, interfaces_).c_str(), 1);
    setenv("ESPALIER_SERVER", "launcher", 1);
  }
}

void Daemon::start(const Fields& message) {
  const bool is_complete =
      message.size() >= 3 || (message.size() == 2 && message[1] == kOverCables);
  if (!is_complete || program_.empty() || !ranks_.empty()) return refuse("a wrong message");
  set_place(message);
  for (const std::uint32_t number : numbers_) {
    if (!fork_rank(number)) {
      return refuse("cannot start rank " + std::to_string(number) + ": " +
                    system_error_text(errno));
    }
  }
}

// The process before is kept: others of its group may live.
void Daemon::start_again(const Fields& message) {
  const auto number = read_number(message[1]);
  if (!number || std::find(numbers_.begin(), numbers_.end(), *number) == numbers_.end()) {
    return refuse("a wrong message");
  }
  if (ticket_ < 0) ticket_ = make_secret(message[2] + "\n");
  if (ticket_ >= 0 && fork_rank(static_cast<std::uint32_t>(*number), ticket_)) return;
  const std::string text = std::string("cannot be started again: ") + system_error_text(errno);
  say({"output", message[1], "2", text + "\n"});
  unprinted_ += text.size() + 1;
  say({"end", message[1], "127"});
}

void Daemon::handle(const Fields& message) {
  if (message[0] == "job") {
    prepare(message);
  } else if (message[0] == "go") {
    start(message);
  } else if (message[0] == "again" && message.size() == 3 && !ranks_.empty()) {
    start_again(message);
  } else if (message[0] == "signal" && message.size() == 2) {
    for (const Rank& rank : ranks_) kill(-rank.process, std::atoi(message[1].c_str()));
  } else if (message[0] == "input" && message.size() == 2) {
    input_bytes_ += message[1];
    input_ends_ = input_ends_ || message[1].empty();
  } else if (message[0] == "printed" && message.size() == 2) {
    unprinted_ -= std::min<std::size_t>(unprinted_, read_number(message[1]).value_or(0));
  } else if (message[0] == "closed" && message.size() == 2) {
    close_stream(message);
  } else if (message[0] == "neighbours" && message.size() == 2) {
    look_for_neighbours(message[1]);
  } else if (message[0] == "end") {
    over_ = true;
  } else if (message[0] == "lasting" && message.size() == 2) {
    if (const auto lasts = link_.last(message[1]); !lasts) refuse(lasts.error().message);
  } else if (!relay_.take(message)) {
    refuse("a wrong message");
  }
}

// The launcher waits for the answer, and has no other messages meanwhile.
void Daemon::look_for_neighbours(const std::string& interfaces) {
  const auto found = look_around(interfaces);
  if (!found) return refuse(found.error().message);
  say(to_fields(*found));
}

// The launcher's reader of the stream is gone. As in a pipeline, a rank that writes to it gets
// SIGPIPE.
void Daemon::close_stream(const Fields& message) {
  for (Rank& rank : ranks_) {
    Stream& stream = rank.streams[message[1] == "2" ? 1 : 0];
    if (stream.pipe >= 0) close(stream.pipe);
    stream = Stream{};
  }
}

// Sends the complete lines, or everything if `whole`.
void Daemon::flush(Rank& rank, std::size_t stream, bool whole) {
  Stream& from = rank.streams[stream];
  std::string& line = from.line;
  std::size_t end = line.rfind('\n') + 1;
  if (whole || (end == 0 && line.size() >= kMaxLine)) end = line.size();
  if (end == 0) return;
  unprinted_ += end;
  from.is_open = line[end - 1] != '\n';
  say({"output", std::to_string(rank.number), std::to_string(stream + 1), line.substr(0, end)});
  line.erase(0, end);
}

// Ends the last line of a stream that gives no more.
void Daemon::finish(Rank& rank, std::size_t stream) {
  Stream& from = rank.streams[stream];
  if (from.line.empty() ? from.is_open : from.line.back() != '\n') from.line += '\n';
  flush(rank, stream, true);
}

// Sends the parts of lines that have waited long enough, such as a question to the user; not those
// at the end of a program's full buffer, whose other part comes with the next one. Returns the
// milliseconds until the next stream is looked at; negative: there is none.
int Daemon::flush_parts() {
  const std::uint64_t now = monotonic_ns();
  std::uint64_t next = UINT64_MAX;
  for (Rank& rank : ranks_) {
    for (std::size_t i = 0; i < rank.streams.size(); ++i) {
      Stream& stream = rank.streams[i];
      if (stream.burst == 0 || unprinted_ >= kMaxUnprinted) continue;
      const std::uint64_t due = stream.since_ns + kPartPatience;
      int more = 0;
      if (due > now) {
        next = std::min(next, due - now);
      } else if (ioctl(stream.pipe, FIONREAD, &more) != 0 || more == 0) {
        if (stream.burst % kBuffer != 0) flush(rank, i, true);
        stream.burst = 0;
      }
    }
  }
  return next == UINT64_MAX ? -1 : static_cast<int>(next / kNsPerMs) + 1;
}

void Daemon::read_stream(Rank& rank, std::size_t stream) {
  Stream& from = rank.streams[stream];
  char buffer[kReadBytes];
  const ssize_t received = read(from.pipe, buffer, sizeof buffer);
  if (received > 0) {
    from.line.append(buffer, static_cast<std::size_t>(received));
    from.since_ns = monotonic_ns();
    from.burst += static_cast<std::size_t>(received);
  }
  if (received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR)) {
    close(from.pipe);
    from.pipe = -1;
    finish(rank, stream);
  } else {
    flush(rank, stream, false);
  }
}

// Reports the ranks that have ended, after their output: a process that a rank left behind may
// hold the pipes open, therefore their end is not awaited.
void Daemon::watch_children() {
  for (Rank& rank : ranks_) {
    siginfo_t about{};
    if (rank.ended ||
        waitid(P_PID, static_cast<id_t>(rank.process), &about, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        about.si_pid == 0) {
      continue;
    }
    rank.ended = true;
    for (std::size_t i = 0; i < 2; ++i) {
      // What the rank wrote is in the pipe by now: a process that it left may write for ever.
      int size = 0;
      if (rank.streams[i].pipe >= 0) ioctl(rank.streams[i].pipe, FIONREAD, &size);
      for (; size > 0 && rank.streams[i].pipe >= 0; size -= static_cast<int>(kReadBytes)) {
        read_stream(rank, i);
      }
      finish(rank, i);
    }
    const int status = about.si_code == CLD_EXITED ? about.si_status : -about.si_status;
    say({"end", std::to_string(rank.number), std::to_string(status)});
  }
}

// Writes the launcher's input to rank 0 as far as the pipe takes it.
void Daemon::feed() {
  if (input_ >= 0 && !input_bytes_.empty()) {
    if (!write_some(input_, input_bytes_)) {  // rank 0 reads no more
      input_bytes_.clear();
      input_ends_ = true;
    } else if (input_bytes_.empty() && !input_ends_) {
      say({"taken"});
    }
  }
  if (input_ >= 0 && input_ends_ && input_bytes_.empty()) {
    close(input_);
    input_ = -1;
  }
}

void Daemon::wait_and_serve() {
  // A negative time, which is none, is the longest as a number without a sign.
  const auto timeout_ms = static_cast<int>(
      std::min(static_cast<unsigned>(flush_parts()), static_cast<unsigned>(link_.timeout_ms())));
  std::vector<pollfd> files{{signals_, POLLIN, 0}};
  files.push_back({input_bytes_.empty() ? -1 : input_, POLLOUT, 0});
  const auto link = link_.events();
  files.insert(files.end(), link.begin(), link.end());
  const std::size_t first = files.size();
  const bool has_room = unprinted_ < kMaxUnprinted;
  for (const Rank& rank : ranks_) {
    for (const Stream& stream : rank.streams) {
      files.push_back({has_room ? stream.pipe : -1, POLLIN, 0});
    }
  }
  const std::size_t first_neighbour = files.size();
  relay_.add_events(files);
  if (poll(files.data(), files.size(), timeout_ms) < 0) return;
  if (files[0].revents != 0) {
    signalfd_siginfo about;
    (void)!read(signals_, &about, sizeof about);
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    for (std::size_t stream = 0; stream < 2; ++stream) {
      if (files[first + 2 * i + stream].revents != 0) read_stream(ranks_[i], stream);
    }
  }
  watch_children();
  relay_.serve(files.data() + first_neighbour);
  link_.serve(&files[2], [this](const Fields& message) {
    if (!over_) handle(message);
  });
  over_ = over_ || link_.is_over();
  feed();
}

int Daemon::serve() {
  // A terminal's signals go to the launcher, which forwards them.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP}) {
    signal(number, SIG_IGN);
  }
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &mask_before_);
  signals_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  const auto kept = keeper_.start();
  if (signals_ < 0 || !link_.greet()) return 1;
  std::array<char, HOST_NAME_MAX + 1> name = {};
  (void)gethostname(name.data(), name.size() - 1);
  say({"hello", kVersion, caller(), std::to_string(network::network_id()),
       cables::name_from(name.data())});
  if (!kept) refuse(kept.error().message);
  while (!over_) wait_and_serve();
  link_.drain(kRefusalMs);
  std::vector<pid_t> groups;
  for (const Rank& rank : ranks_) groups.push_back(rank.process);
  cluster::end_groups(groups);
  relay_.end();
  keeper_.stop();
  return 0;
}

}  // namespace

int serve_launcher() { return Daemon().serve(); }

}  // namespace espalier::launch
