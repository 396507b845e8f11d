#include "hal/ofi/shared_queue_lock.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "hal/ofi/spin_lock_interposer.h"

// Null in a program without the interposer. A program that has it calls espalier_spin_lock_hold()
// only for a lock that was found, and a lock is found only if there is a record.
#pragma weak espalier_spin_lock_hold
#pragma weak espalier_spin_lock_give_back
#pragma weak espalier_spin_lock_record
#pragma weak espalier_spin_lock_recorded
#pragma weak espalier_spin_locks_interposed

namespace espalier::ofi {
namespace {

// A process holds the lock only while it copies data into or out of the queue, unless it lost its
// core, stopped or died. The caller has better things to do than to wait for that.
constexpr int kAttempts = 100;

bool interposed() {
  return espalier_spin_locks_interposed != nullptr && espalier_spin_locks_interposed();
}

// The recorded lock that is in a mapping of /dev/shm/`file`; null if there is none.
pthread_spinlock_t* recorded_in(const std::string& file) {
  pthread_spinlock_t* const* locks = nullptr;
  const std::size_t count = espalier_spin_lock_recorded(locks);
  if (count == 0) return nullptr;
  std::ifstream maps("/proc/self/maps");
  const std::string path = "/dev/shm/" + file;
  std::string line;
  while (std::getline(maps, line)) {
    if (!line.ends_with(path)) continue;
    char* rest = nullptr;
    const std::uintptr_t begin = std::strtoull(line.c_str(), &rest, 16);
    const std::uintptr_t end = *rest == '-' ? std::strtoull(rest + 1, nullptr, 16) : 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto address = reinterpret_cast<std::uintptr_t>(locks[i]);
      if (address >= begin && address < end) return locks[i];
    }
  }
  return nullptr;
}

}  // namespace

void SharedQueueLockGuard::acquire() {
  if (lock_.lock_ != nullptr) {
    acquired_ = espalier_spin_lock_hold(lock_.lock_, lock_.last_attempt_failed_ ? 1 : kAttempts);
    holds_ = acquired_;
    lock_.last_attempt_failed_ = !acquired_;
  } else {
    static const bool can_record = interposed();
    if (can_record) espalier_spin_lock_record(true);
    records_ = can_record;
  }
}

void SharedQueueLockGuard::release() {
  if (holds_) espalier_spin_lock_give_back();
  if (records_) espalier_spin_lock_record(false);
}

void SharedQueueLockGuard::find_lock() {
  lock_.lock_ = recorded_in(lock_.file_);
  lock_.searching_ = lock_.lock_ == nullptr;
}

}  // namespace espalier::ofi
