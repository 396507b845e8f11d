#pragma once
// The actions of signals in the program that uses libfabric. Libraries behind libfabric (PSM's)
// replace them when they are loaded: at SIGINT, SIGILL, SIGABRT, SIGBUS, SIGSEGV and SIGTERM they
// print a backtrace and call exit(1). Here the program gets its own actions back. Host only.

#include <signal.h>

#include <array>

namespace espalier::ofi {

// Remembers the actions of all signals while libfabric may load libraries.
class SignalActions {
 public:
  SignalActions();
  // Gives each signal that such a library handles now the remembered action; the default action if
  // that was such a handler, too. All other handlers stay.
  void restore() const;

 private:
  std::array<struct sigaction, NSIG> actions_ = {};
};

}  // namespace espalier::ofi
