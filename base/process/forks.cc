#include "base/process/forks.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace espalier {
namespace {

// Lists that live as long as the process: other objects may use them while it ends.
struct Lists {
  std::mutex mutex;
  std::vector<int> descriptors;        // that children close
  std::vector<const void*> of_parent;  // so that checkers of leaks find them
};

Lists& lists() {
  static Lists* const all = new Lists;
  return *all;
}

void before_fork() { lists().mutex.lock(); }
void after_fork_in_parent() { lists().mutex.unlock(); }
void after_fork_in_child() {
  forks_detail::generation.fetch_add(1, std::memory_order_relaxed);
  for (const int descriptor : lists().descriptors) close(descriptor);
  lists().descriptors.clear();
  lists().mutex.unlock();
}

// At the start of the program, or when the library is loaded: later, a thread may fork meanwhile.
const bool is_watching = [] {
  (void)lists();
  return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}();

}  // namespace

constinit std::atomic<std::uint32_t> forks_detail::generation = 0;

std::mutex& fork_safe_mutex() { return lists().mutex; }

void close_in_children(int descriptor) {
  const std::lock_guard lock(lists().mutex);
  lists().descriptors.push_back(descriptor);
}

void forget_descriptor(int descriptor) {
  const std::lock_guard lock(lists().mutex);
  std::vector<int>& all = lists().descriptors;
  const auto found = std::find(all.begin(), all.end(), descriptor);
  if (found != all.end()) all.erase(found);
}

void keep_for_parent(const void* object) {
  const std::lock_guard lock(lists().mutex);
  lists().of_parent.push_back(object);
}

}  // namespace espalier
