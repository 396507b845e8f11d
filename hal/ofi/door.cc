#include "hal/ofi/door.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace espalier::ofi {
namespace {

// Nobody holds a door for longer than it takes to copy what is in the queue, but one who has lost
// its core or its life. The caller has better to do than to wait for that.
constexpr int kLooks = 100;

// What this thread's Entry wants of the functions that libfabric calls.
struct Thread {
  pthread_spinlock_t* held = nullptr;  // its door
  bool locked = false;                 // libfabric has "taken" that, too
  bool learning = false;               // its door is among the locks taken now:
  std::size_t count = 0;
  std::array<pthread_spinlock_t*, 8> taken = {};

  void note(pthread_spinlock_t* lock) {
    const auto* end = taken.begin() + count;
    if (count < taken.size() && std::find(taken.cbegin(), end, lock) == end) taken[count++] = lock;
  }
};
thread_local Thread thread;

using Operation = int (*)(pthread_spinlock_t*);

// The definition of the C library, or of whoever else comes after this program.
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

bool take(pthread_spinlock_t* lock, int looks) {
  for (; next_trylock(lock) != 0; --looks) {
    if (looks <= 1) return false;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return true;
}

// The lock noted that lies in a mapping of /dev/shm/`file`; null if none does.
pthread_spinlock_t* noted_in(const std::string& file) {
  std::ifstream maps("/proc/self/maps");
  const std::string path = "/dev/shm/" + file;
  std::string line;
  while (std::getline(maps, line)) {
    if (!line.ends_with(path)) continue;
    char* rest = nullptr;
    const std::uintptr_t begin = std::strtoull(line.c_str(), &rest, 16);
    const std::uintptr_t end = *rest == '-' ? std::strtoull(rest + 1, nullptr, 16) : 0;
    for (std::size_t i = 0; i < thread.count; ++i) {
      const auto at = reinterpret_cast<std::uintptr_t>(thread.taken[i]);
      if (at >= begin && at < end) return thread.taken[i];
    }
  }
  return nullptr;
}

}  // namespace

Entry::Entry(Door& door) : door_(door) {
  if (door.lock_ != nullptr) {
    open_ = take(door.lock_, door.shut_ ? 1 : kLooks);
    door.shut_ = !open_;
    if (open_) thread.held = door.lock_;
  } else if (door.learning_) {
    thread.learning = true;
    thread.count = 0;
  }
}

Entry::~Entry() {
  thread.learning = false;
  if (thread.held == nullptr) return;
  pthread_spinlock_t* held = thread.held;
  thread.held = nullptr;
  thread.locked = false;
  next_unlock(held);
}

void Entry::done() {
  if (!thread.learning || thread.count == 0) return;
  door_.lock_ = noted_in(door_.file_);
  door_.learning_ = door_.lock_ == nullptr;
}

}  // namespace espalier::ofi

extern "C" {

int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  using namespace espalier::ofi;
  if (lock == thread.held) {
    thread.locked = true;
    return 0;
  }
  if (thread.learning) thread.note(lock);
  return next_lock(lock);
}

int pthread_spin_trylock(pthread_spinlock_t* lock) noexcept {
  using namespace espalier::ofi;
  if (lock != thread.held) return next_trylock(lock);
  if (thread.locked) return EBUSY;
  thread.locked = true;
  return 0;
}

int pthread_spin_unlock(pthread_spinlock_t* lock) noexcept {
  using namespace espalier::ofi;
  if (lock != thread.held) return next_unlock(lock);
  thread.locked = false;
  return 0;
}

}  // extern "C"
