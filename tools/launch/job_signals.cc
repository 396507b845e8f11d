#include "tools/launch/job_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/process/inherited.h"

namespace espalier::launch {
namespace {

constexpr int kEndSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kOtherSignals[] = {SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

}  // namespace

JobSignals::JobSignals() : ignored_(ignored_signals()) {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t caught;
  sigemptyset(&caught);
  for (const int number : kEndSignals) sigaddset(&caught, number);
  for (const int number : kOtherSignals) sigaddset(&caught, number);
  for (const int number : ignored_) sigdelset(&caught, number);
  sigprocmask(SIG_BLOCK, &caught, &mask_before_);
  file_ = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
}

JobSignals::~JobSignals() {
  if (file_ < 0) return;
  close(file_);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<int> JobSignals::take() const {
  signalfd_siginfo about;
  if (read(file_, &about, sizeof about) != sizeof about) return std::nullopt;
  return static_cast<int>(about.ssi_signo);
}

void JobSignals::restore() const {
  reset_signals(ignored_);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

bool ends_job(int signal_number) {
  return std::find(std::begin(kEndSignals), std::end(kEndSignals), signal_number) !=
         std::end(kEndSignals);
}

}  // namespace espalier::launch
