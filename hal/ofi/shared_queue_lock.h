#pragma once
// The spin lock of an endpoint's queue in shared memory, taken before a call into libfabric so that
// the call never waits for it.
//
// libfabric's shm provider keeps this lock in the memory of each endpoint: every process that
// writes to the endpoint takes it, and the endpoint's owner takes it to read. libfabric spins for
// it without limit, while it holds locks of its own. A process that is stopped or killed while it
// holds the lock would therefore block every process that wants it. We therefore try for a bounded
// time to take the lock before the call, and hold it until the call returns. Inside the call,
// libfabric's own attempt to lock succeeds at once.
//
// This needs the spin-lock interposer (spin_lock_interposer.h), also to find the lock: the first
// calls record which locks libfabric takes. Without the interposer the lock is never found, every
// guard succeeds, and calls wait as long as libfabric does.

#include <pthread.h>

#include <string>
#include <utility>

namespace espalier::ofi {

class SharedQueueLock {
 public:
  SharedQueueLock() = default;  // No lock: every guard succeeds.
  // The lock of the queue in /dev/shm/`file`.
  explicit SharedQueueLock(std::string file) : file_(std::move(file)), searching_(true) {}
  [[nodiscard]] bool found() const { return lock_ != nullptr; }
  // Whether every guarded call waits for this lock for a bounded time.
  [[nodiscard]] bool bounded() const { return file_.empty() || found(); }
  // Ends the search: every call from which the lock could be found has been made.
  void stop_searching() { searching_ = false; }

 private:
  friend class SharedQueueLockGuard;
  pthread_spinlock_t* lock_ = nullptr;
  std::string file_;
  bool searching_ = false;
  bool last_attempt_failed_ = false;
};

// Holds the lock during its lifetime. A thread may have one guard at a time.
class SharedQueueLockGuard {
 public:
  explicit SharedQueueLockGuard(SharedQueueLock& lock) : lock_(lock) {
    if (lock.lock_ != nullptr || lock.searching_) acquire();
  }
  ~SharedQueueLockGuard() {
    if (holds_ || records_) release();
  }
  SharedQueueLockGuard(const SharedQueueLockGuard&) = delete;
  SharedQueueLockGuard& operator=(const SharedQueueLockGuard&) = delete;
  // False: another thread or process holds the lock, and the call must not be made. The guard tried
  // for some microseconds, or only once if the previous guard had failed.
  [[nodiscard]] bool acquired() const { return acquired_; }
  // Call after the call into libfabric: a lock in the file that the call took is the lock.
  void call_made() {
    if (records_) find_lock();
  }

 private:
  void acquire();
  void find_lock();
  void release();

  SharedQueueLock& lock_;
  bool acquired_ = true;
  bool holds_ = false;
  bool records_ = false;
};

}  // namespace espalier::ofi
