#include "firmware/gateway/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/one_line.h"

namespace espalier::gateway {

Child::~Child() {
  if (pid_ <= 0 || reaped_) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
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
  console_ = console;
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

std::string Child::last_words() const {
  constexpr std::size_t kMostShown = 160;
  const int file =
      console_.empty() ? -1 : open(console_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return {};
  struct stat status;
  char end[512];
  ssize_t size = -1;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    const off_t length = sizeof end;
    size = pread(file, end, sizeof end, status.st_size > length ? status.st_size - length : 0);
  }
  close(file);
  if (size < 0) return {};
  std::string_view text(end, static_cast<std::size_t>(size));
  constexpr const char* kBlank = " \t\r\n";
  text = text.substr(0, text.find_last_not_of(kBlank) + 1);  // npos + 1 is 0
  if (text.empty()) return "; its console " + console_ + " is empty";
  const std::size_t before = text.find_last_of("\r\n");
  if (before != std::string_view::npos) text.remove_prefix(before + 1);
  return "; its console " + console_ + " ends with '" + one_line(text.substr(0, kMostShown)) + "'";
}

}  // namespace espalier::gateway
