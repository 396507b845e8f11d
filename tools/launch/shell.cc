#include "tools/launch/shell.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "tools/launch/frames.h"

namespace espalier::launch {
namespace {

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? "'\\''" : std::string(1, letter);
  return text + "'";
}

[[noreturn]] void become_daemon(const ShellCommand& command) {
  const char* const espalier = command.espalier.c_str();
  if (command.remote_shell.empty()) {
    execl(espalier, espalier, "launch-daemon", nullptr);
  } else {
    std::string words = "exec " + command.remote_shell;
    if (command.port != 0) words += " -p " + std::to_string(command.port);
    words += " \"$@\"";
    std::string there = "exec " + quoted(command.espalier) + " launch-daemon";
    if (!command.session.empty()) there += " " + quoted(command.session);
    execl("/bin/sh", "sh", "-c", words.c_str(), "sh", command.host.c_str(), there.c_str(), nullptr);
  }
  _exit(127);
}

void close_pipe(int& pipe) {
  if (pipe >= 0) close(pipe);
  pipe = -1;
}

}  // namespace

Result<void> Shell::start(const cluster::Keeper& keeper, const ShellCommand& command,
                          const std::function<void()>& prepare) {
  int pipes[3][2];
  for (auto& ends : pipes) {
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return fail(std::string("cannot open a pipe: ") + std::strerror(errno));
    }
  }
  process_ = keeper.fork_group();
  const int failure = errno;
  if (process_ == 0) {
    const int files[3] = {pipes[0][0], pipes[1][1], pipes[2][1]};
    for (int i = 0; i < 3; ++i) dup2(files[i], i);
    prepare();
    become_daemon(command);
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

void Shell::send(const std::string& bytes) {
  if (to_ < 0) return;
  outgoing_ += bytes;
  flush();
}

void Shell::flush() {
  // After an error the end of the daemon is read from the other pipe.
  if (!write_some(to_, outgoing_)) outgoing_.clear();
}

void Shell::close_output() { close_pipe(from_); }

void Shell::close_errors() { close_pipe(errors_); }

std::array<pollfd, 3> Shell::events(bool reads_errors) const {
  return {{{from_, POLLIN, 0},
           {reads_errors ? errors_ : -1, POLLIN, 0},
           {outgoing_.empty() ? -1 : to_, POLLOUT, 0}}};
}

void end_shells(const std::vector<Shell*>& shells, std::uint64_t patience_ns) {
  std::vector<pid_t> groups;
  for (Shell* const shell : shells) {
    close_pipe(shell->to_);
    if (shell->process_ > 0) groups.push_back(shell->process_);
    shell->process_ = -1;
  }
  // Reads to the end of the daemon's output, which is the daemon's end.
  const std::uint64_t until = monotonic_ns() + patience_ns;
  for (Shell* const shell : shells) {
    while (shell->from_ >= 0 && monotonic_ns() < until) {
      pollfd file{shell->from_, POLLIN, 0};
      char rest[65536];
      if (poll(&file, 1, 10) > 0 && read(shell->from_, rest, sizeof rest) <= 0) break;
    }
    close_pipe(shell->from_);
    close_pipe(shell->errors_);
  }
  cluster::end_groups(groups);
  for (const pid_t group : groups) {
    while (waitpid(group, nullptr, 0) < 0 && errno == EINTR) continue;
  }
}

}  // namespace espalier::launch
