#include "tools/job/daemon.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/version.h"
#include "tools/common/find_program.h"
#include "tools/job/frames.h"
#include "tools/launch/keeper.h"

namespace espalier::job {
namespace {

constexpr std::size_t kMaxLine = 65536;  // bytes of a line that are held back

struct Stream {
  int pipe = -1;  // negative: closed
  std::string line;
};

struct Rank {
  std::uint32_t number = 0;
  pid_t process = -1;
  bool ended = false;  // stays a zombie, so that its group's number stays its own
  std::array<Stream, 2> streams;
};

// The IPv4 address from which ssh was called; empty if there is none.
std::string caller() {
  const char* connection = std::getenv("SSH_CONNECTION");
  const std::string text = connection == nullptr ? "" : connection;
  const std::string ip = text.substr(0, text.find(' '));
  in_addr address{};
  return inet_pton(AF_INET, ip.c_str(), &address) == 1 ? ip : "";
}

class Daemon {
 public:
  int serve();

 private:
  void handle(const Fields& message);
  void prepare(const Fields& message);
  void start(const Fields& message);
  bool fork_rank(std::uint32_t number);
  [[noreturn]] void become(std::uint32_t number, int input, int output, int errors);
  void watch_children();
  void read_stream(Rank& rank, std::size_t stream);
  void flush(Rank& rank, std::size_t stream, bool whole);
  void feed();
  void wait_and_serve();
  void refuse(const std::string& reason) {
    say({"refused", reason});
    over_ = true;
  }
  void say(const Fields& message) { over_ = !send_fields(STDOUT_FILENO, message) || over_; }

  launch::Keeper keeper_;
  Reader reader_;
  int signals_ = -1;
  int secret_ = -1;
  bool over_ = false;
  std::string size_;
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
  secret_ = make_secret(job->secret);
  if (secret_ < 0) return refuse(std::string("no memory for the secret: ") + std::strerror(errno));
  for (const std::string& entry : job->variables) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  if (chdir(job->folder.c_str()) != 0) {
    return refuse("folder '" + job->folder + "': " + std::strerror(errno));
  }
  program_ = tools::find_program(arguments_.front());
  if (program_.empty()) {
    return refuse("no program '" + arguments_.front() + "'; expected an executable file");
  }
  say({"ready"});
}

void Daemon::become(std::uint32_t number, int input, int output, int errors) {
  setenv("ESPALIER_RANK", std::to_string(number).c_str(), 1);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  fcntl(secret_, F_SETFD, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(signal_number, SIG_DFL);
  std::vector<char*> words;
  words.reserve(arguments_.size() + 1);
  for (std::string& argument : arguments_) words.push_back(argument.data());
  words.push_back(nullptr);
  execv(program_.c_str(), words.data());
  const std::string line = "cannot start '" + program_ + "': " + std::strerror(errno) + "\n";
  (void)write_all(STDERR_FILENO, line);
  _exit(127);
}

bool Daemon::fork_rank(std::uint32_t number) {
  int pipes[3][2];
  for (auto& ends : pipes) {
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
  }
  if (number != 0) {  // only rank 0 has the launcher's input
    close(pipes[0][0]);
    pipes[0][0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self || !keeper_.enter()) _exit(127);
    become(number, pipes[0][0], pipes[1][1], pipes[2][1]);
  }
  setpgid(child, child);
  close(pipes[0][0]);
  close(pipes[1][1]);
  close(pipes[2][1]);
  if (number == 0) {
    input_ = pipes[0][1];
  } else {
    close(pipes[0][1]);
  }
  Rank rank;
  rank.number = number;
  rank.process = child;
  for (std::size_t i = 0; i < 2; ++i) rank.streams[i].pipe = pipes[i + 1][0];
  for (const int file : {pipes[1][0], pipes[2][0], input_}) {
    if (file >= 0) fcntl(file, F_SETFL, O_NONBLOCK);
  }
  ranks_.push_back(std::move(rank));
  return true;
}

void Daemon::start(const Fields& message) {
  if (message.size() != 2 || program_.empty() || !ranks_.empty()) return refuse("a wrong message");
  // What another launcher set for its own processes.
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) unsetenv(name);
  setenv("ESPALIER_SIZE", size_.c_str(), 1);
  setenv("ESPALIER_ADDRESS", message[1].c_str(), 1);
  setenv("ESPALIER_SERVER", "launcher", 1);
  setenv("ESPALIER_SECRET_FILE", ("/proc/self/fd/" + std::to_string(secret_)).c_str(), 1);
  for (const std::uint32_t number : numbers_) {
    if (!fork_rank(number)) {
      return refuse("cannot start rank " + std::to_string(number) + ": " + std::strerror(errno));
    }
  }
}

void Daemon::handle(const Fields& message) {
  if (message[0] == "job") {
    prepare(message);
  } else if (message[0] == "go") {
    start(message);
  } else if (message[0] == "signal" && message.size() == 2) {
    for (const Rank& rank : ranks_) kill(-rank.process, std::atoi(message[1].c_str()));
  } else if (message[0] == "input" && message.size() == 2) {
    input_bytes_ += message[1];
    input_ends_ = input_ends_ || message[1].empty();
  } else {
    refuse("a wrong message");
  }
}

// Sends the complete lines, or everything if `whole`.
void Daemon::flush(Rank& rank, std::size_t stream, bool whole) {
  std::string& line = rank.streams[stream].line;
  if (whole && !line.empty() && line.back() != '\n') line += '\n';
  std::size_t end = line.rfind('\n') + 1;
  if (end == 0 && line.size() >= kMaxLine) {
    line += '\n';
    end = line.size();
  }
  if (end == 0) return;
  say({"output", std::to_string(rank.number), std::to_string(stream + 1), line.substr(0, end)});
  line.erase(0, end);
}

void Daemon::read_stream(Rank& rank, std::size_t stream) {
  Stream& from = rank.streams[stream];
  char buffer[65536];
  const ssize_t received = read(from.pipe, buffer, sizeof buffer);
  if (received > 0) from.line.append(buffer, static_cast<std::size_t>(received));
  const bool closed = received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR);
  if (closed) {
    close(from.pipe);
    from.pipe = -1;
  }
  flush(rank, stream, closed);
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
      pollfd ready{rank.streams[i].pipe, POLLIN, 0};
      while (rank.streams[i].pipe >= 0 && poll(&ready, 1, 0) > 0) {
        read_stream(rank, i);
        ready.fd = rank.streams[i].pipe;
      }
      flush(rank, i, true);
    }
    const int status = about.si_code == CLD_EXITED ? about.si_status : -about.si_status;
    say({"end", std::to_string(rank.number), std::to_string(status)});
  }
}

// Writes the launcher's input to rank 0 as far as the pipe takes it.
void Daemon::feed() {
  if (input_ >= 0 && !input_bytes_.empty()) {
    const ssize_t written = write(input_, input_bytes_.data(), input_bytes_.size());
    if (written > 0) input_bytes_.erase(0, static_cast<std::size_t>(written));
    if (written < 0 && errno != EAGAIN && errno != EINTR) {  // rank 0 reads no more
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
  std::vector<pollfd> files{{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}};
  files.push_back({input_bytes_.empty() ? -1 : input_, POLLOUT, 0});
  for (const Rank& rank : ranks_) {
    for (const Stream& stream : rank.streams) files.push_back({stream.pipe, POLLIN, 0});
  }
  if (poll(files.data(), files.size(), -1) < 0) return;
  if (files[1].revents != 0) {
    signalfd_siginfo about;
    (void)!read(signals_, &about, sizeof about);
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    for (std::size_t stream = 0; stream < 2; ++stream) {
      if (files[3 + 2 * i + stream].revents != 0) read_stream(ranks_[i], stream);
    }
  }
  watch_children();
  if (files[0].revents != 0) {
    over_ = !reader_.fill(STDIN_FILENO) || over_;
    for (Fields message; !over_ && reader_.take(message);) handle(message);
  }
  feed();
}

int Daemon::serve() {
  // A terminal's signals go to the launcher, which forwards them.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  signals_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  const auto kept = keeper_.start();
  if (signals_ < 0 || !write_all(STDOUT_FILENO, kGreeting)) return 1;
  say({"hello", kVersion, caller()});
  if (!kept) refuse(kept.error().message);
  while (!over_) wait_and_serve();
  std::vector<pid_t> groups;
  for (const Rank& rank : ranks_) groups.push_back(rank.process);
  launch::end_groups(groups);
  keeper_.stop();
  return 0;
}

}  // namespace

int serve_launcher() { return Daemon().serve(); }

}  // namespace espalier::job
