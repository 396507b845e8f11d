#include "base/process/inherited.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace espalier {

void repair_inherited() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest free number is this one. Without /dev, a folder serves: it has no bytes either.
    if (open("/dev/null", O_RDONLY) < 0) (void)open("/", O_RDONLY | O_DIRECTORY);
  }
  struct sigaction action {};
  if (sigaction(SIGCHLD, nullptr, &action) == 0 &&
      (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0)) {
    signal(SIGCHLD, SIG_DFL);
  }
}

std::vector<int> ignored_signals() {
  std::vector<int> ignored;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (number == SIGCHLD || sigaction(number, nullptr, &action) != 0) continue;
    if (action.sa_handler == SIG_IGN) ignored.push_back(number);
  }
  return ignored;
}

void reset_signals(const std::vector<int>& ignored) {
  for (int number = 1; number < NSIG; ++number) {  // fails for KILL, STOP and those of the library
    const bool ignore = std::find(ignored.begin(), ignored.end(), number) != ignored.end();
    signal(number, ignore ? SIG_IGN : SIG_DFL);
  }
}

bool is_writable(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace espalier
