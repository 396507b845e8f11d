#pragma once
// How fields of a record are filled. Host only.

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "communicator/record/writer.h"

namespace espalier::record {

// CLOCK_REALTIME, ns.
inline std::uint64_t wall_ns() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// Copies the text as far as there is room, and ends it with 0.
template <std::size_t Size>
void put_text(char (&into)[Size], const std::string& text) {
  std::snprintf(into, Size, "%s", text.c_str());
}

// A change of a part with a sequence number; requires the writer's mutex.
class Writer::Change {
 public:
  explicit Change(Word& sequence) : sequence_(sequence) {
    sequence_.store(sequence_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Change() {
    sequence_.store(sequence_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  Word& sequence_;
};

}  // namespace espalier::record
