#include "espalier/internal/collectives/machine/event_log.h"

namespace espalier {
namespace {

void put(std::uint8_t* bytes, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

}  // namespace

void EventLog::begin() {
  count_ = retired_ = 0;
  lost_ = 0;
  check_invariants();
}

// The first records are kept: a record after a dropped one would get the times of the dropped one.
void EventLog::issue(const Event& event, std::uint64_t now) {
  if (count_ == capacity_) {
    ++lost_;
    return;
  }
  events_[count_] = event;
  if (timed()) times_[count_] = {now, 0, 0, 0};
  ++count_;
  check_invariants();
}

// Messages of one link and direction are posted in order and complete in order. So the message is
// the first unposted one of its link and direction, or was dropped if there is none. Only records
// of steps in flight are searched, so they are few.
void EventLog::posted(std::uint8_t port, ActionKind::Value kind, std::uint64_t now) {
  for (std::uint32_t i = retired_; i < count_; ++i) {
    Event& event = events_[i];
    if (event.begun || event.port != port || event.kind != kind) continue;
    event.begun = true;
    if (timed()) times_[i].posted = now;
    return;
  }
}

void EventLog::completed(std::uint8_t port, ActionKind::Value kind, std::uint64_t now) {
  for (std::uint32_t i = retired_; i < count_; ++i) {
    Event& event = events_[i];
    if (event.done || event.port != port || event.kind != kind) continue;
    event.done = true;
    if (timed()) times_[i].done = now;
    return;
  }
}

void EventLog::ran(std::int64_t step, std::uint8_t action, std::uint64_t began, std::uint64_t now) {
  for (std::uint32_t i = retired_; i < count_; ++i) {
    Event& event = events_[i];
    if (event.done || event.action != action || event.step != static_cast<std::uint32_t>(step))
      continue;
    event.begun = event.done = true;
    if (timed()) {
      times_[i].posted = began;
      times_[i].done = now;
    }
    return;
  }
}

void EventLog::retire(std::int64_t step, std::uint64_t now) {
  for (; retired_ < count_ && events_[retired_].step == static_cast<std::uint32_t>(step);
       ++retired_) {
    if (timed()) times_[retired_].retired = now;
  }
  check_invariants();
}

void event_bytes(const Event& event, std::uint8_t bytes[kEventBytes]) {
  put(bytes, event.step);
  put(bytes + 4, event.segment);
  put(bytes + 8, event.block);
  bytes[12] = event.action;
  bytes[13] = event.link;
  bytes[14] = event.kind;
  bytes[15] = 0;
}

}  // namespace espalier
