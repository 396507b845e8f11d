// Hazards of one node, by holding back one event at a time. Part of brute.h.

#include <algorithm>

#include "tests/random/brute.h"

namespace espalier::random {
namespace {

class Holder {
 public:
  Holder(const NodeEvents& node, InPlace in_place)
      : node_(node), events_(node.events), window_(node.program->window) {
    if (in_place == InPlace::kYes) {
      const auto [in_first, in_end] = given_segments(*node.program, Buffer::kInput);
      const auto [out_first, out_end] = given_segments(*node.program, Buffer::kOutput);
      shared_first_ = std::max(in_first, out_first);
      shared_end_ = std::min(in_end, out_end);
    }
    for (const Event& event : events_) {
      uses_.push_back({key(event.into), key(event.a), key(event.b), changes(event)});
      runs_ = runs_ || event.into.segment_count > 1 || event.a.segment_count > 1;
    }
  }

  std::string find() {
    for (held_ = 0; held_ < events_.size(); ++held_) {
      find_open();
      std::size_t last = held_;
      for (std::size_t k = held_ + 1; k < end_; ++k) {
        if (collide(held_, k)) last = k;
      }
      const std::size_t k = last == held_ ? last : go_on(last);
      if (k == held_) continue;
      return "node " + std::to_string(node_.program->node) + ": action " +
             std::to_string(events_[k].action) + " of step " + std::to_string(events_[k].step) +
             " does not wait for action " + std::to_string(events_[held_].action) + " of step " +
             std::to_string(events_[held_].step) + ", which uses the same memory";
    }
    return {};
  }

 private:
  // An event's use of memory: places of one block as numbers, 0: none.
  struct Use {
    std::uint64_t into = 0, a = 0, b = 0;
    bool changes = false;
  };
  // The state of a step's events.
  struct Step {
    bool receives = true, operations = true;  // whether all of them are complete
  };

  // The input is only read, unless it is the output's memory.
  [[nodiscard]] std::uint8_t buffer_of(const Memory& place) const {
    const bool shared = place.segment >= shared_first_ && place.segment < shared_end_;
    const auto output = static_cast<std::uint8_t>(Buffer::kOutput);
    return place.buffer == Buffer::kInput && shared ? output : place.buffer;
  }
  [[nodiscard]] std::uint64_t key(const Memory& place) const {
    const std::uint64_t buffer = buffer_of(place);
    if (buffer == 0) return 0;
    const bool slot = buffer == Buffer::kScratch;
    const auto segment = static_cast<std::uint64_t>(slot ? 0 : place.segment);
    return buffer << 61 | segment << 31 |
           static_cast<std::uint64_t>(slot ? place.slot : place.block);
  }
  [[nodiscard]] bool overlap(const Memory& a, const Memory& b) const {
    const std::uint8_t buffer = buffer_of(a);
    if (buffer == 0 || buffer != buffer_of(b)) return false;
    const bool slots = buffer == Buffer::kScratch;
    const std::int32_t first = slots ? a.slot : a.segment, other = slots ? b.slot : b.segment;
    return first < other + b.segment_count && other < first + a.segment_count &&
           (slots || a.block == b.block);
  }
  // A copy of a block onto itself changes nothing.
  [[nodiscard]] bool changes(const Event& event) const {
    const bool same = event.kind == ActionKind::kCopy && event.a.buffer == Buffer::kInput &&
                      event.a.segment == event.into.segment;
    return !same || buffer_of(event.a) != event.into.buffer;
  }
  // Whether the two use the same memory, and one of them writes it.
  [[nodiscard]] bool collide(std::size_t one, std::size_t other) const {
    const Use& x = uses_[one];
    const Use& y = uses_[other];
    if (!x.changes || !y.changes) return false;
    if (!runs_) {
      return (x.into != 0 && (x.into == y.into || x.into == y.a || x.into == y.b)) ||
             (y.into != 0 && (y.into == x.a || y.into == x.b));
    }
    const Event& a = events_[one];
    const Event& b = events_[other];
    return overlap(a.into, b.into) || overlap(a.into, b.a) || overlap(a.into, b.b) ||
           overlap(b.into, a.a) || overlap(b.into, a.b);
  }

  // The events of the steps that can be issued while the step of the held event has not retired;
  // all steps before have.
  void find_open() {
    const std::int64_t first = events_[held_].step;
    const std::int64_t last = std::min(first + window_, node_.phase_ends[events_[held_].phase]) - 1;
    end_ = std::max(end_, held_ + 1);
    while (end_ < events_.size() && events_[end_].step <= last) ++end_;
  }

  // Lets all events except the held one continue. Every event waits only for events before it in
  // the order of time, so one pass is enough. Returns the first event up to `last` that begins too
  // early; held_ if none does.
  [[nodiscard]] std::size_t go_on(std::size_t last) {
    const std::int64_t first = events_[held_].step;
    steps_.assign(static_cast<std::size_t>(events_[last].step - first) + 1, {});
    late_peers_.clear();
    sends_ = operations_ = true;
    note(events_[held_], true, false);
    for (std::size_t k = held_ + 1; k <= last; ++k) {
      const bool begins = may_begin(k);
      if (begins && collide(held_, k)) return k;
      note(events_[k], begins, begins);
    }
    return held_;
  }

  void note(const Event& event, bool begun, bool done) {
    if (event.is_send()) {
      if (begun) return;
      sends_ = false;
      late_peers_.push_back(event.peer);
    } else if (!done) {
      Step& step = steps_[static_cast<std::size_t>(event.step - events_[held_].step)];
      (event.is_receive() ? step.receives : step.operations) = false;
      operations_ = operations_ && event.is_receive();
    }
  }

  [[nodiscard]] bool may_begin(std::size_t k) const {
    const Event& event = events_[k];
    if (event.is_receive()) return true;
    const std::int64_t back = event.step - event.after - events_[held_].step;
    const Step awaited = back < 0 ? Step{} : steps_[static_cast<std::size_t>(back)];
    if (event.is_send()) {
      const bool late =
          std::find(late_peers_.begin(), late_peers_.end(), event.peer) != late_peers_.end();
      return !late && (event.after == 0 || (awaited.receives && awaited.operations));
    }
    if (!operations_ || !sends_ || !awaited.receives) return false;
    // The operation waits for the end of a send that reads the memory it writes.
    return !(events_[held_].is_send() && collide(held_, k));
  }

  const NodeEvents& node_;
  const std::vector<Event>& events_;
  std::int64_t window_;
  std::int64_t shared_first_ = 0, shared_end_ = 0;  // segments of input and output in one memory
  std::vector<Use> uses_;                           // by event
  bool runs_ = false;                               // some place is more than one block
  std::size_t held_ = 0, end_ = 0;
  // While one event is held, by step, beginning with its own; whether all sends have begun and all
  // operations are done; the peers whose send has not begun.
  std::vector<Step> steps_;
  bool sends_ = true, operations_ = true;
  std::vector<std::int32_t> late_peers_;
};

}  // namespace

std::string find_hazard(const NodeEvents& node, InPlace in_place) {
  return Holder(node, in_place).find();
}

}  // namespace espalier::random
