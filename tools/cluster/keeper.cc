#include "tools/cluster/keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace espalier::cluster {
namespace {

// Whether any process of the groups has not ended.
bool has_living_members(const std::vector<pid_t>& groups) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process <= 0) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');  // the name may contain anything
    if (name_end == std::string::npos) continue;
    std::istringstream fields(line.substr(name_end + 1));
    char state = 0;
    pid_t parent = 0, group = 0;
    if (!(fields >> state >> parent >> group) || state == 'Z' || state == 'X') continue;
    if (std::find(groups.begin(), groups.end(), group) != groups.end()) return true;
  }
  return false;
}

// The keeper's process. Other descriptors are closed: a reader of the launcher's output must not
// wait for the keeper, and one keeper must not hold another's pipe.
[[noreturn]] void keep(int pipe_end) {
  setsid();  // so that no signal to the launcher's group or terminal arrives here
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_IGN);
  prctl(PR_SET_NAME, "espalier-keeper");
  dup2(pipe_end, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, ~0u, 0);
  if (chdir("/") != 0) _exit(1);
  std::vector<pid_t> groups;
  pid_t group = 0;
  ssize_t received = 0;
  while ((received = read(STDIN_FILENO, &group, sizeof group)) != 0) {
    if (received == sizeof group) groups.push_back(group);
    if (received < 0 && errno != EINTR) break;
  }
  end_groups(groups);
  _exit(0);
}

}  // namespace

void end_groups(const std::vector<pid_t>& groups) {
  while (true) {
    const bool has_living = has_living_members(groups);
    for (const pid_t group : groups) kill(-group, SIGKILL);
    if (!has_living) break;
    usleep(1000);
  }
}

Result<void> Keeper::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return fail(std::string("cannot open a pipe: ") + std::strerror(errno));
  }
  process_ = fork();
  if (process_ == 0) keep(ends[0]);
  const int failure = errno;
  close(ends[0]);
  pipe_ = ends[1];
  if (process_ > 0) return {};
  return fail(std::string("cannot start a process: ") + std::strerror(failure));
}

pid_t Keeper::fork_group() const {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child > 0) setpgid(child, child);  // by parent and child, as either may run first
  if (child != 0) return child;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const pid_t group = getpid();
  // The keeper reads every entry, because it acts only once all have closed the pipe.
  const bool is_entered = write(pipe_, &group, sizeof group) == sizeof group;
  if (!is_entered || getppid() != parent) _exit(127);
  return 0;
}

void Keeper::stop() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  if (pipe_ >= 0) close(pipe_);
  process_ = -1;
  pipe_ = -1;
}

}  // namespace espalier::cluster
