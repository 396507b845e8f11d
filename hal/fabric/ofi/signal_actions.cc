#include "hal/fabric/ofi/signal_actions.h"

#include <dlfcn.h>

#include <cstring>
#include <string_view>

namespace espalier::ofi {
namespace {

// Whether the handler is code of libfabric or of a library behind it.
bool is_of_fabric(const struct sigaction& action) {
  if ((action.sa_flags & SA_SIGINFO) == 0 &&
      (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
    return false;
  }
  void* code = nullptr;
  std::memcpy(&code, &action.sa_sigaction, sizeof code);
  Dl_info about = {};
  if (dladdr(code, &about) == 0 || about.dli_fname == nullptr) return false;
  const std::string_view path = about.dli_fname;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libinfinipath.") || name.starts_with("libpsm") ||
         name.starts_with("libfabric.");
}

// If a program is linked with libfabric, these libraries are loaded before main(), and before this.
// What they replaced is unknown then.
__attribute__((constructor)) void restore_defaults() { SignalActions().restore(); }

}  // namespace

SignalActions::SignalActions() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction& action = actions_[static_cast<std::size_t>(signal)];
    if (sigaction(signal, nullptr, &action) != 0 || is_of_fabric(action)) action = {};
  }
}

void SignalActions::restore() const {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction now = {};
    if (sigaction(signal, nullptr, &now) != 0 || !is_of_fabric(now)) continue;
    (void)sigaction(signal, &actions_[static_cast<std::size_t>(signal)], nullptr);
  }
}

}  // namespace espalier::ofi
