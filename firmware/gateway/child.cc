#include "firmware/gateway/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace espalier::gateway {

Child::~Child() {
  if (pid_ <= 0 || reaped_) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<void> Child::start(const std::string& command, const std::string& console) {
  const char* path = console.empty() ? "/dev/null" : console.c_str();
  const int output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
  if (output >= 0) (void)fcntl(output, F_SETFL, 0);
  if (output < 0 && errno == ENXIO) {  // open() would wait for ever
    return fail("cannot write the console file " + console + ": no process reads this pipe");
  }
  if (output < 0) {
    return fail("cannot write the console file " + console + ": " + std::strerror(errno));
  }
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  auto started = run(command, nothing, output, console.empty() ? STDERR_FILENO : output);
  close(nothing);
  close(output);
  return started;
}

Result<void> Child::start(const std::string& command, int stdio) {
  return run(command, stdio, stdio, STDERR_FILENO);
}

Result<void> Child::run(const std::string& command, int in, int out, int errors) {
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  if (pid_ > 0) return {};
  return fail(std::string("cannot start a process: ") + std::strerror(errno));
}

std::optional<Child::End> Child::ended() {
  if (pid_ <= 0 || reaped_) return std::nullopt;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  reaped_ = true;
  if (WIFSIGNALED(status)) {
    return End{true, "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
                         strsignal(WTERMSIG(status)) + ")"};
  }
  return End{WEXITSTATUS(status) != 0, "ended with status " + std::to_string(WEXITSTATUS(status))};
}

}  // namespace espalier::gateway
