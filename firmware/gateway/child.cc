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

bool Child::start(const std::string& command, const std::string& console, std::string& error) {
  const char* path = console.empty() ? "/dev/null" : console.c_str();
  const int output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (output < 0) {
    error = "cannot write the console file " + console + ": " + std::strerror(errno);
    return false;
  }
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const bool started =
      run(command, nothing, output, console.empty() ? STDERR_FILENO : output, error);
  close(nothing);
  close(output);
  return started;
}

bool Child::start(const std::string& command, int stdio, std::string& error) {
  return run(command, stdio, stdio, STDERR_FILENO, error);
}

bool Child::run(const std::string& command, int in, int out, int errors, std::string& error) {
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
  if (pid_ > 0) return true;
  error = std::string("cannot start a process: ") + std::strerror(errno);
  return false;
}

bool Child::failed(std::string& how) {
  if (pid_ <= 0 || reaped_) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  reaped_ = true;
  if (WIFSIGNALED(status)) {
    how = "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
          strsignal(WTERMSIG(status)) + ")";
    return true;
  }
  how = "ended with status " + std::to_string(WEXITSTATUS(status));
  return WEXITSTATUS(status) != 0;
}

}  // namespace espalier::gateway
