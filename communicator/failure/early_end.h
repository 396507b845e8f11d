#pragma once
// What ends a communicator early: a request of any thread, or a flag that a signal handler sets.
// Host only. docs/communicator.md, "Cancel".

#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "communicator/failure/call_exchange.h"

namespace espalier::communicator {

// Copies one line as far as there is room; control characters become spaces, and other bytes that
// do not print are spelled as by one_line(). A character that has no room is left out as a whole.
// Allocates nothing.
void take_line(std::string_view text, FailureNote::Text& line);

// The state is one word, so that a communicator without any of this pays one load per look.
class EarlyEnd {
 public:
  // Asks for the end. Only the first request counts. Any thread may call it.
  void request(std::string_view reason);
  // The next four are for the thread that uses the channel.
  // Asks for the end once *flag is not 0; null: no longer.
  void watch(const std::atomic<std::sig_atomic_t>* flag, std::string_view reason);
  // From now on no request and no flag counts.
  void refuse() { is_refusing_ = true; }
  // Whether the channel must end now; then `reason` is why.
  [[nodiscard]] bool take(FailureNote::Text& reason);
  // A rank has ended the communicator. has_ended(): all ranks know, or it failed otherwise.
  void begin() { state_.fetch_or(kEnding, std::memory_order_relaxed); }
  void has_ended() { state_.store(0, std::memory_order_relaxed); }

  // Whether there is anything to look for.
  [[nodiscard]] bool is_pending() const { return state_.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] bool is_watching() const { return has(kWatching); }
  // Whether the channel ends, or was asked to.
  [[nodiscard]] bool is_ending() const {
    return has(kEnding) || (has(kRequested) && !is_refusing_);
  }

 private:
  static constexpr std::uint8_t kRequested = 1, kWatching = 2, kEnding = 4;
  [[nodiscard]] bool has(std::uint8_t bit) const {
    return (state_.load(std::memory_order_relaxed) & bit) != 0;
  }

  std::atomic<std::uint8_t> state_ = 0;
  bool is_refusing_ = false;
  const std::atomic<std::sig_atomic_t>* flag_ = nullptr;
  FailureNote::Text flag_reason_ = {};
  std::mutex mutex_;  // of has_request_
  bool has_request_ = false;
  FailureNote::Text reason_ = {};  // of the request; does not change once kRequested is set
};

}  // namespace espalier::communicator
