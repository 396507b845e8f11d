#pragma once
// What a machine did: a record of each message, combine and copy of the collective started last, in
// program order, in the caller's memory. Freestanding; a machine without one pays a pointer test.
//
// The records up to retired() are a function of the program and the blocks alone: on every target
// and fabric their bytes (event_bytes) are the same, in whatever order messages came. When each was
// let in, posted and complete stands beside them, where the caller gave room for it. Once the room
// is used up the log keeps what it has and counts what it lost.

#include <cstdint>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

struct Event {
  static constexpr std::uint8_t kNoLink = 255;
  std::uint32_t step = 0;  // of the whole schedule, modulo 2^32
  std::uint32_t segment = 0, block = 0;
  std::uint8_t action = 0;      // position in the program
  std::uint8_t link = kNoLink;  // position among the program's links; of a message
  std::uint8_t kind = 0;        // espalier_Kind
  std::uint8_t port = kNoLink;  // the endpoint's link
  bool begun = false, done = false;
};

// By the endpoint's clock, ns.
struct EventTimes {
  std::uint64_t let_in = 0;   // its step
  std::uint64_t posted = 0;   // of a combine or copy: when it began
  std::uint64_t done = 0;     // its completion was polled; of a combine or copy: when it had run
  std::uint64_t retired = 0;  // its step
};

class EventLog {
 public:
  EventLog() = default;
  // Room for `capacity` records; times: null, or as many. The memory outlives the log.
  EventLog(Event* events, EventTimes* times, std::uint32_t capacity)
      : events_(events), times_(times), capacity_(capacity) {}
  // What a log of another machine holds, to be read.
  struct Counts {
    std::uint32_t count = 0, retired = 0;
    std::uint64_t lost = 0;
  };
  EventLog(Event* events, EventTimes* times, const Counts& counts)
      : events_(events),
        times_(times),
        capacity_(counts.count),
        count_(counts.count),
        retired_(counts.retired),
        lost_(counts.lost) {}

  [[nodiscard]] Counts counts() const { return {count_, retired_, lost_}; }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  // Records of steps that have retired: they change no more.
  [[nodiscard]] std::uint32_t retired() const { return retired_; }
  [[nodiscard]] const Event& event(std::uint32_t at) const { return events_[at]; }
  // Of a log that keeps times.
  [[nodiscard]] const EventTimes& times(std::uint32_t at) const { return times_[at]; }

  // The machine's.
  [[nodiscard]] bool timed() const { return times_ != nullptr; }
  void begin();  // a collective
  void let_in(const Event& event, std::uint64_t now);
  void posted(std::uint8_t port, Kind kind, std::uint64_t now);
  void completed(std::uint8_t port, Kind kind, std::uint64_t now);
  void ran(std::int64_t step, std::uint8_t action, std::uint64_t began, std::uint64_t now);
  void retire(std::int64_t step, std::uint64_t now);

 private:
  Event* events_ = nullptr;
  EventTimes* times_ = nullptr;
  std::uint32_t capacity_ = 0, count_ = 0, retired_ = 0;
  std::uint64_t lost_ = 0;
};

// The record as bytes, little-endian: step (4), segment (4), block (4), action, link, kind (1
// each), a zero.
inline constexpr std::uint32_t kEventBytes = 16;
void event_bytes(const Event& event, std::uint8_t bytes[kEventBytes]);

}  // namespace espalier
