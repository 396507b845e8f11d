#pragma once
// The signals that the launcher handles: they wait in a file until it reads them. Host only.

#include <csignal>
#include <optional>
#include <vector>

namespace espalier::launch {

class JobSignals {
 public:
  // Blocks the signals, except those that the parent of this process ignores: they stay ignored.
  JobSignals();
  ~JobSignals();
  JobSignals(const JobSignals&) = delete;
  JobSignals& operator=(const JobSignals&) = delete;

  // Becomes readable when a signal arrives.
  [[nodiscard]] int file() const { return file_; }
  // Returns the number of a signal that arrived; nothing if there is none.
  [[nodiscard]] std::optional<int> take() const;
  // The signals that the parent ignores.
  [[nodiscard]] const std::vector<int>& ignored() const { return ignored_; }
  // In a forked child that calls exec() next: restores what the launcher found.
  void restore() const;

 private:
  std::vector<int> ignored_;
  sigset_t mask_before_{};
  int file_ = -1;
};

// Whether the signal ends a job: INT, TERM, HUP or QUIT.
[[nodiscard]] bool ends_job(int signal_number);

}  // namespace espalier::launch
