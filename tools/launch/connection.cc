#include "tools/launch/connection.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"

namespace espalier::launch {
namespace {

constexpr std::size_t kMaxErrorBytes = 65536;  // kept of stderr

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? "'\\''" : std::string(1, letter);
  return text + "'";
}

}  // namespace

void Connection::become_daemon(const DaemonStart& how, const std::array<int, 3>& files) const {
  for (int i = 0; i < 3; ++i) dup2(files[static_cast<std::size_t>(i)], i);
  how.signals.restore();
  if (host.is_here) {
    execl(how.espalier.c_str(), how.espalier.c_str(), "launch-daemon", nullptr);
  } else {
    std::string words = "exec " + how.remote_shell;
    if (host.port != 0) words += " -p " + std::to_string(host.port);
    words += " \"$@\"";
    const std::string command = "exec " + quoted(how.espalier) + " launch-daemon";
    execl("/bin/sh", "sh", "-c", words.c_str(), "sh", host.name.c_str(), command.c_str(), nullptr);
  }
  _exit(127);
}

Result<void> Connection::start(const DaemonStart& how) {
  int pipes[3][2];
  for (auto& ends : pipes) {
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return fail(std::string("cannot open a pipe: ") + std::strerror(errno));
    }
  }
  process_ = how.keeper.fork_group();
  const int failure = errno;
  if (process_ == 0) {
    become_daemon(how, {pipes[0][0], pipes[1][1], pipes[2][1]});
  }
  close(pipes[0][0]);
  close(pipes[1][1]);
  close(pipes[2][1]);
  to_ = pipes[0][1];
  fcntl(to_, F_SETFL, O_NONBLOCK);
  from_ = pipes[1][0];
  errors_ = pipes[2][0];
  if (process_ < 0) {
    return fail(std::string("cannot start a process: ") + std::strerror(failure));
  }
  return {};
}

void Connection::send(const Fields& message) {
  outgoing_ += encode(message);
  flush();
}

void Connection::flush() {
  // After an error the end of the daemon is read from the other pipe.
  if (!write_some(to_, outgoing_)) outgoing_.clear();
}

void Connection::close_messages() {
  close(from_);
  from_ = -1;
}

std::string Connection::read_errors() {
  char buffer[4096];
  const ssize_t received = read(errors_, buffer, sizeof buffer);
  if (received <= 0) {
    close(errors_);
    errors_ = -1;
    return {};
  }
  std::string text(buffer, static_cast<std::size_t>(received));
  if (state == State::kRunning) return text;
  error_text_ = (error_text_ + text).substr(0, kMaxErrorBytes);
  return {};
}

std::string Connection::last_error_line() const {
  std::string text = error_text_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::array<pollfd, 3> Connection::events(bool reads_errors) const {
  return {{{from_, POLLIN, 0},
           {reads_errors ? errors_ : -1, POLLIN, 0},
           {outgoing_.empty() ? -1 : to_, POLLOUT, 0}}};
}

void end_daemons(std::vector<Connection>& connections) {
  std::vector<pid_t> groups;
  for (Connection& connection : connections) {
    if (connection.to_ >= 0) close(connection.to_);
    if (connection.process_ > 0) groups.push_back(connection.process_);
  }
  // Reads to the end of the daemon's output, which is the daemon's end; a shell gets 3 s.
  const std::uint64_t until = monotonic_ns() + kDaemonPatience;
  for (Connection& connection : connections) {
    while (connection.from_ >= 0 && monotonic_ns() < until) {
      pollfd file{connection.from_, POLLIN, 0};
      if (poll(&file, 1, 10) > 0 && !connection.reader_.fill(connection.from_)) break;
    }
    if (connection.from_ >= 0) close(connection.from_);
    if (connection.errors_ >= 0) close(connection.errors_);
  }
  cluster::end_groups(groups);
  for (const pid_t group : groups) {
    while (waitpid(group, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  connections.clear();
}

}  // namespace espalier::launch
