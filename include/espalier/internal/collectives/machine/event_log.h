#pragma once
// The event log of a machine: one record per message, combine and copy of the most recently started
// collective, in program order, in the caller's memory. Freestanding. A machine without a log pays
// for a pointer test.
//
// The first retired() records depend only on the program and the number of blocks. Their bytes
// (event_bytes) are the same on every target and fabric, in any order of arrival. If the caller
// provides memory for times, the log also keeps the times at which each was issued, posted,
// completed and retired. A full log keeps its records and counts those it drops.

#include <cstdint>

#include "espalier/collectives/schedule/program.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/little_endian.h"

namespace espalier {

// One record: an instance of a send, receive, combine or copy.
struct Event {
  // Value of `link` and `port` for combines and copies.
  static constexpr std::uint8_t kNoLink = 255;
  Little<std::uint32_t> step = 0;  // step number in the whole schedule, modulo 2^32
  Little<std::uint32_t> segment = 0, block = 0;
  std::uint8_t action = 0;      // position in the program
  std::uint8_t link = kNoLink;  // position among the program's links; messages only
  std::uint8_t kind = 0;        // espalier_ActionKind
  std::uint8_t port = kNoLink;  // the endpoint's link; messages only
  // begun: the message was posted. done: it is complete. A combine or copy gets both when it has
  // run.
  bool begun = false, done = false;
};

// Times of an event by the endpoint's clock, ns.
struct EventTimes {
  Little<std::uint64_t> issued = 0;   // the step was issued
  Little<std::uint64_t> posted = 0;   // the message was posted; the combine or copy began
  Little<std::uint64_t> done = 0;     // the completion was polled; the combine or copy had run
  Little<std::uint64_t> retired = 0;  // the step retired
};

// The log of one machine. Without memory it only counts the records that it drops.
class EventLog {
 public:
  EventLog() = default;
  // `events` has room for `capacity` records, `times` for the same number, or is null. The memory
  // must outlive the log.
  EventLog(Event* events, EventTimes* times, std::uint32_t capacity)
      : events_(events), times_(times), capacity_(capacity) {}
  // The sizes of a log.
  struct Counts {
    std::uint32_t count = 0, retired = 0;
    std::uint64_t lost = 0;
  };
  // A log for reading records that another log wrote; `counts` come from that log.
  EventLog(Event* events, EventTimes* times, const Counts& counts)
      : events_(events),
        times_(times),
        capacity_(counts.count),
        count_(counts.count),
        retired_(counts.retired),
        lost_(counts.lost) {}

  // Returns the sizes, from which the constructor above makes a log for reading.
  [[nodiscard]] Counts counts() const { return {count_, retired_, lost_}; }
  // Returns the number of records.
  [[nodiscard]] std::uint32_t count() const { return count_; }
  // Returns the number of records that were dropped because the log was full.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  // Returns the number of records of retired steps. They are the first ones, and final.
  [[nodiscard]] std::uint32_t retired() const { return retired_; }
  // Returns record `index` < count().
  [[nodiscard]] const Event& event(std::uint32_t index) const {
    ESPALIER_ASSERT(index < count_);
    return events_[index];
  }
  // Returns the times of record `index` < count(). Only for a log constructed with `times`.
  [[nodiscard]] const EventTimes& times(std::uint32_t index) const {
    ESPALIER_ASSERT(timed() && index < count_);
    return times_[index];
  }

  // The rest is called by the machine only. Times are by the endpoint's clock, ns; a log without
  // times ignores them.
  // Whether the log keeps times.
  [[nodiscard]] bool timed() const { return times_ != nullptr; }
  // Empties the log for a new collective.
  void begin();
  // Adds an instance whose step has been issued, unless the log is full.
  void issue(const Event& event, std::uint64_t now);
  // posted() marks the first unposted message of the endpoint's link `port` and this kind,
  // completed() the first incomplete one. No effect if there is none: its record was dropped.
  void posted(std::uint8_t port, ActionKind::Value kind, std::uint64_t now);
  void completed(std::uint8_t port, ActionKind::Value kind, std::uint64_t now);
  // Marks a combine or copy of this step and action as run, from `began` to `now`. No effect if its
  // record was dropped.
  void ran(std::int64_t step, std::uint8_t action, std::uint64_t began, std::uint64_t now);
  // Marks the records of `step`, the oldest step that is not retired, as retired.
  void retire(std::int64_t step, std::uint64_t now);

 private:
  // Asserts what holds between two calls.
  void check_invariants() const {
    ESPALIER_ASSERT(retired_ <= count_ && count_ <= capacity_);
    ESPALIER_ASSERT(lost_ == 0 || count_ == capacity_);
    ESPALIER_ASSERT(count_ == 0 || events_ != nullptr);
  }

  Event* events_ = nullptr;
  EventTimes* times_ = nullptr;
  std::uint32_t capacity_ = 0, count_ = 0, retired_ = 0;
  std::uint64_t lost_ = 0;
};

inline constexpr std::uint32_t kEventBytes = 16;  // bytes that event_bytes() writes
// Writes the record as bytes, little-endian: step (4 bytes), segment (4), block (4), action (1),
// link (1), kind (1), zero (1).
void event_bytes(const Event& event, std::uint8_t bytes[kEventBytes]);

}  // namespace espalier
