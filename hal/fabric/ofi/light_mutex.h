#pragma once
// A mutex of a few instructions where no other thread has it. Host only.

#include <atomic>
#include <cstdint>

namespace espalier::ofi {

class LightMutex {
 public:
  void lock() {
    std::uint32_t state = kFree;
    if (state_.compare_exchange_strong(state, kHeld, std::memory_order_acquire)) return;
    while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) state_.wait(kAwaited);
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kAwaited) state_.notify_one();
  }

 private:
  enum State : std::uint32_t { kFree, kHeld, kAwaited };
  std::atomic<std::uint32_t> state_ = kFree;
};

// Holds a mutex; null: nothing.
class LightLock {
 public:
  explicit LightLock(LightMutex* mutex) : mutex_(mutex) {
    if (mutex_ != nullptr) mutex_->lock();
  }
  ~LightLock() {
    if (mutex_ != nullptr) mutex_->unlock();
  }
  LightLock(const LightLock&) = delete;
  LightLock& operator=(const LightLock&) = delete;

 private:
  LightMutex* mutex_;
};

}  // namespace espalier::ofi
