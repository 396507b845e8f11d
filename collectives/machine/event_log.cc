#include "espalier/collectives/machine/event_log.h"

namespace espalier {
namespace {

void put(std::uint8_t* bytes, std::uint32_t value) {
  for (int at = 0; at < 4; ++at) bytes[at] = static_cast<std::uint8_t>(value >> (8 * at));
}

}  // namespace

void EventLog::begin() {
  count_ = retired_ = 0;
  lost_ = 0;
}

// The first ones are kept: a record after a lost one would get the lost one's times.
void EventLog::let_in(const Event& event, std::uint64_t now) {
  if (count_ == capacity_) {
    ++lost_;
    return;
  }
  events_[count_] = event;
  if (timed()) times_[count_] = {now, 0, 0, 0};
  ++count_;
}

// Those of a link and direction are posted, and complete, in order: the first that was not is meant
// (none, where it was lost). They are of steps in flight, so few.
void EventLog::posted(std::uint8_t port, Kind kind, std::uint64_t now) {
  for (std::uint32_t at = retired_; at < count_; ++at) {
    Event& event = events_[at];
    if (event.begun || event.port != port || event.kind != kind) continue;
    event.begun = true;
    if (timed()) times_[at].posted = now;
    return;
  }
}

void EventLog::completed(std::uint8_t port, Kind kind, std::uint64_t now) {
  for (std::uint32_t at = retired_; at < count_; ++at) {
    Event& event = events_[at];
    if (event.done || event.port != port || event.kind != kind) continue;
    event.done = true;
    if (timed()) times_[at].done = now;
    return;
  }
}

void EventLog::ran(std::int64_t step, std::uint8_t action, std::uint64_t began, std::uint64_t now) {
  for (std::uint32_t at = retired_; at < count_; ++at) {
    Event& event = events_[at];
    if (event.action != action || event.step != static_cast<std::uint32_t>(step)) continue;
    event.begun = event.done = true;
    if (timed()) {
      times_[at].posted = began;
      times_[at].done = now;
    }
    return;
  }
}

void EventLog::retire(std::int64_t step, std::uint64_t now) {
  for (; retired_ < count_ && events_[retired_].step == static_cast<std::uint32_t>(step);
       ++retired_) {
    if (timed()) times_[retired_].retired = now;
  }
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
