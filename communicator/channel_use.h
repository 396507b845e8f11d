#pragma once
// Which thread uses a channel. Internal to the sources of Channel.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "communicator/channel.h"

namespace espalier::communicator {

[[nodiscard]] inline Error crowded() {
  return {"another thread uses this communicator; expected one thread at a time"};
}

// The program's use of a channel: by one thread at a time. It waits while another thread makes
// progress, which is short and seldom. If another thread of the program uses the channel, has() is
// false, except in functions that have no error: they wait for that thread.
class Channel::Use {
 public:
  enum class Crowd : std::uint8_t { kIsError, kWaits };
  explicit Use(const Channel& channel, Crowd crowd = Crowd::kIsError) : user_(channel.user_) {
    for (User user = kNobody;
         !user_.compare_exchange_strong(user, kProgram, std::memory_order_acquire);
         user = kNobody) {
      if (user == kProgram && crowd == Crowd::kIsError) {
        has_ = false;
        return;
      }
      user == kProgram ? std::this_thread::sleep_for(kCrowdPause) : user_.wait(kProgress);
    }
    channel.uses_.store(channel.uses_.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  }
  ~Use() {
    if (has_) user_.store(kNobody, std::memory_order_release);
  }
  [[nodiscard]] bool has() const { return has_; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  static constexpr std::chrono::microseconds kCrowdPause{100};
  std::atomic<User>& user_;
  bool has_ = true;
};

}  // namespace espalier::communicator
