#include "hal/ofi/spin_lock_interposer.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace {

struct ThreadState {
  pthread_spinlock_t* held = nullptr;
  bool taken = false;  // the held lock, by a pthread_spin_* call of this thread
  bool recording = false;
  std::size_t count = 0;
  std::array<pthread_spinlock_t*, 8> recorded = {};

  void record(pthread_spinlock_t* lock) {
    const auto* end = recorded.begin() + count;
    if (count < recorded.size() && std::find(recorded.cbegin(), end, lock) == end) {
      recorded[count++] = lock;
    }
  }
};
thread_local ThreadState thread;

using Operation = int (*)(pthread_spinlock_t*);

// Finds the function that the interposer replaces: normally the one in the C library.
Operation next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found != nullptr) return reinterpret_cast<Operation>(found);
  std::fprintf(stderr, "espalier: the C library has no %s\n", name);
  std::abort();
}

int next_lock(pthread_spinlock_t* lock) {
  static const Operation operation = next("pthread_spin_lock");
  return operation(lock);
}
int next_trylock(pthread_spinlock_t* lock) {
  static const Operation operation = next("pthread_spin_trylock");
  return operation(lock);
}
int next_unlock(pthread_spinlock_t* lock) {
  static const Operation operation = next("pthread_spin_unlock");
  return operation(lock);
}

}  // namespace

extern "C" {

int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  if (lock == thread.held) {
    thread.taken = true;
    return 0;
  }
  if (thread.recording) thread.record(lock);
  return next_lock(lock);
}

int pthread_spin_trylock(pthread_spinlock_t* lock) noexcept {
  if (lock != thread.held) return next_trylock(lock);
  if (thread.taken) return EBUSY;
  thread.taken = true;
  return 0;
}

int pthread_spin_unlock(pthread_spinlock_t* lock) noexcept {
  if (lock != thread.held) return next_unlock(lock);
  thread.taken = false;
  return 0;
}

bool espalier_spin_locks_interposed() {
  return dlsym(RTLD_DEFAULT, "pthread_spin_lock") == reinterpret_cast<void*>(&pthread_spin_lock);
}

bool espalier_spin_lock_hold(pthread_spinlock_t* lock, int attempts) {
  for (; next_trylock(lock) != 0; --attempts) {
    if (attempts <= 1) return false;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  thread.held = lock;
  return true;
}

void espalier_spin_lock_give_back() {
  pthread_spinlock_t* const held = thread.held;
  thread.held = nullptr;
  thread.taken = false;
  next_unlock(held);
}

void espalier_spin_lock_record(bool on) {
  thread.recording = on;
  if (on) thread.count = 0;
}

std::size_t espalier_spin_lock_recorded(pthread_spinlock_t* const*& locks) {
  locks = thread.recorded.data();
  return thread.count;
}

}  // extern "C"
