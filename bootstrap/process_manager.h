#pragma once
// The launchers that hand a value from rank 0 to all processes of a job: PMIx and PMI-1. The rest
// of a job's exchange is the rendezvous server's. Host only.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/counted.h"
#include "bootstrap/observer.h"
#include "espalier/base/result.h"

namespace espalier::bootstrap {

class ProcessManager {
 public:
  virtual ~ProcessManager() = default;
  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t size() const = 0;
  [[nodiscard]] virtual bool is_one_host() const = 0;  // false also if it is unknown
  [[nodiscard]] virtual std::string job() const = 0;   // the same on all its processes
  // Returns rank 0's value, of at most 400 printable characters, on every rank. Called once by all.
  // Errors: a process that does not call it before the deadline; neither launcher says which.
  [[nodiscard]] virtual Result<std::string> from_rank_zero(const std::string& value,
                                                           std::chrono::milliseconds deadline) = 0;
  // Who knows which processes are missing. Null: neither does this host.
  void set_observer(std::shared_ptr<Observer> observer) { observer_ = std::move(observer); }

 protected:
  // The ranks that are missing, as far as this host shows them; empty: not known.
  [[nodiscard]] std::string absent() const {
    return observer_ == nullptr ? "" : observer_->absent();
  }
  // The error of a deadline.
  [[nodiscard]] Error missing(const char* launcher, std::chrono::milliseconds deadline) const {
    const std::string ranks = absent();
    return {std::string(launcher) + ": not all of the " + counted(size(), "process") +
            " joined within " + std::to_string(deadline.count()) + " ms" +
            (ranks.empty() ? "" : ": ") + ranks};
  }

 private:
  std::shared_ptr<Observer> observer_;
};

// Whether a launcher offers PMIx (its environment is there), or PMI-1.
[[nodiscard]] bool has_pmix();
[[nodiscard]] bool has_pmi();
// Connects to the launcher. Errors: its library or its server is missing or refuses.
[[nodiscard]] Result<std::unique_ptr<ProcessManager>> open_pmix();
[[nodiscard]] Result<std::unique_ptr<ProcessManager>> open_pmi();

}  // namespace espalier::bootstrap
