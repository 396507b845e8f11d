#pragma once
// The spin lock that stands before an endpoint's queue in memory that processes share, held around
// a call into libfabric so that the call never waits for it.
//
// libfabric's shm provider keeps such a lock in the memory of each endpoint: whoever writes to the
// endpoint takes it, and its owner to read. It spins for it without end, with locks of its own
// held; so a process that is stopped, or killed, while it holds one would hold all others that want
// it. Therefore ours is taken before the call, or not, but within bounds, and kept until the call
// has returned. Inside, libfabric finds it free.
//
// To see to that, and to learn where a door is (from the first calls), door.cc defines
// pthread_spin_lock, pthread_spin_trylock and pthread_spin_unlock: a program's own definitions come
// before those of its shared libraries. All other locks go on to the C library. In a program where
// other definitions come first no door is ever learnt, and calls wait as long as libfabric does.

#include <pthread.h>

#include <string>
#include <utility>

namespace espalier::ofi {

class Door {
 public:
  Door() = default;  // always open: there is no lock
  // Of the queue in /dev/shm/`file`.
  explicit Door(std::string file) : file_(std::move(file)), learning_(true) {}
  [[nodiscard]] bool known() const { return lock_ != nullptr; }
  // All calls that are to be learnt from have been made.
  void settle() { learning_ = false; }

 private:
  friend class Entry;
  pthread_spinlock_t* lock_ = nullptr;
  std::string file_;
  bool learning_ = false;
  bool shut_ = false;  // when it was last tried
};

// Holds a door while it lives. One at a time a thread.
class Entry {
 public:
  explicit Entry(Door& door);
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  // False: another thread or process held it for some microseconds (a look, if so before); the
  // call must not be made.
  [[nodiscard]] bool open() const { return open_; }
  // The call was made: if it took a lock in the file, that is the door.
  void done();

 private:
  Door& door_;
  bool open_ = true;
};

}  // namespace espalier::ofi
