#pragma once
// Tells a process from the children that it forks. A child has copies of its parent's objects, but
// their sockets, shared memory, locks and threads are the parent's: in the child these objects do
// nothing. Host only.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace espalier {

namespace forks_detail {
extern std::atomic<std::uint32_t> generation;
}  // namespace forks_detail

// Returns the number of forks between the first process with this code and the calling one. An
// object whose number differs belongs to a parent. Costs one load.
[[nodiscard]] inline std::uint32_t process_generation() {
  return forks_detail::generation.load(std::memory_order_relaxed);
}

// Returns the mutex of the lists that the whole process shares. No thread holds it while a process
// forks, so that the child can lock it. It must be held briefly, and never twice by one thread.
[[nodiscard]] std::mutex& fork_safe_mutex();

// Has children close this descriptor when they are forked, until forget_descriptor(): a connection
// that a child also holds does not end with the parent, and the port of a listener stays taken.
void close_in_children(int descriptor);
// Ends close_in_children(). Call before the descriptor is closed.
void forget_descriptor(int descriptor);

// Keeps an object of the parent, which a forked child must not destroy.
void keep_for_parent(const void* object);

// Deletes an object in the process that made it; in a forked child it stays.
template <typename T>
struct DeleteInOwnProcess {
  std::uint32_t generation = process_generation();
  void operator()(T* object) const {
    if (generation == process_generation()) {
      delete object;
    } else {
      keep_for_parent(object);
    }
  }
};

// As std::make_shared(), with DeleteInOwnProcess.
template <typename T, typename... Arguments>
[[nodiscard]] std::shared_ptr<T> make_of_process(Arguments&&... arguments) {
  return std::shared_ptr<T>(new T(std::forward<Arguments>(arguments)...), DeleteInOwnProcess<T>());
}

}  // namespace espalier
