#pragma once
// Signals that wait.

#include <pthread.h>

#include <csignal>

namespace espalier::tools {

// Holds all signals back from the calling thread while it lives, except SIGKILL and SIGSTOP. For
// short work that must not be left half done, such as a file under a temporary name. A signal to
// the process still reaches another thread.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace espalier::tools
